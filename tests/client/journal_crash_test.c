/* Every system call of a journal, one after the other: the process dies at it, or it fails. Afterwards there is one entry, whole,
 * in a state that fits what had returned; never "not sent" once mark_sent had. */
#include "tests/client/journal_lab.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a story's steps are: c create, o open, s mark_sent, u mark_ended, d mark_ended as decided. `where[i]` lists the states
 * that an entry may be in when the first i steps have returned and the process is gone. */
static const struct story {
    const char *name;
    const char *before; /* put there by somebody else: "", "new", "sent", "done" */
    const char *steps;
    const char *where[6];
} stories[] = {
    { "a whole life", "", "csud", { "|new", "new|sent", "sent", "sent|done", "done" } },
    { "not sent after all", "", "cd", { "|new", "new|done", "done" } },
    { "in place of a decided one", "done", "csd", { "done|new", "new|sent", "sent|done", "done" } },
    { "found in new", "new", "osd", { "new", "new|sent", "sent|done", "done" } },
    { "found in sent", "sent", "osud", { "sent", "sent", "sent", "sent|done", "done" } },
    { "a decided one that is sent again", "done", "osd", { "done", "done|sent", "sent|done", "done" } },
};

static bool is_one_of(const char *where, const char *list)
{
    size_t len = strlen(where);
    for (const char *at = list;; at++) {
        const char *end = strchr(at, '|');
        size_t item_len = end != NULL ? (size_t) (end - at) : strlen(at);
        if (item_len == len && memcmp(at, where, len) == 0) {
            return true;
        }
        if (end == NULL) {
            return false;
        }
        at = end;
    }
}

static void put_before(struct journal_lab *lab, const struct story *story)
{
    if (story->before[0] != '\0') {
        journal_lab_put(lab, JOURNAL_LAB_KEY,
                        story->before[0] == 'n'   ? JOURNAL_NEW
                        : story->before[0] == 's' ? JOURNAL_SENT
                                                  : JOURNAL_DONE);
    }
}

static int story_step(struct journal *journal, char step, struct journal_entry **entry)
{
    struct journal_record record = journal_lab_record(JOURNAL_LAB_KEY), ended = journal_lab_ended(JOURNAL_LAB_KEY);
    const struct journal_record *read = NULL;
    enum journal_state state = JOURNAL_NEW;
    switch (step) {
    case 'c':
        return journal->create(journal, &record, entry);
    case 'o':
        return journal->open(journal, JOURNAL_LAB_KEY, entry, &read, &state);
    case 's':
        return journal->mark_sent(journal, *entry);
    default:
        return journal->mark_ended(journal, *entry, &ended, step == 'd');
    }
}

/* Looks with a new journal: one entry, whole, not locked, of those states. */
static void check_after(struct journal_lab *lab, const char *list, bool is_ended, const char *told)
{
    struct journal_entry *entry = NULL;
    const struct journal_record *record = NULL;
    enum journal_state state = JOURNAL_NEW;
    char before[32];
    journal_lab_reopen(lab, NULL);
    ck_assert_msg(journal_lab_count(lab, "tmp") == 0, "%s", told);
    (void) snprintf(before, sizeof(before), "%s", journal_lab_where(lab, JOURNAL_LAB_KEY));
    int result = lab->journal->open(lab->journal, JOURNAL_LAB_KEY, &entry, &record, &state);
    const char *after = journal_lab_where(lab, JOURNAL_LAB_KEY);
    ck_assert_msg(is_one_of(after, list), "%s: in '%s', before it was opened in '%s'", told, after, before);
    ck_assert_msg(result == (after[0] == '\0' ? NONBIS_ERROR_NOT_FOUND : NONBIS_OK), "%s: %s", told,
                  lab->journal->message(lab->journal));
    if (result == NONBIS_OK) {
        ck_assert_msg(!is_ended || record->ended_wall_ms != 0, "%s", told);
        journal_lab_check(record, JOURNAL_LAB_KEY, record->ended_wall_ms != 0);
        lab->journal->close(lab->journal, entry);
    }
}

/* ---- dying -------------------------------------------------------------------------------------------------------- */

static void live_until(const struct journal_lab *lab, const struct story *story, unsigned die_at, int steps_fd)
{
    char message[512];
    struct journal_entry *entry = NULL;
    spy_reset();
    spy.die_at = die_at;
    struct journal *journal = journal_directory_open_with(&spy_calls, lab->path, message, sizeof(message));
    for (const char *step = story->steps; journal != NULL && *step != '\0'; step++) {
        if (story_step(journal, *step, &entry) != NONBIS_OK || write(steps_fd, step, 1) != 1) {
            _exit(1);
        }
    }
    _exit(journal != NULL ? 0 : 1);
}

