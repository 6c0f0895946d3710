/* s04_order_test.c - docs/contract.md section 4: the order of the checks, and what the rules below it say. s04b_malformed_test.c has check 1. */
#include "tests/contract/held.h"
#include "tests/support/crowd.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

/* --- the order --- */

/* One byte more than body_max, declared only: the answer comes before it. */
#define TOO_LARGE "Content-Length: 1048577\r\n"

struct order_row {
    const char *name, *target, *fields;
    int status;
    const char *word, *problem;
};
/* Each fails two checks or more; the tenant is X-Tenant, and Via names this nonbisd where %s stands. */
static const struct order_row order_rows[] = {
    { "1 before 2, own path", "/_nonbis/nowhere", "Content-Type: a\r\nContent-Type: b\r\n", 400, "",
      "request-malformed" },
    { "1 before 2, loop", "/orders", "Via: %s\r\nContent-Type: a\r\nContent-Type: b\r\n", 400, "",
      "request-malformed" },
    { "1 before 3 and 4", "/orders", "Expect: other\r\n", 400, "", "request-malformed" },
    { "2 before 3, own path", "/_nonbis/nowhere", "", 404, "", "not-found" },
    { "2 before 3, loop", "/orders", "Via: %s\r\n", 508, "", "loop-detected" },
    { "2 before 3, path", "/orders/../orders", "", 400, "", "request-malformed" },
    { "3 before 4, no key", "/orders", "", 401, "", "tenant-missing" },
    { "3 before 4, bad key", "/orders", "Idempotency-Key: a b\r\n", 401, "", "tenant-missing" },
    { "3 before 5", "/orders", "Idempotency-Key: a\r\n" TOO_LARGE, 401, "", "tenant-missing" },
    { "4 before 5, no key", "/orders", "X-Tenant: a\r\n" TOO_LARGE, 400, "", "key-missing" },
    { "4 before 5, bad key", "/orders", "X-Tenant: a\r\nIdempotency-Key: a b\r\n" TOO_LARGE, 400, "refused",
      "key-malformed" },
};

/* What a request that has passed through carries. */
static const char *own_via(void)
{
    EXPECT(ask("GET", "/open", NULL, NULL), 200, "");
    return handler_saw_field(1, "Via");
}

START_TEST(section_4_the_first_check_that_finds_something_answers)
{
    const struct order_row *row = &order_rows[_i];
    const char *via = own_via();
    const char *mark = strstr(row->fields, "%s");
    const char *fields =
        mark == NULL ? row->fields : text("%.*s%s%s", (int) (mark - row->fields), row->fields, via, mark + 2);
    const char *length = strstr(fields, "Content-Length") != NULL ? "" : "Content-Length: 0\r\n";
    const char *bytes = text("POST %s HTTP/1.1\r\nHost: a\r\n%s%s\r\n", row->target, fields, length);
    EXPECT_PROBLEM(ask_raw(bytes, strlen(bytes)), row->status, row->word, row->problem);
    ck_assert_uint_eq(peer_count_requests(scene.peer), 1);
}
END_TEST

START_TEST(section_4_the_declared_length_is_checked_before_the_record_is_read)
{
    EXPECT(post_with("4-5", "", "x"), 200, "executed");
    const char *bytes =
        "POST /orders HTTP/1.1\r\nHost: test.example\r\nAuthorization: Bearer other\r\nIdempotency-Key: "
        "4-5\r\n" TOO_LARGE "\r\n";
    EXPECT_PROBLEM(ask_raw(bytes, strlen(bytes)), 413, "refused", "body-too-large");
}
END_TEST

START_TEST(section_4_only_behind_the_declared_length_an_expectation_is_answered)
{
    int informational = 0;
    int fd = http_connect(scene.address);
    const char *large = "POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: 4-expect\r\nExpect: "
                        "100-continue\r\n" TOO_LARGE "\r\n";
    ck_assert(http_send(fd, large, strlen(large)));
    EXPECT_PROBLEM(keep_answer(http_receive(fd, false, &informational)), 413, "refused", "body-too-large");
    ck_assert_int_eq(informational, 0);
    close(fd);
    fd = http_connect(scene.address);
    const char *head = "POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: 4-expect\r\nExpect: "
                       "100-continue\r\nContent-Length: 1\r\n\r\n";
    char line[26] = "";
    ck_assert(http_send(fd, head, strlen(head)));
    ck_assert_int_eq(read(fd, line, 25), 25);
    ck_assert_str_eq(line, "HTTP/1.1 100 Continue\r\n\r\n");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
    ck_assert(http_send(fd, "x", 1));
    EXPECT(keep_answer(http_receive(fd, false, NULL)), 200, "executed");
    close(fd);
}
END_TEST

