/* record_test.c - every transition of a record, its times, and what may be told of it (docs/contract.md sections 3, 6, 9). */
#include "server/core/record.h"

#include "tests/support/suite.h"

static const uint8_t id_one[COMMAND_ID_BYTES] = { 1 };
static const uint8_t id_two[COMMAND_ID_BYTES] = { 2 };
static const struct fingerprint payload = { .version = 1, .digest = { 5 } };
static const struct credential caller = { .present = true, .digest = { 9 } };
static const struct retention keep = { .ttl_ms = 100, .tombstone_ttl_ms = 1000 };

static const struct record_outcome completed = {
    .kind = OUTCOME_COMPLETED, .response_status = 201, .response_bytes = 17, .response_kept = true
};
static const struct record_outcome not_executed = { .kind = OUTCOME_NOT_EXECUTED };
static const struct record_outcome reset = { .kind = OUTCOME_UNKNOWN, .cause = CAUSE_RESET };

/* Claimed at 10 with a deadline at 60. */
static struct record record_running(void)
{
    struct record record = { 0 };
    ck_assert(record_claim(&record, id_one, &payload, &caller, 50, 10));
    return record;
}

/* Claimed at 10 and finished at 20. */
static struct record record_finished(const struct record_outcome *outcome)
{
    struct record record = record_running();
    ck_assert(record_finish(&record, 1, outcome, &keep, 20));
    return record;
}

static struct record record_voided(void)
{
    struct record record = { 0 };
    ck_assert(record_void(&record, id_one, &caller, &keep, 20));
    return record;
}

START_TEST(a_claim_of_an_absent_key_starts_execution_one)
{
    struct record record = record_running();
    ck_assert_int_eq(record.state, RECORD_IN_PROGRESS);
    ck_assert_mem_eq(record.command_id, id_one, COMMAND_ID_BYTES);
    ck_assert_uint_eq(record.execution, 1);
    ck_assert_mem_eq(&record.fingerprint, &payload, sizeof(payload));
    ck_assert_mem_eq(&record.credential, &caller, sizeof(caller));
    ck_assert_int_eq(record.created_ms, 10);
    ck_assert_int_eq(record.deadline_ms, 60);
    ck_assert_int_eq(record.completed_ms, 0);
    ck_assert_int_eq(record.expires_ms, 0);
    ck_assert_int_eq(record.forget_ms, 0);
}
END_TEST

START_TEST(a_claim_of_a_released_key_keeps_its_id_and_counts_up)
{
    struct record record = record_finished(&not_executed);
    struct credential fresh = { .present = true, .digest = { 33 } };
    ck_assert(record_claim(&record, id_two, &payload, &fresh, 50, 30));
    ck_assert_int_eq(record.state, RECORD_IN_PROGRESS);
    ck_assert_mem_eq(record.command_id, id_one, COMMAND_ID_BYTES);
    ck_assert_uint_eq(record.execution, 2);
    ck_assert_int_eq(record.created_ms, 10);
    ck_assert_int_eq(record.deadline_ms, 80);
    ck_assert_int_eq(record.completed_ms, 0);
    ck_assert_int_eq(record.expires_ms, 120); /* promised while it was released */
    ck_assert_int_eq(record.forget_ms, 120);
    ck_assert_mem_eq(&record.credential, &fresh, sizeof(fresh));
}
END_TEST

START_TEST(a_claim_of_a_released_key_with_another_payload_is_refused)
{
    struct record record = record_finished(&not_executed), before = record;
    struct fingerprint other = { .version = 1, .digest = { 6 } };
    ck_assert(!record_claim(&record, id_two, &other, &caller, 50, 30));
    ck_assert_mem_eq(&record, &before, sizeof(record));
}
END_TEST

START_TEST(the_execution_number_does_not_wrap)
{
    struct record record = record_finished(&not_executed);
    record.execution = UINT32_MAX;
    ck_assert(!record_claim(&record, id_two, &payload, &caller, 50, 30));
}
END_TEST

