/* sqlite_open_test.c - what the SQLite store opens as, what it refuses to open and in which words, and how its time
 * and its running commands come through a restart (docs/contract.md sections 3, 6, 9). */
#include "server/store/filesystem.h"
#include "server/store/sqlite_store.h"
#include "tests/store/store_fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

static char directory[64], path[80];

static struct store_options start(void)
{
    fixture_directory(directory, NULL);
    (void) snprintf(path, sizeof path, "%s/store.db", directory);
    return fixture_options(path);
}

/* Ends as a crash would: no last commit, the log left as it is. */
static void crash(struct store *store)
{
    store->down = true;
    store_close(store);
}

static void run_sql(const char *file, const char *sql)
{
    sqlite3 *db = NULL;
    char *error = NULL;
    ck_assert_int_eq(sqlite3_open(file, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) {
        ck_abort_msg("%s: %s", sql, error);
    }
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static void write_file(const char *file, off_t at, const void *bytes, size_t len)
{
    int fd = open(file, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, bytes, len, at), (ssize_t) len);
    ck_assert_int_eq(close(fd), 0);
}

static char refusal[4096];

static void refused(const struct store_options *options, int exit_code)
{
    struct buf error;
    int code = -1;
    buf_init(&error, sizeof refusal - 1);
    struct store *store = store_open_sqlite(options, &error, &code);
    (void) snprintf(refusal, sizeof refusal, "%.*s", VIEW_ARGS(buf_view(&error)));
    buf_fini(&error);
    ck_assert_ptr_null(store);
    ck_assert_msg(code == exit_code, "exit code %d: %s", code, refusal);
    ck_assert_msg(strstr(refusal, options->path) != NULL, "the store is not named: %s", refusal);
}

static void says(const char *words)
{
    ck_assert_msg(strstr(refusal, words) != NULL, "\"%s\" is not in: %s", words, refusal);
}

/* --- what it opens as --- */

START_TEST(the_pragmas_that_the_promise_rests_on_read_back)
{
    static const struct {
        const char *name, *value;
    } rows[] = {
        { "locking_mode", "exclusive" },    { "journal_mode", "wal" }, { "synchronous", "2" },
        { "wal_autocheckpoint", "0" },      { "mmap_size", "0" },      { "temp_store", "2" },
        { "cell_size_check", "1" },         { "trusted_schema", "0" }, { "cache_size", "-16384" },
        { "application_id", "1312966995" }, { "user_version", "1" },   { "page_size", "2048" },
    };
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    sqlite3 *db = sqlite_store_of(store)->db;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char sql[64];
        sqlite3_stmt *statement;
        (void) snprintf(sql, sizeof sql, "PRAGMA %s", rows[i].name);
        ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
        ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
        ck_assert_msg(strcmp((const char *) sqlite3_column_text(statement, 0), rows[i].value) == 0, "%s reads %s",
                      rows[i].name, (const char *) sqlite3_column_text(statement, 0));
        ck_assert_int_eq(sqlite3_finalize(statement), SQLITE_OK);
    }
    ck_assert_ptr_nonnull(strstr(store->info.description, "synchronous=FULL"));
    ck_assert_ptr_nonnull(strstr(store->info.description, "journal_mode=wal"));
    ck_assert_ptr_nonnull(strstr(store->info.description, "locking_mode=exclusive"));
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(every_file_of_the_store_is_for_its_owner_alone_and_there_is_no_shared_memory)
{
    struct store_options options = start();
    mode_t mask = umask(0);
    struct store *store = fixture_open(&options);
    (void) umask(mask);
    (void) fixture_claim_now(store, "k", 1, 0);
    static const char *const suffixes[] = { "", "-wal", ".lock" };
    for (int i = 0; i < 3; i++) {
        char file[96];
        struct stat status;
        (void) snprintf(file, sizeof file, "%s%s", path, suffixes[i]);
        ck_assert_msg(stat(file, &status) == 0, "%s is not there", file);
        ck_assert_msg((status.st_mode & 07777) == 0600, "%s has mode %o", file, status.st_mode & 07777);
    }
    char shared[96];
    (void) snprintf(shared, sizeof shared, "%s-shm", path);
    ck_assert_int_ne(access(shared, F_OK), 0);
    store_close(store);
    /* A file that somebody opened up is closed again. */
    ck_assert_int_eq(chmod(path, 0644), 0);
    store = fixture_open(&options);
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 07777, 0600);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_store_keeps_its_identity_its_records_and_its_responses_over_a_restart)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_info first = store->info;
    struct store_found found = fixture_claim_now(store, "done", 1, 1);
    ck_assert_int_eq(fixture_finish_now(store, "done", &found, OUTCOME_COMPLETED), STORE_OK);
    store_close(store);
    store = fixture_open(&options);
    ck_assert_mem_eq(store->info.store_id, first.store_id, 16);
    ck_assert_mem_eq(store->info.guard_key, first.guard_key, 32);
    ck_assert_int_eq(store->info.window_start_ms, 1000000);
    ck_assert_uint_eq(store->info.recovered, 0);
    struct store_found repeat = fixture_claim_now(store, "done", 1, 1);
    ck_assert_int_eq(repeat.decision.verdict, VERDICT_REPLAY);
    ck_assert(view_equal(repeat.response->body, VIEW("done")));
    ck_assert(view_equal(repeat.response->fields, VIEW("Content-Type: text/plain\r\n")));
    fixture_found_free(&repeat);
    store_close(store);
    /* A lock file that was lost is made again; nothing else depends on it. */
    char lock[96];
    (void) snprintf(lock, sizeof lock, "%s.lock", path);
    ck_assert_int_eq(unlink(lock), 0);
    store = fixture_open(&options);
    ck_assert_mem_eq(store->info.store_id, first.store_id, 16);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* As whoever runs VACUUM with another page size makes it, and as the first builds made them. */
