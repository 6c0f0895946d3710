/* Lists and walks: in which order, what is skipped, what is told of that which cannot be read. */
#include "tests/client/journal_lab.h"

#include <unistd.h>

/* ---- lists -------------------------------------------------------------------------------------------------------- */

/* "state key outcome locked; " for each. */
struct told {
    char text[4096];
    unsigned count, stop_at;
    struct nonbis_journal_entry last;
    char last_url[512], last_method[16];
};

static int tell(const struct nonbis_journal_entry *entry, void *arg)
{
    struct told *told = arg;
    size_t len = strlen(told->text);
    if (len < sizeof(told->text) - 400) {
        (void) snprintf(told->text + len, sizeof(told->text) - len, "%s %s %d%s; ", entry->state, entry->key,
                        (int) entry->outcome, entry->locked != 0 ? " locked" : "");
    }
    told->last = *entry;
    (void) snprintf(told->last_url, sizeof(told->last_url), "%s", entry->url);
    (void) snprintf(told->last_method, sizeof(told->last_method), "%s", entry->method);
    return ++told->count == told->stop_at ? 7 : 0;
}

START_TEST(a_list_tells_all_oldest_first)
{
    struct journal_lab lab;
    struct told told = { .count = 0 };
    struct journal_entry *entry = NULL;
    const struct journal_record *record = NULL;
    enum journal_state state = JOURNAL_NEW;
    journal_lab_open(&lab, NULL);
    ck_assert_int_eq(lab.journal->each(lab.journal, tell, &told), 0);
    journal_lab_put_at(&lab, "c", 2000, JOURNAL_NEW, 0);
    journal_lab_put_at(&lab, "B/", 3000, JOURNAL_DONE, 4000);
    journal_lab_put_at(&lab, "a", 1000, JOURNAL_SENT, 0);
    journal_lab_put_at(&lab, "d", 2500, JOURNAL_SENT, 9000);
    journal_lab_put_at(&lab, "e", 2500, JOURNAL_SENT, 0);
    ck_assert_int_eq(lab.journal->open(lab.journal, "c", &entry, &record, &state), NONBIS_OK);
    ck_assert_int_eq(lab.journal->each(lab.journal, tell, &told), 5);
    ck_assert_str_eq(told.text, "sent a 0; new c 0 locked; sent d 6; sent e 0; done B/ 1; ");
    ck_assert_str_eq(told.last_url, "http://127.0.0.1:8620/orders");
    ck_assert_str_eq(told.last_method, "POST");
    ck_assert_uint_eq(told.last.body_len, 10);
    ck_assert_int_eq(told.last.created_wall_ms, 3000);
    ck_assert_int_eq(told.last.changed_wall_ms, 4000);
    ck_assert_int_eq((int) told.last.stop, NONBIS_STOP_DONE);
    ck_assert_int_eq(told.last.http_status, 200);
    lab.journal->close(lab.journal, entry);
    told = (struct told){ .stop_at = 2 };
    ck_assert_int_eq(lab.journal->each(lab.journal, tell, &told), 2);
    ck_assert_str_eq(told.text, "sent a 0; new c 0; ");
    journal_lab_close(&lab);
}
END_TEST

static const char newer[] = "nonbis-journal 2\nwhat comes then\n";

