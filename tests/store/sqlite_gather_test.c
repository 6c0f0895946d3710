/* sqlite_gather_test.c - the log in large pieces is the log (server/store/sqlite_gather.h): a file is written at random and compared with an image in memory, both
 * as it is read back through the VFS and as it lies on the disk after a sync. */
#include "server/store/sqlite_gather.h"
#include "tests/store/fault_vfs.h"
#include "tests/store/store_fixture.h"

#include <fcntl.h>
#include <sqlite3.h>

enum { IMAGE_MAX = 1 << 20, STEPS = 4000, PIECE_MAX = 5000 };

static char directory[64], path[128];
static sqlite3_file *file;
static unsigned char image[IMAGE_MAX], seen[IMAGE_MAX];
static sqlite3_int64 size;

/* The unix VFS asks the database beside a log for its mode. */
static void open_log(void)
{
    char database[128];
    int out = 0;
    fixture_directory(directory);
    (void) snprintf(database, sizeof database, "%s/a.db", directory);
    (void) snprintf(path, sizeof path, "%s/a.db-wal", directory);
    close(open(database, O_CREAT | O_WRONLY, 0600));
    fault_vfs_install();
    sqlite3_vfs *vfs = sqlite3_vfs_find(sqlite_gather_vfs());
    ck_assert_ptr_nonnull(vfs);
    file = calloc(1, (size_t) vfs->szOsFile);
    ck_assert_int_eq(vfs->xOpen(vfs, path, file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL, &out),
                     SQLITE_OK);
    memset(image, 0, sizeof image);
    size = 0;
}

static void close_log(void)
{
    ck_assert_int_eq(file->pMethods->xClose(file), SQLITE_OK);
    free(file);
    fixture_remove(directory);
}

static int put(struct suite_random *random, sqlite3_int64 at, int len)
{
    for (int i = 0; i < len; i++) {
        image[at + i] = (unsigned char) suite_random_next(random);
    }
    size = at + len > size ? at + len : size;
    return file->pMethods->xWrite(file, image + at, len, at);
}

static void expect_on_disk(const char *when, int step)
{
    int fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ssize_t len = read(fd, seen, sizeof seen);
    close(fd);
    ck_assert_msg(len == size && memcmp(seen, image, (size_t) size) == 0,
                  "%s at step %d: %zd bytes of %lld on the disk", when, step, len, (long long) size);
}

static void expect_read(sqlite3_int64 at, int len, int step)
{
    memset(seen, 0xEE, (size_t) len);
    int code = file->pMethods->xRead(file, seen, len, at);
    bool whole = at + len <= size;
    ck_assert_msg(code == (whole ? SQLITE_OK : SQLITE_IOERR_SHORT_READ), "step %d: read %d", step, code);
    sqlite3_int64 there = size > at ? size - at : 0;
    there = there < len ? there : len;
    ck_assert_msg(memcmp(seen, image + at, (size_t) there) == 0, "step %d: other bytes", step);
    for (sqlite3_int64 i = there; i < len; i++) {
        ck_assert_int_eq(seen[i], 0); /* as the VFS below pads it */
    }
}

