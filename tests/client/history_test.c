/* history_test.c - client-sdk/src/history.c: what every finding makes of what was known, and what "not seen" is worth. */
#include "client-sdk/src/history.h"
#include "tests/support/suite.h"

/* By what was known: Unsent, Not applied, Ambiguous, Running, unknown (X), Completed, reJected, Voided. */
static const char letters[] = "UNARXCJV";
static const char *const table[FINDING_COUNT] = {
    [FINDING_CANCELLED] = "UNARXCJV",
    [FINDING_HELD_BACK] = "UNARXCJV",
    [FINDING_LOCAL] = "UNARXCJV",
    [FINDING_OFFLINE] = "UNARXCJV",
    [FINDING_NOT_SENT] = "UNARXCJV",
    [FINDING_CANCELLED_SENT] = "AAARXCAV",
    [FINDING_RESEND_BLOCKED] = "AAARXCAV",
    [FINDING_LOST] = "AAARXCAV",
    [FINDING_CUT] = "AAARXCAV",
    [FINDING_REPLAY_CUT] = "CCCCCCCC",
    [FINDING_EXECUTED] = "CCCCCCCC",
    [FINDING_REPLAYED] = "CCCCCCCC",
    [FINDING_UNRECORDED] = "CCCCCCCC",
    [FINDING_NOT_EXECUTED] = "NNNNNCNV",
    [FINDING_DECLINED] = "NNNNNCNV",
    [FINDING_SAID_UNKNOWN] = "XXXXXCXV",
    [FINDING_RUNNING] = "RRRRRCRV",
    [FINDING_UNAVAILABLE] = "NNARXCJV",
    [FINDING_REFUSED] = "JJARXCJV",
    [FINDING_KEY_REUSED] = "JJJJJJJV",
    [FINDING_KEY_FOREIGN] = "JJARXCJV",
    [FINDING_KEY_EXPIRED_EXECUTED] = "CCCCCCCC",
    [FINDING_KEY_EXPIRED_UNKNOWN] = "XXXXXCXV",
    [FINDING_KEY_VOIDED] = "VVVVVCVV",
    [FINDING_SUCCESS] = "CCCCCCCC",
    [FINDING_THROTTLED] = "NNARXCJV",
    [FINDING_BUSY] = "AAARXCAV",
    [FINDING_FAULT] = "AAARXCAV",
    [FINDING_CONFLICT] = "CCARXCJV",
    [FINDING_TURNED_AWAY] = "CCARXCJV",
    [FINDING_FINAL] = "CCCCCCCC",
    [FINDING_TOLD_COMPLETED] = "CCCCCCCC",
    [FINDING_TOLD_ANSWER] = "CCCCCCCC",
    [FINDING_TOLD_RUNNING] = "RRRRRCRV",
    [FINDING_TOLD_UNKNOWN] = "XXXXXCXV",
    [FINDING_TOLD_RELEASED] = "NNNNNCNV",
    [FINDING_TOLD_VOIDED] = "VVVVVCVV",
    [FINDING_TOLD_EXPIRED_EXECUTED] = "CCCCCCCC",
    [FINDING_TOLD_EXPIRED_UNKNOWN] = "XXXXXCXV",
    [FINDING_TOLD_NOT_SEEN] = "UNNRXCJV",
    [FINDING_TOLD_NOT_SEEN_DOUBTFUL] = "UNARXCJV",
    [FINDING_TOLD_FORGOTTEN] = "UNARXCJV",
    [FINDING_TOLD_NO_RESOURCE] = "UNARXCJV",
    [FINDING_TOLD_TURNED_AWAY] = "UNARXCJV",
    [FINDING_TOLD_NOTHING] = "UNARXCJV",
    [FINDING_TOLD_PROTECTED] = "UNARXCJV",
    [FINDING_TOLD_UNPROTECTED] = "UNARXCJV",
    [FINDING_TOLD_NO_ROUTE] = "UNARXCJV",
};

