/* crash_test.c - kill -9 under load (docs/contract.md sections 6 and 11). The truth is the order handler's own ledger, which logs every arrival durably
 * before it acts. Clients write orders without pause; nonbisd is killed when a random number of answers has come in, so that the kill meets the
 * other clients anywhere in their exchange; then it is started again on the same store and every interrupted order is repeated once.
 *
 *   P0   no record was durable: the repeat is a first execution          (and the ledger had nothing)
 *   P1-2 claimed, the handler has no arrival: unknown for ever
 *   P3   claimed and executed, no outcome durable: unknown
 *   P4   outcome durable, the client did not get it: replayed */
#include "tests/support/daemon.h"
#include "tests/support/http_client.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <signal.h>

enum { KILLS = 40, WRITERS = 8, ANSWERS_MAX = 60, ORDERS_MAX = 20000, BODY_BYTES = 256 };

struct order {
    char key[32];
    char body[BODY_BYTES]; /* of the acknowledged answer; "" while there is none */
    bool unknown;          /* told so after a restart */
};

struct field {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct order orders[ORDERS_MAX];
    int count;
    int answered; /* in this round */
    char address[64];
};
static struct field field = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static struct http_answer post_order(const struct order *order)
{
    char body[128];
    (void) snprintf(body, sizeof body, "{\"item\":\"%s\",\"amount\":1}", order->key);
    return http_post(field.address, "/orders", order->key, body);
}

static void acknowledge(struct order *order, const struct http_answer *answer)
{
    (void) snprintf(order->body, sizeof order->body, "%s", answer->body);
}

static bool is_complete(const struct http_answer *answer)
{
    return answer->status == 201 && answer->whole;
}

/* Writes new orders until one is not answered. */
static void *writer_run(void *context)
{
    (void) context;
    for (;;) {
        pthread_mutex_lock(&field.lock);
        ck_assert_int_lt(field.count, ORDERS_MAX);
        struct order *order = &field.orders[field.count];
        (void) snprintf(order->key, sizeof order->key, "order-%d", field.count++);
        pthread_mutex_unlock(&field.lock);
        struct http_answer answer = post_order(order);
        bool complete = is_complete(&answer);
        pthread_mutex_lock(&field.lock);
        if (complete) {
            acknowledge(order, &answer);
            field.answered++;
        }
        pthread_cond_signal(&field.changed);
        pthread_mutex_unlock(&field.lock);
        http_answer_free(&answer);
        if (!complete) {
            return NULL;
        }
    }
}

static int effects_of(const char *handler, const char *key)
{
    char target[64];
    (void) snprintf(target, sizeof target, "/effects?key=%s", key);
    struct http_answer answer = http_request(handler, "GET", target, NULL, NULL);
    ck_assert_int_eq(answer.status, 200);
    const char *found = strstr(answer.body, "\"executions\":");
    ck_assert_ptr_nonnull(found);
    int executions = (int) strtol(found + strlen("\"executions\":"), NULL, 10);
    http_answer_free(&answer);
    return executions;
}

struct phases {
    int p0, p1, p3, p4;
    int kills_with_open_claims;
    int recovered;
};

/* Repeats what the kill interrupted, and says where it was met. */
static void repeat_interrupted(const char *handler, struct phases *phases)
{
    for (int i = 0; i < field.count; i++) {
        struct order *order = &field.orders[i];
        if (order->body[0] != '\0' || order->unknown) {
            continue;
        }
        int before = effects_of(handler, order->key);
        struct http_answer answer = post_order(order);
        char word[32] = "";
        (void) http_field(&answer, "Idempotency-Status", word, sizeof word);
        if (answer.status == 504) {
            ck_assert_str_eq(word, "unknown");
            order->unknown = true;
            *(before == 0 ? &phases->p1 : &phases->p3) += 1;
        } else {
            ck_assert_msg(is_complete(&answer), "%s: %d %s", order->key, answer.status, answer.body);
            if (strcmp(word, "executed") == 0) {
                /* An order in the ledger is never unknown to nonbis. */
                ck_assert_msg(before == 0, "%s had run and was absent after the restart", order->key);
                phases->p0++;
            } else {
                ck_assert_str_eq(word, "replayed");
                phases->p4++;
            }
            acknowledge(order, &answer);
        }
        http_answer_free(&answer);
    }
}

