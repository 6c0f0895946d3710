/* command_answer.c - what the client of a command is told. */
#include "schema/wire.h"
#include "server/base/clock.h"
#include "server/digest/digest.h"
#include "server/flow/exchange_state.h"
#include "server/flow/replays.h"
#include "server/http/fields.h"

#include <stdlib.h>

unsigned exchange_retry_after_s(const struct exchange *x)
{
    return problem_retry_after_s(commons_latency_ms(x->flow->commons, x->route), digest_random32());
}

/* "unrecorded" promises that the answer beside it is the real outcome; without one, or when the outcome could not be written down as
 * not executed, all that is left to say is unknown. */
static enum result result_of_outcome(const struct outcome *outcome, bool unrecorded)
{
    if (unrecorded) {
        return outcome->kind == OUTCOME_COMPLETED ? RESULT_UNRECORDED : RESULT_UNKNOWN;
    }
    switch (outcome->kind) {
    case OUTCOME_COMPLETED:
        return RESULT_EXECUTED;
    case OUTCOME_NOT_EXECUTED:
        return RESULT_NOT_EXECUTED;
    case OUTCOME_UNKNOWN:
        break;
    }
    return RESULT_UNKNOWN;
}

/* As the client is told it. */
static const char *status_word(const struct outcome *outcome, bool unrecorded)
{
    switch (result_of_outcome(outcome, unrecorded)) {
    case RESULT_EXECUTED:
        return WIRE_WORD_EXECUTED;
    case RESULT_NOT_EXECUTED:
        return WIRE_WORD_NOT_EXECUTED;
    case RESULT_UNRECORDED:
        return WIRE_WORD_UNRECORDED;
    default:
        return WIRE_WORD_UNKNOWN;
    }
}

static struct answer_record own_record(const struct exchange *x, enum executed executed)
{
    return (struct answer_record){ .read = true, .executed = executed, .command_id = x->command_id };
}

/* A record of somebody's earlier attempt; under another credential nothing of it is told. */
static struct answer_record found_record(const struct exchange *x)
{
    const struct store_found *found = &x->task.found;
    struct answer_record told = { .read = true };
    if (found->record.state == RECORD_ABSENT || (found->decision.differs & DIFFERS_CREDENTIALS) != 0) {
        told.read = false;
        told.executed = EXECUTED_UNKNOWN;
        return told;
    }
    told.command_id = found->record.command_id;
    switch (found->decision.state) {
    case RECORD_COMPLETED:
        told.executed = EXECUTED_YES;
        told.expires_ms = found->record.expires_ms + x->flow->commons->store_offset_ms;
        break;
    case RECORD_RELEASED:
    case RECORD_VOIDED:
        told.executed = EXECUTED_NO;
        break;
    case RECORD_EXPIRED:
        told.executed = found->record.state == RECORD_UNKNOWN   ? EXECUTED_UNKNOWN
                        : found->record.state == RECORD_EXPIRED ? found->record.tombstone
                                                                : EXECUTED_YES;
        break;
    case RECORD_ABSENT:
    case RECORD_IN_PROGRESS:
    case RECORD_UNKNOWN:
    case RECORD_STATE_COUNT:
        told.executed = EXECUTED_UNKNOWN;
        break;
    }
    return told;
}

