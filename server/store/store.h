/* store.h - THE STORE CONTRACT. Every implementation keeps it; tests/store/contract*_test.c run the same suites over all of them.
 *
 * A store is used by one thread at a time (the store thread, server/store/worker.h). All operations run between begin and
 * commit. Inside one transaction a later operation sees the earlier ones.
 *
 * Atomicity    claim looks up and claims in one step; all operations of one transaction become durable together, or none.
 * Durability   after commit returned STORE_OK everything in it survives power loss (memory: nothing survives; it says so).
 * Certainty    STORE_FAILED: nothing of the transaction is there, now or after a restart. STORE_UNCERTAIN: the truth is on the disk only; the
 *              store refuses everything from then on (STORE_DOWN) and the process must restart to read it.
 * Time         now_ms is store time (store_now): it only moves forward, also over restarts (docs/contract.md section 9).
 * Identity     a record is found by a keyed hash of tenant and key, and checked against both before it is used. */
#ifndef NONBIS_SERVER_STORE_STORE_H
#define NONBIS_SERVER_STORE_STORE_H

#include "common/buf.h"
#include "server/core/decision.h"

enum store_result {
    STORE_OK,
    STORE_STALE, /* finish: that execution does not hold the command any more; nothing changed */
    STORE_FULL,  /* no room: nothing was written; replays and look-ups go on */
    STORE_FAILED,
    STORE_UNCERTAIN,
    STORE_DOWN,
    STORE_RESULT_COUNT
};

/* Exit codes of an open that was refused (sysexits.h). */
enum { STORE_EXIT_CANNOT_CREATE = 73, STORE_EXIT_UNUSABLE = 74 };

struct store; /* below; the rest of it is private to the implementation */

/* Where a store reads the time, so that tests can move it. */
struct store_clock {
    int64_t (*wall_ms)(void *context);
    int64_t (*monotonic_ms)(void *context);
    void *context;
};

/* What the settings make of records' identity: stored, and compared at every start (docs/contract.md section 3). */
struct store_identity_settings {
    struct view tenant_source; /* "none" or "header:name" */
    struct view guard;         /* normalised list of field names */
    int fingerprint_version;
};

struct store_options {
    const char *path; /* "memory" is not for the SQLite one */
    struct store_identity_settings identity;
    int64_t max_downtime_ms;          /* most that the clock may advance store time while we were down */
    struct retention crash_retention; /* for commands that recovery finds in progress */
    int64_t reserve_bytes;            /* room that is kept for the outcomes of running commands; 0: none */
    const struct store_clock *clock;  /* NULL: the system's; must outlive the store */
};

/* Known after open. */
struct store_info {
    uint8_t store_id[16];
    uint8_t guard_key[32];   /* for credential digests */
    int64_t window_start_ms; /* every key claimed since then is remembered; grows: read it with store_window_start */
    unsigned recovered;      /* commands found in progress and made unknown */
    char description[256];   /* "sqlite 3.40.1, file, synchronous=FULL, ..." as read back */
};

/* A stored response: one allocation, freed by whoever took it with free(). */
struct stored_response {
    int status;
    bool kept;          /* false: the body was over response_keep_max */
    struct view fields; /* field block, into this allocation */
    struct view body;
};

struct store_claim {
    struct view tenant, key;
    struct view method, target; /* for the status resource: origin form without query */
    struct fingerprint fingerprint;
    struct credential credential;
    uint8_t command_id
        [COMMAND_ID_BYTES]; /* random; used when the record is new, by a store that makes no ids itself: found.record has the one that counts */
    int64_t run_ms_max; /* deadline of the claim from now */
    int64_t ttl_ms;     /* of the retention that its completion will come with; 0: not known */
    bool may_wait;
    bool may_claim;   /* false (drain, limits): decide, but write nothing */
    bool any_payload; /* a status query: the fingerprint is not compared, and nothing is written */
};

struct store_found {
    struct decision decision;
    bool claimed;                     /* FORWARD, and written: `record` is the new claim */
    struct record record;             /* as it is now; zeroed when there is none */
    int64_t row;                      /* finds it again in finish */
    struct stored_response *response; /* for REPLAY; the caller frees it */
    int64_t now_ms;                   /* store time of that; set by the wrappers */
    /* look_up, look_up_id and void_key, where there is a record; the caller frees them */
    char *request; /* "POST /orders/1" (method, blank, target); " " for a key that was voided unseen */
    char *key;     /* look_up_id only */
};

