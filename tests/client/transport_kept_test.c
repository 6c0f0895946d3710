/* transport_kept_test.c - connections that are kept: used again while they are young and silent, and never a reason for a second
 * sending. */
#include "client-sdk/src/transport_curl.h"
#include "tests/client/transport_probe.h"
#include "tests/peer/words.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CROWD = 8 };

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static const struct peer_step waits_and_answers[] = { DO(PEER_BODY), DO(PEER_WAIT), SAY(OK_ANSWER), PEER_END };
static const struct peer_step reads_and_closes[] = { DO(PEER_BODY), DO(PEER_CLOSE), PEER_END };
static const struct peer_step answers_and_closes[] = { DO(PEER_BODY), SAY(OK_ANSWER), DO(PEER_CLOSE), PEER_END };

/* ---- used again --------------------------------------------------------------------------------------------------- */

START_TEST(two_requests_use_one_connection_and_a_fresh_one_gets_its_own)
{
    struct probe probe;
    probe_open(&probe);
    probe_stop_clock();
    for (int i = 0; i < 2; i++) {
        probe_send(&probe);
        ck_assert(probe.facts.answer.whole);
    }
    ck_assert_uint_eq(peer_count_connections(probe.peer), 1);
    probe.request.fresh = true;
    probe_send(&probe);
    ck_assert_uint_eq(peer_count_connections(probe.peer), 2);
    ck_assert(peer_wait_ended(probe.peer, 1)); /* the first one is not kept besides */
    probe.request.fresh = false;
    probe_send(&probe);
    ck_assert_uint_eq(peer_count_connections(probe.peer), 2);
    ck_assert_uint_eq(peer_count_requests(probe.peer), 4);
    ck_assert_uint_eq(probe.asked, 4);
    probe_close(&probe);
}
END_TEST

START_TEST(a_connection_that_the_peer_closed_at_rest_is_replaced_before_anything_is_sent)
{
    struct probe probe;
    probe_open(&probe);
    probe_stop_clock();
    peer_script_for_request(probe.peer, 1, answers_and_closes);
    probe_send(&probe);
    ck_assert(probe.facts.answer.whole);
    ck_assert(peer_wait_ended(probe.peer, 1));
    probe_send(&probe);
    ck_assert_int_eq(probe.facts.code, 0);
    ck_assert_uint_eq(probe.facts.hook_calls, 1);
    ck_assert(probe.facts.answer.whole);
    ck_assert_uint_eq(peer_count_connections(probe.peer), 2);
    ck_assert_uint_eq(peer_count_requests(probe.peer), 2);
    probe_close(&probe);
}
END_TEST

/* libcurl 7.88 by itself takes the surplus for the answer to the next request. */
START_TEST(bytes_that_nobody_asked_for_are_not_the_next_answer)
{
    static const struct peer_step adds_one[] = { DO(PEER_BODY), SAY(OK_ANSWER), DO(PEER_WAIT),
                                                 SAY("HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nevil"),
                                                 PEER_END };
    struct probe probe;
    probe_open(&probe);
    probe_stop_clock();
    peer_script_for_request(probe.peer, 1, adds_one);
    probe_send(&probe);
    ck_assert_int_eq(probe.facts.answer.status, 200);
    ck_assert(peer_wait_stalled(probe.peer, 1));
    peer_release(probe.peer, 1);
    struct pollfd surplus = { .fd = probe_connected_fd(), .events = POLLIN };
    ck_assert_int_eq(poll(&surplus, 1, PEER_DEADLINE_MS), 1);
    probe_send(&probe);
    ck_assert_int_eq(probe.facts.answer.status, 200);
    ck_assert_uint_eq(peer_count_connections(probe.peer), 2);
    ck_assert_uint_eq(peer_count_requests(probe.peer), 2);
    probe_close(&probe);
}
END_TEST

