/* command_record.c - the two durable steps of a command: the claim before anything is sent, the outcome before it is told. */
#include "server/base/clock.h"
#include "server/digest/digest.h"
#include "server/flow/exchange_state.h"
#include "server/flow/late.h"
#include "server/flow/replay_cache.h"
#include "server/http/fields.h"

#include <string.h>

enum { CLAIM_MARGIN_MS = 5000 }; /* a claim outlives hard_timeout by the time that recording may take */

void exchange_release_slot(struct exchange *x)
{
    if (x->holds_slot) {
        x->holds_slot = false;
        commons_leave_running(x->flow->commons, &x->quota, x->execution > 0);
    }
}

static void claim_refused(struct exchange *x, const char *reason, const char *detail)
{
    x->problem = (struct answer_problem){
        .problem = PROBLEM_UNAVAILABLE, .reason = reason, .detail = detail, .keyed = true, .retry_after_s = 1
    };
    x->result = RESULT_UNAVAILABLE;
}

/* Whoever has waited looks twice: the first look tells how it was before. */
static void exchange_note_found(struct exchange *x, const struct store_found *found)
{
    if (x->state_before == RECORD_STATE_COUNT) {
        x->state_before = found->decision.state;
    }
    x->state_after = found->claimed ? RECORD_IN_PROGRESS : found->decision.state;
}

/* After an outcome that was written, or not. */
static void exchange_note_finished(struct exchange *x, const struct store_task *task)
{
    if (task->result == STORE_OK || task->result == STORE_STALE) {
        x->state_after = task->after.state;
    } else if (task->result == STORE_UNCERTAIN) {
        x->state_after = RECORD_STATE_COUNT; /* only a restart can tell */
    }
}

/* What the store answered, or would have. */
static void exchange_found(struct exchange *x)
{
    const struct store_found *found = &x->task.found;
    exchange_note_found(x, found);
    if (found->claimed) {
        x->row = found->row;
        memcpy(x->command_id, found->record.command_id, sizeof x->command_id);
        x->execution = found->record.execution;
        exchange_event(x, EVENT_CLAIMED);
        return;
    }
    exchange_release_slot(x);
    exchange_answer_found(x);
    if (found->decision.verdict == VERDICT_WAIT) {
        exchange_found_running(x);
    } else {
        exchange_event(x, EVENT_FOUND);
    }
}

static void claim_done(struct store_task *task)
{
    struct exchange *x = LIST_ITEM(task, struct exchange, task);
    x->claim_took_us += clock_monotonic_us() - x->claim_us;
    if (task->result != STORE_OK) {
        exchange_release_slot(x);
        claim_refused(x, "store", "the claim could not be made durable; nothing was forwarded by this attempt");
        x->store_result = store_result_name(task->result);
        x->state_after = RECORD_STATE_COUNT;
        exchange_event(x, EVENT_CLAIM_FAILED);
        return;
    }
    replay_cache_keep(x->flow->replay_cache, &task->claim, &task->found);
    exchange_found(x);
}

void exchange_claim(struct exchange *x)
{
    struct flow *flow = x->flow;
    struct store_claim *claim = &x->task.claim;
    claim->tenant = view_of(x->tenant);
    claim->key = view_make(x->key.text, x->key.len);
    claim->method = view_of(x->method);
    claim->target = view_make(x->origin, x->path_len);
    claim->run_ms_max = x->route->hard_timeout_ms + CLAIM_MARGIN_MS;
    claim->ttl_ms = x->route->retention.ttl_ms;
    claim->may_wait = exchange_may_wait(x);
    if (replay_cache_find(flow->replay_cache, claim, store_now(flow->commons->live), &x->task.found)) {
        metrics_add(&flow->metrics->cached, 1);
        exchange_found(x);
        return;
    }
    /* Whoever has waited looks, and takes nothing over: it asked for somebody else's outcome. */
    x->holds_slot = !x->has_waited && !flow->draining && commons_enter_running(flow->commons, claim->tenant, &x->quota);
    claim->may_claim = x->holds_slot;
    digest_random(claim->command_id, sizeof claim->command_id);
    x->task.kind = STORE_TASK_CLAIM;
    x->task.home = flow->loop;
    x->task.done = claim_done;
    x->claim_us = clock_monotonic_us();
    if (!store_desk_submit(flow->desk, &x->task)) {
        exchange_release_slot(x);
        claim_refused(x, "overloaded", "the store's queue is full; nothing was forwarded by this attempt");
        exchange_event(x, EVENT_CLAIM_FAILED);
    }
}

