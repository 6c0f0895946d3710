/* sqlite_store.h - what the files of the SQLite store share: the object, its statements, rows. Private to sqlite*.c
 * and migrate_sqlite.c. The only header that includes <sqlite3.h>. One thread at a time. */
#ifndef NONBIS_SERVER_STORE_SQLITE_STORE_H
#define NONBIS_SERVER_STORE_SQLITE_STORE_H

#include "server/digest/digest.h"
#include "server/store/command_id.h"
#include "server/store/due_map.h"
#include "server/store/key_index.h"
#include "server/store/lock_file.h"
#include "server/store/reserve.h"
#include "server/store/running.h"
#include "server/store/store.h"

#include <sqlite3.h>
#include <sys/types.h>

enum { SQLITE_HASH_BYTES = 16, SQLITE_DAMAGE_TOLD = 64 };

#define SQLITE_APPLICATION_ID 0x4E424953 /* "NBIS"; schema/sqlite/0001 sets it */

enum sqlite_statement {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_FIND_ROW, /* by row and hash */
    SQL_FIND_ID,  /* by row and command id */
    SQL_READ_ROW,
    SQL_READ_BLOCK,
    SQL_READ_NAMES,
    SQL_SCAN,
    SQL_SAME_HASH,
    SQL_FIND_REQUEST,
    SQL_INSERT,
    SQL_UPDATE,
    SQL_DELETE,
    SQL_RESPONSE_FIND,
    SQL_RESPONSE_HEAD,
    SQL_RESPONSE_INSERT,
    SQL_RESPONSE_DELETE,
    SQL_META_GET,
    SQL_META_SET,
    SQL_NEWEST,
    SQL_HIGHEST,
    SQL_STATEMENT_COUNT
};

struct sqlite_store {
    struct store store; /* first */
    sqlite3 *db;
    sqlite3_stmt *statements[SQL_STATEMENT_COUNT];
    struct lock_file lock;
    struct key_index *keys;  /* which row holds a key */
    struct due_map *due;     /* where the sweep has work, and when */
    struct running *running; /* claimed by this process, and without an outcome */
    /* Of the next claim. Only goes up while the process runs, also over a rollback: whoever remembers a row never meets another command in it. */
    int64_t next_row;
    int64_t running_recorded;          /* oldest_running_row as it stands in meta, or more */
    char *path, *lock_path, *log_path; /* resolved; NULL until it is open */
    ino_t log_inode;                   /* 0: not seen yet */
    int64_t place_again_ms;            /* monotonic: of the next look at these files */
    bool full_told;                    /* the disk is full, and that was logged */
    bool mark_told; /* the lock file could not be written, and that was logged: what it says is not known */
    /* Rows that the sweep has stepped over, and told of (one over the room: so was that), and blocks of rows (due_map.h) that it leaves alone. */
    int64_t damaged_rows[SQLITE_DAMAGE_TOLD], damaged_blocks[SQLITE_DAMAGE_TOLD];
    unsigned damaged_row_count, damaged_block_count;
    uint8_t hash_key[DIGEST_KEY_BYTES];
    uint8_t id_key[BLOCK_KEY_BYTES]; /* of command ids */
    sqlite3_int64 changes_before;    /* total changes when the transaction began */
    int64_t time_recorded_ms;        /* store time last written to meta */
    int64_t window_recorded_ms;      /* window_start_ms last written to meta */
    bool ahead_recorded;             /* wall_ahead_ms and told_offset_ms of this start were written to meta */
    int wal_pages;                   /* not yet checkpointed */
    int wal_commits;                 /* of this process, likewise */
    int64_t wal_written_ms;          /* monotonic: of the newest commit that wrote */
    int64_t checkpoint_again_ms;     /* monotonic: not before, after one that failed and did no harm */
    struct reserve reserve;          /* room for the outcomes of running commands */
    int64_t reserve_again_ms;        /* monotonic: of the next try to have it again */
    bool reserve_told;               /* it is not there, and that was logged */
};

/* A command as it stands in the tables. */
struct sqlite_row {
    int64_t row; /* 0: none */
    uint8_t hash[SQLITE_HASH_BYTES];
    struct record record;
    int64_t
        due_ms; /* in its row: of a command in progress (or completed since then) the earliest time at which the sweep may have work */
};

static inline struct sqlite_store *sqlite_store_of(struct store *store)
{
    return (struct sqlite_store *) (void *) store;
}