/* Torn, of a newer version, of another key, no file at all, and what somebody else has laid there. */
static void put_damaged(struct journal_lab *lab)
{
    char path[512], target[512];
    struct stat status;
    journal_lab_put_at(lab, "moved", 1, JOURNAL_SENT, 0);
    (void) snprintf(path, sizeof(path), "%s/sent/moved", lab->path);
    (void) snprintf(target, sizeof(target), "%s/sent/renamed", lab->path);
    ck_assert_int_eq(rename(path, target), 0);
    journal_lab_put_at(lab, "T", 1, JOURNAL_SENT, 0);
    (void) snprintf(path, sizeof(path), "%s/sent/%%54", lab->path);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(truncate(path, status.st_size - 1), 0);
    journal_lab_write_file(lab, "new", "newer", newer, sizeof(newer) - 1);
    journal_lab_write_file(lab, "done", "empty", "", 0);
    journal_lab_write_file(lab, "new", "k.bak", "x", 1);
    journal_lab_write_file(lab, "new", ".nfs0001", "x", 1);
    (void) snprintf(path, sizeof(path), "%s/new/folder", lab->path);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    (void) snprintf(path, sizeof(path), "%s/sent/pipe", lab->path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    (void) snprintf(path, sizeof(path), "%s/sent/link", lab->path);
    ck_assert_int_eq(symlink("renamed", path), 0);
}

static int count_unreadable(const struct nonbis_journal_entry *entry, void *arg)
{
    char *text = arg;
    size_t len = strlen(text);
    ck_assert_int_eq(entry->fault != NULL, strcmp(entry->method, "unreadable") == 0);
    if (entry->fault != NULL) {
        ck_assert_msg(strstr(entry->fault, entry->url) != NULL, "%s is not told in: %s", entry->url, entry->fault);
        const char *place = strrchr(entry->url, '/') - 4;
        ck_assert_ptr_nonnull(strstr(entry->url, entry->state));
        (void) snprintf(text + len, 1024 - len, "%.4s %s; ", place, entry->key);
    }
    return 0;
}

static int text_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

/* "a; c; b; " sorted, since what cannot be read has its file's time. */
static void sort_items(char *text)
{
    char copy[1024], *items[32], *at = copy;
    size_t count = 0;
    (void) snprintf(copy, sizeof(copy), "%s", text);
    for (char *end; (end = strstr(at, "; ")) != NULL; at = end + 2) {
        *end = '\0';
        items[count++] = at;
    }
    qsort(items, count, sizeof(items[0]), text_compare);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(text);
        (void) snprintf(text + len, 1024 - len, "%s; ", items[i]);
    }
}

START_TEST(what_cannot_be_read_is_told_and_left_alone)
{
    struct journal_lab lab;
    char text[1024] = "";
    journal_lab_open(&lab, NULL);
    journal_lab_put_at(&lab, "good", 5, JOURNAL_SENT, 0);
    put_damaged(&lab);
    ck_assert_int_eq(lab.journal->each(lab.journal, count_unreadable, text), 9);
    sort_items(text);
    ck_assert_str_eq(text,
                     "/new folder; /new k.bak; /new newer; done empty; sent T; sent link; sent pipe; sent renamed; ");
    ck_assert_uint_eq(journal_lab_count(&lab, "new"), 3);
    ck_assert_uint_eq(journal_lab_count(&lab, "sent"), 5);
    ck_assert_uint_eq(journal_lab_count(&lab, "done"), 1);
    journal_lab_close(&lab);
}
END_TEST

static const struct damaged_row {
    const char *key, *why;
} damaged_rows[] = {
    { "T", "its check does not fit" },
    { "newer", "a newer version of this library wrote it" },
    { "renamed", "it is the entry of another key" },
    { "folder", "it is no regular file" },
    { "pipe", "it is no regular file" },
    { "link", "Too many levels of symbolic links" },
    { "empty", "it is no entry of a journal" },
};

START_TEST(what_cannot_be_read_is_not_opened)
{
    struct journal_lab lab;
    struct journal_entry *entry = NULL;
    const struct journal_record *record = NULL;
    enum journal_state state = JOURNAL_NEW;
    const struct damaged_row *row = &damaged_rows[_i];
    struct journal_record made = journal_lab_record(row->key);
    journal_lab_open(&lab, NULL);
    put_damaged(&lab);
    for (int again = 0; again < 2; again++) { /* and its lock is free again */
        ck_assert_int_eq(lab.journal->open(lab.journal, row->key, &entry, &record, &state), NONBIS_ERROR_JOURNAL);
        const char *message = lab.journal->message(lab.journal);
        ck_assert_msg(strstr(message, row->why) != NULL && strstr(message, lab.path) != NULL, "%s", message);
    }
    ck_assert_ptr_null(entry);
    /* Nor is it written over, unless it was decided. */
    int result = lab.journal->create(lab.journal, &made, &entry);
    ck_assert_int_eq(result, strcmp(row->key, "empty") == 0 ? NONBIS_OK : NONBIS_ERROR_EXISTS);
    lab.journal->close(lab.journal, entry);
    journal_lab_close(&lab);
}
END_TEST

