/* log_test.c - the lines about requests: by them an operator finds the request that a client complains of, and the ones that need a look. */
#include "tests/support/rig.h"
#include "tests/support/small_disk.h"

#include <sys/stat.h>
#include <unistd.h>

static struct rig rig;
static char line[4096];

/* The newest line that holds `text`, which is waited for. */
static const char *line_with(const char *text)
{
    char more[4096];
    ck_assert_msg(daemon_wait_logged(&rig.nonbis, text), "'%s' is not in %s", text, rig.nonbis.log_path);
    FILE *log = fopen(rig.nonbis.log_path, "r");
    line[0] = '\0';
    while (fgets(more, sizeof more, log) != NULL) {
        if (strstr(more, text) != NULL) {
            (void) snprintf(line, sizeof line, "%s", more);
        }
    }
    (void) fclose(log);
    return line;
}

#define HOLDS(wanted) ck_assert_msg(strstr(line, (wanted)) != NULL, "'%s' is not in: %s", (wanted), line)
#define LACKS(unwanted) ck_assert_msg(strstr(line, (unwanted)) == NULL, "'%s' is in: %s", (unwanted), line)

/* " request=95e8ff43-1 " from "instance":"urn:nonbis:request:95e8ff43-1" of the answer. */
static const char *request_of(const struct http_answer *answer)
{
    static char text[128];
    const char *instance = strstr(answer->body, "urn:nonbis:request:");
    ck_assert_ptr_nonnull(instance);
    instance += strlen("urn:nonbis:request:");
    (void) snprintf(text, sizeof text, " request=%.*s ", (int) strcspn(instance, "\""), instance);
    return text;
}

/* " command=ID" from the Link of the answer. */
static const char *command_of(const struct http_answer *answer)
{
    static char text[128];
    char link[256] = "";
    (void) http_field(answer, "Link", link, sizeof link);
    const char *id = strstr(link, "/commands/");
    ck_assert_ptr_nonnull(id);
    (void) snprintf(text, sizeof text, " command=%.32s", id + strlen("/commands/"));
    return text;
}

START_TEST(a_repeat_and_a_refusal_name_the_command_the_problem_and_the_request)
{
    rig_start(&rig, NULL);
    struct http_answer first = http_post(rig.address, "/orders?token=secret", "k-1", "x");
    RIG_EXPECT(first, 200, "executed");
    (void) line_with("result=executed");
    HOLDS(" info  exchange ");
    HOLDS(command_of(&first));
    HOLDS(" path=/orders ");
    LACKS("secret");
    LACKS(" problem=");
    LACKS(" request=");
    struct http_answer replay = http_post(rig.address, "/orders?token=secret", "k-1", "x");
    RIG_EXPECT(replay, 200, "replayed");
    (void) line_with("result=replayed");
    HOLDS(command_of(&first));
    HOLDS(" path=/orders ");
    LACKS(" execution=");
    struct http_answer other = http_post(rig.address, "/orders?token=secret", "k-1", "y");
    RIG_EXPECT(other, 422, "refused");
    (void) line_with("problem=key-reused");
    HOLDS("result=refused status=422 ");
    HOLDS(" differs=body ");
    HOLDS(command_of(&first));
    HOLDS(request_of(&other));
    struct http_answer stranger = http_request(rig.address, "POST", "/orders?token=secret",
                                               "Idempotency-Key: k-1\r\nAuthorization: Bearer other\r\n", "x");
    RIG_EXPECT(stranger, 422, "refused");
    (void) line_with("differs=credentials");
    LACKS(" command="); /* whose it is, is nobody else's business */
    HOLDS(request_of(&stranger));
    http_answer_free(&first);
    http_answer_free(&replay);
    http_answer_free(&other);
    http_answer_free(&stranger);
    rig_end(&rig);
}
END_TEST

