/* sqlite_statement_test.c - any statement may fail, at any place (fault_statement.h): what comes back says so, the transaction leaves nothing, the numbers
 * agree with the table, and a store that cannot be opened is refused with its reason and opens the next time (docs/contract.md 11.4). */
#include "server/store/sqlite_store.h"
#include "tests/store/fault_statement.h"
#include "tests/store/store_file.h"

enum { STEPS_MAX = 200 };

static struct store_options begin(void)
{
    fault_statement_install();
    return start();
}

static void remove_store(void)
{
    static const char *const suffixes[] = { "", "-wal", ".lock" };
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char file[96];
        (void) snprintf(file, sizeof file, "%s%s", path, suffixes[i]);
        (void) unlink(file);
    }
}

/* --- what was there before --- */

static void nothing(struct store *store)
{
    (void) store;
}

static struct store_found running; /* of `claimed` */

static void claimed(struct store *store)
{
    running = fixture_claim_now(store, "k", 1, 1);
}

static void released(struct store *store)
{
    claimed(store);
    ck_assert_int_eq(fixture_finish_now(store, "k", &running, OUTCOME_NOT_EXECUTED), STORE_OK);
}

static void completed(struct store *store)
{
    claimed(store);
    ck_assert_int_eq(fixture_finish_now(store, "k", &running, OUTCOME_COMPLETED), STORE_OK);
}

static void expired(struct store *store)
{
    completed(store);
    fixture_advance(FIXTURE_TTL_MS);
}

static void forgotten(struct store *store)
{
    completed(store);
    fixture_advance(FIXTURE_TTL_MS + FIXTURE_TOMBSTONE_MS);
}

/* --- what is done: within the transaction --- */

static enum store_result claim(struct store *store)
{
    struct store_claim asked = fixture_claim("k", 1, 1);
    struct store_found found;
    enum store_result result = store_claim_key(store, &asked, &found);
    ck_assert(result == STORE_OK || (!found.claimed && found.response == NULL));
    fixture_found_free(&found);
    return result;
}

static enum store_result finish_as(struct store *store, enum outcome_kind kind)
{
    struct store_finish asked = fixture_finish("k", &running, kind);
    struct record after;
    return store_finish_command(store, &asked, &after);
}

static enum store_result complete(struct store *store)
{
    return finish_as(store, OUTCOME_COMPLETED);
}

static enum store_result release(struct store *store)
{
    return finish_as(store, OUTCOME_NOT_EXECUTED);
}

static enum store_result void_it(struct store *store)
{
    struct store_claim asked = fixture_claim("k", 1, 1);
    struct store_found found;
    enum store_result result = store_void_key(store, &asked, &fixture_retention, &found);
    fixture_found_free(&found);
    return result;
}

static enum store_result look_up(struct store *store)
{
    struct store_found found;
    enum store_result result = store_look_up(store, VIEW("t"), VIEW("k"), &found);
    fixture_found_free(&found);
    return result;
}

static enum store_result look_up_id(struct store *store)
{
    struct store_found found;
    enum store_result result = store_look_up_id(store, VIEW("t"), running.record.command_id, &found);
    fixture_found_free(&found);
    return result;
}

static enum store_result sweep(struct store *store)
{
    struct store_sweep one = { .limit = 1 };
    return store_sweep_some(store, &one);
}

