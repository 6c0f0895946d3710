/* fuzz_test.c - the short form of the fuzzing: every target on every committed input, and on ten thousand damaged copies of them, the same
 * for the same seed. `make fuzz` searches; this keeps what was found, and that the targets still build and hold. */
#include "tests/proof/fuzz/fuzz.h"
#include "tests/support/suite.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

enum { MUTATIONS = 10000, INPUT_MAX = 8192, FILES_MAX = 200 };

#define CORPUS "tests/proof/fuzz/corpus"

struct corpus {
    struct view files[FILES_MAX];
    size_t count;
};

/* --- when something fails: the input is left for the next look ------------------------------------------------------------------------- */

static struct view running;
static char left_at[256];

static void leave_input(int number)
{
    int file = open(left_at, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file >= 0 && write(file, running.ptr, running.len) == (ssize_t) running.len) {
        static const char words[] = "the input was left in ";
        (void) !write(STDERR_FILENO, words, sizeof(words) - 1);
        (void) !write(STDERR_FILENO, left_at, strlen(left_at));
        (void) !write(STDERR_FILENO, "\n", 1);
    }
    (void) signal(number, SIG_DFL);
    (void) raise(number);
}

static void watch(const char *name)
{
    (void) snprintf(left_at, sizeof(left_at), "%s/fuzz-%s.input", suite_out(), name);
    (void) signal(SIGABRT, leave_input);
    (void) signal(SIGSEGV, leave_input);
    (void) signal(SIGBUS, leave_input);
    (void) signal(SIGFPE, leave_input);
}

/* In memory of its own size, as libFuzzer gives it. */
static bool run(const struct fuzz_target *target, struct view input)
{
    char *copy = malloc(input.len + (input.len == 0));
    ck_assert_ptr_nonnull(copy);
    if (input.len > 0) {
        memcpy(copy, input.ptr, input.len);
    }
    running = view_make(copy, input.len);
    bool taken = target->run(running);
    free(copy);
    return taken;
}

/* --- the committed inputs --------------------------------------------------------------------------------------------------------------- */

static struct view read_file(const char *path)
{
    char *bytes = malloc(INPUT_MAX);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL && bytes != NULL, "%s cannot be read", path);
    size_t len = fread(bytes, 1, INPUT_MAX, file);
    ck_assert_msg(feof(file), "%s is longer than %d bytes", path, INPUT_MAX);
    fclose(file);
    return view_make(bytes, len);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* In the order of their names, so that a seed means the same everywhere. */
static void corpus_read(struct corpus *corpus, const char *name)
{
    char path[512];
    struct dirent **entries = NULL;
    (void) snprintf(path, sizeof(path), CORPUS "/%s", name);
    int count = scandir(path, &entries, is_visible, alphasort);
    ck_assert_msg(count > 0 && count <= FILES_MAX, "%s: %d files", path, count);
    corpus->count = 0;
    for (int i = 0; i < count; i++) {
        (void) snprintf(path, sizeof(path), CORPUS "/%s/%.200s", name, entries[i]->d_name);
        corpus->files[corpus->count++] = read_file(path);
        free(entries[i]);
    }
    free(entries);
}

static void corpus_fini(struct corpus *corpus)
{
    for (size_t i = 0; i < corpus->count; i++) {
        free((void *) (uintptr_t) corpus->files[i].ptr);
    }
}

/* --- damage --------------------------------------------------------------------------------------------------------------------------- */

/* One change somewhere; `other` lends a piece. Returns the new length. */
static size_t damage(struct suite_random *random, char *out, size_t len, struct view other)
{
    static const char marks[] = "\r\n\t\0 :;,=\"\\%/.?#*-_09azAZ\x7f\x80\xff\x1e";
    size_t at = suite_random_below(random, (unsigned) len + 1);
    char byte = suite_random_below(random, 3) == 0 ? (char) suite_random_below(random, 256)
                                                   : marks[suite_random_below(random, sizeof(marks) - 1)];
    switch (suite_random_below(random, 6)) {
    case 0:
        if (at < len) {
            out[at] = byte;
        }
        return len;
    case 1: /* one byte more */
        other = view_make(&byte, 1);
        break;
    case 2: /* a piece less */
        if (at < len) {
            size_t piece = 1 + suite_random_below(random, len - at < 9 ? (unsigned) (len - at) : 9);
            memmove(out + at, out + at + piece, len - at - piece);
            return len - piece;
        }
        return len;
    case 3: /* the end is missing */
        return at;
    default: { /* a piece of another one */
        size_t from = suite_random_below(random, (unsigned) other.len + 1);
        other = view_make(other.ptr + from, suite_random_below(random, (unsigned) (other.len - from) + 1));
        break;
    }
    }
    if (len + other.len > INPUT_MAX) {
        return len;
    }
    memmove(out + at + other.len, out + at, len - at);
    memcpy(out + at, other.ptr, other.len);
    return len + other.len;
}

static struct view mutate(struct suite_random *random, const struct corpus *corpus, char *out)
{
    struct view seed = corpus->files[suite_random_below(random, (unsigned) corpus->count)];
    size_t len = seed.len;
    memcpy(out, seed.ptr, len);
    for (unsigned changes = 1 + suite_random_below(random, 3); changes > 0; changes--) {
        struct view other = corpus->files[suite_random_below(random, (unsigned) corpus->count)];
        len = damage(random, out, len, other);
    }
    return view_make(out, len);
}

/* --- tests ------------------------------------------------------------------------------------------------------------------------------ */

START_TEST(every_committed_input_and_its_damaged_copies_keep_the_properties)
{
    static char bytes[INPUT_MAX];
    static struct corpus corpus;
    const struct fuzz_target *target = &fuzz_targets[_i];
    unsigned seed = suite_seed(), taken = 0;
    struct suite_random random;
    suite_random_start(&random, seed);
    watch(target->name);
    corpus_read(&corpus, target->name);
    /* Before it runs: who fails must be able to be repeated. */
    FIGURE("T19 fuzz target=%s inputs=%zu mutations=%d seed=%u", target->name, corpus.count, MUTATIONS, seed);
    for (size_t i = 0; i < corpus.count; i++) {
        taken += run(target, corpus.files[i]);
    }
    ck_assert_msg(taken > 0 && taken < corpus.count, "%s: %u of %zu inputs are taken: both kinds must be there",
                  target->name, taken, corpus.count);
    for (int i = 0; i < MUTATIONS; i++) {
        (void) run(target, mutate(&random, &corpus, bytes));
    }
    (void) run(target, view_make(bytes, 0));
    corpus_fini(&corpus);
}
END_TEST

/* A folder that was left behind, or misnamed, would never be run. */
START_TEST(every_folder_of_inputs_has_its_target)
{
    struct dirent **entries = NULL;
    int count = scandir(CORPUS, &entries, is_visible, alphasort);
    ck_assert_int_eq(count, (int) fuzz_target_count);
    for (int i = 0; i < count; i++) {
        bool found = false;
        for (size_t j = 0; j < fuzz_target_count; j++) {
            found = found || strcmp(entries[i]->d_name, fuzz_targets[j].name) == 0;
        }
        ck_assert_msg(found, "%s/%s is of no target", CORPUS, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}
END_TEST

SUITE(fuzz)
{
    Suite *suite = suite_create("fuzz");
    CASE(suite, every_folder_of_inputs_has_its_target);
    CASE_LOOP(suite, every_committed_input_and_its_damaged_copies_keep_the_properties, fuzz_target_count);
    return suite;
}
