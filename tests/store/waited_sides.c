/* waited_sides.c - see waited_sides.h. */
#include "tests/store/waited_sides.h"

#include "tests/store/gate_store.h"
#include "tests/store/store_fixture.h"

struct side sides[2];
struct side_task side_tasks[SIDES_TASKS_MAX];

struct store *sides_store;
struct store_worker *sides_worker;
struct buf sides_story;
struct store_ended sides_last_ended;

static void tell_ended(void *context, const struct store_ended *ended)
{
    static const char *const outcomes[] = { "completed", "released", "unknown" };
    struct side *side = context;
    buf_printf(&sides_story, "%c:ended(%u,%s) ", 'A' + (int) (side - sides), (unsigned) ended->execution,
               outcomes[ended->outcome]);
    if (ended->outcome == OUTCOME_NOT_EXECUTED && ended->answer.status != 0) {
        buf_printf(&sides_story, "[%d %.*s%.*s kept=%d] ", ended->answer.status, VIEW_ARGS(ended->answer.fields),
                   VIEW_ARGS(ended->answer.body), ended->answer.body_kept);
    }
    sides_last_ended = *ended;
}

static void tell_done(struct store_task *task)
{
    struct side_task *made = (struct side_task *) (void *) ((char *) task - offsetof(struct side_task, task));
    sides[made->side].done++;
    buf_printf(&sides_story, "%c:done(%d) ", 'A' + made->side, (int) (made - side_tasks));
    free(task->found.response);
    free(task->found.request);
    free(task->found.key);
}

void sides_start(int64_t wait_max_ms, int64_t sweep_every_ms)
{
    struct store_worker_options options = { .claims_max = 100,
                                            .reads_max = 100,
                                            .sweep_batch = 10,
                                            .sweep_every_ms = sweep_every_ms,
                                            .wait_max_ms = wait_max_ms };
    buf_init(&sides_story, 65536);
    sides_store = gate_open(&fixture_clock);
    sides_worker = store_worker_start(sides_store, &options);
    for (int i = 0; i < 2; i++) {
        sides[i].loop = loop_new();
        sides[i].desk = store_desk_open(sides_worker, sides[i].loop, tell_ended, &sides[i]);
    }
}

void sides_stop(void)
{
    store_worker_stop(sides_worker);
    for (int i = 0; i < 2; i++) {
        loop_free(sides[i].loop);
        store_desk_close(sides[i].desk);
    }
    buf_fini(&sides_story);
}

void sides_advance(int64_t ms)
{
    fixture_advance(ms);
}

/* --- tasks and batches --- */

struct store_task *side_make(int index, int side, enum store_task_kind kind, const char *key)
{
    struct side_task *made = &side_tasks[index];
    (void) snprintf(made->key, sizeof made->key, "%s", key);
    made->side = side;
    made->task = (struct store_task){
        .kind = kind, .home = sides[side].loop, .done = tell_done, .retention = fixture_retention
    };
    made->task.claim = fixture_claim(made->key, 1, 1);
    made->task.claim.may_wait = true;
    return &made->task;
}

void side_submit(struct store_task *task)
{
    struct side *side =
        &sides[((struct side_task *) (void *) ((char *) task - offsetof(struct side_task, task)))->side];
    side->submitted++;
    ck_assert(store_desk_submit(side->desk, task));
}

void side_submit_finish(int index, int side, int of, enum outcome_kind kind)
{
    struct store_task *task = side_make(index, side, STORE_TASK_FINISH, side_tasks[of].key);
    task->finish = fixture_finish(side_tasks[index].key, &side_tasks[of].task.found, kind);
    side_submit(task);
}

static void plug_done(struct store_task *task)
{
    fixture_found_free(&task->found);
}

static struct store_task plug;

void sides_gather(void)
{
    unsigned begins = gate_begins();
    gate_hold(true);
    plug = (struct store_task){ .kind = STORE_TASK_LOOK_UP, .home = sides[A].loop, .done = plug_done };
    plug.claim = fixture_claim("plug", 1, 0);
    ck_assert(store_worker_submit(sides_worker, &plug));
    gate_wait(begins + 1);
}

/* Whoever is told of an end is told before the results of its batch are posted: so afterwards nothing is on its way. The store begins once both desks
 * have handed over: else what B is told could come before what A is, by luck. */
void sides_run(void)
{
    gate_hold(true);
    (void) loop_run_once(sides[A].loop, false); /* the desks hand over */
    (void) loop_run_once(sides[B].loop, false);
    gate_hold(false);
    for (int i = 0; i < 2; i++) {
        while (sides[i].done < sides[i].submitted) {
            (void) loop_run_once(sides[i].loop, true);
        }
    }
    (void) loop_run_once(sides[A].loop, false);
    (void) loop_run_once(sides[B].loop, false);
}

void sides_check(const char *expected)
{
    ck_assert_msg(view_equal(buf_view(&sides_story), view_of(expected)), "came \"%.*s\", not \"%s\"",
                  VIEW_ARGS(buf_view(&sides_story)), expected);
    buf_clear(&sides_story);
}

void sides_start_running(void)
{
    sides_start(0, 3600000);
    side_submit(side_make(0, A, STORE_TASK_CLAIM, "k"));
    sides_run();
    ck_assert(side_tasks[0].task.found.claimed);
    ck_assert(!side_tasks[0].task.waited);
    sides_check("A:done(0) ");
}