START_TEST(a_store_with_pages_of_another_size_goes_on_with_them)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_found found = fixture_claim_now(store, "done", 1, 1);
    ck_assert_int_eq(fixture_finish_now(store, "done", &found, OUTCOME_COMPLETED), STORE_OK);
    store_close(store);
    run_sql(path, "PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM");
    store = fixture_open(&options);
    int64_t bytes = 0;
    ck_assert(sqlite_pragma_number(sqlite_store_of(store)->db, "page_size", &bytes));
    ck_assert_int_eq(bytes, 4096);
    struct store_found repeat = fixture_claim_now(store, "done", 1, 1);
    ck_assert_int_eq(repeat.decision.verdict, VERDICT_REPLAY);
    ck_assert(view_equal(repeat.response->body, VIEW("done")));
    fixture_found_free(&repeat);
    found = fixture_claim_now(store, "more", 1, 1);
    ck_assert_int_eq(fixture_finish_now(store, "more", &found, OUTCOME_COMPLETED), STORE_OK);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(two_stores_have_different_ids_and_keys)
{
    struct store_options options = start();
    struct store *one = fixture_open(&options);
    char other_path[96];
    (void) snprintf(other_path, sizeof other_path, "%s/other.db", directory);
    options.path = other_path;
    struct store *two = fixture_open(&options);
    ck_assert_mem_ne(one->info.store_id, two->info.store_id, 16);
    ck_assert_mem_ne(one->info.guard_key, two->info.guard_key, 32);
    ck_assert_mem_ne(sqlite_store_of(one)->hash_key, sqlite_store_of(two)->hash_key, 32);
    store_close(one);
    store_close(two);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_creation_that_was_cut_short_starts_over)
{
    struct store_options options = start();
    write_file(path, 0, "", 0); /* created, and no more */
    struct store *store = fixture_open(&options);
    store_close(store);
    ck_assert_int_eq(unlink(path), 0);
    char lock[96];
    (void) snprintf(lock, sizeof lock, "%s.lock", path);
    ck_assert_int_eq(unlink(lock), 0);
    run_sql(path, "PRAGMA journal_mode = WAL"); /* a header, and no table */
    store = fixture_open(&options);
    (void) fixture_claim_now(store, "k", 1, 0);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* --- refusals: 73 --- */

START_TEST(a_place_where_no_store_can_be_is_refused_with_73)
{
    struct store_options options = start();
    char place[128];
    options.path = place;
    (void) snprintf(place, sizeof place, "%s/missing/store.db", directory);
    refused(&options, 73);
    says("missing");
    says("No such file or directory");
    says("Create the directory");
    (void) snprintf(place, sizeof place, "%s/file", directory);
    write_file(place, 0, "x", 1);
    (void) snprintf(place, sizeof place, "%s/file/store.db", directory);
    refused(&options, 73);
    says("is not a directory");
    (void) snprintf(place, sizeof place, "%s/sub", directory);
    ck_assert_int_eq(mkdir(place, 0700), 0);
    refused(&options, 73);
    says("it is a directory");
    (void) snprintf(place, sizeof place, "%s/link.db", directory);
    ck_assert_int_eq(symlink("/tmp/elsewhere.db", place), 0);
    refused(&options, 73);
    says("not a regular file");
    fixture_remove(directory);
}
END_TEST

START_TEST(a_place_without_permission_is_refused_with_73)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    store_close(store);
    char other[96], lock[96];
    (void) snprintf(other, sizeof other, "%s/other.db", directory);
    (void) snprintf(lock, sizeof lock, "%s.lock", path);
    ck_assert_int_eq(chmod(directory, 0555), 0);
    ck_assert_int_eq(chmod(path, 0400), 0);
    bool root = geteuid() == 0;
    if (root) {
        ck_assert_int_eq(seteuid(65534), 0);
    }
    refused(&options, 73);
    says("may not be read and written");
    options.path = other;
    refused(&options, 73);
    says("not writable");
    says("Permission denied");
    if (root) {
        ck_assert_int_eq(seteuid(0), 0);
    }
    ck_assert_int_eq(chmod(directory, 0755), 0);
    /* The lock file of another user. */
    ck_assert_int_eq(unlink(lock), 0);
    ck_assert_int_eq(mkdir(lock, 0700), 0);
    options.path = path;
    ck_assert_int_eq(chmod(path, 0600), 0);
    refused(&options, 73);
    says(".lock");
    says("Is a directory");
    fixture_remove(directory);
}
END_TEST

