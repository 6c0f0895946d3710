/* bench.c - see bench.h. Owns a folder beside the store, with a plain file and a store of its own in it.
 *
 * The plain file tells what the disk can do: 4 KiB and fdatasync, at its end (the file grows, which a journal has to note) and over
 * what is there (as the store's log is written once it has its length). The store tells what is made of it: transactions of 1, 16 and
 * 64 claims with as many outcomes of earlier ones, as the store thread batches them at so many busy connections. */
#include "server/store/bench.h"

#include "server/base/clock.h"
#include "server/base/memory.h"
#include "server/digest/digest.h"
#include "server/store/filesystem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PAGE_BYTES = 4096,
    OVERWRITTEN_PAGES = 1024, /* 4 MiB, as long as a log may be before it is brought home */
    SAMPLES_MAX = 1 << 20,
    BATCH_MAX = 64,
    FIELDS_BYTES = 140,
    BODY_BYTES = 300,
    RUN_MS = 60 * 1000,
    DAY_MS = 24 * 3600 * 1000,
    EXIT_SIGNAL = 1
};

static const unsigned batches[] = { 1, 16, BATCH_MAX };

struct bench {
    char *folder;
    int64_t each_ms;
    uint32_t *samples; /* how long each synced write or commit took, in us */
    size_t count;
    int64_t took_us; /* all of them together */
    struct buf *out, *error;
};

static volatile sig_atomic_t bench_stopped;

static void bench_stop(int signal_number)
{
    (void) signal_number;
    bench_stopped = 1;
}

/* --- samples --- */

static int compare_samples(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *) a, right = *(const uint32_t *) b;
    return (left > right) - (left < right);
}

static double quantile_ms(const struct bench *bench, unsigned percent)
{
    if (bench->count == 0) {
        return 0;
    }
    size_t at = (bench->count - 1) * percent / 100;
    return bench->samples[at] / 1000.0;
}

static double per_second(const struct bench *bench)
{
    return bench->took_us == 0 ? 0 : (double) bench->count * 1e6 / (double) bench->took_us;
}

static void write_samples(struct bench *bench, const char *what, const char *unit)
{
    qsort(bench->samples, bench->count, sizeof *bench->samples, compare_samples);
    buf_printf(bench->out, "  %-34s %8.0f %s  p50 %.2f ms  p99 %.2f ms", what, per_second(bench), unit,
               quantile_ms(bench, 50), quantile_ms(bench, 99));
}

/* Whether there is time for another one, which began at `began_us`; 0: none did yet. */
static bool goes_on(struct bench *bench, int64_t start_us, int64_t began_us)
{
    int64_t now_us = clock_monotonic_us();
    if (began_us == 0) {
        bench->count = 0;
    } else {
        bench->samples[bench->count++] = (uint32_t) (now_us - began_us);
    }
    bench->took_us = now_us - start_us;
    return bench_stopped == 0 && bench->count < SAMPLES_MAX &&
           (bench->count == 0 || now_us - start_us < bench->each_ms * 1000);
}

/* --- the disk --- */

static int fail_disk(struct bench *bench, const char *tried, const char *path)
{
    buf_printf(bench->error, "could not %s %s: %s; nothing was left there", tried, path, strerror(errno));
    return STORE_EXIT_UNUSABLE;
}

static int measure_writes(struct bench *bench, int fd, const char *path, bool overwrite)
{
    static const char page[PAGE_BYTES] = "nonbisd --bench-store";
    int64_t start_us = clock_monotonic_us(), began_us = 0;
    while (goes_on(bench, start_us, began_us)) {
        size_t at = overwrite ? bench->count % OVERWRITTEN_PAGES : bench->count;
        began_us = clock_monotonic_us();
        if (pwrite(fd, page, sizeof page, (off_t) (at * sizeof page)) != (ssize_t) sizeof page || fdatasync(fd) != 0) {
            return fail_disk(bench, "write to", path);
        }
    }
    write_samples(bench, overwrite ? "4 KiB written over, and synced" : "4 KiB appended, and synced", "/s");
    buf_append_text(bench->out, "\n");
    return 0;
}

