/* metrics_test.c - /metrics on the operators' listener: every kind of request is counted once and under its own word, the page is one that Prometheus
 * reads, and reading it under load disturbs nobody. What is expected are literal lines. */
#include "tests/support/exposition.h"
#include "tests/support/rig.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static struct rig rig;

#define SET(text) "--set", text
#define WITH(...) rig_start(&rig, (const char *const[]){ __VA_ARGS__, NULL })

/* A valid page, which the caller frees. */
static struct http_answer scrape(void)
{
    struct http_answer page = http_request(rig.nonbis.admin, "GET", "/metrics", NULL, NULL);
    ck_assert_int_eq(page.status, 200);
    ck_assert(page.whole);
    const char *fault = exposition_fault(page.body);
    ck_assert_msg(fault == NULL, "%s", fault);
    return page;
}

/* Messages of Check are short (docs/facts.md 50): of a page only what counts of the family in question is shown. */
static const char *counted(const struct http_answer *page, const char *prefix)
{
    static char lines[2048];
    exposition_counted(page->body, prefix, lines, sizeof lines);
    return lines;
}

static void expect_line(const struct http_answer *page, int at, const char *line)
{
    char family[128];
    (void) snprintf(family, sizeof family, "%.*s", (int) strcspn(line, "{ "), line);
    ck_assert_msg(exposition_has(page->body, line), "at line %d: no line '%s', but\n%.1500s", at, line,
                  counted(page, family));
}
#define EXPECT_LINE(page, line) expect_line(&(page), __LINE__, (line))

static void expect_counted(const struct http_answer *page, int at, const char *prefix, const char *wanted)
{
    ck_assert_msg(strcmp(counted(page, prefix), wanted) == 0, "at line %d: counted is\n%.1800s", at,
                  counted(page, prefix));
}
#define EXPECT_COUNTED(page, prefix, wanted) expect_counted(&(page), __LINE__, (prefix), (wanted))

static void expect(struct http_answer answer, int status, const char *word)
{
    RIG_EXPECT(answer, status, word);
    http_answer_free(&answer);
}

static int post(const char *key, const char *fields)
{
    char request[512];
    int fd = http_connect(rig.address);
    int len = snprintf(request, sizeof request,
                       "POST /orders/1 HTTP/1.1\r\nHost: h\r\nIdempotency-Key: %s\r\n%sContent-Length: 1\r\n\r\nx", key,
                       fields);
    ck_assert(fd >= 0 && http_send(fd, request, (size_t) len));
    return fd;
}

static void expect_at(int fd, int status, const char *word)
{
    expect(http_receive(fd, false, NULL), status, word);
    close(fd);
}

