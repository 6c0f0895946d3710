/* record.h - one command's record and the only functions that change its state (docs/contract.md sections 3, 6, 9).
 * Used by every store, so that they agree. Pure. Any thread.
 *
 *             claim                 finish(completed)            ttl             tombstone_ttl
 *   ABSENT ----------> IN_PROGRESS ------------------> COMPLETED -----> EXPIRED ---------------> ABSENT
 *     ^  \  void           |   ^  \ finish(unknown), deadline, crash            ^
 *     |   \-----> VOIDED   |   |   `------> UNKNOWN --------- tombstone_ttl ----/   (executed: unknown)
 *     |              ^     |   | claim         `--- finish(completed): the late truth ---> COMPLETED
 *     |         void |     v finish(not executed)
 *     `--- ttl ---- RELEASED
 *
 * The state in the row is what was last written; `record_state_at` adds what time alone has done. */
#ifndef NONBIS_SERVER_CORE_RECORD_H
#define NONBIS_SERVER_CORE_RECORD_H

#include "common/view.h"
#include "server/core/fingerprint.h"

/* Values are stored: never renumber. */
enum record_state {
    RECORD_ABSENT = 0,
    RECORD_IN_PROGRESS = 1,
    RECORD_COMPLETED = 2,
    RECORD_UNKNOWN = 3,
    RECORD_RELEASED = 4,
    RECORD_EXPIRED = 5, /* tombstone of a finished command */
    RECORD_VOIDED = 6,
    RECORD_STATE_COUNT
};

enum executed { EXECUTED_NO, EXECUTED_YES, EXECUTED_UNKNOWN };

/* Why an outcome is unknown (docs/contract.md section 7). Values are stored. */
enum cause {
    CAUSE_NONE = 0,
    CAUSE_TIMEOUT = 1,
    CAUSE_RESET = 2,
    CAUSE_CUT = 3,
    CAUSE_GARBAGE = 4,
    CAUSE_CRASH = 5,
    CAUSE_SHUTDOWN = 6,
    CAUSE_CLOSE_DELIMITED = 7,
    CAUSE_STATUS = 8,
    CAUSE_HANDLER = 9,
    CAUSE_UNRECORDED = 10,
    CAUSE_COUNT
};

enum { COMMAND_ID_BYTES = 16 };

struct record {
    enum record_state state; /* as written */
    uint8_t command_id[COMMAND_ID_BYTES];
    uint32_t execution; /* number of the newest one: 0 for a key voided unseen; never goes back */
    struct fingerprint fingerprint;
    struct credential credential;
    enum cause cause;
    enum executed tombstone; /* what an EXPIRED record tells: YES or UNKNOWN */
    /* store time, milliseconds */
    int64_t created_ms;
    int64_t deadline_ms;  /* in progress past this is unknown */
    int64_t completed_ms; /* when it left IN_PROGRESS, or was voided; 0 before */
    int64_t
        expires_ms; /* end of the present tier (replay, or unknown); while in progress: what was promised before, or 0 */
    int64_t forget_ms; /* the key is free again; while in progress as above */
    /* of a completed one */
    int response_status;
    uint64_t response_bytes; /* of the body */
    bool response_kept;      /* false: over response_keep_max, the body was not stored */
};

/* How long an outcome is kept; both run from completion and are fixed in the record when it is written. */
struct retention {
    int64_t ttl_ms;
    int64_t tombstone_ttl_ms; /* at least ttl_ms */
};

enum outcome_kind { OUTCOME_COMPLETED, OUTCOME_NOT_EXECUTED, OUTCOME_UNKNOWN };

/* What an execution came to, as it is recorded. */
struct record_outcome {
    enum outcome_kind kind;
    enum cause cause;    /* for OUTCOME_UNKNOWN */
    int response_status; /* for OUTCOME_COMPLETED */
    uint64_t response_bytes;
    bool response_kept;
};

/* The state that counts at `now_ms` (store time): time turns completed and unknown ones into EXPIRED, expired, released and
 * voided ones into ABSENT, in-progress ones past their deadline into UNKNOWN. */
enum record_state record_state_at(const struct record *record, int64_t now_ms);

/* ABSENT or RELEASED (at now_ms) -> IN_PROGRESS. A zeroed record is ABSENT. An absent one takes `command_id`, creation time and execution 1;
 * a released one keeps its id and its fingerprint and counts up. False, and no change, from any other state, and for a released one
 * with another payload. */
bool record_claim(struct record *record, const uint8_t command_id[COMMAND_ID_BYTES],
                  const struct fingerprint *fingerprint, const struct credential *credential, int64_t run_ms_max,
                  int64_t now_ms);

/* IN_PROGRESS (also past its deadline) -> COMPLETED, RELEASED or UNKNOWN; UNKNOWN -> COMPLETED (late truth), and nothing else.
 * Past the deadline a not-executed makes it UNKNOWN: see record_outcome_counts. Only for the execution that is the newest. Releasing forgets the
 * credential. False, and no change, otherwise. */
bool record_finish(struct record *record, uint32_t execution, const struct record_outcome *outcome,
                   const struct retention *retention, int64_t now_ms);

/* Whether an outcome that was written is in the record as what it is: false of a not-executed that came after the deadline, when the command had been
 * told as unknown. It stays so, and nobody may be told that its key is free. */
static inline bool record_outcome_counts(const struct record *after, enum outcome_kind kind)
{
    return kind != OUTCOME_NOT_EXECUTED || after->state == RECORD_RELEASED;
}

/* ABSENT or RELEASED (at now_ms) -> VOIDED, with the caller's credential. False otherwise (also when voided already). */
bool record_void(struct record *record, const uint8_t command_id[COMMAND_ID_BYTES], const struct credential *credential,
                 const struct retention *retention, int64_t now_ms);

/* What an answer that read this record may say about the command (docs/contract.md section 5). */
enum executed record_executed_at(const struct record *record, int64_t now_ms);

const char *record_state_name(enum record_state state); /* "absent", "in_progress", "completed", ... */
const char *cause_name(enum cause cause);               /* "timeout", "reset", ..., "" for none */
const char *executed_name(enum executed executed);      /* "no", "yes", "unknown" */

#endif