struct store_finish {
    int64_t row;
    struct view tenant, key;
    uint32_t execution;
    struct record_outcome outcome;
    struct retention retention;
    struct view fields, body; /* for OUTCOME_COMPLETED; body only when outcome.response_kept */
};

struct store_sweep {
    unsigned limit;     /* rows to touch at most */
    unsigned expired;   /* out: bodies dropped, records turned into tombstones */
    unsigned forgotten; /* out: rows removed */
    bool more;          /* out: the limit was met */
    /* out: since when (store time) the oldest record was due that was found, also when nothing came of it, and of those that are left; 0: none */
    int64_t found_due_ms, left_due_ms;
};

struct store_class {
    const char *name; /* "sqlite", "memory" */
    enum store_result (*begin)(struct store *store);
    enum store_result (*commit)(struct store *store);
    void (*rollback)(struct store *store);
    enum store_result (*claim)(struct store *store, const struct store_claim *claim, int64_t now_ms,
                               struct store_found *found);
    /* OK: written. What it was written as is in `after`: record_outcome_counts. */
    enum store_result (*finish)(struct store *store, const struct store_finish *finish, int64_t now_ms,
                                struct record *after);
    enum store_result (*look_up)(struct store *store, struct view tenant, struct view key, int64_t now_ms,
                                 struct store_found *found); /* writes nothing; decision is not set */
    /* As look_up; what another tenant owns is not found. Ids are random: of two records with one id either may be found. */
    enum store_result (*look_up_id)(struct store *store, struct view tenant, const uint8_t command_id[COMMAND_ID_BYTES],
                                    int64_t now_ms, struct store_found *found);
    enum store_result (*void_key)(struct store *store, const struct store_claim *claim,
                                  const struct retention *retention, int64_t now_ms,
                                  struct store_found *found); /* claimed=true: voided now; else `record` is why not */
    enum store_result (*sweep)(struct store *store, struct store_sweep *sweep, int64_t now_ms);
    enum store_result (*touch)(struct store *store,
                               int64_t now_ms); /* writes a little, so that the commit has to meet the disk */
    enum store_result (*idle)(
        struct store *store); /* housekeeping between transactions (checkpoint); errors as commit */
    /* Of a disk that is full; both NULL for a store that keeps no room. */
    bool (*takes_claims)(const struct store *store);
    bool (*make_room)(struct store *store);
    void (*close)(struct store *store); /* after a clean stop nothing is left to recover */
};

enum store_fault_point {
    STORE_FAULT_BEGIN,
    STORE_FAULT_COMMIT,
    STORE_FAULT_CLAIM,
    STORE_FAULT_FINISH,
    STORE_FAULT_COUNT
};

struct store_fault {
    unsigned countdown; /* 0: nothing planted */
    enum store_result result;
    bool really;
};

/* What every implementation begins with. Owned by store.c but for `ops` and `info`. */
struct store {
    const struct store_class *ops;
    struct store_info info;
    const struct store_clock *clock;
    int64_t time_base_ms, time_base_monotonic_ms;
    int64_t wall_ahead_ms;  /* the most that the wall clock was ahead of store time at any start of this store */
    int64_t told_offset_ms; /* wall clock minus store time, for the times that clients are told (9.10) */
    bool down;              /* an earlier operation was UNCERTAIN */
    bool open;              /* between begin and commit or rollback */
    bool broken;            /* an operation of this transaction was FAILED or FULL: it can only be rolled back */
    struct store_fault fault[STORE_FAULT_COUNT];
    int64_t commit_us;                    /* how long the newest commit took */
    uint64_t records[RECORD_STATE_COUNT]; /* read it with store_records */
    int64_t moved[RECORD_STATE_COUNT];    /* what the open transaction adds to them */
};

/* On refusal: NULL, `*exit_code` 73 or 74, and in `error` what was tried, on what, why it failed, what to do. */
struct store *store_open_sqlite(const struct store_options *options, struct buf *error, int *exit_code);
struct store *store_open_memory(const struct store_options *options);

