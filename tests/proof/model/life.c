/* life.c - see life.h. Walks from the absent record through every operation until no new row is found. Two records are one row when situation,
 * payload and caller are the same; that this is enough is checked: each record that comes to a row must move on as the first one did. */
#include "tests/proof/model/life.h"

#include <string.h>

static const struct retention retention = { .ttl_ms = 1000, .tombstone_ttl_ms = 10000 };
enum { RUN_MS = 100 };

static bool over_at(int64_t end_ms, int64_t now_ms)
{
    return now_ms >= end_ms;
}

/* Which of three, by the two ends of a record's time. */
static enum situation by_ends(const struct record *record, int64_t now_ms, enum situation first)
{
    int passed = over_at(record->forget_ms, now_ms) ? 2 : over_at(record->expires_ms, now_ms) ? 1 : 0;
    return (enum situation)((int) first + passed);
}

static enum situation by_last_end(const struct record *record, int64_t now_ms, enum situation first)
{
    return (enum situation)((int) first + (over_at(record->forget_ms, now_ms) ? 1 : 0));
}

/* From what is written and the time alone, not from what the code makes of it. */
static enum situation situation_of(const struct record *record, int64_t now_ms)
{
    switch (record->state) {
    case RECORD_IN_PROGRESS:
        return over_at(record->deadline_ms, now_ms) ? SITUATION_RUNNING_LATE : SITUATION_RUNNING;
    case RECORD_COMPLETED:
        return by_ends(record, now_ms, SITUATION_COMPLETED);
    case RECORD_UNKNOWN:
        return by_ends(record, now_ms, SITUATION_UNKNOWN);
    case RECORD_RELEASED:
        return by_last_end(record, now_ms, SITUATION_RELEASED);
    case RECORD_EXPIRED:
        return by_last_end(record, now_ms,
                           record->tombstone == EXECUTED_YES ? SITUATION_TOMB_YES : SITUATION_TOMB_UNKNOWN);
    case RECORD_VOIDED:
        return by_last_end(record, now_ms,
                           record->fingerprint.version == 0 ? SITUATION_VOIDED_UNSEEN : SITUATION_VOIDED);
    default:
        return SITUATION_ABSENT;
    }
}

static bool situation_over(enum situation situation)
{
    return situation == SITUATION_ABSENT || situation == SITUATION_COMPLETED_OVER ||
           situation == SITUATION_UNKNOWN_OVER || situation == SITUATION_RELEASED_OVER ||
           situation == SITUATION_TOMB_YES_OVER || situation == SITUATION_TOMB_UNKNOWN_OVER ||
           situation == SITUATION_VOIDED_OVER || situation == SITUATION_VOIDED_UNSEEN_OVER;
}

static struct fingerprint payload_of(int number)
{
    return (struct fingerprint){ .version = FINGERPRINT_VERSION, .digest = { (uint8_t) number } };
}

static struct credential caller_of(int number)
{
    return (struct credential){ .present = true, .digest = { (uint8_t) number } };
}

/* A record at a moment, before it is known which row it is. */
struct moment {
    struct record record;
    int64_t now_ms;
};

static struct life_row row_of(const struct moment *moment)
{
    const struct record *record = &moment->record;
    struct life_row row = { .record = *record, .now_ms = moment->now_ms };
    row.situation = situation_of(record, moment->now_ms);
    row.payload = record->fingerprint.version == 0 ? 0 : record->fingerprint.digest[0];
    row.caller = record->credential.present ? record->credential.digest[0] : 0;
    row.state = record_state_at(record, moment->now_ms);
    row.executed = record_executed_at(record, moment->now_ms);
    row.over = situation_over(row.situation);
    return row;
}

static bool same_row(const struct life_row *a, const struct life_row *b)
{
    return a->situation == b->situation && a->payload == b->payload && a->caller == b->caller;
}

/* --- the operations --- */

enum { OP_CLAIM, OP_FINISH, OP_FINISH_OTHER, OP_CANCEL, OP_TICK, OP_SWEEP, OP_RECOVER };

struct operation {
    int what;
    int payload, caller, kind;
    int *(*place)(struct life_moves *moves, const struct operation *operation);
};

static bool finish(struct moment *moment, uint32_t execution, int kind, enum cause cause)
{
    struct record_outcome outcome = { .kind = (enum outcome_kind) kind, .cause = cause, .response_status = 201 };
    return record_finish(&moment->record, execution, &outcome, &retention, moment->now_ms);
}

