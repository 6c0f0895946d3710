/* Clearing up: what a prune removes, what it leaves, and what crashes have left half written. */
#include "tests/client/journal_lab.h"

#include <time.h>
#include <unistd.h>

static const char newer[] = "nonbis-journal 2\nwhat comes then\n";

/* "state key outcome; " for each. */
struct told {
    char text[1024];
};

static int tell(const struct nonbis_journal_entry *entry, void *arg)
{
    struct told *told = arg;
    size_t len = strlen(told->text);
    (void) snprintf(told->text + len, sizeof(told->text) - len, "%s %s %d; ", entry->state, entry->key,
                    (int) entry->outcome);
    return 0;
}

static const struct prune_row {
    int64_t wall_ms, older_than_ms;
    bool undecided;
    int removed;
    const char *left;
} prune_rows[] = {
    { 10000, 5000, false, 1, "new a 0; sent b 0; sent d 6; done f 1; done g 1; " },
    { 10000, 5001, false, 0, "new a 0; sent b 0; sent d 6; done e 1; done f 1; done g 1; " },
    { 10000, 0, false, 2, "new a 0; sent b 0; sent d 6; done g 1; " },
    { 10001, 0, false, 3, "new a 0; sent b 0; sent d 6; " },
    { 10000, 100000, true, 0, "new a 0; sent b 0; sent d 6; done e 1; done f 1; done g 1; " },
    { 10000, 8500, true, 1, "sent b 0; sent d 6; done e 1; done f 1; done g 1; " },
    { 10000, 5000, true, 3, "sent d 6; done f 1; done g 1; " },
    { 20000, 0, true, 6, "" },
    { 0, 0, true, 0, "new a 0; sent b 0; sent d 6; done e 1; done f 1; done g 1; " },
};

START_TEST(a_prune_removes_what_its_row_says)
{
    struct journal_lab lab;
    struct told told = { .text = "" };
    const struct prune_row *row = &prune_rows[_i];
    journal_lab_open(&lab, NULL);
    journal_lab_put_at(&lab, "a", 1000, JOURNAL_NEW, 0);
    journal_lab_put_at(&lab, "b", 2000, JOURNAL_SENT, 0);
    journal_lab_put_at(&lab, "d", 2500, JOURNAL_SENT, 9000);
    journal_lab_put_at(&lab, "e", 3000, JOURNAL_DONE, 4999);
    journal_lab_put_at(&lab, "f", 4000, JOURNAL_DONE, 9500);
    journal_lab_put_at(&lab, "g", 4500, JOURNAL_DONE, 10000);
    ck_assert_int_eq(lab.journal->prune(lab.journal, row->wall_ms, row->older_than_ms, row->undecided), row->removed);
    (void) lab.journal->each(lab.journal, tell, &told);
    ck_assert_str_eq(told.text, row->left);
    journal_lab_close(&lab);
}
END_TEST

START_TEST(a_prune_leaves_what_somebody_works_on)
{
    struct journal_lab lab;
    struct journal_entry *entry = NULL;
    const struct journal_record *record = NULL;
    enum journal_state state = JOURNAL_NEW;
    journal_lab_open(&lab, NULL);
    journal_lab_put_at(&lab, "a", 1000, JOURNAL_DONE, 2000);
    journal_lab_put_at(&lab, "b", 1000, JOURNAL_DONE, 2000);
    ck_assert_int_eq(lab.journal->open(lab.journal, "a", &entry, &record, &state), NONBIS_OK);
    ck_assert_int_eq(lab.journal->prune(lab.journal, 100000, 0, true), 1);
    ck_assert_str_eq(journal_lab_where(&lab, "a"), "done");
    lab.journal->close(lab.journal, entry);
    ck_assert_int_eq(lab.journal->prune(lab.journal, 100000, 0, true), 1);
    journal_lab_close(&lab);
}
END_TEST

