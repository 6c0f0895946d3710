/* checker_test.c - the checker of histories (tests/proof/history) finds a planted violation of each rule, and nothing in a clean history. */
#include "tests/proof/history/checker.h"

#include "tests/support/suite.h"

enum { GRACE_NS = 10 };

static void check_text(const char *text, struct checker_report *report)
{
    struct history history;
    history_init(&history);
    ck_assert_uint_eq(history_read(&history, view_of(text)), 0);
    checker_run(&history, GRACE_NS, report);
    history_fini(&history);
}

static const char *broken_rules(const struct checker_report *report)
{
    static char names[128];
    names[0] = '\0';
    for (int rule = 1; rule < CHECKER_RULES; rule++) {
        size_t len = strlen(names);
        if (report->faults[rule] > 0) {
            (void) snprintf(names + len, sizeof names - len, "%sR%d", len > 0 ? " " : "", rule);
        }
    }
    return names;
}

#define RUN "arrival at=5 tenant=a key=k payload=p no=1 does=run execution=e1 number=1\n"
#define EXECUTED                                                                                                       \
    "attempt at=1..9 no=1 tenant=a key=k payload=p answer=201 word=executed execution=e1 body=b1 fields=f1\n"
#define REPLAYED(at, no)                                                                                               \
    "attempt at=" at " no=" no " tenant=a key=k payload=p answer=201 word=replayed execution=e1 body=b1 fields=f1\n"
#define LOST "attempt at=1.. no=1 tenant=a key=k payload=p\n"
#define DECLINED                                                                                                       \
    "arrival at=5 tenant=a key=k payload=p no=1 does=decline execution=e1 number=1\n"                                  \
    "attempt at=1..9 no=1 tenant=a key=k payload=p answer=429 word=not-executed\n"
#define QUIET "quiet at=50\n"
#define STATUS(at, state, executed, executions)                                                                        \
    "status at=" at " tenant=a key=k answer=200 state=" state " executed=" executed " executions=" executions "\n"
#define COMPLETED STATUS("70..71", "completed", "yes", "1")
#define UNKNOWN STATUS("70..71", "unknown", "unknown", "1")