/* The execution before it, or one that is still to come. */
static bool finish_other(struct moment *moment, int kind)
{
    return finish(moment, moment->record.execution - 1, kind, CAUSE_RESET) ||
           finish(moment, moment->record.execution + 1, kind, CAUSE_RESET);
}

static bool tick(struct moment *moment)
{
    const struct record *record = &moment->record;
    if (record->state == RECORD_ABSENT) {
        return false;
    }
    int64_t next_ms = INT64_MAX;
    const int64_t ends_ms[] = { record->deadline_ms, record->expires_ms, record->forget_ms };
    /* While it is in progress the others are what was promised before; afterwards the deadline says nothing. */
    int from = record->state == RECORD_IN_PROGRESS ? 0 : 1, to = record->state == RECORD_IN_PROGRESS ? 0 : 2;
    for (int i = from; i <= to; i++) {
        next_ms = ends_ms[i] > moment->now_ms && ends_ms[i] < next_ms ? ends_ms[i] : next_ms;
    }
    if (next_ms == INT64_MAX) {
        return false;
    }
    moment->now_ms = next_ms;
    return true;
}

/* As the sweep of a store does it: what time has freed goes, what it has aged is written down. */
static bool sweep(struct moment *moment)
{
    enum record_state state = record_state_at(&moment->record, moment->now_ms);
    if (state == moment->record.state || moment->record.state == RECORD_IN_PROGRESS) {
        return false;
    }
    if (state == RECORD_ABSENT) {
        moment->record = (struct record){ .state = RECORD_ABSENT };
        return true;
    }
    moment->record.state = state;
    return true;
}

static bool operate(struct moment *moment, const struct operation *operation)
{
    static const uint8_t id[COMMAND_ID_BYTES] = { 7 };
    struct fingerprint payload = payload_of(operation->payload);
    struct credential caller = caller_of(operation->caller);
    switch (operation->what) {
    case OP_CLAIM:
        return record_claim(&moment->record, id, &payload, &caller, RUN_MS, moment->now_ms);
    case OP_FINISH:
        return finish(moment, moment->record.execution, operation->kind, CAUSE_RESET);
    case OP_FINISH_OTHER:
        return finish_other(moment, operation->kind);
    case OP_CANCEL:
        return record_void(&moment->record, id, &caller, &retention, moment->now_ms);
    case OP_TICK:
        return tick(moment);
    case OP_SWEEP:
        return sweep(moment);
    default: /* OP_RECOVER */
        return moment->record.state == RECORD_IN_PROGRESS &&
               finish(moment, moment->record.execution, OUTCOME_UNKNOWN, CAUSE_CRASH);
    }
}

static int *place_claim(struct life_moves *moves, const struct operation *operation)
{
    return &moves->claim[operation->payload - 1][operation->caller - 1];
}

static int *place_finish(struct life_moves *moves, const struct operation *operation)
{
    return &moves->finish[operation->kind];
}

static int *place_finish_other(struct life_moves *moves, const struct operation *operation)
{
    return &moves->finish_other[operation->kind];
}

static int *place_cancel(struct life_moves *moves, const struct operation *operation)
{
    return &moves->cancel[operation->caller - 1];
}

static int *place_single(struct life_moves *moves, const struct operation *operation)
{
    return operation->what == OP_TICK ? &moves->tick : operation->what == OP_SWEEP ? &moves->sweep : &moves->recover;
}

static const struct operation operations[] = {
    { OP_CLAIM, 1, 1, 0, place_claim },
    { OP_CLAIM, 1, 2, 0, place_claim },
    { OP_CLAIM, 2, 1, 0, place_claim },
    { OP_CLAIM, 2, 2, 0, place_claim },
    { OP_FINISH, 0, 0, OUTCOME_COMPLETED, place_finish },
    { OP_FINISH, 0, 0, OUTCOME_NOT_EXECUTED, place_finish },
    { OP_FINISH, 0, 0, OUTCOME_UNKNOWN, place_finish },
    { OP_FINISH_OTHER, 0, 0, OUTCOME_COMPLETED, place_finish_other },
    { OP_FINISH_OTHER, 0, 0, OUTCOME_NOT_EXECUTED, place_finish_other },
    { OP_FINISH_OTHER, 0, 0, OUTCOME_UNKNOWN, place_finish_other },
    { OP_CANCEL, 0, 1, 0, place_cancel },
    { OP_CANCEL, 0, 2, 0, place_cancel },
    { OP_TICK, 0, 0, 0, place_single },
    { OP_SWEEP, 0, 0, 0, place_single },
    { OP_RECOVER, 0, 0, 0, place_single },
};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

/* --- the walk --- */