START_TEST(what_is_gathered_is_what_was_written)
{
    struct suite_random random;
    unsigned seed = suite_seed(), syncs = 0, reads = 0, sizes = 0, cuts = 0, jumps = 0;
    sqlite3_int64 end = 0, told = 0;
    suite_random_start(&random, seed);
    open_log();
    for (int step = 0; step < STEPS; step++) {
        unsigned deed = suite_random_below(&random, 100);
        int len = 1 + (int) suite_random_below(&random, PIECE_MAX);
        if (end + PIECE_MAX > IMAGE_MAX || deed < 3) { /* from the start again, as a log does; or anywhere */
            end = deed < 3 && size > 0 ? suite_random_below(&random, (unsigned) size) : 0;
            end = end + PIECE_MAX > IMAGE_MAX ? 0 : end;
            jumps++;
        }
        if (deed < 85) {
            ck_assert_int_eq(put(&random, end, len), SQLITE_OK);
            end += len;
        } else if (deed < 90) {
            ck_assert_int_eq(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
            expect_on_disk("after a sync", step);
            syncs++;
        } else if (deed < 95) {
            expect_read(suite_random_below(&random, IMAGE_MAX - PIECE_MAX), len, step);
            reads++;
        } else if (deed < 99) {
            ck_assert_int_eq(file->pMethods->xFileSize(file, &told), SQLITE_OK);
            ck_assert_int_eq(told, size);
            sizes++;
        } else {
            size = suite_random_below(&random, (unsigned) size + 1);
            ck_assert_int_eq(file->pMethods->xTruncate(file, size), SQLITE_OK);
            memset(image + size, 0, (size_t) (IMAGE_MAX - size));
            end = size + PIECE_MAX > IMAGE_MAX ? 0 : size;
            cuts++;
        }
    }
    FIGURE("gather: seed=%u steps=%d syncs=%u reads=%u sizes=%u cuts=%u jumps=%u", seed, STEPS, syncs, reads, sizes,
           cuts, jumps);
    ck_assert_uint_gt(syncs, 50);
    ck_assert_uint_gt(reads, 50);
    ck_assert_uint_gt(cuts, 5);
    ck_assert_uint_gt(jumps, 20);
    close_log();
}
END_TEST

START_TEST(close_writes_what_is_left)
{
    struct suite_random random;
    suite_random_start(&random, 1);
    open_log();
    ck_assert_int_eq(put(&random, 0, 100), SQLITE_OK);
    ck_assert_int_eq(file->pMethods->xClose(file), SQLITE_OK);
    expect_on_disk("after a close", 0);
    free(file);
    fixture_remove(directory);
}
END_TEST

START_TEST(an_error_of_the_write_comes_from_the_sync_and_its_bytes_are_not_tried_again)
{
    static const int codes[] = { SQLITE_FULL, SQLITE_IOERR_WRITE };
    struct suite_random random;
    suite_random_start(&random, 1);
    open_log();
    fault_vfs_arm(FAULT_WRITE, FAULT_LOG, 1, codes[_i], 0);
    ck_assert_int_eq(put(&random, 0, 4096), SQLITE_OK);
    ck_assert_int_eq(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), codes[_i]);
    ck_assert_uint_eq(fault_vfs_hits(), 1);
    fault_vfs_disarm();
    ck_assert_int_eq(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
    size = 0;
    expect_on_disk("after the error", 0);
    ck_assert_int_eq(put(&random, 0, 10), SQLITE_OK);
    ck_assert_int_eq(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
    expect_on_disk("after the next commit", 0);
    close_log();
}
END_TEST

/* 30 claims: some 5 pages, which SQLite writes in 2 calls each. */
START_TEST(a_commit_is_one_write_and_one_sync)
{
    fixture_directory(directory);
    (void) snprintf(path, sizeof path, "%s/a.db", directory);
    fault_vfs_install();
    struct store_options options = fixture_options(path);
    struct store *store = fixture_open(&options);
    (void) fixture_claim_now(store, "warm", 1, 0);
    unsigned writes = fault_vfs_writes(FAULT_LOG), syncs = fault_vfs_syncs(FAULT_LOG);
    ck_assert_int_eq(store_begin(store), STORE_OK);
    for (int i = 0; i < 30; i++) {
        char key[16];
        struct store_found found;
        (void) snprintf(key, sizeof key, "k-%d", i);
        struct store_claim claim = fixture_claim(key, 1, 0);
        ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
    }
    ck_assert_uint_eq(fault_vfs_writes(FAULT_LOG), writes);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    ck_assert_uint_eq(fault_vfs_writes(FAULT_LOG), writes + 1);
    ck_assert_uint_eq(fault_vfs_syncs(FAULT_LOG), syncs + 1);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

/* As when SQLite had no memory to start. */
START_TEST(without_a_vfs_below_a_store_is_refused)
{
    struct buf error;
    int exit_code = 0;
    fixture_directory(directory);
    (void) snprintf(path, sizeof path, "%s/a.db", directory);
    struct store_options options = fixture_options(path);
    for (sqlite3_vfs *vfs; (vfs = sqlite3_vfs_find(NULL)) != NULL;) {
        (void) sqlite3_vfs_unregister(vfs);
    }
    ck_assert_ptr_null(sqlite_gather_vfs());
    buf_init(&error, 4096);
    ck_assert_ptr_null(store_open_sqlite(&options, &error, &exit_code));
    ck_assert(exit_code == STORE_EXIT_CANNOT_CREATE || exit_code == STORE_EXIT_UNUSABLE);
    ck_assert_uint_gt(error.len, 0);
    buf_fini(&error);
    fixture_remove(directory);
}
END_TEST

SUITE(sqlite_gather)
{
    Suite *suite = suite_create("store/sqlite_gather");
    CASE(suite, what_is_gathered_is_what_was_written);
    CASE(suite, close_writes_what_is_left);
    CASE_LOOP(suite, an_error_of_the_write_comes_from_the_sync_and_its_bytes_are_not_tried_again, 2);
    CASE(suite, a_commit_is_one_write_and_one_sync);
    CASE(suite, without_a_vfs_below_a_store_is_refused);
    return suite;
}