static int measure_disk(struct bench *bench)
{
    static const char zeros[PAGE_BYTES];
    char path[4096];
    (void) snprintf(path, sizeof path, "%s/plain", bench->folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return fail_disk(bench, "create", path);
    }
    const char *volatile_kind = filesystem_volatile(path);
    buf_printf(bench->out, "disk below %s%s%s%s\n", bench->folder, volatile_kind != NULL ? " (in memory: " : "",
               volatile_kind != NULL ? volatile_kind : "",
               volatile_kind != NULL ? "; a power loss takes it away)" : "");
    int exit_code = measure_writes(bench, fd, path, false);
    for (off_t page = 0; page < OVERWRITTEN_PAGES && exit_code == 0; page++) {
        if (pwrite(fd, zeros, sizeof zeros, page * PAGE_BYTES) != (ssize_t) sizeof zeros) {
            exit_code = fail_disk(bench, "write to", path);
        }
    }
    if (exit_code == 0 && fsync(fd) != 0) {
        exit_code = fail_disk(bench, "sync", path);
    }
    if (exit_code == 0) {
        exit_code = measure_writes(bench, fd, path, true);
    }
    (void) close(fd);
    return exit_code;
}

/* --- the store --- */

struct bench_batch {
    unsigned size;
    uint64_t next_key;
    struct store_finish running[BATCH_MAX]; /* claimed by the commit before */
    char keys[2][BATCH_MAX][40];            /* of those, and of the new ones */
};

static enum store_result claim_one(struct store *store, struct bench_batch *batch, unsigned i)
{
    struct store_claim claim = { .tenant = VIEW(""),
                                 .method = VIEW("POST"),
                                 .target = VIEW("/orders"),
                                 .fingerprint = { .version = FINGERPRINT_VERSION },
                                 .run_ms_max = RUN_MS,
                                 .ttl_ms = DAY_MS,
                                 .may_claim = true };
    struct store_found found = { .claimed = false };
    char *key = batch->keys[1][i];
    (void) snprintf(key, sizeof batch->keys[1][i], "%08x-0000-4000-8000-%012llx", 1U,
                    (unsigned long long) batch->next_key++);
    claim.key = view_of(key);
    digest_random(claim.fingerprint.digest, sizeof claim.fingerprint.digest);
    digest_random(claim.command_id, sizeof claim.command_id);
    enum store_result result = store_claim_key(store, &claim, &found);
    batch->running[i].row = found.row;
    batch->running[i].execution = found.record.execution;
    return result;
}

static enum store_result finish_one(struct store *store, struct bench_batch *batch, unsigned i)
{
    static char text[FIELDS_BYTES + BODY_BYTES];
    struct record after;
    struct store_finish *finish = &batch->running[i];
    if (finish->row == 0) {
        return STORE_OK; /* the first commit of all */
    }
    memset(text, 'x', sizeof text);
    finish->key = view_of(batch->keys[0][i]);
    finish->outcome = (struct record_outcome){
        .kind = OUTCOME_COMPLETED, .response_status = 201, .response_bytes = BODY_BYTES, .response_kept = true
    };
    finish->retention = (struct retention){ .ttl_ms = DAY_MS, .tombstone_ttl_ms = DAY_MS };
    finish->fields = view_make(text, FIELDS_BYTES);
    finish->body = view_make(text, BODY_BYTES);
    return store_finish_command(store, finish, &after);
}

/* One transaction as the store thread makes it: outcomes first. */
static enum store_result commit_batch(struct store *store, struct bench_batch *batch)
{
    enum store_result result = store_begin(store);
    for (unsigned i = 0; i < batch->size && result == STORE_OK; i++) {
        result = finish_one(store, batch, i);
    }
    for (unsigned i = 0; i < batch->size && result == STORE_OK; i++) {
        result = claim_one(store, batch, i);
    }
    memcpy(batch->keys[0], batch->keys[1], sizeof batch->keys[0]);
    if (result != STORE_OK) {
        store_rollback(store);
        return result;
    }
    result = store_commit(store);
    return result == STORE_OK ? store_idle(store) : result;
}

