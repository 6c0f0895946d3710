/* record.c - the transitions of one command's record (docs/contract.md sections 3, 6, 9). Owns nothing: the caller's
 * record is changed as a whole, or not at all. */
#include "server/core/record.h"

#include <string.h>

/* Settings may be large; a sum that wraps would free a key early. */
static int64_t time_add(int64_t time_ms, int64_t span_ms)
{
    if (span_ms <= 0) {
        return time_ms;
    }
    return time_ms > INT64_MAX - span_ms ? INT64_MAX : time_ms + span_ms;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Ends of both tiers; a stored deadline is never shortened (section 9). */
static void record_keep(struct record *record, int64_t expires_ms, int64_t forget_ms)
{
    record->expires_ms = later(record->expires_ms, expires_ms);
    record->forget_ms = later(later(record->forget_ms, forget_ms), record->expires_ms);
}

enum record_state record_state_at(const struct record *record, int64_t now_ms)
{
    switch (record->state) {
    case RECORD_ABSENT:
        return RECORD_ABSENT;
    case RECORD_IN_PROGRESS:
        return now_ms >= record->deadline_ms ? RECORD_UNKNOWN : RECORD_IN_PROGRESS; /* never forgotten by age */
    case RECORD_COMPLETED:
    case RECORD_UNKNOWN:
        if (now_ms >= record->forget_ms) {
            return RECORD_ABSENT;
        }
        return now_ms >= record->expires_ms ? RECORD_EXPIRED : record->state;
    case RECORD_RELEASED:
    case RECORD_EXPIRED:
    case RECORD_VOIDED:
        return now_ms >= record->forget_ms ? RECORD_ABSENT : record->state;
    case RECORD_STATE_COUNT:
        break;
    }
    return RECORD_UNKNOWN; /* a value that no version wrote: nothing is known, so nothing is sent */
}

bool record_claim(struct record *record, const uint8_t command_id[COMMAND_ID_BYTES],
                  const struct fingerprint *fingerprint, const struct credential *credential, int64_t run_ms_max,
                  int64_t now_ms)
{
    struct record claimed;
    switch (record_state_at(record, now_ms)) {
    case RECORD_ABSENT:
        claimed = (struct record){ .fingerprint = *fingerprint, .created_ms = now_ms, .execution = 1 };
        memcpy(claimed.command_id, command_id, COMMAND_ID_BYTES);
        break;
    case RECORD_RELEASED:
        /* The payload stays the key's (section 3); decide() refuses another one first, and so does this. */
        if (fingerprint_differs(&record->fingerprint, fingerprint) != 0 || record->execution == UINT32_MAX) {
            return false;
        }
        claimed = (struct record){ .fingerprint = record->fingerprint,
                                   .created_ms = record->created_ms,
                                   .expires_ms = record->expires_ms, /* promised, so never shortened (section 9) */
                                   .forget_ms = record->forget_ms,
                                   .execution = record->execution + 1 };
        memcpy(claimed.command_id, record->command_id, COMMAND_ID_BYTES);
        break;
    default:
        return false;
    }
    claimed.state = RECORD_IN_PROGRESS;
    claimed.credential = *credential;
    claimed.deadline_ms = time_add(now_ms, run_ms_max);
    *record = claimed;
    return true;
}

static void record_complete(struct record *record, const struct record_outcome *outcome,
                            const struct retention *retention, int64_t now_ms)
{
    record->state = RECORD_COMPLETED;
    record->cause = CAUSE_NONE;
    record->tombstone = EXECUTED_YES;
    record->response_status = outcome->response_status;
    record->response_bytes = outcome->response_bytes;
    record->response_kept = outcome->response_kept;
    record->completed_ms = now_ms;
    record_keep(record, time_add(now_ms, retention->ttl_ms), time_add(now_ms, retention->tombstone_ttl_ms));
}

static void record_lose(struct record *record, enum cause cause, const struct retention *retention, int64_t now_ms)
{
    record->state = RECORD_UNKNOWN;
    record->cause = cause;
    record->tombstone = EXECUTED_UNKNOWN;
    record->completed_ms = now_ms;
    /* Listed as unknown for the longer time, then a tombstone for as long again (section 9). */
    int64_t tier_ms = later(retention->tombstone_ttl_ms, retention->ttl_ms);
    int64_t expires_ms = time_add(now_ms, tier_ms);
    record_keep(record, expires_ms, time_add(expires_ms, tier_ms));
}

static void record_release(struct record *record, const struct retention *retention, int64_t now_ms)
{
    record->state = RECORD_RELEASED;
    record->cause = CAUSE_NONE;
    record->completed_ms = now_ms;
    memset(&record->credential, 0, sizeof(record->credential)); /* a 401 is followed by a fresh token (section 3) */
    int64_t end_ms = time_add(now_ms, retention->ttl_ms);
    record_keep(record, end_ms, end_ms);
}

bool record_finish(struct record *record, uint32_t execution, const struct record_outcome *outcome,
                   const struct retention *retention, int64_t now_ms)
{
    if (record->execution != execution) {
        return false;
    }
    if (record->state == RECORD_UNKNOWN) {
        /* Late truth. Not for what time has turned into a tombstone: its answer would come back from the dead. */
        if (outcome->kind != OUTCOME_COMPLETED || record_state_at(record, now_ms) != RECORD_UNKNOWN) {
            return false;
        }
        record_complete(record, outcome, retention, now_ms);
        return true;
    }
    if (record->state != RECORD_IN_PROGRESS) {
        return false;
    }
    switch (outcome->kind) {
    case OUTCOME_COMPLETED:
        record_complete(record, outcome, retention, now_ms);
        return true;
    case OUTCOME_NOT_EXECUTED:
        if (record_state_at(record, now_ms) != RECORD_IN_PROGRESS) {
            /* Past its deadline it was told as unknown, and a later not-executed leaves it so (section 6). It has ended all the same. */
            record_lose(record, CAUSE_TIMEOUT, retention, now_ms);
            return true;
        }
        record_release(record, retention, now_ms);
        return true;
    case OUTCOME_UNKNOWN:
        record_lose(record, outcome->cause, retention, now_ms);
        return true;
    }
    return false;
}

bool record_void(struct record *record, const uint8_t command_id[COMMAND_ID_BYTES], const struct credential *credential,
                 const struct retention *retention, int64_t now_ms)
{
    struct record voided;
    switch (record_state_at(record, now_ms)) {
    case RECORD_ABSENT:
        voided = (struct record){ .created_ms = now_ms };
        memcpy(voided.command_id, command_id, COMMAND_ID_BYTES);
        break;
    case RECORD_RELEASED:
        voided = *record;
        break;
    default:
        return false;
    }
    voided.state = RECORD_VOIDED;
    voided.credential = *credential;
    voided.completed_ms = now_ms;
    int64_t end_ms = time_add(now_ms, retention->tombstone_ttl_ms);
    record_keep(&voided, end_ms, end_ms);
    *record = voided;
    return true;
}

enum executed record_executed_at(const struct record *record, int64_t now_ms)
{
    switch (record_state_at(record, now_ms)) {
    case RECORD_ABSENT:
    case RECORD_RELEASED:
    case RECORD_VOIDED:
        return EXECUTED_NO;
    case RECORD_COMPLETED:
        return EXECUTED_YES;
    case RECORD_EXPIRED:
        if (record->state == RECORD_EXPIRED) {
            return record->tombstone == EXECUTED_YES ? EXECUTED_YES : EXECUTED_UNKNOWN;
        }
        return record->state == RECORD_COMPLETED ? EXECUTED_YES : EXECUTED_UNKNOWN;
    default:
        return EXECUTED_UNKNOWN;
    }
}

const char *record_state_name(enum record_state state)
{
    static const char *const names[RECORD_STATE_COUNT] = {
        [RECORD_ABSENT] = "absent",   [RECORD_IN_PROGRESS] = "in_progress", [RECORD_COMPLETED] = "completed",
        [RECORD_UNKNOWN] = "unknown", [RECORD_RELEASED] = "released",       [RECORD_EXPIRED] = "expired",
        [RECORD_VOIDED] = "voided",
    };
    return (unsigned) state < RECORD_STATE_COUNT ? names[state] : "unknown";
}

const char *cause_name(enum cause cause)
{
    static const char *const names[CAUSE_COUNT] = {
        [CAUSE_NONE] = "",
        [CAUSE_TIMEOUT] = "timeout",
        [CAUSE_RESET] = "reset",
        [CAUSE_CUT] = "cut",
        [CAUSE_GARBAGE] = "garbage",
        [CAUSE_CRASH] = "crash",
        [CAUSE_SHUTDOWN] = "shutdown",
        [CAUSE_CLOSE_DELIMITED] = "close-delimited",
        [CAUSE_STATUS] = "status",
        [CAUSE_HANDLER] = "handler",
        [CAUSE_UNRECORDED] = "unrecorded",
    };
    return (unsigned) cause < CAUSE_COUNT ? names[cause] : "";
}

const char *executed_name(enum executed executed)
{
    switch (executed) {
    case EXECUTED_NO:
        return "no";
    case EXECUTED_YES:
        return "yes";
    case EXECUTED_UNKNOWN:
        break;
    }
    return "unknown";
}
