/* run.c - the loop: plan, act, until the planner says stop. See run.h. */
#include "client-sdk/src/run.h"

int64_t run_now_ms(const struct nonbis_op *op)
{
    struct clock *clock = op->client->parts.clock;
    return clock->monotonic_ms(clock);
}

int64_t run_wall_ms(const struct nonbis_op *op)
{
    struct clock *clock = op->client->parts.clock;
    return clock->wall_ms(clock);
}

/* What comes next; a step that costs a token has taken it. */
static struct plan run_plan(struct nonbis_op *op)
{
    struct nonbis_client *client = op->client;
    bool may_wait = op->history.has_last && !op->history.waiting; /* only a wait that begins needs chance */
    struct plan_input input = { .policy = &client->policy,
                                .history = &op->history,
                                .now_ms = run_now_ms(op),
                                .wall_ms = run_wall_ms(op),
                                .random = may_wait ? client_chance(client) : 0,
                                .has_token = budget_has(&client->budget) };
    op->history.cancelled = waker_is_cancelled(&op->waker);
    pthread_mutex_lock(&client->lock);
    input.breaker_until_ms = breaker_closed_until(&client->breaker, input.now_ms);
    pthread_mutex_unlock(&client->lock);
    struct plan plan = plan_next(&input);
    if (plan.pays && !budget_take(&client->budget)) {
        input.has_token = false; /* another operation was faster */
        plan = plan_next(&input);
    }
    return plan;
}

/* False: the callback said stop. */
static bool run_tell_decision(struct nonbis_op *op, const struct plan *plan)
{
    if (!run_event(op, NONBIS_EVENT_DECISION, NULL, plan)) {
        op->history.caller_stop = true;
        return false;
    }
    return true;
}

static void run_wait(struct nonbis_op *op, const struct plan *plan)
{
    struct clock *clock = op->client->parts.clock;
    if (!op->history.waiting) {
        history_apply_wait(&op->history, plan);
        run_count_wait(op, plan);
        if (!run_tell_decision(op, plan)) {
            return;
        }
    }
    int64_t began_ms = run_now_ms(op);
    enum clock_wait ended = clock->wait_until(clock, plan->due_ms, &op->waker);
    pthread_mutex_lock(&op->client->lock);
    op->client->stats.wait_ms += (uint64_t) (run_now_ms(op) - began_ms);
    pthread_mutex_unlock(&op->client->lock);
    if (ended == CLOCK_WOKEN && waker_take_hurry(&op->waker)) {
        op->history.hurried = true;
    }
}

/* An attempt. Not NONBIS_OK: the journal refused before anything was sent in this run. */
static int run_send(struct nonbis_op *op, const struct plan *plan)
{
    if (op->history.tries == 0) {
        int error = run_journal_begin(op);
        if (error != NONBIS_OK) {
            return error;
        }
        budget_deposit(&op->client->budget);
    } else if (!op->history.waiting && !run_tell_decision(op, plan)) {
        return NONBIS_OK;
    }
    struct reading reading;
    run_attempt(op, plan, &reading);
    return NONBIS_OK;
}

static void run_stop(struct nonbis_op *op, const struct plan *plan)
{
    op->outcome = plan->outcome;
    op->stop = plan->stop;
    op->reason = plan->reason;
    op->retry_after_s = plan->retry_after_s;
    op->marks &= ~(unsigned) NONBIS_MARK_VOIDED;
    op->marks |= op->history.standing == STANDING_VOIDED ? (unsigned) NONBIS_MARK_VOIDED : 0;
    client_learn(op->client, op, op->history.evidence);
    run_message(op, plan);
    run_journal_end(op);
    run_count_end(op, run_now_ms(op) - op->history.started_ms);
    (void) run_event(op, NONBIS_EVENT_OUTCOME, NULL, plan);
}

static int run_loop(struct nonbis_op *op)
{
    for (;;) {
        struct plan plan = run_plan(op);
        struct reading reading;
        int error = NONBIS_OK;
        switch (plan.action) {
        case PLAN_ATTEMPT:
            error = run_send(op, &plan);
            break;
        case PLAN_WAIT:
            run_wait(op, &plan);
            break;
        case PLAN_ASK:
            run_ask(op, &plan, &reading);
            break;
        case PLAN_STOP:
            run_stop(op, &plan);
            return NONBIS_OK;
        }
        if (error != NONBIS_OK) {
            return error;
        }
    }
}

int run_operation(struct nonbis_op *op, enum goal goal)
{
    if (op->busy) {
        return NONBIS_ERROR_STATE;
    }
    if (nonbis_op_is_final(op)) {
        return NONBIS_OK;
    }
    if (goal == GOAL_RUN && op->lacks.count > 0) {
        run_message_lacks(op);
        return NONBIS_ERROR_LACKS;
    }
    const struct nonbis_policy *policy = &op->client->policy;
    int64_t now_ms = run_now_ms(op);
    history_begin(&op->history, goal, now_ms, now_ms + policy_value(policy, NONBIS_DEADLINE_MS));
    op->history.promised = policy_value(policy, NONBIS_SERVER) == NONBIS_SERVER_NONBIS;
    if (op->history.evidence == EVIDENCE_NONE) {
        op->history.evidence = client_evidence(op->client, op);
    }
    (void) waker_take_hurry(&op->waker); /* rung for a wait of an earlier run */
    if (!waker_is_cancelled(&op->waker)) {
        waker_quiet(&op->waker);
    }
    op->busy = true;
    op->retry_after_s = -1;
    op->message[0] = op->facts.message[0] = op->attempt_message[0] = '\0';
    int result = run_loop(op);
    op->ran = op->ran || result == NONBIS_OK;
    op->busy = false;
    return result;
}

int run_ask_once(struct nonbis_op *op)
{
    if (op->busy) {
        return NONBIS_ERROR_STATE;
    }
    const struct plan plan = { .action = PLAN_ASK,
                               .ask = ASK_STATUS,
                               .timeout_ms = policy_value(&op->client->policy, NONBIS_STATUS_MS),
                               .server_delay_ms = -1,
                               .retry_after_s = -1 };
    struct reading reading;
    op->busy = true;
    run_ask(op, &plan, &reading);
    op->busy = false;
    return NONBIS_OK;
}