/* sqlite.c */
extern const struct store_class sqlite_class;
void sqlite_store_free(struct sqlite_store *sqlite); /* closes what is open; no checkpoint of its own */
bool sqlite_is_full(int code);
/* Logs and classifies: STORE_FULL or STORE_FAILED. */
enum store_result sqlite_failed(struct sqlite_store *sqlite, const char *tried, int code);
enum store_result sqlite_record_time(struct sqlite_store *sqlite, int64_t now_ms);
/* False after FULL, IOERR or NOMEM, when SQLite may have undone the whole transaction by itself; whatever ran then would commit alone. */
bool sqlite_transaction_holds(const struct sqlite_store *sqlite);

/* sqlite_open.c (sqlite_open.h) defines store_open_sqlite of store.h. */

/* sqlite_scan.c: what a start reads of every row. */
struct sqlite_scan {
    const char *wrong;  /* what nothing but damage explains; NULL: nothing */
    int64_t *running;   /* rows that are in progress and have no response; the caller frees them */
    size_t count, room; /* of these */
};
/* Makes and fills the index of keys and the map of what is due, counts the states, finds the next row. Of the rows in progress those from
 * oldest_running_row on are looked up. SQLITE_OK, or what failed. */
int sqlite_scan(struct sqlite_store *sqlite, struct sqlite_scan *scan);
/* The newest time in the newest rows; 0 when there is none. */
int sqlite_scan_newest_ms(struct sqlite_store *sqlite, int64_t *newest_ms);

/* sqlite_recover.c: tells in the log which commands were running, makes them unknown, and writes the store's time, in one transaction; where the disk is full, in the room
 * that is kept for outcomes. FULL: undone. Another error: the
 * caller rolls back, once it has read SQLite's words. */
enum store_result sqlite_recover(struct sqlite_store *sqlite, const struct sqlite_scan *scan,
                                 const struct retention *retention);

/* sqlite_log.c: `tend` is what the operation `idle` of store.h begins with; results as there. */
enum store_result sqlite_log_tend(struct store *store);
/* Empties the log, at the end. False: it is still needed, and must stay. */
bool sqlite_log_bring_home(struct sqlite_store *sqlite);

/* sqlite_room.c: the operations of store.h; and what is due while the room for outcomes is not there. */
void sqlite_room_open(struct sqlite_store *sqlite, const char *path, int64_t bytes);
bool sqlite_room_takes_claims(const struct store *store);
bool sqlite_room_make(struct store *store);
bool sqlite_room_is_due(const struct sqlite_store *sqlite,
                        int64_t monotonic_ms); /* it is missing, and to be tried for */
/* It was given up, and the log has a quarter of it already: the clean-up, which writes as much as there is to clean up, leaves the rest alone. */
bool sqlite_room_is_for_outcomes(const struct sqlite_store *sqlite);
void sqlite_room_tend(struct sqlite_store *sqlite, int64_t monotonic_ms);

/* sqlite_sweep.c: the operation of store.h. */
enum store_result sqlite_sweep(struct store *store, struct store_sweep *sweep, int64_t now_ms);

/* sqlite_library.c. While this thread hushes it, its words go to debug: an open that is refused says why in our own. */
void sqlite_library_start(void);
void sqlite_library_hush(bool on);

/* sqlite_place.c: owns the three paths. `holds` looks once a second at most; false: the files are gone or others, and that was logged. */
void sqlite_place_set(struct sqlite_store *sqlite, char *path, char *lock_path);
void sqlite_place_free(struct sqlite_store *sqlite);
bool sqlite_place_holds(struct sqlite_store *sqlite, int64_t monotonic_ms);
/* The next that is written to the lock file says how far the store's time has come, as far as that is durable. */
void sqlite_place_note_time(struct sqlite_store *sqlite);
/* Writes to the lock file what the log is worth from now on; nothing while the store is being opened. False: logged. */
bool sqlite_place_mark(struct sqlite_store *sqlite, enum lock_state state);

/* sqlite_pragma.c: sets what the promise rests on and reads every one back. False: the sentence in `why`. */
bool sqlite_pragma_lock(sqlite3 *db, struct buf *why);              /* before the first access */
bool sqlite_pragma_apply(sqlite3 *db, bool fresh, struct buf *why); /* after the format was checked */
bool sqlite_pragma_number(sqlite3 *db, const char *name, int64_t *value);
/* Reads the whole database. False: what is damaged, in `said`. */
bool sqlite_pragma_check(sqlite3 *db, char *said, size_t room);
void sqlite_pragma_describe(sqlite3 *db, char *out, size_t room);

/* migrate_sqlite.c */
enum { MIGRATION_NONE = 0 };
int sqlite_migration_newest(void);
/* From user_version `from` to the newest, in one transaction that the caller has begun. */
bool sqlite_migrate(sqlite3 *db, int from, struct buf *why);