static void answer_for(struct life_row *row)
{
    for (int payload = 0; payload < LIFE_PAYLOADS; payload++) {
        for (int caller = 0; caller < LIFE_CALLERS; caller++) {
            struct fingerprint fingerprint = payload_of(payload + 1);
            struct credential credential = caller_of(caller + 1);
            for (int wait = 0; wait < 2; wait++) {
                struct asked asked = { &fingerprint, &credential, wait == 1 };
                row->verdict[payload][caller][wait] = decide(&row->record, &asked, row->now_ms).verdict;
            }
        }
    }
}

/* The first claim of a key starts at 1; after a release it counts up. Nothing else is understood. */
static const char *count_claim(struct life_row *row, const struct record *claimed)
{
    if (claimed->execution != 1 && claimed->execution != row->record.execution + 1) {
        return "a claim numbers its execution in a way that the model does not know";
    }
    row->counts_up = claimed->execution != 1 || row->record.execution == 0;
    return NULL;
}

/* Whether a second record of a row is as the first: what is seen of it, and where it goes. */
static bool moves_alike(const struct life_row *first, const struct life_row *second)
{
    if (first->state != second->state || first->executed != second->executed ||
        memcmp(first->verdict, second->verdict, sizeof first->verdict) != 0) {
        return false;
    }
    for (int i = 0; i < OPERATIONS; i++) {
        struct moment a = { first->record, first->now_ms }, b = { second->record, second->now_ms };
        bool done = operate(&a, &operations[i]);
        if (done != operate(&b, &operations[i])) {
            return false;
        }
        struct life_row to_a = row_of(&a), to_b = row_of(&b);
        if (done && !same_row(&to_a, &to_b)) {
            return false;
        }
    }
    return true;
}

static int row_find_or_add(struct life *life, const struct moment *moment)
{
    struct life_row row = row_of(moment);
    answer_for(&row);
    for (int i = 0; i < life->count; i++) {
        if (same_row(&life->rows[i], &row)) {
            if (!moves_alike(&life->rows[i], &row)) {
                life->fault = "two records of one situation move on in different ways";
            }
            return i;
        }
    }
    if (life->count == LIFE_ROWS) {
        life->fault = "more situations than LIFE_ROWS";
        return 0;
    }
    life->rows[life->count] = row;
    return life->count++;
}

static void row_move(struct life *life, int from)
{
    for (int i = 0; i < OPERATIONS && life->fault == NULL; i++) {
        struct moment moment = { life->rows[from].record, life->rows[from].now_ms };
        bool done = operate(&moment, &operations[i]);
        int to = done ? row_find_or_add(life, &moment) : LIFE_NO;
        *operations[i].place(&life->rows[from].moves, &operations[i]) = to;
        if (done && operations[i].what == OP_CLAIM) {
            const char *fault = count_claim(&life->rows[from], &moment.record);
            life->fault = life->fault != NULL ? life->fault : fault;
        }
    }
}

bool life_draw(struct life *life)
{
    memset(life, 0, sizeof *life);
    struct moment nothing = { .now_ms = 1 };
    (void) row_find_or_add(life, &nothing);
    for (int i = 0; i < life->count && life->fault == NULL; i++) {
        row_move(life, i);
    }
    return life->fault == NULL;
}

const char *situation_name(enum situation situation)
{
    static const char *const names[SITUATION_COUNT] = {
        [SITUATION_ABSENT] = "absent",
        [SITUATION_RUNNING] = "running",
        [SITUATION_RUNNING_LATE] = "running-late",
        [SITUATION_COMPLETED] = "completed",
        [SITUATION_COMPLETED_OLD] = "completed-old",
        [SITUATION_COMPLETED_OVER] = "completed-over",
        [SITUATION_UNKNOWN] = "unknown",
        [SITUATION_UNKNOWN_OLD] = "unknown-old",
        [SITUATION_UNKNOWN_OVER] = "unknown-over",
        [SITUATION_RELEASED] = "released",
        [SITUATION_RELEASED_OVER] = "released-over",
        [SITUATION_TOMB_YES] = "tomb-yes",
        [SITUATION_TOMB_YES_OVER] = "tomb-yes-over",
        [SITUATION_TOMB_UNKNOWN] = "tomb-unknown",
        [SITUATION_TOMB_UNKNOWN_OVER] = "tomb-unknown-over",
        [SITUATION_VOIDED] = "voided",
        [SITUATION_VOIDED_OVER] = "voided-over",
        [SITUATION_VOIDED_UNSEEN] = "voided-unseen",
        [SITUATION_VOIDED_UNSEEN_OVER] = "voided-unseen-over",
    };
    return names[situation];
}