/* Everything that may happen to a command, each under a key of its own. */
static const char clean[] =
    /* executed, replayed, refused with another payload, put off, asked */
    RUN EXECUTED REPLAYED(
        "11..12",
        "2") "attempt at=13..14 no=3 tenant=a key=k payload=q answer=422 word=refused problem=key-reused\n"
             "attempt at=15..16 no=4 tenant=a key=k payload=p answer=503 word=refused problem=unavailable "
             "executed=unknown\n"
             "attempt at=17.. no=5 tenant=a key=k payload=p\n" COMPLETED
             /* repeats while it runs; the first client hears nothing */
             "arrival at=5 tenant=a key=k2 payload=p no=21 does=run execution=e21 number=1\n"
             "attempt at=1.. no=21 tenant=a key=k2 payload=p\n"
             "attempt at=6..7 no=22 tenant=a key=k2 payload=p answer=409 word=in-progress problem=in-progress "
             "executed=unknown\n"
             "status at=6..8 tenant=a key=k2 answer=200 state=in_progress executed=unknown executions=1\n"
             "attempt at=6..20 no=23 tenant=a key=k2 payload=p answer=201 word=replayed execution=e21 body=b2 "
             "fields=f2\n"
             "status at=70..71 tenant=a key=k2 answer=200 state=completed executed=yes executions=1\n"
             /* a ghost of a claim: never sent, unknown for ever */
             "attempt at=1.. no=31 tenant=a key=k3 payload=p\n"
             "attempt at=30..31 no=32 tenant=a key=k3 payload=p answer=504 word=unknown problem=outcome-unknown "
             "executed=unknown\n"
             "status at=70..71 tenant=a key=k3 answer=200 state=unknown executed=unknown executions=1\n"
             /* unknown, and completed by a late answer of the same execution */
             "arrival at=5 tenant=a key=k4 payload=p no=41 does=run execution=e41 number=1\n"
             "attempt at=1..9 no=41 tenant=a key=k4 payload=p answer=504 word=unknown problem=outcome-unknown "
             "executed=unknown\n"
             "attempt at=30..31 no=42 tenant=a key=k4 payload=p answer=201 word=replayed execution=e41 body=b4 "
             "fields=f4\n"
             "status at=70..71 tenant=a key=k4 answer=200 state=completed executed=yes executions=1\n"
             /* declined, not reached, then executed as the third execution */
             "arrival at=5 tenant=a key=k5 payload=p no=51 does=decline execution=e51 number=1\n"
             "attempt at=1..9 no=51 tenant=a key=k5 payload=p answer=429 word=not-executed\n"
             "attempt at=10..11 no=52 tenant=a key=k5 payload=p answer=502 word=not-executed "
             "problem=upstream-not-reached "
             "executed=no\n"
             "status at=12..13 tenant=a key=k5 answer=200 state=released executed=no executions=2\n"
             "arrival at=15 tenant=a key=k5 payload=p no=53 does=run execution=e53 number=3\n"
             "attempt at=14..19 no=53 tenant=a key=k5 payload=p answer=201 word=executed execution=e53 body=b5 "
             "fields=f5\n"
             "status at=70..71 tenant=a key=k5 answer=200 state=completed executed=yes executions=3\n"
             /* declined, then voided; asked about before it was known */
             "status at=0..1 tenant=a key=k6 answer=404 problem=key-not-seen executed=unknown\n"
             "arrival at=5 tenant=a key=k6 payload=p no=61 does=decline execution=e61 number=1\n"
             "attempt at=2..9 no=61 tenant=a key=k6 payload=p answer=429 word=not-executed\n"
             "void at=10..11 tenant=a key=k6 answer=200 state=voided executed=no executions=1\n"
             "attempt at=12..13 no=62 tenant=a key=k6 payload=p answer=422 word=refused problem=key-voided "
             "executed=no\n"
             "status at=70..71 tenant=a key=k6 answer=200 state=voided executed=no executions=1\n"
             /* another tenant's key of the same name, and a void that came too late */
             "arrival at=5 tenant=b key=k payload=p no=71 does=run execution=e71 number=1\n"
             "attempt at=1..9 no=71 tenant=b key=k payload=p answer=201 word=executed execution=e71 body=b7 fields=f7\n"
             "void at=10..11 tenant=b key=k answer=422 problem=not-voidable state=completed executed=yes\n"
             "status at=70..71 tenant=b key=k answer=200 state=completed executed=yes executions=1\n"
             "plan fault=kill\nfault fault=kill\nfault fault=kill\n" QUIET;

START_TEST(a_clean_history_breaks_no_rule_and_is_counted)
{
    struct checker_report report;
    struct buf told;
    check_text(clean, &report);
    buf_init(&told, 10000);
    checker_write(&report, &told);
    ck_assert_msg(told.len == 0, "%.*s", (int) told.len, told.ptr);
    ck_assert_uint_eq(report.faults_all, 0);
    ck_assert_uint_eq(report.keys, 7);
    ck_assert_uint_eq(report.attempts, 18);
    ck_assert_uint_eq(report.arrivals, 7);
    ck_assert_uint_eq(report.executions, 5);
    ck_assert_uint_eq(report.acknowledged, 5);
    ck_assert_uint_eq(report.unknown, 1);
    ck_assert_uint_eq(report.voided, 1);
    ck_assert_uint_eq(report.unanswered, 3);
    buf_fini(&told);
}
END_TEST

