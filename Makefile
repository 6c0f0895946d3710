# The only build file. `make help` lists the targets. SAN=address,undefined or SAN=thread builds everything apart,
# under build/san-..., with that sanitizer.

CC      ?= gcc
SAN     ?=
comma   := ,
OUT     := build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))

# libcurl: its headers only. nonbisd loads the library itself, and only to reach a handler by https.
PKGS    := libmicrohttpd sqlite3 libcjson libuv libsodium
HEADERS := libcurl
VERSION := 0.1.0

WARN    := -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
           -Wvla -Wformat=2 -Werror
HARDEN  := -fstack-protector-strong -fPIE $(if $(SAN),,-D_FORTIFY_SOURCE=2)
OPT     := $(if $(SAN),-O1 -fno-omit-frame-pointer -fsanitize=$(SAN) -fno-sanitize-recover=all -Wno-format-truncation,-O2)
CFLAGS  := $(WARN) $(OPT) -g $(HARDEN) -D_GNU_SOURCE -DNONBIS_VERSION='"$(VERSION)"' -I. -Iclient-sdk/include -I$(OUT)/gen \
           $(shell pkg-config --cflags $(PKGS) $(HEADERS) 2>/dev/null) $(EXTRA_CFLAGS)
LDFLAGS := -pie -Wl,-z,relro,-z,now $(if $(SAN),-fsanitize=$(SAN)) $(EXTRA_LDFLAGS)
LDLIBS  := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lpthread -lm

# A room is a folder; a source in no room is an error (tools/check-layers).
ROOMS   := common server/http server/core server/digest server/base server/config server/store server/upstream \
           server/edge server/api server/flow