START_TEST(a_read_only_file_system_is_refused_with_73)
{
    struct store_options options = start();
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", directory, "tmpfs", MS_RDONLY, NULL) != 0) {
        FIGURE("store: a read-only mount needs root: that refusal was not tried");
        fixture_remove(directory);
        return;
    }
    refused(&options, 73);
    says("not writable");
    says("Read-only file system");
    ck_assert_int_eq(umount(directory), 0);
    fixture_remove(directory);
}
END_TEST

START_TEST(network_file_systems_are_refused_and_local_ones_are_not)
{
    static const struct {
        unsigned long magic;
        const char *fuse_type, *refused;
    } rows[] = {
        { 0x6969, "", "nfs" },
        { 0xFF534D42, "", "cifs" },
        { 0xFE534D42, "", "smb2" },
        { 0x517B, "", "smb" },
        { 0x01021997, "", "9p" },
        { 0x00C36400, "", "ceph" },
        { 0x65735546, "fuse.sshfs", "fuse.sshfs" },
        { 0x65735546, "fuse.glusterfs", "fuse.glusterfs" },
        { 0x65735546, "fuse.fuse-overlayfs", NULL },
        { 0x65735546, "fuseblk", NULL }, /* ntfs-3g */
        { 0x65735546, "", NULL },
        { 0xEF53, "", NULL },     /* ext4 */
        { 0x58465342, "", NULL }, /* xfs */
        { 0x9123683E, "", NULL }, /* btrfs */
        { 0x01021994, "", NULL }, /* tmpfs */
        { 0x794C7630, "", NULL }, /* overlayfs */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *kind = filesystem_refused_kind(rows[i].magic, rows[i].fuse_type);
        ck_assert_msg((kind == NULL) == (rows[i].refused == NULL), "row %zu: %s", i, kind != NULL ? kind : "accepted");
        if (kind != NULL) {
            ck_assert_str_eq(kind, rows[i].refused);
        }
    }
    ck_assert_ptr_null(filesystem_refused("/tmp"));
}
END_TEST

/* --- refusals: 74 --- */

