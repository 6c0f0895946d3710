/* sqlite_open.c - opens the SQLite store, or says why not. Every refusal names what was tried, on what, why it
 * failed and what to do, and leaves the database as it was. Not: where it lies and who has it (sqlite_open_place.c).
 * Used at start, before there are threads. */
#include "server/store/sqlite_open.h"

#include "common/http_time.h"
#include "server/base/log.h"
#include "server/base/memory.h"
#include "server/store/sqlite_gather.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHECK_BYTES_MAX =
        64 * 1024 * 1024 /* a database up to here is read whole at start; a larger one is checked where it is used */
};

bool open_refuse(struct opening *opening, int exit_code, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    (void) vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    buf_printf(opening->error, "the store %s cannot be %s: %s",
               opening->path != NULL ? opening->path : opening->options->path,
               exit_code == STORE_EXIT_CANNOT_CREATE ? "created or opened" : "used", text);
    opening->exit_code = exit_code;
    return false;
}

/* What SQLite said about the file. */
static bool open_refuse_code(struct opening *opening, const char *tried, const char *detail)
{
    sqlite3 *db = opening->sqlite->db;
    switch (sqlite3_errcode(db) & 0xFF) {
    case SQLITE_NOTADB:
        return open_refuse(opening, STORE_EXIT_UNUSABLE,
                           "it is not a database (%s). If it should be the store, restore a backup; else name another "
                           "file with --store",
                           sqlite3_errmsg(db));
    case SQLITE_CORRUPT:
        return open_refuse(opening, STORE_EXIT_UNUSABLE,
                           "it is damaged (%s: %s). Keep a copy of it and of its -wal file, then restore a backup",
                           tried, detail);
    case SQLITE_BUSY:
        return open_refuse(opening, STORE_EXIT_UNUSABLE,
                           "it is locked: another program has the database open. Close that program (a sqlite3 shell?) "
                           "and start again");
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
        return open_refuse(opening, STORE_EXIT_CANNOT_CREATE, "%s: %s (%s)", tried, detail,
                           strerror(sqlite3_system_errno(db)));
    default:
        return open_refuse(opening, STORE_EXIT_UNUSABLE, "%s: %s", tried, detail);
    }
}

/* --- the database --- */

