/* slow_peers.c - T31: a crowd that sends its heads and bodies a byte at a time and never comes to an end, clients that are as slow but do, also with reading,
 * and a handler that trickles its answers, all beside clients that are none of it. The crowd is closed when its deadline is over and leaves no trace;
 * everybody else is served as ever. */
#include "tests/proof/runs/runs.h"
#include "tests/proof/runs/trial.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    DEADLINE_MS = 4000, /* header_deadline, body_deadline */
    SLACK_MS = 2000,    /* later is late: this machine is not the test's alone */
    EARLY_MS = 100,     /* the server counts from the start of its turn that took the connection */
    P50_MAX_MS = 500,   /* of those who are not slow: nobody waits until the crowd is closed */
    BYTE_MS = 20,       /* between two bytes of the crowd */
    SLOW_BYTE_MS = 1,   /* of a client that comes to an end: a few hundred bytes, soon enough on a busy machine too */
    CROWD_MAX = 400,
    HONEST_MAX = 16,
    SLOW_MAX = 32,
    TIMED_MAX = 20000,
    REPEATS = 4
};

static int deadline_ms(void)
{
    return DEADLINE_MS * suite_slowness();
}

/* --- the crowd --- */

struct slow_crowd {
    const struct trial *trial;
    unsigned count;
    struct pollfd fds[CROWD_MAX]; /* .fd < 0: closed */
    int64_t began_ms[CROWD_MAX];
    unsigned open, closed, answered, early, late;
};

/* Even ones never end their head, odd ones never their body. */
static void crowd_join(struct slow_crowd *crowd, unsigned i)
{
    static const char head[] = "POST /orders HTTP/1.1\r\nHost: test.example\r\nX-Slow: ";
    char whole[256];
    (void) snprintf(whole, sizeof whole,
                    "POST /orders HTTP/1.1\r\nHost: test.example\r\nX-Tenant: slow\r\nIdempotency-Key: never-%u\r\n"
                    "Content-Length: 100000\r\n\r\n",
                    i);
    crowd->began_ms[i] = suite_now_ms(); /* before: the server counts whether or not this thread goes on */
    int fd = http_connect(crowd->trial->address);
    ck_assert_int_ge(fd, 0);
    crowd->fds[i] = (struct pollfd){ .fd = fd, .events = POLLIN };
    ck_assert(i % 2 == 0 ? http_send(fd, head, sizeof head - 1) : http_send(fd, whole, strlen(whole)));
    crowd->open++;
}

/* Something came from nonbisd: an answer, which nobody should get, or the end. */
static void crowd_hear(struct slow_crowd *crowd, unsigned i)
{
    char byte;
    int64_t took_ms = suite_now_ms() - crowd->began_ms[i];
    ssize_t got = recv(crowd->fds[i].fd, &byte, 1, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) {
        return;
    }
    crowd->answered += got > 0;
    crowd->closed += got <= 0;
    crowd->early += took_ms < deadline_ms() - EARLY_MS;
    crowd->late += took_ms > deadline_ms() + SLACK_MS;
    close(crowd->fds[i].fd);
    crowd->fds[i].fd = -1;
    crowd->open--;
}