START_TEST(a_prune_goes_by_the_file_where_an_entry_cannot_be_read)
{
    struct journal_lab lab;
    struct timespec now;
    char path[512];
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t wall_ms = (int64_t) now.tv_sec * 1000;
    const struct timespec old[2] = { { now.tv_sec - 100, 0 }, { now.tv_sec - 100, 0 } };
    journal_lab_open(&lab, NULL);
    journal_lab_write_file(&lab, "done", "old", newer, sizeof(newer) - 1);
    journal_lab_write_file(&lab, "done", "young", "", 0);
    journal_lab_write_file(&lab, "sent", "old-sent", newer, sizeof(newer) - 1);
    (void) snprintf(path, sizeof(path), "%s/done/old", lab.path);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
    (void) snprintf(path, sizeof(path), "%s/sent/old-sent", lab.path);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
    ck_assert_int_eq(lab.journal->prune(lab.journal, wall_ms, 50000, false), 1);
    ck_assert(!journal_lab_has_file(&lab, "done", "old"));
    ck_assert(journal_lab_has_file(&lab, "done", "young"));
    ck_assert(journal_lab_has_file(&lab, "sent", "old-sent"));
    ck_assert_int_eq(lab.journal->prune(lab.journal, wall_ms, 50000, true), 1);
    ck_assert(!journal_lab_has_file(&lab, "sent", "old-sent"));
    /* What is no file has no time, and stays in nobody's way. */
    (void) snprintf(path, sizeof(path), "%s/done/a-folder", lab.path);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(lab.journal->prune(lab.journal, wall_ms + 1000000, 0, true), 1);
    ck_assert(journal_lab_has_file(&lab, "done", "a-folder") && !journal_lab_has_file(&lab, "done", "young"));
    journal_lab_close(&lab);
}
END_TEST

START_TEST(what_a_crash_left_half_written_is_removed_unless_it_is_in_use)
{
    struct journal_lab lab, other;
    struct journal_entry *entry = NULL;
    struct journal_record record = journal_lab_record("busy");
    journal_lab_open(&lab, NULL);
    ck_assert_int_eq(lab.journal->create(lab.journal, &record, &entry), NONBIS_OK);
    journal_lab_write_file(&lab, "tmp", "busy", "nonbis-", 7);
    journal_lab_write_file(&lab, "tmp", "idle", "nonbis-", 7);
    ck_assert_int_eq(lab.journal->prune(lab.journal, 1, 0, false), 0);
    ck_assert(journal_lab_has_file(&lab, "tmp", "busy") && !journal_lab_has_file(&lab, "tmp", "idle"));
    journal_lab_write_file(&lab, "tmp", "idle", "nonbis-", 7);
    other = lab;
    other.journal = NULL;
    journal_lab_reopen(&other, NULL);
    ck_assert(journal_lab_has_file(&lab, "tmp", "busy") && !journal_lab_has_file(&lab, "tmp", "idle"));
    other.journal->free(other.journal);
    /* Who holds the name writes over it. */
    struct journal_record ended = journal_lab_ended("busy");
    ck_assert_int_eq(lab.journal->mark_ended(lab.journal, entry, &ended, true), NONBIS_OK);
    ck_assert_uint_eq(journal_lab_count(&lab, "tmp"), 0);
    lab.journal->close(lab.journal, entry);
    journal_lab_close(&lab);
}
END_TEST

SUITE(journal_prune)
{
    Suite *suite = suite_create("client/journal_prune");
    CASE_LOOP(suite, a_prune_removes_what_its_row_says, sizeof(prune_rows) / sizeof(prune_rows[0]));
    CASE(suite, a_prune_leaves_what_somebody_works_on);
    CASE(suite, a_prune_goes_by_the_file_where_an_entry_cannot_be_read);
    CASE(suite, what_a_crash_left_half_written_is_removed_unless_it_is_in_use);
    return suite;
}
