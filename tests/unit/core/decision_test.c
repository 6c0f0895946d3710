/* decision_test.c - every cell of the decision table, and the classification (docs/contract.md section 4). */
#include "server/core/decision.h"

#include "tests/support/suite.h"

static const struct fingerprint payload = { .version = 1, .digest = { 5 }, .parts = { { 1 } } };
static const struct fingerprint other_method = { .version = 1, .digest = { 6 }, .parts = { { 2 } } };
static const struct credential caller = { .present = true, .digest = { 9 } };
static const struct credential stranger = { .present = true, .digest = { 8 } };
static const struct credential nobody = { .present = false };

/* state, who asks, then the verdict without and with permission to wait; read against section 4, check 7. */
static const struct {
    const char *state, *match, *verdict, *verdict_may_wait;
} cells[] = {
    { "absent", "same", "forward", "forward" },
    { "absent", "other-payload", "impossible", "impossible" },
    { "absent", "other-credential", "impossible", "impossible" },
    { "in_progress", "same", "in-progress", "wait" },
    { "in_progress", "other-payload", "key-reused", "key-reused" },
    { "in_progress", "other-credential", "key-reused", "key-reused" },
    { "completed", "same", "replay", "replay" },
    { "completed", "other-payload", "key-reused", "key-reused" },
    { "completed", "other-credential", "key-reused", "key-reused" },
    { "unknown", "same", "outcome-unknown", "outcome-unknown" },
    { "unknown", "other-payload", "key-reused", "key-reused" },
    { "unknown", "other-credential", "key-reused", "key-reused" },
    { "released", "same", "forward", "forward" },
    { "released", "other-payload", "key-reused", "key-reused" },
    { "released", "other-credential", "key-reused", "key-reused" },
    { "expired", "same", "key-expired", "key-expired" },
    { "expired", "other-payload", "key-reused", "key-reused" },
    { "expired", "other-credential", "key-reused", "key-reused" },
    { "voided", "same", "key-voided", "key-voided" },
    { "voided", "other-payload", "key-reused", "key-reused" },
    { "voided", "other-credential", "key-reused", "key-reused" },
};

static enum record_state state_named(const char *name)
{
    for (int state = 0; state < RECORD_STATE_COUNT; state++) {
        if (strcmp(record_state_name((enum record_state) state), name) == 0) {
            return (enum record_state) state;
        }
    }
    ck_abort_msg("no state is named %s", name);
}

static enum match match_named(const char *name)
{
    return strcmp(name, "same") == 0            ? MATCH_SAME
           : strcmp(name, "other-payload") == 0 ? MATCH_OTHER_PAYLOAD
                                                : MATCH_OTHER_CREDENTIAL;
}

START_TEST(the_table_says_what_section_4_says)
{
    const enum verdict *cell = decision_table.cell[state_named(cells[_i].state)][match_named(cells[_i].match)];
    ck_assert_str_eq(verdict_name(cell[0]), cells[_i].verdict);
    ck_assert_str_eq(verdict_name(cell[1]), cells[_i].verdict_may_wait);
}
END_TEST

START_TEST(every_cell_has_a_row_in_this_test)
{
    bool seen[RECORD_STATE_COUNT][MATCH_COUNT] = { { false } };
    size_t count = sizeof(cells) / sizeof(cells[0]);
    for (size_t i = 0; i < count; i++) {
        seen[state_named(cells[i].state)][match_named(cells[i].match)] = true;
    }
    ck_assert_uint_eq(count, (size_t) RECORD_STATE_COUNT * MATCH_COUNT);
    for (size_t i = 0; i < count; i++) {
        ck_assert((&seen[0][0])[i]);
    }
}
END_TEST

static struct record record_in(const char *state)
{
    return (struct record){ .state = state_named(state),
                            .execution = 1,
                            .fingerprint = payload,
                            .credential = caller,
                            .deadline_ms = 100,
                            .expires_ms = 100,
                            .forget_ms = 200 };
}

START_TEST(decide_reaches_every_possible_cell)
{
    bool other_payload = strcmp(cells[_i].match, "other-payload") == 0;
    bool other_credential = strcmp(cells[_i].match, "other-credential") == 0;
    struct asked asked = { .fingerprint = other_payload ? &other_method : &payload,
                           .credential = other_credential ? &stranger : &caller };
    bool absent = strcmp(cells[_i].state, "absent") == 0; /* has nothing to differ from */
    struct record record = record_in(cells[_i].state);
    struct decision decision = decide(&record, &asked, 50);
    ck_assert_str_eq(verdict_name(decision.verdict), absent ? "forward" : cells[_i].verdict);
    ck_assert_str_eq(record_state_name(decision.state), cells[_i].state);
    ck_assert_uint_eq(decision.differs, absent ? 0 : other_payload ? 1 : other_credential ? 64 : 0);
    asked.may_wait = true;
    decision = decide(&record, &asked, 50);
    ck_assert_str_eq(verdict_name(decision.verdict), absent ? "forward" : cells[_i].verdict_may_wait);
}
END_TEST

