/* op_result.c - the getters of an operation: what became of it. */
#include "client-sdk/src/client.h"

#include "client-sdk/src/run.h"

enum nonbis_outcome nonbis_op_outcome(const struct nonbis_op *op)
{
    return op->outcome;
}

enum nonbis_stop nonbis_op_stop(const struct nonbis_op *op)
{
    return op->stop;
}

int nonbis_op_is_final(const struct nonbis_op *op)
{
    /* A question between runs may have told more than the outcome of the last run says: that is for the next one to tell. */
    if (op->outcome != standing_outcome(op->history.standing)) {
        return 0;
    }
    switch (op->history.standing) {
    case STANDING_COMPLETED:
        return op->history.answered || op->stop == NONBIS_STOP_KEY_EXPIRED;
    case STANDING_REJECTED:
    case STANDING_VOIDED:
        return 1;
    default:
        return 0;
    }
}

const char *nonbis_op_reason(const struct nonbis_op *op)
{
    return op->reason_text;
}

const char *nonbis_op_message(const struct nonbis_op *op)
{
    return op->message;
}

int nonbis_op_local_error(const struct nonbis_op *op)
{
    return op->stop == NONBIS_STOP_LOCAL ? op->history.local_error : NONBIS_OK;
}

int64_t nonbis_op_retry_after_s(const struct nonbis_op *op)
{
    return op->retry_after_s;
}

int64_t nonbis_op_deadline_left_ms(const struct nonbis_op *op)
{
    int64_t left_ms = op->history.deadline_ms - run_now_ms(op);
    return left_ms > 0 ? left_ms : 0;
}

const char *nonbis_op_key(const struct nonbis_op *op)
{
    return op->key;
}

const char *nonbis_op_url(const struct nonbis_op *op)
{
    return op->url;
}

const char *nonbis_op_method(const struct nonbis_op *op)
{
    return op->method;
}

const void *nonbis_op_request_body(const struct nonbis_op *op, size_t *len)
{
    if (len != NULL) {
        *len = op->has_body ? op->body_len : 0;
    }
    return op->has_body ? op->body : NULL;
}

const char *nonbis_op_request_field(const struct nonbis_op *op, const char *name)
{
    for (size_t i = 0; name != NULL && i < op->field_count; i++) {
        if (view_equal_nocase(view_of(op->fields[i].name), view_of(name))) {
            return op->fields[i].value;
        }
    }
    return NULL;
}

const char *nonbis_op_lacks(const struct nonbis_op *op, unsigned index)
{
    return index < op->lacks.count ? op->lacks.names[index] : NULL;
}

int nonbis_op_http_status(const struct nonbis_op *op)
{
    return op->answer.status;
}

const void *nonbis_op_body(const struct nonbis_op *op, size_t *len)
{
    if (len != NULL) {
        *len = op->answer.body.len;
    }
    return op->answer.body.ptr;
}

int nonbis_op_body_is_whole(const struct nonbis_op *op)
{
    return op->answer.whole && op->answer.body_kept && (op->marks & NONBIS_MARK_BODY_LOST) == 0;
}

const char *nonbis_op_field(const struct nonbis_op *op, const char *name)
{
    return name != NULL ? answer_field(&op->answer, name) : NULL;
}

int nonbis_op_field_at(const struct nonbis_op *op, size_t index, const char **name, const char **value)
{
    return answer_field_at(&op->answer, index, name, value) ? 1 : 0;
}

unsigned nonbis_op_marks(const struct nonbis_op *op)
{
    return op->marks;
}

unsigned nonbis_op_attempts(const struct nonbis_op *op)
{
    return op->attempt_count;
}

const struct nonbis_attempt *nonbis_op_attempt(const struct nonbis_op *op, unsigned index)
{
    return index < op->attempt_count ? &op->attempts[index] : NULL;
}