/* Store time, from the monotonic clock. Any thread. */
int64_t store_now(const struct store *store);
/* info.window_start_ms as it is now. Any thread. */
int64_t store_window_start(const struct store *store);
/* The same as a time to tell: by the wall clock that was furthest ahead, so that no later start tells an earlier one. Any thread. */
int64_t store_window_told(const struct store *store);
/* How many records are in that state, as it was written: what time alone has done counts once the sweep came by. As of the newest commit. Any thread. */
uint64_t store_records(const struct store *store, enum record_state state);

/* Checking wrappers: refuse when down, remember UNCERTAIN, meet the fault points of the tests. Use these, not ops. After FAILED or FULL from an
 * operation (STALE is none) the rest of the transaction is refused as FAILED: roll it back. However commit ends, the transaction is over. A
 * rollback without a transaction does nothing. */
enum store_result store_begin(struct store *store);
enum store_result store_commit(struct store *store);
void store_rollback(struct store *store);
enum store_result store_claim_key(struct store *store, const struct store_claim *claim, struct store_found *found);
enum store_result store_finish_command(struct store *store, const struct store_finish *finish, struct record *after);
enum store_result store_look_up(struct store *store, struct view tenant, struct view key, struct store_found *found);
enum store_result store_look_up_id(struct store *store, struct view tenant, const uint8_t command_id[COMMAND_ID_BYTES],
                                   struct store_found *found);
enum store_result store_void_key(struct store *store, const struct store_claim *claim,
                                 const struct retention *retention, struct store_found *found);
enum store_result store_sweep_some(struct store *store, struct store_sweep *sweep);
enum store_result store_touch(struct store *store);
enum store_result store_idle(struct store *store);
/* False: the room for the outcomes of running commands is not there (11.5), so nothing may be claimed. store_idle tries to have it again. */
bool store_takes_claims(const struct store *store);
/* Gives that room up, for outcomes, outside of a transaction. True: there is more room than before. */
bool store_make_room(struct store *store);
void store_close(struct store *store);

const char *store_result_name(enum store_result result);

/* Fault points, for tests: the n-th coming call of that operation (1: the next) gives `result` instead. FAILED, FULL: the operation is not
 * done. UNCERTAIN for commit: it is done or not, by `really`. */
void store_fault_plant(struct store *store, enum store_fault_point point, unsigned nth, enum store_result result,
                       bool really);

/* --- for implementations --- */

/* The system's clock for NULL. */
const struct store_clock *store_clock_or_system(const struct store_clock *clock);
/* Starts store time at `last_ms`, recorded when the wall clock said `last_wall_ms`, plus what that clock has advanced since: at least 0, at most
 * max_downtime_ms (docs/contract.md section 9). `wall_ahead_ms` is that of the store's earlier starts: a clock that was set back in between and
 * now is right again has not advanced by that. A new store passes the wall clock for both times, and 0. */
void store_time_start(struct store *store, const struct store_options *options, int64_t last_ms, int64_t last_wall_ms,
                      int64_t wall_ahead_ms);
/* Behind it: what is added to store time where a client is told a time. The offset of the starts before (NULL: none is known) stays while the wall clock
 * is where it was left, so that a record tells the same time over restarts: to measure it anew would move it by some milliseconds. */
void store_offset_start(struct store *store, const int64_t *before_ms);
/* A record is no longer told: whatever was claimed up to its end may be forgotten. */
void store_window_close(struct store *store, const struct record *forgotten);
/* The transaction writes a record in state `to` over one in state `from`; ABSENT: there was none, or it is removed. */
void store_note_move(struct store *store, enum record_state from, enum record_state to);
/* At open: a record that is there already. */
void store_note_there(struct store *store, enum record_state state);
/* When time next does something to the record as written: turns it into a tombstone, or frees the key. 0: never by age. */
int64_t store_record_due(const struct record *record);
/* What decide() is to be asked for a claim. */
struct asked store_asked(const struct store_claim *claim);
static inline bool store_may_write(const struct store_claim *claim)
{
    return claim->may_claim && !claim->any_payload;
}
/* One allocation with copies of both. */
struct stored_response *stored_response_new(const struct record *record, struct view fields, struct view body);

#endif
