/* sqlite_check.c - see check.h. Owns the opening that changes nothing, and what is told.
 *
 * The database is opened for writing, because only so can SQLite keep everybody else out and read the log without shared memory; but nothing is
 * written: no migration, no recovery, no checkpoint, none at the end either. A log that is not there is made by SQLite, and goes again while it
 * is empty and nobody can have it. The lock file is held as a server holds it, and stays as it is; where there is none, none is made (then the
 * lock of SQLite stands alone). */
#include "server/store/check.h"

#include "server/base/memory.h"
#include "server/store/sqlite_check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FINDINGS_TOLD = 20, LOG_HEADER_BYTES = 32 };

struct check_files {
    char path[PATH_MAX], lock[PATH_MAX + 8], log[PATH_MAX + 8], journal[PATH_MAX + 12];
    bool log_there; /* before */
};

void check_find(struct checking *checking, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    (void) vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (++checking->findings <= FINDINGS_TOLD) {
        buf_printf(checking->out, "%s\n", text);
    }
}

/* --- refusals: there is nothing to look at --- */

__attribute__((format(printf, 4, 5))) static int check_refuse(struct buf *error, int exit_code, const char *path,
                                                              const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    (void) vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    buf_printf(error, "the store %s cannot be checked: %s", path, text);
    return exit_code;
}

static int check_refuse_code(struct buf *error, const struct sqlite_store *sqlite, const struct check_files *files)
{
    switch (sqlite3_errcode(sqlite->db) & 0xFF) {
    case SQLITE_BUSY:
        return check_refuse(error, STORE_EXIT_UNUSABLE, files->path,
                            "it is locked: another program has the database open. Close that program (a sqlite3 "
                            "shell?) and check again");
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
        return check_refuse(error, STORE_EXIT_CANNOT_CREATE, files->path, "opening the database: %s (%s)",
                            sqlite3_errmsg(sqlite->db), strerror(sqlite3_system_errno(sqlite->db)));
    default:
        return check_refuse(error, STORE_EXIT_UNUSABLE, files->path, "reading its header: %s",
                            sqlite3_errmsg(sqlite->db));
    }
}

/* --- opening --- */

static int check_find_files(const char *path, struct check_files *files, struct buf *error)
{
    struct stat status;
    if (realpath(path, files->path) == NULL || stat(files->path, &status) != 0) {
        return check_refuse(error, errno == ENOENT ? STORE_EXIT_UNUSABLE : STORE_EXIT_CANNOT_CREATE, path, "%s",
                            strerror(errno));
    }
    (void) snprintf(files->lock, sizeof files->lock, "%s.lock", files->path);
    (void) snprintf(files->log, sizeof files->log, "%s-wal", files->path);
    (void) snprintf(files->journal, sizeof files->journal, "%s-journal", files->path);
    if (!S_ISREG(status.st_mode)) {
        return check_refuse(error, STORE_EXIT_CANNOT_CREATE, path, "it is not a regular file");
    }
    if (status.st_size == 0) {
        return check_refuse(error, STORE_EXIT_UNUSABLE, path, "it is empty: there is no store in it");
    }
    if (faccessat(AT_FDCWD, files->path, R_OK | W_OK, AT_EACCESS) != 0) {
        return check_refuse(error, STORE_EXIT_CANNOT_CREATE, path,
                            "it may not be read and written: %s. A check changes nothing, but it has to lock the file "
                            "as a server does: run it as the user of the server, or give it a copy",
                            strerror(errno));
    }
    if (access(files->journal, F_OK) == 0) { /* SQLite would undo with it what stands in the file */
        return check_refuse(error, STORE_EXIT_UNUSABLE, path,
                            "%s is there, and no version of this program makes one: another program has written to "
                            "the store. Keep a copy of both",
                            files->journal);
    }
    return 0;
}

/* What a start would say of it too (sqlite_open.c). */
static int check_log(const struct sqlite_store *sqlite, struct check_files *files, struct buf *error)
{
    struct stat status;
    files->log_there = stat(files->log, &status) == 0;
    if (sqlite->lock.state != LOCK_RUNNING || (files->log_there && status.st_size > LOG_HEADER_BYTES)) {
        return 0;
    }
    return check_refuse(
        error, STORE_EXIT_UNUSABLE, files->path,
        "its last run did not end cleanly, as %s says, and its log %s is %s: commits may be missing with "
        "it. Bring that -wal file back",
        files->lock, files->log, files->log_there ? "empty" : "missing");
}