START_TEST(every_finding_changes_every_standing_as_written)
{
    char row[STANDING_COUNT + 1] = "";
    for (int standing = 0; standing < STANDING_COUNT; standing++) {
        row[standing] = letters[standing_after((enum standing) standing, (enum finding) _i)];
    }
    ck_assert_str_eq(row, table[_i]);
}
END_TEST

START_TEST(from_sent_no_path_leads_back_to_not_sent)
{
    for (int standing = 0; standing < STANDING_COUNT; standing++) {
        for (int finding = 0; finding < FINDING_COUNT; finding++) {
            enum standing after = standing_after((enum standing) standing, (enum finding) finding);
            if (standing != STANDING_UNSENT) {
                ck_assert_int_ne(after, STANDING_UNSENT);
                ck_assert_int_ne(standing_outcome(after), NONBIS_NOT_SENT);
            }
        }
    }
}
END_TEST

/* What makes an ambiguous command something better is a word about the command itself, and nothing else. */
START_TEST(ambiguity_is_erased_only_by_a_definite_word_about_the_command)
{
    static const enum finding definite[] = {
        FINDING_REPLAY_CUT,
        FINDING_EXECUTED,
        FINDING_REPLAYED,
        FINDING_UNRECORDED,
        FINDING_NOT_EXECUTED,
        FINDING_DECLINED,
        FINDING_SAID_UNKNOWN,
        FINDING_RUNNING,
        FINDING_KEY_REUSED,
        FINDING_KEY_VOIDED,
        FINDING_SUCCESS,
        FINDING_FINAL,
        FINDING_TOLD_ANSWER,
        FINDING_TOLD_COMPLETED,
        FINDING_TOLD_RUNNING,
        FINDING_TOLD_UNKNOWN,
        FINDING_TOLD_RELEASED,
        FINDING_TOLD_VOIDED,
        FINDING_TOLD_NOT_SEEN,
        FINDING_KEY_EXPIRED_EXECUTED,
        FINDING_KEY_EXPIRED_UNKNOWN,
        FINDING_TOLD_EXPIRED_EXECUTED,
        FINDING_TOLD_EXPIRED_UNKNOWN,
    };
    for (int finding = 0; finding < FINDING_COUNT; finding++) {
        bool may = false;
        for (size_t i = 0; i < sizeof(definite) / sizeof(definite[0]); i++) {
            may = may || definite[i] == (enum finding) finding;
        }
        enum standing after = standing_after(STANDING_AMBIGUOUS, (enum finding) finding);
        ck_assert_msg((after != STANDING_AMBIGUOUS) == may, "%s", finding_name((enum finding) finding));
    }
}
END_TEST

START_TEST(every_standing_has_its_outcome)
{
    ck_assert_int_eq(standing_outcome(STANDING_UNSENT), NONBIS_NOT_SENT);
    ck_assert_int_eq(standing_outcome(STANDING_NOT_APPLIED), NONBIS_NOT_APPLIED);
    ck_assert_int_eq(standing_outcome(STANDING_AMBIGUOUS), NONBIS_UNKNOWN);
    ck_assert_int_eq(standing_outcome(STANDING_RUNNING), NONBIS_IN_PROGRESS);
    ck_assert_int_eq(standing_outcome(STANDING_UNKNOWN), NONBIS_UNKNOWN);
    ck_assert_int_eq(standing_outcome(STANDING_COMPLETED), NONBIS_COMPLETED);
    ck_assert_int_eq(standing_outcome(STANDING_REJECTED), NONBIS_REJECTED);
    ck_assert_int_eq(standing_outcome(STANDING_VOIDED), NONBIS_NOT_APPLIED);
}
END_TEST