static const struct {
    const char *name, *broken, *text;
} planted[] = {
    { "executed twice, the first time unanswered", "R1",
      LOST RUN "arrival at=20 tenant=a key=k payload=p no=2 does=run execution=e2 number=2\n"
               "attempt at=19..22 no=2 tenant=a key=k payload=p answer=201 word=executed execution=e2\n" QUIET STATUS(
                   "70..71", "completed", "yes", "2") },
    { "sent again behind an execution, and declined then", "R1",
      LOST RUN "arrival at=20 tenant=a key=k payload=p no=2 does=decline execution=e2 number=2\n"
               "attempt at=19..22 no=2 tenant=a key=k payload=p answer=504 word=unknown\n" QUIET STATUS(
                   "70..71", "unknown", "unknown", "2") },
    { "the store does not have the execution", "R2",
      LOST RUN QUIET "status at=70..71 tenant=a key=k answer=200 state=unknown executed=unknown\n" },
    { "nobody asked in the end", "R2 R11", LOST RUN QUIET },
    { "the replay has another body", "R3",
      RUN EXECUTED QUIET COMPLETED
      "attempt at=11..12 no=2 tenant=a key=k payload=p answer=201 word=replayed execution=e1 body=b2 fields=f1\n" },
    { "the replay has another status", "R3",
      RUN EXECUTED QUIET COMPLETED
      "attempt at=11..12 no=2 tenant=a key=k payload=p answer=200 word=replayed execution=e1 body=b1 fields=f1\n" },
    { "the replay has another field", "R3",
      RUN EXECUTED QUIET COMPLETED
      "attempt at=11..12 no=2 tenant=a key=k payload=p answer=201 word=replayed execution=e1 body=b1 fields=f2\n" },
    { "the answer and its replay are alike, and not what the handler made", "R3",
      "arrival at=5 tenant=a key=k payload=p no=1 does=run execution=e1 number=1 body=b0\n" EXECUTED REPLAYED(
          "11..12", "2") QUIET COMPLETED },
    { "the replay is of an answer in which the handler broke off", "R3",
      "arrival at=5 tenant=a key=k payload=p no=1 does=break execution=e1 number=1 body=b1\n" LOST REPLAYED(
          "11..12", "2") QUIET COMPLETED },
    { "a recorded answer is unknown later", "R4 R8",
      RUN EXECUTED QUIET UNKNOWN
      "attempt at=11..12 no=2 tenant=a key=k payload=p answer=504 word=unknown problem=outcome-unknown\n" },
    { "a recorded answer has expired at once", "R4",
      RUN EXECUTED QUIET COMPLETED
      "attempt at=11..12 no=2 tenant=a key=k payload=p answer=422 word=refused problem=key-expired\n" },
    { "an answer of another tenant's execution", "R5 R7",
      RUN EXECUTED QUIET COMPLETED
      "attempt at=11..12 no=2 tenant=b key=k payload=p answer=201 word=replayed execution=e1\n"
      "status at=70..71 tenant=b key=k answer=200 state=completed executions=1\n" },
    { "an answer of an execution that nobody made", "R5",
      RUN LOST QUIET UNKNOWN "attempt at=11..12 no=2 tenant=a key=k payload=p answer=422 word=refused execution=e9\n" },
    { "the handler got it as another tenant's", "R5",
      "attempt at=1.. no=1 tenant=b key=k payload=p\n"
      "status at=70..71 tenant=b key=k answer=404 problem=key-not-seen\n" RUN
      "attempt at=1.. no=2 tenant=a key=k payload=p\n" QUIET UNKNOWN },
    { "a status of a command that this tenant never sent", "R5",
      RUN EXECUTED QUIET COMPLETED "status at=70..71 tenant=b key=k answer=200 state=unknown executions=1\n" },
    { "another payload gets the answer", "R6",
      RUN EXECUTED QUIET COMPLETED
      "attempt at=11..12 no=2 tenant=a key=k payload=q answer=201 word=replayed execution=e1 body=b1 fields=f1\n" },
    { "another payload is told it is in progress", "R6",
      RUN LOST "attempt at=11..12 no=2 tenant=a key=k payload=q answer=409 word=in-progress\n" QUIET UNKNOWN },
    { "the same payload is refused as another", "R6",
      RUN EXECUTED QUIET COMPLETED
      "attempt at=11..12 no=2 tenant=a key=k payload=p answer=503 word=refused problem=key-reused\n" },
    { "the handler gets another payload than the client sent", "R6",
      LOST "arrival at=5 tenant=a key=k payload=q no=1 does=run execution=e1 number=1\n" QUIET UNKNOWN },
    { "not seen, though the handler had it", "R7",
      RUN LOST "status at=11..12 tenant=a key=k answer=404 problem=key-not-seen\n" QUIET UNKNOWN },
    { "completed, and it never arrived", "R7", LOST QUIET COMPLETED },
    { "released, and it ran", "R7", RUN LOST QUIET STATUS("70..71", "released", "no", "1") },
    { "executed: no, and it ran", "R7",
      RUN LOST "attempt at=11..12 no=2 tenant=a key=k payload=p answer=422 word=refused executed=no\n" QUIET UNKNOWN },
    { "voided, and it had run", "R7", RUN LOST QUIET STATUS("70..71", "voided", "unknown", "1") },
    { "in progress again behind unknown", "R8",
      RUN LOST STATUS("11..12", "unknown", "unknown", "1") STATUS("13..14", "in_progress", "unknown", "1")
          QUIET UNKNOWN },
    { "voided behind unknown", "R8",
      LOST STATUS("11..12", "unknown", "unknown", "1") QUIET STATUS("70..71", "voided", "unknown", "1") },
    { "executions are counted down", "R8",
      DECLINED STATUS("11..12", "released", "no", "2") QUIET STATUS("70..71", "released", "no", "1") },
    { "an execution has an earlier one's number", "R8",
      DECLINED "arrival at=20 tenant=a key=k payload=p no=2 does=run execution=e2 number=1\n"
               "attempt at=19.. no=2 tenant=a key=k payload=p\n" QUIET UNKNOWN },
    { "one attempt reached the handler twice", "R1 R9",
      RUN LOST "arrival at=6 tenant=a key=k payload=p no=1 does=run execution=e2 number=2\n" QUIET STATUS(
          "70..71", "unknown", "unknown", "2") },
    { "a repeat that is told 409 reached the handler", "R9",
      DECLINED "arrival at=20 tenant=a key=k payload=p no=2 does=run execution=e2 number=2\n"
               "attempt at=19..22 no=2 tenant=a key=k payload=p answer=409 word=in-progress\n" QUIET STATUS(
                   "70..71", "unknown", "unknown", "2") },
    { "told as executed twice", "R9",
      RUN EXECUTED QUIET COMPLETED
      "attempt at=11..12 no=2 tenant=a key=k payload=p answer=201 word=executed execution=e1 body=b1 fields=f1\n" },
    { "the handler got what nobody sent", "R9", RUN QUIET UNKNOWN "attempt at=0.. no=2 tenant=a key=k payload=p\n" },
    { "a refused attempt reached the handler", "R10",
      RUN "attempt at=1..9 no=1 tenant=a key=k payload=p answer=503 word=refused problem=unavailable\n" QUIET UNKNOWN },
    { "told as not reached, and it was", "R10",
      "arrival at=5 tenant=a key=k payload=p no=1 does=decline execution=e1 number=1\n"
      "attempt at=1..9 no=1 tenant=a key=k payload=p answer=502 word=not-executed problem=upstream-not-reached\n" QUIET
          STATUS("70..71", "released", "no", "1") },
    { "it ran after it was voided", "R8 R10",
      "void at=1..2 tenant=a key=k answer=200 state=voided executed=no\n"
      "attempt at=3.. no=1 tenant=a key=k payload=p\n" RUN QUIET UNKNOWN },
    { "asked in the end, and put off", "R11",
      LOST QUIET "status at=70..71 tenant=a key=k answer=503 problem=unavailable executed=unknown\n" },
    { "in progress for ever", "R11", RUN LOST QUIET STATUS("70..71", "in_progress", "unknown", "1") },
    { "no answer in the end", "R11", RUN LOST QUIET UNKNOWN "attempt at=60.. no=2 tenant=a key=k payload=p\n" },
    { "a history without its end", "R2 R11", RUN LOST UNKNOWN },
    { "a planned fault that was not met", "R12", "plan fault=kill\nfault fault=pause\n" QUIET },
};