/* Where there is none it reads as one that says nothing: stopped, and no store is remembered. */
static int check_lock(struct sqlite_store *sqlite, const struct check_files *files, struct buf *error)
{
    if (access(files->lock, F_OK) != 0 && errno == ENOENT) {
        return 0;
    }
    switch (lock_file_take(&sqlite->lock, files->lock)) {
    case LOCK_TAKEN:
        return 0;
    case LOCK_HELD:
        return check_refuse(
            error, STORE_EXIT_UNUSABLE, files->path,
            "it is locked by process %ld, as %s says, or by another --check-store, which does not say so "
            "there. Stop that process first, or check what a snapshot of the file system has of it",
            sqlite->lock.pid, files->lock);
    default:
        return check_refuse(error, STORE_EXIT_CANNOT_CREATE, files->path, "its lock file %s: %s", files->lock,
                            strerror(errno));
    }
}

static int check_open(struct sqlite_store *sqlite, const struct check_files *files, struct buf *error)
{
    static const char quiet[] = "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
                                "PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 0;"
                                "PRAGMA cache_size = -16384; PRAGMA busy_timeout = 250";
    int64_t application = 0, version = 0;
    struct buf why;
    mode_t mask = umask(0077);
    int code = sqlite3_open_v2(files->path, &sqlite->db,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW |
                                   SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE,
                               NULL);
    (void) umask(mask);
    if (code != SQLITE_OK) {
        return check_refuse_code(error, sqlite, files);
    }
    (void) sqlite3_db_config(sqlite->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void) sqlite3_db_config(sqlite->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    buf_init(&why, 512);
    bool read = sqlite_pragma_lock(sqlite->db, &why) &&
                sqlite3_exec(sqlite->db, quiet, NULL, NULL, NULL) == SQLITE_OK &&
                sqlite_pragma_number(sqlite->db, "application_id", &application) &&
                sqlite_pragma_number(sqlite->db, "user_version", &version);
    buf_fini(&why);
    if (!read) {
        return check_refuse_code(error, sqlite, files);
    }
    if (application != SQLITE_APPLICATION_ID) {
        return check_refuse(error, STORE_EXIT_UNUSABLE, files->path,
                            "it is a database of another application (application_id 0x%08llx, expected 0x%08x)",
                            (unsigned long long) application & 0xFFFFFFFFU, (unsigned) SQLITE_APPLICATION_ID);
    }
    if (version != sqlite_migration_newest()) {
        return check_refuse(error, STORE_EXIT_UNUSABLE, files->path,
                            "it has format %lld, and this program, " NONBIS_VERSION
                            ", checks format %d. Use the version that wrote it",
                            (long long) version, sqlite_migration_newest());
    }
    return 0;
}

/* --- looking --- */

static void check_integrity(struct checking *checking)
{
    sqlite3 *db = checking->sqlite->db;
    sqlite3_stmt *statement = NULL;
    (void) sqlite3_prepare_v2(db, "PRAGMA integrity_check(20)", -1, &statement, NULL);
    int code = SQLITE_ERROR;
    while (statement != NULL && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *said = (const char *) sqlite3_column_text(statement, 0);
        if (strcmp(said, "ok") != 0) {
            check_find(checking, "integrity_check: %s", said);
        }
    }
    if (code != SQLITE_DONE) {
        check_find(checking, "integrity_check: %s", sqlite3_errmsg(db));
    }
    (void) sqlite3_finalize(statement);
}

/* What every store has in meta. */
static void check_meta(struct checking *checking)
{
    static const char *const numbers[] = { "fingerprint_version", "window_start_ms", "last_time_ms", "last_wall_ms" };
    static const char *const texts[] = { "tenant_source", "guard" };
    struct sqlite_store *sqlite = checking->sqlite;
    struct store_info *info = &sqlite->store.info;
    const struct {
        const char *name;
        void *bytes;
        size_t len;
    } keys[] = { { "store_id", info->store_id, sizeof info->store_id },
                 { "guard_key", info->guard_key, sizeof info->guard_key },
                 { "hash_key", sqlite->hash_key, sizeof sqlite->hash_key },
                 { "id_key", sqlite->id_key, sizeof sqlite->id_key } };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (!sqlite_meta_get_bytes(sqlite, keys[i].name, keys[i].bytes, keys[i].len)) {
            check_find(checking, "meta: %s is missing, or has not %zu bytes", keys[i].name, keys[i].len);
        }
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int64_t number;
        if (!sqlite_meta_get_number(sqlite, numbers[i], &number)) {
            check_find(checking, "meta: %s is missing, or not a number", numbers[i]);
        }
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char *text = sqlite_meta_get_text(sqlite, texts[i]);
        if (text == NULL) {
            check_find(checking, "meta: %s is missing", texts[i]);
        }
        free(text);
    }
}