START_TEST(a_process_that_dies_anywhere_leaves_one_whole_entry)
{
    const struct story *story = &stories[_i];
    unsigned deaths = 0;
    for (bool died = true; died; deaths++) {
        struct journal_lab lab;
        int steps[2], status = 0;
        char returned[8] = "", told[64];
        journal_lab_parent(&lab);
        if (story->before[0] != '\0') {
            journal_lab_reopen(&lab, NULL);
            put_before(&lab, story);
        }
        ck_assert_int_eq(pipe(steps), 0);
        pid_t child = fork();
        if (child == 0) {
            live_until(&lab, story, deaths + 1, steps[1]);
        }
        ck_assert_int_eq(close(steps[1]), 0);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        size_t count = 0;
        for (ssize_t now; (now = read(steps[0], returned + count, sizeof(returned) - 1 - count)) > 0;) {
            count += (size_t) now;
        }
        ck_assert_int_eq(close(steps[0]), 0);
        ck_assert(WIFEXITED(status));
        died = WEXITSTATUS(status) == SPY_DIED;
        ck_assert_int_eq(WEXITSTATUS(status), died ? SPY_DIED : 0);
        (void) snprintf(told, sizeof(told), "%s, died at call %u after '%s'", story->name, deaths + 1, returned);
        bool is_ended = strpbrk(returned, "ud") != NULL;
        check_after(&lab, story->where[count], is_ended, told);
        journal_lab_close(&lab);
    }
    FIGURE("journal: %s: died at each of %u calls", story->name, deaths - 1);
    ck_assert_uint_gt(deaths, 20);
}
END_TEST

/* ---- failing ------------------------------------------------------------------------------------------------------ */

static const struct failure {
    int error;
    bool on; /* and all that follow */
    const char *text;
} failures[] = { { ENOSPC, false, "No space left on device" },
                 { EIO, false, "Input/output error" },
                 { EIO, true, "Input/output error" },
                 { EROFS, true, "Read-only file system" } };

/* The steps up to the first that fails; how many returned NONBIS_OK. */
static size_t live_with_failure(const struct journal_lab *lab, const struct story *story, unsigned fail_at,
                                const struct failure *failure, char message[512])
{
    struct journal_entry *entry = NULL;
    size_t count = 0;
    message[0] = '\0';
    spy_reset();
    spy.fail_at = fail_at;
    spy.fail_on = failure->on;
    spy.error = failure->error;
    struct journal *journal = journal_directory_open_with(&spy_calls, lab->path, message, 512);
    if (journal == NULL) {
        return 0;
    }
    while (story->steps[count] != '\0') {
        int result = story_step(journal, story->steps[count], &entry);
        if (result != NONBIS_OK) {
            ck_assert_int_eq(result, NONBIS_ERROR_JOURNAL);
            (void) snprintf(message, 512, "%s", journal->message(journal));
            break;
        }
        count++;
    }
    journal->close(journal, entry);
    journal->free(journal);
    return count;
}

START_TEST(a_call_that_fails_is_told_and_nothing_is_lost)
{
    const struct story *story = &stories[_i / 4];
    const struct failure *failure = &failures[_i % 4];
    size_t all = strlen(story->steps);
    unsigned told_count = 0, at = 0, calls = 0;
    do {
        struct journal_lab lab;
        char message[512], told[640], states[64];
        journal_lab_parent(&lab);
        if (story->before[0] != '\0') {
            journal_lab_reopen(&lab, NULL);
            put_before(&lab, story);
        }
        at++;
        size_t count = live_with_failure(&lab, story, at, failure, message);
        calls = spy.calls;
        (void) snprintf(told, sizeof(told), "%s, call %u fails, after %zu steps: %s", story->name, at, count, message);
        if (count < all) {
            ck_assert_msg(strstr(message, failure->text) != NULL && strstr(message, lab.parent) != NULL, "%s", told);
            told_count++;
        } else {
            ck_assert_msg(message[0] == '\0', "%s", told); /* it was one that does not matter */
        }
        (void) snprintf(states, sizeof(states), "%s", story->where[count]);
        if (count == 0 && story->steps[0] == 'c' && strstr(message, "could not be removed again") == NULL) {
            /* Nothing was sent and the caller knows: a resume must not find it. */
            (void) snprintf(states, sizeof(states), "%s", story->before);
        }
        check_after(&lab, states, false, told);
        journal_lab_close(&lab);
    } while (calls >= at);
    ck_assert_uint_gt(told_count, 20);
}
END_TEST

