/* retention_test.c - how long what is remembered (docs/contract.md 9.1 to 9.7), through the whole server: its clock stands still but where a test
 * moves it, so every end is met to the millisecond, a month away. Executions are counted at the handler. */
#include "tests/support/caller.h"
#include "tests/support/rig.h"

#define STATUS "/_nonbis/v1/command"
#define RESPONSE "/_nonbis/v1/command/response"
#define VOID "/_nonbis/v1/command/void"

#define START "2030-01-01T00:00:00Z" /* a Tuesday */

static const struct peer_step held_done[] = { { PEER_BODY, NULL, 0 },
                                              { PEER_WAIT, NULL, 0 },
                                              { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                              PEER_END };
static const struct peer_step held_lost[] = {
    { PEER_BODY, NULL, 0 }, { PEER_WAIT, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END
};
static const struct peer_step lost[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };
static const struct peer_step held_busy[] = { { PEER_BODY, NULL, 0 },
                                              { PEER_WAIT, NULL, 0 },
                                              { PEER_SEND, "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", 0 },
                                              PEER_END };

static struct rig rig;

static struct http_answer ask(const char *method, const char *target, const char *key)
{
    char fields[128];
    (void) snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n", key);
    return http_request(rig.address, method, target, fields, NULL);
}

/* NULL: the field is not there. */
static void expect_field(const struct http_answer *answer, const char *name, const char *value)
{
    char seen[128] = "(none)";
    bool there = http_field(answer, name, seen, sizeof seen);
    ck_assert_msg(value == NULL ? !there : there && strcmp(seen, value) == 0, "%s: %s instead of %s", name, seen,
                  value != NULL ? value : "(none)");
}

/* 200 and these texts in their order. */
static void expect_told(const char *key, const char *const *texts, const char *expires)
{
    struct http_answer answer = ask("GET", STATUS, key);
    ck_assert_msg(answer.status == 200, "%d: %s", answer.status, answer.body);
    for (const char *at = answer.body; *texts != NULL; texts++) {
        at = strstr(at, *texts);
        ck_assert_msg(at != NULL, "%s is not in its place in %s", *texts, answer.body);
    }
    expect_field(&answer, "Idempotency-Expires", expires);
    http_answer_free(&answer);
}
#define EXPECT_TOLD(key, expires, ...) expect_told((key), (const char *const[]){ __VA_ARGS__, NULL }, (expires))

static void expect_not_seen(const char *key)
{
    struct http_answer answer = ask("GET", STATUS, key);
    ck_assert_msg(answer.status == 404 && strstr(answer.body, ":key-not-seen\"") != NULL, "%d: %s", answer.status,
                  answer.body);
    http_answer_free(&answer);
}

static void post(const char *key, int status, const char *word, const char *expires)
{
    struct http_answer answer = http_post(rig.address, "/orders", key, "x");
    RIG_EXPECT(answer, status, word);
    expect_field(&answer, "Idempotency-Expires", expires);
    http_answer_free(&answer);
}

/* A sweep is due a second of the moved clock after the last one; a request of any kind wakes the store thread, which looks at the clock behind
 * it. */
static void sweep(const char *line)
{
    struct http_answer nudge = ask("GET", STATUS, "nobody");
    ck_assert_int_eq(nudge.status, 404);
    http_answer_free(&nudge);
    ck_assert_msg(daemon_wait_logged(&rig.nonbis, line), "'%s' was not logged, see %s", line, rig.nonbis.log_path);
}

/* --- the ends of every kind of record --- */

/* One point in a record's life. */
struct stage {
    int64_t at_ms;       /* after its outcome */
    const char *body;    /* of a POST then; "x" is the command's own */
    int status;          /* of its answer */
    const char *word;    /* likewise */
    const char *problem; /* likewise; NULL: none */
    const char *expires; /* Idempotency-Expires, of the POST and of the status */
    const char *
        state; /* what the status tells, before and after the POST; NULL: it is the new command of the POST, and before it nothing */
    const char *times;
    const char *swept; /* what the log says once a sweep has come by; NULL: nothing is due */
};

/* Claimed at 2030-01-01T00:00:00.000Z; the outcome, or the void, a minute later. */
static const struct life {
    const char *what, *target;
    const struct peer_step *script; /* NULL: voided, unseen */
    bool crash;
    int first_status; /* 0: no answer */
    const char *first_word, *first_expires;
    unsigned executions; /* at the handler before the free stage */
    struct stage stages[5];
} lives[] = {
#define FORGOTTEN "sweep message=\"expired=0 forgotten=1 "
#define EXPIRED "sweep message=\"expired=1 forgotten=0 "
#define COMPLETED_AT "\"created_at\":\"2030-01-01T00:00:00.000Z\",\"completed_at\":\"2030-01-01T00:01:00.000Z\","
#define CRASHED_AT "\"created_at\":\"2030-01-01T00:00:00.000Z\",\"completed_at\":null,"
#define TWO_ENDS COMPLETED_AT "\"expires_at\":\"2030-01-02T00:01:00.000Z\",\"cause\":null"
#define TWO_PAY_ENDS COMPLETED_AT "\"expires_at\":\"2030-01-01T01:01:00.000Z\",\"cause\":null"
#define IS_COMPLETED "\"state\":\"completed\",\"executed\":\"yes\",\"executions\":1,"
#define IS_EXPIRED "\"state\":\"expired\",\"executed\":\"yes\",\"executions\":1,"
#define IS_UNKNOWN "\"state\":\"unknown\",\"executed\":\"unknown\",\"executions\":1,"
#define IS_LOST "\"state\":\"expired\",\"executed\":\"unknown\",\"executions\":1,"
    { .what = "completed",
      .target = "/orders",
      .script = held_done,
      .first_status = 201,
      .first_word = "executed",
      .first_expires = "Wed, 02 Jan 2030 00:01:00 GMT",
      .executions = 1,
      .stages = { { 1, "x", 201, "replayed", NULL, "Wed, 02 Jan 2030 00:01:00 GMT", IS_COMPLETED, TWO_ENDS, NULL },
                  { MOVED_DAY - 1, "x", 201, "replayed", NULL, "Wed, 02 Jan 2030 00:01:00 GMT", IS_COMPLETED, TWO_ENDS,
                    NULL },
                  { MOVED_DAY, "x", 422, "refused", ":key-expired\"", NULL, IS_EXPIRED, TWO_ENDS, EXPIRED },
                  { 30 * MOVED_DAY - 1, "x", 422, "refused", ":key-expired\"", NULL, IS_EXPIRED, TWO_ENDS, NULL },
                  { 30 * MOVED_DAY, "y", 200, "executed", NULL, "Fri, 01 Feb 2030 00:01:00 GMT", NULL,
                    "\"created_at\":\"2030-01-31T00:01:00.000Z\"", FORGOTTEN } } },
    { .what = "completed, route options",
      .target = "/pay",
      .script = held_done,
      .first_status = 201,
      .first_word = "executed",
      .first_expires = "Tue, 01 Jan 2030 01:01:00 GMT",
      .executions = 1,
      .stages = { { MOVED_HOUR - 1, "x", 201, "replayed", NULL, "Tue, 01 Jan 2030 01:01:00 GMT", IS_COMPLETED,
                    TWO_PAY_ENDS, NULL },
                  { MOVED_HOUR, "x", 422, "refused", ":key-expired\"", NULL, IS_EXPIRED, TWO_PAY_ENDS, EXPIRED },
                  { 2 * MOVED_DAY - 1, "y", 422, "refused", ":key-reused\"", NULL, IS_EXPIRED, TWO_PAY_ENDS, NULL },
                  { 2 * MOVED_DAY - 1, "x", 422, "refused", ":key-expired\"", NULL, IS_EXPIRED, TWO_PAY_ENDS, NULL },
                  { 2 * MOVED_DAY, "y", 200, "executed", NULL, "Thu, 03 Jan 2030 01:01:00 GMT", NULL,
                    "\"created_at\":\"2030-01-03T00:01:00.000Z\"", FORGOTTEN } } },
    { .what = "unknown",
      .target = "/orders",
      .script = held_lost,
      .first_status = 504,
      .first_word = "unknown",
      .executions = 1,
      .stages = { { 30 * MOVED_DAY - 1, "x", 504, "unknown", ":outcome-unknown\"", NULL, IS_UNKNOWN,
                    COMPLETED_AT "\"expires_at\":null,\"cause\":\"reset\"", NULL },
                  { 30 * MOVED_DAY, "x", 422, "refused", ":key-expired\"", NULL, IS_LOST,
                    COMPLETED_AT "\"expires_at\":null,\"cause\":\"reset\"", EXPIRED },
                  { 60 * MOVED_DAY - 1, "x", 422, "refused", ":key-expired\"", NULL, IS_LOST,
                    COMPLETED_AT "\"expires_at\":null,\"cause\":\"reset\"", NULL },
                  { 60 * MOVED_DAY, "y", 200, "executed", NULL, "Sun, 03 Mar 2030 00:01:00 GMT", NULL,
                    "\"created_at\":\"2030-03-02T00:01:00.000Z\"", FORGOTTEN } } },
    { .what = "unknown, route options",
      .target = "/pay",
      .script = held_lost,
      .first_status = 504,
      .first_word = "unknown",
      .executions = 1,
      .stages = { { 2 * MOVED_DAY - 1, "x", 504, "unknown", ":outcome-unknown\"", NULL, IS_UNKNOWN, COMPLETED_AT,
                    NULL },
                  { 2 * MOVED_DAY, "x", 422, "refused", ":key-expired\"", NULL, IS_LOST, COMPLETED_AT, EXPIRED },
                  { 4 * MOVED_DAY - 1, "x", 422, "refused", ":key-expired\"", NULL, IS_LOST, COMPLETED_AT, NULL },
                  { 4 * MOVED_DAY, "y", 200, "executed", NULL, "Sat, 05 Jan 2030 01:01:00 GMT", NULL,
                    "\"created_at\":\"2030-01-05T00:01:00.000Z\"", FORGOTTEN } } },
    { .what = "unknown after a crash",
      .target = "/orders",
      .script = held_done,
      .crash = true,
      .executions = 1,
      .stages = { { 30 * MOVED_DAY - 1, "x", 504, "unknown", ":outcome-unknown\"", NULL, IS_UNKNOWN,
                    CRASHED_AT "\"expires_at\":null,\"cause\":\"crash\"", NULL },
                  { 30 * MOVED_DAY, "x", 422, "refused", ":key-expired\"", NULL, IS_LOST, CRASHED_AT, EXPIRED },
                  { 60 * MOVED_DAY - 1, "x", 422, "refused", ":key-expired\"", NULL, IS_LOST, CRASHED_AT, NULL },
                  { 60 * MOVED_DAY, "y", 200, "executed", NULL, "Sun, 03 Mar 2030 00:01:00 GMT", NULL,
                    "\"created_at\":\"2030-03-02T00:01:00.000Z\"", FORGOTTEN } } },
    { .what = "released",
      .target = "/orders",
      .script = held_busy,
      .first_status = 429,
      .first_word = "not-executed",
      .executions = 1,
      .stages = { { MOVED_DAY - 1, "y", 422, "refused", ":key-reused\"", NULL,
                    "\"state\":\"released\",\"executed\":\"no\",\"executions\":1,",
                    COMPLETED_AT "\"expires_at\":null,\"cause\":null", NULL },
                  { MOVED_DAY, "y", 200, "executed", NULL, "Thu, 03 Jan 2030 00:01:00 GMT", NULL,
                    "\"created_at\":\"2030-01-02T00:01:00.000Z\"", FORGOTTEN } } },
    { .what = "released, route options",
      .target = "/pay",
      .script = held_busy,
      .first_status = 429,
      .first_word = "not-executed",
      .executions = 1,
      .stages = { { MOVED_HOUR - 1, "y", 422, "refused", ":key-reused\"", NULL,
                    "\"state\":\"released\",\"executed\":\"no\",\"executions\":1,", COMPLETED_AT, NULL },
                  { MOVED_HOUR, "y", 200, "executed", NULL, "Tue, 01 Jan 2030 02:01:00 GMT", NULL,
                    "\"created_at\":\"2030-01-01T01:01:00.000Z\"", FORGOTTEN } } },
    { .what = "voided",
      .target = "/orders",
      .stages = { { 30 * MOVED_DAY - 1, "x", 422, "refused", ":key-voided\"", NULL,
                    "\"state\":\"voided\",\"executed\":\"no\",\"executions\":0,",
                    "\"created_at\":\"2030-01-01T00:01:00.000Z\",\"completed_at\":\"2030-01-01T00:01:00.000Z\","
                    "\"expires_at\":null,\"cause\":null",
                    NULL },
                  { 30 * MOVED_DAY, "y", 200, "executed", NULL, "Fri, 01 Feb 2030 00:01:00 GMT", NULL,
                    "\"created_at\":\"2030-01-31T00:01:00.000Z\"", FORGOTTEN } } },
};
enum { LIVES = sizeof lives / sizeof lives[0] };

static const char *const life_settings[] = {
    "--route", "POST /pay ttl=1h tombstone_ttl=48h", "--route", "POST /*", "--log-level", "debug", NULL
};

struct first_caller {
    pthread_t thread;
    const char *target;
    struct http_answer answer;
};

static void *first_caller_run(void *context)
{
    struct first_caller *caller = context;
    caller->answer = http_post(rig.address, caller->target, "k", "x");
    return NULL;
}

/* Up to its outcome: a minute goes by meanwhile. */
static void life_begin(const struct life *life)
{
    struct first_caller caller = { .target = life->target };
    if (life->script == NULL) {
        clock_hand_pass(&rig.clock, MOVED_MINUTE);
        struct http_answer voided = ask("POST", VOID, "k");
        ck_assert_int_eq(voided.status, 200);
        http_answer_free(&voided);
        return;
    }
    peer_script_for_request(rig.peer, 1, life->script);
    ck_assert_int_eq(pthread_create(&caller.thread, NULL, first_caller_run, &caller), 0);
    ck_assert(peer_wait_stalled(rig.peer, 1));
    if (life->crash) {
        daemon_kill(&rig.nonbis);
        clock_hand_pass(&rig.clock, MOVED_MINUTE);
        rig_restart(&rig, life_settings);
    } else {
        clock_hand_pass(&rig.clock, MOVED_MINUTE);
    }
    peer_release(rig.peer, 1);
    ck_assert_int_eq(pthread_join(caller.thread, NULL), 0);
    RIG_EXPECT(caller.answer, life->first_status, life->first_word != NULL ? life->first_word : "");
    expect_field(&caller.answer, "Idempotency-Expires", life->first_expires);
    http_answer_free(&caller.answer);
}

static void life_stage(const struct life *life, const struct stage *stage, bool swept)
{
    bool is_free = stage->state == NULL;
    if (swept) {
        if (stage->swept != NULL) {
            sweep(stage->swept);
        }
        if (is_free) {
            expect_not_seen("k");
        } else {
            EXPECT_TOLD("k", stage->expires, stage->state, stage->times);
        }
    }
    struct http_answer answer = http_post(rig.address, life->target, "k", stage->body);
    RIG_EXPECT(answer, stage->status, stage->word);
    ck_assert_msg(stage->problem == NULL || strstr(answer.body, stage->problem) != NULL, "%s", answer.body);
    expect_field(&answer, "Idempotency-Expires", stage->expires);
    http_answer_free(&answer);
    EXPECT_TOLD("k", stage->expires, is_free ? IS_COMPLETED : stage->state, stage->times);
    ck_assert_uint_eq(peer_count_key(rig.peer, "k"), life->executions + (is_free ? 1 : 0));
}

/* Index: row, and whether a sweep has come by at the end of each time, or the first to notice is the client (9.7). */
START_TEST(every_record_is_kept_for_its_time_to_the_millisecond_and_then_the_key_is_free)
{
    const struct life *life = &lives[_i / 2];
    int64_t now_ms = 0;
    rig_start_at(&rig, START, life_settings);
    life_begin(life);
    for (int i = 0; i < 5 && life->stages[i].body != NULL; i++) {
        if (_i % 2 == 1 && life->stages[i].swept == NULL) {
            continue; /* the sweep that came by then would leave none due a millisecond later */
        }
        clock_hand_pass(&rig.clock, life->stages[i].at_ms - now_ms);
        now_ms = life->stages[i].at_ms;
        life_stage(life, &life->stages[i], _i % 2 == 1);
    }
    rig_end(&rig);
}
END_TEST

/* 9.1 for the other resources: what a repeat is told, the stored answer's own path is told as well. */
START_TEST(the_stored_answer_is_given_until_its_time_is_over)
{
    rig_start_at(&rig, START, NULL);
    post("k", 200, "executed", "Wed, 02 Jan 2030 00:00:00 GMT");
    clock_hand_pass(&rig.clock, MOVED_DAY - 1);
    struct http_answer kept = ask("GET", RESPONSE, "k");
    ck_assert_int_eq(kept.status, 200);
    ck_assert_str_eq(kept.body, "ok");
    expect_field(&kept, "Idempotency-Expires", "Wed, 02 Jan 2030 00:00:00 GMT");
    clock_hand_pass(&rig.clock, 1);
    struct http_answer expired = ask("GET", RESPONSE, "k");
    ck_assert_int_eq(expired.status, 422);
    ck_assert_ptr_nonnull(strstr(expired.body, ":key-expired\""));
    expect_field(&expired, "Idempotency-Expires", NULL);
    struct http_answer voided = ask("POST", VOID, "k");
    ck_assert_int_eq(voided.status, 422);
    ck_assert_ptr_nonnull(strstr(voided.body, ":not-voidable\""));
    ck_assert_ptr_nonnull(strstr(voided.body, "\"state\":\"expired\""));
    clock_hand_pass(&rig.clock, 29 * MOVED_DAY);
    struct http_answer gone = ask("GET", RESPONSE, "k");
    ck_assert_int_eq(gone.status, 404);
    struct http_answer voidable = ask("POST", VOID, "k"); /* a key that is free */
    ck_assert_int_eq(voidable.status, 200);
    ck_assert_uint_eq(peer_count_key(rig.peer, "k"), 1);
    http_answer_free(&kept);
    http_answer_free(&expired);
    http_answer_free(&voided);
    http_answer_free(&gone);
    http_answer_free(&voidable);
    rig_end(&rig);
}
END_TEST

/* --- 9.4 --- */

START_TEST(a_running_command_is_never_removed_by_age_and_its_late_outcome_counts)
{
    static const char *const more[] = { "--log-level", "debug", NULL };
    struct caller caller;
    rig_start_at(&rig, START, more);
    peer_script_for_request(rig.peer, 1, held_done);
    caller_start(&caller, rig.address, "k");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    peer_script_default(rig.peer, lost);
    EXPECT_TOLD("k", NULL, "\"state\":\"in_progress\"", "\"completed_at\":null,\"expires_at\":null,\"cause\":null");
    post("other", 504, "unknown", NULL);                 /* so that a sweep has something to say */
    clock_hand_pass(&rig.clock, 125 * MOVED_SECOND - 1); /* hard_timeout, and 5 s for recording (6.15) */
    post("k", 409, "in-progress", NULL);
    clock_hand_pass(&rig.clock, 1);
    post("k", 504, "unknown", NULL);
    clock_hand_pass(&rig.clock, MOVED_YEAR);
    sweep(FORGOTTEN);
    post("k", 504, "unknown", NULL);
    EXPECT_TOLD("k", NULL, "\"state\":\"unknown\",\"executed\":\"unknown\"",
                "\"created_at\":\"2030-01-01T00:00:00.000Z\",\"completed_at\":null,\"expires_at\":null,"
                "\"cause\":\"timeout\"");
    peer_release(rig.peer, 1);
    caller_join(&caller);
    RIG_EXPECT(caller.answer, 201, "executed");
    expect_field(&caller.answer, "Idempotency-Expires", "Thu, 02 Jan 2031 00:02:05 GMT");
    post("k", 201, "replayed", "Thu, 02 Jan 2031 00:02:05 GMT");
    EXPECT_TOLD("k", "Thu, 02 Jan 2031 00:02:05 GMT", IS_COMPLETED,
                "\"created_at\":\"2030-01-01T00:00:00.000Z\",\"completed_at\":\"2031-01-01T00:02:05.000Z\","
                "\"expires_at\":\"2031-01-02T00:02:05.000Z\",\"cause\":null");
    ck_assert_uint_eq(peer_count_key(rig.peer, "k"), 1);
    http_answer_free(&caller.answer);
    rig_end(&rig);
}
END_TEST

/* --- 9.5 --- */

#define SET_TIMES(ttl, tombstone_ttl)                                                                                  \
    (const char *const[])                                                                                              \
    {                                                                                                                  \
        "--set", "ttl=" ttl, "--set", "tombstone_ttl=" tombstone_ttl, NULL                                             \
    }

static void restart_with(const char *const *more)
{
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    rig_restart(&rig, more);
}

START_TEST(times_that_are_stored_are_not_shortened_by_a_later_setting)
{
    rig_start_at(&rig, START, SET_TIMES("48h", "720h"));
    post("old", 200, "executed", "Thu, 03 Jan 2030 00:00:00 GMT");
    struct http_answer voided = ask("POST", VOID, "voided");
    ck_assert_int_eq(voided.status, 200);
    restart_with(SET_TIMES("1h", "2h"));
    post("new", 200, "executed", "Tue, 01 Jan 2030 01:00:00 GMT");
    clock_hand_pass(&rig.clock, 2 * MOVED_HOUR);
    post("new", 200, "executed", "Tue, 01 Jan 2030 03:00:00 GMT"); /* the new setting is in force, for new ones */
    clock_hand_pass(&rig.clock, 46 * MOVED_HOUR - 1);
    post("old", 200, "replayed", "Thu, 03 Jan 2030 00:00:00 GMT");
    clock_hand_pass(&rig.clock, 1);
    post("old", 422, "refused", NULL);
    clock_hand_pass(&rig.clock, 28 * MOVED_DAY - 1);
    post("old", 422, "refused", NULL);
    post("voided", 422, "refused", NULL);
    clock_hand_pass(&rig.clock, 1);
    post("old", 200, "executed", "Thu, 31 Jan 2030 01:00:00 GMT");
    post("voided", 200, "executed", "Thu, 31 Jan 2030 01:00:00 GMT");
    ck_assert_uint_eq(peer_count_key(rig.peer, "old"), 2);
    ck_assert_uint_eq(peer_count_key(rig.peer, "voided"), 1);
    ck_assert_uint_eq(peer_count_key(rig.peer, "new"), 2);
    http_answer_free(&voided);
    rig_end(&rig);
}
END_TEST

START_TEST(times_that_are_stored_are_not_lengthened_by_a_later_setting)
{
    rig_start_at(&rig, START, SET_TIMES("1h", "2h"));
    post("old", 200, "executed", "Tue, 01 Jan 2030 01:00:00 GMT");
    restart_with(SET_TIMES("48h", "720h"));
    post("old", 200, "replayed", "Tue, 01 Jan 2030 01:00:00 GMT");
    post("new", 200, "executed", "Thu, 03 Jan 2030 00:00:00 GMT");
    clock_hand_pass(&rig.clock, MOVED_HOUR);
    post("old", 422, "refused", NULL);
    clock_hand_pass(&rig.clock, MOVED_HOUR);
    post("old", 200, "executed", "Thu, 03 Jan 2030 02:00:00 GMT");
    post("new", 200, "replayed", "Thu, 03 Jan 2030 00:00:00 GMT");
    ck_assert_uint_eq(peer_count_key(rig.peer, "old"), 2);
    rig_end(&rig);
}
END_TEST

/* What a released command was promised counts on when it is claimed again under shorter times. */
START_TEST(a_released_command_that_completes_later_keeps_what_it_was_promised_before)
{
    rig_start_at(&rig, START, SET_TIMES("48h", "720h"));
    peer_release(rig.peer, 1);
    peer_script_for_request(rig.peer, 1, held_busy);
    post("k", 429, "not-executed", NULL);
    restart_with(SET_TIMES("1h", "2h"));
    post("k", 200, "executed", "Thu, 03 Jan 2030 00:00:00 GMT");
    clock_hand_pass(&rig.clock, 2 * MOVED_DAY - 1);
    post("k", 200, "replayed", "Thu, 03 Jan 2030 00:00:00 GMT");
    clock_hand_pass(&rig.clock, 1);
    post("k", 200, "executed", "Thu, 03 Jan 2030 01:00:00 GMT");
    ck_assert_uint_eq(peer_count_key(rig.peer, "k"), 3);
    rig_end(&rig);
}
END_TEST

SUITE(retention)
{
    Suite *suite = suite_create("integration/retention");
    CASE_LOOP(suite, every_record_is_kept_for_its_time_to_the_millisecond_and_then_the_key_is_free, 2 * LIVES);
    CASE(suite, the_stored_answer_is_given_until_its_time_is_over);
    CASE(suite, a_running_command_is_never_removed_by_age_and_its_late_outcome_counts);
    CASE(suite, times_that_are_stored_are_not_shortened_by_a_later_setting);
    CASE(suite, times_that_are_stored_are_not_lengthened_by_a_later_setting);
    CASE(suite, a_released_command_that_completes_later_keeps_what_it_was_promised_before);
    return suite;
}