static const struct {
    int64_t first_sent_ms, window_start_ms, skew_ms;
    bool credentials_changed, promised;
    enum evidence evidence;
    enum finding finding;
} not_seen[] = {
    { 5000, 5000, 0, false, true, EVIDENCE_NONE, FINDING_TOLD_NOT_SEEN },
    { 5000, 5000, 0, false, false, EVIDENCE_CONTRACT, FINDING_TOLD_NOT_SEEN },
    { 5000, 5000, 0, false, false, EVIDENCE_NONE, FINDING_TOLD_NOT_SEEN_DOUBTFUL }, /* the route may not be protected */
    { 5000, 5000, 0, false, false, EVIDENCE_IGNORES, FINDING_TOLD_NOT_SEEN_DOUBTFUL },
    { 5000, 5000, 0, true, true, EVIDENCE_NONE,
      FINDING_TOLD_NOT_SEEN_DOUBTFUL },                                         /* it may be another's to the server */
    { 5000, 0, 0, false, true, EVIDENCE_NONE, FINDING_TOLD_NOT_SEEN_DOUBTFUL }, /* no window was told */
    { 0, 5000, 0, false, true, EVIDENCE_NONE, FINDING_TOLD_NOT_SEEN_DOUBTFUL }, /* nobody knows when it was sent */
    { 5000, 5001, 0, false, true, EVIDENCE_NONE, FINDING_TOLD_FORGOTTEN },
    { 5000, 5001, 0, false, false, EVIDENCE_NONE, FINDING_TOLD_FORGOTTEN },
    { 5000, 5001, 0, true, true, EVIDENCE_NONE, FINDING_TOLD_FORGOTTEN },
    { 5000, 8000, 3000, false, true, EVIDENCE_NONE, FINDING_TOLD_NOT_SEEN }, /* the server's clock is ahead of ours */
    { 5000, 5000, -1, false, true, EVIDENCE_NONE, FINDING_TOLD_FORGOTTEN },  /* or behind */
};

START_TEST(not_seen_is_not_never)
{
    struct history history;
    history_init(&history, SAFETY_KEYED, true, true);
    history_resume(&history, not_seen[_i].first_sent_ms);
    history.credentials_changed = not_seen[_i].credentials_changed;
    history.promised = not_seen[_i].promised;
    history.evidence = not_seen[_i].evidence;
    history_begin(&history, GOAL_RUN, 0, 1000);
    struct reading reading = { .finding = FINDING_TOLD_NOT_SEEN,
                               .retry_after_ms = -1,
                               .window_start_ms = not_seen[_i].window_start_ms,
                               .skew_ms = not_seen[_i].skew_ms };
    history_note_answer(&history, &reading, 0);
    ck_assert_str_eq(finding_name(reading.finding), finding_name(not_seen[_i].finding));
    ck_assert_int_eq(history.last, not_seen[_i].finding);
    bool applied_not = not_seen[_i].finding == FINDING_TOLD_NOT_SEEN;
    ck_assert_int_eq(history.standing, applied_not ? STANDING_NOT_APPLIED : STANDING_AMBIGUOUS);
}
END_TEST

START_TEST(a_record_of_a_key_that_others_may_have_made_is_no_evidence_about_this_route)
{
    struct history history;
    struct reading reading = { .finding = FINDING_TOLD_RUNNING, .retry_after_ms = -1, .shows_contract = true };
    history_init(&history, SAFETY_KEYED, true, false);
    history_begin(&history, GOAL_RUN, 0, 1000);
    history_note_answer(&history, &reading, 0);
    ck_assert_int_eq(history.evidence, EVIDENCE_NONE);
    history.own_key = true;
    reading.shows_contract = true;
    history_note_answer(&history, &reading, 0);
    ck_assert_int_eq(history.evidence, EVIDENCE_CONTRACT);
}
END_TEST