START_TEST(an_outcome_that_nobody_knows_is_a_warning)
{
    static const struct peer_step cut[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };
    const char *const more[] = { "--log-level", "warn", NULL };
    rig_start(&rig, more);
    struct http_answer good = http_post(rig.address, "/orders", "k-0", "x");
    RIG_EXPECT(good, 200, "executed");
    peer_script_default(rig.peer, cut);
    struct http_answer unknown = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(unknown, 504, "unknown");
    (void) line_with("result=unknown");
    HOLDS(" warn  exchange ");
    HOLDS(" problem=outcome-unknown ");
    HOLDS(request_of(&unknown));
    HOLDS(" execution=1 ");
    /* The repeat is told the same, but it is no news. */
    struct http_answer again = http_post(rig.address, "/orders", "k-1", "x");
    RIG_EXPECT(again, 504, "unknown");
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    ck_assert_int_eq(daemon_count_logged(&rig.nonbis, " exchange "), 1);
    http_answer_free(&good);
    http_answer_free(&unknown);
    http_answer_free(&again);
    peer_free(rig.peer);
}
END_TEST

START_TEST(a_refusal_names_method_path_and_request)
{
    rig_start(&rig, NULL);
    struct http_answer missing = http_request(rig.address, "POST", "/orders/7?token=secret", NULL, "x");
    RIG_EXPECT(missing, 400, "");
    (void) line_with("problem=key-missing");
    HOLDS(" refused ");
    HOLDS(" method=POST path=/orders/7 ");
    HOLDS(request_of(&missing));
    LACKS("secret");
    struct http_answer status = http_request(rig.address, "GET", "/_nonbis/v1/commands/00?token=secret", NULL, NULL);
    ck_assert_int_eq(status.status, 404);
    (void) line_with("result=key-not-seen");
    HOLDS(" query ");
    HOLDS(" method=GET path=/_nonbis/v1/commands/00\n");
    HOLDS(request_of(&status));
    LACKS("secret");
    struct http_answer nothing = http_request(rig.address, "GET", "/_nonbis/x", NULL, NULL);
    ck_assert_int_eq(nothing.status, 404);
    ck_assert_ptr_nonnull(strstr(nothing.body, "there is nothing at this path"));
    http_answer_free(&missing);
    http_answer_free(&status);
    http_answer_free(&nothing);
    rig_end(&rig);
}
END_TEST

START_TEST(a_pass_through_line_has_a_word_a_reason_and_the_request)
{
    static const struct peer_step cut[] = { { PEER_RESET, NULL, 0 }, PEER_END };
    rig_start(&rig, NULL);
    struct http_answer good = http_request(rig.address, "GET", "/a?token=secret", NULL, NULL);
    RIG_EXPECT(good, 200, "");
    (void) line_with(" relay result=passed status=200 ");
    HOLDS(" method=GET path=/a ");
    LACKS("secret");
    LACKS(" why=");
    LACKS(" request=");
    peer_script_default(rig.peer, cut);
    struct http_answer bad = http_request(rig.address, "GET", "/b", NULL, NULL);
    RIG_EXPECT(bad, 502, "");
    (void) line_with(" relay result=failed status=502 why=\"");
    HOLDS(" path=/b ");
    HOLDS(request_of(&bad));
    http_answer_free(&good);
    http_answer_free(&bad);
    rig_end(&rig);
}
END_TEST

/* --- the record before and after an attempt, and where its time went --- */

/* The `times`-th line about a keyed request, which is the newest. */
static void exchange_line(int times)
{
    ck_assert(daemon_wait_logged_times(&rig.nonbis, " exchange ", times));
    (void) line_with(" exchange ");
}

static const struct peer_step usual[] = { { PEER_BODY, NULL, 0 },
                                          { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0 },
                                          PEER_END };
static const struct peer_step reset[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };
static const struct peer_step busy[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 429 Busy\r\nContent-Length: 0\r\n\r\n", 0 },
                                         PEER_END };