/* Index: row. States as they are written; UNKNOWN is what a restart makes of what runs. */
static const struct deed {
    const char *what;
    void (*before)(struct store *store);
    enum store_result (*act)(struct store *store);
    enum record_state from, to;
} deeds[] = {
    { "claim a new key", nothing, claim, RECORD_ABSENT, RECORD_IN_PROGRESS },
    { "claim a released one", released, claim, RECORD_RELEASED, RECORD_IN_PROGRESS },
    { "claim a forgotten one", forgotten, claim, RECORD_COMPLETED, RECORD_IN_PROGRESS },
    { "replay", completed, claim, RECORD_COMPLETED, RECORD_COMPLETED },
    { "complete", claimed, complete, RECORD_IN_PROGRESS, RECORD_COMPLETED },
    { "release", claimed, release, RECORD_IN_PROGRESS, RECORD_RELEASED },
    { "void a new key", nothing, void_it, RECORD_ABSENT, RECORD_VOIDED },
    { "void a released one", released, void_it, RECORD_RELEASED, RECORD_VOIDED },
    { "void a completed one", completed, void_it, RECORD_COMPLETED, RECORD_COMPLETED },
    { "look up", completed, look_up, RECORD_COMPLETED, RECORD_COMPLETED },
    { "look up by the id", completed, look_up_id, RECORD_COMPLETED, RECORD_COMPLETED },
    { "expire", expired, sweep, RECORD_COMPLETED, RECORD_EXPIRED },
    { "forget", forgotten, sweep, RECORD_COMPLETED, RECORD_ABSENT },
    { "record the time", completed, store_touch, RECORD_COMPLETED, RECORD_COMPLETED },
};
enum { DEEDS = sizeof deeds / sizeof deeds[0] };

/* One record, in that state, or none. */
static void expect_written(const struct store *store, const char *what, unsigned step, enum record_state state)
{
    for (int i = RECORD_ABSENT + 1; i < RECORD_STATE_COUNT; i++) {
        uint64_t count = store_records(store, (enum record_state) i);
        ck_assert_msg(count == (i == (int) state ? 1 : 0), "%s, step %u: %llu records in state %d, expected state %d",
                      what, step, (unsigned long long) count, i, (int) state);
    }
}

static enum store_result run_deed(struct store *store, const struct deed *deed)
{
    enum store_result result = store_begin(store);
    if (result != STORE_OK) {
        return result;
    }
    result = deed->act(store);
    if (result == STORE_OK) {
        return store_commit(store);
    }
    store_rollback(store);
    return result;
}

START_TEST(any_statement_of_an_operation_may_fail_and_then_nothing_of_it_is_there)
{
    const struct deed *deed = &deeds[_i];
    struct store_options options = begin();
    unsigned step = 0, failed = 0, uncertain = 0;
    for (bool met = true; met;) {
        ck_assert_uint_lt(++step, STEPS_MAX);
        fixture_wall_ms = fixture_monotonic_ms = FIXTURE_START_MS;
        struct store *store = fixture_open(&options);
        fixture_advance(500);
        deed->before(store);
        expect_written(store, deed->what, step, deed->from);
        fixture_advance(900); /* what runs is still in time, and the time of the store is due to be recorded */
        fault_statement_arm(FAULT_RUN, step);
        enum store_result result = run_deed(store, deed);
        met = fault_statement_disarm();
        enum record_state state = result == STORE_OK ? deed->to : deed->from;
        ck_assert_msg(met ? result == STORE_FAILED || result == STORE_UNCERTAIN || result == STORE_OK
                          : result == STORE_OK,
                      "%s, step %u: %s", deed->what, step, store_result_name(result));
        failed += result == STORE_FAILED;
        uncertain += result == STORE_UNCERTAIN;
        expect_written(store, deed->what, step, state);
        crash(store);
        store = fixture_open(&options);
        if (result != STORE_UNCERTAIN) {
            expect_written(store, deed->what, step, state == RECORD_IN_PROGRESS ? RECORD_UNKNOWN : state);
        }
        store_close(store);
        remove_store();
    }
    FIGURE("store: %s: each of %u statements failed once: %u times undone, %u times uncertain", deed->what, step - 1,
           failed, uncertain);
    ck_assert_uint_ge(failed, 1);
    fixture_remove(directory);
}
END_TEST

