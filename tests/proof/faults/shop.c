/* shop.c - see shop.h. */
#include "tests/proof/faults/shop.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct peer_step held[] = {
    { PEER_BODY, NULL, 0 }, { PEER_WAIT, NULL, 0 }, { PEER_NUMBER, NULL, 0 }, PEER_END
};
static const struct peer_step held_large[] = { { PEER_BODY, NULL, 0 },
                                               { PEER_WAIT, NULL, 0 },
                                               { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n", 0 },
                                               { PEER_SEND, "0123456789", 50000 },
                                               PEER_END };
static const struct peer_step numbered[] = { { PEER_BODY, NULL, 0 }, { PEER_NUMBER, NULL, 0 }, PEER_END };

void shop_open(struct shop *shop)
{
    static unsigned count;
    *shop = (struct shop){ 0 };
    pthread_mutex_init(&shop->lock, NULL);
    pthread_cond_init(&shop->changed, NULL);
    shop->orders = calloc(SHOP_ORDERS_MAX, sizeof *shop->orders);
    ck_assert_ptr_nonnull(shop->orders);
    shop->peer = peer_new();
    peer_script_default(shop->peer, numbered);
    peer_script_named(shop->peer, "hold", held);
    peer_script_named(shop->peer, "hold-large", held_large);
    shop->program = "nonbisd";
    shop->body = "{\"item\":\"tea\"}";
    (void) snprintf(shop->folder, sizeof shop->folder, "%s/shop-%u", daemon_folder(), ++count);
    (void) snprintf(shop->store, sizeof shop->store, "%s/n.db", shop->folder);
    ck_assert_int_eq(mkdir(shop->folder, 0700), 0);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void) status;
    (void) kind;
    (void) walk;
    return remove(path);
}