static const struct peer_step held[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_WAIT, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                         PEER_END };
static const struct peer_step reset[] = { { PEER_BODY, NULL, 0 }, { PEER_RESET, NULL, 0 }, PEER_END };
static const struct peer_step cut[] = {
    { PEER_BODY, NULL, 0 }, { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Le", 0 }, { PEER_CLOSE, NULL, 0 }, PEER_END
};
static const struct peer_step bad_gateway[] = { { PEER_BODY, NULL, 0 },
                                                { PEER_SEND, "HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n", 0 },
                                                PEER_END };
static const struct peer_step busy[] = { { PEER_BODY, NULL, 0 },
                                         { PEER_SEND, "HTTP/1.1 429 Busy\r\nContent-Length: 0\r\n\r\n", 0 },
                                         PEER_END };

/* One after the other; the handler plays `script`, NULL: its usual one. */
static const struct kind_row {
    const char *method, *target, *fields, *body;
    const struct peer_step *script;
    int status;
    const char *word;
} kinds[] = {
    { "POST", "/orders/1", "Idempotency-Key: k-1\r\n", "x", NULL, 200, "executed" },
    { "POST", "/orders/1", "Idempotency-Key: k-1\r\n", "x", NULL, 200, "replayed" },
    { "POST", "/orders/1", "Idempotency-Key: k-1\r\n", "y", NULL, 422, "refused" },
    { "POST", "/orders/1", "Idempotency-Key: k-2\r\n", "x", reset, 504, "unknown" },
    { "POST", "/orders/1", "Idempotency-Key: k-2\r\n", "x", NULL, 504, "unknown" }, /* told again, not unknown again */
    { "POST", "/orders/1", "Idempotency-Key: k-3\r\n", "x", cut, 504, "unknown" },
    { "POST", "/orders/1", "Idempotency-Key: k-4\r\n", "x", bad_gateway, 502, "unknown" },
    { "POST", "/orders/1", "Idempotency-Key: k-5\r\n", "x", busy, 429, "not-executed" },
    { "POST", "/_nonbis/v1/command/void", "Idempotency-Key: k-6\r\n", "", NULL, 200, "" },
    { "POST", "/orders/1", "Idempotency-Key: k-6\r\n", "x", NULL, 422, "refused" },
    { "POST", "/_nonbis/v1/command/void", "Idempotency-Key: k-1\r\n", "", NULL, 422, "" },
    { "GET", "/_nonbis/v1/command", "Idempotency-Key: k-1\r\n", NULL, NULL, 200, "" },
    { "GET", "/_nonbis/v1/command/response", "Idempotency-Key: k-1\r\n", NULL, NULL, 200, "" },
    { "GET", "/_nonbis/v1/command", "Idempotency-Key: never\r\n", NULL, NULL, 404, "" },
    { "GET", "/_nonbis/v1", NULL, NULL, NULL, 200, "" },
    { "POST", "/orders/1", NULL, "x", NULL, 400, "" },
    { "POST", "/orders/1", "Idempotency-Key: \"\r\n", "x", NULL, 400, "refused" },
    { "POST", "/orders/../x", "Idempotency-Key: k-1\r\n", "x", NULL, 400, "" },
    { "POST", "/optional", NULL, "x", NULL, 200, "" },
    { "GET", "/anything", NULL, NULL, NULL, 200, "" },
    { "GET", "/anything", NULL, NULL, reset, 502, "" },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void run_kinds(void)
{
    static const struct peer_step usual[] = { { PEER_BODY, NULL, 0 },
                                              { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0 },
                                              PEER_END };
    for (int i = 0; i < KINDS; i++) {
        const struct kind_row *row = &kinds[i];
        peer_script_default(rig.peer, row->script != NULL ? row->script : usual);
        expect(http_request(rig.address, row->method, row->target, row->fields, row->body), row->status, row->word);
    }
}

/* Whatever ended is counted before its line is in the log. */
static void wait_for_ends(int exchanges, int relays)
{
    ck_assert(daemon_wait_logged_times(&rig.nonbis, " exchange ", exchanges));
    ck_assert(daemon_wait_logged_times(&rig.nonbis, " relay ", relays));
}

START_TEST(each_kind_of_request_is_counted_once_under_its_own_word)
{
    WITH(SET("server.loops=2"), SET("upstream_idle=0s"), "--route", "POST /orders/* answer_timeout=20s", "--route",
         "POST /optional key=optional");
    run_kinds();
    peer_script_default(rig.peer, held);
    int first = post("k-7", "");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    expect_at(post("k-7", ""), 409, "in-progress");
    struct http_answer page = scrape();
    EXPECT_LINE(page, "nonbis_running 1");
    EXPECT_LINE(page, "nonbis_records{state=\"in_progress\"} 1");
    http_answer_free(&page);
    peer_release(rig.peer, 1);
    expect_at(first, 201, "executed");
    wait_for_ends(11, 3);
    page = scrape();
    EXPECT_COUNTED(page, "nonbis_requests_total",
                   "nonbis_requests_total{route=\"POST /orders/*\",result=\"executed\"} 2\n"
                   "nonbis_requests_total{route=\"POST /orders/*\",result=\"replayed\"} 1\n"
                   "nonbis_requests_total{route=\"POST /orders/*\",result=\"in-progress\"} 1\n"
                   "nonbis_requests_total{route=\"POST /orders/*\",result=\"unknown\"} 4\n"
                   "nonbis_requests_total{route=\"POST /orders/*\",result=\"not-executed\"} 1\n"
                   "nonbis_requests_total{route=\"POST /orders/*\",result=\"key-missing\"} 1\n"
                   "nonbis_requests_total{route=\"POST /orders/*\",result=\"key-malformed\"} 1\n"
                   "nonbis_requests_total{route=\"POST /orders/*\",result=\"key-reused\"} 1\n"
                   "nonbis_requests_total{route=\"POST /orders/*\",result=\"key-voided\"} 1\n"
                   "nonbis_requests_total{route=\"pass-through\",result=\"passed\"} 2\n"
                   "nonbis_requests_total{route=\"pass-through\",result=\"failed\"} 1\n"
                   "nonbis_requests_total{route=\"/_nonbis\",result=\"replayed\"} 1\n"
                   "nonbis_requests_total{route=\"/_nonbis\",result=\"contract\"} 1\n"
                   "nonbis_requests_total{route=\"/_nonbis\",result=\"not-voidable\"} 1\n"
                   "nonbis_requests_total{route=\"/_nonbis\",result=\"key-not-seen\"} 1\n"
                   "nonbis_requests_total{route=\"/_nonbis\",result=\"completed\"} 1\n"
                   "nonbis_requests_total{route=\"/_nonbis\",result=\"voided\"} 1\n"
                   "nonbis_requests_total{route=\"none\",result=\"request-malformed\"} 1\n");
    EXPECT_COUNTED(page, "nonbis_unknown_total",
                   "nonbis_unknown_total{cause=\"reset\"} 1\n"
                   "nonbis_unknown_total{cause=\"cut\"} 1\n"
                   "nonbis_unknown_total{cause=\"status\"} 1\n");
    EXPECT_COUNTED(page, "nonbis_records",
                   "nonbis_records{state=\"completed\"} 2\n"
                   "nonbis_records{state=\"unknown\"} 3\n"
                   "nonbis_records{state=\"released\"} 1\n"
                   "nonbis_records{state=\"voided\"} 1\n");
    EXPECT_LINE(page, "nonbis_running 0");
    EXPECT_LINE(page, "nonbis_waiters 0");
    /* 23 connections, dealt in turn; the handler saw 6 commands and 3 requests that passed. */
    EXPECT_LINE(page, "nonbis_loop_connections_total{loop=\"0\"} 12");
    EXPECT_LINE(page, "nonbis_loop_connections_total{loop=\"1\"} 11");
    EXPECT_LINE(page, "nonbis_upstream_connections_total{kind=\"new\"} 9");
    EXPECT_LINE(page, "nonbis_upstream_connections_total{kind=\"reused\"} 0");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 9);
    EXPECT_LINE(page, "nonbis_added_seconds_count 2");
    EXPECT_LINE(page, "nonbis_replay_seconds_count 1"); /* of a repeat; a query is none */
    EXPECT_LINE(page, "nonbis_ready 1");
    EXPECT_LINE(page, "nonbis_store_durable 1");
    EXPECT_LINE(page, "nonbis_store_queue{kind=\"outcomes\"} 0");
    http_answer_free(&page);
    rig_end(&rig);
}
END_TEST

START_TEST(what_is_refused_below_nonbis_counts_there_whatever_route_matches_it)
{
    WITH(SET("tenant=header:X-Tenant"), "--route", "* /*");
    expect(http_request(rig.address, "POST", "/_nonbis/v1/command/void", "Idempotency-Key: k\r\n", ""), 401, "");
    expect(http_request(rig.address, "POST", "/a", "Idempotency-Key: k\r\n", "x"), 401, "");
    expect(http_request(rig.address, "POST", "/_nonbis/v1/command/void?%2F", "X-Tenant: t\r\n", ""), 400, "");
    expect(http_request(rig.address, "DELETE", "/_nonbis/x", "X-Tenant: t\r\n", NULL), 404, "");
    struct http_answer page = scrape();
    EXPECT_COUNTED(page, "nonbis_requests_total",
                   "nonbis_requests_total{route=\"* /*\",result=\"tenant-missing\"} 1\n"
                   "nonbis_requests_total{route=\"/_nonbis\",result=\"key-missing\"} 1\n"
                   "nonbis_requests_total{route=\"/_nonbis\",result=\"tenant-missing\"} 1\n"
                   "nonbis_requests_total{route=\"/_nonbis\",result=\"not-found\"} 1\n");
    http_answer_free(&page);
    rig_end(&rig);
}
END_TEST

/* What has not happened yet is told as 0 where somebody waits for it to grow. */
START_TEST(a_fresh_server_tells_zeros_for_what_an_alert_looks_at)
{
    WITH("--route", "POST /a", "--route", "* /b");
    struct http_answer page = scrape();
    EXPECT_LINE(page, "nonbis_requests_total{route=\"POST /a\",result=\"executed\"} 0");
    EXPECT_LINE(page, "nonbis_requests_total{route=\"* /b\",result=\"unrecorded\"} 0");
    EXPECT_LINE(page, "nonbis_requests_total{route=\"* /b\",result=\"unavailable\"} 0");
    EXPECT_LINE(page, "nonbis_requests_total{route=\"pass-through\",result=\"failed\"} 0");
    EXPECT_LINE(page, "nonbis_unknown_total{cause=\"timeout\"} 0");
    EXPECT_LINE(page, "nonbis_unknown_total{cause=\"unrecorded\"} 0");
    EXPECT_LINE(page, "nonbis_records{state=\"expired\"} 0");
    EXPECT_COUNTED(page, "nonbis_requests_total", "");
    EXPECT_COUNTED(page, "nonbis_info", "nonbis_info{version=\"" NONBIS_VERSION "\",store=\"sqlite\"} 1\n");
    http_answer_free(&page);
    rig_end(&rig);
}
END_TEST

START_TEST(the_handlers_time_and_a_wait_are_not_counted_as_added_by_nonbis)
{
    rig.peer = peer_new();
    const char *const more[] = { "--log-level", "debug", SET("server.loops=2"), NULL };
    daemon_start(&rig.nonbis, peer_url(rig.peer), "memory", more);
    rig.address = rig.nonbis.listen;
    peer_script_default(rig.peer, held);
    int first = post("k", "");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    int waiter = post("k", "Prefer: wait=20\r\n");
    ck_assert(daemon_wait_logged_times(&rig.nonbis, "waits for the end", 1));
    struct http_answer page = scrape();
    EXPECT_LINE(page, "nonbis_waiters 1");
    EXPECT_LINE(page, "nonbis_running 1");
    EXPECT_LINE(page, "nonbis_store_durable 0");
    EXPECT_LINE(page, "nonbis_info{version=\"" NONBIS_VERSION "\",store=\"memory\"} 1");
    http_answer_free(&page);
    expect_at(post("k", "Prefer: wait=2\r\n"), 409, "in-progress"); /* takes two seconds */
    peer_release(rig.peer, 1);
    expect_at(first, 201, "executed");
    expect_at(waiter, 201, "replayed");
    wait_for_ends(3, 0);
    page = scrape();
    EXPECT_LINE(page, "nonbis_added_seconds_bucket{le=\"1\"} 1");
    EXPECT_LINE(page, "nonbis_added_seconds_count 1");
    EXPECT_LINE(page, "nonbis_replay_seconds_bucket{le=\"1\"} 1");
    EXPECT_LINE(page, "nonbis_replay_seconds_count 1");
    EXPECT_LINE(page, "nonbis_waiters 0");
    http_answer_free(&page);
    rig_end(&rig);
}
END_TEST

START_TEST(kept_connections_are_told_from_new_ones)
{
    WITH(SET("server.loops=1"), SET("upstream_idle=30s"));
    expect(http_post(rig.address, "/orders/1", "k-1", "x"), 200, "executed");
    expect(http_post(rig.address, "/orders/1", "k-2", "x"), 200, "executed");
    expect(http_post(rig.address, "/orders/1", "k-3", "x"), 200, "executed");
    struct http_answer page = scrape();
    EXPECT_LINE(page, "nonbis_upstream_connections_total{kind=\"new\"} 1");
    EXPECT_LINE(page, "nonbis_upstream_connections_total{kind=\"reused\"} 2");
    ck_assert_uint_eq(peer_count_connections(rig.peer), 1);
    http_answer_free(&page);
    rig_end(&rig);
}
END_TEST

START_TEST(what_a_crash_left_running_is_unknown_by_crash_and_its_records_are_counted_again)
{
    WITH(SET("hard_timeout=1s"), SET("answer_timeout=1s"));
    expect(http_post(rig.address, "/orders/1", "k-0", "x"), 200, "executed");
    peer_script_default(rig.peer, held);
    expect_at(post("k-1", ""), 504, "unknown");
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=unknown"));
    struct http_answer page = scrape();
    EXPECT_LINE(page, "nonbis_unknown_total{cause=\"timeout\"} 1");
    http_answer_free(&page);
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    rig_restart(&rig, NULL); /* from here on no timeout comes before the kill */
    int left = post("k-2", "");
    ck_assert(peer_wait_requests(rig.peer, 3));
    daemon_kill(&rig.nonbis);
    close(left);
    rig_restart(&rig, NULL);
    page = scrape();
    EXPECT_LINE(page, "nonbis_unknown_total{cause=\"crash\"} 1");
    EXPECT_LINE(page, "nonbis_unknown_total{cause=\"timeout\"} 0"); /* of this process */
    EXPECT_LINE(page, "nonbis_records{state=\"completed\"} 1");
    EXPECT_LINE(page, "nonbis_records{state=\"unknown\"} 2");
    EXPECT_LINE(page, "nonbis_records{state=\"in_progress\"} 0");
    http_answer_free(&page);
    rig_end(&rig);
}
END_TEST

START_TEST(a_drain_shows_what_still_runs_and_that_nothing_new_is_taken)
{
    WITH(SET("server.loops=2"));
    peer_script_default(rig.peer, held);
    int first = post("k-1", "");
    ck_assert(peer_wait_stalled(rig.peer, 1));
    daemon_signal(&rig.nonbis, SIGTERM);
    ck_assert(daemon_wait_logged(&rig.nonbis, " drain "));
    expect(http_post(rig.address, "/orders/1", "k-2", "x"), 503, "refused");
    ck_assert(daemon_wait_logged(&rig.nonbis, "result=unavailable"));
    struct http_answer page = scrape();
    EXPECT_LINE(page, "nonbis_ready 0");
    EXPECT_LINE(page, "nonbis_running 1");
    EXPECT_LINE(page, "nonbis_requests_total{route=\"POST /*\",result=\"unavailable\"} 1");
    http_answer_free(&page);
    peer_release(rig.peer, 1);
    expect_at(first, 201, "executed");
    ck_assert_int_eq(daemon_wait(&rig.nonbis), 0);
    peer_free(rig.peer);
}
END_TEST

/* --- the resource itself --- */

static const struct {
    const char *method, *target;
    int status;
    const char *type, *body; /* NULL: not compared */
} resource_rows[] = {
    { "GET", "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8", NULL },
    { "HEAD", "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8", "" },
    { "POST", "/metrics", 405, "text/plain; charset=utf-8", "only GET\n" },
    { "GET", "/metrics/", 404, "text/plain; charset=utf-8", "there is /livez, /readyz and /metrics\n" },
    { "GET", "/", 404, "text/plain; charset=utf-8", "there is /livez, /readyz and /metrics\n" },
    { "GET", "/readyz", 200, "text/plain; charset=utf-8", "ok\n" },
};

START_TEST(the_page_is_got_by_get_and_head_at_its_path_alone)
{
    char length[32] = "";
    rig_start(&rig, NULL);
    int fd = http_connect(rig.nonbis.admin);
    for (size_t i = 0; i < sizeof resource_rows / sizeof resource_rows[0]; i++) {
        char request[256];
        int len = snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
                           resource_rows[i].method, resource_rows[i].target);
        ck_assert(http_send(fd, request, (size_t) len));
        struct http_answer answer = http_receive(fd, strcmp(resource_rows[i].method, "HEAD") == 0, NULL);
        ck_assert_int_eq(answer.status, resource_rows[i].status);
        ck_assert(http_field_is(&answer, "Content-Type", resource_rows[i].type));
        ck_assert(http_field_is(&answer, "Cache-Control", "no-store"));
        ck_assert(resource_rows[i].body == NULL || strcmp(answer.body, resource_rows[i].body) == 0);
        ck_assert(http_field(&answer, "Content-Length", length, sizeof length) && strtol(length, NULL, 10) > 0);
        ck_assert_msg(!answer.closed, "%s %s ends the connection", resource_rows[i].method, resource_rows[i].target);
        http_answer_free(&answer);
    }
    close(fd);
    expect(http_request(rig.address, "GET", "/metrics", NULL, NULL), 200, ""); /* to a client it is the handler's */
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    rig_end(&rig);
}
END_TEST

