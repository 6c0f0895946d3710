/* sqlite_outcome_test.c - an outcome on the disk: which tables hold it after each way through a record's life, that it is the same after a stop and
 * after a crash, that it is written once, and that a start knows what ran (schema/sqlite/0001, docs/contract.md 6.15). */
#include "server/store/sqlite_store.h"
#include "tests/store/store_file.h"

/* `crash`: as a killed process leaves it. */
static struct store *reopen(struct store *store, const struct store_options *options, bool crash)
{
    store->down = crash;
    store_close(store);
    return fixture_open(options);
}

static int64_t number(struct store *store, const char *sql)
{
    sqlite3_stmt *statement;
    ck_assert_msg(sqlite3_prepare_v2(sqlite_store_of(store)->db, sql, -1, &statement, NULL) == SQLITE_OK, "%s", sql);
    int64_t value = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
    ck_assert_int_eq(sqlite3_finalize(statement), SQLITE_OK);
    return value;
}

/* --- ways through a life --- */

static struct store_found held; /* the newest claim of "k" */

static void claim(struct store *store)
{
    held = fixture_claim_now(store, "k", 1, 1);
    ck_assert(held.claimed);
}

static void finish(struct store *store, enum outcome_kind kind)
{
    ck_assert_int_eq(fixture_finish_now(store, "k", &held, kind), STORE_OK);
}

static void complete(struct store *store)
{
    finish(store, OUTCOME_COMPLETED);
}

static void release(struct store *store)
{
    finish(store, OUTCOME_NOT_EXECUTED);
}

static void lose(struct store *store)
{
    finish(store, OUTCOME_UNKNOWN);
}

static void void_it(struct store *store)
{
    struct store_claim asked = fixture_claim("k", 1, 1);
    struct store_found found;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_void_key(store, &asked, &fixture_retention, &found), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert(found.claimed);
    fixture_found_free(&found);
}

/* With a longer retention than its completion will come with. */
static void claim_for_longer(struct store *store)
{
    struct store_claim asked = fixture_claim("k", 1, 1);
    asked.ttl_ms = FIXTURE_TTL_MS + 1;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &asked, &held), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert(held.claimed);
}

static void pass_deadline(struct store *store)
{
    (void) store;
    fixture_advance(FIXTURE_RUN_MS);
}

static void pass_ttl(struct store *store)
{
    (void) store;
    fixture_advance(FIXTURE_TTL_MS);
}

static void pass_tombstone(struct store *store)
{
    (void) store;
    fixture_advance(FIXTURE_TOMBSTONE_MS);
}

static void sweep(struct store *store)
{
    struct store_sweep done = fixture_sweep(store, 10);
    ck_assert_uint_eq(done.expired + done.forgotten, 1);
}

static void complete_in_vain(struct store *store)
{
    struct store_finish asked = fixture_finish("k", &held, OUTCOME_COMPLETED);
    struct record after;
    asked.body = VIEW("undone");
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_finish_command(store, &asked, &after), STORE_OK);
    ck_assert_int_eq(after.state, RECORD_COMPLETED);
    store_rollback(store);
}

/* Every other word about an execution that has ended is too late. */
static void finish_again(struct store *store)
{
    ck_assert_int_eq(fixture_finish_now(store, "k", &held, OUTCOME_COMPLETED), STORE_STALE);
    ck_assert_int_eq(fixture_finish_now(store, "k", &held, OUTCOME_NOT_EXECUTED), STORE_STALE);
    ck_assert_int_eq(fixture_finish_now(store, "k", &held, OUTCOME_UNKNOWN), STORE_STALE);
}

/* Both within one transaction. */
static void claim_and_complete_at_once(struct store *store)
{
    struct store_claim asked = fixture_claim("k", 1, 1);
    struct record after;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &asked, &held), STORE_OK);
    struct store_finish outcome = fixture_finish("k", &held, OUTCOME_COMPLETED);
    ck_assert_int_eq(store_finish_command(store, &outcome, &after), STORE_OK);
    ck_assert_int_eq(store_finish_command(store, &outcome, &after), STORE_STALE);
    ck_assert_int_eq(after.state, RECORD_COMPLETED);
    ck_assert_int_eq(store_commit(store), STORE_OK);
}

enum { DEEDS_MAX = 6 };

