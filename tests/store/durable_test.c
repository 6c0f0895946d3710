/* durable_test.c - what the store thread tells, it tells once it is durable (docs/contract.md 11.1, 11.3): while a commit has not come back, nobody has
 * heard of anything that was in it. Between a commit and a kill there is too little time to see this from outside. */
#include "server/store/worker.h"
#include "tests/store/gate_store.h"
#include "tests/store/store_fixture.h"

static struct loop *loop;
static unsigned done;

static void task_done(struct store_task *task)
{
    (void) task;
    done++;
}

static void make_task(struct store_task *task, enum store_task_kind kind, const char *key)
{
    *task = (struct store_task){ .kind = kind, .home = loop, .done = task_done, .retention = fixture_retention };
    task->claim = fixture_claim(key, 1, 0);
}

static void wait_done(unsigned count)
{
    while (done < count) {
        (void) loop_run_once(loop, true);
    }
}

/* A running command, so that there is something to end and to look up; then one task of each kind, alone in its batch. Index: kind. */
START_TEST(nothing_is_told_before_the_commit_it_rests_on_has_come_back)
{
    static const struct {
        const char *what;
        enum store_task_kind kind;
        const char *key;
    } rows[] = {
        { "a claim", STORE_TASK_CLAIM, "new" },         { "a repeat", STORE_TASK_CLAIM, "running" },
        { "an outcome", STORE_TASK_FINISH, "running" }, { "a look-up", STORE_TASK_LOOK_UP, "running" },
        { "a void", STORE_TASK_VOID, "unseen" },
    };
    const struct store_worker_options options = {
        .claims_max = 10, .reads_max = 10, .sweep_batch = 10, .sweep_every_ms = 3600000
    };
    struct store_worker *worker = store_worker_start(gate_open(&fixture_clock), &options);
    struct store_task running, task;
    loop = loop_new();
    make_task(&running, STORE_TASK_CLAIM, "running");
    ck_assert(store_worker_submit(worker, &running));
    wait_done(1);
    gate_hold_commit(true);
    unsigned commits = gate_commits();
    make_task(&task, rows[_i].kind, rows[_i].key);
    if (task.kind == STORE_TASK_FINISH) {
        task.finish = fixture_finish("running", &running.found, OUTCOME_COMPLETED);
    }
    ck_assert(store_worker_submit(worker, &task));
    gate_wait_commit(commits + 1);
    for (int turn = 0; turn < 3; turn++) {
        (void) loop_run_once(loop, false);
    }
    ck_assert_msg(done == 1, "%s was told while its commit was held", rows[_i].what);
    gate_hold_commit(false);
    wait_done(2);
    ck_assert_int_eq(task.result, STORE_OK);
    fixture_found_free(&task.found);
    store_worker_stop(worker);
    loop_free(loop);
}
END_TEST

SUITE(store_durable)
{
    Suite *suite = suite_create("store/durable");
    CASE_LOOP(suite, nothing_is_told_before_the_commit_it_rests_on_has_come_back, 5);
    return suite;
}