START_TEST(the_process_tells_its_start_its_memory_and_its_descriptors)
{
    struct timespec before, after;
    clock_gettime(CLOCK_REALTIME, &before);
    rig_start(&rig, NULL);
    clock_gettime(CLOCK_REALTIME, &after);
    struct http_answer page = scrape();
    double started_s = exposition_value(page.body, "process_start_time_seconds");
    double memory = exposition_value(page.body, "process_resident_memory_bytes");
    double fds = exposition_value(page.body, "process_open_fds");
    ck_assert(started_s >= (double) before.tv_sec && started_s <= (double) after.tv_sec + 1);
    ck_assert(memory > 1e6 && memory < 1e10);
    http_answer_free(&page);
    int clients[8];
    for (int i = 0; i < 8; i++) {
        clients[i] = http_connect(rig.address);
        ck_assert(http_send(clients[i], "GET / HTTP/1.1\r\nHost: h\r\n\r\n", 27));
        struct http_answer answer = http_receive(clients[i], false, NULL);
        ck_assert_int_eq(answer.status, 200);
        http_answer_free(&answer);
    }
    page = scrape();
    EXPECT_LINE(page, "nonbis_connections 8");
    ck_assert(exposition_value(page.body, "process_open_fds") >= fds + 8); /* and a connection or so to the handler */
    ck_assert(exposition_value(page.body, "process_open_fds") < fds + 100);
    ck_assert(exposition_value(page.body, "process_max_fds") > fds);
    ck_assert(exposition_value(page.body, "process_cpu_seconds_total") >= 0);
    ck_assert(exposition_value(page.body, "nonbis_store_last_commit_age_seconds") < 60);
    ck_assert(exposition_value(page.body, "nonbis_store_sweep_behind_seconds") == 0);
    for (int i = 0; i < 8; i++) {
        close(clients[i]);
    }
    http_answer_free(&page);
    rig_end(&rig);
}
END_TEST

