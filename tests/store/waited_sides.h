/* waited_sides.h - two loops with a desk each, turned by the test's thread, and one store thread, which the test can hold. What comes to the loops is
 * written down in order: "A:done(3)" for task 3, "B:ended(1,completed)" for the end of an execution. */
#ifndef NONBIS_TESTS_STORE_WAITED_SIDES_H
#define NONBIS_TESTS_STORE_WAITED_SIDES_H

#include "server/store/worker.h"

enum { SIDES_TASKS_MAX = 16, A = 0, B = 1 };

struct side {
    struct loop *loop;
    struct store_desk *desk;
    int submitted, done;
};

struct side_task {
    struct store_task task;
    int side;
    char key[16];
};

extern struct side sides[2];
extern struct side_task side_tasks[SIDES_TASKS_MAX];
extern struct store *sides_store;
extern struct store_worker *sides_worker;
extern struct buf sides_story;
extern struct store_ended sides_last_ended;

void sides_start(int64_t wait_max_ms, int64_t sweep_every_ms);
void sides_start_running(void); /* and task 0 on loop A runs command "k" */
void sides_stop(void);
void sides_advance(int64_t ms); /* store time */

struct store_task *side_make(int index, int side, enum store_task_kind kind,
                             const char *key); /* for a loop; may wait */
void side_submit(struct store_task *task);     /* by the desk of its loop */
void side_submit_finish(int index, int side, int of, enum outcome_kind kind);

void sides_gather(
    void); /* makes the store thread busy: what is submitted from here on is one batch, which sides_run() lets go */
void sides_run(void); /* until everything that was submitted is done, and what was told by then has come */
void sides_check(const char *expected); /* since the last look */

#endif
