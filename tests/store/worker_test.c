/* worker_test.c - the store thread (server/store/worker.h): order, budgets, one wake-up per batch and loop, what a
 * failed batch means for its tasks. */
#include "server/store/worker.h"
#include "tests/store/gate_store.h"
#include "tests/store/store_fixture.h"

/* --- tasks --- */

enum { TASKS_MAX = 300 };

static struct test_task {
    struct store_task task;
    char key[16];
} tasks[TASKS_MAX];
static struct loop *loop;
static int done_count, failed_calls;
static int done_order[TASKS_MAX];

static void task_done(struct store_task *task)
{
    done_order[done_count++] = (int) ((struct test_task *) (void *) task - tasks);
}

static void worker_failed(void *context)
{
    (*(int *) context)++;
}

static struct store_worker *start(struct store *store, unsigned claims_max, unsigned reads_max)
{
    struct store_worker_options options = {
        .claims_max = claims_max,
        .reads_max = reads_max,
        .sweep_batch = 10,
        .sweep_every_ms = 3600000,
        .failed = worker_failed,
        .context = &failed_calls,
    };
    loop = loop_new();
    return store_worker_start(store, &options);
}

static struct store_task *task(int index, enum store_task_kind kind, const char *key)
{
    struct test_task *made = &tasks[index];
    (void) snprintf(made->key, sizeof made->key, "%s", key);
    made->task = (struct store_task){ .kind = kind, .home = loop, .done = task_done, .retention = fixture_retention };
    made->task.claim = fixture_claim(made->key, 1, 0);
    return &made->task;
}

static struct store_task *task_finish(int index, int of, enum outcome_kind kind)
{
    struct store_task *made = task(index, STORE_TASK_FINISH, tasks[of].key);
    made->finish = fixture_finish(tasks[index].key, &tasks[of].task.found, kind);
    return made;
}

/* Turns the loop until `count` tasks in all are done. */
static void wait_done(int count)
{
    while (done_count < count) {
        (void) loop_run_once(loop, true);
    }
}

static void task_free(int index)
{
    fixture_found_free(&tasks[index].task.found);
}

static void stop(struct store_worker *worker)
{
    store_worker_stop(worker);
    loop_free(loop);
}

/* --- what runs when --- */

START_TEST(a_claim_its_outcome_and_its_replay_go_through_the_thread)
{
    struct store_worker *worker = start(gate_open(&fixture_clock), 10, 10);
    ck_assert(store_worker_submit(worker, task(0, STORE_TASK_CLAIM, "k")));
    wait_done(1);
    ck_assert_int_eq(tasks[0].task.result, STORE_OK);
    ck_assert(tasks[0].task.found.claimed);
    ck_assert(store_worker_submit(worker, task_finish(1, 0, OUTCOME_COMPLETED)));
    wait_done(2);
    ck_assert_int_eq(tasks[1].task.result, STORE_OK);
    ck_assert_int_eq(tasks[1].task.after.state, RECORD_COMPLETED);
    ck_assert(store_worker_submit(worker, task(2, STORE_TASK_CLAIM, "k")));
    ck_assert(store_worker_submit(worker, task(3, STORE_TASK_LOOK_UP, "k")));
    ck_assert(store_worker_submit(worker, task(4, STORE_TASK_VOID, "unseen")));
    wait_done(5);
    ck_assert_int_eq(tasks[2].task.found.decision.verdict, VERDICT_REPLAY);
    ck_assert(view_equal(tasks[2].task.found.response->body, VIEW("done")));
    ck_assert_int_eq(tasks[3].task.found.record.state, RECORD_COMPLETED);
    ck_assert_str_eq(tasks[3].task.found.request, "POST /orders");
    ck_assert(tasks[4].task.found.claimed);
    ck_assert_int_eq(tasks[4].task.found.record.state, RECORD_VOIDED);
    task_free(2);
    task_free(3);
    stop(worker);
}
END_TEST