void shop_close(struct shop *shop)
{
    (void) nftw(shop->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    peer_free(shop->peer);
    free(shop->orders);
    pthread_mutex_destroy(&shop->lock);
    pthread_cond_destroy(&shop->changed);
}

bool shop_shim(const char *name)
{
    char path[700];
    if (name == NULL) {
        unsetenv("LD_PRELOAD");
        return true;
    }
    (void) snprintf(path, sizeof path, "%.600s/tests/shim_%s.so", suite_out(), name);
    if (access(path, R_OK) != 0) {
        FIGURE("shim_%s is not tried: a sanitizer wants to be the first to stand between a program and its libraries",
               name);
        return false;
    }
    char *absolute = realpath(path, NULL);
    ck_assert_ptr_nonnull(absolute);
    setenv("LD_PRELOAD", absolute, 1);
    free(absolute);
    return true;
}

bool shop_try(struct shop *shop, int *exit_code)
{
    const char *arguments[64] = { "--listen",   "127.0.0.1:0",        "--admin", "127.0.0.1:0",
                                  "--upstream", peer_url(shop->peer), "--store", shop->store };
    int count = 8;
    for (int i = 0; shop->more != NULL && shop->more[i] != NULL; i++) {
        arguments[count++] = shop->more[i];
    }
    *exit_code = 0;
    shop->running = daemon_try(&shop->nonbis, shop->program, arguments, exit_code);
    return shop->running;
}

void shop_start(struct shop *shop)
{
    int exit_code;
    ck_assert_msg(shop_try(shop, &exit_code), "nonbisd did not start (%d), see %s", exit_code, shop->nonbis.log_path);
}

int shop_stop(struct shop *shop)
{
    shop->running = false;
    return daemon_stop(&shop->nonbis);
}

void shop_kill(struct shop *shop)
{
    shop->running = false;
    daemon_kill(&shop->nonbis);
}

/* --- one order --- */

struct order *shop_new(struct shop *shop)
{
    pthread_mutex_lock(&shop->lock);
    ck_assert_uint_lt(shop->count, SHOP_ORDERS_MAX);
    struct order *order = &shop->orders[shop->count];
    order->number = shop->count++;
    pthread_mutex_unlock(&shop->lock);
    return order;
}

static void key_of(const struct order *order, char *key, size_t size)
{
    (void) snprintf(key, size, "order-%u", order->number);
}

/* Each order once. */
static void count_lost(struct shop *shop, struct order *order, bool wrong)
{
    shop->wrongs.lost += wrong && !order->lost ? 1 : 0;
    order->lost = order->lost || wrong;
}

static void count_forgotten(struct shop *shop, struct order *order, bool wrong)
{
    shop->wrongs.forgotten += wrong && !order->forgotten ? 1 : 0;
    order->forgotten = order->forgotten || wrong;
}

/* What the answer says of an order. An acknowledged one that gets another answer is lost. */
static void hear(struct shop *shop, struct order *order, const struct http_answer *answer)
{
    char word[32] = "";
    (void) http_field(answer, "Idempotency-Status", word, sizeof word);
    bool executed = strcmp(word, "executed") == 0, replayed = strcmp(word, "replayed") == 0;
    order->denied += strcmp(word, "refused") == 0 || strcmp(word, "not-executed") == 0 ? 1 : 0;
    if (answer->status == 200 && answer->whole && (executed || replayed)) {
        unsigned number = (unsigned) strtoul(answer->body, NULL, 10);
        count_lost(shop, order, order->acked && (executed || number != order->answer));
        count_forgotten(shop, order, order->unknown && executed);
        order->acked = true;
        order->answer = number;
        return;
    }
    if (answer->status == 504 && strcmp(word, "unknown") == 0) {
        count_lost(shop, order, order->acked);
        order->unknown = true;
    }
    order->unrecorded = order->unrecorded || strcmp(word, "unrecorded") == 0;
}

static int post(struct shop *shop, struct order *order, const char *more)
{
    char key[32], fields[160];
    key_of(order, key, sizeof key);
    order->attempts++;
    order->absent = false;
    (void) snprintf(fields, sizeof fields, "Content-Type: application/json\r\nIdempotency-Key: %s\r\n%s", key, more);
    struct http_answer answer = http_request(shop->nonbis.listen, "POST", "/orders", fields, shop->body);
    int status = answer.whole ? answer.status : 0;
    pthread_mutex_lock(&shop->lock);
    hear(shop, order, &answer);
    pthread_mutex_unlock(&shop->lock);
    http_answer_free(&answer);
    return status;
}

int shop_post(struct shop *shop, struct order *order)
{
    return post(shop, order, "");
}

int shop_query(struct shop *shop, struct order *order)
{
    char key[32], fields[64];
    key_of(order, key, sizeof key);
    (void) snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n", key);
    struct http_answer answer = http_request(shop->nonbis.listen, "GET", "/_nonbis/v1/command", fields, NULL);
    int status = answer.whole ? answer.status : 0;
    order->absent = order->absent || status == 404;
    http_answer_free(&answer);
    return status;
}

/* --- a rush --- */

static void *write_orders(void *context)
{
    struct shop *shop = context;
    for (bool goes_on = true; goes_on;) {
        struct order *order = shop_new(shop);
        (void) shop_post(shop, order);
        pthread_mutex_lock(&shop->lock);
        goes_on = order->acked;
        shop->answered += order->acked ? 1 : 0;
        pthread_cond_signal(&shop->changed);
        pthread_mutex_unlock(&shop->lock);
    }
    return NULL;
}

void shop_rush(struct shop *shop, unsigned writers, unsigned answers)
{
    shop->answered = 0;
    shop->writer_count = writers;
    for (unsigned i = 0; i < writers; i++) {
        ck_assert_int_eq(pthread_create(&shop->writers[i], NULL, write_orders, shop), 0);
    }
    pthread_mutex_lock(&shop->lock);
    while (shop->answered < answers) {
        pthread_cond_wait(&shop->changed, &shop->lock);
    }
    pthread_mutex_unlock(&shop->lock);
}

static void *hold_order(void *context)
{
    struct shop *shop = context;
    struct order *order = shop_new(shop);
    (void) post(shop, order, order->number % 2 == 0 ? "X-Script: hold\r\n" : "X-Script: hold-large\r\n");
    return NULL;
}

void shop_hold(struct shop *shop, unsigned count)
{
    shop->holder_count = count;
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(pthread_create(&shop->holders[i], NULL, hold_order, shop), 0);
    }
    ck_assert(peer_wait_stalled(shop->peer, count));
}