/* As without memory: until there is some again the transaction stays open, and what it wrote may be seen by nobody. */
START_TEST(a_rollback_that_fails_is_made_up_for_by_the_next_transaction)
{
    struct store_options options = begin();
    struct store *store = fixture_open(&options);
    struct sqlite_store *sqlite = sqlite_store_of(store);
    struct store_claim asked = fixture_claim("k", 1, 1);
    struct store_found found;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &asked, &found), STORE_OK);
    fault_statement_arm(FAULT_RUN, 1);
    store_rollback(store);
    ck_assert(fault_statement_disarm());
    ck_assert(sqlite_transaction_holds(sqlite));
    sqlite->wal_pages = 8000; /* a checkpoint is due, which such a transaction keeps away */
    ck_assert_int_eq(store_idle(store), STORE_OK);
    fault_statement_arm(FAULT_RUN, 1); /* and again */
    ck_assert_int_eq(store_begin(store), STORE_FAILED);
    ck_assert(fault_statement_disarm());
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_ABSENT);
    ck_assert_int_eq(store_idle(store), STORE_OK);
    ck_assert_int_eq(sqlite->wal_pages, 0);
    ck_assert(fixture_claim_now(store, "k", 1, 1).claimed);
    crash(store);
    store = fixture_open(&options);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_UNKNOWN);
    store_close(store);
    remove_store();
    fixture_remove(directory);
}
END_TEST

/* --- opening --- */

static const struct opening_row {
    const char *what;
    enum fault_statement_kind kind;
    bool there; /* else it is a new store */
} opening_rows[] = {
    { "run, a new store", FAULT_RUN, false },
    { "run, one with commands", FAULT_RUN, true },
    { "prepare, a new store", FAULT_PREPARE, false },
    { "prepare, one with commands", FAULT_PREPARE, true },
};
enum { OPENING_ROWS = sizeof opening_rows / sizeof opening_rows[0] };

static void make_store(const struct store_options *options)
{
    struct store *store = fixture_open(options);
    struct store_found found = fixture_claim_now(store, "done", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "done", &found, OUTCOME_COMPLETED), STORE_OK);
    (void) fixture_claim_now(store, "running", 1, 0);
    crash(store);
}

static void expect_settings(struct store *store, const char *what, unsigned step)
{
    int64_t synchronous = -1, autocheckpoint = -1;
    ck_assert(sqlite_pragma_number(sqlite_store_of(store)->db, "synchronous", &synchronous));
    ck_assert(sqlite_pragma_number(sqlite_store_of(store)->db, "wal_autocheckpoint", &autocheckpoint));
    ck_assert_msg(synchronous == 2 && autocheckpoint == 0, "%s, step %u: opened with other settings", what, step);
}

START_TEST(any_statement_of_an_opening_may_fail_and_then_it_is_refused_with_its_reason_and_opens_the_next_time)
{
    const struct opening_row *row = &opening_rows[_i];
    struct store_options options = begin();
    unsigned step = 0, refused = 0;
    for (bool met = true; met;) {
        struct buf error;
        int exit_code = -1;
        ck_assert_uint_lt(++step, STEPS_MAX);
        if (row->there) {
            make_store(&options);
        }
        buf_init(&error, 4096);
        fault_statement_arm(row->kind, step);
        struct store *store = store_open_sqlite(&options, &error, &exit_code);
        met = fault_statement_disarm();
        ck_assert_msg(met || store != NULL, "%s, step %u", row->what, step);
        if (store == NULL) {
            refused++;
            ck_assert_msg(exit_code == 73 || exit_code == 74, "%s, step %u: exit code %d", row->what, step, exit_code);
            ck_assert_uint_gt(error.len, 20);
            store = fixture_open(&options);
        }
        buf_fini(&error);
        expect_settings(store, row->what, step);
        ck_assert_int_eq(fixture_state(store, "done"), row->there ? RECORD_COMPLETED : RECORD_ABSENT);
        ck_assert_int_eq(fixture_state(store, "running"), row->there ? RECORD_UNKNOWN : RECORD_ABSENT);
        store_close(store);
        remove_store();
    }
    FIGURE("store: %s: each of %u statements failed once, %u openings refused", row->what, step - 1, refused);
    ck_assert_uint_ge(refused, 5);
    fixture_remove(directory);
}
END_TEST

SUITE(store_sqlite_statement)
{
    Suite *suite = suite_create("store/sqlite_statement");
    CASE_LOOP(suite, any_statement_of_an_operation_may_fail_and_then_nothing_of_it_is_there, DEEDS);
    CASE(suite, a_rollback_that_fails_is_made_up_for_by_the_next_transaction);
    CASE_LOOP(suite,
              any_statement_of_an_opening_may_fail_and_then_it_is_refused_with_its_reason_and_opens_the_next_time,
              OPENING_ROWS);
    return suite;
}
