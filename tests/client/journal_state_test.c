/* The states of an entry: what each call does from each of them, who may have it, and what exactly reaches the disk, in which
 * order. */
#include "tests/client/journal_lab.h"

#include <errno.h>
#include <unistd.h>

static struct journal_lab lab;
static struct journal_entry *entry;
static const struct journal_record *record;
static enum journal_state state;

static void open_lab(void)
{
    journal_lab_open(&lab, NULL);
    entry = NULL;
    record = NULL;
}

static int create(const char *key)
{
    struct journal_record made = journal_lab_record(key);
    return lab.journal->create(lab.journal, &made, &entry);
}

static int open_key(const char *key)
{
    return lab.journal->open(lab.journal, key, &entry, &record, &state);
}

static void close_entry(void)
{
    lab.journal->close(lab.journal, entry);
    entry = NULL;
}

/* ---- states ------------------------------------------------------------------------------------------------------- */

START_TEST(an_entry_goes_from_new_to_sent_to_done)
{
    struct journal_record ended = journal_lab_ended("k");
    open_lab();
    ck_assert_int_eq(create("k"), NONBIS_OK);
    ck_assert_str_eq(journal_lab_where(&lab, "k"), "new");
    ck_assert_int_eq(lab.journal->mark_sent(lab.journal, entry), NONBIS_OK);
    ck_assert_str_eq(journal_lab_where(&lab, "k"), "sent");
    ck_assert_int_eq(lab.journal->mark_sent(lab.journal, entry), NONBIS_OK);
    ck_assert_str_eq(journal_lab_where(&lab, "k"), "sent");
    ck_assert_int_eq(lab.journal->mark_ended(lab.journal, entry, &ended, true), NONBIS_OK);
    ck_assert_str_eq(journal_lab_where(&lab, "k"), "done");
    close_entry();
    ck_assert_uint_eq(journal_lab_count(&lab, "tmp"), 0);
    ck_assert_int_eq(open_key("k"), NONBIS_OK);
    ck_assert_int_eq((int) state, JOURNAL_DONE);
    journal_lab_check(record, "k", true);
    close_entry();
    journal_lab_close(&lab);
}
END_TEST

static const struct move_row {
    enum journal_state from;
    char call; /* s: mark_sent, e: mark_ended, d: mark_ended as decided */
    const char *where;
} move_rows[] = {
    { JOURNAL_NEW, 's', "sent" },  { JOURNAL_NEW, 'e', "new" },   { JOURNAL_NEW, 'd', "done" },
    { JOURNAL_SENT, 's', "sent" }, { JOURNAL_SENT, 'e', "sent" }, { JOURNAL_SENT, 'd', "done" },
    { JOURNAL_DONE, 's', "sent" }, { JOURNAL_DONE, 'e', "done" }, { JOURNAL_DONE, 'd', "done" },
};

START_TEST(a_call_moves_an_opened_entry_as_its_row_says)
{
    const struct move_row *row = &move_rows[_i];
    struct journal_record ended = journal_lab_ended("k");
    open_lab();
    journal_lab_put(&lab, "k", row->from);
    ck_assert_int_eq(open_key("k"), NONBIS_OK);
    ck_assert_int_eq((int) state, (int) row->from);
    journal_lab_check(record, "k", row->from == JOURNAL_DONE);
    int result = row->call == 's' ? lab.journal->mark_sent(lab.journal, entry)
                                  : lab.journal->mark_ended(lab.journal, entry, &ended, row->call == 'd');
    ck_assert_int_eq(result, NONBIS_OK);
    ck_assert_str_eq(journal_lab_where(&lab, "k"), row->where);
    close_entry();
    ck_assert_int_eq(open_key("k"), NONBIS_OK);
    journal_lab_check(record, "k", row->call != 's' || row->from == JOURNAL_DONE);
    close_entry();
    journal_lab_close(&lab);
}
END_TEST

START_TEST(a_key_that_is_undecided_is_not_made_again)
{
    open_lab();
    journal_lab_put(&lab, "a", JOURNAL_NEW);
    journal_lab_put(&lab, "b", JOURNAL_SENT);
    ck_assert_int_eq(create("a"), NONBIS_ERROR_EXISTS);
    ck_assert_ptr_nonnull(strstr(lab.journal->message(lab.journal), "the journal has the key a already"));
    ck_assert_int_eq(create("b"), NONBIS_ERROR_EXISTS);
    ck_assert_ptr_null(entry);
    ck_assert_str_eq(journal_lab_where(&lab, "a"), "new");
    ck_assert_str_eq(journal_lab_where(&lab, "b"), "sent");
    ck_assert_int_eq(open_key("a"), NONBIS_OK); /* and it was not left locked */
    close_entry();
    journal_lab_close(&lab);
}
END_TEST