/* sqlite_statement.c */
bool sqlite_statement_prepare(struct sqlite_store *sqlite, struct buf *why);
/* Runs a statement without rows and resets it. SQLITE_DONE when well. */
int sqlite_statement_run(struct sqlite_store *sqlite, enum sqlite_statement which);

/* sqlite_meta.c; values are bytes (identity, keys) or whole numbers. */
bool sqlite_meta_get_number(struct sqlite_store *sqlite, const char *name, int64_t *value);
bool sqlite_meta_get_bytes(struct sqlite_store *sqlite, const char *name, void *bytes, size_t len);
char *sqlite_meta_get_text(struct sqlite_store *sqlite, const char *name); /* NULL: missing; the caller frees */
int sqlite_meta_set_number(struct sqlite_store *sqlite, const char *name, int64_t value); /* SQLITE_DONE when well */
int sqlite_meta_set_bytes(struct sqlite_store *sqlite, const char *name, const void *bytes, size_t len);
int sqlite_meta_set_text(struct sqlite_store *sqlite, const char *name, struct view text);
/* What makes a new store this one: random id and keys, the settings of identity, the time. Inside a transaction. */
bool sqlite_meta_make_identity(struct sqlite_store *sqlite, const struct store_identity_settings *identity,
                               int64_t wall_ms);
void sqlite_meta_start_offset(
    struct sqlite_store *sqlite); /* store_offset_start, with what the starts before have left */

/* sqlite_row.c: each returns SQLITE_OK, or what failed (SQLITE_CORRUPT for a row that no version wrote). Records are whole: what a response tells of
 * its command is in them. */
void sqlite_row_hash(const struct sqlite_store *sqlite, struct view tenant, struct view key,
                     uint8_t hash[SQLITE_HASH_BYTES]);
/* `row->row` is 0 when there is none; `at` 0: any row. `hash` is filled in every case. `response` NULL: it is not wanted; else it is given of a
 * completed command, and the caller frees it. */
int sqlite_row_find(struct sqlite_store *sqlite, int64_t at, struct view tenant, struct view key,
                    struct sqlite_row *row, struct stored_response **response);
/* By the command's id, and only when it is this tenant's; `*key` is a copy that the caller frees. */
int sqlite_row_find_id(struct sqlite_store *sqlite, struct view tenant, const uint8_t command_id[COMMAND_ID_BYTES],
                       struct sqlite_row *row, char **key);
/* The row on which a statement stands that begins with a row's columns. False: no version of this program wrote it; `read` has logged that. */
bool sqlite_row_take(sqlite3_stmt *statement, struct sqlite_row *row);
bool sqlite_row_read(sqlite3_stmt *statement, struct sqlite_row *row);
enum {
    SQLITE_ROW_STATE = 3,
    SQLITE_ROW_DUE = 4,
    SQLITE_ROW_COLUMNS = 18
}; /* columns of such a statement, and how many */
/* As a new row: gives row->row and row->record.command_id, which belong together. */
int sqlite_row_insert(struct sqlite_store *sqlite, const struct store_claim *claim, struct sqlite_row *row);
/* `*changed` is false when the row is not there as execution `execution` any more. */
int sqlite_row_update(struct sqlite_store *sqlite, const struct sqlite_row *row, uint32_t execution, bool *changed);
/* Its response as well. */
int sqlite_row_delete(struct sqlite_store *sqlite, const struct sqlite_row *row);
int sqlite_row_request(struct sqlite_store *sqlite, const struct sqlite_row *row, char **request);
struct view sqlite_column_view(sqlite3_stmt *statement, int column);

/* sqlite_response.c; results as above. */
/* Completes the record of a row in progress that has a response; `response` as for sqlite_row_find. */
int sqlite_response_join(struct sqlite_store *sqlite, struct sqlite_row *row, struct stored_response **response);
/* The same from column `at` on of a statement that stands on the row; NULL there: it has none. */
int sqlite_response_read(sqlite3_stmt *statement, int at, struct sqlite_row *row);
enum { RESPONSE_STATUS_MIN = 200, RESPONSE_STATUS_MAX = 999 }; /* of an answer that completes a command */
enum {
    SQLITE_RESPONSE_EXPIRES = 2,
    SQLITE_RESPONSE_COLUMNS = 7
}; /* columns of such a statement from there, and how many */
int sqlite_response_there(struct sqlite_store *sqlite, int64_t row, bool *there);
/* Of a completed record. `stored`: the state of the row that it belongs to. `*changed` is false when that row is not there in this state and execution,
 * or has a response already: nothing is written then. */
int sqlite_response_insert(struct sqlite_store *sqlite, const struct sqlite_row *row, enum record_state stored,
                           struct view fields, struct view body, bool *changed);
int sqlite_response_delete(struct sqlite_store *sqlite, int64_t row);

#endif