/* ---- walks -------------------------------------------------------------------------------------------------------- */

static const char *walk_next(struct journal_lab *lab, char *after, char *text)
{
    struct journal_entry *entry = NULL;
    const struct journal_record *record = NULL;
    enum journal_state state = JOURNAL_NEW;
    int result = lab->journal->open_next(lab->journal, after, &entry, &record, &state);
    if (result == NONBIS_OK) {
        (void) snprintf(text, 300, "%s %s", state == JOURNAL_SENT ? "sent" : "new", record->key);
        lab->journal->close(lab->journal, entry);
    } else {
        (void) snprintf(text, 300, "%s", result == NONBIS_END ? "end" : result == NONBIS_ERROR_JOURNAL ? "error" : "?");
    }
    return text;
}

#define UUID(n) "019245f0-000" #n "-7000-8000-00000000000" #n

START_TEST(a_walk_gives_what_is_undecided_in_the_order_of_time)
{
    struct journal_lab lab;
    char after[NONBIS_JOURNAL_NAME] = "", text[300];
    struct journal_entry *held = NULL, *late = NULL;
    const struct journal_record *record = NULL;
    enum journal_state state = JOURNAL_NEW;
    journal_lab_open(&lab, NULL);
    ck_assert_str_eq(walk_next(&lab, after, text), "end");
    journal_lab_put_at(&lab, UUID(4), 9, JOURNAL_SENT, 0);
    journal_lab_put_at(&lab, UUID(2), 9, JOURNAL_NEW, 0);
    journal_lab_put_at(&lab, UUID(5), 9, JOURNAL_NEW, 0);
    journal_lab_put_at(&lab, UUID(1), 9, JOURNAL_SENT, 8);
    journal_lab_put_at(&lab, UUID(3), 9, JOURNAL_DONE, 9);
    journal_lab_put_at(&lab, UUID(6), 9, JOURNAL_SENT, 0);
    journal_lab_put_at(&lab, UUID(7), 9, JOURNAL_SENT, 0);
    ck_assert_int_eq(lab.journal->open(lab.journal, UUID(4), &held, &record, &state), NONBIS_OK);
    ck_assert_str_eq(walk_next(&lab, after, text), "sent " UUID(1));
    ck_assert_str_eq(walk_next(&lab, after, text), "new " UUID(2));
    /* While it walks: one moves on, one is decided by somebody else, one is new. */
    ck_assert_int_eq(lab.journal->open(lab.journal, UUID(5), &late, &record, &state), NONBIS_OK);
    ck_assert_int_eq(lab.journal->mark_sent(lab.journal, late), NONBIS_OK);
    lab.journal->close(lab.journal, late);
    ck_assert_int_eq(lab.journal->open(lab.journal, UUID(6), &late, &record, &state), NONBIS_OK);
    struct journal_record ended = journal_lab_ended(UUID(6));
    ck_assert_int_eq(lab.journal->mark_ended(lab.journal, late, &ended, true), NONBIS_OK);
    lab.journal->close(lab.journal, late);
    journal_lab_put_at(&lab, UUID(8), 9, JOURNAL_NEW, 0);
    ck_assert_str_eq(walk_next(&lab, after, text), "sent " UUID(5)); /* 3 is decided, 4 is held */
    ck_assert_str_eq(walk_next(&lab, after, text), "sent " UUID(7));
    ck_assert_str_eq(walk_next(&lab, after, text), "new " UUID(8));
    ck_assert_str_eq(walk_next(&lab, after, text), "end");
    ck_assert_str_eq(walk_next(&lab, after, text), "end");
    journal_lab_put_at(&lab, UUID(9), 9, JOURNAL_NEW, 0);
    ck_assert_str_eq(walk_next(&lab, after, text), "new " UUID(9));
    lab.journal->close(lab.journal, held);
    after[0] = '\0';
    ck_assert_str_eq(walk_next(&lab, after, text), "sent " UUID(1));
    journal_lab_close(&lab);
}
END_TEST