START_TEST(everything_queued_is_one_batch_with_outcomes_first_one_commit_and_one_wake_up)
{
    struct store_worker *worker = start(gate_open(&fixture_clock), 100, 100);
    ck_assert(store_worker_submit(worker, task(0, STORE_TASK_CLAIM, "a")));
    wait_done(1);
    gate_hold(true);
    unsigned begins = gate_begins();
    ck_assert(store_worker_submit(worker, task(1, STORE_TASK_LOOK_UP, "x")));
    gate_wait(begins + 1);
    /* The thread is busy: what comes now is taken together. The claim of "a" meets the outcome that was queued after
     * it. */
    ck_assert(store_worker_submit(worker, task(2, STORE_TASK_LOOK_UP, "a")));
    ck_assert(store_worker_submit(worker, task(3, STORE_TASK_CLAIM, "a")));
    ck_assert(store_worker_submit(worker, task(4, STORE_TASK_CLAIM, "b")));
    ck_assert(store_worker_submit(worker, task(5, STORE_TASK_CLAIM, "b")));
    ck_assert(store_worker_submit(worker, task_finish(6, 0, OUTCOME_COMPLETED)));
    unsigned commits = gate_commits();
    gate_hold(false);
    wait_done(2);
    int turns = 0;
    while (done_count < 7) {
        (void) loop_run_once(loop, true);
        turns++;
    }
    ck_assert_int_le(turns, 2);
    ck_assert_uint_eq(gate_commits() - commits, 2);
    ck_assert_int_eq(tasks[2].task.found.record.state, RECORD_COMPLETED);
    ck_assert_int_eq(tasks[3].task.found.decision.verdict, VERDICT_REPLAY);
    ck_assert(tasks[4].task.found.claimed);
    ck_assert_int_eq(tasks[5].task.found.decision.verdict, VERDICT_IN_PROGRESS);
    static const int order[] = { 0, 1, 6, 3, 4, 5, 2 };
    ck_assert_mem_eq(done_order, order, sizeof order);
    struct store_worker_figures figures;
    store_worker_figures(worker, &figures);
    ck_assert_uint_eq(figures.tasks, 7);
    ck_assert_uint_eq(figures.largest_batch, 5);
    ck_assert_uint_eq(figures.commits, 2); /* those that wrote */
    uint64_t timed = 0;
    for (int i = 0; i <= METRICS_BOUNDS_MAX; i++) {
        timed += figures.commit_time.counts[i];
    }
    ck_assert_uint_eq(timed, 2);
    ck_assert_uint_eq(figures.batch_tasks.counts[0], 2); /* of 1 */
    ck_assert_uint_eq(figures.batch_tasks.counts[3], 1); /* of 5 to 8 */
    ck_assert_uint_eq(figures.batch_tasks.sum, 7);
    ck_assert_uint_eq(figures.queued, 0);
    ck_assert(!figures.down);
    task_free(2);
    task_free(3);
    stop(worker);
}
END_TEST

START_TEST(claims_and_reads_have_budgets_of_their_own_and_outcomes_are_never_refused)
{
    struct store_worker *worker = start(gate_open(&fixture_clock), 2, 3);
    ck_assert(store_worker_submit(worker, task(0, STORE_TASK_CLAIM, "a")));
    wait_done(1);
    gate_hold(true);
    unsigned begins = gate_begins();
    ck_assert(store_worker_submit(worker, task(1, STORE_TASK_LOOK_UP, "x")));
    gate_wait(begins + 1);
    ck_assert(store_worker_submit(worker, task(2, STORE_TASK_CLAIM, "b")));
    ck_assert(store_worker_submit(worker, task(3, STORE_TASK_VOID, "c")));
    /* Over their budget claims are only looked up, as long as the readers' budget lasts. */
    ck_assert(store_worker_submit(worker, task(5, STORE_TASK_CLAIM, "e")));
    ck_assert(store_worker_submit(worker, task(6, STORE_TASK_CLAIM, "a")));
    ck_assert(store_worker_submit(worker, task(7, STORE_TASK_LOOK_UP, "a")));
    ck_assert(!store_worker_submit(worker, task(4, STORE_TASK_CLAIM, "d")));
    ck_assert(!store_worker_submit(worker, task(4, STORE_TASK_VOID, "d")));
    ck_assert(!store_worker_submit(worker, task(8, STORE_TASK_LOOK_UP, "a")));
    for (int i = 10; i < 110; i++) { /* all but the first are stale, and all are taken */
        ck_assert(store_worker_submit(worker, task_finish(i, 0, OUTCOME_COMPLETED)));
    }
    struct store_worker_figures figures;
    store_worker_figures(worker, &figures);
    ck_assert_uint_eq(figures.queued, 105);
    ck_assert_uint_eq(figures.queued_outcomes, 100);
    ck_assert_uint_eq(figures.queued_claims, 2);
    ck_assert_uint_eq(figures.queued_reads, 3);
    gate_hold(false);
    wait_done(107);
    ck_assert_int_eq(tasks[10].task.result, STORE_OK);
    ck_assert_int_eq(tasks[109].task.result, STORE_STALE);
    ck_assert(!tasks[5].task.found.claimed);
    ck_assert_int_eq(tasks[5].task.found.decision.verdict, VERDICT_FORWARD);
    ck_assert(!tasks[6].task.found.claimed);
    ck_assert_int_eq(tasks[6].task.found.decision.verdict, VERDICT_REPLAY); /* its outcome came first */
    for (int i = 5; i < 8; i++) {
        task_free(i);
    }
    ck_assert(store_worker_submit(worker, task(4, STORE_TASK_CLAIM, "d"))); /* there is room again */
    wait_done(108);
    stop(worker);
}
END_TEST