static bool open_database(struct opening *opening)
{
    struct sqlite_store *sqlite = opening->sqlite;
    sqlite_library_start();
    mode_t mask = umask(0077); /* 0600, which the -wal file takes over (docs/facts.md 38) */
    int code = sqlite3_open_v2(opening->path, &sqlite->db,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW |
                                   SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE,
                               sqlite_gather_vfs());
    (void) umask(mask);
    if (code != SQLITE_OK) {
        return open_refuse_code(opening, "opening the database", sqlite3_errmsg(sqlite->db));
    }
    /* Closing a file that is refused must not change it: neither a foreign one, nor the log of ours. */
    (void) sqlite3_db_config(sqlite->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void) sqlite3_db_config(sqlite->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return true;
}

/* Ours, and not newer? Nothing is written before this is known. */
static bool open_check_format(struct opening *opening, int *version)
{
    struct sqlite_store *sqlite = opening->sqlite;
    char room[512];
    struct buf why = { .ptr = NULL };
    int64_t application = 0, schema = 0, user = 0;
    buf_init(&why, sizeof room);
    bool read = sqlite_pragma_lock(sqlite->db, &why) &&
                sqlite_pragma_number(sqlite->db, "application_id", &application) &&
                sqlite_pragma_number(sqlite->db, "user_version", &user) &&
                sqlite_pragma_number(sqlite->db, "schema_version", &schema);
    (void) snprintf(room, sizeof room, "%.*s", VIEW_ARGS(buf_view(&why)));
    buf_fini(&why);
    if (!read) {
        return open_refuse_code(opening, "reading its header", room[0] != '\0' ? room : sqlite3_errmsg(sqlite->db));
    }
    *version = (int) user;
    opening->fresh = application == 0 && user == 0 && schema == 0;
    if (opening->fresh && opening->sqlite->lock.remembers) {
        return open_refuse(opening, STORE_EXIT_UNUSABLE,
                           "it is empty, but %s remembers a store. Bring it back. To start anew on purpose remove the "
                           "lock file too: every key is then forgotten",
                           opening->lock_path);
    }
    if (!opening->fresh && application != SQLITE_APPLICATION_ID) {
        return open_refuse(opening, STORE_EXIT_UNUSABLE,
                           "it is a database of another application (application_id 0x%08llx, expected 0x%08x). Name "
                           "another file with --store",
                           (unsigned long long) application & 0xFFFFFFFFU, (unsigned) SQLITE_APPLICATION_ID);
    }
    if (user > sqlite_migration_newest()) {
        return open_refuse(opening, STORE_EXIT_UNUSABLE,
                           "it was written by a newer version (format %lld; this program, " NONBIS_VERSION
                           ", knows formats up to %d). Start the newer version",
                           (long long) user, sqlite_migration_newest());
    }
    return true;
}

static int sqlite_on_commit(void *context, sqlite3 *db, const char *schema, int pages)
{
    (void) db;
    (void) schema;
    ((struct sqlite_store *) context)->wal_pages = pages;
    return SQLITE_OK;
}

/* Pragmas, tables, statements. */
static bool open_prepare(struct opening *opening, int version)
{
    struct sqlite_store *sqlite = opening->sqlite;
    char room[512] = "";
    struct buf why;
    buf_init(&why, sizeof room - 1);
    bool done = sqlite_pragma_apply(sqlite->db, opening->fresh, &why);
    if (done && version < sqlite_migration_newest()) {
        done = sqlite3_exec(sqlite->db, "BEGIN EXCLUSIVE", NULL, NULL, NULL) == SQLITE_OK &&
               sqlite_migrate(sqlite->db, version, &why) &&
               (opening->fresh || sqlite3_exec(sqlite->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
    }
    done = done && sqlite_statement_prepare(sqlite, &why);
    (void) snprintf(room, sizeof room, "%.*s", VIEW_ARGS(buf_view(&why)));
    buf_fini(&why);
    if (!done) {
        return open_refuse_code(opening, "preparing the database", room[0] != '\0' ? room : sqlite3_errmsg(sqlite->db));
    }
    (void) sqlite3_wal_hook(sqlite->db, sqlite_on_commit, sqlite);
    return true;
}

static bool open_check_damage(struct opening *opening)
{
    struct stat status;
    char said[256];
    if (stat(opening->path, &status) != 0 || status.st_size > CHECK_BYTES_MAX ||
        sqlite_pragma_check(opening->sqlite->db, said, sizeof said)) {
        return true;
    }
    return open_refuse(opening, STORE_EXIT_UNUSABLE,
                       "it is damaged (quick_check: %s). Keep a copy of it and of its -wal file, then restore a backup",
                       said);
}

/* --- who it is --- */

static bool open_make_identity(struct opening *opening)
{
    struct sqlite_store *sqlite = opening->sqlite;
    const struct store_clock *clock = store_clock_or_system(opening->options->clock);
    if (!sqlite_meta_make_identity(sqlite, &opening->options->identity, clock->wall_ms(clock->context)) ||
        sqlite3_exec(sqlite->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        return open_refuse_code(opening, "writing a new store", sqlite3_errmsg(sqlite->db));
    }
    /* The name of the new file is durable only with its directory. */
    int directory = open(opening->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = directory >= 0 && fsync(directory) == 0;
    int error = errno;
    if (directory >= 0) {
        (void) close(directory);
    }
    return synced || open_refuse(opening, STORE_EXIT_CANNOT_CREATE, "syncing its directory %s: %s", opening->directory,
                                 strerror(error));
}

static bool open_compare_text(struct opening *opening, const char *name, const char *what, struct view now)
{
    char *stored = sqlite_meta_get_text(opening->sqlite, name);
    bool same = stored != NULL && view_equal(view_of(stored), now);
    if (!same) {
        (void) open_refuse(opening, STORE_EXIT_UNUSABLE,
                           "its records were made with %s \"%s\" and this start says \"%.*s\": every key would be new, "
                           "and repeats would be executed again. Start with the old setting, or with a new store",
                           what, stored != NULL ? stored : "", VIEW_ARGS(now));
    }
    free(stored);
    return same;
}

static bool open_read_identity(struct opening *opening)
{
    struct sqlite_store *sqlite = opening->sqlite;
    const struct store_identity_settings *identity = &opening->options->identity;
    struct store_info *info = &sqlite->store.info;
    int64_t version = 0;
    if (!sqlite_meta_get_bytes(sqlite, "store_id", info->store_id, sizeof info->store_id) ||
        !sqlite_meta_get_bytes(sqlite, "guard_key", info->guard_key, sizeof info->guard_key) ||
        !sqlite_meta_get_bytes(sqlite, "hash_key", sqlite->hash_key, sizeof sqlite->hash_key) ||
        !sqlite_meta_get_bytes(sqlite, "id_key", sqlite->id_key, sizeof sqlite->id_key) ||
        !sqlite_meta_get_number(sqlite, "fingerprint_version", &version) ||
        !sqlite_meta_get_number(sqlite, "window_start_ms", &info->window_start_ms)) {
        return open_refuse(opening, STORE_EXIT_UNUSABLE,
                           "it is damaged (its table meta lacks a name). Keep a copy, then restore a backup");
    }
    if (sqlite->lock.remembers && !digest_equal(sqlite->lock.store_id, info->store_id, sizeof info->store_id)) {
        return open_refuse(opening, STORE_EXIT_UNUSABLE,
                           "it is another store than the one that %s remembers. Bring the right file back; or, if this "
                           "one is meant, remove the lock file: keys that only the other one knows are then forgotten",
                           opening->lock_path);
    }
    if (version != identity->fingerprint_version) {
        return open_refuse(opening, STORE_EXIT_UNUSABLE,
                           "its records were made with fingerprint version %lld and this program uses %d: every repeat "
                           "would look like another request. Start a version that uses %lld, or with a new store",
                           (long long) version, identity->fingerprint_version, (long long) version);
    }
    return open_compare_text(opening, "tenant_source", "tenant", identity->tenant_source) &&
           open_compare_text(opening, "guard", "guard", identity->guard);
}

/* --- time and recovery --- */

/* A backup that was restored, or a file that was taken for another: what was claimed behind it would be new (contract 9.9). */
static bool open_refuse_older(struct opening *opening, int64_t last_ms)
{
    char ends[RFC3339_BYTES], known[RFC3339_BYTES];
    rfc3339_write(last_ms, ends);
    rfc3339_write(opening->sqlite->lock.time_ms, known);
    return open_refuse(
        opening, STORE_EXIT_UNUSABLE,
        "it is an older copy: it ends at %s, and %s remembers that the store had come to %s. Keys claimed in "
        "between are not in it, and would be executed again. Bring the newest file back, with its -wal file. If "
        "that is lost, remove the lock file to go on, knowing that repeats of what came after the copy are "
        "executed again",
        ends, opening->lock_path, known);
}

static bool open_start_time(struct opening *opening)
{
    struct sqlite_store *sqlite = opening->sqlite;
    int64_t last_ms = 0, last_wall_ms = 0, newest_ms = 0, ahead_ms = 0;
    if (!sqlite_meta_get_number(sqlite, "last_time_ms", &last_ms) ||
        !sqlite_meta_get_number(sqlite, "last_wall_ms", &last_wall_ms) ||
        sqlite_scan_newest_ms(sqlite, &newest_ms) != SQLITE_OK) {
        return open_refuse_code(opening, "reading its time", sqlite3_errmsg(sqlite->db));
    }
    if (last_ms < sqlite->lock.time_ms) {
        return open_refuse_older(opening, last_ms);
    }
    if (!sqlite_meta_get_number(sqlite, "wall_ahead_ms", &ahead_ms)) { /* made by a version that did not keep it */
        ahead_ms = last_wall_ms - last_ms;
    }
    store_time_start(&sqlite->store, opening->options, last_ms, last_wall_ms, ahead_ms);
    /* Time is recorded once a second only: after a crash with a clock that stepped back the newest rows know better. */
    if (sqlite->store.time_base_ms < newest_ms) {
        sqlite->store.time_base_ms = newest_ms;
    }
    sqlite_meta_start_offset(sqlite);
    return true;
}

/* What is kept in memory about the rows; two rows of one key would be two commands. */
static bool open_scan(struct opening *opening)
{
    struct sqlite_store *sqlite = opening->sqlite;
    if (sqlite_scan(sqlite, &opening->scan) != SQLITE_OK) {
        return open_refuse_code(opening, "reading its keys", sqlite3_errmsg(sqlite->db));
    }
    return opening->scan.wrong == NULL ||
           open_refuse(opening, STORE_EXIT_UNUSABLE,
                       "it is damaged: %s. Keep a copy of it and of its -wal file, then restore a backup",
                       opening->scan.wrong);
}

/* Also the first durable write of this process: a disk that cannot be written to is found here. One that is full is
 * no reason to stay away when nothing has to be recovered: replays and look-ups need no room. */
static bool open_recover(struct opening *opening)
{
    struct sqlite_store *sqlite = opening->sqlite;
    size_t running = opening->scan.count;
    enum store_result result = sqlite_recover(sqlite, &opening->scan, &opening->options->crash_retention);
    char detail[256];
    (void) snprintf(detail, sizeof detail, "%s", sqlite3_errmsg(sqlite->db));
    if (result == STORE_FULL && running == 0) {
        log_message(LOG_WARN, "store",
                    "the disk of %s is full: what is stored is told, and new commands are refused until there is room",
                    opening->path);
        return true;
    }
    if (result == STORE_FULL) {
        return open_refuse(opening, STORE_EXIT_UNUSABLE,
                           "the disk is full: there is no room to record as unknown what was running when it stopped "
                           "(commands: %zu). Nothing is lost. Free some space on the disk of %s and start again",
                           running, opening->directory);
    }
    if (result != STORE_OK) {
        (void) open_refuse_code(opening, "making running commands unknown", detail);
        store_rollback(&sqlite->store);
        return false;
    }
    return true;
}

static bool open_all(struct opening *opening)
{
    struct sqlite_store *sqlite = opening->sqlite;
    struct store_info *info = &sqlite->store.info;
    int version = 0;
    if (!open_find_directory(opening) || !open_check_place(opening) || !open_take_lock(opening) ||
        !open_database(opening) || !open_check_format(opening, &version) || !open_prepare(opening, version)) {
        return false;
    }
    if (opening->fresh && !open_make_identity(opening)) {
        return false;
    }
    sqlite_room_open(sqlite, opening->path, opening->options->reserve_bytes);
    if ((!opening->fresh && !open_check_damage(opening)) || !open_read_identity(opening) || !open_start_time(opening) ||
        !open_scan(opening) || !open_recover(opening)) {
        return false;
    }
    sqlite_pragma_describe(sqlite->db, info->description, sizeof info->description);
    /* With the first commit there is a log, which must not get lost from then on. A full disk has met none, and a commit
     * that changes no byte writes none: then the state stays until one does (sqlite_commit). */
    sqlite_place_note_time(sqlite);
    if (!open_write_lock(opening, info->store_id, sqlite->wal_pages > 0 ? LOCK_RUNNING : sqlite->lock.state)) {
        return false;
    }
    if (chmod(opening->path, 0600) != 0) { /* an older file may be wider */
        return open_refuse(opening, STORE_EXIT_CANNOT_CREATE, "making it private: %s", strerror(errno));
    }
    (void) sqlite3_db_config(sqlite->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return true;
}

struct store *store_open_sqlite(const struct store_options *options, struct buf *error, int *exit_code)
{
    struct opening opening = { .options = options, .error = error };
    opening.sqlite = memory_new(sizeof *opening.sqlite);
    opening.sqlite->store.ops = &sqlite_class;
    opening.sqlite->lock.fd = opening.sqlite->reserve.fd = -1;
    sqlite_library_hush(true);
    bool opened = open_all(&opening);
    if (opened) {
        sqlite_place_set(opening.sqlite, opening.path, opening.lock_path);
        sqlite_room_tend(opening.sqlite, opening.sqlite->reserve_again_ms);
    } else {
        sqlite_store_free(opening.sqlite);
        free(opening.path);
        free(opening.lock_path);
    }
    sqlite_library_hush(false);
    free(opening.directory);
    free(opening.scan.running);
    *exit_code = opening.exit_code;
    return opened ? &opening.sqlite->store : NULL;
}