/* Nothing but a completed one proves that its command was executed. */
START_TEST(a_decided_entry_is_replaced_unless_it_was_completed)
{
    static const enum nonbis_outcome outcomes[] = { NONBIS_COMPLETED, NONBIS_REJECTED, NONBIS_NOT_SENT,
                                                    NONBIS_NOT_APPLIED };
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
        bool completed = outcomes[i] == NONBIS_COMPLETED;
        struct journal_record ended = journal_lab_ended("k");
        ended.outcome = outcomes[i];
        open_lab();
        ck_assert_int_eq(create("k"), NONBIS_OK);
        ck_assert_int_eq(lab.journal->mark_ended(lab.journal, entry, &ended, true), NONBIS_OK);
        close_entry();
        ck_assert_int_eq(create("k"), completed ? NONBIS_ERROR_EXISTS : NONBIS_OK);
        ck_assert(!completed || strstr(lab.journal->message(lab.journal), "/done, as completed: open that") != NULL);
        ck_assert_str_eq(journal_lab_where(&lab, "k"), completed ? "done" : "new");
        ck_assert_uint_eq(journal_lab_count(&lab, "tmp"), 0);
        close_entry();
        ck_assert_int_eq(open_key("k"), NONBIS_OK); /* and it was not left locked */
        ck_assert_int_eq((int) record->outcome, completed ? 1 : 0);
        close_entry();
        journal_lab_close(&lab);
    }
}
END_TEST

START_TEST(a_decided_entry_is_replaced)
{
    open_lab();
    journal_lab_put(&lab, "k", JOURNAL_DONE);
    ck_assert_int_eq(create("k"), NONBIS_OK);
    close_entry();
    ck_assert_str_eq(journal_lab_where(&lab, "k"), "new");
    ck_assert_uint_eq(journal_lab_count(&lab, "tmp"), 0);
    ck_assert_int_eq(open_key("k"), NONBIS_OK);
    ck_assert_int_eq((int) state, JOURNAL_NEW);
    journal_lab_check(record, "k", false);
    close_entry();
    journal_lab_close(&lab);
}
END_TEST

START_TEST(an_entry_has_one_holder_at_a_time)
{
    struct journal_lab other;
    struct journal_entry *second = NULL;
    struct journal_record made = journal_lab_record("k");
    open_lab();
    other = lab;
    other.journal = NULL;
    journal_lab_reopen(&other, NULL); /* another client of this process */
    ck_assert_int_eq(create("k"), NONBIS_OK);
    ck_assert_int_eq(open_key("k"), NONBIS_ERROR_LOCKED);
    ck_assert_ptr_nonnull(strstr(lab.journal->message(lab.journal), "works on the journal's entry k"));
    ck_assert_int_eq(other.journal->open(other.journal, "k", &second, &record, &state), NONBIS_ERROR_LOCKED);
    ck_assert_int_eq(other.journal->create(other.journal, &made, &second), NONBIS_ERROR_LOCKED);
    /* Closing another client's descriptors drops no lock. */
    other.journal->free(other.journal);
    other.journal = NULL;
    journal_lab_reopen(&other, NULL);
    ck_assert_int_eq(other.journal->open(other.journal, "k", &second, &record, &state), NONBIS_ERROR_LOCKED);
    close_entry();
    ck_assert_int_eq(other.journal->open(other.journal, "k", &second, &record, &state), NONBIS_OK);
    other.journal->close(other.journal, second);
    other.journal->free(other.journal);
    journal_lab_close(&lab);
}
END_TEST

START_TEST(the_lock_stays_when_the_file_is_replaced_and_moved)
{
    struct journal_record ended = journal_lab_ended("k");
    struct journal_entry *first = NULL;
    open_lab();
    ck_assert_int_eq(create("k"), NONBIS_OK);
    first = entry;
    for (int i = 0; i < 4; i++) {
        if (i == 1) {
            ck_assert_int_eq(lab.journal->mark_sent(lab.journal, first), NONBIS_OK);
        } else if (i > 1) {
            ck_assert_int_eq(lab.journal->mark_ended(lab.journal, first, &ended, i == 3), NONBIS_OK);
        }
        ck_assert_int_eq(open_key("k"), NONBIS_ERROR_LOCKED);
        ck_assert_int_eq(create("k"), NONBIS_ERROR_LOCKED);
    }
    lab.journal->close(lab.journal, first);
    ck_assert_int_eq(open_key("k"), NONBIS_OK);
    close_entry();
    journal_lab_close(&lab);
}
END_TEST

