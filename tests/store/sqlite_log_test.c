/* sqlite_log_test.c - the log of the SQLite store is lost, or the disk is full, and the store is started: what the
 * lock file says about the last run decides (docs/contract.md sections 9 and 11). */
#include "server/store/sqlite_store.h"
#include "tests/store/fault_vfs.h"
#include "tests/store/store_file.h"
#include "tests/store/store_refusal.h"
#include "tests/support/small_disk.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static char log_path[96], lock_path[96], aside[96];

static struct store_options begin(void)
{
    struct store_options options = start();
    (void) snprintf(log_path, sizeof log_path, "%s-wal", path);
    (void) snprintf(lock_path, sizeof lock_path, "%s.lock", path);
    (void) snprintf(aside, sizeof aside, "%s/aside", directory);
    return options;
}

static void refused_for_its_log(const struct store_options *options, const char *how)
{
    refused(options, 74);
    says(path);
    says("did not end cleanly");
    says(log_path);
    says(how);
    says("Commits may be missing");
    says("Bring that -wal file back");
    says("remove the lock file");
    says("executed again");
    ck_assert_ptr_nonnull(strstr(refusal, lock_path));
}

static off_t size_of(const char *file)
{
    struct stat status;
    return stat(file, &status) == 0 ? status.st_size : -1;
}