START_TEST(a_connection_is_used_again_for_a_second_while_it_is_silent_and_leads_there)
{
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    struct http_session session = { .kept = pair[0], .kept_at_ms = 5000, .origin = 7 };
    ck_assert(http_session_may_reuse(&session, 7, 5000));
    ck_assert(http_session_may_reuse(&session, 7, 5999));
    ck_assert(!http_session_may_reuse(&session, 7, 6000));
    ck_assert(!http_session_may_reuse(&session, 8, 5000));
    ck_assert_int_eq(send(pair[1], "x", 1, 0), 1);
    ck_assert(!http_session_may_reuse(&session, 7, 5000));
    ck_assert_int_eq(recv(pair[0], &(char){ 0 }, 1, 0), 1);
    ck_assert(http_session_may_reuse(&session, 7, 5000));
    (void) close(pair[1]);
    ck_assert(!http_session_may_reuse(&session, 7, 5000));
    (void) close(pair[0]);
    session.kept = CURL_SOCKET_BAD;
    ck_assert(!http_session_may_reuse(&session, 7, 5000));
}
END_TEST

START_TEST(each_of_two_hosts_keeps_its_connection)
{
    struct probe probe;
    struct peer *other = peer_new();
    char here[200], there[200];
    probe_open(&probe);
    probe_stop_clock();
    (void) snprintf(here, sizeof here, "%s/orders", peer_url(probe.peer));
    (void) snprintf(there, sizeof there, "%s/orders", peer_url(other));
    for (int i = 0; i < 6; i++) {
        probe_aim(&probe, i % 2 == 0 ? here : there);
        probe_send(&probe);
        ck_assert(probe.facts.answer.whole);
    }
    ck_assert_uint_eq(peer_count_connections(probe.peer), 1);
    ck_assert_uint_eq(peer_count_requests(probe.peer), 3);
    ck_assert_uint_eq(peer_count_connections(other), 1);
    ck_assert_uint_eq(peer_count_requests(other), 3);
    probe_close(&probe);
    peer_free(other);
}
END_TEST

START_TEST(a_connection_is_not_used_again_after_an_answer_whose_end_is_in_doubt)
{
    static const struct peer_step two_lengths[] = {
        DO(PEER_BODY), SAY("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk"), PEER_END
    };
    struct probe probe;
    probe_open(&probe);
    probe_stop_clock();
    peer_script_for_request(probe.peer, 1, two_lengths);
    probe_send(&probe);
    ck_assert(!probe.facts.answer.whole);
    probe_send(&probe);
    ck_assert(probe.facts.answer.whole);
    ck_assert_uint_eq(peer_count_connections(probe.peer), 2);
    probe_close(&probe);
}
END_TEST

START_TEST(a_fresh_connection_asks_again_where_the_host_is)
{
    struct probe probe;
    probe_open(&probe);
    probe_stop_clock();
    (void) snprintf(probe.url, sizeof probe.url, "http://here.test:%u/orders", peer_port(probe.peer));
    for (unsigned i = 1; i <= 3; i++) {
        probe.request.fresh = i > 1;
        probe_send(&probe);
        ck_assert(probe.facts.answer.whole);
        ck_assert_uint_eq(probe_resolver_lookups(), i);
        ck_assert_uint_eq(peer_count_connections(probe.peer), i);
    }
    probe_close(&probe);
}
END_TEST

/* ---- a crowd ------------------------------------------------------------------------------------------------------ */

/* One of several threads that share the transport. */
struct member {
    struct probe *probe;
    pthread_t thread;
    char key[32];
    struct transport_facts facts;
    struct waker waker;
    bool begun;
};

static void *member_send(void *arg)
{
    struct member *member = arg;
    struct transport_field field = { "Idempotency-Key", member->key };
    struct transport_request request = member->probe->request;
    request.fields = &field;
    request.field_count = 1;
    request.before_send = NULL;
    request.waker = &member->waker;
    struct transport *transport = member->probe->transport;
    member->begun = transport->perform(transport, &request, &member->facts);
    return NULL;
}

