/* history.c - see history.h. `effects` and `table` are the whole rule of what an exchange makes of what was known. */
#include "client-sdk/src/history.h"

#include <string.h>

/* ---- the table ---------------------------------------------------------------------------------------------------- */

enum effect {
    EFFECT_NONE,
    EFFECT_DOUBT,    /* sent, and nobody can know */
    EFFECT_NOT_NOW,  /* this attempt was not executed; says nothing about earlier ones (contract 5.3) */
    EFFECT_NO,       /* the record says that nothing took effect */
    EFFECT_NOT_SEEN, /* there is no record */
    EFFECT_RUNS,
    EFFECT_UNKNOWN,
    EFFECT_DONE,
    EFFECT_REFUSED, /* refused for good, but earlier attempts may have been taken */
    EFFECT_REUSED,  /* the key is another payload's: none of our attempts can have been taken */
    EFFECT_VOIDED,
    EFFECT_AWAY, /* final, if nothing is open; says nothing about earlier attempts */
    EFFECT_COUNT
};

static const enum effect effects[FINDING_COUNT] = {
    [FINDING_CANCELLED] = EFFECT_NONE,
    [FINDING_HELD_BACK] = EFFECT_NONE,
    [FINDING_LOCAL] = EFFECT_NONE,
    [FINDING_OFFLINE] = EFFECT_NONE,
    [FINDING_NOT_SENT] = EFFECT_NONE,
    [FINDING_CANCELLED_SENT] = EFFECT_DOUBT,
    [FINDING_RESEND_BLOCKED] = EFFECT_DOUBT,
    [FINDING_LOST] = EFFECT_DOUBT,
    [FINDING_CUT] = EFFECT_DOUBT,
    [FINDING_REPLAY_CUT] = EFFECT_DONE,
    [FINDING_EXECUTED] = EFFECT_DONE,
    [FINDING_REPLAYED] = EFFECT_DONE,
    [FINDING_UNRECORDED] = EFFECT_DONE,
    [FINDING_NOT_EXECUTED] = EFFECT_NO,
    [FINDING_DECLINED] = EFFECT_NO,
    [FINDING_SAID_UNKNOWN] = EFFECT_UNKNOWN,
    [FINDING_RUNNING] = EFFECT_RUNS,
    [FINDING_UNAVAILABLE] = EFFECT_NOT_NOW,
    [FINDING_REFUSED] = EFFECT_REFUSED,
    [FINDING_KEY_REUSED] = EFFECT_REUSED,
    [FINDING_KEY_FOREIGN] = EFFECT_REFUSED,
    [FINDING_KEY_EXPIRED_EXECUTED] = EFFECT_DONE,
    [FINDING_KEY_EXPIRED_UNKNOWN] = EFFECT_UNKNOWN,
    [FINDING_KEY_VOIDED] = EFFECT_VOIDED,
    [FINDING_SUCCESS] = EFFECT_DONE,
    [FINDING_THROTTLED] = EFFECT_NOT_NOW,
    [FINDING_BUSY] = EFFECT_DOUBT,
    [FINDING_FAULT] = EFFECT_DOUBT,
    [FINDING_CONFLICT] = EFFECT_AWAY,
    [FINDING_TURNED_AWAY] = EFFECT_AWAY,
    [FINDING_FINAL] = EFFECT_DONE,
    [FINDING_TOLD_COMPLETED] = EFFECT_DONE,
    [FINDING_TOLD_ANSWER] = EFFECT_DONE,
    [FINDING_TOLD_RUNNING] = EFFECT_RUNS,
    [FINDING_TOLD_UNKNOWN] = EFFECT_UNKNOWN,
    [FINDING_TOLD_RELEASED] = EFFECT_NO,
    [FINDING_TOLD_VOIDED] = EFFECT_VOIDED,
    [FINDING_TOLD_EXPIRED_EXECUTED] = EFFECT_DONE,
    [FINDING_TOLD_EXPIRED_UNKNOWN] = EFFECT_UNKNOWN,
    [FINDING_TOLD_NOT_SEEN] = EFFECT_NOT_SEEN,
    [FINDING_TOLD_NOT_SEEN_DOUBTFUL] = EFFECT_NONE,
    [FINDING_TOLD_FORGOTTEN] = EFFECT_NONE,
    [FINDING_TOLD_NO_RESOURCE] = EFFECT_NONE,
    [FINDING_TOLD_TURNED_AWAY] = EFFECT_NONE,
    [FINDING_TOLD_NOTHING] = EFFECT_NONE,
    [FINDING_TOLD_PROTECTED] = EFFECT_NONE,
    [FINDING_TOLD_UNPROTECTED] = EFFECT_NONE,
    [FINDING_TOLD_NO_ROUTE] = EFFECT_NONE,
};

