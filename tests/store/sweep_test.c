/* sweep_test.c - the clean-up of what time has ended (docs/contract.md 9.7): small batches between which clients' work goes on, and a figure that
 * says how far behind it is. What ran when is counted at a gate, not timed: every begin of the store thread waits until the test lets it go. */
#include "server/store/backlog.h"
#include "server/store/sqlite_store.h"
#include "server/store/worker.h"
#include "tests/store/store_fixture.h"

#include <fcntl.h>
#include <pthread.h>

/* --- a store whose begins are let go one by one, and that writes down what ran --- */

enum { OPERATIONS_MAX = 1024 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned inside;                 /* begins that came this far */
    unsigned allowed;                /* begins that may pass */
    char operations[OPERATIONS_MAX]; /* 'S' a sweep, 'C' a claim */
    size_t operation_count;
    const struct store_class *real;
    struct store_class ops;
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static enum store_result gate_begin(struct store *store)
{
    pthread_mutex_lock(&gate.lock);
    unsigned turn = ++gate.inside;
    pthread_cond_broadcast(&gate.changed);
    while (turn > gate.allowed) {
        pthread_cond_wait(&gate.changed, &gate.lock);
    }
    pthread_mutex_unlock(&gate.lock);
    return gate.real->begin(store);
}

static void gate_write(char operation)
{
    pthread_mutex_lock(&gate.lock);
    if (gate.operation_count < OPERATIONS_MAX - 1) {
        gate.operations[gate.operation_count++] = operation;
    }
    pthread_mutex_unlock(&gate.lock);
}

static enum store_result gate_sweep(struct store *store, struct store_sweep *sweep, int64_t now_ms)
{
    gate_write('S');
    return gate.real->sweep(store, sweep, now_ms);
}

static enum store_result gate_claim(struct store *store, const struct store_claim *claim, int64_t now_ms,
                                    struct store_found *found)
{
    gate_write('C');
    return gate.real->claim(store, claim, now_ms, found);
}

/* Until the thread stands in its n-th begin. */
static void gate_wait(unsigned n)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.inside < n) {
        pthread_cond_wait(&gate.changed, &gate.lock);
    }
    pthread_mutex_unlock(&gate.lock);
}