START_TEST(a_planted_violation_is_found_by_its_rule)
{
    struct checker_report report;
    check_text(planted[_i].text, &report);
    const char *broken = broken_rules(&report);
    struct buf told;
    buf_init(&told, 10000);
    checker_write(&report, &told);
    ck_assert_msg(strcmp(broken, planted[_i].broken) == 0, "%s: expected %s, got '%s':\n%.*s", planted[_i].name,
                  planted[_i].broken, broken, (int) told.len, told.ptr);
    buf_fini(&told);
}
END_TEST

START_TEST(every_rule_has_a_planted_violation)
{
    for (int rule = 1; rule < CHECKER_RULES; rule++) {
        char name[8];
        bool alone = false;
        (void) snprintf(name, sizeof name, "R%d", rule);
        for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
            alone = alone || strncmp(planted[i].broken, name, strlen(name)) == 0;
        }
        ck_assert_msg(alone, "no planted violation of %s", name);
    }
}
END_TEST

START_TEST(a_history_is_written_as_it_was_read)
{
    struct history history;
    struct buf text;
    buf_init(&text, 100000);
    history_init(&history);
    static const char lines[] = "arrival at=5 tenant=a key=k payload=p number=1 no=1 does=run execution=e1\n"
                                "attempt at=1..9 no=1 tenant=a answer=201 word=executed\n"
                                "attempt at=1.. no=2\n"
                                "quiet at=50\nplan fault=kill\n";
    ck_assert_uint_eq(history_read(&history, view_of(lines)), 0);
    for (size_t i = 0; i < history.count; i++) {
        history_write_event(&history.events[i], &text);
    }
    buf_append_bytes(&text, "", 1);
    ck_assert_str_eq(text.ptr, "arrival at=5 no=1 tenant=a key=k payload=p does=run number=1 execution=e1\n"
                               "attempt at=1..9 no=1 tenant=a answer=201 word=executed\n"
                               "attempt at=1.. no=2\n"
                               "quiet at=50\nplan fault=kill\n");
    ck_assert_int_eq(history.events[2].to == HISTORY_NEVER, 1);
    history_fini(&history);
    buf_fini(&text);
}
END_TEST