START_TEST(two_walks_do_not_disturb_each_other)
{
    struct journal_lab lab;
    char first[NONBIS_JOURNAL_NAME] = "", second[NONBIS_JOURNAL_NAME] = "", text[300];
    journal_lab_open(&lab, NULL);
    journal_lab_put_at(&lab, "a", 1, JOURNAL_NEW, 0);
    journal_lab_put_at(&lab, "b", 1, JOURNAL_NEW, 0);
    journal_lab_put_at(&lab, "c", 1, JOURNAL_NEW, 0);
    ck_assert_str_eq(walk_next(&lab, first, text), "new a");
    ck_assert_str_eq(walk_next(&lab, second, text), "new a");
    ck_assert_str_eq(walk_next(&lab, first, text), "new b");
    ck_assert_str_eq(walk_next(&lab, first, text), "new c");
    ck_assert_str_eq(walk_next(&lab, second, text), "new b");
    ck_assert_str_eq(walk_next(&lab, first, text), "end");
    ck_assert_str_eq(walk_next(&lab, second, text), "new c");
    ck_assert_str_eq(walk_next(&lab, second, text), "end");
    journal_lab_close(&lab);
}
END_TEST

START_TEST(a_walk_tells_of_each_entry_that_it_cannot_read_behind_all_others)
{
    struct journal_lab lab;
    char after[NONBIS_JOURNAL_NAME] = "", text[300];
    char long_name[201] = "";
    int errors = 0, given = 0;
    journal_lab_open(&lab, NULL);
    put_damaged(&lab);
    memset(long_name, 'l', sizeof(long_name) - 1); /* longer than any of ours */
    journal_lab_write_file(&lab, "sent", long_name, "x", 1);
    journal_lab_put_at(&lab, "aaa", 5, JOURNAL_SENT, 0);
    journal_lab_put_at(&lab, "zzz", 5, JOURNAL_SENT, 0);
    while (strcmp(walk_next(&lab, after, text), "end") != 0) {
        errors += strcmp(text, "error") == 0 ? 1 : 0;
        given += strncmp(text, "sent ", 5) == 0 ? 1 : 0;
        ck_assert(errors == 0 || given == 2); /* who stops at the first error has missed nothing */
        ck_assert_int_lt(errors + given, 20);
    }
    ck_assert_int_eq(errors, 8); /* three in new, five in sent */
    ck_assert_int_eq(given, 2);
    journal_lab_close(&lab);
}
END_TEST

/* ---- in the midst of others --------------------------------------------------------------------------------------- */

/* Another client, and what it does to the entry of key k. */
struct meddler {
    struct journal *journal;
    enum journal_state to;
    int result;
};

static void meddle(void *arg)
{
    struct meddler *meddler = arg;
    struct journal *journal = meddler->journal;
    struct journal_entry *entry = NULL;
    const struct journal_record *record = NULL;
    enum journal_state state = JOURNAL_NEW;
    struct journal_record made = journal_lab_record("k"), ended = journal_lab_ended("k");
    meddler->result = meddler->to == JOURNAL_NEW ? journal->create(journal, &made, &entry)
                                                 : journal->open(journal, "k", &entry, &record, &state);
    if (meddler->result == NONBIS_OK && meddler->to != JOURNAL_NEW) {
        meddler->result = meddler->to == JOURNAL_SENT ? journal->mark_sent(journal, entry)
                                                      : journal->mark_ended(journal, entry, &ended, true);
    }
    journal->close(journal, entry);
}

static const struct meddling_row {
    enum journal_state from, to;
    const char *before, *after;
} meddling_rows[] = {
    { JOURNAL_NEW, JOURNAL_SENT, "new", "sent" },
    { JOURNAL_NEW, JOURNAL_DONE, "new", "done" },
    { JOURNAL_SENT, JOURNAL_DONE, "sent", "done" },
    { JOURNAL_DONE, JOURNAL_NEW, "done", "new" },
};