START_TEST(section_4_a_chunked_body_over_the_limit_is_refused_as_it_arrives)
{
    enum { CHUNK = 0x10000 };
    static char chunk[CHUNK + 3];
    memset(chunk, 'x', CHUNK);
    memcpy(chunk + CHUNK, "\r\n", 3);
    int fd = http_connect(scene.address);
    const char *head = "POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: 4-6\r\nTransfer-Encoding: "
                       "chunked\r\n\r\n";
    ck_assert(http_send(fd, head, strlen(head)));
    for (int i = 0; i < 17; i++) { /* 64 KiB over body_max */
        (void) http_send(fd, "10000\r\n", 7);
        (void) http_send(fd, chunk, CHUNK + 2);
    }
    (void) http_send(fd, "0\r\n\r\n", 5);
    EXPECT_PROBLEM(keep_answer(http_receive(fd, false, NULL)), 413, "refused", "body-too-large");
    close(fd);
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
    EXPECT_PROBLEM(get_status("4-6", ""), 404, "", "key-not-seen");
}
END_TEST

START_TEST(section_4_a_body_of_exactly_body_max_is_taken)
{
    enum { BODY_MAX = 1024 * 1024 };
    char *body = calloc(1, BODY_MAX + 1);
    memset(body, 'x', BODY_MAX);
    EXPECT(post("4-max", body), 200, "executed");
    free(body);
}
END_TEST

START_TEST(section_4_trailers_are_dropped)
{
    EXPECT(ASK_RAW("POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: 4-trailer\r\nTransfer-Encoding: "
                   "chunked\r\n\r\n1\r\nx\r\n0\r\nX-Trailer: t\r\n\r\n"),
           200, "executed");
    ck_assert_ptr_null(strstr(handler_saw(1), "X-Trailer"));
}
END_TEST

/* --- the rules below it --- */

START_TEST(rule_4_4_the_connection_is_closed_after_a_chunked_request_and_nothing_behind_it_runs)
{
    static const char *const heads[] = { "POST /orders HTTP/1.1\r\nIdempotency-Key: 4.4\r\n",
                                         "PUT /open HTTP/1.1\r\n" };
    for (int i = 0; i < 2; i++) {
        const char *bytes = text("%sHost: test.example\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
                                 "GET /behind HTTP/1.1\r\nHost: test.example\r\n\r\n",
                                 heads[i]);
        int fd = http_connect(scene.address);
        ck_assert(http_send(fd, bytes, strlen(bytes)));
        const struct http_answer *answer = keep_answer(http_receive(fd, false, NULL));
        EXPECT(answer, 200, i == 0 ? "executed" : "");
        EXPECT_FIELD(answer, "Connection", "close");
        ck_assert(http_closes(fd));
        close(fd);
        ck_assert_uint_eq(peer_count_requests(scene.peer), (unsigned) i + 1);
    }
}
END_TEST

START_TEST(rule_4_4_lf_between_chunks_is_taken_for_cr_lf)
{
    EXPECT(ASK_RAW("POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: 4.4-lf\r\nTransfer-Encoding: "
                   "chunked\r\n\r\n3\nabc\n0\n\r\n"),
           200, "executed");
    EXPECT(post_with("4.4-lf", "", "abc"), 200, "replayed");
}
END_TEST

START_TEST(rule_4_5_a_body_whose_end_does_not_come_leaves_no_trace)
{
    char line[26] = "";
    int fd = http_connect(scene.address);
    const char *head = "POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: 4.5\r\nExpect: "
                       "100-continue\r\nContent-Length: 3\r\n\r\n";
    ck_assert(http_send(fd, head, strlen(head)));
    ck_assert_int_eq(read(fd, line, 25), 25); /* it is being read */
    ck_assert(http_send(fd, "ab", 2));
    EXPECT_PROBLEM(get_status("4.5", ""), 404, "", "key-not-seen");
    close(fd);
    ck_assert(daemon_wait_logged(&scene.nonbis, "result=incomplete-request"));
    EXPECT_PROBLEM(get_status("4.5", ""), 404, "", "key-not-seen");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
    EXPECT(post_with("4.5", "", "any other body"), 200, "executed");
}
END_TEST

START_TEST(rule_4_6_a_mismatch_goes_before_in_progress)
{
    struct caller caller;
    handler_holds("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    hold(&caller, "4.6");
    EXPECT_PROBLEM(post("4.6", "x"), 409, "in-progress", "in-progress");
    EXPECT_PROBLEM(post("4.6", "y"), 422, "refused", "key-reused");
    EXPECT_PROBLEM(post_with("4.6", "Authorization: Bearer b\r\n", "x"), 422, "refused", "key-reused");
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "executed");
    EXPECT_RUNS("4.6", 1);
}
END_TEST

