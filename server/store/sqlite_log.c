/* sqlite_log.c - when the log is copied into the database, and what it means when that fails. Not: how the log is written (sqlite_gather.c), or which
 * log belongs to a store (sqlite_place.c). One thread at a time. */
#include "server/store/sqlite_store.h"

#include "server/base/log.h"

#include <sys/stat.h>

enum {
    /* Whoever meets a checkpoint waits for it: short ones often keep the slowest requests fastest (docs/performance.md). But not so often
     * that large bodies would make them a part of every commit, and never a log without end. */
    CHECKPOINT_PAGES = 1000,
    CHECKPOINT_COMMITS = 64,
    CHECKPOINT_PAGES_MAX = 8000,
    CHECKPOINT_QUIET_MS = 2000, /* a log at rest is brought home after this */
    CHECKPOINT_AGAIN_MS = 10000 /* between tries, behind one that did no harm */
};

/* Whether a checkpoint that failed leaves every commit as durable as it was. Each was synced with the log before it was told; a checkpoint reads the
 * log, syncs it, writes the database, cuts it to its length and syncs it, and only then may a commit begin the log anew. Until then the log goes before
 * the database, here and at a start, and the next checkpoint writes every page again.
 *
 *   FULL             the database was written   no harm: whatever half-written pages it has, the log covers them. A quota is this as well
 *   IOERR_WRITE      the same                   no harm: likewise. A limit of the file's size is this as well
 *   IOERR_TRUNCATE   it was cut to its length   no harm: likewise
 *   NOMEM, and of IOERR   before anything       no harm: nothing was done (docs/facts.md 16b)
 *   BUSY, LOCKED     before anything            no harm: nothing was done. (Nobody else can be there: sqlite_pragma.c)
 *   OK, not all      the same                   no harm: likewise
 *   IOERR_FSYNC      the log was synced         HARM: Linux tells once that it could not write a page, and then counts it as written. Commits that were
 *                                               told may be on no disk, and no later sync would say so
 *   IOERR_FSYNC      the database was synced    HARM: for the same reason. The next checkpoint might look well, and the log, which is the only whole
 *                                               copy, would be begun anew
 *   IOERR_READ, and all others                  HARM: commits that cannot be read, or an error whose meaning nobody has written down here
 *
 * What a write left for later and then could not do is told by a sync, so it is IOERR_FSYNC too. */
static bool checkpoint_did_no_harm(int code)
{
    switch (code) {
    case SQLITE_IOERR_WRITE:
    case SQLITE_IOERR_TRUNCATE:
    case SQLITE_IOERR_NOMEM:
        return true;
    default:
        break;
    }
    int kind = code & 0xFF;
    return kind == SQLITE_OK || kind == SQLITE_FULL || kind == SQLITE_NOMEM || kind == SQLITE_BUSY ||
           kind == SQLITE_LOCKED;
}

/* Copies the log, and then leaves none of it. Returns SQLite's code. Only when the database holds all of it does the lock file say that the log may be
 * empty, or gone: a process killed behind that leaves nothing in the log alone. Where that cannot be said the log stays as it is, copied. */
static int log_empty(struct sqlite_store *sqlite, int *in_log, int *copied)
{
    int code = sqlite3_wal_checkpoint_v2(sqlite->db, NULL, SQLITE_CHECKPOINT_PASSIVE, in_log, copied);
    if (code != SQLITE_OK || *in_log != *copied ||
        (sqlite->lock.state == LOCK_RUNNING && !sqlite_place_mark(sqlite, LOCK_CLOSING))) {
        return code;
    }
    code = sqlite3_wal_checkpoint_v2(sqlite->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    (void) sqlite_place_mark(sqlite, code == SQLITE_OK ? LOCK_STOPPED : LOCK_RUNNING);
    return code;
}

/* Whether the log takes up room on the disk. It may have been copied, or be of the life before. */
static bool log_takes_room(const struct sqlite_store *sqlite)
{
    struct stat status;
    return stat(sqlite->log_path, &status) == 0 && status.st_size > 0;
}

/* Copies the log into the database, from this thread only: with one connection nothing is in the way, so the next
 * commit starts the log from its beginning again (docs/facts.md 16, 21b). */
enum store_result sqlite_log_tend(struct store *store)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    int64_t monotonic_ms = store->clock->monotonic_ms(store->clock->context);
    if (!sqlite_place_holds(sqlite, monotonic_ms)) {
        return STORE_UNCERTAIN;
    }
    /* The log may have taken that room up: emptied into free pages of the database it gives it back. */
    bool room = sqlite_room_is_due(sqlite, monotonic_ms) && log_takes_room(sqlite);
    bool due = room || (sqlite->wal_pages >= CHECKPOINT_PAGES && sqlite->wal_commits >= CHECKPOINT_COMMITS) ||
               sqlite->wal_pages >= CHECKPOINT_PAGES_MAX ||
               (sqlite->wal_pages > 0 && monotonic_ms - sqlite->wal_written_ms >= CHECKPOINT_QUIET_MS);
    /* Nor over a transaction that a rollback without memory has left open: the next one ends it. */
    if (!due || monotonic_ms < sqlite->checkpoint_again_ms || sqlite_transaction_holds(sqlite)) {
        return STORE_OK;
    }
    int in_log = -1, copied = -1;
    int code = room ? log_empty(sqlite, &in_log, &copied)
                    : sqlite3_wal_checkpoint_v2(sqlite->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log, &copied);
    if (code == SQLITE_OK && in_log == copied) {
        sqlite->wal_pages = sqlite->wal_commits = 0;
        return STORE_OK;
    }
    if (checkpoint_did_no_harm(code)) {
        sqlite->checkpoint_again_ms = monotonic_ms + CHECKPOINT_AGAIN_MS;
        log_message(
            LOG_ERROR, "store",
            "the checkpoint did not copy the log of %d pages into the database %s: %s (%d); nothing is lost, the log "
            "grows, the next try is in %d s",
            sqlite->wal_pages, sqlite->path, sqlite3_errstr(code), code, CHECKPOINT_AGAIN_MS / 1000);
        return code == SQLITE_OK ? STORE_OK : sqlite_is_full(code) ? STORE_FULL : STORE_FAILED;
    }
    log_message(LOG_ERROR, "store", "the checkpoint failed: %s (%d); nothing more is stored, a restart reads the log",
                sqlite3_errmsg(sqlite->db), code);
    return STORE_UNCERTAIN;
}

bool sqlite_log_bring_home(struct sqlite_store *sqlite)
{
    int in_log = -1, copied = -1;
    int code = log_empty(sqlite, &in_log, &copied);
    if (code != SQLITE_OK) {
        log_message(LOG_ERROR, "store", "the last checkpoint failed: %s; the next start reads the log",
                    sqlite3_errmsg(sqlite->db));
    }
    return code == SQLITE_OK && in_log == copied && sqlite->lock.state != LOCK_RUNNING;
}
