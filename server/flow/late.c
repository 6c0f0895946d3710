/* late.c - see late.h. */
#include "server/flow/late.h"

#include "server/base/memory.h"

#include <stdlib.h>

enum {
    LATE_OUTCOMES_MAX = 1024, /* each may hold a response */
    LATE_RETRY_MS = 1000,
};

struct late_outcome {
    struct list_node node;
    struct flow *flow;
    struct loop_timer timer;
    struct store_task task;
    char *tenant, *key, *fields, *body;
    bool submitted; /* the store thread has it */
    bool dropped;   /* freed when it comes back */
};

static void late_free(struct late_outcome *late)
{
    struct flow *flow = late->flow;
    loop_timer_stop(&late->timer);
    list_remove(&flow->late, &late->node);
    free(late->tenant);
    free(late->key);
    free(late->fields);
    free(late->body);
    free(late);
    flow_check_quiet(flow);
}

static void late_done(struct store_task *task)
{
    struct late_outcome *late = LIST_ITEM(task, struct late_outcome, task);
    late->submitted = false;
    bool again = task->result == STORE_FULL || task->result == STORE_FAILED;
    if (again && !late->dropped) {
        loop_timer_start(&late->timer, LATE_RETRY_MS);
        return;
    }
    if (task->result == STORE_OK) {
        log_message(LOG_INFO, "store", "an outcome that could not be recorded before is recorded now%s",
                    record_outcome_counts(&task->after, task->finish.outcome.kind)
                        ? ""
                        : ": as unknown, since the deadline of its claim was over");
    } else {
        log_message(LOG_WARN, "store", "an outcome could not be recorded (%s) and is given up: the command is unknown",
                    store_result_name(task->result));
    }
    late_free(late);
}

static void late_try(void *context)
{
    struct late_outcome *late = context;
    late->submitted = true;
    (void) store_desk_submit(late->flow->desk, &late->task); /* an outcome is never refused */
}

void late_keep(struct flow *flow, const struct store_finish *finish)
{
    if (flow->late.count >= LATE_OUTCOMES_MAX) {
        log_message(LOG_WARN, "store",
                    "too many outcomes wait to be recorded: one is given up, its command is unknown");
        return;
    }
    struct late_outcome *late = memory_new(sizeof *late);
    late->flow = flow;
    late->tenant = memory_text(finish->tenant);
    late->key = memory_text(finish->key);
    late->fields = memory_copy(finish->fields.ptr, finish->fields.len);
    late->body = memory_copy(finish->body.ptr, finish->body.len);
    late->task.kind = STORE_TASK_FINISH;
    late->task.home = flow->loop;
    late->task.done = late_done;
    late->task.finish = *finish;
    late->task.finish.tenant = view_of(late->tenant);
    late->task.finish.key = view_make(late->key, finish->key.len);
    late->task.finish.fields = view_make(late->fields, finish->fields.len);
    late->task.finish.body = view_make(late->body, finish->body.len);
    loop_timer_init(&late->timer, flow->loop, late_try, late);
    list_append(&flow->late, &late->node);
    loop_timer_start(&late->timer, LATE_RETRY_MS);
}

void late_drop_all(struct flow *flow)
{
    struct list_node *node = flow->late.head.next;
    while (node != &flow->late.head) {
        struct late_outcome *late = LIST_ITEM(node, struct late_outcome, node);
        node = node->next;
        late->dropped = true;
        if (!late->submitted) {
            log_message(LOG_WARN, "store", "an outcome was not recorded before the end: its command is unknown");
            late_free(late);
        }
    }
}