#define U STANDING_UNSENT
#define N STANDING_NOT_APPLIED
#define A STANDING_AMBIGUOUS
#define R STANDING_RUNNING
#define X STANDING_UNKNOWN
#define C STANDING_COMPLETED
#define J STANDING_REJECTED
#define V STANDING_VOIDED

/* Column: what was known. U occurs in its own column only: what was sent stays sent. */
/* clang-format off */
static const enum standing table[EFFECT_COUNT][STANDING_COUNT] = {
    /*                   U  N  A  R  X  C  J  V */
    [EFFECT_NONE]     = { U, N, A, R, X, C, J, V },
    [EFFECT_DOUBT]    = { A, A, A, R, X, C, A, V },
    [EFFECT_NOT_NOW]  = { N, N, A, R, X, C, J, V },
    [EFFECT_NO]       = { N, N, N, N, N, C, N, V },
    [EFFECT_NOT_SEEN] = { U, N, N, R, X, C, J, V },
    [EFFECT_RUNS]     = { R, R, R, R, R, C, R, V },
    [EFFECT_UNKNOWN]  = { X, X, X, X, X, C, X, V },
    [EFFECT_DONE]     = { C, C, C, C, C, C, C, C },
    [EFFECT_REFUSED]  = { J, J, A, R, X, C, J, V },
    [EFFECT_REUSED]   = { J, J, J, J, J, J, J, V },
    [EFFECT_VOIDED]   = { V, V, V, V, V, C, V, V },
    [EFFECT_AWAY]     = { C, C, A, R, X, C, J, V },
};

/* clang-format on */

#undef U
#undef N
#undef A
#undef R
#undef X
#undef C
#undef J
#undef V

enum standing standing_after(enum standing standing, enum finding finding)
{
    return table[effects[finding]][standing];
}

enum nonbis_outcome standing_outcome(enum standing standing)
{
    switch (standing) {
    case STANDING_UNSENT:
        return NONBIS_NOT_SENT;
    case STANDING_NOT_APPLIED:
    case STANDING_VOIDED:
        return NONBIS_NOT_APPLIED;
    case STANDING_RUNNING:
        return NONBIS_IN_PROGRESS;
    case STANDING_COMPLETED:
        return NONBIS_COMPLETED;
    case STANDING_REJECTED:
        return NONBIS_REJECTED;
    case STANDING_AMBIGUOUS:
    case STANDING_UNKNOWN:
    case STANDING_COUNT:
        break;
    }
    return NONBIS_UNKNOWN;
}

/* ---- the memory --------------------------------------------------------------------------------------------------- */

void history_init(struct history *history, enum safety safety, bool has_body, bool own_key)
{
    memset(history, 0, sizeof(*history));
    history->safety = safety;
    history->has_body = has_body;
    history->own_key = own_key;
    history->standing = STANDING_UNSENT;
    history->retry_after_ms = -1;
}

void history_resume(struct history *history, int64_t first_sent_wall_ms)
{
    history->standing = STANDING_AMBIGUOUS;
    history->first_sent_wall_ms = first_sent_wall_ms;
    history->credentials_changed = true;
}

void history_begin(struct history *history, enum goal goal, int64_t now_ms, int64_t deadline_ms)
{
    history->goal = goal;
    history->started_ms = now_ms;
    history->deadline_ms = deadline_ms;
    history->attempts = history->tries = history->asks = history->polls = 0;
    history->has_last = history->in_window = false;
    history->last_status = 0;
    history->last_timed_out = false;
    history->retry_after_ms = -1;
    history->floor_ms = 0;
    history->previous_delay_ms = 0;
    history->rested = history->hurried = history->waiting = history->route_told = false;
    history->cancelled = history->caller_stop = false;
    history->local_error = 0;
}