START_TEST(what_is_not_there_is_not_found)
{
    open_lab();
    ck_assert_int_eq(open_key("k"), NONBIS_ERROR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(lab.journal->message(lab.journal), "has no entry k"));
    ck_assert_int_eq(open_key(""), NONBIS_ERROR_KEY);
    ck_assert_int_eq(open_key("a b"), NONBIS_ERROR_KEY);
    ck_assert_int_eq(create("a b"), NONBIS_ERROR_KEY);
    journal_lab_close(&lab);
}
END_TEST

START_TEST(keys_of_every_kind_are_kept_apart)
{
    static char longest[256], similar[256];
    const char *keys[] = { "k", "K", "../k", ".", "..", "k/", "%4b", "~", "sent/k", "\"k", longest, similar };
    const size_t count = sizeof(keys) / sizeof(keys[0]);
    memset(longest, 'L', 255);
    memset(similar, 'L', 254);
    similar[254] = 'l';
    open_lab();
    for (size_t i = 0; i < count; i++) {
        journal_lab_put(&lab, keys[i], JOURNAL_SENT);
    }
    ck_assert_uint_eq(journal_lab_count(&lab, "sent"), count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(open_key(keys[i]) == NONBIS_OK, "%s", keys[i]);
        journal_lab_check(record, keys[i], false);
        close_entry();
    }
    journal_lab_close(&lab);
}
END_TEST

START_TEST(a_run_can_only_end_its_own_entry)
{
    struct journal_record ended = journal_lab_ended("other");
    open_lab();
    ck_assert_int_eq(create("k"), NONBIS_OK);
    ck_assert_int_eq(lab.journal->mark_ended(lab.journal, entry, &ended, true), NONBIS_ERROR_KEY);
    ck_assert_str_eq(journal_lab_where(&lab, "k"), "new");
    ck_assert_str_eq(journal_lab_where(&lab, "other"), "");
    close_entry();
    journal_lab_close(&lab);
}
END_TEST

START_TEST(a_large_body_is_kept_whole)
{
    enum { LEN = 3 * 1024 * 1024 + 1 };
    char *body = malloc(LEN);
    ck_assert_ptr_nonnull(body);
    for (size_t i = 0; i < LEN; i++) {
        body[i] = (char) (i * 7 + i / 251);
    }
    open_lab();
    struct journal_record made = journal_lab_record("k");
    made.body = body;
    made.body_len = LEN;
    ck_assert_int_eq(lab.journal->create(lab.journal, &made, &entry), NONBIS_OK);
    close_entry();
    ck_assert_int_eq(open_key("k"), NONBIS_OK);
    ck_assert_uint_eq(record->body_len, LEN);
    ck_assert_int_eq(memcmp(record->body, body, LEN), 0);
    close_entry();
    free(body);
    journal_lab_close(&lab);
}
END_TEST

/* ---- the order of what reaches the disk --------------------------------------------------------------------------- */

#define WRITTEN "create tmp/K; write tmp/K; fsync tmp/K; "

static void expect_log(const char *log)
{
    ck_assert_str_eq(spy.log, log);
    spy_reset();
}

START_TEST(each_step_is_durable_before_it_returns)
{
    struct journal_record ended = journal_lab_ended("k");
    ended.outcome = NONBIS_NOT_SENT;
    journal_lab_open(&lab, &spy_calls);
    spy_reset();
    ck_assert_int_eq(create("k"), NONBIS_OK);
    expect_log(WRITTEN "rename tmp new; fsync new; ");
    ck_assert_int_eq(lab.journal->mark_sent(lab.journal, entry), NONBIS_OK);
    expect_log("rename new sent; fsync sent; fsync new; ");
    ck_assert_int_eq(lab.journal->mark_sent(lab.journal, entry), NONBIS_OK);
    expect_log("");
    ck_assert_int_eq(lab.journal->mark_ended(lab.journal, entry, &ended, false), NONBIS_OK);
    expect_log(WRITTEN "rename tmp sent; fsync sent; ");
    ck_assert_int_eq(lab.journal->mark_ended(lab.journal, entry, &ended, true), NONBIS_OK);
    expect_log(WRITTEN "rename tmp sent; rename sent done; fsync done; fsync sent; ");
    close_entry();
    expect_log("");
    ck_assert_int_eq(create("k"), NONBIS_OK);
    expect_log(WRITTEN "rename tmp new; fsync new; rename done tmp; fsync done; unlink tmp; ");
    close_entry();
    journal_lab_close(&lab);
}
END_TEST

