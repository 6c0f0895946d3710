/* exchange_test.c - every cell of the life of a request, written out as text. */
#include "server/core/exchange.h"

#include "tests/support/suite.h"

/* One row per event, one column per phase, as "next/deed"; "-" is impossible. */
static const struct {
    const char *event;
    const char *cells[PHASE_COUNT];
} rows[] = {
    /* clang-format off */
    /* event             reading              claiming              forwarding                     recording                     waiting              replying           closed */
    { "body-whole",      { "claiming/claim",  "-",                  "-",                           "-",                          "-",                 "-",               "-" } },
    { "refused",         { "replying/answer", "-",                  "-",                           "-",                          "-",                 "-",               "-" } },
    { "claimed",         { "-",               "forwarding/forward", "-",                           "-",                          "-",                 "-",               "-" } },
    { "found",           { "-",               "replying/answer",    "-",                           "-",                          "-",                 "-",               "-" } },
    { "must-wait",       { "-",               "waiting/wait",       "-",                           "-",                          "-",                 "-",               "-" } },
    { "claim-failed",    { "-",               "replying/answer",    "-",                           "-",                          "-",                 "-",               "-" } },
    { "upstream-done",   { "-",               "-",                  "recording/record",            "-",                          "-",                 "-",               "-" } },
    { "answer-deadline", { "-",               "-",                  "forwarding/tell-still-running", "recording/none",           "replying/answer",   "replying/none",   "-" } },
    { "hard-deadline",   { "-",               "-",                  "recording/record-unknown",    "recording/none",             "-",                 "replying/none",   "-" } },
    { "recorded",        { "-",               "-",                  "-",                           "replying/answer",            "-",                 "-",               "-" } },
    { "record-failed",   { "-",               "-",                  "-",                           "replying/answer-unrecorded", "-",                 "-",               "-" } },
    { "rival-ended",     { "-",               "-",                  "-",                           "-",                          "claiming/claim",    "replying/none",   "-" } },
    { "rival-released",  { "-",               "-",                  "-",                           "-",                          "replying/answer",   "replying/none",   "-" } },
    { "client-gone",     { "closed/free",     "claiming/detach",    "forwarding/detach",           "recording/detach",           "closed/free",       "closed/free",     "-" } },
    { "answered",        { "-",               "-",                  "forwarding/detach",           "recording/detach",           "-",                 "closed/free",     "-" } },
    { "stop",            { "replying/answer", "claiming/none",      "recording/record-unknown",    "recording/none",             "replying/answer",   "replying/none",   "-" } },
    /* clang-format on */
};

START_TEST(each_event_in_each_phase_leads_where_it_must)
{
    ck_assert_str_eq(event_name((enum event) _i), rows[_i].event);
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        struct step step = exchange_next((enum phase) phase, (enum event) _i);
        char got[80];
        snprintf(got, sizeof(got), "%s/%s", phase_name(step.next), deed_name(step.deed));
        if (strcmp(rows[_i].cells[phase], "-") == 0) {
            ck_assert_int_eq(step.deed, DEED_IMPOSSIBLE);
            ck_assert_msg((int) step.next == phase, "%s in %s: an impossible event moves to %s", rows[_i].event,
                          phase_name((enum phase) phase), phase_name(step.next));
        } else {
            ck_assert_msg(strcmp(got, rows[_i].cells[phase]) == 0, "%s in %s: got %s, want %s", rows[_i].event,
                          phase_name((enum phase) phase), got, rows[_i].cells[phase]);
        }
    }
}
END_TEST

START_TEST(every_event_has_a_row_in_this_test)
{
    ck_assert_int_eq(EVENT_COUNT, 16);
    ck_assert_int_eq(PHASE_COUNT, 7);
    ck_assert_uint_eq(sizeof(rows) / sizeof(rows[0]), 16);
}
END_TEST

START_TEST(only_a_durable_claim_forwards)
{
    int forwards = 0;
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        for (int event = 0; event < EVENT_COUNT; event++) {
            forwards += exchange_table.cell[phase][event].deed == DEED_FORWARD;
        }
    }
    ck_assert_int_eq(forwards, 1);
}
END_TEST

/* A waiter looks again or answers; it neither forwards nor records (section 6). */
START_TEST(who_waits_never_forwards_or_records)
{
    for (int event = 0; event < EVENT_COUNT; event++) {
        enum phase next = exchange_table.cell[PHASE_WAITING][event].next;
        ck_assert_int_ne(next, PHASE_FORWARDING);
        ck_assert_int_ne(next, PHASE_RECORDING);
    }
}
END_TEST

START_TEST(values_outside_the_table_are_impossible)
{
    struct step step = exchange_next(PHASE_COUNT, EVENT_STOP);
    ck_assert_int_eq(step.deed, DEED_IMPOSSIBLE);
    step = exchange_next(PHASE_READING, EVENT_COUNT);
    ck_assert_int_eq(step.deed, DEED_IMPOSSIBLE);
    ck_assert_int_eq(step.next, PHASE_READING);
    ck_assert_str_eq(phase_name(PHASE_COUNT), "impossible");
    ck_assert_str_eq(event_name(EVENT_COUNT), "impossible");
    ck_assert_str_eq(deed_name(DEED_COUNT), "impossible");
}
END_TEST

SUITE(core_exchange)
{
    Suite *suite = suite_create("core/exchange");
    CASE_LOOP(suite, each_event_in_each_phase_leads_where_it_must, EVENT_COUNT);
    CASE(suite, every_event_has_a_row_in_this_test);
    CASE(suite, only_a_durable_claim_forwards);
    CASE(suite, who_waits_never_forwards_or_records);
    CASE(suite, values_outside_the_table_are_impossible);
    return suite;
}
