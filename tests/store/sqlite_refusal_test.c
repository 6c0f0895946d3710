/* sqlite_refusal_test.c - what the SQLite store refuses to open, and in which words (docs/contract.md section 9). */
#include "server/store/filesystem.h"
#include "server/store/lock_file.h"
#include "tests/store/store_file.h"
#include "tests/store/store_refusal.h"
#include "tests/support/small_disk.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

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
    write_at(place, 0, "x", 1);
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
    if (!small_disk_allowed()) {
        fixture_remove(directory);
        return;
    }
    ck_assert_int_eq(mount("none", directory, "tmpfs", MS_RDONLY, NULL), 0);
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
    write_at(path, 0, text, sizeof text);
    refused(&options, 74);
    says("not a database");
    ck_assert_int_eq(unlink(path), 0);
    alter("PRAGMA application_id = 77; CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    struct stat before, after;
    ck_assert_int_eq(stat(path, &before), 0);
    refused(&options, 74);
    says("another application");
    says("0x0000004d");
    says("0x4e424953");
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_int_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    alter("INSERT INTO t VALUES (2)");
    fixture_remove(directory);
}
END_TEST

START_TEST(a_store_of_a_newer_version_is_refused_with_74)
{
    struct store_options options = start();
    store_close(fixture_open(&options));
    alter("PRAGMA user_version = 99");
    refused(&options, 74);
    says("newer version");
    says("99");
    alter("PRAGMA user_version = 1");
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
    write_at(path, status.st_size / 2 / 4096 * 4096, garbage, sizeof garbage);
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
    alter("UPDATE commands SET hash = CAST((SELECT substr(hash, 1, 8) FROM commands WHERE row_id = 1)"
          " || substr(hash, 9) AS BLOB) WHERE row_id = 2");
    store_close(fixture_open(&options));
    alter("UPDATE commands SET hash = (SELECT hash FROM commands WHERE row_id = 1) WHERE row_id = 2");
    refused(&options, 74);
    says("two commands have the same key");
    fixture_remove(directory);
}
END_TEST

START_TEST(a_store_that_lacks_a_table_or_a_name_is_refused_with_74)
{
    struct store_options options = start();
    store_close(fixture_open(&options));
    alter("DELETE FROM meta WHERE name = 'hash_key'");
    refused(&options, 74);
    says("meta lacks a name");
    alter("DROP TABLE responses");
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

/* Its lock file tells of the server before, which may have ended long ago. */
START_TEST(a_store_that_is_being_checked_is_refused_and_the_check_is_named)
{
    struct store_options options = start();
    char lock_path[100];
    struct lock_file lock;
    store_close(fixture_open(&options));
    (void) snprintf(lock_path, sizeof lock_path, "%s.lock", path);
    ck_assert_int_eq(lock_file_take(&lock, lock_path), LOCK_TAKEN); /* as sqlite_check.c does */
    refused(&options, 74);
    says("--check-store");
    lock_file_release(&lock);
    store_close(fixture_open(&options));
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
    write_at(path, 0, "", 0);
    refused(&options, 74);
    says("missing");
    ck_assert_int_eq(unlink(path), 0);
    alter("PRAGMA journal_mode = WAL");
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

SUITE(store_sqlite_refusal)
{
    Suite *suite = suite_create("store/sqlite_refusal");
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
    CASE(suite, a_store_that_is_being_checked_is_refused_and_the_check_is_named);
    CASE(suite, a_database_that_another_program_has_open_is_refused_with_74);
    CASE(suite, a_store_that_vanished_is_refused_with_74_until_its_lock_file_goes_too);
    CASE(suite, other_identity_settings_are_refused_with_74_and_both_are_named);
    return suite;
}