static void found_refusal(struct exchange *x, const char **detail)
{
    switch (x->task.found.decision.verdict) {
    case VERDICT_KEY_REUSED:
        x->result = RESULT_REFUSED;
        *detail = "this key was used before with another request; a new intent needs a new key";
        if ((x->task.found.decision.differs & DIFFERS_CREDENTIALS) != 0) {
            *detail = "this key was used before under another credential";
        }
        return;
    case VERDICT_KEY_EXPIRED:
        x->result = RESULT_REFUSED;
        *detail = "this key was used before and its answer is no longer kept; it is not executed again";
        return;
    case VERDICT_KEY_VOIDED:
        x->result = RESULT_REFUSED;
        *detail = "this key was voided before anything was executed; it never will be";
        return;
    case VERDICT_IN_PROGRESS:
    case VERDICT_WAIT:
        x->result = RESULT_IN_PROGRESS;
        *detail = "an earlier attempt with this key is still running; repeat the same request later";
        return;
    case VERDICT_OUTCOME_UNKNOWN:
        x->result = RESULT_UNKNOWN;
        *detail = "an earlier attempt may or may not have been executed; it is not sent again";
        return;
    case VERDICT_FORWARD: /* new work, and none is taken */
        x->result = RESULT_UNAVAILABLE;
        if (x->has_waited) { /* released, and the answer that did it did not come this way */
            *detail = "the attempt that this one waited for was not executed; repeat the same request";
            x->problem.reason = "store";
            return;
        }
        if (x->quota.answer != QUOTA_TAKEN) { /* not asked in a drain */
            x->result = RESULT_REFUSED;
            answer_over_quota(&x->quota, x->problem.retry_after_s, &x->problem);
            *detail = x->problem.detail;
            return;
        }
        *detail = x->flow->draining ? "the server takes no new commands because it is stopping"
                                    : "more commands are running or waiting than this server takes";
        x->problem.reason = x->flow->draining ? x->flow->draining_reason : "overloaded";
        return;
    case VERDICT_REPLAY:
    case VERDICT_IMPOSSIBLE:
    case VERDICT_COUNT:
        break;
    }
    x->result = RESULT_BUG;
    x->problem.reason = "store";
    *detail = "the record could not be judged; nothing was forwarded";
}

/* The end of a drain: whoever waits for a command is told that nothing is known (docs/contract.md 11.6). */
void exchange_tell_stopping(struct exchange *x)
{
    x->result = RESULT_UNKNOWN;
    x->problem.problem = PROBLEM_OUTCOME_UNKNOWN;
    x->problem.detail = "the server is stopping while the command runs; ask for its status later";
}

void exchange_tell(struct exchange *x, const struct answer_problem *problem)
{
    x->problem = *problem;
    x->told_request = answer_problem(x->flow, x->client, problem);
    x->told_status = problem->status != 0 ? problem->status : problem_table[problem->problem].status;
}

void exchange_answer_found(struct exchange *x)
{
    const struct store_found *found = &x->task.found;
    const char *detail = NULL;
    if (found->decision.verdict == VERDICT_REPLAY && found->response != NULL) {
        x->answer_kind = ANSWER_REPLAY;
        x->result = RESULT_REPLAYED;
        return;
    }
    x->problem = (struct answer_problem){ .problem = problem_of_verdict(found->decision.verdict),
                                          .differs = found->decision.differs,
                                          .record = found_record(x),
                                          .retry_after_s = exchange_retry_after_s(x),
                                          .keyed = true };
    found_refusal(x, &detail);
    x->problem.detail = detail;
    if (found->decision.verdict == VERDICT_FORWARD && found->record.state == RECORD_ABSENT) {
        x->problem.record = (struct answer_record){ .executed = EXECUTED_UNKNOWN };
    }
}

static void answer_replay(struct exchange *x)
{
    struct stored_response *response = x->task.found.response;
    struct answer_record record = found_record(x);
    struct buf *fields = &x->flow->fields;
    buf_reuse(fields, 4 * LIMIT_CONNECTION_POOL, 4 * LIMIT_CONNECTION_POOL);
    buf_append(fields, response->fields);
    if (!response->kept) {
        field_block_add(fields, VIEW(WIRE_BODY_NOT_KEPT), VIEW(WIRE_BODY_NOT_KEPT_VALUE));
    }
    answer_mark(fields, WIRE_WORD_REPLAYED, true, &record);
    const struct edge_reply reply = {
        .status = response->status, .fields = buf_view(fields), .body = response->body, .body_owner = response
    };
    replays_count(x->flow->commons->replays, record.command_id);
    x->told_status = response->status;
    x->task.found.response = NULL; /* the edge has it now */
    (void) edge_reply(x->client, &reply);
    x->answered_us = clock_monotonic_us();
}