/* --- under load --- */

enum { CLIENTS = 6, KEYS = 40 };

struct client {
    pthread_t thread;
    int number;
};

/* Every key twice: executed, then replayed. */
static void *client_run(void *context)
{
    const struct client *client = context;
    for (int i = 0; i < KEYS * 2; i++) {
        char key[32];
        (void) snprintf(key, sizeof key, "c%d-%d", client->number, i / 2);
        struct http_answer answer = http_post(rig.address, "/orders/1", key, "x");
        RIG_EXPECT(answer, 200, i % 2 == 0 ? "executed" : "replayed");
        http_answer_free(&answer);
    }
    return NULL;
}

START_TEST(scraping_under_load_gives_valid_pages_whose_counts_never_fall)
{
    static const char *const growing[] = { "nonbis_requests_total{route=\"POST /*\",result=\"executed\"}",
                                           "nonbis_requests_total{route=\"POST /*\",result=\"replayed\"}",
                                           "nonbis_added_seconds_count",
                                           "nonbis_store_commit_seconds_count",
                                           "nonbis_store_batch_tasks_sum",
                                           "nonbis_loop_connections_total{loop=\"1\"}" };
    double last[sizeof growing / sizeof growing[0]] = { 0 };
    struct client clients[CLIENTS];
    int scrapes = 0;
    WITH(SET("server.loops=2"));
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].number = i;
        ck_assert_int_eq(pthread_create(&clients[i].thread, NULL, client_run, &clients[i]), 0);
    }
    while (last[1] < CLIENTS * KEYS) {
        struct http_answer page = scrape();
        for (size_t i = 0; i < sizeof growing / sizeof growing[0]; i++) {
            double now = exposition_value(page.body, growing[i]);
            ck_assert_msg(now >= last[i], "%s fell from %.0f to %.0f", growing[i], last[i], now);
            last[i] = now;
        }
        http_answer_free(&page);
        scrapes++;
    }
    for (int i = 0; i < CLIENTS; i++) {
        ck_assert_int_eq(pthread_join(clients[i].thread, NULL), 0);
    }
    wait_for_ends(480, 0);
    struct http_answer page = scrape();
    EXPECT_LINE(page, "nonbis_requests_total{route=\"POST /*\",result=\"executed\"} 240");
    EXPECT_LINE(page, "nonbis_requests_total{route=\"POST /*\",result=\"replayed\"} 240");
    EXPECT_LINE(page, "nonbis_added_seconds_count 240");
    EXPECT_LINE(page, "nonbis_replay_seconds_count 240");
    EXPECT_LINE(page, "nonbis_records{state=\"completed\"} 240");
    EXPECT_LINE(page, "nonbis_store_batch_tasks_sum 720"); /* claim, outcome, claim of each */
    EXPECT_LINE(page, "nonbis_loop_connections_total{loop=\"0\"} 240");
    EXPECT_LINE(page, "nonbis_loop_connections_total{loop=\"1\"} 240");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 240);
    FIGURE("%d scrapes while 480 requests ran", scrapes);
    http_answer_free(&page);
    rig_end(&rig);
}
END_TEST

SUITE(metrics)
{
    Suite *suite = suite_create("integration/metrics");
    CASE(suite, each_kind_of_request_is_counted_once_under_its_own_word);
    CASE(suite, what_is_refused_below_nonbis_counts_there_whatever_route_matches_it);
    CASE(suite, a_fresh_server_tells_zeros_for_what_an_alert_looks_at);
    CASE(suite, the_handlers_time_and_a_wait_are_not_counted_as_added_by_nonbis);
    CASE(suite, kept_connections_are_told_from_new_ones);
    CASE(suite, what_a_crash_left_running_is_unknown_by_crash_and_its_records_are_counted_again);
    CASE(suite, a_drain_shows_what_still_runs_and_that_nothing_new_is_taken);
    CASE(suite, the_page_is_got_by_get_and_head_at_its_path_alone);
    CASE(suite, the_process_tells_its_start_its_memory_and_its_descriptors);
    CASE(suite, scraping_under_load_gives_valid_pages_whose_counts_never_fall);
    return suite;
}
