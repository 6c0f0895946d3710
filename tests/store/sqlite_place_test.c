/* sqlite_place_test.c - somebody takes the files of a running store away: it notices within a second of its clock and takes nothing
 * more (docs/contract.md 9.9, 11.4). And places that forget. */
#include "server/store/filesystem.h"
#include "tests/store/store_fixture.h"

static char directory[64], path[80], other[96];

/* Index: row. The file is removed, or another one is put in its place. */
static const struct {
    const char *suffix;
    bool replaced;
} losses[] = {
    { "", false }, { "", true }, { ".lock", false }, { ".lock", true }, { "-wal", false }, { "-wal", true }
};
enum { LOSSES = sizeof losses / sizeof losses[0] };

static void lose(const char *suffix, bool replaced)
{
    char file[96];
    (void) snprintf(file, sizeof file, "%s%s", path, suffix);
    (void) snprintf(other, sizeof other, "%s/other", directory);
    if (!replaced) {
        ck_assert_int_eq(unlink(file), 0);
        return;
    }
    FILE *copy = fopen(other, "w"); /* beside the old one, so that it cannot get its inode */
    ck_assert_ptr_nonnull(copy);
    ck_assert_int_eq(fclose(copy), 0);
    ck_assert_int_eq(rename(other, file), 0);
}

START_TEST(a_store_whose_files_are_taken_away_is_down_within_a_second)
{
    fixture_directory(directory);
    (void) snprintf(path, sizeof path, "%s/store.db", directory);
    struct store_options options = fixture_options(path);
    struct store *store = fixture_open(&options);
    (void) fixture_claim_now(store, "before", 1, 0);
    ck_assert_int_eq(store_idle(store), STORE_OK);
    lose(losses[_i].suffix, losses[_i].replaced);
    ck_assert_int_eq(store_idle(store), STORE_OK); /* it was looked at just now */
    fixture_advance(1000);
    ck_assert_int_eq(store_idle(store), STORE_UNCERTAIN);
    ck_assert_int_eq(store_begin(store), STORE_DOWN);
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_store_whose_files_stay_goes_on)
{
    fixture_directory(directory);
    (void) snprintf(path, sizeof path, "%s/store.db", directory);
    struct store_options options = fixture_options(path);
    struct store *store = fixture_open(&options);
    for (int i = 0; i < 5; i++) {
        char key[16];
        (void) snprintf(key, sizeof key, "k-%d", i);
        (void) fixture_claim_now(store, key, 1, 0);
        fixture_advance(2500); /* over the time after which the log is brought home */
        ck_assert_int_eq(store_idle(store), STORE_OK);
    }
    store_close(store);
    fixture_remove(directory);
}
END_TEST

START_TEST(file_systems_in_memory_are_known)
{
    ck_assert_str_eq(filesystem_volatile_kind(0x01021994), "tmpfs");
    ck_assert_str_eq(filesystem_volatile_kind(0x858458F6), "ramfs");
    ck_assert_ptr_null(filesystem_volatile_kind(0xEF53));     /* ext4 */
    ck_assert_ptr_null(filesystem_volatile_kind(0x794C7630)); /* overlayfs */
    ck_assert_ptr_null(filesystem_volatile("/no/such/place"));
}
END_TEST

SUITE(store_sqlite_place)
{
    Suite *suite = suite_create("store/sqlite_place");
    CASE_LOOP(suite, a_store_whose_files_are_taken_away_is_down_within_a_second, LOSSES);
    CASE(suite, a_store_whose_files_stay_goes_on);
    CASE(suite, file_systems_in_memory_are_known);
    return suite;
}