static void crowd_start(struct probe *probe, struct member *crowd, unsigned from)
{
    for (unsigned i = 0; i < CROWD; i++) {
        struct member *member = &crowd[i];
        memset(member, 0, sizeof *member);
        member->probe = probe;
        (void) snprintf(member->key, sizeof member->key, "k-%u", from + i);
        transport_facts_init(&member->facts, PROBE_BODY_MAX);
        ck_assert(waker_init(&member->waker));
        ck_assert_int_eq(pthread_create(&member->thread, NULL, member_send, member), 0);
    }
}

static void crowd_join(struct member *crowd)
{
    for (unsigned i = 0; i < CROWD; i++) {
        ck_assert_int_eq(pthread_join(crowd[i].thread, NULL), 0);
        ck_assert(crowd[i].begun);
        waker_fini(&crowd[i].waker);
    }
}

static void crowd_clear(struct member *crowd)
{
    for (unsigned i = 0; i < CROWD; i++) {
        transport_facts_fini(&crowd[i].facts);
    }
}

/* Eight at the same time, so that eight connections are kept. */
static void crowd_warm(struct probe *probe, struct member *crowd)
{
    peer_script_default(probe->peer, waits_and_answers);
    crowd_start(probe, crowd, 100);
    ck_assert(peer_wait_stalled(probe->peer, CROWD));
    peer_release(probe->peer, CROWD);
    crowd_join(crowd);
    for (unsigned i = 0; i < CROWD; i++) {
        ck_assert(crowd[i].facts.answer.whole);
    }
    crowd_clear(crowd);
    ck_assert_uint_eq(peer_count_connections(probe->peer), CROWD);
}

START_TEST(eight_kept_connections_that_die_after_reading_are_one_sending_each)
{
    struct probe probe;
    struct member crowd[CROWD];
    probe_open(&probe);
    probe_stop_clock();
    crowd_warm(&probe, crowd);
    peer_script_default(probe.peer, reads_and_closes);
    crowd_start(&probe, crowd, 200);
    crowd_join(crowd);
    for (unsigned i = 0; i < CROWD; i++) {
        const struct transport_facts *facts = &crowd[i].facts;
        ck_assert_msg(facts->hook_calls == 2, "%u: %u calls of the hook, code %d: %s", i, facts->hook_calls,
                      facts->code, facts->message);
        ck_assert_int_eq(facts->code, 42);
        ck_assert_uint_eq(facts->bytes_sent, 112); /* the one that left; the key is two bytes longer */
        ck_assert_int_eq(facts->answer.status, 0);
        ck_assert_ptr_nonnull(strstr(facts->message, "libcurl was stopped from sending again"));
        ck_assert_uint_eq(peer_count_key(probe.peer, crowd[i].key), 1);
    }
    ck_assert_uint_eq(peer_count_requests(probe.peer), 2 * CROWD);
    crowd_clear(crowd);
    probe_close(&probe);
}
END_TEST

static size_t ignore_body(char *bytes, size_t size, size_t count, void *context)
{
    (void) bytes;
    (void) context;
    return size * count;
}

/* The same peer and the same requests by a plain libcurl: why all of this is done. */
START_TEST(a_plain_libcurl_sends_them_several_times)
{
    struct probe probe;
    CURL *easy[CROWD];
    probe_open(&probe);
    struct curl_slist *fields = curl_slist_append(NULL, "Idempotency-Key: k-1");
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < CROWD; i++) {
            easy[i] = round == 0 ? curl_easy_init() : easy[i];
            curl_easy_setopt(easy[i], CURLOPT_URL, probe.url);
            curl_easy_setopt(easy[i], CURLOPT_PROXY, "");
            curl_easy_setopt(easy[i], CURLOPT_NOSIGNAL, 1L);
            curl_easy_setopt(easy[i], CURLOPT_POSTFIELDS, "{}");
            curl_easy_setopt(easy[i], CURLOPT_HTTPHEADER, fields);
            curl_easy_setopt(easy[i], CURLOPT_WRITEFUNCTION, ignore_body);
            (void) curl_easy_perform(easy[i]);
        }
        peer_script_default(probe.peer, reads_and_closes);
    }
    unsigned executions = peer_count_requests(probe.peer) - CROWD;
    FIGURE("plain libcurl: 8 posts on kept connections that die are %u executions", executions);
    ck_assert_uint_gt(executions, CROWD);
    for (int i = 0; i < CROWD; i++) {
        curl_easy_cleanup(easy[i]);
    }
    curl_slist_free_all(fields);
    probe_close(&probe);
}
END_TEST