START_TEST(an_entry_found_in_sent_is_made_durable_there_before_it_is_sent_again)
{
    journal_lab_open(&lab, &spy_calls);
    journal_lab_put(&lab, "k", JOURNAL_SENT);
    ck_assert_int_eq(open_key("k"), NONBIS_OK);
    spy_reset();
    ck_assert_int_eq(lab.journal->mark_sent(lab.journal, entry), NONBIS_OK);
    expect_log("fsync sent; fsync new; fsync done; ");
    ck_assert_int_eq(lab.journal->mark_sent(lab.journal, entry), NONBIS_OK);
    expect_log("");
    close_entry();
    journal_lab_close(&lab);
}
END_TEST

START_TEST(what_a_crash_left_in_a_second_place_goes_durably)
{
    char from[128], to[128];
    journal_lab_open(&lab, &spy_calls);
    journal_lab_put(&lab, "k", JOURNAL_DONE);
    (void) snprintf(from, sizeof(from), "%s/done/k", lab.path);
    (void) snprintf(to, sizeof(to), "%s/new/k", lab.path);
    ck_assert_int_eq(link(from, to), 0);
    spy_reset();
    ck_assert_int_eq(open_key("k"), NONBIS_OK);
    expect_log("unlink new; fsync new; "); /* else it could come back when the decided one is pruned */
    close_entry();
    journal_lab_close(&lab);
}
END_TEST

START_TEST(a_sync_that_failed_once_is_not_believed_later)
{
    journal_lab_open(&lab, &spy_calls);
    ck_assert_int_eq(create("k"), NONBIS_OK);
    spy_reset();
    spy.fail_at = 2; /* the fsync behind the rename */
    spy.error = EIO;
    ck_assert_int_eq(lab.journal->mark_sent(lab.journal, entry), NONBIS_ERROR_JOURNAL);
    ck_assert_ptr_nonnull(strstr(lab.journal->message(lab.journal), "cannot fsync"));
    ck_assert_ptr_nonnull(strstr(lab.journal->message(lab.journal), "/journal/sent: Input/output error"));
    ck_assert_int_eq(lab.journal->mark_sent(lab.journal, entry), NONBIS_ERROR_JOURNAL);
    ck_assert_ptr_nonnull(strstr(lab.journal->message(lab.journal), "the disk has failed before"));
    ck_assert_str_eq(journal_lab_where(&lab, "k"), "sent");
    close_entry();
    journal_lab_close(&lab);
}
END_TEST

START_TEST(a_new_journal_is_durable_before_its_lock_file_says_so)
{
    journal_lab_open(&lab, &spy_calls);
    char log[256];
    (void) snprintf(log, sizeof(log), "fsync %.15s; fsync journal; ", strrchr(lab.parent, '/') + 1);
    expect_log(log);
    journal_lab_reopen(&lab, &spy_calls);
    expect_log("");
    /* Whoever died between making and syncing left no lock file. */
    char path[128];
    (void) snprintf(path, sizeof(path), "%s/lock", lab.path);
    ck_assert_int_eq(unlink(path), 0);
    journal_lab_reopen(&lab, &spy_calls);
    expect_log(log);
    journal_lab_close(&lab);
}
END_TEST

SUITE(journal_state)
{
    Suite *suite = suite_create("client/journal_state");
    CASE(suite, an_entry_goes_from_new_to_sent_to_done);
    CASE_LOOP(suite, a_call_moves_an_opened_entry_as_its_row_says, sizeof(move_rows) / sizeof(move_rows[0]));
    CASE(suite, a_key_that_is_undecided_is_not_made_again);
    CASE(suite, a_decided_entry_is_replaced);
    CASE(suite, a_decided_entry_is_replaced_unless_it_was_completed);
    CASE(suite, an_entry_has_one_holder_at_a_time);
    CASE(suite, the_lock_stays_when_the_file_is_replaced_and_moved);
    CASE(suite, what_is_not_there_is_not_found);
    CASE(suite, keys_of_every_kind_are_kept_apart);
    CASE(suite, a_run_can_only_end_its_own_entry);
    CASE(suite, a_large_body_is_kept_whole);
    CASE(suite, each_step_is_durable_before_it_returns);
    CASE(suite, an_entry_found_in_sent_is_made_durable_there_before_it_is_sent_again);
    CASE(suite, what_a_crash_left_in_a_second_place_goes_durably);
    CASE(suite, a_sync_that_failed_once_is_not_believed_later);
    CASE(suite, a_new_journal_is_durable_before_its_lock_file_says_so);
    return suite;
}