static void check_all(const char *handler, int *acknowledged, int *unknown)
{
    for (int i = 0; i < field.count; i++) {
        const struct order *order = &field.orders[i];
        int executions = effects_of(handler, order->key);
        ck_assert_msg(executions <= 1, "%s ran %d times", order->key, executions);
        struct http_answer answer = post_order(order);
        if (order->unknown) {
            ck_assert_int_eq(answer.status, 504);
            ++*unknown;
        } else {
            ck_assert_int_eq(executions, 1);
            ck_assert(http_field_is(&answer, "Idempotency-Status", "replayed"));
            ck_assert_str_eq(answer.body, order->body);
            ++*acknowledged;
        }
        http_answer_free(&answer);
        ck_assert_int_eq(effects_of(handler, order->key), executions);
    }
}

static void run_round(struct daemon *nonbis, struct suite_random *random)
{
    pthread_t writers[WRITERS];
    int target = 1 + (int) suite_random_below(random, ANSWERS_MAX);
    field.answered = 0;
    for (int i = 0; i < WRITERS; i++) {
        pthread_create(&writers[i], NULL, writer_run, NULL);
    }
    pthread_mutex_lock(&field.lock);
    while (field.answered < target) {
        pthread_cond_wait(&field.changed, &field.lock);
    }
    pthread_mutex_unlock(&field.lock);
    daemon_kill(nonbis);
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(writers[i], NULL);
    }
}

START_TEST(no_order_runs_twice_and_no_answer_is_lost_when_nonbisd_is_killed_at_random)
{
    struct daemon handler;
    struct daemon nonbis;
    struct suite_random random;
    struct phases phases = { 0 };
    char db[700];
    char store[700];
    const char *const latency[] = { "--latency", "2", NULL };
    unsigned seed = suite_seed();
    suite_random_start(&random, seed);
    (void) snprintf(db, sizeof db, "%s/orders.db", daemon_folder());
    (void) snprintf(store, sizeof store, "%s/nonbis.db", daemon_folder());
    daemon_start_handler(&handler, db, latency);
    for (int kill = 0; kill < KILLS; kill++) {
        daemon_start(&nonbis, handler.listen, store, NULL);
        (void) snprintf(field.address, sizeof field.address, "%s", nonbis.listen);
        int before = phases.p1 + phases.p3;
        repeat_interrupted(handler.listen, &phases);
        phases.kills_with_open_claims += phases.p1 + phases.p3 > before;
        phases.recovered += !daemon_logged(&nonbis, "recovered=0");
        run_round(&nonbis, &random);
    }
    daemon_start(&nonbis, handler.listen, store, NULL);
    (void) snprintf(field.address, sizeof field.address, "%s", nonbis.listen);
    int before = phases.p1 + phases.p3;
    repeat_interrupted(handler.listen, &phases);
    phases.kills_with_open_claims += phases.p1 + phases.p3 > before;
    int acknowledged = 0;
    int unknown = 0;
    check_all(handler.listen, &acknowledged, &unknown);
    FIGURE("crash seed=%u kills=%d orders=%d acknowledged=%d unknown=%d double=0 lost=0", seed, KILLS, field.count,
           acknowledged, unknown);
    FIGURE("crash phases: P0=%d P1-2=%d P3=%d P4=%d; kills with a durable claim and no outcome: %d", phases.p0,
           phases.p1, phases.p3, phases.p4, phases.kills_with_open_claims);
    ck_assert_int_ge(phases.kills_with_open_claims, 5);
    ck_assert_int_eq(daemon_stop(&nonbis), 0);
    ck_assert_int_eq(daemon_stop(&handler), 0);
}
END_TEST

SUITE(crash)
{
    Suite *suite = suite_create("integration/crash");
    CASE_TIMEOUT(suite, no_order_runs_twice_and_no_answer_is_lost_when_nonbisd_is_killed_at_random, 120);
    return suite;
}
