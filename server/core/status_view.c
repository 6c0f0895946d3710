/* status_view.c - see status_view.h. Time alone may have moved a record on since it was written: what it is now is told, and the cause that
 * recovery or the clean-up would write down. */
#include "server/core/status_view.h"

static enum cause view_cause(const struct record *record, const struct status_view *view)
{
    if (view->executed != EXECUTED_UNKNOWN || view->state == RECORD_IN_PROGRESS) {
        return CAUSE_NONE;
    }
    /* Past its deadline, and nobody has recorded what became of it. */
    return record->state == RECORD_IN_PROGRESS ? CAUSE_TIMEOUT : record->cause;
}

bool status_view_make(const struct record *record, int64_t now_ms, struct status_view *out)
{
    *out = (struct status_view){ .state = record_state_at(record, now_ms) };
    if (out->state == RECORD_ABSENT) {
        return false;
    }
    out->executed = record_executed_at(record, now_ms);
    out->executions = record->execution;
    out->cause = view_cause(record, out);
    out->created_ms = record->created_ms;
    /* A crash leaves no end: what the record has is when the next start met it, from which it is kept. */
    out->completed_ms = out->cause == CAUSE_CRASH ? 0 : record->completed_ms;
    if (out->executed == EXECUTED_YES) {
        out->expires_ms = record->expires_ms;
        out->has_response = true;
        out->response_status = record->response_status;
        out->response_bytes = record->response_bytes;
        out->response_kept = record->response_kept && out->state == RECORD_COMPLETED;
    }
    return true;
}

bool status_view_is_for(const struct record *record, const struct credential *caller)
{
    return !credential_differs(&record->credential, caller);
}