START_TEST(the_word_about_the_route_is_evidence_whoever_made_the_key)
{
    static const struct {
        struct reading reading;
        enum evidence evidence;
    } rows[] = {
        { { .finding = FINDING_TOLD_PROTECTED, .ask = ASK_ROUTE, .shows_contract = true }, EVIDENCE_CONTRACT },
        { { .finding = FINDING_TOLD_UNPROTECTED, .ask = ASK_ROUTE, .ignores_key = true }, EVIDENCE_IGNORES },
        { { .finding = FINDING_TOLD_NO_ROUTE, .ask = ASK_ROUTE }, EVIDENCE_NONE },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct history history;
        struct reading reading = rows[i].reading;
        reading.retry_after_ms = -1;
        history_init(&history, SAFETY_KEYED, true, false);
        history_begin(&history, GOAL_RUN, 0, 1000);
        history_note_answer(&history, &reading, 0);
        ck_assert_int_eq(history.evidence, rows[i].evidence);
        ck_assert(history.route_told);
        history_begin(&history, GOAL_RUN, 0, 1000);
        ck_assert(!history.route_told); /* a later run may ask again */
    }
}
END_TEST

START_TEST(the_age_of_a_key_counts_from_its_first_sending)
{
    struct history history;
    history_init(&history, SAFETY_KEYED, true, true);
    ck_assert_int_eq(history.first_sent_wall_ms, 0);
    history_note_sending(&history, 5000);
    history_note_sending(&history, 9000);
    ck_assert_int_eq(history.first_sent_wall_ms, 5000);
    history_begin(&history, GOAL_RUN, 0, 1000); /* in every later run too */
    history_note_sending(&history, 12000);
    ck_assert_int_eq(history.first_sent_wall_ms, 5000);
}
END_TEST

START_TEST(the_longest_patience_that_was_asked_for_counts)
{
    struct history history;
    struct reading reading = { .finding = FINDING_THROTTLED, .retry_after_ms = 5000 };
    history_init(&history, SAFETY_KEYED, true, true);
    history_begin(&history, GOAL_RUN, 0, 100000);
    history_note_attempt(&history, &reading, 1000);
    ck_assert_int_eq(history.floor_ms, 6000);
    reading.retry_after_ms = 1000;
    history_note_attempt(&history, &reading, 2000);
    ck_assert_int_eq(history.floor_ms, 6000); /* an earlier, longer wish still stands */
    reading.retry_after_ms = 0;
    history_note_attempt(&history, &reading, 7000);
    ck_assert_int_eq(history.floor_ms, 7000);
}
END_TEST

START_TEST(what_could_not_leave_does_not_count_as_an_attempt)
{
    static const struct {
        enum finding finding;
        unsigned attempts;
    } rows[] = { { FINDING_OFFLINE, 0 },  { FINDING_CANCELLED, 0 }, { FINDING_HELD_BACK, 0 },
                 { FINDING_NOT_SENT, 1 }, { FINDING_LOST, 1 },      { FINDING_SUCCESS, 1 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct history history;
        struct reading reading = { .finding = rows[i].finding, .retry_after_ms = -1 };
        history_init(&history, SAFETY_KEYED, true, true);
        history_begin(&history, GOAL_RUN, 0, 1000);
        history_note_attempt(&history, &reading, 0);
        ck_assert_uint_eq(history.attempts, rows[i].attempts);
        ck_assert_uint_eq(history.exchanges, 1);
    }
}
END_TEST

SUITE(history)
{
    Suite *suite = suite_create("client/history");
    CASE_LOOP(suite, every_finding_changes_every_standing_as_written, FINDING_COUNT);
    CASE(suite, from_sent_no_path_leads_back_to_not_sent);
    CASE(suite, ambiguity_is_erased_only_by_a_definite_word_about_the_command);
    CASE(suite, every_standing_has_its_outcome);
    CASE_LOOP(suite, not_seen_is_not_never, sizeof(not_seen) / sizeof(not_seen[0]));
    CASE(suite, a_record_of_a_key_that_others_may_have_made_is_no_evidence_about_this_route);
    CASE(suite, the_word_about_the_route_is_evidence_whoever_made_the_key);
    CASE(suite, the_age_of_a_key_counts_from_its_first_sending);
    CASE(suite, the_longest_patience_that_was_asked_for_counts);
    CASE(suite, what_could_not_leave_does_not_count_as_an_attempt);
    return suite;
}