void exchange_own_fields(const struct exchange *x, const struct outcome *outcome, bool unrecorded, struct buf *out)
{
    struct answer_record record = own_record(x, EXECUTED_YES);
    if (outcome->kind == OUTCOME_COMPLETED && !unrecorded && x->recorded_us != 0) {
        record.expires_ms = x->task.after.expires_ms + x->flow->commons->store_offset_ms;
    }
    fields_to_client(buf_view(&x->response_fields), out);
    if (x->body_not_kept) {
        field_block_add(out, VIEW(WIRE_BODY_NOT_KEPT), VIEW(WIRE_BODY_NOT_KEPT_VALUE));
    }
    answer_mark(out, status_word(outcome, unrecorded), false, &record);
}

/* The handler's own answer, unchanged but for the fields that nonbis adds. */
static void answer_own(struct exchange *x, bool unrecorded)
{
    struct buf *fields = &x->flow->fields;
    buf_reuse(fields, 4 * LIMIT_CONNECTION_POOL, 4 * LIMIT_CONNECTION_POOL);
    exchange_own_fields(x, &x->outcome, unrecorded, fields);
    size_t len = 0;
    char *body = buf_take(&x->response_body, &len);
    struct edge_reply reply = {
        .status = x->status, .fields = buf_view(fields), .body = view_make(body, len), .body_owner = body
    };
    if (len == 0 && x->reply_has_length) {
        reply.has_length = true; /* HEAD and 304 announce what they do not carry */
        reply.length = x->reply_length;
    }
    x->told_status = x->status;
    (void) edge_reply(x->client, &reply);
    x->answered_us = clock_monotonic_us();
}

/* Our own words for an execution that brought no answer to pass on. */
static void answer_own_problem(struct exchange *x, bool unrecorded)
{
    bool not_sent = x->outcome.kind == OUTCOME_NOT_EXECUTED && !unrecorded;
    const char *lost = x->attempt.end == ATTEMPT_NOT_SENT
                           ? "the handler could not be reached, but that was not recorded in time; it is not sent again"
                           : "the request was sent and no complete answer came back; it is not sent again";
    const struct answer_problem problem = {
        .problem = not_sent ? PROBLEM_UPSTREAM_NOT_REACHED : PROBLEM_OUTCOME_UNKNOWN,
        .detail = not_sent ? "the handler could not be reached; nothing was sent, the key is free for a repeat" : lost,
        .record = own_record(x, not_sent ? EXECUTED_NO : EXECUTED_UNKNOWN),
        .retry_after_s = exchange_retry_after_s(x),
        .keyed = true,
    };
    exchange_tell(x, &problem);
}

void exchange_answer(struct exchange *x, bool unrecorded)
{
    if (x->answer_kind == ANSWER_OWN) {
        x->result = result_of_outcome(&x->outcome, unrecorded);
    }
    if (x->client == NULL) {
        exchange_event(x, EVENT_ANSWERED);
        return;
    }
    if (x->spill_to_client) {
        exchange_spill_finish(x, x->outcome.pass && !unrecorded);
        return;
    }
    if (x->answered) {
        return; /* still-running was told and is on its way; its end frees the exchange */
    }
    x->answered = true;
    switch (x->answer_kind) {
    case ANSWER_REPLAY:
        answer_replay(x);
        return;
    case ANSWER_OWN:
        if (x->outcome.pass) {
            answer_own(x, unrecorded);
        } else {
            answer_own_problem(x, unrecorded);
        }
        return;
    case ANSWER_PROBLEM:
        break;
    }
    exchange_tell(x, &x->problem);
}

void exchange_tell_still_running(struct exchange *x)
{
    if (x->client == NULL || x->answered) {
        return;
    }
    x->answered = true;
    const struct answer_problem still = {
        .problem = PROBLEM_STILL_RUNNING,
        .detail = "the handler has not answered yet; the command goes on and its outcome will be recorded",
        .record = own_record(x, EXECUTED_UNKNOWN),
        .retry_after_s = exchange_retry_after_s(x),
        .keyed = true,
    };
    exchange_tell(x, &still);
}
