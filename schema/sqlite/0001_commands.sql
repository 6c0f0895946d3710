-- 0001: the store of nonbisd. One row per command, appended in time order; answers in a table of their own.
-- Times are store time in milliseconds (docs/contract.md section 9). Numbers of states and causes: server/core/record.h.
-- A file once released is never changed: the next change is 0002. Run in one transaction with its user_version.

PRAGMA application_id = 0x4E424953; -- "NBIS"

CREATE TABLE commands (
    row_id           INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice: whoever remembers a row cannot meet another one
    hash             BLOB NOT NULL CHECK (length(hash) = 16), -- keyed hash of tenant and key; both are checked again on reading
    tenant           TEXT NOT NULL,
    key              TEXT NOT NULL,
    method           TEXT NOT NULL,
    target           TEXT NOT NULL,    -- without the query
    command_id       BLOB NOT NULL,    -- 16 bytes
    state            INTEGER NOT NULL, -- as last written; time alone may have moved it on
    execution        INTEGER NOT NULL, -- of the newest forwarding; never goes back
    fingerprint      BLOB,             -- version byte, digest, short digest of each part; NULL: voided unseen
    credential       BLOB,             -- digest of the guarded fields; NULL: no guard, or forgotten
    cause            INTEGER NOT NULL, -- of an unknown outcome
    tombstone        INTEGER NOT NULL, -- what an expired record tells
    created_ms       INTEGER NOT NULL,
    deadline_ms      INTEGER NOT NULL, -- in progress past this is unknown
    completed_ms     INTEGER NOT NULL,
    expires_ms       INTEGER NOT NULL,
    forget_ms        INTEGER NOT NULL,
    due_ms           INTEGER,          -- when the sweep has work here; NULL: in progress, never by age
    response_status  INTEGER NOT NULL,
    response_bytes   INTEGER NOT NULL,
    response_kept    INTEGER NOT NULL,
    owner            BLOB,             -- for a store of several nodes; unused
    lease_ms         INTEGER           -- likewise
) STRICT;

-- No index on hash: random bytes would cost a page for every claim. The server keeps that index in memory, and the lock file and the
-- exclusive lock keep everybody else out.
-- The sweep reads it from the old end; what was in progress at a crash stands together at NULL.
CREATE INDEX commands_due ON commands (due_ms);

CREATE TABLE responses (
    row_id INTEGER PRIMARY KEY, -- the command's
    fields BLOB NOT NULL,       -- field block as it is replayed
    body   BLOB NOT NULL
) STRICT;

-- store_id, hash_key, id_key, guard_key, tenant_source, guard, fingerprint_version, last_time_ms, last_wall_ms, window_start_ms
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;