START_TEST(rule_4_7_record_and_claim_are_one_atomic_step)
{
    enum { MANY = 16, ROUNDS = 4 };
    static struct crowd_member members[MANY];
    for (int round = 0; round < ROUNDS; round++) {
        const char *key = text("4.7-%d", round);
        int executed = 0;
        for (int i = 0; i < MANY; i++) {
            members[i] = (struct crowd_member){ .address = scene.address, .body = "x" };
            (void) snprintf(members[i].key, sizeof members[i].key, "%s", key);
        }
        crowd_run(members, MANY);
        for (int i = 0; i < MANY; i++) {
            executed += http_field_is(&members[i].answer, "Idempotency-Status", "executed");
            ck_assert(members[i].answer.status == 200 || members[i].answer.status == 409);
        }
        ck_assert_int_eq(executed, 1);
        EXPECT_RUNS(key, 1);
        crowd_free(members, MANY);
    }
}
END_TEST

START_TEST(rule_4_7_the_claim_is_durable_before_anything_is_forwarded)
{
    struct caller caller;
    SCENE_START(NULL);
    handler_holds("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    hold(&caller, "k");
    daemon_kill(&scene.nonbis);
    ck_assert_int_eq(join(&caller)->status, 0);
    SCENE_RESTART(NULL);
    EXPECT_PROBLEM(post("k", "x"), 504, "unknown", "outcome-unknown");
    EXPECT_RUNS("k", 1);
    scene_end();
}
END_TEST

START_TEST(rule_4_7_while_the_claim_is_not_durable_nothing_is_forwarded_and_no_copy_is_told_of_it)
{
    enum { COPIES = 8 };
    int copies[COPIES], executed = 0;
    held_start();
    sync_hand_hold(&held_disk);
    int before = held_send(HELD_POST("before"));
    held_wait_taken();
    for (int i = 0; i < COPIES; i++) {
        copies[i] = held_send(HELD_POST("k"));
    }
    held_wait_queued(COPIES, 0);
    sync_hand_let_one(&held_disk);
    sync_hand_expect(&held_disk); /* all of them are one batch */
    held_pass_through();
    EXPECT_RUNS("k", 0);
    for (int i = 0; i < COPIES; i++) {
        held_expect_silence(copies[i]);
    }
    sync_hand_let_all(&held_disk);
    for (int i = 0; i < COPIES; i++) {
        const struct http_answer *answer = keep_answer(http_receive(copies[i], false, NULL));
        executed += http_field_is(answer, "Idempotency-Status", "executed");
        ck_assert(answer->status == 200 || answer->status == 409);
        close(copies[i]);
    }
    close(before);
    ck_assert_int_eq(executed, 1);
    EXPECT_RUNS("k", 1);
    scene_end();
}
END_TEST

START_TEST(rule_4_8_while_new_work_is_refused_replays_and_status_queries_go_on)
{
    struct caller caller;
    SCENE_START("--set", "running_max=1");
    EXPECT(post("done", "x"), 200, "executed");
    handler_holds("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    hold(&caller, "running");
    for (int i = 0; i < 2; i++) { /* for want of room; then for the drain */
        const struct http_answer *fresh = post("new", "x");
        EXPECT_PROBLEM(fresh, 503, "refused", "unavailable");
        ck_assert_str_eq(member_of(fresh, "reason"), i == 0 ? "\"overloaded\"" : "\"draining\"");
        EXPECT(post("done", "x"), 200, "replayed");
        EXPECT_PROBLEM(post("done", "y"), 422, "refused", "key-reused");
        EXPECT_PROBLEM(post("running", "x"), 409, "in-progress", "in-progress");
        ck_assert_int_eq(get_status("done", "")->status, 200);
        ck_assert_int_eq(get_response("done")->status, 200);
        EXPECT_PROBLEM(get_status("new", ""), 404, "", "key-not-seen");
        if (i == 0) {
            daemon_signal(&scene.nonbis, SIGTERM);
            ck_assert(daemon_wait_logged(&scene.nonbis, "drain"));
        }
    }
    peer_release(scene.peer, 1);
    EXPECT(join(&caller), 201, "executed");
    ck_assert_int_eq(daemon_wait(&scene.nonbis), 0);
    EXPECT_RUNS("new", 0);
    peer_free(scene.peer);
}
END_TEST

/* More at once than the store's queue takes: new ones may be refused; a repeat of what is known is answered all the same, since a look-up does not
 * need the room of a claim. */
START_TEST(rule_4_8_a_claim_that_finds_the_queue_full_is_still_looked_up)
{
    enum { MANY = 48, ROUNDS = 50 };
    static struct crowd_member members[MANY];
    int overloaded = 0;
    unsigned executed = 1;
    SCENE_START("--set", "store_queue_max=1");
    EXPECT(post("done", "x"), 200, "executed");
    for (int round = 0; round < ROUNDS && overloaded == 0; round++) {
        for (int i = 0; i < MANY; i++) {
            members[i] = (struct crowd_member){ .address = scene.address, .body = "x" };
            (void) snprintf(members[i].key, sizeof members[i].key, "new-%d-%d", round, i);
        }
        (void) snprintf(members[0].key, sizeof members[0].key, "done");
        crowd_run(members, MANY);
        for (int i = 1; i < MANY; i++) {
            overloaded += members[i].answer.status == 503;
            executed += members[i].answer.status == 200;
        }
        /* One look-up at a time is this store's budget, too: whoever finds no room there either is told so, and never that the key is new. */
        bool replayed = http_field_is(&members[0].answer, "Idempotency-Status", "replayed");
        ck_assert_msg(replayed || members[0].answer.status == 503, "status %d", members[0].answer.status);
        crowd_free(members, MANY);
    }
    ck_assert_int_gt(overloaded, 0);
    ck_assert_uint_eq(peer_count_requests(scene.peer), executed);
    EXPECT_RUNS("done", 1);
    scene_end();
}
END_TEST

/* Sends a byte now and then until the other side ends the connection, and expects that it does so without an answer. */
static void trickle_until_closed(const char *head)
{
    int fd = http_connect(scene.address);
    struct pollfd ended = { .fd = fd, .events = POLLIN };
    ck_assert(http_send(fd, head, strlen(head)));
    for (int i = 0; i < 2000 && poll(&ended, 1, 10) == 0; i++) {
        (void) http_send(fd, "x", 1);
    }
    ck_assert(http_closes(fd));
    close(fd);
}

START_TEST(rule_4_9_a_head_or_a_body_that_is_not_whole_in_time_ends_the_connection_without_an_answer)
{
    SCENE_START("--set", "header_deadline=100ms", "--set", "body_deadline=100ms");
    trickle_until_closed("");
    trickle_until_closed("POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: k\r\nX: ");
    trickle_until_closed("POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: k\r\nContent-Length: "
                         "1000000\r\n\r\n");
    EXPECT_PROBLEM(get_status("k", ""), 404, "", "key-not-seen");
    ck_assert_uint_eq(peer_count_requests(scene.peer), 0);
    scene_end();
}
END_TEST

SUITE(contract_order)
{
    Suite *suite = suite_create("contract/04-order");
    RULE_ROWS(suite, house_tenants, section_4_the_first_check_that_finds_something_answers, order_rows);
    RULE(suite, house_plain, section_4_the_declared_length_is_checked_before_the_record_is_read);
    RULE(suite, house_plain, section_4_only_behind_the_declared_length_an_expectation_is_answered);
    RULE(suite, house_plain, section_4_a_chunked_body_over_the_limit_is_refused_as_it_arrives);
    RULE(suite, house_plain, section_4_a_body_of_exactly_body_max_is_taken);
    RULE(suite, house_plain, section_4_trailers_are_dropped);
    RULE(suite, house_plain, rule_4_4_the_connection_is_closed_after_a_chunked_request_and_nothing_behind_it_runs);
    RULE(suite, house_plain, rule_4_4_lf_between_chunks_is_taken_for_cr_lf);
    RULE(suite, house_plain, rule_4_5_a_body_whose_end_does_not_come_leaves_no_trace);
    RULE(suite, house_plain, rule_4_6_a_mismatch_goes_before_in_progress);
    RULE(suite, house_plain, rule_4_7_record_and_claim_are_one_atomic_step);
    RULE_ALONE(suite, rule_4_7_the_claim_is_durable_before_anything_is_forwarded);
    RULE_ALONE(suite, rule_4_7_while_the_claim_is_not_durable_nothing_is_forwarded_and_no_copy_is_told_of_it);
    RULE_ALONE(suite, rule_4_8_while_new_work_is_refused_replays_and_status_queries_go_on);
    RULE_ALONE(suite, rule_4_8_a_claim_that_finds_the_queue_full_is_still_looked_up);
    RULE_ALONE(suite, rule_4_9_a_head_or_a_body_that_is_not_whole_in_time_ends_the_connection_without_an_answer);
    return suite;
}