/* The second line of the lock file. */
static void lock_says(const char *line)
{
    char text[4096] = "", wanted[64];
    int fd = open(lock_path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(read(fd, text, sizeof text - 1), 0);
    ck_assert_int_eq(close(fd), 0);
    (void) snprintf(wanted, sizeof wanted, "nonbis store lock 1\n%s\n", line);
    ck_assert_msg(strncmp(text, wanted, strlen(wanted)) == 0, "not \"%s\": %s", line, text);
    ck_assert_ptr_nonnull(strstr(text, "\nstore "));
}

static void lock_put(const char *text, off_t at)
{
    ck_assert_int_eq(access(lock_path, F_OK), 0);
    write_at(lock_path, at, text, strlen(text));
}

/* A process that claims `keys` keys, finishes the first one, and is killed. */
static void run_and_kill(const struct store_options *options, int keys)
{
    int ready[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct store *store = fixture_open(options);
        for (int i = 0; i < keys; i++) {
            char key[16];
            (void) snprintf(key, sizeof key, "k-%d", i);
            struct store_found found = fixture_claim_now(store, key, 1, 0);
            if (i == 0) {
                ck_assert_int_eq(fixture_finish_now(store, key, &found, OUTCOME_COMPLETED), STORE_OK);
            }
        }
        (void) !write(ready[1], "x", 1);
        for (;;) {
            (void) pause();
        }
    }
    ck_assert_int_eq(close(ready[1]), 0);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(close(ready[0]), 0);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    fixture_advance(100);
}

/* --- a log that is lost --- */

/* Index: row. The log is gone, or cut to so many bytes. */
static const struct {
    off_t cut; /* -1: gone */
    const char *how;
} log_losses[] = { { -1, "missing" }, { 0, "empty" }, { 32, "empty" } };
enum { LOG_LOSSES = sizeof log_losses / sizeof log_losses[0] };

START_TEST(a_log_that_is_lost_after_a_kill_is_refused_with_74_until_it_is_back)
{
    struct store_options options = begin();
    run_and_kill(&options, 2);
    lock_says("state running");
    ck_assert_int_gt(size_of(log_path), 32);
    ck_assert_int_eq(rename(log_path, aside), 0);
    if (log_losses[_i].cut >= 0) {
        int fd = open(log_path, O_WRONLY | O_CREAT, 0600);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(ftruncate(fd, log_losses[_i].cut), 0);
        ck_assert_int_eq(close(fd), 0);
    }
    refused_for_its_log(&options, log_losses[_i].how);
    refused_for_its_log(&options, log_losses[_i].how); /* trying is no cure */
    ck_assert_int_eq(size_of(log_path), log_losses[_i].cut);
    ck_assert_int_eq(rename(aside, log_path), 0);
    struct store *store = fixture_open(&options);
    ck_assert_int_eq(fixture_state(store, "k-0"), RECORD_COMPLETED);
    ck_assert_int_eq(fixture_state(store, "k-1"), RECORD_UNKNOWN);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_store_whose_log_is_lost_for_good_starts_once_its_lock_file_is_removed)
{
    struct store_options options = begin();
    store_close(fixture_open(&options));
    run_and_kill(&options, 2);
    ck_assert_int_eq(unlink(log_path), 0);
    refused_for_its_log(&options, "missing");
    ck_assert_int_eq(unlink(lock_path), 0);
    struct store *store = fixture_open(&options);
    ck_assert_int_eq(fixture_state(store, "k-1"), RECORD_ABSENT);
    lock_says("state running");
    store_close(store);
    lock_says("state stopped");
    fixture_remove(directory);
}
END_TEST

START_TEST(a_log_that_is_removed_under_a_running_store_is_refused_with_74_at_the_next_start)
{
    struct store_options options = begin();
    struct store *store = fixture_open(&options);
    (void) fixture_claim_now(store, "k", 1, 0);
    ck_assert_int_eq(store_idle(store), STORE_OK);
    ck_assert_int_eq(unlink(log_path), 0);
    fixture_advance(1000);
    ck_assert_int_eq(store_idle(store), STORE_UNCERTAIN);
    store_close(store);
    refused_for_its_log(&options, "missing");
    fixture_remove(directory);
}
END_TEST

START_TEST(a_log_that_stays_is_read_however_often_the_process_is_killed)
{
    struct store_options options = begin();
    run_and_kill(&options, 1);
    run_and_kill(&options, 0);
    run_and_kill(&options, 0);
    struct store *store = fixture_open(&options);
    lock_says("state running");
    ck_assert_int_eq(fixture_state(store, "k-0"), RECORD_COMPLETED);
    store_close(store);
    lock_says("state stopped");
    ck_assert_int_eq(size_of(log_path), -1);
    fixture_advance(100); /* a commit that changes no byte writes none */
    store = fixture_open(&options);
    lock_says("state running");
    ck_assert_int_eq(fixture_state(store, "k-0"), RECORD_COMPLETED);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* Index: row. What the lock file says about a store that has no log. */
static const struct {
    const char *text;
    bool refused;
} lock_states[] = {
    { "state stopped\n", false }, { "state closing\n", false }, /* killed between the checkpoint and the last word */
    { "state running\n", true },  { "other xxxxxxx\n", false }, /* a lock file of before */
    { "state xxxxxxx\n", false },
};
enum { LOCK_STATES = sizeof lock_states / sizeof lock_states[0] };

START_TEST(a_store_without_a_log_is_refused_only_when_it_was_running)
{
    struct store_options options = begin();
    struct store *store = fixture_open(&options);
    struct store_found found = fixture_claim_now(store, "k", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "k", &found, OUTCOME_COMPLETED), STORE_OK);
    store_close(store);
    ck_assert_int_eq(size_of(log_path), -1);
    lock_put(lock_states[_i].text, 20);
    if (lock_states[_i].refused) {
        refused_for_its_log(&options, "missing");
    } else {
        store = fixture_open(&options);
        ck_assert_int_eq(fixture_state(store, "k"), RECORD_COMPLETED);
        store_close(store);
    }
    fixture_remove(directory);
}
END_TEST

START_TEST(a_close_whose_checkpoint_fails_leaves_the_log_and_says_so)
{
    fault_vfs_install();
    struct store_options options = begin();
    struct store *store = fixture_open(&options);
    struct store_found found = fixture_claim_now(store, "k", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "k", &found, OUTCOME_COMPLETED), STORE_OK);
    fault_vfs_arm(FAULT_WRITE, FAULT_DATABASE, 1, SQLITE_FULL, 0);
    store_close(store);
    ck_assert_uint_ge(fault_vfs_hits(), 1);
    fault_vfs_disarm();
    lock_says("state running");
    ck_assert_int_gt(size_of(log_path), 32);
    ck_assert_int_eq(rename(log_path, aside), 0);
    refused_for_its_log(&options, "missing");
    ck_assert_int_eq(rename(aside, log_path), 0);
    store = fixture_open(&options);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_COMPLETED);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_close_that_cannot_write_the_lock_file_leaves_the_log)
{
    struct store_options options = begin();
    struct store *store = fixture_open(&options);
    struct store_found found = fixture_claim_now(store, "k", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "k", &found, OUTCOME_COMPLETED), STORE_OK);
    int unwritable = open(lock_path, O_RDONLY);
    ck_assert_int_ge(unwritable, 0);
    ck_assert_int_ge(dup2(unwritable, sqlite_store_of(store)->lock.fd), 0);
    ck_assert_int_eq(close(unwritable), 0);
    store_close(store);
    lock_says("state running");
    ck_assert_int_gt(size_of(log_path), 32);
    store = fixture_open(&options);
    ck_assert_int_eq(fixture_state(store, "k"), RECORD_COMPLETED);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_start_that_is_refused_for_another_reason_leaves_the_log)
{
    struct store_options options = begin(), other = options;
    run_and_kill(&options, 2);
    off_t size = size_of(log_path);
    other.identity.guard = VIEW("");
    refused(&other, 74);
    says("guard");
    ck_assert_int_eq(size_of(log_path), size);
    struct store *store = fixture_open(&options);
    ck_assert_int_eq(fixture_state(store, "k-1"), RECORD_UNKNOWN);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* The sync of `closing` fails behind a write that worked: the file says what the store does not go by. */
START_TEST(a_word_that_failed_and_may_be_on_the_disk_is_written_over_by_the_next_commit)
{
    struct store_options options = begin();
    struct store *store = fixture_open(&options);
    struct sqlite_store *sqlite = sqlite_store_of(store);
    (void) fixture_claim_now(store, "k-0", 1, 0);
    lock_says("state running");
    int good = sqlite->lock.fd;
    sqlite->lock.fd = open("/dev/full", O_RDWR | O_CLOEXEC);
    ck_assert(!sqlite_place_mark(sqlite, LOCK_CLOSING));
    close(sqlite->lock.fd);
    sqlite->lock.fd = good;
    lock_put("state closing\n", 20);
    (void) fixture_claim_now(store, "k-1", 1, 0);
    lock_says("state running");
    store->down = true; /* a crash */
    store_close(store);
    ck_assert_int_eq(unlink(log_path), 0);
    refused_for_its_log(&options, "missing");
    fixture_remove(directory);
}
END_TEST

/* --- a disk that is full --- */

static enum store_result try_claim(struct store *store, const char *key)
{
    struct store_claim claim = fixture_claim(key, 1, 0);
    struct store_found found;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    enum store_result result = store_claim_key(store, &claim, &found);
    if (result == STORE_OK) {
        return store_commit(store);
    }
    store_rollback(store);
    return result;
}

/* A replay goes on, a claim does not, until there is room. */
static void goes_on_without_room(struct store *store)
{
    struct store_found repeat = fixture_claim_now(store, "k-0", 1, 0);
    ck_assert_int_eq(repeat.decision.verdict, VERDICT_REPLAY);
    ck_assert(view_equal(repeat.response->body, VIEW("done")));
    fixture_found_free(&repeat);
    fixture_advance(100);
    ck_assert_int_eq(try_claim(store, "new"), STORE_FULL);
    ck_assert_int_eq(fixture_state(store, "new"), RECORD_ABSENT);
}

static void fill_store(const struct store_options *options)
{
    struct store *store = fixture_open(options);
    struct store_found found = fixture_claim_now(store, "k-0", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "k-0", &found, OUTCOME_COMPLETED), STORE_OK);
    store_close(store);
    fixture_advance(100);
}