static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                         PEER_END };
static const struct peer_step held_and_busy[] = { { PEER_BODY, NULL, 0 },
                                                  { PEER_WAIT, NULL, 0 },
                                                  { PEER_SEND, "HTTP/1.1 429 Busy\r\nContent-Length: 0\r\n\r\n", 0 },
                                                  PEER_END };

/* One after the other. */
static const struct state_row {
    const char *key, *fields, *body; /* NULL: too large a body */
    const struct peer_step *script;
    int status;
    const char *word, *result, *states;
    bool looked, forwarded; /* a time that is not 0 */
} state_rows[] = {
    { "k-1", "", "x", usual, 200, "executed", " result=executed ", " before=not_seen after=completed ", true, true },
    { "k-1", "", "x", usual, 200, "replayed", " result=replayed ", " before=completed after=completed ", true, false },
    /* The store was asked for neither of these two: the answer was replayed before (setting replay_cache). */
    { "k-1", "", "y", usual, 422, "refused", " problem=key-reused ", " before=completed after=completed ", false,
      false },
    { "k-1", "Authorization: b\r\n", "x", usual, 422, "refused", " differs=credentials ",
      " before=completed after=completed ", false, false },
    { "k-2", "", "x", reset, 504, "unknown", " result=unknown ", " before=not_seen after=unknown ", true, true },
    { "k-2", "", "x", usual, 504, "unknown", " result=unknown ", " before=unknown after=unknown ", true, false },
    { "k-3", "", "x", busy, 429, "not-executed", " result=not-executed ", " before=not_seen after=released ", true,
      true },
    { "k-3", "", "y", usual, 422, "refused", " problem=key-reused ", " before=released after=released ", true, false },
    { "k-3", "", "x", usual, 200, "executed", " execution=2 ", " before=released after=completed ", true, true },
    { "k-4", "", "x", usual, 422, "refused", " problem=key-voided ", " before=voided after=voided ", true, false },
    { "k-5", "", NULL, usual, 413, "refused", " problem=body-too-large ", "", false, false },
};
enum { STATE_ROWS = sizeof state_rows / sizeof state_rows[0] };

static void expect_state_row(const struct state_row *row)
{
    HOLDS(row->result);
    if (row->states[0] != '\0') {
        HOLDS(row->states);
    } else {
        LACKS(" before=");
        LACKS(" after=");
    }
    if (row->looked) {
        LACKS(" claim_us=0 ");
    } else {
        HOLDS(" claim_us=0 ");
    }
    if (row->forwarded) {
        LACKS(" upstream_us=0 ");
        LACKS(" store_us=0 ");
    } else {
        HOLDS(" upstream_us=0 store_us=0 ");
    }
    HOLDS(" claim_us=");
    HOLDS(" upstream_us=");
    HOLDS(" store_us=");
    HOLDS(" total_us=");
    LACKS("_us=-");
    LACKS(" total_us=0");
    LACKS(" waited_us=");
    LACKS(" loop=");
}

START_TEST(a_line_tells_the_record_before_and_after_and_where_the_time_went)
{
    char large[2048];
    /* Chunked, so that it is an exchange before it is too large. */
    int large_len = snprintf(large, sizeof large,
                             "POST /orders HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k-5\r\nTransfer-Encoding: chunked"
                             "\r\n\r\n401\r\n%01025d\r\n0\r\n\r\n",
                             0);
    const char *const more[] = { "--set", "server.loops=1", "--set", "body_max=1KiB", NULL };
    rig_start(&rig, more);
    struct http_answer voided =
        http_request(rig.address, "POST", "/_nonbis/v1/command/void", "Idempotency-Key: k-4\r\n", "");
    ck_assert_int_eq(voided.status, 200);
    http_answer_free(&voided);
    for (int i = 0; i < STATE_ROWS; i++) {
        const struct state_row *row = &state_rows[i];
        char fields[256];
        struct http_answer answer;
        peer_script_default(rig.peer, row->script);
        (void) snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n%s", row->key, row->fields);
        if (row->body != NULL) {
            answer = http_request(rig.address, "POST", "/orders", fields, row->body);
        } else {
            int fd = http_connect(rig.address);
            ck_assert(http_send(fd, large, (size_t) large_len));
            answer = http_receive(fd, false, NULL);
            close(fd);
        }
        RIG_EXPECT(answer, row->status, row->word);
        http_answer_free(&answer);
        exchange_line(i + 1);
        expect_state_row(row);
    }
    rig_end(&rig);
}
END_TEST