static void gate_allow(unsigned n)
{
    pthread_mutex_lock(&gate.lock);
    gate.allowed = n;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static void gate_close(struct store *store)
{
    gate.real = store->ops;
    gate.ops = *store->ops;
    gate.ops.begin = gate_begin;
    gate.ops.sweep = gate_sweep;
    gate.ops.claim = gate_claim;
    store->ops = &gate.ops;
}

/* --- the scene --- */

static int64_t now_ms = 1000000;

static int64_t moving_clock(void *context)
{
    (void) context;
    return __atomic_load_n(&now_ms, __ATOMIC_RELAXED);
}

static void move(int64_t ms)
{
    (void) __atomic_add_fetch(&now_ms, ms, __ATOMIC_RELAXED);
}

static const struct store_clock moved = { moving_clock, moving_clock, NULL };
static char directory[64], path[80];
static struct loop *loop;
static int done_count;

/* Index 0: SQLite, 1: memory. */
static struct store *open_store(int implementation)
{
    struct store_options options = fixture_options("memory");
    options.clock = &moved;
    if (implementation == 1) {
        return store_open_memory(&options);
    }
    fixture_directory(directory);
    (void) snprintf(path, sizeof path, "%s/store.db", directory);
    options.path = path;
    return fixture_open(&options);
}

/* `count` commands, completed a millisecond apart from 1000000 on, so that one falls due at 1010000, the next at 1010001, and so on. */
static void fill(struct store *store, int count)
{
    for (int i = 0; i < count; i++) {
        char key[16];
        struct store_found found;
        struct record after;
        (void) snprintf(key, sizeof key, "k-%d", i);
        struct store_claim claim = fixture_claim(key, 1, 0);
        if (i % 100 == 0) {
            ck_assert_int_eq(store_begin(store), STORE_OK);
        }
        ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
        struct store_finish finish = fixture_finish(key, &found, OUTCOME_COMPLETED);
        ck_assert_int_eq(store_finish_command(store, &finish, &after), STORE_OK);
        if (i % 100 == 99 || i == count - 1) {
            ck_assert_int_eq(store_commit(store), STORE_OK);
        }
        move(1);
    }
}

static struct store_worker *start(struct store *store, unsigned sweep_batch)
{
    const struct store_worker_options options = {
        .claims_max = 100, .reads_max = 100, .sweep_batch = sweep_batch, .sweep_every_ms = 1
    };
    loop = loop_new();
    return store_worker_start(store, &options);
}

static void stop(struct store_worker *worker)
{
    gate_allow(UINT32_MAX);
    store_worker_stop(worker);
    loop_free(loop);
    if (directory[0] != '\0') {
        fixture_remove(directory);
    }
}

static struct client {
    struct store_task task; /* first */
    char key[16];
} clients[5];
enum { CLIENTS = sizeof clients / sizeof clients[0] };

static void client_done(struct store_task *task)
{
    ck_assert_int_eq(task->result, STORE_OK);
    ck_assert(task->found.claimed);
    done_count++;
}

static void submit_claims(struct store_worker *worker, int round)
{
    for (int i = 0; i < CLIENTS; i++) {
        struct client *client = &clients[i];
        (void) snprintf(client->key, sizeof client->key, "new-%d-%d", round, i);
        client->task = (struct store_task){ .kind = STORE_TASK_CLAIM, .home = loop, .done = client_done };
        client->task.claim = fixture_claim(client->key, 1, 0);
        ck_assert(store_worker_submit(worker, &client->task));
    }
}

/* --- batches --- */

/* 3,000 answers have expired, the oldest 8 s ago. Five clients come while a batch is cleaned up: each time all of them have their claims before
 * the next batch is. */
START_TEST(thousands_of_due_records_are_cleaned_up_between_the_claims_of_clients)
{
    enum { RECORDS = 3000, BATCH = 100, ROUNDS = RECORDS / BATCH };
    struct store_worker_figures figures;
    struct store *store = open_store(_i);
    fill(store, RECORDS);
    move(15000); /* to 1018000 */
    gate_close(store);
    struct store_worker *worker = start(store, BATCH);
    for (int round = 0; round < ROUNDS; round++) {
        unsigned turn = 2 * (unsigned) round + 1;
        gate_wait(turn); /* a batch of the sweep is about to begin */
        submit_claims(worker, round);
        gate_allow(turn);
        gate_wait(turn + 1); /* it is over, and the claims are about to begin */
        store_worker_figures(worker, &figures);
        ck_assert_uint_eq(figures.sweep_expired, 100 * ((unsigned) round + 1));
        ck_assert_int_eq(figures.sweep_behind_ms, round == 29 ? 0 : 7900 - 100 * round);
        gate_allow(turn + 1);
        while (done_count < CLIENTS * (round + 1)) {
            (void) loop_run_once(loop, true);
        }
    }
    gate_wait(2 * ROUNDS + 1);
    ck_assert_uint_eq(gate.operation_count, 180);
    for (int round = 0; round < ROUNDS; round++) {
        ck_assert_mem_eq(gate.operations + (ptrdiff_t) 6 * round, "SCCCCC", 6);
    }
    store_worker_figures(worker, &figures);
    ck_assert_uint_eq(figures.sweep_expired, 3000);
    ck_assert_uint_eq(figures.sweep_forgotten, 0);
    ck_assert_uint_eq(figures.tasks, 150);
    ck_assert_int_eq(figures.sweep_behind_ms, 0);
    stop(worker);
}
END_TEST

START_TEST(the_figure_grows_with_time_while_records_are_left)
{
    struct store_worker_figures figures;
    struct store *store = open_store(_i);
    fill(store, 30);
    move(10000); /* to 1010030: all are due */
    gate_close(store);
    struct store_worker *worker = start(store, 10);
    gate_wait(1);
    store_worker_figures(worker, &figures);
    ck_assert_int_eq(figures.sweep_behind_ms, 0); /* nobody has looked yet */
    gate_allow(1);
    gate_wait(2);
    store_worker_figures(worker, &figures);
    ck_assert_int_eq(figures.sweep_behind_ms, 20);
    move(3600000);
    store_worker_figures(worker, &figures);
    ck_assert_int_eq(figures.sweep_behind_ms, 3600020);
    gate_allow(2); /* an hour on they are forgotten instead */
    gate_wait(3);
    store_worker_figures(worker, &figures);
    ck_assert_uint_eq(figures.sweep_expired, 10);
    ck_assert_uint_eq(figures.sweep_forgotten, 10);
    ck_assert_int_eq(figures.sweep_behind_ms, 3600010);
    stop(worker);
}
END_TEST

/* --- a sweep that gets nothing done --- */

static char log_path[80];

static void log_to_file(void)
{
    (void) snprintf(log_path, sizeof log_path, "%s/log", directory);
    int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    (void) close(fd);
    log_setup(LOG_WARN, LOG_TEXT);
}

/* What stands in the log so far. */
static const char *logged(void)
{
    static char text[4096];
    int fd = open(log_path, O_RDONLY | O_CLOEXEC);
    ssize_t len = read(fd, text, sizeof text - 1);
    (void) close(fd);
    text[len > 0 ? len : 0] = '\0';
    return text;
}

/* On a full disk deleting fails as well: what was found due is still known, and that it gets worse is told once a doubling. */
START_TEST(a_sweep_that_finds_no_room_says_how_far_behind_it_is)
{
    static const struct {
        int64_t move_ms, behind_ms;
        const char *told; /* the newest line */
    } rows[] = {
        { 5000, 5000, NULL },
        { 59999, 64999, NULL },
        { 1, 65000, "due for 65 s" },
        { 64999, 129999, NULL },
        { 1, 130000, "due for 130 s" },
        { 10000, 140000, NULL },
        { 400000, 540000, "for 540 s" },
    };
    enum { ROWS = sizeof rows / sizeof rows[0] };
    struct store_worker_figures figures;
    struct store *store = open_store(0);
    size_t log_len = 0;
    fill(store, 10);
    move(9990); /* to 1010000: the first is due now */
    gate_close(store);
    struct store_worker *worker = start(store, 100);
    log_to_file();
    for (unsigned i = 0; i < ROWS; i++) {
        gate_wait(i + 1);
        move(rows[i].move_ms);
        store_fault_plant(store, STORE_FAULT_COMMIT, 1, STORE_FULL, false); /* the thread stands at the gate */
        gate_allow(i + 1);
        gate_wait(i + 2);
        store_worker_figures(worker, &figures);
        ck_assert_int_eq(figures.sweep_behind_ms, rows[i].behind_ms);
        ck_assert_uint_eq(figures.sweep_expired + figures.sweep_forgotten, 0);
        const char *line = logged() + log_len;
        ck_assert_msg(rows[i].told != NULL ? strstr(line, rows[i].told) != NULL : *line == '\0', "row %u: '%s'", i,
                      line);
        log_len += strlen(line);
    }
    gate_allow(ROWS + 1); /* there is room again */
    gate_wait(ROWS + 2);
    store_worker_figures(worker, &figures);
    ck_assert_uint_eq(figures.sweep_forgotten, 10);
    ck_assert_int_eq(figures.sweep_behind_ms, 0);
    stop(worker);
}
END_TEST

/* --- when it is told --- */

START_TEST(what_falls_behind_is_told_by_a_minute_of_growth_and_then_at_each_doubling)
{
    static const struct {
        int64_t due_ms, now_ms, told_ms, behind_ms;
    } rows[] = {
        { 0, 1000, 0, 0 },
        { 1000, 87401000, 0, 87400000 }, /* after a stop of a day: work, no news */
        { 1000, 87460999, 0, 87459999 },
        { 50000000, 87461000, 0, 37461000 }, /* it gets less */
        { 1000, 87461000, 87460000, 87460000 },
        { 1000, 174920999, 0, 174919999 },
        { 1000, 174921000, 174920000, 174920000 },
        { 0, 174921000, 0, 0 }, /* caught up: it begins anew */
        { 174921000, 174921001, 0, 1 },
        { 174921000, 174981000, 0, 60000 },
        { 174921000, 174981001, 60001, 60001 },
        { 174990000, 174981001, 0, 0 }, /* due in the future: nothing is behind */
    };
    struct backlog backlog = { .due_ms = 0 };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t told_ms = backlog_note(&backlog, rows[i].due_ms, rows[i].now_ms);
        ck_assert_msg(told_ms == rows[i].told_ms, "row %zu: told %lld", i, (long long) told_ms);
        ck_assert_int_eq(backlog_behind_ms(&backlog, rows[i].now_ms), rows[i].behind_ms);
    }
}
END_TEST