START_TEST(a_store_that_was_stopped_cleanly_starts_on_a_full_disk)
{
    struct store_options options = begin();
    if (!disk_mount("1m")) {
        return;
    }
    fill_store(&options);
    small_disk_fill(directory);
    for (int i = 0; i < 2; i++) { /* once more, after it was closed without room */
        struct store *store = fixture_open(&options);
        lock_says("state stopped");
        goes_on_without_room(store);
        store_close(store);
        fixture_advance(100);
    }
    struct store *store = fixture_open(&options);
    small_disk_make_room(directory);
    fixture_advance(100);
    ck_assert_int_eq(try_claim(store, "new"), STORE_OK);
    lock_says("state running"); /* from the first commit on */
    store->down = true;         /* a crash */
    store_close(store);
    ck_assert_int_eq(unlink(log_path), 0);
    refused_for_its_log(&options, "missing");
    disk_unmount();
}
END_TEST

START_TEST(a_store_that_was_closed_on_a_full_disk_starts_there)
{
    struct store_options options = begin();
    if (!disk_mount("1m")) {
        return;
    }
    struct store *store = fixture_open(&options);
    struct store_found found = fixture_claim_now(store, "k-0", 1, 0);
    ck_assert_int_eq(fixture_finish_now(store, "k-0", &found, OUTCOME_COMPLETED), STORE_OK);
    small_disk_fill(directory);
    fixture_advance(100);
    store_close(store);
    FIGURE("store: closed on a full disk, the log keeps %lld bytes", (long long) size_of(log_path));
    small_disk_fill(directory); /* what the close has freed */
    fixture_advance(100);
    store = fixture_open(&options);
    goes_on_without_room(store);
    small_disk_make_room(directory);
    fixture_advance(100);
    ck_assert_int_eq(try_claim(store, "new"), STORE_OK);
    store_close(store);
    lock_says("state stopped");
    disk_unmount();
}
END_TEST

