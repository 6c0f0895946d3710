/* fill.c - fills a store of nonbisd with completed commands, through the store itself, as many as a busy service has alive.
 *
 *   fill FILE KEYS    FILE must not exist; prints how far it is, and how long it took
 *
 * Keys and sizes are those of bench/keyed.lua (36-byte keys, 140 bytes of fields, 300 of body), under a run number that no load
 * uses. They live for ten years, so that the file may be kept. The settings are nonbisd's defaults: with others it would refuse the
 * store. */
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/config/settings.h"
#include "server/digest/digest.h"
#include "server/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1000, TELL_EVERY = 1000000, FIELDS_BYTES = 140, BODY_BYTES = 300, RUN_MS = 60000, TEXT_MAX = 65536 };

static const int64_t ttl_ms = INT64_C(3650) * 24 * 3600 * 1000;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench/fill: %s: %s\n", what, why);
    exit(1);
}

static void fill_one(struct store *store, uint64_t number)
{
    static char text[FIELDS_BYTES + BODY_BYTES];
    char key[40];
    struct store_claim claim = { .tenant = VIEW(""),
                                 .method = VIEW("POST"),
                                 .target = VIEW("/orders"),
                                 .fingerprint = { .version = FINGERPRINT_VERSION },
                                 .run_ms_max = RUN_MS,
                                 .ttl_ms = ttl_ms,
                                 .may_claim = true };
    struct store_found found = { .claimed = false };
    struct record after;
    snprintf(key, sizeof key, "f1f1f1f1-0000-4000-8000-%012llx", (unsigned long long) number);
    claim.key = view_of(key);
    digest_random(claim.fingerprint.digest, sizeof claim.fingerprint.digest);
    digest_random(claim.command_id, sizeof claim.command_id);
    enum store_result result = store_claim_key(store, &claim, &found);
    if (result != STORE_OK || !found.claimed) {
        die("a key could not be claimed", store_result_name(result));
    }
    memset(text, 'x', sizeof text);
    const struct store_finish finish = {
        .row = found.row,
        .key = claim.key,
        .execution = found.record.execution,
        .outcome = { .kind = OUTCOME_COMPLETED,
                     .response_status = 201,
                     .response_bytes = BODY_BYTES,
                     .response_kept = true },
        .retention = { .ttl_ms = ttl_ms, .tombstone_ttl_ms = ttl_ms },
        .fields = view_make(text, FIELDS_BYTES),
        .body = view_make(text, BODY_BYTES),
    };
    result = store_finish_command(store, &finish, &after);
    if (result != STORE_OK) {
        die("an answer could not be stored", store_result_name(result));
    }
}

static void fill(struct store *store, uint64_t keys)
{
    int64_t start_ms = clock_monotonic_ms();
    for (uint64_t number = 0; number < keys;) {
        uint64_t end = number + BATCH < keys ? number + BATCH : keys;
        if (store_begin(store) != STORE_OK) {
            die("a transaction could not be begun", "see above");
        }
        for (; number < end; number++) {
            fill_one(store, number);
        }
        enum store_result result = store_commit(store);
        result = result == STORE_OK ? store_idle(store) : result;
        if (result != STORE_OK) {
            die("a commit failed", store_result_name(result));
        }
        if (number % TELL_EVERY == 0 || number == keys) {
            printf("%llu keys in %.1f s\n", (unsigned long long) number,
                   (double) (clock_monotonic_ms() - start_ms) / 1000);
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv)
{
    static struct settings settings;
    char program[] = "fill", flag[] = "--upstream", url[] = "http://127.0.0.1:1",
         *arguments[] = { program, flag, url, NULL };
    char home[] = "HOME=/", *environment[] = { home, NULL };
    enum settings_action action = ACTION_RUN;
    struct buf error;
    int exit_code = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: fill FILE KEYS\n");
        return 64;
    }
    buf_init(&error, TEXT_MAX);
    log_setup(LOG_WARN, LOG_TEXT);
    if (!digest_init() || settings_read(&settings, &action, 3, arguments, environment, &error) != 0) {
        die("cannot start", "the default settings could not be read");
    }
    const struct store_options options = {
        .path = argv[1],
        .identity = { .tenant_source = view_of(settings.tenant),
                      .guard = view_of(settings.guard.text),
                      .fingerprint_version = FINGERPRINT_VERSION },
        .max_downtime_ms = settings.max_downtime_ms,
        .crash_retention = { .ttl_ms = settings.ttl_ms, .tombstone_ttl_ms = settings.tombstone_ttl_ms },
    };
    struct store *store = store_open_sqlite(&options, &error, &exit_code);
    if (store == NULL) {
        buf_append_bytes(&error, "", 1);
        die("the store could not be made", error.ptr);
    }
    fill(store, strtoull(argv[2], NULL, 10));
    store_close(store);
    settings_fini(&settings);
    buf_fini(&error);
    return 0;
}