START_TEST(a_claim_of_a_forgotten_key_starts_anew)
{
    struct record record = record_finished(&completed);
    struct fingerprint other = { .version = 1, .digest = { 6 } };
    ck_assert(!record_claim(&record, id_two, &other, &caller, 50, 1019));
    ck_assert(record_claim(&record, id_two, &other, &caller, 50, 1020));
    ck_assert_mem_eq(record.command_id, id_two, COMMAND_ID_BYTES);
    ck_assert_uint_eq(record.execution, 1);
    ck_assert_int_eq(record.created_ms, 1020);
    ck_assert_int_eq(record.response_status, 0);
    ck_assert_int_eq(record.completed_ms, 0);
}
END_TEST

/* One row per written state and moment: the state that counts, what may be told, and which transitions are allowed. The letters:
 * c claim, C finish(completed), N finish(not executed), U finish(unknown), v void. */
enum made { ABSENT, RUNNING, COMPLETED, UNKNOWN, RELEASED, VOIDED, TOMB_YES, TOMB_UNKNOWN, BROKEN };
static const struct {
    enum made made;
    int64_t now_ms;
    const char *state, *executed, *allowed;
} moments[] = {
    { ABSENT, 20, "absent", "no", "cv" },
    { RUNNING, 59, "in_progress", "unknown", "CNU" },
    { RUNNING, 60, "unknown", "unknown", "CNU" },
    { RUNNING, 1000000, "unknown", "unknown", "CNU" }, /* never forgotten by age */
    { COMPLETED, 20, "completed", "yes", "" },
    { COMPLETED, 119, "completed", "yes", "" },
    { COMPLETED, 120, "expired", "yes", "" },
    { COMPLETED, 1019, "expired", "yes", "" },
    { COMPLETED, 1020, "absent", "no", "cv" },
    { UNKNOWN, 20, "unknown", "unknown", "C" },
    { UNKNOWN, 1019, "unknown", "unknown", "C" },
    { UNKNOWN, 1020, "expired", "unknown", "" },
    { UNKNOWN, 2019, "expired", "unknown", "" },
    { UNKNOWN, 2020, "absent", "no", "cv" },
    { RELEASED, 20, "released", "no", "cv" },
    { RELEASED, 119, "released", "no", "cv" },
    { RELEASED, 120, "absent", "no", "cv" },
    { VOIDED, 20, "voided", "no", "" },
    { VOIDED, 1019, "voided", "no", "" },
    { VOIDED, 1020, "absent", "no", "cv" },
    { TOMB_YES, 500, "expired", "yes", "" },
    { TOMB_YES, 1020, "absent", "no", "cv" },
    { TOMB_UNKNOWN, 500, "expired", "unknown", "" },
    { TOMB_UNKNOWN, 1020, "absent", "no", "cv" },
    { BROKEN, 20, "unknown", "unknown", "" }, /* a state that nobody wrote is never free */
};

static struct record record_made(enum made made)
{
    struct record record = { 0 };
    switch (made) {
    case ABSENT:
        break;
    case RUNNING:
        return record_running();
    case COMPLETED:
        return record_finished(&completed);
    case UNKNOWN:
        return record_finished(&reset);
    case RELEASED:
        return record_finished(&not_executed);
    case VOIDED:
        return record_voided();
    case TOMB_YES:
    case TOMB_UNKNOWN: /* what a sweep leaves */
        record = record_finished(&completed);
        record.state = RECORD_EXPIRED;
        record.tombstone = made == TOMB_YES ? EXECUTED_YES : EXECUTED_UNKNOWN;
        break;
    case BROKEN:
        record = record_finished(&completed);
        record.state = (enum record_state) 77;
        break;
    }
    return record;
}

