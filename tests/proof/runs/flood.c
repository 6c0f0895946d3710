/* flood.c - T17: one tenant floods with new keys, while others work at a modest, steady rate. It gets its quota and no more;
 * the others are never refused for it, lose nothing, and hardly notice. Executions are counted at the handler.
 *
 * Where times are judged the flood brings forty times its quota. Else it is as fast as it is answered: with its clients on the same machine that takes
 * the processors from everybody, which is no matter of quotas (docs/threat-model.md, 1).
 *
 * Flood, clients, handler and server share the machine's processors, and perhaps with others. So short spells alone and beside the flood take turns;
 * some of them in a row are a group; and what counts is the median of the groups, so that what disturbs the machine for some seconds does so to both
 * kinds, and to a few groups only. How far the spells alone differ among themselves, every other one of them against the rest, is told beside it. */
#include "tests/proof/runs/runs.h"
#include "tests/support/rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
    OTHERS = 4,
    EVERY_MS = 25, /* each of them sends a command */
    COMMANDS = 10, /* of each, in one spell: a quarter of a second */
    SPELL = OTHERS * COMMANDS,
    FLOODERS = 8,    /* connections of the one that floods */
    RATE = 50,       /* tenant_rate, and tenant_burst */
    PACE_MS = 4,     /* of each connection of a flood that is paced: 2000/s in all */
    ROUNDS_MAX = 80, /* of two spells: alone, and beside the flood */
    GROUP = 3,       /* rounds */
};

/* Beside the flood the others' times may be a fifth longer, as far as can be measured: the flood's own commands, which it may run, have to be written
 * too, and clients and flood take turns on the same processors, which costs some milliseconds. */
#define MEDIAN_MOST_MS(alone_ms) ((alone_ms) *1.2 + 5)
#define P99_MOST_MS(alone_ms) ((alone_ms) *1.2 + 10)

static struct rig rig;
static atomic_bool flood_over;
static bool paced;

/* One of those that work. */
struct worker {
    pthread_t thread;
    unsigned number;
    unsigned sent, refused, other; /* in all spells; other: answers that are neither "executed" nor 429 */
    int times[COMMANDS];           /* us from due to the whole answer, of this spell */
};

/* Of one kind of spell, by round. */
struct times {
    int us[ROUNDS_MAX][SPELL];
};

struct flooder {
    pthread_t thread;
    unsigned number;
    struct suite_random random;
    unsigned executed, refused, other;
};

static int64_t now_us(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static struct http_answer post_on(int fd, const char *tenant, const char *key)
{
    char request[256];
    int len = snprintf(request, sizeof request,
                       "POST /orders HTTP/1.1\r\nHost: test.example\r\nX-Tenant: %s\r\nIdempotency-Key: %s\r\n"
                       "Content-Length: 2\r\n\r\nhi",
                       tenant, key);
    (void) http_send(fd, request, (size_t) len);
    return http_receive(fd, false, NULL);
}

static void worker_names(const struct worker *worker, unsigned command, char tenant[16], char key[32])
{
    (void) snprintf(tenant, 16, "other-%u", worker->number);
    (void) snprintf(key, 32, "w%u-%u", worker->number, command);
}

static void *worker_run(void *context)
{
    struct worker *worker = context;
    const struct itimerspec every = { .it_interval = { .tv_nsec = EVERY_MS * 1000000L },
                                      .it_value = { .tv_nsec = EVERY_MS * 1000000L } };
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), fd = http_connect(rig.address);
    int64_t begin_us = now_us();
    uint64_t passed = 0, more;
    (void) timerfd_settime(timer, 0, &every, NULL);
    for (int i = 0; i < COMMANDS; i++) {
        if (passed == 0 && read(timer, &more, sizeof more) == (ssize_t) sizeof more) {
            passed = more;
        }
        passed--;
        char tenant[16], key[32];
        worker_names(worker, worker->sent++, tenant, key);
        struct http_answer answer = post_on(fd, tenant, key);
        worker->times[i] = (int) (now_us() - begin_us - (int64_t) (i + 1) * EVERY_MS * 1000);
        worker->refused += answer.status == 429;
        worker->other += answer.status != 429 && !http_field_is(&answer, "Idempotency-Status", "executed");
        http_answer_free(&answer);
    }
    close(timer);
    close(fd);
    return NULL;
}