START_TEST(no_record_is_forwarded)
{
    struct asked asked = { .fingerprint = &payload, .credential = &caller };
    struct record zeroed = { .state = RECORD_ABSENT };
    ck_assert_str_eq(verdict_name(decide(NULL, &asked, 50).verdict), "forward");
    ck_assert_str_eq(verdict_name(decide(&zeroed, &asked, 50).verdict), "forward");
    ck_assert_str_eq(record_state_name(decide(NULL, &asked, 50).state), "absent");
}
END_TEST

START_TEST(another_credential_hides_that_the_payload_differs_too)
{
    struct asked asked = { .fingerprint = &other_method, .credential = &stranger };
    struct record record = record_in("completed");
    struct decision decision = decide(&record, &asked, 50);
    ck_assert_str_eq(verdict_name(decision.verdict), "key-reused");
    ck_assert_uint_eq(decision.differs, 64);
}
END_TEST

START_TEST(without_a_credential_on_one_side_only_the_payload_counts)
{
    struct record record = record_in("completed");
    struct asked asked = { .fingerprint = &payload, .credential = &nobody };
    ck_assert_str_eq(verdict_name(decide(&record, &asked, 50).verdict), "replay");
    asked.credential = NULL;
    ck_assert_str_eq(verdict_name(decide(&record, &asked, 50).verdict), "replay");
    record.credential = nobody;
    asked.credential = &stranger;
    ck_assert_str_eq(verdict_name(decide(&record, &asked, 50).verdict), "replay");
    asked.fingerprint = &other_method;
    ck_assert_str_eq(verdict_name(decide(&record, &asked, 50).verdict), "key-reused");
}
END_TEST

START_TEST(a_key_voided_unseen_refuses_every_payload_as_voided)
{
    struct record record = record_in("voided");
    record.fingerprint = (struct fingerprint){ .version = 0 };
    struct asked asked = { .fingerprint = &other_method, .credential = &caller };
    ck_assert_str_eq(verdict_name(decide(&record, &asked, 50).verdict), "key-voided");
}
END_TEST

/* What time does to a record comes before the table: written state, moment, verdict of a repeat and of another payload. */
static const struct {
    const char *state;
    int64_t now_ms;
    const char *same, *other;
} times[] = {
    { "in_progress", 99, "in-progress", "key-reused" },
    { "in_progress", 100, "outcome-unknown", "key-reused" },
    { "in_progress", 100000, "outcome-unknown", "key-reused" },
    { "completed", 99, "replay", "key-reused" },
    { "completed", 100, "key-expired", "key-reused" },
    { "completed", 200, "forward", "forward" },
    { "unknown", 100, "key-expired", "key-reused" },
    { "unknown", 200, "forward", "forward" },
    { "released", 199, "forward", "key-reused" },
    { "released", 200, "forward", "forward" },
    { "expired", 199, "key-expired", "key-reused" },
    { "expired", 200, "forward", "forward" },
    { "voided", 199, "key-voided", "key-reused" },
    { "voided", 200, "forward", "forward" },
};

START_TEST(time_is_applied_before_the_table)
{
    struct record record = record_in(times[_i].state);
    struct asked same = { .fingerprint = &payload, .credential = &caller };
    struct asked other = { .fingerprint = &other_method, .credential = &caller };
    ck_assert_str_eq(verdict_name(decide(&record, &same, times[_i].now_ms).verdict), times[_i].same);
    ck_assert_str_eq(verdict_name(decide(&record, &other, times[_i].now_ms).verdict), times[_i].other);
}
END_TEST

START_TEST(a_state_that_nobody_wrote_is_never_forwarded)
{
    struct record record = record_in("completed");
    record.state = (enum record_state) 77;
    struct asked asked = { .fingerprint = &payload, .credential = &caller };
    ck_assert_str_eq(verdict_name(decide(&record, &asked, 100000).verdict), "outcome-unknown");
}
END_TEST

SUITE(core_decision)
{
    Suite *suite = suite_create("core/decision");
    CASE_LOOP(suite, the_table_says_what_section_4_says, sizeof(cells) / sizeof(cells[0]));
    CASE(suite, every_cell_has_a_row_in_this_test);
    CASE_LOOP(suite, decide_reaches_every_possible_cell, sizeof(cells) / sizeof(cells[0]));
    CASE(suite, no_record_is_forwarded);
    CASE(suite, another_credential_hides_that_the_payload_differs_too);
    CASE(suite, without_a_credential_on_one_side_only_the_payload_counts);
    CASE(suite, a_key_voided_unseen_refuses_every_payload_as_voided);
    CASE_LOOP(suite, time_is_applied_before_the_table, sizeof(times) / sizeof(times[0]));
    CASE(suite, a_state_that_nobody_wrote_is_never_forwarded);
    return suite;
}