/* --- at what cost --- */

/* How often a block of rows was read since the last look. */
static int blocks_read(struct store *store)
{
    return sqlite3_stmt_status(sqlite_store_of(store)->statements[SQL_READ_BLOCK], SQLITE_STMTSTATUS_RUN, 1);
}

/* 1,100 records in rows 1 to 1100, which fall due a millisecond apart: blocks of 255, 256, 256, 256 and 77 rows. */
START_TEST(a_sweep_reads_the_blocks_of_rows_whose_time_has_come_and_no_others)
{
    struct store *store = open_store(0);
    fill(store, 1100); /* to 1001100 */
    static const struct {
        int64_t move_ms;
        unsigned limit, expired;
        bool more;
        int64_t found_ms, left_ms;
        int blocks;
    } rows[] = {
        { 8899, 10, 0, false, 0, 0, 0 },              /* nothing is due yet, and nothing is read */
        { 1, 10, 1, false, 1010000, 0, 1 },           /* to 1010000 */
        { 0, 10, 0, false, 0, 0, 0 },                 /* it is known when the next one is due */
        { 4, 10, 4, false, 1010001, 0, 1 },           /* to 1010004 */
        { 249, 300, 249, false, 1010005, 0, 1 },      /* to 1010253: but one of the first block */
        { 2, 300, 2, false, 1010254, 0, 2 },          /* the last of the first block and the first of the second */
        { 745, 100, 100, true, 1010256, 1010356, 1 }, /* to 1011000: a block holds more than the limit */
        { 0, 700, 645, false, 1010356, 0, 3 },
        { 98, 99, 98, false, 1011001, 0, 2 }, /* to 1011098 */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        move(rows[i].move_ms);
        struct store_sweep sweep = fixture_sweep(store, rows[i].limit);
        ck_assert_msg(sweep.expired == rows[i].expired && sweep.forgotten == 0 && sweep.more == rows[i].more &&
                          sweep.found_due_ms == rows[i].found_ms && sweep.left_due_ms == rows[i].left_ms,
                      "row %zu: expired %u, forgotten %u, more %d, found %lld, left %lld", i, sweep.expired,
                      sweep.forgotten, sweep.more, (long long) sweep.found_due_ms, (long long) sweep.left_due_ms);
        ck_assert_msg(blocks_read(store) == rows[i].blocks, "row %zu: other blocks than %d", i, rows[i].blocks);
    }
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* 40 records, each in a block of its own, which is more than one sweep reads: what it did not read is behind all the same. */
START_TEST(a_sweep_says_how_far_behind_it_is_with_blocks_that_it_did_not_read)
{
    static const struct {
        unsigned limit, expired;
        bool more;
        int64_t found_ms, left_ms;
    } rows[] = {
        { 100, 32, true, 1010000, 1010032 }, /* the limit is not met, and still there is more */
        { 5, 5, true, 1010032, 1010037 },
        { 100, 3, false, 1010037, 0 },
    };
    struct store *store = open_store(0);
    for (int i = 0; i < 40; i++) {
        char key[16];
        struct record after;
        (void) snprintf(key, sizeof key, "k-%d", i);
        sqlite_store_of(store)->next_row = 1 + 256 * i;
        struct store_found found = fixture_claim_now(store, key, 1, 0);
        struct store_finish finish = fixture_finish(key, &found, OUTCOME_COMPLETED);
        ck_assert_int_eq(store_begin(store), STORE_OK);
        ck_assert_int_eq(store_finish_command(store, &finish, &after), STORE_OK);
        ck_assert_int_eq(store_commit(store), STORE_OK);
        move(1);
    }
    move(20000);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct store_sweep sweep = fixture_sweep(store, rows[i].limit);
        ck_assert_msg(sweep.expired == rows[i].expired && sweep.more == rows[i].more &&
                          sweep.found_due_ms == rows[i].found_ms && sweep.left_due_ms == rows[i].left_ms,
                      "row %zu: expired %u, more %d, found %lld, left %lld", i, sweep.expired, sweep.more,
                      (long long) sweep.found_due_ms, (long long) sweep.left_due_ms);
    }
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* A block is read by its row numbers alone: neither sorted nor searched. */
START_TEST(a_block_of_rows_is_found_by_its_numbers)
{
    static const char *const steps[] = { "SEARCH commands USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
                                         "SEARCH responses USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN" };
    struct store *store = open_store(0);
    char sql[2048];
    sqlite3_stmt *plan;
    struct sqlite_store *sqlite = sqlite_store_of(store);
    (void) snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", sqlite3_sql(sqlite->statements[SQL_READ_BLOCK]));
    ck_assert_int_eq(sqlite3_prepare_v2(sqlite->db, sql, -1, &plan, NULL), SQLITE_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(sqlite3_step(plan), SQLITE_ROW);
        ck_assert_str_eq((const char *) sqlite3_column_text(plan, 3), steps[i]);
    }
    ck_assert_int_eq(sqlite3_step(plan), SQLITE_DONE);
    ck_assert_int_eq(sqlite3_finalize(plan), SQLITE_OK);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

SUITE(store_sweep)
{
    Suite *suite = suite_create("store/sweep");
    CASE_LOOP(suite, thousands_of_due_records_are_cleaned_up_between_the_claims_of_clients, 2);
    CASE_LOOP(suite, the_figure_grows_with_time_while_records_are_left, 2);
    CASE(suite, a_sweep_that_finds_no_room_says_how_far_behind_it_is);
    CASE(suite, what_falls_behind_is_told_by_a_minute_of_growth_and_then_at_each_doubling);
    CASE(suite, a_sweep_reads_the_blocks_of_rows_whose_time_has_come_and_no_others);
    CASE(suite, a_sweep_says_how_far_behind_it_is_with_blocks_that_it_did_not_read);
    CASE(suite, a_block_of_rows_is_found_by_its_numbers);
    return suite;
}