/* Tries one transition on a copy; checks that a refused one changed nothing. */
static bool transition_allowed(const struct record *from, char letter, int64_t now_ms)
{
    struct record record = *from;
    bool done = false;
    switch (letter) {
    case 'c':
        done = record_claim(&record, id_two, &payload, &caller, 50, now_ms);
        break;
    case 'C':
        done = record_finish(&record, from->execution, &completed, &keep, now_ms);
        break;
    case 'N':
        done = record_finish(&record, from->execution, &not_executed, &keep, now_ms);
        break;
    case 'U':
        done = record_finish(&record, from->execution, &reset, &keep, now_ms);
        break;
    default:
        done = record_void(&record, id_two, &caller, &keep, now_ms);
        break;
    }
    /* Copies of one object, padding included. */
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
    ck_assert_msg(done || memcmp(&record, from, sizeof(record)) == 0, "a refused '%c' changed the record", letter);
    return done;
}

START_TEST(at_each_moment_a_record_has_its_state_and_allows_only_its_transitions)
{
    struct record record = record_made(moments[_i].made);
    int64_t now_ms = moments[_i].now_ms;
    ck_assert_str_eq(record_state_name(record_state_at(&record, now_ms)), moments[_i].state);
    ck_assert_str_eq(executed_name(record_executed_at(&record, now_ms)), moments[_i].executed);
    for (const char *letter = "cCNUv"; *letter != '\0'; letter++) {
        bool allowed = strchr(moments[_i].allowed, *letter) != NULL;
        ck_assert_msg(transition_allowed(&record, *letter, now_ms) == allowed, "row %d, transition %c: want %d", _i,
                      *letter, allowed);
    }
}
END_TEST

static const struct {
    const struct record_outcome *outcome;
    enum record_state state;
    int64_t expires_ms, forget_ms;
    enum cause cause;
    int response_status;
    bool credential_kept;
} finish_rows[] = {
    { &completed, RECORD_COMPLETED, 120, 1020, CAUSE_NONE, 201, true },
    { &not_executed, RECORD_RELEASED, 120, 120, CAUSE_NONE, 0, false },
    { &reset, RECORD_UNKNOWN, 1020, 2020, CAUSE_RESET, 0, true },
};

START_TEST(finishing_writes_outcome_and_both_deadlines)
{
    struct record record = record_finished(finish_rows[_i].outcome);
    ck_assert_int_eq(record.state, finish_rows[_i].state);
    ck_assert_int_eq(record.completed_ms, 20);
    ck_assert_int_eq(record.expires_ms, finish_rows[_i].expires_ms);
    ck_assert_int_eq(record.forget_ms, finish_rows[_i].forget_ms);
    ck_assert_int_eq(record.cause, finish_rows[_i].cause);
    ck_assert_int_eq(record.response_status, finish_rows[_i].response_status);
    ck_assert(record.credential.present == finish_rows[_i].credential_kept);
    ck_assert_mem_eq(&record.fingerprint, &payload, sizeof(payload)); /* kept for as long as the key */
}
END_TEST

/* Its deadline is 60. */
static const struct {
    int64_t now_ms;
    enum record_state state;
    enum cause cause;
    int64_t expires_ms, forget_ms;
    bool credential_kept, counts;
} not_executed_rows[] = {
    { 59, RECORD_RELEASED, CAUSE_NONE, 159, 159, false, true },
    { 60, RECORD_UNKNOWN, CAUSE_TIMEOUT, 1060, 2060, true, false },
    { 5000, RECORD_UNKNOWN, CAUSE_TIMEOUT, 6000, 7000, true, false },
};

START_TEST(a_not_executed_past_the_deadline_ends_the_command_as_unknown)
{
    struct record record = record_running();
    int64_t now_ms = not_executed_rows[_i].now_ms;
    ck_assert(record_finish(&record, 1, &not_executed, &keep, now_ms));
    ck_assert_int_eq(record.state, not_executed_rows[_i].state);
    ck_assert_int_eq(record.cause, not_executed_rows[_i].cause);
    ck_assert_int_eq(record.completed_ms, now_ms);
    ck_assert_int_eq(record.expires_ms, not_executed_rows[_i].expires_ms);
    ck_assert_int_eq(record.forget_ms, not_executed_rows[_i].forget_ms);
    ck_assert(record.credential.present == not_executed_rows[_i].credential_kept);
    ck_assert(record_outcome_counts(&record, OUTCOME_NOT_EXECUTED) == not_executed_rows[_i].counts);
    ck_assert(record_outcome_counts(&record, OUTCOME_UNKNOWN));
}
END_TEST