/* Whenever it happens, at every call of the list, of the walk, of the prune. */
START_TEST(an_entry_that_moves_meanwhile_is_neither_missed_nor_told_twice)
{
    const struct meddling_row *row = &meddling_rows[_i];
    unsigned calls = 1;
    for (unsigned at = 1; calls >= at; at++) {
        struct journal_lab lab, other;
        struct told told = { .count = 0 };
        char after[NONBIS_JOURNAL_NAME] = "", text[300];
        journal_lab_open(&lab, &spy_calls);
        journal_lab_put(&lab, "k", row->from);
        other = lab;
        other.journal = NULL;
        journal_lab_reopen(&other, NULL);
        struct meddler meddler = { other.journal, row->to, NONBIS_END };
        spy_reset();
        spy.meddle_at = at;
        spy.meddle = meddle;
        spy.meddle_arg = &meddler;
        ck_assert_int_eq(lab.journal->each(lab.journal, tell, &told), 1);
        ck_assert(strcmp(told.last.state, row->before) == 0 || strcmp(told.last.state, row->after) == 0);
        unsigned listed = spy.calls;
        (void) walk_next(&lab, after, text);
        bool has_moved = spy.calls < at || meddler.result == NONBIS_OK;
        if (at <= listed && row->to != JOURNAL_DONE) {
            ck_assert(has_moved);
            ck_assert_str_eq(text, row->to == JOURNAL_NEW ? "new k" : "sent k");
        }
        int removed = lab.journal->prune(lab.journal, 1732881600457, 0, false);
        if (row->to == JOURNAL_NEW && meddler.result == NONBIS_OK) {
            ck_assert_str_eq(journal_lab_where(&lab, "k"), "new"); /* made anew: not what was to be pruned */
        } else if (meddler.result == NONBIS_OK) {
            ck_assert_str_eq(journal_lab_where(&lab, "k"), removed == 1 ? "" : row->after);
        }
        calls = spy.calls;
        other.journal->free(other.journal);
        journal_lab_close(&lab);
    }
    ck_assert_uint_gt(calls, 40);
}
END_TEST

/* ---- one name in two places --------------------------------------------------------------------------------------- */

static const struct twice_row {
    enum journal_state first, second;
    const char *counts; /* "sent", or "end": decided */
} twice_rows[] = {
    { JOURNAL_NEW, JOURNAL_SENT, "sent" },
    { JOURNAL_NEW, JOURNAL_DONE, "done" },
    { JOURNAL_SENT, JOURNAL_DONE, "done" },
};

START_TEST(of_a_name_in_two_places_the_furthest_counts_and_the_other_goes)
{
    static const char *const places[] = { "new", "sent", "done" };
    const struct twice_row *row = &twice_rows[_i];
    for (int way = 0; way < 4; way++) {
        struct journal_lab lab;
        struct told told = { .count = 0 };
        struct journal_entry *entry = NULL;
        const struct journal_record *record = NULL;
        enum journal_state state = JOURNAL_NEW;
        char from[512], to[512], after[NONBIS_JOURNAL_NAME] = "", text[300];
        journal_lab_open(&lab, NULL);
        journal_lab_put_at(&lab, "k", 1000, row->second, row->second == JOURNAL_DONE ? 2000 : 0);
        (void) snprintf(from, sizeof(from), "%s/%s/k", lab.path, places[row->second]);
        (void) snprintf(to, sizeof(to), "%s/%s/k", lab.path, places[row->first]);
        ck_assert_int_eq(link(from, to), 0);
        ck_assert_int_eq(lab.journal->each(lab.journal, tell, &told), 1);
        ck_assert_str_eq(told.last.state, row->counts);
        struct journal_record made = journal_lab_record("k");
        bool decided = row->second == JOURNAL_DONE;
        switch (way) {
        case 0:
            ck_assert_int_eq(lab.journal->open(lab.journal, "k", &entry, &record, &state), NONBIS_OK);
            ck_assert_int_eq((int) state, (int) row->second);
            lab.journal->close(lab.journal, entry);
            break;
        case 1:
            ck_assert_str_eq(walk_next(&lab, after, text), decided ? "end" : "sent k");
            break;
        case 2:
            ck_assert_int_eq(lab.journal->prune(lab.journal, 100000, 1, true), 1);
            break;
        default:
            ck_assert_int_eq(lab.journal->create(lab.journal, &made, &entry), NONBIS_ERROR_EXISTS);
            lab.journal->close(lab.journal, entry);
            break;
        }
        ck_assert_str_eq(journal_lab_where(&lab, "k"), way == 2 ? "" : row->counts);
        journal_lab_close(&lab);
    }
}
END_TEST

