# The only build file. `make help` lists the targets. SAN=address,undefined or SAN=thread builds everything apart,
# under build/san-..., with that sanitizer.

CC      ?= gcc
SAN     ?=
comma   := ,
OUT     := build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))

PKGS    := libmicrohttpd sqlite3 libcjson libcurl libuv libsodium
VERSION := 0.1.0

WARN    := -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
           -Wvla -Wformat=2 -Werror
HARDEN  := -fstack-protector-strong -fPIE $(if $(SAN),,-D_FORTIFY_SOURCE=2)
OPT     := $(if $(SAN),-O1 -fno-omit-frame-pointer -fsanitize=$(SAN) -fno-sanitize-recover=all -Wno-format-truncation,-O2)
CFLAGS  := $(WARN) $(OPT) -g $(HARDEN) -D_GNU_SOURCE -DNONBIS_VERSION='"$(VERSION)"' -I. -I$(OUT)/gen \
           $(shell pkg-config --cflags $(PKGS) 2>/dev/null) $(EXTRA_CFLAGS)
LDFLAGS := -pie -Wl,-z,relro,-z,now $(if $(SAN),-fsanitize=$(SAN))
LDLIBS  := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lpthread -lm

# A room is a folder; a source in no room is an error (tools/check-layers).
ROOMS   := common server/http server/core server/digest server/base server/config server/store server/upstream \
           server/edge server/api server/flow
SOURCES := $(foreach room,$(ROOMS),$(sort $(wildcard $(room)/*.c)))
OBJECTS := $(SOURCES:%.c=$(OUT)/obj/%.o)
LIBRARY := $(OUT)/libserver.a

# A test group is a folder under tests with *_test.c, at any depth; each becomes one program.
GROUPS   := unit store model upstream edge libraries integration contract
SUPPORT  := $(filter-out tests/support/moved_clock.c,$(sort $(wildcard tests/support/*.c tests/peer/*.c)))
SUPPORT_OBJECTS := $(SUPPORT:%.c=$(OUT)/obj/%.o)
TEST_PROGRAMS   := $(patsubst %,$(OUT)/tests/%,$(if $(T),$(T),$(GROUPS)))
group_sources    = $(sort $(shell find tests/$(1) -name '*.c'))

.PHONY: all test quickstart demo bench lint format clean help layers tests
.SECONDARY:
.DELETE_ON_ERROR:

all: $(OUT)/nonbisd

help:
	@sed -n 's/^## //p' Makefile

## all            build/nonbisd
## test           every test group, or those named by T="..."; closing line "N passed, N failed"
test: tests
	@$(if $(filter contract,$(if $(T),$(T),$(GROUPS))),tools/check-contract)
	@OUT=$(OUT) tests/run.sh $(if $(T),$(T),$(GROUPS))

tests: $(TEST_PROGRAMS) $(if $(filter integration contract,$(if $(T),$(T),$(GROUPS))),all $(OUT)/order-handler $(OUT)/nonbisd-moved)

## quickstart     the commands of README.md, as a reader runs them
quickstart: all $(OUT)/order-handler
	@OUT=$(OUT) tools/run-quickstart

## demo           the main job on real input; KEEP=1 leaves it running
demo: all $(OUT)/order-handler
	@OUT=$(OUT) KEEP=$(KEEP) examples/demo.sh

## bench          side by side with nginx (never part of a test)
bench: all $(OUT)/bench/upstream
	@OUT=$(OUT) bench/run.sh

## lint           format, tidy, layers, banned calls, settings and contract against tests
lint:
	@tools/lint

## format         rewrite the sources with clang-format
format:
	@clang-format -i $(shell git ls-files '*.c' '*.h')

## clean          remove build/
clean:
	rm -rf build

$(LIBRARY): $(OBJECTS)
	@rm -f $@
	@ar rcs $@ $^

$(OUT)/nonbisd: $(OUT)/obj/server/main.o $(LIBRARY)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# The server with a clock that a test moves: the library's clock.o is not taken, since all of it is there already.
$(OUT)/nonbisd-moved: $(OUT)/obj/server/main.o $(OUT)/obj/tests/support/moved_clock.o $(LIBRARY)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(OUT)/order-handler: $(patsubst %.c,$(OUT)/obj/%.o,$(sort $(wildcard examples/order-handler/*.c))) $(LIBRARY)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(OUT)/bench/upstream: $(OUT)/obj/bench/upstream.o $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

define group_rule
$(OUT)/tests/$(1): $$(patsubst %.c,$(OUT)/obj/%.o,$$(call group_sources,$(1))) $$(SUPPORT_OBJECTS) $$(LIBRARY)
	@mkdir -p $$(@D)
	$$(CC) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS) $$(shell pkg-config --libs check)
endef
$(foreach group,$(GROUPS),$(eval $(call group_rule,$(group))))

$(OUT)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "cc $<"
	@$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

# The migrations as C text: one array of { number, name, sql }, in the order of their names.
MIGRATIONS := $(sort $(wildcard schema/sqlite/*.sql))
$(OUT)/gen/migrations_sqlite.h: $(MIGRATIONS) Makefile
	@mkdir -p $(@D)
	@for file in $(MIGRATIONS); do \
	  number=$$(basename $$file | sed 's/_.*//; s/^0*//'); \
	  printf '{ %s, "%s",\n' "$$number" "$$(basename $$file)"; \
	  sed 's/\\/\\\\/g; s/"/\\"/g; s/^/  "/; s/$$/\\n"/' $$file; echo '},'; \
	done > $@
$(OUT)/obj/server/store/migrate_sqlite.o: $(OUT)/gen/migrations_sqlite.h

-include $(shell find build -name '*.d' 2>/dev/null)

# For compiling a single file or a few by hand: gcc $(make -s cflags) -c file.c
cflags:
	@echo $(CFLAGS)
ldlibs:
	@echo $(LDFLAGS) $(LDLIBS) $(shell pkg-config --libs check)