START_TEST(commands_to_recover_on_a_full_disk_are_refused_with_74_until_there_is_room)
{
    struct store_options options = begin();
    if (!disk_mount("1m")) {
        return;
    }
    run_and_kill(&options, 4);
    small_disk_fill(directory);
    for (int i = 0; i < 2; i++) {
        refused(&options, 74);
        says("the disk is full");
        says("(commands: 3)");
        says("no room to record as unknown");
        says("Free some space");
        says(directory);
    }
    small_disk_make_room(directory);
    struct store *store = fixture_open(&options);
    ck_assert_uint_eq(store->info.recovered, 3);
    ck_assert_int_eq(fixture_state(store, "k-3"), RECORD_UNKNOWN);
    store_close(store);
    disk_unmount();
}
END_TEST

START_TEST(a_lock_file_that_finds_no_room_keeps_no_store_away_and_is_written_later)
{
    struct store_options options = begin();
    if (!disk_mount("1m")) {
        return;
    }
    fill_store(&options);
    small_disk_fill(directory);
    ck_assert_int_eq(unlink(lock_path), 0);
    small_disk_fill(directory); /* what that has freed */
    struct store *store = fixture_open(&options);
    ck_assert_int_eq(size_of(lock_path), 0);
    goes_on_without_room(store);
    small_disk_make_room(directory);
    fixture_advance(100);
    ck_assert_int_eq(try_claim(store, "new"), STORE_OK);
    lock_says("state running");
    store_close(store);
    lock_says("state stopped");
    disk_unmount();
}
END_TEST

SUITE(store_sqlite_log)
{
    Suite *suite = suite_create("store/sqlite_log");
    CASE_LOOP(suite, a_log_that_is_lost_after_a_kill_is_refused_with_74_until_it_is_back, LOG_LOSSES);
    CASE(suite, a_store_whose_log_is_lost_for_good_starts_once_its_lock_file_is_removed);
    CASE(suite, a_log_that_is_removed_under_a_running_store_is_refused_with_74_at_the_next_start);
    CASE(suite, a_log_that_stays_is_read_however_often_the_process_is_killed);
    CASE_LOOP(suite, a_store_without_a_log_is_refused_only_when_it_was_running, LOCK_STATES);
    CASE(suite, a_close_whose_checkpoint_fails_leaves_the_log_and_says_so);
    CASE(suite, a_close_that_cannot_write_the_lock_file_leaves_the_log);
    CASE(suite, a_start_that_is_refused_for_another_reason_leaves_the_log);
    CASE(suite, a_word_that_failed_and_may_be_on_the_disk_is_written_over_by_the_next_commit);
    CASE(suite, a_store_that_was_stopped_cleanly_starts_on_a_full_disk);
    CASE(suite, a_store_that_was_closed_on_a_full_disk_starts_there);
    CASE(suite, commands_to_recover_on_a_full_disk_are_refused_with_74_until_there_is_room);
    CASE(suite, a_lock_file_that_finds_no_room_keeps_no_store_away_and_is_written_later);
    return suite;
}