/* ---- many --------------------------------------------------------------------------------------------------------- */

static int count_only(const struct nonbis_journal_entry *entry, void *arg)
{
    *(unsigned *) arg += entry->method[0] != 'u' ? 1 : 0;
    return 0;
}

START_TEST(thousands_of_entries_are_listed_walked_and_pruned)
{
    enum { MANY = 5000 };
    struct journal_lab lab;
    char after[NONBIS_JOURNAL_NAME] = "", text[300], before[NONBIS_JOURNAL_NAME] = "";
    unsigned told = 0, walked = 0;
    journal_lab_open(&lab, NULL);
    int64_t start_ms = suite_now_ms();
    for (unsigned i = 0; i < MANY; i++) {
        char key[64];
        (void) snprintf(key, sizeof(key), "019245f0-%04x-7000-8000-000000000001", i * 40503U % 65536U);
        journal_lab_put_at(&lab, key, 1000 + i, i % 2 == 0 ? JOURNAL_SENT : JOURNAL_DONE, i % 2 == 0 ? 0 : 2000);
    }
    int64_t put_ms = suite_now_ms();
    ck_assert_int_eq(lab.journal->each(lab.journal, count_only, &told), MANY);
    ck_assert_uint_eq(told, MANY);
    int64_t told_ms = suite_now_ms();
    while (strcmp(walk_next(&lab, after, text), "end") != 0) {
        ck_assert_int_lt(strcmp(before, after), 0);
        (void) snprintf(before, sizeof(before), "%s", after);
        walked++;
    }
    ck_assert_uint_eq(walked, MANY / 2);
    int64_t walked_ms = suite_now_ms();
    ck_assert_int_eq(lab.journal->prune(lab.journal, 1000000, 0, false), MANY / 2);
    ck_assert_int_eq(lab.journal->prune(lab.journal, 1000000, 0, true), MANY / 2);
    FIGURE("journal: %d entries put in %lld ms, listed in %lld, %u walked in %lld, pruned in %lld", MANY,
           (long long) (put_ms - start_ms), (long long) (told_ms - put_ms), walked, (long long) (walked_ms - told_ms),
           (long long) (suite_now_ms() - walked_ms));
    journal_lab_close(&lab);
}
END_TEST

SUITE(journal_list)
{
    Suite *suite = suite_create("client/journal_list");
    CASE(suite, a_list_tells_all_oldest_first);
    CASE(suite, what_cannot_be_read_is_told_and_left_alone);
    CASE_LOOP(suite, what_cannot_be_read_is_not_opened, sizeof(damaged_rows) / sizeof(damaged_rows[0]));
    CASE(suite, a_walk_gives_what_is_undecided_in_the_order_of_time);
    CASE(suite, two_walks_do_not_disturb_each_other);
    CASE(suite, a_walk_tells_of_each_entry_that_it_cannot_read_behind_all_others);
    CASE_LOOP(suite, an_entry_that_moves_meanwhile_is_neither_missed_nor_told_twice,
              sizeof(meddling_rows) / sizeof(meddling_rows[0]));
    CASE_LOOP(suite, of_a_name_in_two_places_the_furthest_counts_and_the_other_goes,
              sizeof(twice_rows) / sizeof(twice_rows[0]));
    CASE(suite, thousands_of_entries_are_listed_walked_and_pruned);
    return suite;
}
