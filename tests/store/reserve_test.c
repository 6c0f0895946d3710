/* reserve_test.c - the file that keeps room for outcomes (server/store/reserve.h), and what may lie there in its place. */
#include "server/store/reserve.h"

#include "server/store/sqlite_store.h"
#include "tests/store/store_fixture.h"

#include <fcntl.h>

enum { KEPT = 512 * 1024, BODY = 40 * 1024 };

static char directory[64], path[80], reserve_path[96];
static char body[BODY];

static struct store_options start(void)
{
    fixture_directory(directory);
    (void) snprintf(path, sizeof path, "%s/store.db", directory);
    (void) snprintf(reserve_path, sizeof reserve_path, "%s.reserve", path);
    struct store_options options = fixture_options(path);
    options.reserve_bytes = KEPT;
    return options;
}

/* Bytes of the disk that the file takes up; -1: it is not there. */
static int64_t taken_by(const char *file)
{
    struct stat status;
    return stat(file, &status) == 0 ? (int64_t) status.st_blocks * 512 : -1;
}

START_TEST(the_room_that_is_kept_is_taken_from_the_disk_and_stays_over_a_restart)
{
    static const struct {
        int64_t wanted, taken;
    } rows[] = {
        { 262144, 262144 }, { 262144, 262144 }, { 65536, 65536 }, { 131072, 131072 }, { 0, -1 }, { 4096, 4096 }
    };
    struct store_options options = start();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        options.reserve_bytes = rows[i].wanted;
        struct store *store = fixture_open(&options);
        ck_assert(store_takes_claims(store));
        ck_assert_int_eq(taken_by(reserve_path), rows[i].taken);
        store_close(store);
        ck_assert_int_eq(taken_by(reserve_path), rows[i].taken);
    }
    fixture_remove(directory);
}
END_TEST

/* --- what lies there in its place --- */

static void write_file(const char *file, const char *bytes, size_t len)
{
    int fd = open(file, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, len), (ssize_t) len);
    ck_assert_int_eq(close(fd), 0);
}

static bool holds(const char *file, const char *bytes, size_t len)
{
    static char found[BODY + 1];
    int fd = open(file, O_RDONLY);
    ssize_t got = fd < 0 ? -1 : read(fd, found, sizeof found);
    (void) close(fd);
    return got == (ssize_t) len && memcmp(found, bytes, len) == 0;
}

START_TEST(a_file_of_that_name_that_is_no_reserve_is_left_alone_until_it_is_moved_away)
{
    static const int64_t wanted[] = { 2 * BODY, BODY, 4096, 0 };
    static const struct {
        const char *what;
        char first, rest; /* of its bytes */
        bool linked;      /* the name leads to a file with them */
    } rows[] = { { "somebody's data", 'n', 'x', false },
                 { "an image of zeros", 0, 0, false },
                 { "a link", 'n', 'x', true } };
    struct store_options options = start();
    char other[96];
    (void) snprintf(other, sizeof other, "%s/other", directory);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memset(body, rows[i].rest, sizeof body);
        body[0] = rows[i].first;
        for (size_t j = 0; j < sizeof wanted / sizeof wanted[0]; j++) {
            write_file(rows[i].linked ? other : reserve_path, body, sizeof body);
            ck_assert(!rows[i].linked || symlink("other", reserve_path) == 0);
            options.reserve_bytes = wanted[j];
            struct store *store = fixture_open(&options);
            ck_assert_int_eq(store_takes_claims(store), wanted[j] == 0);
            ck_assert(!store_make_room(store));
            ck_assert_msg(holds(reserve_path, body, sizeof body), "%s, %lld wanted", rows[i].what,
                          (long long) wanted[j]);
            ck_assert_int_eq(unlink(reserve_path), 0);
            fixture_advance(2000);
            ck_assert_int_eq(store_idle(store), STORE_OK);
            ck_assert(store_takes_claims(store));
            ck_assert_int_eq(taken_by(reserve_path), wanted[j] == 0 ? -1 : wanted[j]);
            store_close(store);
            (void) unlink(reserve_path);
        }
    }
    memset(body, 0, sizeof body);
    fixture_remove(directory);
}
END_TEST

/* Of a reserve that was being made when the power went. */
START_TEST(a_torn_beginning_of_a_reserve_is_made_whole)
{
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = { { "", 0 }, { "nonbis room", 11 }, { "\0\0\0\0\0", 5 }, { "nonbis room for outcomes 1\n", 27 } };
    struct store_options options = start();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_file(reserve_path, rows[i].bytes, rows[i].len);
        struct store *store = fixture_open(&options);
        ck_assert(store_takes_claims(store));
        ck_assert_int_eq(taken_by(reserve_path), KEPT);
        store_close(store);
        store = fixture_open(&options); /* and it is known again */
        ck_assert(store_takes_claims(store));
        store_close(store);
    }
    fixture_remove(directory);
}
END_TEST

SUITE(store_reserve)
{
    Suite *suite = suite_create("store/reserve");
    CASE(suite, the_room_that_is_kept_is_taken_from_the_disk_and_stays_over_a_restart);
    CASE(suite, a_file_of_that_name_that_is_no_reserve_is_left_alone_until_it_is_moved_away);
    CASE(suite, a_torn_beginning_of_a_reserve_is_made_whole);
    return suite;
}