/* What is in the tables: the state as the command's row has it (0: no row), and how many responses. A start makes unknown what runs. */
static const struct way {
    const char *what;
    void (*deeds[DEEDS_MAX])(struct store *store);
    enum record_state state, stored;
    int responses;
    uint32_t execution;
} ways[] = {
    { "completed", { claim, complete }, RECORD_COMPLETED, RECORD_IN_PROGRESS, 1, 1 },
    { "completed within one commit", { claim_and_complete_at_once }, RECORD_COMPLETED, RECORD_IN_PROGRESS, 1, 1 },
    { "completed twice", { claim, complete, finish_again }, RECORD_COMPLETED, RECORD_IN_PROGRESS, 1, 1 },
    { "undone, then completed", { claim, complete_in_vain, complete }, RECORD_COMPLETED, RECORD_IN_PROGRESS, 1, 1 },
    { "undone, then released", { claim, complete_in_vain, release }, RECORD_RELEASED, RECORD_RELEASED, 0, 1 },
    { "undone", { claim, complete_in_vain }, RECORD_IN_PROGRESS, RECORD_IN_PROGRESS, 0, 1 },
    { "past its deadline", { claim, pass_deadline, complete }, RECORD_COMPLETED, RECORD_IN_PROGRESS, 1, 1 },
    { "not executed past its deadline", { claim, pass_deadline, release }, RECORD_UNKNOWN, RECORD_UNKNOWN, 0, 1 },
    { "the truth behind that", { claim, pass_deadline, release, complete }, RECORD_COMPLETED, RECORD_COMPLETED, 1, 1 },
    { "released", { claim, release }, RECORD_RELEASED, RECORD_RELEASED, 0, 1 },
    { "released and running", { claim, release, claim }, RECORD_IN_PROGRESS, RECORD_IN_PROGRESS, 0, 2 },
    { "released, completed", { claim, release, claim, complete }, RECORD_COMPLETED, RECORD_IN_PROGRESS, 1, 2 },
    { "released, late word", { claim, release, finish_again }, RECORD_RELEASED, RECORD_RELEASED, 0, 1 },
    { "released, lost", { claim, release, claim, lose }, RECORD_UNKNOWN, RECORD_UNKNOWN, 0, 2 },
    { "lost", { claim, lose }, RECORD_UNKNOWN, RECORD_UNKNOWN, 0, 1 },
    { "the late truth", { claim, lose, complete, finish_again }, RECORD_COMPLETED, RECORD_COMPLETED, 1, 1 },
    { "due before its row is", { claim_for_longer, complete }, RECORD_COMPLETED, RECORD_COMPLETED, 1, 1 },
    { "voided", { claim, release, void_it, finish_again }, RECORD_VOIDED, RECORD_VOIDED, 0, 1 },
    { "expired", { claim, complete, pass_ttl, sweep, finish_again }, RECORD_EXPIRED, RECORD_EXPIRED, 0, 1 },
    { "forgotten", { claim, complete, pass_tombstone, sweep, finish_again }, RECORD_ABSENT, RECORD_ABSENT, 0, 0 },
    { "taken anew", { claim, complete, pass_tombstone, claim, complete }, RECORD_COMPLETED, RECORD_IN_PROGRESS, 1, 1 },
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void expect_answer(struct store *store, const struct way *way)
{
    struct store_claim asked = fixture_claim("k", 1, 1);
    struct store_found found;
    asked.may_claim = false;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &asked, &found), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert_msg((found.response != NULL) == (way->state == RECORD_COMPLETED), "%s: response", way->what);
    if (found.response != NULL) {
        ck_assert_int_eq(found.response->status, 201);
        ck_assert(view_equal(found.response->fields, VIEW("Content-Type: text/plain\r\n")));
        ck_assert(view_equal(found.response->body, VIEW("done")));
        ck_assert_int_eq(found.record.response_status, 201);
        ck_assert_uint_eq(found.record.response_bytes, 4);
        ck_assert(found.record.response_kept);
        bool late = strstr(way->what, "truth") != NULL; /* what was promised as unknown stays promised */
        int64_t after_ms = late ? FIXTURE_TOMBSTONE_MS : FIXTURE_TTL_MS;
        ck_assert_int_eq(found.record.expires_ms, found.record.completed_ms + after_ms);
        ck_assert_int_eq(found.record.forget_ms, found.record.completed_ms + FIXTURE_TOMBSTONE_MS * (late ? 2 : 1));
        ck_assert_int_eq(found.record.tombstone, EXECUTED_YES);
        ck_assert_int_eq(found.record.cause, CAUSE_NONE);
    }
    fixture_found_free(&found);
}