static void *flooder_run(void *context)
{
    struct flooder *flooder = context;
    const struct itimerspec every = { .it_interval = { .tv_nsec = PACE_MS * 1000000L },
                                      .it_value = { .tv_nsec = PACE_MS * 1000000L } };
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), fd = http_connect(rig.address);
    uint64_t passed = 0, more;
    (void) timerfd_settime(timer, 0, &every, NULL);
    while (!atomic_load(&flood_over)) {
        char key[40];
        if (paced && passed == 0 && read(timer, &more, sizeof more) == (ssize_t) sizeof more) {
            passed = more;
        }
        passed--; /* without a pace it is not looked at */
        (void) snprintf(key, sizeof key, "%08x%08x", suite_random_next(&flooder->random),
                        suite_random_next(&flooder->random));
        struct http_answer answer = post_on(fd, "flood", key);
        bool quota = answer.status == 429 && strstr(answer.body, ":quota-exceeded\"") != NULL;
        flooder->executed += http_field_is(&answer, "Idempotency-Status", "executed");
        flooder->refused += quota;
        flooder->other += !quota && answer.status != 200;
        bool closed = answer.closed;
        http_answer_free(&answer);
        if (closed) {
            close(fd);
            fd = http_connect(rig.address);
        }
    }
    close(timer);
    close(fd);
    return NULL;
}

static int compare_times(const void *a, const void *b)
{
    return *(const int *) a - *(const int *) b;
}

/* All work for one spell. */
static void work(struct worker *workers, int us[SPELL])
{
    for (unsigned i = 0; i < OTHERS; i++) {
        workers[i].number = i;
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]), 0);
    }
    for (unsigned i = 0; i < OTHERS; i++) {
        pthread_join(workers[i].thread, NULL);
        memcpy(us + (size_t) i * COMMANDS, workers[i].times, sizeof workers[i].times);
    }
}

/* Of every `step`th round from `first` on, in ms: the median over groups of what so many hundredths of a group stay within. */
static double share_of(const struct times *times, unsigned hundredths, unsigned first, unsigned rounds, unsigned step)
{
    int groups[ROUNDS_MAX], group[GROUP * SPELL];
    unsigned count = 0, filled = 0;
    for (unsigned round = first; round < rounds; round += step) {
        memcpy(group + filled, times->us[round], sizeof times->us[round]);
        filled += SPELL;
        if (filled == GROUP * SPELL || (count == 0 && round + step >= rounds)) {
            qsort(group, filled, sizeof group[0], compare_times);
            groups[count++] = group[(filled * hundredths - 1) / 100];
            filled = 0;
        }
    }
    qsort(groups, count, sizeof groups[0], compare_times);
    unsigned middle = count / 2;
    return count > 0 ? groups[middle] / 1e3 : 0;
}

/* Keys of the others that are not replayed now. */
static unsigned count_lost(const struct worker *workers)
{
    unsigned lost = 0;
    int fd = http_connect(rig.address);
    for (unsigned i = 0; i < OTHERS; i++) {
        for (unsigned command = 0; command < workers[i].sent; command++) {
            char tenant[16], key[32];
            worker_names(&workers[i], command, tenant, key);
            struct http_answer answer = post_on(fd, tenant, key);
            lost += !http_field_is(&answer, "Idempotency-Status", "replayed");
            http_answer_free(&answer);
        }
    }
    close(fd);
    return lost;
}

static void flooders_begin(struct flooder *flooders, unsigned seed)
{
    atomic_store(&flood_over, false);
    for (unsigned i = 0; i < FLOODERS; i++) {
        suite_random_start(&flooders[i].random, seed + i);
        ck_assert_int_eq(pthread_create(&flooders[i].thread, NULL, flooder_run, &flooders[i]), 0);
    }
}

static struct flooder flooders_end(struct flooder *flooders)
{
    struct flooder sum = { .executed = 0 };
    atomic_store(&flood_over, true);
    for (unsigned i = 0; i < FLOODERS; i++) {
        pthread_join(flooders[i].thread, NULL);
        sum.executed += flooders[i].executed;
        sum.refused += flooders[i].refused;
        sum.other += flooders[i].other;
    }
    return sum;
}

