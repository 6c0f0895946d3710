/* polling_test.c - status queries are cheap and take nothing from the commands (docs/contract.md 4.8, 7.1; setting store_queue_max): clients that ask as fast
 * as the machine allows stop no write, and when the budget of the look-ups is used up they alone are refused. Executions are counted at
 * the handler. */
#include "tests/support/rig.h"
#include "tests/support/thread_stall.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define STATUS "/_nonbis/v1/command"
#define RESPONSE "/_nonbis/v1/command/response"

static const struct peer_step created[] = { { PEER_BODY, NULL, 0 },
                                            { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", 0 },
                                            PEER_END };

static struct rig rig;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

static void post(const char *key, int status, const char *word)
{
    struct http_answer answer = http_post(rig.address, "/orders", key, "x");
    RIG_EXPECT(answer, status, word);
    http_answer_free(&answer);
}

/* --- a client that only asks, many times in a packet on each of its connections --- */

enum { LINES_MAX = 24, DEPTH_MAX = 16, POLLED_KEYS = 8, READ_MAX = 64 * 1024 };

struct line {
    int fd;
    unsigned open; /* answers still to come */
    size_t have;
    char bytes[READ_MAX];
};

struct poller {
    unsigned line_count, depth;
    unsigned long busy_from;
    pthread_t thread;
    atomic_bool stop;
    atomic_ulong answered; /* of any kind */
    sem_t busy;            /* posted after as many answers as all connections ask for at a time, and at the end */
    unsigned long known, not_seen, refused;
    char wrong[2048]; /* the first answer that should not be */
    char batch[DEPTH_MAX * 128];
    size_t batch_len;
    struct line lines[LINES_MAX];
};

/* Half of the keys are known, half were never used. */
static void poller_write_batch(struct poller *poller)
{
    poller->batch_len = 0;
    for (unsigned i = 0; i < poller->depth; i++) {
        poller->batch_len += (size_t) snprintf(
            poller->batch + poller->batch_len, sizeof poller->batch - poller->batch_len,
            "GET " STATUS " HTTP/1.1\r\nHost: a\r\nIdempotency-Key: polled-%u\r\n\r\n", i % POLLED_KEYS);
    }
}

static bool head_has(const char *head, size_t len, const char *text)
{
    return memmem(head, len, text, strlen(text)) != NULL;
}

static void poller_judge(struct poller *poller, const char *answer, size_t head_len, size_t len)
{
    const char *body = answer + head_len;
    size_t body_len = len - head_len;
    if (head_has(answer, 13, "HTTP/1.1 200 ") && head_has(body, body_len, "\"key\":\"polled-")) {
        poller->known++;
    } else if (head_has(answer, 13, "HTTP/1.1 404 ") && head_has(body, body_len, "key-not-seen")) {
        poller->not_seen++;
    } else if (head_has(answer, 13, "HTTP/1.1 503 ") && head_has(answer, head_len, "\r\nRetry-After: 1\r\n") &&
               head_has(body, body_len, "\"reason\":\"overloaded\"")) {
        poller->refused++;
    } else if (poller->wrong[0] == '\0') {
        (void) snprintf(poller->wrong, sizeof poller->wrong, "%.*s", (int) len, answer);
    }
    if (atomic_fetch_add(&poller->answered, 1) + 1 == poller->busy_from) {
        (void) sem_post(&poller->busy);
    }
}

/* Takes the whole answers off the front of what was read. False: no answer can look like this. */
static bool line_take_answers(struct poller *poller, struct line *line)
{
    size_t at = 0;
    while (at < line->have) {
        const char *answer = line->bytes + at;
        const char *end = memmem(answer, line->have - at, "\r\n\r\n", 4);
        const char *length = end != NULL ? memmem(answer, (size_t) (end - answer), "\r\nContent-Length: ", 18) : NULL;
        if (end == NULL) {
            break;
        }
        if (length == NULL || line->open == 0) {
            return false;
        }
        size_t head_len = (size_t) (end - answer) + 4;
        size_t len = head_len + strtoul(length + 18, NULL, 10);
        if (line->have - at < len) {
            break;
        }
        poller_judge(poller, answer, head_len, len);
        line->open--;
        at += len;
    }
    memmove(line->bytes, line->bytes + at, line->have - at);
    line->have -= at;
    return true;
}

/* One event of a connection: reads; asks again once everything was answered. False: it broke. */
static bool line_turn(struct poller *poller, struct line *line)
{
    if (line->open > 0) {
        ssize_t got = recv(line->fd, line->bytes + line->have, sizeof line->bytes - line->have, 0);
        if (got <= 0) {
            return false;
        }
        line->have += (size_t) got;
        if (!line_take_answers(poller, line)) {
            return false;
        }
    }
    if (line->open == 0 && !atomic_load(&poller->stop)) {
        line->open = poller->depth;
        return http_send(line->fd, poller->batch, poller->batch_len);
    }
    return true;
}

static void *poller_run(void *context)
{
    struct poller *poller = context;
    /* It would be on other machines: here it must not take the processor from the store thread, the handler and the writers. */
    (void) setpriority(PRIO_PROCESS, (id_t) gettid(), 19);
    struct pollfd polled[LINES_MAX];
    bool good = true;
    unsigned open = 0;
    for (unsigned i = 0; i < poller->line_count; i++) {
        poller->lines[i].fd = http_connect(rig.address);
        polled[i] = (struct pollfd){ .fd = poller->lines[i].fd, .events = POLLIN };
        good = good && poller->lines[i].fd >= 0 && line_turn(poller, &poller->lines[i]);
        open += poller->lines[i].open;
    }
    while (good && open > 0) {
        good = poll(polled, poller->line_count, 20000) > 0;
        open = 0;
        for (unsigned i = 0; i < poller->line_count && good; i++) {
            good = polled[i].revents == 0 || line_turn(poller, &poller->lines[i]);
            open += poller->lines[i].open;
        }
    }
    if (!good && poller->wrong[0] == '\0') {
        (void) snprintf(poller->wrong, sizeof poller->wrong, "a connection broke");
    }
    for (unsigned i = 0; i < poller->line_count; i++) {
        close(poller->lines[i].fd);
    }
    (void) sem_post(&poller->busy);
    return NULL;
}

static void poller_start(struct poller *poller)
{
    poller_write_batch(poller);
    atomic_store(&poller->stop, false);
    poller->busy_from = atomic_load(&poller->answered) + poller->line_count * poller->depth;
    (void) sem_init(&poller->busy, 0, 0);
    pthread_create(&poller->thread, NULL, poller_run, poller);
}

/* Everything that was asked is answered before the thread ends. */
static void poller_end(struct poller *poller)
{
    atomic_store(&poller->stop, true);
    pthread_join(poller->thread, NULL);
    ck_assert_msg(poller->wrong[0] == '\0', "%s", poller->wrong);
}

static void make_polled_keys(void)
{
    for (int i = 0; i < POLLED_KEYS; i += 2) {
        char key[32];
        (void) snprintf(key, sizeof key, "polled-%d", i);
        post(key, 201, "executed");
    }
}

/* --- clients that write --- */

enum { WRITERS = 8, WRITES = 50, ROUNDS = 3 };

struct writer {
    pthread_t thread;
    int round, number, good;
    char wrong[1024];
};

/* New keys on a kept connection, each answered before the next. */
static void *writer_run(void *context)
{
    struct writer *writer = context;
    int fd = http_connect(rig.address);
    for (int i = 0; i < WRITES && writer->wrong[0] == '\0'; i++) {
        char request[256];
        int len = snprintf(request, sizeof request,
                           "POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: w-%d-%d-%d\r\n"
                           "Content-Length: 1\r\n\r\nx",
                           writer->round, writer->number, i);
        struct http_answer answer = { 0 };
        if (http_send(fd, request, (size_t) len)) {
            answer = http_receive(fd, false, NULL);
        }
        if (answer.status == 201 && http_field_is(&answer, "Idempotency-Status", "executed")) {
            writer->good++;
        } else {
            (void) snprintf(writer->wrong, sizeof writer->wrong, "write %d of writer %d: %d: %s", i, writer->number,
                            answer.status, answer.body != NULL ? answer.body : "(no answer)");
        }
        http_answer_free(&answer);
    }
    close(fd);
    return NULL;
}

/* Returns the writes per second. */
static double write_round(int round, int writers)
{
    static struct writer all[WRITERS];
    double from_s = now_s();
    for (int i = 0; i < writers; i++) {
        all[i] = (struct writer){ .round = round, .number = i };
        pthread_create(&all[i].thread, NULL, writer_run, &all[i]);
    }
    for (int i = 0; i < writers; i++) {
        pthread_join(all[i].thread, NULL);
    }
    double took_s = now_s() - from_s;
    for (int i = 0; i < writers; i++) {
        ck_assert_msg(all[i].wrong[0] == '\0', "round %d: %s", round, all[i].wrong);
        ck_assert_int_eq(all[i].good, WRITES);
    }
    return writers * WRITES / took_s;
}

/* Every key of every round, once. */
static void expect_written(int rounds, int writers)
{
    ck_assert_uint_eq(peer_count_requests(rig.peer), (unsigned) (POLLED_KEYS / 2 + rounds * writers * WRITES));
    for (int i = 0; i < rounds * writers * WRITES; i++) {
        char key[64];
        (void) snprintf(key, sizeof key, "w-%d-%d-%d", i / (writers * WRITES), i / WRITES % writers, i % WRITES);
        ck_assert_msg(peer_count_key(rig.peer, key) == 1, "%s was executed %u times", key,
                      peer_count_key(rig.peer, key));
    }
}

static void sort_rates(double *rates)
{
    for (int i = 1; i < ROUNDS; i++) {
        for (int j = i; j > 0 && rates[j] < rates[j - 1]; j--) {
            double swap = rates[j];
            rates[j] = rates[j - 1];
            rates[j - 1] = swap;
        }
    }
}

START_TEST(clients_that_ask_as_fast_as_they_can_stop_no_write)
{
    static struct poller poller = { .line_count = LINES_MAX, .depth = DEPTH_MAX };
    double alone[ROUNDS], polled[ROUNDS], asked_s = 0;
    const char *const more[] = { "--log-level", "warn", NULL };
    rig_start(&rig, more);
    peer_script_default(rig.peer, created);
    make_polled_keys();
    for (int round = 0; round < ROUNDS; round++) {
        alone[round] = write_round(2 * round, WRITERS);
        double from_s = now_s();
        poller_start(&poller);
        (void) sem_wait(&poller.busy);
        polled[round] = write_round(2 * round + 1, WRITERS);
        poller_end(&poller);
        asked_s += now_s() - from_s;
    }
    sort_rates(alone);
    sort_rates(polled);
    FIGURE("polling: %.0f queries/s (known=%lu not_seen=%lu refused=%lu) beside %d writes; writes/s, medians of %d "
           "rounds: alone=%.0f polled=%.0f ratio=%.2f",
           (double) atomic_load(&poller.answered) / asked_s, poller.known, poller.not_seen, poller.refused,
           ROUNDS * WRITERS * WRITES, ROUNDS, alone[ROUNDS / 2], polled[ROUNDS / 2],
           polled[ROUNDS / 2] / alone[ROUNDS / 2]);
    expect_written(2 * ROUNDS, WRITERS);
    ck_assert_uint_eq(poller.refused, 0); /* it never has 4096 under way */
    ck_assert_uint_eq(poller.known, poller.not_seen);
    ck_assert_uint_ge(poller.known, ROUNDS * LINES_MAX * DEPTH_MAX / 2);
    rig_end(&rig);
}
END_TEST

/* --- the budget of the look-ups is used up --- */

START_TEST(queries_over_their_budget_are_refused_and_the_writes_beside_them_are_not)
{
    static struct poller poller = { .line_count = 4, .depth = 2 };
    const char *const more[] = { "--log-level", "warn", "--set", "store_queue_max=1", NULL };
    int rounds = 0;
    rig_start(&rig, more);
    peer_script_default(rig.peer, created);
    make_polled_keys();
    poller_start(&poller);
    /* One writer, so that never more than one claim is there: the budget of the claims always suffices. */
    do {
        (void) write_round(rounds++, 1);
    } while (atomic_load(&poller.answered) < 1000 && rounds < 200);
    poller_end(&poller);
    FIGURE("polling over the budget: known=%lu not_seen=%lu refused_503=%lu beside %d writes, none refused",
           poller.known, poller.not_seen, poller.refused, rounds * WRITES);
    ck_assert_uint_gt(poller.refused, 0);
    ck_assert_uint_gt(poller.known + poller.not_seen, 0);
    expect_written(rounds, 1);
    rig_end(&rig);
}
END_TEST

enum { BUDGET = 4, SPARE = 3, ASKED = BUDGET + SPARE };

/* `key` and a number. */
static void ask_all(int *fds, const char *line, const char *key, const char *rest)
{
    for (int i = 0; i < ASKED; i++) {
        char request[256];
        int len = snprintf(request, sizeof request, "%s HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: %s-%d\r\n%s",
                           line, key, i, rest);
        fds[i] = http_connect(rig.address);
        ck_assert(http_send(fds[i], request, (size_t) len));
    }
}

/* Waits until SPARE of them have their answer, and reads it; the others are marked by `open`. */
static void expect_spare_refused(const int *fds, const char *word, bool *open)
{
    int refused = 0;
    for (int i = 0; i < ASKED; i++) {
        open[i] = true;
    }
    while (refused < SPARE) {
        struct pollfd polled[ASKED];
        for (int i = 0; i < ASKED; i++) {
            polled[i] = (struct pollfd){ .fd = open[i] ? fds[i] : -1, .events = POLLIN };
        }
        ck_assert_int_gt(poll(polled, ASKED, 20000), 0);
        for (int i = 0; i < ASKED; i++) {
            char wait[16];
            if (polled[i].revents == 0) {
                continue;
            }
            struct http_answer answer = http_receive(fds[i], false, NULL);
            RIG_EXPECT(answer, 503, word);
            ck_assert_ptr_nonnull(strstr(answer.body, "\"type\":\"urn:nonbis:problem:unavailable\""));
            ck_assert_ptr_nonnull(strstr(answer.body, "\"retryable\":true,\"executed\":\"unknown\""));
            ck_assert_ptr_nonnull(strstr(answer.body, "\"reason\":\"overloaded\""));
            ck_assert(http_field(&answer, "Retry-After", wait, sizeof wait) && strtol(wait, NULL, 10) >= 1);
            http_answer_free(&answer);
            open[i] = false;
            refused++;
        }
    }
    ck_assert_int_eq(refused, SPARE);
}

static void expect_rest(const int *fds, const bool *open, int status, const char *word)
{
    for (int i = 0; i < ASKED; i++) {
        if (open[i]) {
            struct http_answer answer = http_receive(fds[i], false, NULL);
            RIG_EXPECT(answer, status, word);
            http_answer_free(&answer);
        }
        close(fds[i]);
    }
}

START_TEST(with_a_store_that_stands_still_queries_and_claims_fill_a_budget_each)
{
    const char *const more[] = { "--set", "store_queue_max=4", NULL };
    struct thread_stall stall;
    int queries[ASKED], writes[ASKED];
    bool open_queries[ASKED], open_writes[ASKED];
    rig_start(&rig, more);
    peer_script_default(rig.peer, created);
    post("done", 201, "executed");
    if (!thread_stall_store(&stall, rig.nonbis.pid)) {
        FIGURE("polling a store that stands still: not tested, this machine lets nobody trace a thread");
        rig_end(&rig);
        return;
    }
    ask_all(queries, "GET " STATUS, "polled", "\r\n");
    expect_spare_refused(queries, "", open_queries);
    struct http_answer response = http_request(rig.address, "GET", RESPONSE, "Idempotency-Key: done\r\n", NULL);
    RIG_EXPECT(response, 503, "");
    /* Those over the budget of the claims are refused: so the others had room, while the queries had none. */
    ask_all(writes, "POST /orders", "k", "Content-Length: 1\r\n\r\nx");
    expect_spare_refused(writes, "refused", open_writes);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    thread_stall_end(&stall);
    expect_rest(queries, open_queries, 404, "");
    expect_rest(writes, open_writes, 201, "executed");
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1 + BUDGET);
    /* Refused ones left nothing behind, and there is room again. */
    for (int i = 0; i < ASKED; i++) {
        char key[16], fields[64];
        (void) snprintf(key, sizeof key, "k-%d", i);
        (void) snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n", key);
        struct http_answer answer = http_request(rig.address, "POST", "/orders", fields, "x");
        RIG_EXPECT(answer, 201, open_writes[i] ? "replayed" : "executed");
        http_answer_free(&answer);
        ck_assert_uint_eq(peer_count_key(rig.peer, key), 1);
    }
    http_answer_free(&response);
    rig_end(&rig);
}
END_TEST

SUITE(polling)
{
    Suite *suite = suite_create("integration/polling");
    CASE(suite, clients_that_ask_as_fast_as_they_can_stop_no_write);
    CASE(suite, queries_over_their_budget_are_refused_and_the_writes_beside_them_are_not);
    CASE(suite, with_a_store_that_stands_still_queries_and_claims_fill_a_budget_each);
    return suite;
}