static void expect_way(struct store *store, const struct way *way, enum record_state state, enum record_state stored)
{
    struct store_found found = fixture_look_up(store, "k"), by_id;
    ck_assert_msg(found.record.state == state, "%s: state %s", way->what, record_state_name(found.record.state));
    ck_assert_uint_eq(found.record.execution, way->execution);
    ck_assert_int_eq(number(store, "SELECT ifnull(max(state), 0) FROM commands"), (int) stored);
    ck_assert_int_eq(number(store, "SELECT count(*) FROM responses"), way->responses);
    ck_assert_uint_eq(store_records(store, RECORD_COMPLETED), state == RECORD_COMPLETED ? 1 : 0);
    ck_assert_uint_eq(store_records(store, RECORD_IN_PROGRESS), state == RECORD_IN_PROGRESS ? 1 : 0);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_look_up_id(store, VIEW("t"), held.record.command_id, &by_id), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert_mem_eq(&by_id.record, &found.record, sizeof found.record);
    expect_answer(store, way);
    fixture_found_free(&found);
    fixture_found_free(&by_id);
}

/* The second half of the rows ends in a crash. */
START_TEST(an_outcome_is_the_same_after_a_stop_and_after_a_crash)
{
    const struct way *way = &ways[_i % WAYS];
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    for (int i = 0; i < DEEDS_MAX && way->deeds[i] != NULL; i++) {
        way->deeds[i](store);
    }
    expect_way(store, way, way->state, way->stored);
    bool runs = way->state == RECORD_IN_PROGRESS;
    for (int i = 0; i < 2; i++) {
        store = reopen(store, &options, _i >= WAYS);
        ck_assert_uint_eq(store->info.recovered, runs && i == 0 ? 1 : 0);
        expect_way(store, way, runs ? RECORD_UNKNOWN : way->state, runs ? RECORD_UNKNOWN : way->stored);
    }
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* What a restart knows about the times of what was completed by its response alone. */
START_TEST(what_was_completed_before_a_restart_is_swept_when_it_is_due_and_not_before)
{
    static const int64_t ttls_ms[] = { 0, FIXTURE_TTL_MS,
                                       FIXTURE_TTL_MS + 500 }; /* of the claim; the outcome's is the middle one */
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_claim asked = fixture_claim("k", 1, 1);
    asked.ttl_ms = ttls_ms[_i];
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &asked, &held), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    fixture_advance(300);
    complete(store);
    store = reopen(store, &options, true);
    fixture_advance(FIXTURE_TTL_MS - 1);
    struct store_sweep done = fixture_sweep(store, 10);
    ck_assert_uint_eq(done.expired, 0);
    ck_assert_int_eq(done.found_due_ms, 0);
    store = reopen(store, &options, true);
    fixture_advance(1);
    done = fixture_sweep(store, 10);
    ck_assert_uint_eq(done.expired, 1);
    ck_assert_int_eq(done.found_due_ms, FIXTURE_START_MS + 300 + FIXTURE_TTL_MS);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* Time is written down once a second; in between the newest outcome knows it. */
START_TEST(time_does_not_go_back_behind_an_outcome_when_a_crash_meets_a_clock_that_was_set_back)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    claim(store);
    fixture_advance(900);
    complete(store);
    fixture_wall_ms = FIXTURE_START_MS - 5000;
    store = reopen(store, &options, true);
    ck_assert_int_eq(store_now(store), FIXTURE_START_MS + 900);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* --- what ran --- */

/* Claimed and released long ago, in row 1. */
static struct store *released_long_ago(const struct store_options *options)
{
    struct store *store = fixture_open(options);
    claim(store);
    release(store);
    for (int i = 0; i < 3; i++) {
        char key[16];
        (void) snprintf(key, sizeof key, "other-%d", i);
        fixture_advance(1000);
        struct store_found other =
            fixture_claim_now(store, key, 1, 1); /* with the store's time, and where it begins to run */
        ck_assert_int_eq(fixture_finish_now(store, key, &other, OUTCOME_COMPLETED), STORE_OK);
    }
    fixture_advance(1000);
    (void) fixture_claim_now(store, "last", 1, 1);
    ck_assert_int_eq(number(store, "SELECT value FROM meta WHERE name = 'oldest_running_row'"), 5);
    return store;
}

START_TEST(a_command_that_runs_again_in_an_old_row_is_unknown_after_a_crash)
{
    struct store_options options = start();
    struct store *store = released_long_ago(&options);
    if (_i == 1) { /* what a transaction has written of it is gone with it */
        struct store_claim asked = fixture_claim("k", 1, 1);
        ck_assert_int_eq(store_begin(store), STORE_OK);
        ck_assert_int_eq(store_claim_key(store, &asked, &held), STORE_OK);
        ck_assert(held.claimed);
        store_rollback(store);
        ck_assert_int_eq(number(store, "SELECT value FROM meta WHERE name = 'oldest_running_row'"), 5);
    }
    claim(store);
    ck_assert_int_eq(held.row, 1);
    ck_assert_int_eq(number(store, "SELECT value FROM meta WHERE name = 'oldest_running_row'"), 1);
    store = reopen(store, &options, true);
    ck_assert_uint_eq(store->info.recovered, 2);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_UNKNOWN);
    ck_assert_int_eq(fixture_state(store, "last"), RECORD_UNKNOWN);
    ck_assert_int_eq(fixture_state(store, "other-0"), RECORD_COMPLETED);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* An outcome that was undone still runs. */
START_TEST(what_is_written_of_what_runs_is_right_whatever_is_undone)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    claim(store);
    struct store_found other = fixture_claim_now(store, "other", 1, 1);
    complete_in_vain(store);
    ck_assert_int_eq(fixture_finish_now(store, "other", &other, OUTCOME_COMPLETED), STORE_OK);
    fixture_advance(1000);
    (void) fixture_claim_now(store, "third", 1, 1); /* writes it */
    ck_assert_int_eq(number(store, "SELECT value FROM meta WHERE name = 'oldest_running_row'"), 1);
    store = reopen(store, &options, true);
    ck_assert_uint_eq(store->info.recovered, 2);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_UNKNOWN);
    ck_assert_int_eq(fixture_state(store, "other"), RECORD_COMPLETED);
    ck_assert_int_eq(fixture_state(store, "third"), RECORD_UNKNOWN);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* Else a start would look for the response of everything that came after it. */