/* What was seen over all rounds. */
struct flood {
    struct times alone, beside;
    struct flooder sum;
    int64_t took_us;
};

static void flood_round(struct flood *flood, unsigned round, struct worker *workers)
{
    struct flooder flooders[FLOODERS] = { { .executed = 0 } };
    work(workers, flood->alone.us[round]);
    int64_t begin_us = now_us();
    flooders_begin(flooders, suite_seed() + round * FLOODERS);
    work(workers, flood->beside.us[round]);
    struct flooder sum = flooders_end(flooders);
    flood->took_us += now_us() - begin_us;
    flood->sum.executed += sum.executed;
    flood->sum.refused += sum.refused;
    flood->sum.other += sum.other;
}

struct counts {
    unsigned others_refused, lost, ran, most, sent;
};

static void tell(const struct flood *flood, unsigned rounds, struct counts counts)
{
    const struct times *alone = &flood->alone, *beside = &flood->beside;
    FIGURE("T17 flood quota_hit=%d flooder_refused=%u others_refused=%u others_p99_ms=%.1f (alone: %.1f; in halves: "
           "%.1f %.1f) "
           "others_p50_ms=%.1f (alone: %.1f) others_p90_ms=%.1f (alone: %.1f) live_evicted=%u flooder_ran=%u of=%u "
           "offered_per_s=%.0f others=%d commands=%u rounds=%u seed=%u",
           flood->sum.refused > 0, flood->sum.refused, counts.others_refused, share_of(beside, 99, 0, rounds, 1),
           share_of(alone, 99, 0, rounds, 1), share_of(alone, 99, 0, rounds, 2), share_of(alone, 99, 1, rounds, 2),
           share_of(beside, 50, 0, rounds, 1), share_of(alone, 50, 0, rounds, 1), share_of(beside, 90, 0, rounds, 1),
           share_of(alone, 90, 0, rounds, 1), counts.lost, counts.ran, counts.most,
           (flood->sum.refused + flood->sum.executed) * 1e6 / (double) flood->took_us, OTHERS, counts.sent, rounds,
           suite_seed());
}

void run_flood(unsigned rounds, bool timed)
{
    static struct worker workers[OTHERS];
    static const char *const settings[] = { "--set", "tenant=header:X-Tenant", "--set", "tenant_rate=50/s",
                                            "--set", "tenant_burst=50",        NULL };
    static struct flood flood;
    unsigned refused = 0, other = 0, sent = 0;
    ck_assert_uint_le(rounds, ROUNDS_MAX);
    paced = timed;
    rig_start(&rig, settings);
    int64_t begin_us = now_us();
    for (unsigned round = 0; round < rounds; round++) {
        flood_round(&flood, round, workers);
    }
    unsigned most = RATE + (unsigned) ((now_us() - begin_us) * RATE / 1000000);
    for (unsigned i = 0; i < OTHERS; i++) {
        refused += workers[i].refused;
        other += workers[i].other;
        sent += workers[i].sent;
    }
    unsigned ran = peer_count_requests(rig.peer) - sent;
    unsigned lost = count_lost(workers);
    tell(&flood, rounds, (struct counts){ refused, lost, ran, most, sent });
    ck_assert_uint_gt(flood.sum.refused, 0);
    ck_assert_uint_eq(flood.sum.other + other, 0);
    ck_assert_uint_eq(refused, 0);
    ck_assert_uint_eq(lost, 0);
    ck_assert_uint_eq(ran, flood.sum.executed);
    ck_assert_uint_le(ran, most);
    ck_assert_uint_ge(ran, RATE);                                 /* and it gets what it may have */
    ck_assert_uint_eq(peer_count_requests(rig.peer), sent + ran); /* no repeat ran */
    if (timed) {
        ck_assert_double_le(share_of(&flood.beside, 50, 0, rounds, 1),
                            MEDIAN_MOST_MS(share_of(&flood.alone, 50, 0, rounds, 1)));
        ck_assert_double_le(share_of(&flood.beside, 99, 0, rounds, 1),
                            P99_MOST_MS(share_of(&flood.alone, 99, 0, rounds, 1)));
    }
    rig_end(&rig);
}