START_TEST(queries_find_by_id_and_without_a_payload_on_the_readers_budget)
{
    struct store_worker *worker = start(gate_open(&fixture_clock), 1, 3);
    ck_assert(store_worker_submit(worker, task(0, STORE_TASK_CLAIM, "a")));
    wait_done(1);
    ck_assert(store_worker_submit(worker, task_finish(1, 0, OUTCOME_COMPLETED)));
    wait_done(2);
    gate_hold(true);
    unsigned begins = gate_begins();
    ck_assert(store_worker_submit(worker, task(2, STORE_TASK_LOOK_UP, "x")));
    gate_wait(begins + 1);
    struct store_task *query = task(3, STORE_TASK_CLAIM, "a"), *by_id = task(4, STORE_TASK_LOOK_UP, "");
    struct store_task *fresh = task(5, STORE_TASK_CLAIM, "b");
    memset(fresh->claim.command_id, 0xB0, COMMAND_ID_BYTES);
    query->claim.any_payload = true;
    memset(&query->claim.fingerprint, 0, sizeof query->claim.fingerprint);
    by_id->look_up_id = true;
    memcpy(by_id->claim.command_id, tasks[0].task.found.record.command_id, COMMAND_ID_BYTES);
    ck_assert(store_worker_submit(worker, query));
    ck_assert(store_worker_submit(worker, by_id));
    ck_assert(store_worker_submit(worker, fresh));
    gate_hold(false);
    wait_done(6);
    ck_assert_int_eq(query->found.decision.verdict, VERDICT_REPLAY);
    ck_assert(view_equal(query->found.response->body, VIEW("done")));
    ck_assert_str_eq(by_id->found.key, "a");
    ck_assert_str_eq(by_id->found.request, "POST /orders");
    ck_assert(fresh->found.claimed); /* its budget was not touched */
    task_free(3);
    task_free(4);
    stop(worker);
}
END_TEST

START_TEST(results_go_to_the_loop_that_each_task_came_from)
{
    struct store_worker *worker = start(gate_open(&fixture_clock), 10, 10);
    struct loop *first = loop, *second = loop_new();
    gate_hold(true);
    for (int i = 0; i < 6; i++) {
        char key[16];
        (void) snprintf(key, sizeof key, "k%d", i);
        loop = i % 2 == 0 ? first : second;
        ck_assert(store_worker_submit(worker, task(i, STORE_TASK_CLAIM, key)));
    }
    gate_hold(false);
    loop = second;
    while (done_count < 3) {
        (void) loop_run_once(second, true);
    }
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(done_order[i] % 2, 1);
    }
    loop = first;
    wait_done(6);
    loop_free(second);
    stop(worker);
}
END_TEST

/* --- failures --- */

