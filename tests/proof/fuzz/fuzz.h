/* fuzz.h - a fuzz target: one reader of the product, and what must hold of it for any bytes at all.
 *
 *   FUZZ_TARGET(key)
 *   {
 *       ... MUST(key.len <= KEY_BYTES_MAX); ...
 *       return accepted;
 *   }
 *
 * A file per target; it says in its head how an input is cut into what the reader takes, and what is asserted. libFuzzer runs one
 * target alone (`make fuzz`, tools/run-fuzz); fuzz_test.c, in the group `fuzz` of `make test`, runs the committed inputs of all of
 * them (corpus/NAME) and ten thousand mutations. A target is a function of its input: no clock, no randomness, nothing kept. It says
 * whether the reader took the input, so that the test can see that a corpus is not all refused. One thread. */
#ifndef NONBIS_TESTS_PROOF_FUZZ_H
#define NONBIS_TESTS_PROOF_FUZZ_H

#include "common/buf.h"
#include "common/view.h"

#include <stdlib.h>
#include <string.h>

enum { FUZZ_TARGETS_MAX = 32 };

struct fuzz_target {
    const char *name;
    bool (*run)(struct view input);
};
extern struct fuzz_target fuzz_targets[FUZZ_TARGETS_MAX];
extern size_t fuzz_target_count;

void fuzz_register(const char *name, bool (*run)(struct view input));

#define FUZZ_TARGET(name)                                                                                              \
    static bool fuzz_##name(struct view input);                                                                        \
    __attribute__((constructor)) static void fuzz_constructor_##name(void)                                             \
    {                                                                                                                  \
        fuzz_register(#name, fuzz_##name);                                                                             \
    }                                                                                                                  \
    static bool fuzz_##name(struct view input)

/* Not ck_assert: libFuzzer knows a crash by abort(). */
#define MUST(condition) ((condition) ? (void) 0 : fuzz_fail(#condition, __FILE__, __LINE__))
_Noreturn void fuzz_fail(const char *condition, const char *file, int line);

/* Cuts the first line off, without its LF. Empty when nothing is left. */
struct view fuzz_line(struct view *rest);
/* The NUL-terminated copy that the caller frees; it ends at the first NUL of the text. */
char *fuzz_text(struct view text);
/* A number that every byte has a part in: for choices that must be the same for the same input. */
size_t fuzz_hash(struct view text);
/* Whether `part` lies within `whole`; an empty part may lie anywhere. */
bool fuzz_is_inside(struct view part, struct view whole);
/* Visible ASCII and blanks: fit for a terminal and a log. `lines`: line feeds too, and one at the end. */
bool fuzz_is_message(struct view text, bool lines);

/* What libFuzzer calls: runs the one target that is linked. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#endif
