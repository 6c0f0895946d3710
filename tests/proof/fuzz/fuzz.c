/* fuzz.c - the list of targets, and what they share. Owns the list, filled by constructors before main. */
#include "tests/proof/fuzz/fuzz.h"

#include <stdio.h>

struct fuzz_target fuzz_targets[FUZZ_TARGETS_MAX];
size_t fuzz_target_count;

void fuzz_register(const char *name, bool (*run)(struct view input))
{
    if (fuzz_target_count == FUZZ_TARGETS_MAX) {
        abort();
    }
    fuzz_targets[fuzz_target_count++] = (struct fuzz_target){ name, run };
}

_Noreturn void fuzz_fail(const char *condition, const char *file, int line)
{
    (void) fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

struct view fuzz_line(struct view *rest)
{
    const char *feed = rest->len == 0 ? NULL : memchr(rest->ptr, '\n', rest->len);
    size_t len = feed == NULL ? rest->len : (size_t) (feed - rest->ptr);
    struct view line = view_make(rest->ptr, len);
    size_t taken = feed == NULL ? len : len + 1;
    *rest = view_make(rest->ptr + taken, rest->len - taken);
    return line;
}

char *fuzz_text(struct view text)
{
    char *copy = view_dup(text);
    MUST(copy != NULL);
    return copy;
}

size_t fuzz_hash(struct view text)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325); /* FNV-1a */
    for (size_t i = 0; i < text.len; i++) {
        hash = (hash ^ (unsigned char) text.ptr[i]) * UINT64_C(0x100000001B3);
    }
    return (size_t) (hash ^ hash >> 29);
}

bool fuzz_is_inside(struct view part, struct view whole)
{
    return part.len == 0 ||
           (part.ptr >= whole.ptr && part.len <= whole.len && (size_t) (part.ptr - whole.ptr) <= whole.len - part.len);
}

bool fuzz_is_message(struct view text, bool lines)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((text.ptr[i] < 0x20 || text.ptr[i] > 0x7E) && !(lines && text.ptr[i] == '\n')) {
            return false;
        }
    }
    return !lines || text.len == 0 || text.ptr[text.len - 1] == '\n';
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (fuzz_target_count != 1) {
        abort();
    }
    (void) fuzz_targets[0].run(view_make((const char *) bytes, len));
    return 0;
}