void history_note_sending(struct history *history, int64_t wall_ms)
{
    if (history->first_sent_wall_ms == 0) {
        history->first_sent_wall_ms = wall_ms;
    }
}

static void history_note(struct history *history, const struct reading *reading, int64_t now_ms)
{
    if (!history->proved) {
        history->standing = standing_after(history->standing, reading->finding);
    }
    history->has_last = true;
    history->last = reading->finding;
    history->last_status = reading->http_status;
    history->last_timed_out = reading->timed_out;
    history->waiting = history->hurried = false;
    history->retry_after_ms = reading->retry_after_ms;
    if (reading->retry_after_ms >= 0 && now_ms + reading->retry_after_ms > history->floor_ms) {
        history->floor_ms = now_ms + reading->retry_after_ms;
    }
    if (reading->ignores_key) {
        history->evidence = EVIDENCE_IGNORES;
    } else if (reading->shows_contract) {
        history->evidence = EVIDENCE_CONTRACT;
    }
}

/* Whether the final answer came with it. */
static bool finding_answers(enum finding finding, enum standing standing)
{
    switch (finding) {
    case FINDING_EXECUTED:
    case FINDING_REPLAYED:
    case FINDING_UNRECORDED:
    case FINDING_SUCCESS:
    case FINDING_FINAL:
    case FINDING_TOLD_ANSWER:
        return true;
    case FINDING_CONFLICT:
    case FINDING_TURNED_AWAY:
        return standing == STANDING_COMPLETED;
    default:
        return false;
    }
}

void history_note_attempt(struct history *history, struct reading *reading, int64_t now_ms)
{
    bool counts = reading->finding != FINDING_OFFLINE && reading->finding != FINDING_CANCELLED &&
                  reading->finding != FINDING_HELD_BACK;
    history->exchanges++;
    history->tries++;
    history->attempts += counts ? 1 : 0;
    history->asks = history->polls = 0;
    history->rested = false;
    bool open = history->standing == STANDING_COMPLETED; /* completed, as was told, but its answer is not here yet */
    history_note(history, reading, now_ms);
    if (finding_answers(reading->finding, history->standing) &&
        !(open && (reading->finding == FINDING_CONFLICT || reading->finding == FINDING_TURNED_AWAY))) {
        history->answered = true;
    }
}

/* "Not seen" is not "never" (contract 7.4): what is it worth? */
static enum finding worth_of_not_seen(struct history *history, const struct reading *reading)
{
    bool trusted = history->promised || history->evidence == EVIDENCE_CONTRACT;
    if (history->standing == STANDING_UNSENT) {
        return FINDING_TOLD_NOT_SEEN;
    }
    if (history->first_sent_wall_ms == 0 || reading->window_start_ms == 0) {
        return FINDING_TOLD_NOT_SEEN_DOUBTFUL;
    }
    /* Date has whole seconds and is older than its arrival: the error makes the first sending earlier, never later. */
    history->in_window = history->first_sent_wall_ms + reading->skew_ms >= reading->window_start_ms;
    if (!history->in_window) {
        return FINDING_TOLD_FORGOTTEN;
    }
    /* A server that has not shown that the key counts on this route has no reason to know it. */
    return !trusted || history->credentials_changed ? FINDING_TOLD_NOT_SEEN_DOUBTFUL : FINDING_TOLD_NOT_SEEN;
}

void history_note_answer(struct history *history, struct reading *reading, int64_t now_ms)
{
    if (reading->finding == FINDING_TOLD_NOT_SEEN) {
        reading->finding = worth_of_not_seen(history, reading);
    }
    if (!history->own_key && reading->ask != ASK_ROUTE) {
        reading->shows_contract = false; /* the record may be that of another request, on another route */
    }
    history->asks++;
    history->last_ask = reading->ask;
    history->route_told = history->route_told || reading->finding >= FINDING_TOLD_PROTECTED;
    history_note(history, reading, now_ms);
    history->polls =
        reading->finding == FINDING_TOLD_RUNNING || reading->finding == FINDING_TOLD_NOTHING ? history->polls + 1 : 0;
    if (reading->finding == FINDING_TOLD_NO_RESOURCE) {
        history->no_status_resource = true;
    }
    if (reading->finding == FINDING_TOLD_ANSWER) {
        history->answered = true;
    }
}