/* A batch of an outcome, a new claim, a repeat and a look-up meets a fault; what each gets. */
static const struct failure_row {
    const char *what;
    enum store_fault_point point;
    unsigned nth;
    enum store_result fault, outcome, claim, repeat, read;
} failure_rows[] = {
    { "begin fails", STORE_FAULT_BEGIN, 1, STORE_FAILED, STORE_OK, STORE_FAILED, STORE_FAILED, STORE_FAILED },
    { "a claim fails", STORE_FAULT_CLAIM, 1, STORE_FAILED, STORE_OK, STORE_FAILED, STORE_FAILED, STORE_FAILED },
    { "commit fails", STORE_FAULT_COMMIT, 1, STORE_FAILED, STORE_OK, STORE_FAILED, STORE_FAILED, STORE_FAILED },
    { "a claim finds no room", STORE_FAULT_CLAIM, 1, STORE_FULL, STORE_OK, STORE_FULL, STORE_OK, STORE_OK },
    { "commit finds no room", STORE_FAULT_COMMIT, 1, STORE_FULL, STORE_OK, STORE_FULL, STORE_OK, STORE_OK },
    { "an outcome finds no room", STORE_FAULT_FINISH, 1, STORE_FULL, STORE_OK, STORE_FULL, STORE_OK, STORE_OK },
    { "commit is uncertain", STORE_FAULT_COMMIT, 1, STORE_UNCERTAIN, STORE_UNCERTAIN, STORE_UNCERTAIN, STORE_UNCERTAIN,
      STORE_UNCERTAIN },
};
enum { FAILURE_ROWS = sizeof failure_rows / sizeof failure_rows[0] };

START_TEST(a_failed_batch_fails_its_look_ups_too_but_saves_the_outcomes_where_it_can)
{
    const struct failure_row *row = &failure_rows[_i];
    struct store *store = gate_open(&fixture_clock);
    struct store_worker *worker = start(store, 10, 10);
    ck_assert(store_worker_submit(worker, task(0, STORE_TASK_CLAIM, "a")));
    ck_assert(store_worker_submit(worker, task(1, STORE_TASK_CLAIM, "b")));
    wait_done(2);
    gate_hold(true);
    unsigned begins = gate_begins();
    ck_assert(store_worker_submit(worker, task(2, STORE_TASK_LOOK_UP, "x")));
    gate_wait(begins + 1);
    ck_assert(store_worker_submit(worker, task_finish(3, 0, OUTCOME_COMPLETED)));
    ck_assert(store_worker_submit(worker, task(4, STORE_TASK_CLAIM, "new")));
    ck_assert(store_worker_submit(worker, task(5, STORE_TASK_CLAIM, "b")));
    ck_assert(store_worker_submit(worker, task(6, STORE_TASK_LOOK_UP, "b")));
    ck_assert(store_worker_submit(worker, task(7, STORE_TASK_VOID, "new too")));
    /* The thread stands in its gate, in begin: the fault is met by its next calls; a commit of this batch comes
     * before them. */
    store_fault_plant(store, row->point, row->point == STORE_FAULT_COMMIT ? row->nth + 1 : row->nth, row->fault, false);
    gate_hold(false);
    wait_done(8);
    ck_assert_msg(tasks[3].task.result == row->outcome, "%s: outcome %s", row->what,
                  store_result_name(tasks[3].task.result));
    ck_assert_msg(tasks[4].task.result == row->claim, "%s: claim %s", row->what,
                  store_result_name(tasks[4].task.result));
    ck_assert_msg(tasks[5].task.result == row->repeat, "%s: repeat %s", row->what,
                  store_result_name(tasks[5].task.result));
    ck_assert_msg(tasks[6].task.result == row->read, "%s: look-up %s", row->what,
                  store_result_name(tasks[6].task.result));
    ck_assert_msg(tasks[7].task.result == row->claim, "%s: void %s", row->what,
                  store_result_name(tasks[7].task.result));
    ck_assert(!tasks[4].task.found.claimed);
    ck_assert(!tasks[7].task.found.claimed);
    ck_assert_int_eq(tasks[5].task.found.decision.verdict, row->repeat == STORE_OK ? VERDICT_IN_PROGRESS : 0);
    ck_assert_int_eq(failed_calls, row->fault == STORE_UNCERTAIN);
    task_free(6);
    /* The fault was met once: afterwards all is well, or down for good. */
    ck_assert(store_worker_submit(worker, task(8, STORE_TASK_CLAIM, "new")));
    ck_assert(store_worker_submit(worker, task(9, STORE_TASK_LOOK_UP, "a")));
    wait_done(10);
    bool down = row->fault == STORE_UNCERTAIN;
    ck_assert_int_eq(tasks[8].task.result, down ? STORE_DOWN : STORE_OK);
    ck_assert_int_eq(tasks[8].task.found.claimed, !down);
    ck_assert_int_eq(tasks[9].task.result, down ? STORE_DOWN : STORE_OK);
    ck_assert_int_eq(tasks[9].task.found.record.state, down ? RECORD_ABSENT : RECORD_COMPLETED);
    task_free(9);
    ck_assert_int_eq(failed_calls, down);
    struct store_worker_figures figures;
    store_worker_figures(worker, &figures);
    ck_assert_int_eq(figures.down, down);
    stop(worker);
}
END_TEST