/* Until all are closed: a byte of each, and a wait for the time of the next in which the ends are heard. */
static void *crowd_run(void *context)
{
    struct slow_crowd *crowd = context;
    int64_t next_ms = suite_now_ms();
    while (crowd->open > 0) {
        int64_t left_ms = next_ms - suite_now_ms();
        if (left_ms <= 0) {
            for (unsigned i = 0; i < crowd->count; i++) {
                if (crowd->fds[i].fd >= 0) {
                    (void) send(crowd->fds[i].fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
                }
            }
            next_ms = suite_now_ms() + BYTE_MS;
            left_ms = BYTE_MS;
        }
        if (poll(crowd->fds, crowd->count, (int) left_ms) <= 0) {
            continue;
        }
        for (unsigned i = 0; i < crowd->count; i++) {
            if (crowd->fds[i].fd >= 0 && crowd->fds[i].revents != 0) {
                crowd_hear(crowd, i);
            }
        }
    }
    return NULL;
}

/* --- those who come to an end --- */

struct honest;

struct honest_client {
    struct honest *honest;
    unsigned me; /* given, not drawn: every second one of each kind has a handler that trickles */
    pthread_t thread;
};

struct honest {
    struct trial *trial;
    struct honest_client all[HONEST_MAX + SLOW_MAX]; /* the slow ones come last */
    unsigned clients, slow, asked, refused, slow_told;
    bool over;
    int times_ms[TIMED_MAX]; /* of the first of those whose handler does not trickle */
    unsigned timed;
};

static bool is_served(const struct history_event *told, bool first)
{
    return told->answer == 201 && strcmp(told->word, first ? "executed" : "replayed") == 0;
}

static void *honest_run(void *context)
{
    struct honest *honest = ((struct honest_client *) context)->honest;
    unsigned me = ((struct honest_client *) context)->me;
    bool trickled = me % 2 == 1;
    for (unsigned n = 0; !__atomic_load_n(&honest->over, __ATOMIC_SEQ_CST); n++) {
        struct intent intent = { .tenant = "honest", .amount = 1, .act = trickled ? "drip=1" : NULL };
        (void) snprintf(intent.key, sizeof intent.key, "k-%u-%u", me, n);
        for (unsigned i = 0; i <= REPEATS; i++) {
            struct history_event told;
            (void) trial_attempt(honest->trial, &intent, &told);
            (void) __atomic_add_fetch(&honest->asked, 1, __ATOMIC_SEQ_CST);
            if (!is_served(&told, i == 0)) {
                (void) __atomic_add_fetch(&honest->refused, 1, __ATOMIC_SEQ_CST);
            } else if (!trickled) {
                unsigned at = __atomic_fetch_add(&honest->timed, 1, __ATOMIC_SEQ_CST);
                if (at < TIMED_MAX) {
                    honest->times_ms[at] = (int) ((told.to - told.from) / 1000000);
                }
            }
        }
    }
    return NULL;
}

/* Its command, and a repeat of it. */
static void *slow_run(void *context)
{
    struct honest *honest = ((struct honest_client *) context)->honest;
    unsigned me = ((struct honest_client *) context)->me;
    struct intent intent = { .tenant = "slow", .amount = 1, .act = me % 2 == 0 ? "drip=1" : NULL };
    (void) snprintf(intent.key, sizeof intent.key, "slow-%u", me);
    for (int i = 0; i < 2; i++) {
        struct history_event told;
        (void) trial_attempt_slowly(honest->trial, &intent, SLOW_BYTE_MS, &told);
        unsigned served = is_served(&told, i == 0);
        (void) __atomic_add_fetch(&honest->slow_told, served, __ATOMIC_SEQ_CST);
        (void) __atomic_add_fetch(&honest->refused, 1 - served, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static void honest_begin(struct honest *honest)
{
    for (unsigned i = 0; i < honest->clients + honest->slow; i++) {
        void *(*run)(void *) = i < honest->clients ? honest_run : slow_run;
        honest->all[i] = (struct honest_client){ .honest = honest, .me = i };
        ck_assert_int_eq(pthread_create(&honest->all[i].thread, NULL, run, &honest->all[i]), 0);
    }
}

static void honest_end(struct honest *honest)
{
    __atomic_store_n(&honest->over, true, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < honest->clients + honest->slow; i++) {
        pthread_join(honest->all[i].thread, NULL);
    }
}

static int compare_ms(const void *a, const void *b)
{
    return *(const int *) a - *(const int *) b;
}

static int percentile_ms(struct honest *honest, unsigned percent)
{
    ck_assert_uint_gt(honest->timed, 0);
    unsigned count = honest->timed < TIMED_MAX ? honest->timed : TIMED_MAX;
    qsort(honest->times_ms, count, sizeof honest->times_ms[0], compare_ms);
    return honest->times_ms[(count * percent - 1) / 100];
}

/* How many of the crowd left something behind that a status tells of. */
static unsigned count_traces(struct trial *trial, unsigned count)
{
    unsigned traces = 0;
    for (unsigned i = 1; i < count; i += 2) {
        char fields[96];
        (void) snprintf(fields, sizeof fields, "X-Tenant: slow\r\nIdempotency-Key: never-%u\r\n", i);
        struct http_answer answer = http_request(trial->address, "GET", "/_nonbis/v1/command", fields, NULL);
        traces += answer.status != 404;
        http_answer_free(&answer);
    }
    return traces;
}

void run_slow_peers(unsigned count, unsigned clients, unsigned slow)
{
    char texts[2][32];
    const char *const settings[] = { "--set", texts[0], "--set", texts[1], NULL };
    struct trial trial;
    struct checker_report report;
    pthread_t thread;
    struct slow_crowd *crowd = calloc(1, sizeof *crowd);
    struct honest *honest = calloc(1, sizeof *honest);
    (void) snprintf(texts[0], sizeof texts[0], "header_deadline=%dms", deadline_ms());
    (void) snprintf(texts[1], sizeof texts[1], "body_deadline=%dms", deadline_ms());
    ck_assert(count <= CROWD_MAX && clients <= HONEST_MAX && slow <= SLOW_MAX);
    trial_open(&trial, "slow-peers", 0, settings);
    trial_plan(&trial, "slow-peers");
    trial_start(&trial, NULL);
    *honest = (struct honest){ .trial = &trial, .clients = clients, .slow = slow };
    crowd->trial = &trial;
    crowd->count = count;
    for (unsigned i = 0; i < count; i++) {
        crowd_join(crowd, i);
    }
    pthread_create(&thread, NULL, crowd_run, crowd);
    honest_begin(honest);
    pthread_join(thread, NULL);
    honest_end(honest);
    trial_met(&trial, "slow-peers");
    unsigned traces = count_traces(&trial, count);
    trial_settle(&trial);
    trial_check(&trial, &report);
    FIGURE("T31 slow peers=%u slow_clients=%u honest=%u asked=%u p50_ms=%d p99_ms=%d refused=%u slow_answered=%u/%u "
           "lost=%u "
           "double=%u closed_by_deadline=%u answered=%u early=%u late=%u traces=%u",
           count, slow, clients, honest->asked, percentile_ms(honest, 50), percentile_ms(honest, 99), honest->refused,
           honest->slow_told, 2 * slow, report.faults[4], report.faults[1], crowd->closed, crowd->answered,
           crowd->early, crowd->late, traces);
    ck_assert_uint_eq(crowd->closed, count);
    ck_assert_uint_eq(crowd->answered + crowd->early + crowd->late + traces, 0);
    ck_assert_uint_eq(honest->refused, 0);
    ck_assert_uint_eq(honest->slow_told, 2 * slow);
    ck_assert_int_le(percentile_ms(honest, 50), P50_MAX_MS * suite_slowness());
    ck_assert_int_le(percentile_ms(honest, 99), deadline_ms() + SLACK_MS);
    trial_end(&trial);
    free(crowd);
    free(honest);
}