static int measure_commits(struct bench *bench, struct store *store, struct bench_batch *batch)
{
    int64_t start_us = clock_monotonic_us(), began_us = 0;
    memset(batch->running, 0, sizeof batch->running);
    while (goes_on(bench, start_us, began_us)) {
        began_us = clock_monotonic_us();
        enum store_result result = commit_batch(store, batch);
        if (result != STORE_OK) {
            buf_printf(bench->error, "a commit in %s did not succeed (%s); nothing was left there", bench->folder,
                       store_result_name(result));
            return STORE_EXIT_UNUSABLE;
        }
    }
    char what[64];
    (void) snprintf(what, sizeof what, "commits of %u command%s", batch->size, batch->size == 1 ? "" : "s");
    write_samples(bench, what, "/s");
    buf_printf(bench->out, "  %8.0f commands/s\n", per_second(bench) * batch->size);
    return 0;
}

static int measure_store(struct bench *bench, const struct store_options *options)
{
    struct store_options own = *options;
    own.reserve_bytes = 0;
    int exit_code = 0;
    char path[4096];
    (void) snprintf(path, sizeof path, "%s/store.db", bench->folder);
    own.path = path;
    struct store *store = store_open_sqlite(&own, bench->error, &exit_code);
    if (store == NULL) {
        return exit_code;
    }
    buf_printf(bench->out, "store: %s\n", store->info.description);
    struct bench_batch *batch = memory_new(sizeof *batch);
    for (size_t i = 0; i < sizeof batches / sizeof batches[0] && exit_code == 0; i++) {
        batch->size = batches[i];
        exit_code = measure_commits(bench, store, batch);
    }
    free(batch);
    store_close(store);
    return exit_code;
}

/* --- the folder --- */

/* Beside the store, so that it is on the same disk. */
static bool make_folder(struct bench *bench, const char *store_path)
{
    const char *slash = strrchr(store_path, '/');
    int len = slash == NULL ? 0 : (int) (slash - store_path) + 1;
    size_t room = (size_t) len + sizeof "./nonbis-bench-XXXXXX";
    bench->folder = memory_new(room);
    (void) snprintf(bench->folder, room, "%.*snonbis-bench-XXXXXX", len, store_path);
    if (mkdtemp(bench->folder) != NULL) {
        return true;
    }
    buf_printf(bench->error, "could not make a folder beside %s: %s; nothing was measured", store_path,
               strerror(errno));
    return false;
}

static void remove_folder(const char *folder)
{
    char path[4096];
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            (void) snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            (void) unlink(path);
        }
    }
    if (listing != NULL) {
        (void) closedir(listing);
    }
    (void) rmdir(folder);
}

int store_bench(const struct store_options *options, int64_t each_ms, struct buf *out, struct buf *error)
{
    struct bench bench = { .each_ms = each_ms, .out = out, .error = error };
    (void) signal(SIGINT, bench_stop); /* before there is anything to leave behind */
    (void) signal(SIGTERM, bench_stop);
    if (!make_folder(&bench, options->path)) {
        free(bench.folder);
        return STORE_EXIT_CANNOT_CREATE;
    }
    bench.samples = memory_new(SAMPLES_MAX * sizeof *bench.samples);
    int exit_code = measure_disk(&bench);
    if (exit_code == 0) {
        exit_code = measure_store(&bench, options);
    }
    remove_folder(bench.folder);
    if (exit_code == 0 && bench_stopped != 0) {
        buf_printf(error, "ended by a signal; nothing was left in %s", bench.folder);
        exit_code = EXIT_SIGNAL;
    }
    free(bench.samples);
    free(bench.folder);
    return exit_code;
}