/* ---- at the same time --------------------------------------------------------------------------------------------- */

enum { ROUNDS = 50 };

static const struct peer_step echoes[] = { DO(PEER_BODY), DO(PEER_ECHO), PEER_END };

static void *send_many(void *arg)
{
    struct member *member = arg;
    unsigned base = (unsigned) strtoul(member->key + 2, NULL, 10) * ROUNDS;
    for (unsigned i = 0; i < ROUNDS && !member->facts.answer.head.failed; i++) {
        char key[32];
        (void) snprintf(key, sizeof key, "k-%u", base + i);
        memcpy(member->key, key, sizeof key);
        (void) member_send(member);
        struct buf *body = &member->facts.answer.body;
        buf_append_bytes(body, "", 1);
        if (!member->begun || member->facts.code != 0 || strstr(body->ptr, key) == NULL) {
            member->begun = false;
            break;
        }
    }
    return NULL;
}

START_TEST(many_threads_at_once_each_get_their_own_answers)
{
    struct probe probe;
    struct member crowd[CROWD];
    probe_open(&probe);
    probe_stop_clock();
    peer_script_default(probe.peer, echoes);
    for (unsigned i = 0; i < CROWD; i++) {
        memset(&crowd[i], 0, sizeof crowd[i]);
        crowd[i].probe = &probe;
        (void) snprintf(crowd[i].key, sizeof crowd[i].key, "k-%u", i);
        transport_facts_init(&crowd[i].facts, PROBE_BODY_MAX);
        ck_assert(waker_init(&crowd[i].waker));
        ck_assert_int_eq(pthread_create(&crowd[i].thread, NULL, send_many, &crowd[i]), 0);
    }
    crowd_join(crowd);
    crowd_clear(crowd);
    ck_assert_uint_eq(peer_count_requests(probe.peer), CROWD * ROUNDS);
    ck_assert_uint_le(peer_count_connections(probe.peer), CROWD);
    for (unsigned i = 0; i < CROWD * ROUNDS; i++) {
        char key[32];
        (void) snprintf(key, sizeof key, "k-%u", i);
        ck_assert_uint_eq(peer_count_key(probe.peer, key), 1);
    }
    probe_close(&probe);
}
END_TEST

SUITE(transport_kept)
{
    Suite *suite = suite_create("client/transport_kept");
    CASE(suite, two_requests_use_one_connection_and_a_fresh_one_gets_its_own);
    CASE(suite, a_connection_that_the_peer_closed_at_rest_is_replaced_before_anything_is_sent);
    CASE(suite, bytes_that_nobody_asked_for_are_not_the_next_answer);
    CASE(suite, a_connection_is_used_again_for_a_second_while_it_is_silent_and_leads_there);
    CASE(suite, each_of_two_hosts_keeps_its_connection);
    CASE(suite, a_connection_is_not_used_again_after_an_answer_whose_end_is_in_doubt);
    CASE(suite, a_fresh_connection_asks_again_where_the_host_is);
    CASE(suite, eight_kept_connections_that_die_after_reading_are_one_sending_each);
    CASE(suite, a_plain_libcurl_sends_them_several_times);
    CASE(suite, many_threads_at_once_each_get_their_own_answers);
    return suite;
}