START_TEST(an_expired_command_is_expired_before_and_after)
{
    /* One loop, so that lines stand in the order of the requests. */
    const char *const more[] = { "--set", "server.loops=1", "--set", "ttl=1s", NULL };
    rig_start_at(&rig, "2030-01-01T00:00:00Z", more);
    struct http_answer done = http_post(rig.address, "/orders", "k", "x");
    RIG_EXPECT(done, 200, "executed");
    clock_hand_pass(&rig.clock, 1000);
    struct http_answer expired = http_post(rig.address, "/orders", "k", "x");
    RIG_EXPECT(expired, 422, "refused");
    exchange_line(2);
    http_answer_free(&done);
    http_answer_free(&expired);
    HOLDS(" problem=key-expired ");
    HOLDS(" before=expired after=expired ");
    rig_end(&rig);
}
END_TEST

static int post(const char *fields)
{
    char request[256];
    int fd = http_connect(rig.address);
    int len =
        snprintf(request, sizeof request,
                 "POST /orders HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\n%sContent-Length: 1\r\n\r\nx", fields);
    ck_assert(fd >= 0 && http_send(fd, request, (size_t) len));
    return fd;
}

static void expect_at(int fd, int status, const char *word)
{
    struct http_answer answer = http_receive(fd, false, NULL);
    RIG_EXPECT(answer, status, word);
    http_answer_free(&answer);
    close(fd);
}

/* How the command ends that somebody waits for; the first caller is on loop 0, the waiter on loop 1. */
static const struct {
    const struct peer_step *script;
    int first_status;
    const char *first_word;
    int status;
    const char *word, *result, *states;
} wait_rows[] = {
    { held, 201, "executed", 201, "replayed", " result=replayed ", " before=in_progress after=completed " },
    { held_and_busy, 429, "not-executed", 429, "not-executed", " result=not-executed ",
      " before=in_progress after=released " },
};

START_TEST(whoever_waited_tells_for_how_long_and_what_came_of_the_other_one)
{
    const char *const more[] = { "--set", "server.loops=2", "--log-level", "debug", NULL };
    rig_start(&rig, more);
    peer_script_default(rig.peer, wait_rows[_i].script);
    int first = post("");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    int waiter = post("Prefer: wait=20\r\n");
    ck_assert(daemon_wait_logged(&rig.nonbis, "waits for the end"));
    /* A third one, again on loop 0, is told at once; a fourth waits in vain for one second, on loop 1. */
    expect_at(post(""), 409, "in-progress");
    exchange_line(1);
    HOLDS(" result=in-progress ");
    HOLDS(" before=in_progress after=in_progress ");
    HOLDS(" upstream_us=0 store_us=0 ");
    HOLDS(" loop=0\n");
    LACKS(" waited_us=");
    LACKS(" claim_us=0 ");
    expect_at(post("Prefer: wait=1\r\n"), 409, "in-progress");
    exchange_line(2);
    HOLDS(" result=in-progress ");
    HOLDS(" before=in_progress after=in_progress ");
    HOLDS(" loop=1\n");
    const char *waited = strstr(line, " waited_us=");
    ck_assert_ptr_nonnull(waited);
    long waited_us = strtol(waited + strlen(" waited_us="), NULL, 10);
    long total_us = strtol(strstr(line, " total_us=") + strlen(" total_us="), NULL, 10);
    /* The wait ends a second after the turn of the loop began that began it, which may be some time before; the request came before both. */
    ck_assert_msg(total_us >= 990000 && waited_us >= 500000 && waited_us <= total_us && waited_us < 20000000,
                  "waited %ld us: %s", waited_us, line);
    peer_release(rig.peer, 1);
    expect_at(first, wait_rows[_i].first_status, wait_rows[_i].first_word);
    expect_at(waiter, wait_rows[_i].status, wait_rows[_i].word);
    ck_assert(daemon_wait_logged_times(&rig.nonbis, " exchange ", 4));
    (void) line_with(wait_rows[_i].states);
    HOLDS(wait_rows[_i].result);
    HOLDS(" waited_us=");
    HOLDS(" upstream_us=0 store_us=0 ");
    HOLDS(" loop=1\n");
    LACKS(" execution=");
    rig_end(&rig);
}
END_TEST

