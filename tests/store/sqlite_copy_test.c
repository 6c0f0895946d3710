/* sqlite_copy_test.c - a copy of the store in the place of one that has gone on (docs/contract.md 9.9): the lock file remembers how far it had come. */
#include "server/store/sqlite_store.h"
#include "tests/store/store_file.h"
#include "tests/store/store_refusal.h"

#include <fcntl.h>

enum { FILE_MAX = 4 * 1024 * 1024 };

static char lock[96];

static struct store_options begin(void)
{
    struct store_options options = start();
    (void) snprintf(lock, sizeof lock, "%s.lock", path);
    return options;
}

static size_t read_file(const char *file, char *bytes)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t len = read(fd, bytes, FILE_MAX);
    ck_assert(fd >= 0 && len > 0 && len < FILE_MAX);
    (void) close(fd);
    return (size_t) len;
}

static void write_file(const char *file, const char *bytes, size_t len)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, bytes, len), (ssize_t) len);
    ck_assert_int_eq(close(fd), 0);
}

static void expect_refused(const struct store_options *options)
{
    refused(options, 74);
    says("older copy");
    says("store.db.lock remembers");
    says("remove the lock file");
    says("executed again");
}

/* Database and log as they are at one moment. */
struct copy {
    char base[FILE_MAX], log[FILE_MAX];
    size_t base_len, log_len;
};

static void copy_make(struct copy *copy, bool with_log)
{
    char log[96];
    (void) snprintf(log, sizeof log, "%s-wal", path);
    copy->base_len = read_file(path, copy->base);
    copy->log_len = with_log ? read_file(log, copy->log) : 0;
}

static void copy_restore(const struct copy *copy)
{
    char log[96];
    (void) snprintf(log, sizeof log, "%s-wal", path);
    write_file(path, copy->base, copy->base_len);
    (void) unlink(log);
    if (copy->log_len > 0) {
        write_file(log, copy->log, copy->log_len);
    }
}

/* `killed`: each run ends without its last commit, so that the log is part of the store. */
static void end(struct store *store, bool killed)
{
    store->down = killed;
    store_close(store);
    fixture_advance(1);
}

/* Index 1: it was killed. Then the start of the newest run is what the lock file knows. */
START_TEST(an_older_copy_is_refused_with_74_until_its_lock_file_goes_too)
{
    static struct copy old, newest;
    struct store_options options = begin();
    bool killed = _i == 1;
    end(fixture_open(&options), killed);
    copy_make(&old, killed);
    end(fixture_open(&options), killed);
    copy_make(&newest, killed);
    copy_restore(&old);
    expect_refused(&options);
    expect_refused(&options); /* trying is no cure */
    copy_restore(&newest);
    end(fixture_open(&options), killed); /* the same moment is no older one */
    copy_restore(&old);
    expect_refused(&options);
    ck_assert_int_eq(unlink(lock), 0);
    end(fixture_open(&options), false);
    fixture_remove(directory);
}
END_TEST

/* Of a version that knew no time there. */
START_TEST(a_lock_file_without_a_time_tells_of_no_older_copy)
{
    static char old[FILE_MAX], text[FILE_MAX];
    struct store_options options = begin();
    store_close(fixture_open(&options));
    size_t old_len = read_file(path, old);
    fixture_advance(1);
    store_close(fixture_open(&options));
    write_file(path, old, old_len);
    size_t len = read_file(lock, text);
    char *line = memmem(text, len, "\ntime 0000000000000", 19);
    ck_assert_ptr_nonnull(line);
    char *end = memchr(line + 1, '\n', len - (size_t) (line + 1 - text));
    ck_assert_ptr_nonnull(end);
    ck_assert_int_eq(end - line, 26); /* of one length */
    memmove(line, end, len - (size_t) (end - text));
    write_file(lock, text, len - (size_t) (end - line));
    store_close(fixture_open(&options));
    fixture_remove(directory);
}
END_TEST

SUITE(sqlite_copy)
{
    Suite *suite = suite_create("store/sqlite_copy");
    CASE_LOOP(suite, an_older_copy_is_refused_with_74_until_its_lock_file_goes_too, 2);
    CASE(suite, a_lock_file_without_a_time_tells_of_no_older_copy);
    return suite;
}