START_TEST(a_not_executed_past_the_deadline_holds_up_nothing_that_a_start_looks_up)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    claim(store);
    fixture_advance(FIXTURE_RUN_MS);
    release(store);
    ck_assert_uint_eq(running_count(sqlite_store_of(store)->running), 0);
    for (int i = 0; i < 20; i++) {
        char key[16];
        (void) snprintf(key, sizeof key, "k-%d", i);
        struct store_found found = fixture_claim_now(store, key, 1, 1);
        ck_assert_int_eq(fixture_finish_now(store, key, &found, OUTCOME_COMPLETED), STORE_OK);
    }
    fixture_advance(1000);
    (void) fixture_claim_now(store, "last", 1, 1); /* writes it */
    ck_assert_int_eq(number(store, "SELECT value FROM meta WHERE name = 'oldest_running_row'"), 22);
    store = reopen(store, &options, true);
    ck_assert_uint_eq(store->info.recovered, 1);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_UNKNOWN);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

static int looked_up(struct store *store)
{
    return sqlite3_stmt_status(sqlite_store_of(store)->statements[SQL_RESPONSE_HEAD], SQLITE_STMTSTATUS_RUN, 1);
}

START_TEST(a_start_looks_up_the_newest_commands_alone)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    for (int i = 0; i < 100; i++) {
        char key[16];
        (void) snprintf(key, sizeof key, "k-%d", i);
        struct store_found found = fixture_claim_now(store, key, 1, 1);
        if (i != 98) {
            ck_assert_int_eq(fixture_finish_now(store, key, &found, OUTCOME_COMPLETED), STORE_OK);
        }
        fixture_advance(100);
    }
    store = reopen(store, &options, true);
    ck_assert_int_le(looked_up(store), 10); /* a second of them */
    ck_assert_uint_eq(store->info.recovered, 1);
    ck_assert_uint_eq(store_records(store, RECORD_COMPLETED), 99);
    ck_assert_uint_eq(store_records(store, RECORD_UNKNOWN), 1);
    store = reopen(store, &options, false);
    ck_assert_int_eq(looked_up(store), 0);
    ck_assert_uint_eq(store_records(store, RECORD_COMPLETED), 99);
    /* Without the mark all of them are. */
    ck_assert_int_eq(
        sqlite3_exec(sqlite_store_of(store)->db, "DELETE FROM meta WHERE name = 'oldest_running_row'", 0, 0, 0),
        SQLITE_OK);
    store = reopen(store, &options, true);
    ck_assert_int_eq(looked_up(store), 99);
    ck_assert_uint_eq(store->info.recovered, 0);
    ck_assert_uint_eq(store_records(store, RECORD_COMPLETED), 99);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* Numbers of executions never wrap around. Whose are used up is not forwarded, and whoever is in the same batch is. */