/* --- housekeeping --- */

START_TEST(a_probe_is_a_commit_that_counts_as_one)
{
    struct store_worker *worker = start(gate_open(&fixture_clock), 10, 10);
    struct store_worker_figures figures;
    store_worker_probe(worker);
    ck_assert(store_worker_submit(worker, task(0, STORE_TASK_LOOK_UP, "x")));
    wait_done(1);
    store_worker_figures(worker, &figures);
    ck_assert_uint_eq(figures.commits, 1);
    ck_assert_uint_eq(figures.tasks, 1);
    ck_assert_int_ge(figures.last_commit_age_ms, 0);
    stop(worker);
}
END_TEST

static int64_t jumping_ms;

static int64_t jumping_clock(void *context)
{
    (void) context;
    return __atomic_load_n(&jumping_ms, __ATOMIC_RELAXED);
}

START_TEST(expired_records_are_swept_between_batches_until_none_is_left)
{
    static const struct store_clock clock = { jumping_clock, jumping_clock, NULL };
    jumping_ms = 1000000;
    struct store_options options = fixture_options("memory");
    options.clock = &clock;
    struct store *store = store_open_memory(&options);
    for (int i = 0; i < 35; i++) {
        char key[16];
        (void) snprintf(key, sizeof key, "k%d", i);
        struct store_found found = fixture_claim_now(store, key, 1, 0);
        ck_assert_int_eq(fixture_finish_now(store, key, &found, OUTCOME_COMPLETED), STORE_OK);
    }
    struct store_worker_options worker_options = { .claims_max = 1,
                                                   .reads_max = 1,
                                                   .sweep_batch = 10,
                                                   .sweep_every_ms = 1,
                                                   .failed = worker_failed,
                                                   .context = &failed_calls };
    loop = loop_new();
    struct store_worker *worker = store_worker_start(store, &worker_options);
    struct store_worker_figures figures = { .sweep_expired = 0 };
    __atomic_store_n(&jumping_ms, 1000000 + FIXTURE_TTL_MS, __ATOMIC_RELAXED);
    while (figures.sweep_expired < 35) { /* the case's time limit is the guard */
        store_worker_figures(worker, &figures);
    }
    ck_assert_uint_eq(figures.sweep_forgotten, 0);
    __atomic_store_n(&jumping_ms, 1000000 + FIXTURE_TOMBSTONE_MS, __ATOMIC_RELAXED);
    while (figures.sweep_forgotten < 35) {
        store_worker_figures(worker, &figures);
    }
    ck_assert_uint_eq(figures.sweep_expired, 35);
    stop(worker);
}
END_TEST

START_TEST(stop_finishes_what_is_queued)
{
    struct store_worker *worker = start(gate_open(&fixture_clock), 300, 300);
    gate_hold(true);
    for (int i = 0; i < 200; i++) {
        char key[16];
        (void) snprintf(key, sizeof key, "k%d", i);
        ck_assert(store_worker_submit(worker, task(i, STORE_TASK_CLAIM, key)));
    }
    gate_hold(false);
    store_worker_stop(worker);
    wait_done(200);
    for (int i = 0; i < 200; i++) {
        ck_assert_int_eq(tasks[i].task.result, STORE_OK);
        ck_assert(tasks[i].task.found.claimed);
    }
    loop_free(loop);
}
END_TEST

SUITE(store_worker)
{
    Suite *suite = suite_create("store/worker");
    CASE(suite, a_claim_its_outcome_and_its_replay_go_through_the_thread);
    CASE(suite, everything_queued_is_one_batch_with_outcomes_first_one_commit_and_one_wake_up);
    CASE(suite, claims_and_reads_have_budgets_of_their_own_and_outcomes_are_never_refused);
    CASE(suite, queries_find_by_id_and_without_a_payload_on_the_readers_budget);
    CASE(suite, results_go_to_the_loop_that_each_task_came_from);
    CASE_LOOP(suite, a_failed_batch_fails_its_look_ups_too_but_saves_the_outcomes_where_it_can, FAILURE_ROWS);
    CASE(suite, a_probe_is_a_commit_that_counts_as_one);
    CASE(suite, expired_records_are_swept_between_batches_until_none_is_left);
    CASE(suite, stop_finishes_what_is_queued);
    return suite;
}