START_TEST(a_completed_record_keeps_the_shape_of_its_response)
{
    struct record record = record_finished(&completed);
    ck_assert_int_eq(record.response_status, 201);
    ck_assert_uint_eq(record.response_bytes, 17);
    ck_assert(record.response_kept);
}
END_TEST

START_TEST(releasing_wipes_the_credential)
{
    static const struct credential forgotten = { .present = false };
    struct record record = record_finished(&not_executed);
    ck_assert_mem_eq(record.credential.digest, forgotten.digest, CREDENTIAL_BYTES);
}
END_TEST

START_TEST(only_the_newest_execution_can_finish)
{
    struct record record = record_finished(&not_executed);
    ck_assert(record_claim(&record, id_two, &payload, &caller, 50, 30));
    struct record before = record;
    ck_assert(!record_finish(&record, 1, &completed, &keep, 40));
    ck_assert(!record_finish(&record, 3, &completed, &keep, 40));
    ck_assert_mem_eq(&record, &before, sizeof(record));
    ck_assert(record_finish(&record, 2, &completed, &keep, 40));
}
END_TEST

START_TEST(the_late_truth_completes_an_unknown_command)
{
    struct record record = record_finished(&reset);
    ck_assert(record_finish(&record, 1, &completed, &keep, 500));
    ck_assert_int_eq(record.state, RECORD_COMPLETED);
    ck_assert_int_eq(record.cause, CAUSE_NONE);
    ck_assert_int_eq(record.completed_ms, 500);
    ck_assert_int_eq(record.expires_ms, 1020); /* 600 would be sooner than was promised */
    ck_assert_int_eq(record.forget_ms, 2020);  /* as would 1500 */
    ck_assert_str_eq(executed_name(record_executed_at(&record, 1020)), "yes");
}
END_TEST

START_TEST(the_late_truth_restarts_both_times)
{
    static const struct retention longer = { .ttl_ms = 5000, .tombstone_ttl_ms = 6000 };
    struct record record = record_finished(&reset);
    ck_assert(record_finish(&record, 1, &completed, &longer, 500));
    ck_assert_int_eq(record.expires_ms, 5500);
    ck_assert_int_eq(record.forget_ms, 6500);
}
END_TEST

START_TEST(a_tombstone_time_shorter_than_the_ttl_does_not_forget_early)
{
    static const struct retention odd = { .ttl_ms = 1000, .tombstone_ttl_ms = 10 };
    struct record record = record_running();
    ck_assert(record_finish(&record, 1, &completed, &odd, 20));
    ck_assert_int_eq(record.expires_ms, 1020);
    ck_assert_int_eq(record.forget_ms, 1020);
}
END_TEST

START_TEST(times_saturate)
{
    static const struct retention endless = { .ttl_ms = INT64_MAX, .tombstone_ttl_ms = INT64_MAX };
    struct record record = { 0 };
    ck_assert(record_claim(&record, id_one, &payload, &caller, INT64_MAX, 10));
    ck_assert(record.deadline_ms == INT64_MAX);
    ck_assert(record_finish(&record, 1, &reset, &endless, 20));
    ck_assert(record.expires_ms == INT64_MAX);
    ck_assert(record.forget_ms == INT64_MAX);
    ck_assert_int_eq(record_state_at(&record, INT64_MAX - 1), RECORD_UNKNOWN);
}
END_TEST

START_TEST(voiding_an_unseen_key_leaves_a_record_without_payload_and_execution)
{
    struct record record = record_voided();
    ck_assert_int_eq(record.state, RECORD_VOIDED);
    ck_assert_mem_eq(record.command_id, id_one, COMMAND_ID_BYTES);
    ck_assert_uint_eq(record.execution, 0);
    ck_assert_uint_eq(record.fingerprint.version, 0);
    ck_assert_mem_eq(&record.credential, &caller, sizeof(caller));
    ck_assert_int_eq(record.created_ms, 20);
    ck_assert_int_eq(record.completed_ms, 20);
    ck_assert_int_eq(record.expires_ms, 1020);
    ck_assert_int_eq(record.forget_ms, 1020);
}
END_TEST