/* ---- lists under failures ----------------------------------------------------------------------------------------- */

static int count_readable(const struct nonbis_journal_entry *entry, void *arg)
{
    *(int *) arg += strcmp(entry->method, "unreadable") != 0 ? 1 : 0;
    return 0;
}

/* How many entries a walk gives. Each error must leave the walk able to go on. */
static int walk(struct journal *journal, int *errors)
{
    char after[NONBIS_JOURNAL_NAME] = "";
    int given = 0;
    for (int i = 0; i < 20; i++) {
        struct journal_entry *entry = NULL;
        const struct journal_record *record = NULL;
        enum journal_state state = JOURNAL_NEW;
        int result = journal->open_next(journal, after, &entry, &record, &state);
        if (result == NONBIS_END) {
            return given;
        }
        if (result == NONBIS_OK) {
            given++;
            journal->close(journal, entry);
        } else {
            ck_assert_int_eq(result, NONBIS_ERROR_JOURNAL);
            ck_assert_str_ne(journal->message(journal), "");
            (*errors)++;
        }
    }
    ck_abort_msg("the walk does not end");
}

START_TEST(a_list_or_a_walk_that_fails_says_so_and_loses_nothing)
{
    struct journal_lab lab;
    unsigned calls = 0, at = 0;
    journal_lab_open(&lab, NULL);
    journal_lab_put(&lab, "a", JOURNAL_NEW);
    journal_lab_put(&lab, "b", JOURNAL_SENT);
    journal_lab_put(&lab, "c", JOURNAL_DONE);
    journal_lab_reopen(&lab, &spy_calls);
    do {
        int readable = 0, errors = 0;
        spy_reset();
        spy.fail_at = ++at;
        spy.error = EIO;
        int told = lab.journal->each(lab.journal, count_readable, &readable);
        ck_assert_msg(told == NONBIS_ERROR_JOURNAL || (told == 3 && readable >= 2), "call %u: %d told", at, told);
        int given = walk(lab.journal, &errors);
        /* Nothing is left out in silence: what was not given was told. An error about the directory does not move on. */
        ck_assert_msg(given + errors >= 2 && errors <= 1, "call %u: %d given, %d errors", at, given, errors);
        calls = spy.calls;
    } while (calls >= at);
    ck_assert_uint_gt(at, 30);
    ck_assert_str_eq(journal_lab_where(&lab, "a"), "new");
    ck_assert_str_eq(journal_lab_where(&lab, "b"), "sent");
    ck_assert_str_eq(journal_lab_where(&lab, "c"), "done");
    journal_lab_close(&lab);
}
END_TEST

START_TEST(a_prune_that_fails_removes_nothing_else)
{
    for (unsigned at = 1, calls = 1; calls >= at; at++) {
        struct journal_lab lab;
        journal_lab_open(&lab, NULL);
        journal_lab_put(&lab, "a", JOURNAL_NEW);
        journal_lab_put(&lab, "b", JOURNAL_SENT);
        journal_lab_put(&lab, "c", JOURNAL_DONE);
        journal_lab_reopen(&lab, &spy_calls);
        spy_reset();
        spy.fail_at = at;
        spy.error = EIO;
        int removed = lab.journal->prune(lab.journal, 1732881700000, 1000, false);
        calls = spy.calls;
        /* 1 also when the time of `c` could only be had from its file; 0 when that is now. */
        ck_assert_msg(removed == NONBIS_ERROR_JOURNAL || removed == 1 || removed == 0, "call %u: %d", at, removed);
        ck_assert(removed == NONBIS_ERROR_JOURNAL || removed == (journal_lab_where(&lab, "c")[0] == '\0' ? 1 : 0));
        ck_assert_str_eq(journal_lab_where(&lab, "a"), "new");
        ck_assert_str_eq(journal_lab_where(&lab, "b"), "sent");
        journal_lab_close(&lab);
    }
}
END_TEST

SUITE(journal_crash)
{
    Suite *suite = suite_create("client/journal_crash");
    CASE_LOOP(suite, a_process_that_dies_anywhere_leaves_one_whole_entry, sizeof(stories) / sizeof(stories[0]));
    CASE_LOOP(suite, a_call_that_fails_is_told_and_nothing_is_lost, 4 * sizeof(stories) / sizeof(stories[0]));
    CASE(suite, a_list_or_a_walk_that_fails_says_so_and_loses_nothing);
    CASE(suite, a_prune_that_fails_removes_nothing_else);
    return suite;
}