static const struct {
    const char *text;
    size_t line; /* 0: read */
} texts[] = {
    { "", 0 },
    { "# said\n\nquiet at=1\n", 0 },
    { "quiet at=1\nattempt at=1..2 no=3 ten", 0 }, /* a killed writer's */
    { "quiet at=1\nattempt at=2..1\n", 2 },
    { "attempt at=x\n", 1 },
    { "attempt 1\n", 1 },
    { "attempt colour=red\n", 1 },
    { "attempt no=-1\n", 1 },
    { "attempt no=4294967296\n", 1 },
    { "attempt word=0123456789012345678901234\n", 1 },
    { "something at=1\n", 1 },
};

START_TEST(a_line_that_is_not_understood_is_named)
{
    struct history history;
    history_init(&history);
    ck_assert_uint_eq(history_read(&history, view_of(texts[_i].text)), texts[_i].line);
    history_fini(&history);
}
END_TEST

START_TEST(the_hash_of_a_head_leaves_out_what_is_of_one_telling)
{
    char first[HISTORY_WORD_MAX], replay[HISTORY_WORD_MAX], other[HISTORY_WORD_MAX];
    history_hash_head(VIEW("HTTP/1.1 201 Created\r\nDate: x\r\nA: b\r\nC: d\r\nIdempotency-Status: executed"), first);
    history_hash_head(VIEW("HTTP/1.1 201 Created\r\nC: d\r\nA: b\r\nIdempotent-Replayed: true\r\n"
                           "idempotency-status: replayed\r\nDate: y"),
                      replay);
    history_hash_head(VIEW("HTTP/1.1 201 Created\r\nA: b\r\nC: e"), other);
    ck_assert_str_eq(first, replay);
    ck_assert_str_ne(first, other);
}
END_TEST

SUITE(checker)
{
    Suite *suite = suite_create("proof/checker");
    CASE(suite, a_clean_history_breaks_no_rule_and_is_counted);
    CASE_LOOP(suite, a_planted_violation_is_found_by_its_rule, sizeof planted / sizeof planted[0]);
    CASE(suite, every_rule_has_a_planted_violation);
    CASE(suite, a_history_is_written_as_it_was_read);
    CASE_LOOP(suite, a_line_that_is_not_understood_is_named, sizeof texts / sizeof texts[0]);
    CASE(suite, the_hash_of_a_head_leaves_out_what_is_of_one_telling);
    return suite;
}