static void check_against_lock(struct checking *checking, const struct check_files *files)
{
    const struct lock_file *lock = &checking->sqlite->lock;
    if (lock->fd >= 0 && lock->remembers &&
        !digest_equal(lock->store_id, checking->sqlite->store.info.store_id, sizeof lock->store_id)) {
        check_find(checking, "it is another store than the one that %s remembers", files->lock);
    }
}

static void check_all(struct checking *checking, const struct check_files *files)
{
    struct buf why;
    check_integrity(checking);
    buf_init(&why, 512);
    if (!sqlite_statement_prepare(checking->sqlite, &why)) {
        check_find(checking, "%.*s", VIEW_ARGS(buf_view(&why)));
    } else {
        uint64_t before = checking->findings;
        check_meta(checking);
        check_against_lock(checking, files);
        if (checking->findings == before) { /* without its keys every row would look wrong */
            check_rows(checking);
        }
    }
    buf_fini(&why);
}

/* While SQLite still locks the database. */
static void check_remove_log(const struct check_files *files)
{
    struct stat status;
    if (!files->log_there && stat(files->log, &status) == 0 && status.st_size == 0) {
        (void) unlink(files->log);
    }
}

static int check_tell(struct checking *checking, const struct check_files *files, struct buf *error)
{
    uint64_t sum = 0;
    if (checking->findings > FINDINGS_TOLD) {
        buf_printf(checking->out, "... and %llu more\n", (unsigned long long) checking->findings - FINDINGS_TOLD);
    }
    for (int state = RECORD_ABSENT + 1; state < RECORD_STATE_COUNT; state++) {
        buf_printf(checking->out, "%-12s %llu\n", record_state_name((enum record_state) state),
                   (unsigned long long) checking->commands[state]);
        sum += checking->commands[state];
    }
    if (checking->findings > 0) {
        buf_printf(
            error,
            "the store %s is damaged (what is wrong: %llu, above); nothing was changed. Keep a copy of it and of "
            "its -wal file, then restore a backup",
            files->path, (unsigned long long) checking->findings);
        return STORE_EXIT_UNUSABLE;
    }
    buf_printf(checking->out, "store %s: sound, %llu command%s\n", files->path, (unsigned long long) sum,
               sum == 1 ? "" : "s");
    return 0;
}

int store_check(const char *path, struct buf *out, struct buf *error)
{
    struct check_files *files = memory_new(sizeof *files);
    struct checking checking = { .sqlite = memory_new(sizeof *checking.sqlite), .out = out };
    checking.sqlite->lock.fd = -1;
    sqlite_library_start();
    sqlite_library_hush(true);
    int exit_code = check_find_files(path, files, error);
    exit_code = exit_code != 0 ? exit_code : check_lock(checking.sqlite, files, error);
    exit_code = exit_code != 0 ? exit_code : check_log(checking.sqlite, files, error);
    if (exit_code == 0) {
        exit_code = check_open(checking.sqlite, files, error);
        if (exit_code == 0) {
            check_all(&checking, files);
            exit_code = check_tell(&checking, files, error);
        }
        check_remove_log(files);
    }
    sqlite_store_free(checking.sqlite);
    sqlite_library_hush(false);
    free(files);
    return exit_code;
}