START_TEST(a_command_whose_executions_are_used_up_is_not_claimed_and_disturbs_nobody)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_claim asked = fixture_claim("k", 1, 1), strangers = fixture_claim("stranger", 1, 1);
    struct store_found found;
    claim(store);
    release(store);
    ck_assert_int_eq(sqlite3_exec(sqlite_store_of(store)->db, "UPDATE commands SET execution = 4294967294", 0, 0, 0),
                     SQLITE_OK);
    claim(store);
    ck_assert_uint_eq(held.record.execution, 4294967295);
    release(store);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &asked, &found), STORE_OK);
    ck_assert(!found.claimed);
    ck_assert_int_eq(store_claim_key(store, &strangers, &found), STORE_OK);
    ck_assert(found.claimed);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_RELEASED);
    ck_assert_int_eq(fixture_state(store, "stranger"), RECORD_IN_PROGRESS);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* --- rows are counted up --- */

START_TEST(a_row_is_not_used_twice_while_the_process_runs)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_claim asked = fixture_claim("undone", 1, 1);
    claim(store);
    complete(store);
    ck_assert_int_eq(held.row, 1);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    struct store_found undone;
    ck_assert_int_eq(store_claim_key(store, &asked, &undone), STORE_OK);
    ck_assert_int_eq(undone.row, 2);
    store_rollback(store);
    pass_tombstone(store);
    sweep(store); /* the tables are empty */
    claim(store);
    ck_assert_int_eq(held.row, 3);
    ck_assert_int_eq(fixture_finish_now(store, "undone", &undone, OUTCOME_COMPLETED), STORE_STALE);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* A response that a command has left behind is damage; no other command gets it. */
START_TEST(a_response_without_a_command_is_nobodys)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    claim(store);
    complete(store);
    ck_assert_int_eq(sqlite3_exec(sqlite_store_of(store)->db, "DELETE FROM commands", 0, 0, 0), SQLITE_OK);
    store = reopen(store, &options, _i == 1);
    claim(store);
    ck_assert_int_eq(held.row, 2);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_IN_PROGRESS);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

SUITE(store_sqlite_outcome)
{
    Suite *suite = suite_create("store/sqlite_outcome");
    CASE_LOOP(suite, an_outcome_is_the_same_after_a_stop_and_after_a_crash, 2 * WAYS);
    CASE_LOOP(suite, what_was_completed_before_a_restart_is_swept_when_it_is_due_and_not_before, 3);
    CASE(suite, time_does_not_go_back_behind_an_outcome_when_a_crash_meets_a_clock_that_was_set_back);
    CASE_LOOP(suite, a_command_that_runs_again_in_an_old_row_is_unknown_after_a_crash, 2);
    CASE(suite, what_is_written_of_what_runs_is_right_whatever_is_undone);
    CASE(suite, a_not_executed_past_the_deadline_holds_up_nothing_that_a_start_looks_up);
    CASE(suite, a_start_looks_up_the_newest_commands_alone);
    CASE(suite, a_command_whose_executions_are_used_up_is_not_claimed_and_disturbs_nobody);
    CASE(suite, a_row_is_not_used_twice_while_the_process_runs);
    CASE_LOOP(suite, a_response_without_a_command_is_nobodys, 2);
    return suite;
}
