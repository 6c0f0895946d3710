/* store_fixture.h - a clock that a test moves, a directory of its own, and claims and outcomes in one line. For
 * tests/store and tests/model; header only, so that both programs may use it. */
#ifndef NONBIS_TESTS_STORE_FIXTURE_H
#define NONBIS_TESTS_STORE_FIXTURE_H

#include "server/base/log.h"
#include "server/base/memory.h"
#include "server/digest/digest.h"
#include "server/store/store.h"
#include "tests/support/suite.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FIXTURE_START_MS = 1000000, /* wall clock and monotonic clock of a fixture begin here */
    FIXTURE_TTL_MS = 10000,
    FIXTURE_TOMBSTONE_MS = 50000,
    FIXTURE_RUN_MS = 1000,
    FIXTURE_DOWNTIME_MS = 100000
};

static int64_t fixture_wall_ms = FIXTURE_START_MS, fixture_monotonic_ms = FIXTURE_START_MS;

static inline int64_t fixture_wall(void *context)
{
    (void) context;
    return fixture_wall_ms;
}

static inline int64_t fixture_monotonic(void *context)
{
    (void) context;
    return fixture_monotonic_ms;
}

static const struct store_clock fixture_clock = { fixture_wall, fixture_monotonic, NULL };

static inline void fixture_advance(int64_t ms)
{
    fixture_wall_ms += ms;
    fixture_monotonic_ms += ms;
}

static const struct retention fixture_retention = { FIXTURE_TTL_MS, FIXTURE_TOMBSTONE_MS };

/* --- places --- */

/* A new directory, in memory where there is such a place, since these tests are not about the disk. */
static inline void fixture_directory(char path[64])
{
    const char *root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void) snprintf(path, 64, "%s/nonbis-store-XXXXXX", root);
    ck_assert_ptr_nonnull(mkdtemp(path));
}

static inline void fixture_remove(const char *directory)
{
    char path[512];
    DIR *listing = opendir(directory);
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        if (entry->d_name[0] != '.') {
            (void) snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
            (void) unlink(path);
            (void) rmdir(path);
        }
    }
    if (listing != NULL) {
        (void) closedir(listing);
    }
    (void) rmdir(directory);
}

static inline struct store_options fixture_options(const char *path)
{
    ck_assert(digest_init());
    log_setup(getenv("NONBIS_TEST_LOG") != NULL ? LOG_DEBUG : (enum log_level) - 1, LOG_TEXT);
    return (struct store_options){
        .path = path,
        .identity = { VIEW("none"), VIEW("authorization,x-api-key"), FINGERPRINT_VERSION },
        .max_downtime_ms = FIXTURE_DOWNTIME_MS,
        .crash_retention = fixture_retention,
        .clock = &fixture_clock,
    };
}

/* Opens or fails the test with the store's own words. */
static inline struct store *fixture_open(const struct store_options *options)
{
    struct buf error;
    int exit_code = -1;
    buf_init(&error, 4096);
    struct store *store = store_open_sqlite(options, &error, &exit_code);
    if (store == NULL) {
        ck_abort_msg("%.*s", VIEW_ARGS(buf_view(&error)));
    }
    ck_assert_int_eq(exit_code, 0);
    buf_fini(&error);
    return store;
}

/* --- requests --- */

/* Payload `payload` and credential `who`: equal numbers are equal ones. who 0: no guard. */
static inline struct store_claim fixture_claim(const char *key, unsigned payload, unsigned who)
{
    struct store_claim claim = {
        .tenant = VIEW("t"),
        .key = view_of(key),
        .method = VIEW("POST"),
        .target = VIEW("/orders"),
        .fingerprint = { .version = FINGERPRINT_VERSION },
        .credential = { .present = who != 0 },
        .run_ms_max = FIXTURE_RUN_MS,
        .may_claim = true,
    };
    memset(claim.fingerprint.digest, (int) payload, sizeof claim.fingerprint.digest);
    memset(claim.fingerprint.parts[FINGERPRINT_BODY], (int) payload, FINGERPRINT_PART_BYTES);
    memset(claim.credential.digest, (int) who, who != 0 ? sizeof claim.credential.digest : 0);
    memset(claim.command_id, 0xA0, sizeof claim.command_id);
    return claim;
}

static inline struct store_finish fixture_finish(const char *key, const struct store_found *claimed,
                                                 enum outcome_kind kind)
{
    struct store_finish finish = {
        .row = claimed->row,
        .tenant = VIEW("t"),
        .key = view_of(key),
        .execution = claimed->record.execution,
        .outcome = { .kind = kind, .cause = kind == OUTCOME_UNKNOWN ? CAUSE_RESET : CAUSE_NONE },
        .retention = fixture_retention,
        .fields = VIEW(""),
        .body = VIEW(""),
    };
    if (kind == OUTCOME_COMPLETED) {
        finish.fields = VIEW("Content-Type: text/plain\r\n");
        finish.body = VIEW("done");
        finish.outcome.response_status = 201;
        finish.outcome.response_bytes = 4;
        finish.outcome.response_kept = true;
    }
    return finish;
}

static inline void fixture_found_free(struct store_found *found)
{
    free(found->response);
    free(found->request);
    free(found->key);
    found->response = NULL;
    found->request = NULL;
    found->key = NULL;
}

/* One claim in a transaction of its own. */
static inline struct store_found fixture_claim_now(struct store *store, const char *key, unsigned payload, unsigned who)
{
    struct store_claim claim = fixture_claim(key, payload, who);
    struct store_found found;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, &claim, &found), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    return found;
}

static inline enum store_result fixture_finish_now(struct store *store, const char *key,
                                                   const struct store_found *claimed, enum outcome_kind kind)
{
    struct store_finish finish = fixture_finish(key, claimed, kind);
    struct record after;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    enum store_result result = store_finish_command(store, &finish, &after);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    return result;
}

static inline struct store_found fixture_look_up(struct store *store, const char *key)
{
    struct store_found found;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_look_up(store, VIEW("t"), view_of(key), &found), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    return found;
}

static inline struct store_found fixture_look_up_id(struct store *store, struct view tenant,
                                                    const uint8_t id[COMMAND_ID_BYTES])
{
    struct store_found found;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_look_up_id(store, tenant, id, &found), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    return found;
}

/* The state that counts now. */
static inline enum record_state fixture_state(struct store *store, const char *key)
{
    struct store_found found = fixture_look_up(store, key);
    enum record_state state = record_state_at(&found.record, store_now(store));
    fixture_found_free(&found);
    return state;
}

static inline struct store_sweep fixture_sweep(struct store *store, unsigned limit)
{
    struct store_sweep sweep = { .limit = limit };
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_sweep_some(store, &sweep), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    return sweep;
}

#endif