void shop_let_go(struct shop *shop)
{
    peer_release(shop->peer, shop->holder_count);
    for (unsigned i = 0; i < shop->holder_count; i++) {
        pthread_join(shop->holders[i], NULL);
    }
    shop->holder_count = 0;
}

void shop_rush_end(struct shop *shop)
{
    for (unsigned i = 0; i < shop->writer_count; i++) {
        pthread_join(shop->writers[i], NULL);
    }
    shop->writer_count = 0;
}

static void *order_once(void *context)
{
    struct shop *shop = context;
    (void) shop_post(shop, shop_new(shop));
    return NULL;
}

void shop_crowd(struct shop *shop, unsigned count)
{
    pthread_t *threads = calloc(count, sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, (size_t) 128 * 1024);
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], &small, order_once, shop), 0);
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_attr_destroy(&small);
    free(threads);
}

/* --- judging --- */

void shop_tally(struct shop *shop)
{
    struct buf request;
    buf_init(&request, 4 * 1024 * 1024);
    while (shop->tallied < peer_count_requests(shop->peer)) {
        request.len = 0;
        ck_assert(peer_request(shop->peer, ++shop->tallied, &request));
        const char name[] = "Idempotency-Key: order-";
        const char *found = memmem(request.ptr, request.len, name, sizeof name - 1);
        ck_assert_ptr_nonnull(found);
        unsigned number = 0;
        for (found += sizeof name - 1; *found >= '0' && *found <= '9'; found++) {
            number = number * 10 + (unsigned) (*found - '0');
        }
        ck_assert_uint_lt(number, shop->count);
        shop->orders[number].ran_as = shop->tallied;
        shop->wrongs.twice += ++shop->orders[number].executions > 1 ? 1 : 0;
    }
    buf_fini(&request);
}

static void judge(struct shop *shop, struct order *order)
{
    struct shop_wrongs *wrongs = &shop->wrongs;
    unsigned before = order->executions;
    bool acked = order->acked, told_absent = order->absent;
    wrongs->liar += before > order->attempts - order->denied ? 1 : 0;
    int seen = shop_query(shop, order);
    wrongs->ghosts += told_absent && seen == 200 ? 1 : 0;
    if (seen == 404) {
        count_lost(shop, order, acked);
        count_forgotten(shop, order, before > 0 || order->unknown);
    }
    int status = shop_post(shop, order);
    ck_assert_msg(status == 200 || status == 504, "order-%u got %d after the fault, see %s", order->number, status,
                  shop->nonbis.log_path);
    shop_tally(shop);
}

void shop_judge(struct shop *shop, unsigned first)
{
    shop_tally(shop);
    for (unsigned i = first; i < shop->count; i++) {
        judge(shop, &shop->orders[i]);
    }
}

unsigned shop_count_acked(const struct shop *shop)
{
    unsigned count = 0;
    for (unsigned i = 0; i < shop->count; i++) {
        count += shop->orders[i].acked ? 1 : 0;
    }
    return count;
}

unsigned shop_count_unknown(const struct shop *shop)
{
    unsigned count = 0;
    for (unsigned i = 0; i < shop->count; i++) {
        count += shop->orders[i].unknown && !shop->orders[i].acked ? 1 : 0;
    }
    return count;
}

void shop_expect_right(const struct shop *shop)
{
    const struct shop_wrongs *wrongs = &shop->wrongs;
    ck_assert_msg(wrongs->lost + wrongs->twice + wrongs->liar + wrongs->forgotten + wrongs->ghosts == 0,
                  "lost %u, twice %u, denied %u, forgotten %u, ghosts told absent %u; see %s", wrongs->lost,
                  wrongs->twice, wrongs->liar, wrongs->forgotten, wrongs->ghosts, shop->nonbis.log_path);
}