/* What counts is told: the key is not free (6.16). An answer that is on its way has said so already, and is cut. */
static void finish_too_late(struct exchange *x, enum cause cause)
{
    log_message(
        LOG_WARN, "store",
        "it was proved that an execution did not happen, but after the deadline of its claim: the command was told "
        "as unknown by then, is recorded so, and is not sent again");
    x->outcome = (struct outcome){ OUTCOME_UNKNOWN, cause, x->outcome.pass && !x->spill_to_client };
}

static void finish_done(struct store_task *task)
{
    struct exchange *x = LIST_ITEM(task, struct exchange, task);
    x->recorded_us = clock_monotonic_us();
    exchange_release_slot(x);
    exchange_note_finished(x, task);
    if (task->result == STORE_OK) {
        if (!record_outcome_counts(&task->after, x->outcome.kind)) {
            finish_too_late(x, task->after.cause);
        }
        exchange_event(x, EVENT_RECORDED);
        return;
    }
    log_message(LOG_ERROR, "store",
                "an outcome could not be recorded (%s): the client is told so, the command stays unknown",
                store_result_name(task->result));
    x->unrecorded = true;
    x->store_result = store_result_name(task->result);
    if (task->result == STORE_FULL || task->result == STORE_FAILED) {
        late_keep(x->flow, &task->finish);
    }
    exchange_event(x, EVENT_RECORD_FAILED);
}

void exchange_record(struct exchange *x)
{
    struct flow *flow = x->flow;
    loop_timer_stop(&x->answer_timer);
    loop_timer_stop(&x->hard_timer);
    x->response_us = clock_monotonic_us();
    x->outcome = outcome_of(&x->attempt, &x->route->rules);
    struct store_finish *finish = &x->task.finish;
    *finish = (struct store_finish){
        .row = x->row,
        .tenant = view_of(x->tenant),
        .key = view_make(x->key.text, x->key.len),
        .execution = x->execution,
        .retention = x->route->retention,
        .outcome = { .kind = x->outcome.kind, .cause = x->outcome.cause },
    };
    if (x->outcome.kind == OUTCOME_COMPLETED) {
        fields_to_keep(buf_view(&x->response_fields), x->route->replay_drop, &x->keep_fields);
        finish->outcome.response_status = x->status;
        finish->outcome.response_bytes = x->response_bytes;
        finish->outcome.response_kept = !x->spilling;
        finish->fields = buf_view(&x->keep_fields);
        finish->body = buf_view(&x->response_body);
    }
    if (x->outcome.kind == OUTCOME_NOT_EXECUTED) { /* what those are told that wait for it */
        x->task.answer = (struct store_answer){ .status = STORE_ANSWER_NOT_REACHED };
        if (x->outcome.pass) {
            x->task.answer = (struct store_answer){ .status = x->status,
                                                    .fields = buf_view(&x->response_fields),
                                                    .body = buf_view(&x->response_body),
                                                    .body_kept = !x->spilling };
        }
    }
    x->task.kind = STORE_TASK_FINISH;
    x->task.home = flow->loop;
    x->task.done = finish_done;
    (void) store_desk_submit(flow->desk, &x->task); /* an outcome is never refused */
}