START_TEST(a_file_that_is_no_store_is_refused_with_74_and_left_as_it_was)
{
    struct store_options options = start();
    char text[8192];
    memset(text, 'x', sizeof text);
    write_file(path, 0, text, sizeof text);
    refused(&options, 74);
    says("not a database");
    ck_assert_int_eq(unlink(path), 0);
    run_sql(path, "PRAGMA application_id = 77; CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    struct stat before, after;
    ck_assert_int_eq(stat(path, &before), 0);
    refused(&options, 74);
    says("another application");
    says("0x0000004d");
    says("0x4e424953");
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_int_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    run_sql(path, "INSERT INTO t VALUES (2)");
    fixture_remove(directory);
}
END_TEST

START_TEST(a_store_of_a_newer_version_is_refused_with_74)
{
    struct store_options options = start();
    store_close(fixture_open(&options));
    run_sql(path, "PRAGMA user_version = 99");
    refused(&options, 74);
    says("newer version");
    says("99");
    run_sql(path, "PRAGMA user_version = 1");
    store_close(fixture_open(&options));
    fixture_remove(directory);
}
END_TEST

/* A store with some hundred rows, closed. */
static void fill(const struct store_options *options)
{
    struct store *store = fixture_open(options);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    for (int i = 0; i < 300; i++) {
        char key[16];
        struct store_found found;
        struct record after;
        (void) snprintf(key, sizeof key, "key-%d", i);
        struct store_claim claim = fixture_claim(key, 1, 0);
        ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
        struct store_finish finish = fixture_finish(key, &found, OUTCOME_COMPLETED);
        ck_assert_int_eq(store_finish_command(store, &finish, &after), STORE_OK);
    }
    ck_assert_int_eq(store_commit(store), STORE_OK);
    store_close(store);
}

START_TEST(a_damaged_store_is_refused_with_74)
{
    struct store_options options = start();
    char garbage[4096];
    struct stat status;
    memset(garbage, 0x5A, sizeof garbage);
    fill(&options);
    ck_assert_int_eq(stat(path, &status), 0);
    write_file(path, status.st_size / 2 / 4096 * 4096, garbage, sizeof garbage);
    refused(&options, 74);
    says("damaged");
    says("backup");
    ck_assert_int_eq(truncate(path, status.st_size / 2 / 4096 * 4096), 0);
    refused(&options, 74);
    says("damaged");
    fixture_remove(directory);
}
END_TEST

START_TEST(two_rows_of_one_key_are_damage_and_equal_halves_of_a_hash_are_not)
{
    struct store_options options = start();
    fill(&options);
    /* Half a hash in common: candidates for each other in memory, and no more. */
    run_sql(path, "UPDATE commands SET hash = CAST((SELECT substr(hash, 1, 8) FROM commands WHERE row_id = 1)"
                  " || substr(hash, 9) AS BLOB) WHERE row_id = 2");
    store_close(fixture_open(&options));
    run_sql(path, "UPDATE commands SET hash = (SELECT hash FROM commands WHERE row_id = 1) WHERE row_id = 2");
    refused(&options, 74);
    says("two commands have the same key");
    fixture_remove(directory);
}
END_TEST

START_TEST(a_store_that_lacks_a_table_or_a_name_is_refused_with_74)
{
    struct store_options options = start();
    store_close(fixture_open(&options));
    run_sql(path, "DELETE FROM meta WHERE name = 'hash_key'");
    refused(&options, 74);
    says("meta lacks a name");
    run_sql(path, "DROP TABLE responses");
    refused(&options, 74);
    says("responses");
    fixture_remove(directory);
}
END_TEST

START_TEST(a_second_process_is_refused_with_74_and_told_who_has_the_store)
{
    struct store_options options = start();
    int ready[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct store *store = fixture_open(&options);
        (void) fixture_claim_now(store, "k", 1, 0);
        (void) !write(ready[1], "x", 1);
        for (;;) {
            (void) pause();
        }
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    refused(&options, 74);
    char words[64];
    (void) snprintf(words, sizeof words, "locked by process %ld", (long) child);
    says(words);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    struct store *store = fixture_open(&options); /* a dead owner is no owner */
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_UNKNOWN);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_database_that_another_program_has_open_is_refused_with_74)
{
    struct store_options options = start();
    store_close(fixture_open(&options));
    sqlite3 *db = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN; SELECT * FROM meta", NULL, NULL, NULL), SQLITE_OK);
    refused(&options, 74);
    says("another program");
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_store_that_vanished_is_refused_with_74_until_its_lock_file_goes_too)
{
    struct store_options options = start();
    char lock[96], other[96];
    (void) snprintf(lock, sizeof lock, "%s.lock", path);
    store_close(fixture_open(&options));
    ck_assert_int_eq(unlink(path), 0);
    refused(&options, 74);
    says("missing");
    says("remove the lock file too");
    says("executed again");
    ck_assert_int_ne(access(path, F_OK), 0); /* nothing was made in its place */
    write_file(path, 0, "", 0);
    refused(&options, 74);
    says("missing");
    ck_assert_int_eq(unlink(path), 0);
    run_sql(path, "PRAGMA journal_mode = WAL");
    refused(&options, 74);
    says("empty");
    /* Another store in its place. */
    ck_assert_int_eq(unlink(path), 0);
    (void) snprintf(other, sizeof other, "%s/other.db", directory);
    options.path = other;
    store_close(fixture_open(&options));
    ck_assert_int_eq(rename(other, path), 0);
    options.path = path;
    refused(&options, 74);
    says("another store");
    ck_assert_int_eq(unlink(lock), 0);
    store_close(fixture_open(&options));
    fixture_remove(directory);
}
END_TEST

START_TEST(other_identity_settings_are_refused_with_74_and_both_are_named)
{
    struct store_options options = start();
    store_close(fixture_open(&options));
    struct store_options other = options;
    other.identity.tenant_source = VIEW("header:x-tenant");
    refused(&other, 74);
    says("tenant \"none\"");
    says("\"header:x-tenant\"");
    other = options;
    other.identity.guard = VIEW("");
    refused(&other, 74);
    says("guard \"authorization,x-api-key\"");
    says("says \"\"");
    other = options;
    other.identity.fingerprint_version = 2;
    refused(&other, 74);
    says("fingerprint version 1");
    says("uses 2");
    store_close(fixture_open(&options));
    fixture_remove(directory);
}
END_TEST

/* --- restarts --- */

START_TEST(what_was_committed_survives_a_kill_and_what_ran_is_unknown)
{
    struct store_options options = start();
    int ready[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct store *store = fixture_open(&options);
        struct store_found done = fixture_claim_now(store, "done", 1, 0), found;
        (void) fixture_claim_now(store, "running", 1, 7);
        ck_assert_int_eq(fixture_finish_now(store, "done", &done, OUTCOME_COMPLETED), STORE_OK);
        struct store_claim claim = fixture_claim("uncommitted", 1, 0);
        ck_assert_int_eq(store_begin(store), STORE_OK);
        ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
        (void) !write(ready[1], "x", 1);
        for (;;) {
            (void) pause();
        }
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    fixture_advance(100);
    struct store *store = fixture_open(&options);
    ck_assert_uint_eq(store->info.recovered, 1);
    ck_assert_int_eq(fixture_state(store, "done"), RECORD_COMPLETED);
    ck_assert_int_eq(fixture_state(store, "uncommitted"), RECORD_ABSENT);
    struct store_found seen = fixture_look_up(store, "running");
    ck_assert_int_eq(seen.record.state, RECORD_UNKNOWN);
    ck_assert_int_eq(seen.record.cause, CAUSE_CRASH);
    ck_assert_int_eq(seen.record.completed_ms, 1000100);
    ck_assert_int_eq(seen.record.expires_ms, 1050100);
    ck_assert_int_eq(seen.record.forget_ms, 1100100);
    ck_assert(seen.record.credential.present);
    fixture_found_free(&seen);
    store_close(store);
    store = fixture_open(&options);
    ck_assert_uint_eq(store->info.recovered, 0);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(more_running_commands_than_one_chunk_are_all_recovered)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    for (int i = 0; i < 512; i++) {
        char key[16];
        struct store_found found;
        (void) snprintf(key, sizeof key, "key-%d", i);
        struct store_claim claim = fixture_claim(key, 1, 0);
        ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
    }
    ck_assert_int_eq(store_commit(store), STORE_OK);
    crash(store);
    store = fixture_open(&options);
    ck_assert_uint_eq(store->info.recovered, 512);
    ck_assert_int_eq(fixture_state(store, "key-0"), RECORD_UNKNOWN);
    ck_assert_int_eq(fixture_state(store, "key-511"), RECORD_UNKNOWN);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* Store time runs from 1000000 to 1003000, then the process is down while the wall clock moves so. */
START_TEST(store_time_moves_over_a_restart_with_the_wall_clock_but_never_back_or_too_far)
{
    static const struct {
        int64_t wall_moves_ms, store_time_ms;
    } rows[] = {
        { 5000, 1008000 }, { 0, 1003000 }, { -400000, 1003000 }, { 100000, 1103000 }, { 99999999, 1103000 },
    };
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    ck_assert_int_eq(store_now(store), 1000000);
    fixture_monotonic_ms += 3000; /* while running only the monotonic clock counts */
    fixture_wall_ms += 12345678;
    ck_assert_int_eq(store_now(store), 1003000);
    store_close(store);
    fixture_wall_ms += rows[_i].wall_moves_ms;
    fixture_monotonic_ms = 17; /* a reboot */
    store = fixture_open(&options);
    ck_assert_int_eq(store_now(store), rows[_i].store_time_ms);
    fixture_monotonic_ms += 1;
    ck_assert_int_eq(store_now(store), rows[_i].store_time_ms + 1);
    store_close(store);
    store = fixture_open(&options); /* what was clamped is not caught up at the next start */
    ck_assert_int_eq(store_now(store), rows[_i].store_time_ms + 1);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(store_time_after_a_crash_is_at_least_the_newest_time_in_the_commands)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    (void) fixture_claim_now(store, "a", 1, 0);
    fixture_monotonic_ms += 999; /* time is recorded once a second */
    (void) fixture_claim_now(store, "b", 1, 0);
    crash(store);
    fixture_wall_ms -= 500000;
    store = fixture_open(&options);
    ck_assert_int_eq(store_now(store), 1000999);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(the_window_of_remembered_keys_survives_a_crash)
{
    struct store_options options = start();
    struct store *store = fixture_open(&options);
    struct store_found found = fixture_claim_now(store, "a", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "a", &found, OUTCOME_COMPLETED), STORE_OK);
    fixture_advance(400);
    found = fixture_claim_now(store, "b", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "b", &found, OUTCOME_COMPLETED), STORE_OK);
    fixture_advance(FIXTURE_TOMBSTONE_MS - 400);
    ck_assert_uint_eq(fixture_sweep(store, 10).forgotten, 1);
    ck_assert_int_eq(store_window_start(store), 1000001);
    fixture_advance(400); /* within the second in which time was recorded: the window does not wait for the next */
    ck_assert_uint_eq(fixture_sweep(store, 10).forgotten, 1);
    ck_assert_int_eq(store_window_start(store), 1000401);
    crash(store);
    store = fixture_open(&options);
    ck_assert_int_eq(store_window_start(store), 1000401);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

SUITE(store_sqlite_open)
{
    Suite *suite = suite_create("store/sqlite_open");
    CASE(suite, the_pragmas_that_the_promise_rests_on_read_back);
    CASE(suite, every_file_of_the_store_is_for_its_owner_alone_and_there_is_no_shared_memory);
    CASE(suite, a_store_keeps_its_identity_its_records_and_its_responses_over_a_restart);
    CASE(suite, a_store_with_pages_of_another_size_goes_on_with_them);
    CASE(suite, two_stores_have_different_ids_and_keys);
    CASE(suite, a_creation_that_was_cut_short_starts_over);
    CASE(suite, a_place_where_no_store_can_be_is_refused_with_73);
    CASE(suite, a_place_without_permission_is_refused_with_73);
    CASE(suite, a_read_only_file_system_is_refused_with_73);
    CASE(suite, network_file_systems_are_refused_and_local_ones_are_not);
    CASE(suite, a_file_that_is_no_store_is_refused_with_74_and_left_as_it_was);
    CASE(suite, a_store_of_a_newer_version_is_refused_with_74);
    CASE(suite, a_damaged_store_is_refused_with_74);
    CASE(suite, two_rows_of_one_key_are_damage_and_equal_halves_of_a_hash_are_not);
    CASE(suite, a_store_that_lacks_a_table_or_a_name_is_refused_with_74);
    CASE(suite, a_second_process_is_refused_with_74_and_told_who_has_the_store);
    CASE(suite, a_database_that_another_program_has_open_is_refused_with_74);
    CASE(suite, a_store_that_vanished_is_refused_with_74_until_its_lock_file_goes_too);
    CASE(suite, other_identity_settings_are_refused_with_74_and_both_are_named);
    CASE(suite, what_was_committed_survives_a_kill_and_what_ran_is_unknown);
    CASE(suite, more_running_commands_than_one_chunk_are_all_recovered);
    CASE_LOOP(suite, store_time_moves_over_a_restart_with_the_wall_clock_but_never_back_or_too_far, 5);
    CASE(suite, store_time_after_a_crash_is_at_least_the_newest_time_in_the_commands);
    CASE(suite, the_window_of_remembered_keys_survives_a_crash);
    return suite;
}