SOURCES := $(foreach room,$(ROOMS),$(sort $(wildcard $(room)/*.c)))
OBJECTS := $(SOURCES:%.c=$(OUT)/obj/%.o)
LIBRARY := $(OUT)/libserver.a

# libnonbis: its own objects, fit for a shared library, in which only what nonbis.h marks can be seen. `common` is compiled in.
# What is installed shows nothing else; the command and the tests of the inside link the objects as they are (SDK_INSIDE).
SDK_SOURCES := $(sort $(wildcard client-sdk/src/*.c common/*.c))
SDK_OBJECTS := $(SDK_SOURCES:%.c=$(OUT)/sdk/%.o)
SDK_INSIDE  := $(OUT)/sdk/libinside.a
SDK_SONAME  := libnonbis.so.$(firstword $(subst ., ,$(VERSION)))
SDK_SO      := $(OUT)/libnonbis.so.$(VERSION)
SDK_HEADER  := client-sdk/include/nonbis.h
SDK_PKGS    := libcurl libcjson
SDK_LDLIBS  := $(shell pkg-config --libs $(SDK_PKGS) 2>/dev/null) -lpthread
SDK         := $(OUT)/libnonbis.a $(SDK_SO) $(OUT)/$(SDK_SONAME) $(OUT)/libnonbis.so

# Where `make install` puts things; DESTDIR goes before all of them.
PREFIX     ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR    ?= $(PREFIX)/share
MANDIR     ?= $(DATADIR)/man

MANUAL     := $(patsubst client-sdk/man/%.in,$(OUT)/man/%,$(sort $(wildcard client-sdk/man/*.3.in))) \
              $(patsubst client-sdk/man/%,$(OUT)/man/%,$(sort $(wildcard client-sdk/man/*.[1578]))) $(OUT)/man/nonbisd.8
COMPLETION := $(addprefix $(OUT)/completion/nonbis.,bash zsh fish)

# The programs of the manual, built as their readers build them: C99, and nothing but what is installed.
STAGE    := $(OUT)/stage
EXAMPLES := $(patsubst client-sdk/examples/%.c,$(OUT)/examples/%,$(sort $(wildcard client-sdk/examples/*.c))) \
            $(OUT)/examples/own_names $(OUT)/examples/from_cxx

# The command: everything but main, so that its tests can link it.
CLI_OBJECTS := $(patsubst %.c,$(OUT)/obj/%.o,$(filter-out %/main.c,$(sort $(wildcard client-sdk/cli/*.c))))
CLI         := $(OUT)/libcli.a

# A test group is a folder under tests with *_test.c, at any depth; each becomes one program. Those of `fuzz` and `faults` are brief forms of proofs (below).
GROUPS   := unit store model fuzz upstream edge client cli libraries faults integration contract
SUPPORT  := $(filter-out tests/support/moved_clock.c tests/support/held_sync.c,$(sort $(wildcard tests/support/*.c tests/peer/*.c)))
SUPPORT_OBJECTS := $(SUPPORT:%.c=$(OUT)/obj/%.o)
TEST_PROGRAMS   := $(patsubst %,$(OUT)/tests/%,$(if $(T),$(T),$(GROUPS)))
FAULTS          := $(filter-out %/shim_power.c %/shim_io.c %/shim_memory.c %/long.c %/brief.c,$(sort $(wildcard tests/proof/faults/*.c)))
SHIMS           := $(if $(SAN),,$(patsubst tests/proof/faults/%.c,$(OUT)/tests/%.so,$(sort $(wildcard tests/proof/faults/shim_*.c))))
group_sources    = $(if $(filter faults,$(1)),$(FAULTS) tests/proof/faults/brief.c,$(sort $(shell find tests/$(if $(filter fuzz,$(1)),proof/)$(1) -name '*.c')))

# The runs are linked into the group integration too, which has their short forms; what judges their histories is tested by the group unit. It never
# meets libnonbis in one program, which has a history of its own.
HISTORY := $(patsubst %.c,$(OUT)/obj/%.o,$(sort $(wildcard tests/proof/history/*.c)))
RUNS := $(HISTORY) $(patsubst %.c,$(OUT)/obj/%.o,$(filter-out %_test.c,$(sort $(wildcard tests/proof/runs/*.c))))
PROOF_PROGRAMS := $(OUT)/nonbisd-crashing $(OUT)/proof-oracle

.PHONY: all test proof proof-runs proof-front proof-faults soak model fuzz quickstart demo bench bench-all bench-client mutants coverage analyze valgrind lint \
        format install uninstall clean help layers tests built-runs built-faults built-front built-model FORCE
.SECONDARY:
.DELETE_ON_ERROR:

all: $(OUT)/nonbisd $(OUT)/nonbis $(SDK) $(OUT)/nonbis.pc $(MANUAL) $(COMPLETION)

help:
	@sed -n 's/^## //p' Makefile

## all            build/nonbisd, build/nonbis, libnonbis, the manual
## test           every test group, or those named by T="..."; closing line "N passed, N failed"
test: tests
	@$(if $(filter contract,$(if $(T),$(T),$(GROUPS))),tools/check-contract)
	@OUT=$(OUT) tests/run.sh $(if $(T),$(T),$(GROUPS))

tests: $(TEST_PROGRAMS) \
       $(if $(filter integration contract cli client faults,$(if $(T),$(T),$(GROUPS))),all $(OUT)/order-handler) \
       $(if $(filter faults,$(if $(T),$(T),$(GROUPS))),$(SHIMS)) \
       $(if $(filter integration contract faults,$(if $(T),$(T),$(GROUPS))),$(OUT)/nonbisd-moved $(OUT)/nonbisd-held) \
       $(if $(filter integration,$(if $(T),$(T),$(GROUPS))),$(PROOF_PROGRAMS)) \
       $(if $(filter client,$(if $(T),$(T),$(GROUPS))),$(EXAMPLES))

# The proofs that want programs beside ours are groups of their own, which `make test` leaves out: tests/proof/NAME is the program proof-NAME.
$(OUT)/tests/proof-front: $(patsubst %.c,$(OUT)/obj/%.o,$(sort $(wildcard tests/proof/front/*.c))) $(SUPPORT_OBJECTS) $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) $(shell pkg-config --libs check)

$(OUT)/tests/proof-runs: $(patsubst %.c,$(OUT)/obj/%.o,$(sort $(wildcard tests/proof/runs/*_test.c))) $(RUNS) $(SUPPORT_OBJECTS) $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) $(shell pkg-config --libs check)

# What each part of the proof is made of. Parts that run side by side must find it there: two makes in one folder would build it twice, into each other.
built-runs: all $(PROOF_PROGRAMS) $(OUT)/tests/proof-runs
built-faults: all $(OUT)/nonbisd-moved $(OUT)/tests/proof-faults $(SHIMS)
built-front: all $(OUT)/tests/proof-front
built-model: $(OUT)/proof/model/tables.pml

## proof-runs     kills, crash points, stops, slow peers, overload, a flood of keys: the histories of their clients against what the contract promises;
##                SUITE=proof/loads: those alone that measure times
proof-runs: built-runs
	@$(if $(SUITE),CK_RUN_SUITE="$(SUITE)") OUT=$(OUT) tests/run.sh proof-runs

## proof          everything of tests/proof, collected into build/proof/report.md (about 10 minutes); PARTS="runs model" those alone
proof:
	@PARTS="$(PARTS)" M="$(M)" tools/run-proof

## proof-front    the hostile requests behind HAProxy and nginx (./dev install-only proof); VERBOSE=1 tells of each row
proof-front: built-front
	@OUT=$(OUT) tests/run.sh proof-front

# The life of a record in Spin: the searcher runs on the tables of server/core, which this program writes; `make test T=model` holds them against
# tests/proof/model/life.txt.
LIFE_OBJECTS := $(patsubst %,$(OUT)/obj/tests/proof/model/%.o,life ways)

$(OUT)/proof/model/tables: $(OUT)/obj/tests/proof/model/tables.o $(LIFE_OBJECTS) $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(OUT)/proof/model/tables.pml: $(OUT)/proof/model/tables
	@$< >$@

## model          the life of a record searched with Spin, and 25 mistakes that it must find (./dev install-only proof); ROWS="crash" those alone
model: built-model
	@OUT=$(OUT) ROWS="$(ROWS)" tools/run-model

$(OUT)/tests/proof-faults: $(patsubst %.c,$(OUT)/obj/%.o,$(FAULTS) tests/proof/faults/long.c) $(SUPPORT_OBJECTS) $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) $(shell pkg-config --libs check)

# What stands between a program and its libraries, to play a bad machine. A sanitizer wants to stand there itself.
$(OUT)/tests/shim_%.so: tests/proof/faults/shim_%.c tests/proof/faults/shim.h
	@mkdir -p $(@D)
	@echo "ld $@"
	@$(CC) $(CFLAGS) -fPIC -shared -o $@ $< -ldl

## soak           faults of every kind, mixed, for MINUTES=480: nothing is lost, nothing grows
MINUTES ?= 480
soak: built-runs
	@SOAK_MINUTES="$(MINUTES)" CK_RUN_SUITE=proof/lives CK_RUN_CASE=mixed_faults_life_after_life_lose_nothing_and_nothing_grows OUT=$(OUT) tests/run.sh proof-runs

## proof-faults   power loss, failing disk, no memory, no descriptors, wrong clocks (./dev install-only proof)
proof-faults: built-faults
	@OUT=$(OUT) tests/run.sh proof-faults

# A fuzz target alone, under libFuzzer: tools/run-fuzz builds these with clang, apart from everything else.
FUZZ_TARGETS := $(filter-out fuzz%,$(patsubst tests/proof/fuzz/%.c,%,$(wildcard tests/proof/fuzz/*.c)))
$(FUZZ_TARGETS:%=$(OUT)/target/%): $(OUT)/target/%: $(OUT)/obj/tests/proof/fuzz/%.o $(OUT)/obj/tests/proof/fuzz/fuzz.o $(OUT)/obj/tests/proof/fuzz/fuzz_head.o $(SDK_INSIDE) $(LIBRARY)
	@mkdir -p $(@D)
	@echo "ld $@"
	@$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LDLIBS) $(SDK_LDLIBS)

## fuzz           every reader under libFuzzer (./dev install-only proof); SECONDS=60 for each, F="key guard" those alone, SEED=n
SECONDS ?= 60
fuzz:
	@FUZZ_SECONDS="$(SECONDS)" FUZZ_SEED="$(SEED)" tools/run-fuzz $(if $(F),$(F),$(FUZZ_TARGETS))

## quickstart     the commands of README.md, as a reader runs them
quickstart: all $(OUT)/order-handler
	@OUT=$(OUT) tools/run-quickstart

## demo           the main job on real input; KEEP=1 leaves it running
demo: all $(OUT)/order-handler
	@OUT=$(OUT) KEEP=$(KEEP) examples/demo.sh

## bench          side by side with nginx and Redis, three minutes (never part of a test); PEERS=, LOADS=, ...: bench/run.sh
BENCH_TOOLS := $(addprefix $(OUT)/bench/,upstream idle meter same log fill)
bench: all $(BENCH_TOOLS)
	@OUT=$(OUT) bench/run.sh

## bench-all      everything that docs/performance.md shows: all peers, loads, sizes, many live keys (it says how long: over an hour)
bench-all: all $(BENCH_TOOLS)
	@OUT=$(OUT) ALL=1 bench/run.sh

## bench-client   a POST through libnonbis beside one through plain libcurl (never part of a test)
bench-client: all $(OUT)/bench/upstream $(OUT)/bench/client
	@OUT=$(OUT) bench/client.sh

## install        everything below PREFIX (/usr/local); DESTDIR=DIR goes before it
install: all
	@OUT=$(OUT) DESTDIR="$(DESTDIR)" BINDIR="$(BINDIR)" LIBDIR="$(LIBDIR)" INCLUDEDIR="$(INCLUDEDIR)" \
	  DATADIR="$(DATADIR)" MANDIR="$(MANDIR)" tools/install install

## uninstall      takes away what install put there
uninstall: all
	@OUT=$(OUT) DESTDIR="$(DESTDIR)" BINDIR="$(BINDIR)" LIBDIR="$(LIBDIR)" INCLUDEDIR="$(INCLUDEDIR)" \
	  DATADIR="$(DATADIR)" MANDIR="$(MANDIR)" tools/install uninstall

## mutants        seeded bugs (tests/proof/mutants): the tests find each; M="01 07" tries those alone
mutants:
	@$(MAKE) -s tests T= SAN=
	@tools/run-mutants $(M)

## coverage       lines and branches that the tests reach, per room, under build/coverage
coverage:
	@tools/run-coverage

## analyze        gcc -fanalyzer over the product; what it is wrong about is in tools/analyze-known.txt
analyze:
	@tools/run-analyze

## valgrind       the tests, and the programs that they start, under memcheck; T="..." as for test
valgrind:
	@tools/run-valgrind

## lint           format, tidy, layers, banned calls; settings, contract, metrics, symbols and manual against what they promise
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

# The public header stands alone in C99, C11 and, where there is a C++ compiler, in C++.
$(OUT)/sdk/header.ok: $(SDK_HEADER)
	@mkdir -p $(@D)
	@for std in c99 c11; do $(CC) -std=$$std -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c $< || exit 1; done
	@! command -v g++ >/dev/null || g++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ $<
	@touch $@

$(SDK_INSIDE): $(SDK_OBJECTS) $(OUT)/sdk/header.ok
	@rm -f $@
	@ar rcs $@ $(SDK_OBJECTS)

# One object in which hidden names have become local, so that a program may have a buf_append of its own.
$(OUT)/libnonbis.a: $(SDK_OBJECTS) $(OUT)/sdk/header.ok
	@rm -f $@
	@$(CC) -r -nostdlib -o $(OUT)/sdk/nonbis.o $(SDK_OBJECTS)
	@objcopy --localize-hidden $(OUT)/sdk/nonbis.o
	@ar rcs $@ $(OUT)/sdk/nonbis.o

$(SDK_SO): $(SDK_OBJECTS) $(OUT)/sdk/header.ok client-sdk/libnonbis.map
	@echo "ld $@"
	@$(CC) -shared $(filter-out -pie,$(LDFLAGS)) -Wl,-soname,$(SDK_SONAME) -Wl,--version-script=client-sdk/libnonbis.map \
	  -Wl,--no-undefined -Wl,--as-needed -o $@ $(SDK_OBJECTS) $(SDK_LDLIBS)

$(OUT)/$(SDK_SONAME) $(OUT)/libnonbis.so: $(SDK_SO)
	@ln -sf $(<F) $@

# Made anew whenever a directory in it is another one. Without a file in between: parts of the proof that run side by side may both look at it.
$(OUT)/nonbis.pc: client-sdk/nonbis.pc.in FORCE
	@mkdir -p $(@D)
	@text=$$(sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))|' \
	  -e 's|@INCLUDEDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(INCLUDEDIR))|' -e 's|@VERSION@|$(VERSION)|' $<) || exit 1; \
	  [ "$$text" = "$$(cat $@ 2>/dev/null)" ] || printf '%s\n' "$$text" >$@

# Pages of section 3 take declarations from the header and their example from client-sdk/examples.
$(OUT)/man/%.3: client-sdk/man/%.3.in $(SDK_HEADER) tools/man-page $(wildcard client-sdk/examples/*.c)
	@mkdir -p $(@D)
	@tools/man-page $(VERSION) $< >$@

# The server's page takes settings, routes and flags from where they are written.
$(OUT)/man/nonbisd.8: server/man/nonbisd.8.in tools/man-page docs/settings.md server/config/print.c
	@mkdir -p $(@D)
	@tools/man-page $(VERSION) $< >$@

$(OUT)/man/%: client-sdk/man/%
	@mkdir -p $(@D)
	@cp $< $@

$(OUT)/completion/nonbis.%: $(OUT)/nonbis
	@mkdir -p $(@D)
	@$< completion $* >$@

# The installed tree that the examples are built from.
$(STAGE)/installed: $(OUT)/nonbisd $(OUT)/nonbis $(SDK) $(OUT)/nonbis.pc $(MANUAL) $(COMPLETION) $(SDK_HEADER) tools/install
	@rm -rf $(STAGE)
	@$(MAKE) --no-print-directory install DESTDIR=$(abspath $(STAGE)) >/dev/null
	@touch $@

stage_libdir := $(abspath $(STAGE))$(LIBDIR)
stage_pc     := PKG_CONFIG_SYSROOT_DIR=$(abspath $(STAGE)) PKG_CONFIG_PATH=$(stage_libdir)/pkgconfig pkg-config
stage_flags   = -Wall -Wextra -Werror -g $(if $(SAN),-fsanitize=$(SAN))

$(OUT)/examples/%: client-sdk/examples/%.c $(STAGE)/installed
	@mkdir -p $(@D)
	@echo "cc $< (as its readers do)"
	@$(CC) -std=c99 -pedantic $(stage_flags) $$($(stage_pc) --cflags nonbis) -o $@ $< $$($(stage_pc) --libs nonbis) \
	  -Wl,-rpath,$(stage_libdir)

# Linked with the archive, and with names of its own that are ours inside.
$(OUT)/examples/own_names: tests/programs/own_names.c $(STAGE)/installed
	@mkdir -p $(@D)
	@echo "cc $< (with libnonbis.a)"
	@$(CC) -std=c99 -pedantic $(stage_flags) $$($(stage_pc) --cflags nonbis) -o $@ $< $(stage_libdir)/libnonbis.a \
	  $(SDK_LDLIBS)

# The header and the library from C++, where there is a compiler for it.
$(OUT)/examples/from_cxx: tests/programs/from_cxx.cpp $(STAGE)/installed
	@mkdir -p $(@D)
	@! command -v g++ >/dev/null || g++ -std=c++11 -pedantic $(stage_flags) $$($(stage_pc) --cflags nonbis) -o $@ $< \
	  $$($(stage_pc) --libs nonbis) -Wl,-rpath,$(stage_libdir)

$(CLI): $(CLI_OBJECTS)
	@rm -f $@
	@ar rcs $@ $^

$(OUT)/nonbis: $(OUT)/obj/client-sdk/cli/main.o $(CLI) $(SDK_INSIDE)
	$(CC) $(LDFLAGS) -o $@ $^ $(SDK_LDLIBS) -lm

$(OUT)/nonbisd: $(OUT)/obj/server/main.o $(LIBRARY)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# The server with a clock that a test moves: the library's clock.o is not taken, since all of it is there already.
$(OUT)/nonbisd-moved: $(OUT)/obj/server/main.o $(OUT)/obj/tests/support/moved_clock.o $(LIBRARY)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# The server with a disk that a test holds: SQLite takes the fdatasync that the program brings.
$(OUT)/nonbisd-held: $(OUT)/obj/server/main.o $(OUT)/obj/tests/support/held_sync.o $(LIBRARY)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# The server that kills itself at a named point: our objects as they are, with the functions of crash_points.c around some of theirs.
CRASH_WRAPS := store_claim_key store_finish_command store_commit connection_send
$(OUT)/nonbisd-crashing: $(OUT)/obj/server/main.o $(OUT)/obj/tests/proof/crashing/crash_points.o $(LIBRARY)
	$(CC) $(LDFLAGS) $(CRASH_WRAPS:%=-Wl,--wrap=%) -o $@ $^ $(LDLIBS)

$(OUT)/proof-oracle: $(patsubst %.c,$(OUT)/obj/%.o,$(sort $(wildcard tests/proof/oracle/*.c))) $(OUT)/obj/tests/proof/history/history.o $(LIBRARY)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(OUT)/order-handler: $(patsubst %.c,$(OUT)/obj/%.o,$(sort $(wildcard examples/order-handler/*.c))) $(LIBRARY)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BENCH_TOOLS): $(OUT)/bench/%: $(OUT)/obj/bench/%.o $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(OUT)/bench/client: $(OUT)/obj/bench/client.o $(OUT)/libnonbis.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(SDK_LDLIBS) -lm

define group_rule
$(OUT)/tests/$(1): $$(patsubst %.c,$(OUT)/obj/%.o,$$(call group_sources,$(1))) $$(SUPPORT_OBJECTS) \
    $(if $(filter unit,$(1)),$$(HISTORY)) $(if $(filter integration,$(1)),$$(RUNS)) $(if $(filter model,$(1)),$$(LIFE_OBJECTS)) \
    $(if $(filter cli,$(1)),$$(CLI)) $(if $(filter client cli fuzz,$(1)),$$(SDK_INSIDE)) $$(LIBRARY)
	@mkdir -p $$(@D)
	$$(CC) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS) $(if $(filter client cli fuzz libraries,$(1)),$$(SDK_LDLIBS)) $$(shell pkg-config --libs check)
endef
$(foreach group,$(GROUPS),$(eval $(call group_rule,$(group))))

$(OUT)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "cc $<"
	@$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/sdk/%.o: %.c
	@mkdir -p $(@D)
	@echo "cc $< (library)"
	@$(CC) $(CFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c -o $@ $<

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

-include $(shell find $(OUT)/obj $(OUT)/sdk -type f -name '*.d' 2>/dev/null)

# For compiling a single file or a few by hand: gcc $(make -s cflags) -c file.c
cflags:
	@echo $(CFLAGS)
ldlibs:
	@echo $(LDFLAGS) $(LDLIBS) $(SDK_LDLIBS) $(shell pkg-config --libs check)
