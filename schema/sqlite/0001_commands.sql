-- 0001: the store of nonbisd. Two tables that are appended in time order: what was claimed, and what came of it.
-- Times are store time in milliseconds (docs/contract.md section 9). Numbers of states and causes: server/core/record.h.
-- A file once released is never changed: the next change is 0002. Run in one transaction with its user_version.

PRAGMA application_id = 0x4E424953; -- "NBIS"

-- One row per command. What a start reads of every row comes first, and what may be long comes last.
CREATE TABLE commands (
    row_id           INTEGER PRIMARY KEY, -- counted up by the server, and not used twice while it runs
    hash             BLOB NOT NULL CHECK (length(hash) = 16), -- keyed hash of tenant and key; both are checked again on reading
    command_id       BLOB NOT NULL,    -- 16 bytes
    state            INTEGER NOT NULL, -- as last written here: time, and in progress also a response, may have moved it on
    due_ms           INTEGER NOT NULL, -- when the sweep has work here; in progress: not before this, if it completes
    execution        INTEGER NOT NULL, -- of the newest forwarding; never goes back
    cause            INTEGER NOT NULL, -- of an unknown outcome
    tombstone        INTEGER NOT NULL, -- what an expired record tells
    created_ms       INTEGER NOT NULL,
    deadline_ms      INTEGER NOT NULL, -- in progress past this is unknown
    completed_ms     INTEGER NOT NULL,
    expires_ms       INTEGER NOT NULL,
    forget_ms        INTEGER NOT NULL,
    response_status  INTEGER NOT NULL,
    response_bytes   INTEGER NOT NULL,
    response_kept    INTEGER NOT NULL,
    fingerprint      BLOB,             -- version byte, digest, short digest of each part; NULL: voided unseen
    credential       BLOB,             -- digest of the guarded fields; NULL: no guard, or forgotten
    owner            BLOB,             -- for a store of several nodes; unused
    lease_ms         INTEGER,          -- likewise
    tenant           TEXT NOT NULL,
    key              TEXT NOT NULL,
    method           TEXT NOT NULL,
    target           TEXT NOT NULL     -- without the query
) STRICT;

-- No index, on hash or on due_ms: it would cost pages for every claim and every outcome. The server keeps in memory which row holds a key and
-- which rows are due, and the lock file and the exclusive lock keep everybody else out.

-- One row per answer. A command in progress here that has a row of its execution there is completed, by these values: its outcome is this row alone.
-- Every other outcome is written over the command's row; so is a completion of what was unknown, beside its row here.
CREATE TABLE responses (
    row_id       INTEGER PRIMARY KEY, -- the command's
    execution    INTEGER NOT NULL,
    completed_ms INTEGER NOT NULL,
    expires_ms   INTEGER NOT NULL,
    forget_ms    INTEGER NOT NULL,
    status       INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    kept         INTEGER NOT NULL,
    fields       BLOB NOT NULL,       -- field block as it is replayed
    body         BLOB NOT NULL
) STRICT;

-- store_id, hash_key, id_key, guard_key, tenant_source, guard, fingerprint_version, last_time_ms, last_wall_ms, wall_ahead_ms, window_start_ms,
-- oldest_running_row: below it nothing is in progress without a response
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;