START_TEST(voiding_a_released_key_keeps_id_number_and_payload)
{
    struct record record = record_finished(&not_executed);
    ck_assert(record_void(&record, id_two, &caller, &keep, 50));
    ck_assert_mem_eq(record.command_id, id_one, COMMAND_ID_BYTES);
    ck_assert_uint_eq(record.execution, 1);
    ck_assert_mem_eq(&record.fingerprint, &payload, sizeof(payload));
    ck_assert_mem_eq(&record.credential, &caller, sizeof(caller));
    ck_assert_int_eq(record.created_ms, 10);
    ck_assert_int_eq(record.completed_ms, 50);
    ck_assert_int_eq(record.forget_ms, 1050);
}
END_TEST

START_TEST(voiding_never_shortens_what_was_promised)
{
    static const struct retention brief = { .ttl_ms = 1, .tombstone_ttl_ms = 1 };
    struct record record = record_finished(&not_executed);
    ck_assert(record_void(&record, id_two, &caller, &brief, 50));
    ck_assert_int_eq(record.forget_ms, 120);
}
END_TEST

static const char *const cause_rows[] = { "",         "timeout",         "reset",  "cut",     "garbage",   "crash",
                                          "shutdown", "close-delimited", "status", "handler", "unrecorded" };

START_TEST(causes_have_their_stored_numbers_and_names)
{
    ck_assert_int_eq(CAUSE_COUNT, 11);
    ck_assert_str_eq(cause_name((enum cause) _i), cause_rows[_i]);
}
END_TEST

START_TEST(states_have_their_stored_numbers_and_names)
{
    static const char *const names[] = { "absent",   "in_progress", "completed", "unknown",
                                         "released", "expired",     "voided",    "unknown" };
    ck_assert_str_eq(record_state_name((enum record_state) _i), names[_i]);
}
END_TEST

SUITE(core_record)
{
    Suite *suite = suite_create("core/record");
    CASE(suite, a_claim_of_an_absent_key_starts_execution_one);
    CASE(suite, a_claim_of_a_released_key_keeps_its_id_and_counts_up);
    CASE(suite, a_claim_of_a_released_key_with_another_payload_is_refused);
    CASE(suite, the_execution_number_does_not_wrap);
    CASE(suite, a_claim_of_a_forgotten_key_starts_anew);
    CASE_LOOP(suite, at_each_moment_a_record_has_its_state_and_allows_only_its_transitions,
              sizeof(moments) / sizeof(moments[0]));
    CASE_LOOP(suite, finishing_writes_outcome_and_both_deadlines, sizeof(finish_rows) / sizeof(finish_rows[0]));
    CASE_LOOP(suite, a_not_executed_past_the_deadline_ends_the_command_as_unknown,
              sizeof(not_executed_rows) / sizeof(not_executed_rows[0]));
    CASE(suite, a_completed_record_keeps_the_shape_of_its_response);
    CASE(suite, releasing_wipes_the_credential);
    CASE(suite, only_the_newest_execution_can_finish);
    CASE(suite, the_late_truth_completes_an_unknown_command);
    CASE(suite, the_late_truth_restarts_both_times);
    CASE(suite, a_tombstone_time_shorter_than_the_ttl_does_not_forget_early);
    CASE(suite, times_saturate);
    CASE(suite, voiding_an_unseen_key_leaves_a_record_without_payload_and_execution);
    CASE(suite, voiding_a_released_key_keeps_id_number_and_payload);
    CASE(suite, voiding_never_shortens_what_was_promised);
    CASE_LOOP(suite, causes_have_their_stored_numbers_and_names, sizeof(cause_rows) / sizeof(cause_rows[0]));
    CASE_LOOP(suite, states_have_their_stored_numbers_and_names, 8);
    return suite;
}