/* The disk is a small file system of this test's own. */
START_TEST(a_full_disk_is_told_once_and_every_refused_claim_is_one_line)
{
    char disk[700];
    (void) snprintf(disk, sizeof disk, "%s/disk", daemon_folder());
    ck_assert_int_eq(setenv("NONBIS_STORE_RESERVE", "1MiB", 1), 0);
    if (!small_disk_open(disk, "32m")) {
        return;
    }
    rig.peer = peer_new();
    (void) snprintf(rig.store, sizeof rig.store, "%.500s/n.db", disk);
    rig_restart(&rig, NULL);
    ck_assert(daemon_logged(&rig.nonbis, "is in memory (tmpfs): a power loss or a reboot forgets every key"));
    small_disk_fill(disk);
    int refused = 0;
    for (int i = 0; i < 300 && refused < 5; i++) { /* the first ones fit into what the files have of room */
        char key[16];
        (void) snprintf(key, sizeof key, "k-%d", i);
        struct http_answer answer = http_post(rig.address, "/orders", key, "x");
        refused += answer.status == 503;
        http_answer_free(&answer);
    }
    ck_assert_int_eq(refused, 5);
    ck_assert(daemon_wait_logged_times(&rig.nonbis, "reason=store store_result=full", 5));
    ck_assert_int_eq(daemon_count_logged(&rig.nonbis, "reason=store store_result=full"), 5);
    ck_assert_int_eq(daemon_count_logged(&rig.nonbis, "Z error store "), 1);
    ck_assert(!daemon_logged(&rig.nonbis, " sqlite "));
    ck_assert(daemon_wait_logged(&rig.nonbis, "disk-nearly-full\"\n"));
    small_disk_make_room(disk);
    ck_assert(daemon_wait_logged(&rig.nonbis, "info  readiness message=on"));
    ck_assert_int_eq(daemon_count_logged(&rig.nonbis, " readiness "), 2);
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    peer_free(rig.peer);
    small_disk_end(disk);
}
END_TEST

SUITE(log_lines)
{
    Suite *suite = suite_create("integration/log");
    CASE(suite, a_repeat_and_a_refusal_name_the_command_the_problem_and_the_request);
    CASE(suite, an_outcome_that_nobody_knows_is_a_warning);
    CASE(suite, a_refusal_names_method_path_and_request);
    CASE(suite, a_pass_through_line_has_a_word_a_reason_and_the_request);
    CASE(suite, a_line_tells_the_record_before_and_after_and_where_the_time_went);
    CASE(suite, an_expired_command_is_expired_before_and_after);
    CASE_LOOP(suite, whoever_waited_tells_for_how_long_and_what_came_of_the_other_one,
              sizeof wait_rows / sizeof wait_rows[0]);
    CASE(suite, a_full_disk_is_told_once_and_every_refused_claim_is_one_line);
    return suite;
}
