/* metrics_page.c - see metrics_page.h. One table of what there is; tools/check-metrics holds docs/metrics.md against it. */
#include "server/flow/metrics_page.h"

#include "server/base/process.h"
#include "server/flow/replay_cache.h"
#include "server/flow/waiters.h"

#include <stdio.h>
#include <string.h>

enum metric {
    METRIC_INFO,
    METRIC_READY,
    METRIC_DURABLE,
    METRIC_REQUESTS,
    METRIC_UNKNOWN,
    METRIC_RUNNING,
    METRIC_WAITERS,
    METRIC_QUOTA_TENANTS,
    METRIC_CONNECTIONS,
    METRIC_LOOP_CONNECTIONS,
    METRIC_ADDED,
    METRIC_REPLAY,
    METRIC_CACHED,
    METRIC_CACHE_BYTES,
    METRIC_UPSTREAM_CONNECTIONS,
    METRIC_RECORDS,
    METRIC_COMMIT,
    METRIC_BATCH_TASKS,
    METRIC_QUEUE,
    METRIC_COMMIT_AGE,
    METRIC_NO_RESERVE,
    METRIC_SWEEP_BEHIND,
    METRIC_START_TIME,
    METRIC_CPU,
    METRIC_RESIDENT,
    METRIC_OPEN_FDS,
    METRIC_MAX_FDS,
    METRIC_COUNT
};

static const struct metrics_family families[METRIC_COUNT] = {
    [METRIC_INFO] = { "nonbis_info", "gauge", "1, with the version and the kind of the store." },
    [METRIC_READY] = { "nonbis_ready", "gauge", "1 when /readyz answers 200, else 0." },
    [METRIC_DURABLE] = { "nonbis_store_durable", "gauge",
                         "1 when records survive the end of the process, 0 with store=memory." },
    [METRIC_REQUESTS] = { "nonbis_requests_total", "counter",
                          "Requests that have ended, by route and by the word for how they ended." },
    [METRIC_UNKNOWN] = { "nonbis_unknown_total", "counter",
                         "Executions of which nobody knows whether they happened, or whose outcome is not stored." },
    [METRIC_RUNNING] = { "nonbis_running", "gauge",
                         "Commands that run or whose claim is asked for; bounded by running_max." },
    [METRIC_WAITERS] = { "nonbis_waiters", "gauge",
                         "Requests that wait for a running command; bounded by waiters_max." },
    [METRIC_QUOTA_TENANTS] = { "nonbis_quota_tenants", "gauge",
                               "Tenants that have used some of their quota and not got it back yet." },
    [METRIC_CONNECTIONS] = { "nonbis_connections", "gauge", "Open client connections; bounded by connections_max." },
    [METRIC_LOOP_CONNECTIONS] = { "nonbis_loop_connections_total", "counter",
                                  "Client connections that each loop was given." },
    [METRIC_ADDED] = { "nonbis_added_seconds", "histogram",
                       "What nonbis adds to an executed request: from its last byte to its answer, without the "
                       "handler." },
    [METRIC_REPLAY] = { "nonbis_replay_seconds", "histogram",
                        "From the last byte of a repeat to its replay, without waiting for a running command." },
    [METRIC_CACHED] = { "nonbis_repeats_cached_total", "counter",
                        "Repeats that were answered from memory, without asking the store." },
    [METRIC_CACHE_BYTES] = { "nonbis_replay_cache_bytes", "gauge",
                             "Memory of answers kept for replays; bounded by replay_cache." },
    [METRIC_UPSTREAM_CONNECTIONS] = { "nonbis_upstream_connections_total", "counter",
                                      "Connections to the handler that requests were sent on: made for them, or "
                                      "kept." },
    [METRIC_RECORDS] = { "nonbis_records", "gauge", "Records in the store, by the state that was last written." },
    [METRIC_COMMIT] = { "nonbis_store_commit_seconds", "histogram", "How long commits that wrote something took." },
    [METRIC_BATCH_TASKS] = { "nonbis_store_batch_tasks", "histogram",
                             "How many claims, outcomes and look-ups went into one transaction." },
    [METRIC_QUEUE] = { "nonbis_store_queue", "gauge", "What waits for the store thread." },
    [METRIC_COMMIT_AGE] = { "nonbis_store_last_commit_age_seconds", "gauge",
                            "Since the last commit that wrote something and was durable; one is made every 2 s." },
    [METRIC_NO_RESERVE] = { "nonbis_store_no_reserve", "gauge",
                            "1 while the room for outcomes is not there and new commands are refused, else 0." },
    [METRIC_SWEEP_BEHIND] = { "nonbis_store_sweep_behind_seconds", "gauge",
                              "For how long the oldest expired record that is not cleaned up has been due." },
    [METRIC_START_TIME] = { "process_start_time_seconds", "gauge", "When the process started, in seconds since 1970." },
    [METRIC_CPU] = { "process_cpu_seconds_total", "counter", "Processor time that the process has used." },
    [METRIC_RESIDENT] = { "process_resident_memory_bytes", "gauge", "Memory of the process that is in RAM." },
    [METRIC_OPEN_FDS] = { "process_open_fds", "gauge", "Descriptors that the process has open." },
    [METRIC_MAX_FDS] = { "process_max_fds", "gauge", "Descriptors that the process may have open." },
};

enum { MILLISECONDS = 1000 };

/* --- one line, one family --- */

static void page_begin(struct buf *out, enum metric metric)
{
    metrics_write_family(out, &families[metric]);
}

static void page_labelled(struct buf *out, enum metric metric, const char *label, const char *value, uint64_t number)
{
    const struct metrics_label one = { label, view_of(value) };
    metrics_write_sample(out, &families[metric], &one, 1, number, 1);
}

static void page_number(struct buf *out, enum metric metric, uint64_t parts, uint64_t per)
{
    page_begin(out, metric);
    metrics_write_sample(out, &families[metric], NULL, 0, parts, per);
}

static void page_histogram(struct buf *out, enum metric metric, const struct metrics_bounds *bounds,
                           const struct metrics_histogram *histogram)
{
    page_begin(out, metric);
    metrics_write_histogram(out, &families[metric], bounds, histogram);
}

/* --- requests --- */

/* Told although it is 0, since a counter that appears with its first event hides that one from an alert. */
static bool is_always_told(enum metrics_row row, enum result result)
{
    if (result == result_of_problem(PROBLEM_KEY_REUSED) || result == result_of_problem(PROBLEM_QUOTA_EXCEEDED)) {
        return row >= METRICS_ROUTES;
    }
    switch (result) {
    case RESULT_EXECUTED:
    case RESULT_REPLAYED:
    case RESULT_IN_PROGRESS:
    case RESULT_UNKNOWN:
    case RESULT_NOT_EXECUTED:
    case RESULT_UNRECORDED:
    case RESULT_UNAVAILABLE:
        return row >= METRICS_ROUTES;
    case RESULT_PASSED:
    case RESULT_FAILED:
    case RESULT_TIMEOUT:
        return row == METRICS_PASS_THROUGH;
    default:
        return false;
    }
}

/* Of several numbers with one word, the first stands for all. */
static void find_words(enum result word_of[RESULT_COUNT])
{
    for (int result = 0; result < RESULT_COUNT; result++) {
        int first = 0;
        while (strcmp(result_name((enum result) first), result_name((enum result) result)) != 0) {
            first++;
        }
        word_of[result] = (enum result) first;
    }
}

static uint64_t sum_requests(const struct shards *shards, enum metrics_row row, enum result result)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < shards->count; i++) {
        sum += metrics_requests(shards->items[i].flow.metrics, row, result);
    }
    return sum;
}

static void page_row(struct buf *out, const struct shards *shards, enum metrics_row row, struct view route,
                     const enum result word_of[RESULT_COUNT])
{
    uint64_t sums[RESULT_COUNT] = { 0 };
    bool told[RESULT_COUNT] = { false };
    for (int result = 0; result < RESULT_COUNT; result++) {
        sums[word_of[result]] += sum_requests(shards, row, (enum result) result);
        told[word_of[result]] = told[word_of[result]] || is_always_told(row, (enum result) result);
    }
    for (int result = 0; result < RESULT_COUNT; result++) {
        const struct metrics_label labels[] = { { "route", route },
                                                { "result", view_of(result_name((enum result) result)) } };
        if (told[result] || sums[result] > 0) {
            metrics_write_sample(out, &families[METRIC_REQUESTS], labels, 2, sums[result], 1);
        }
    }
}

static void page_requests(struct buf *out, const struct shards *shards, const struct routes *routes)
{
    enum result word_of[RESULT_COUNT];
    struct buf text;
    buf_init(&text, SIZE_MAX);
    find_words(word_of);
    page_begin(out, METRIC_REQUESTS);
    for (unsigned i = 0; i < routes->count; i++) {
        const struct route *route = &routes->items[i];
        buf_clear(&text); /* without its options, which may change while the route stays */
        buf_printf(&text, "%.*s %.*s", VIEW_ARGS(route->method), VIEW_ARGS(route->pattern));
        page_row(out, shards, metrics_row_of(route), buf_view(&text), word_of);
    }
    page_row(out, shards, METRICS_PASS_THROUGH, VIEW("pass-through"), word_of);
    page_row(out, shards, METRICS_OWN, VIEW("/_nonbis"), word_of);
    page_row(out, shards, METRICS_NOWHERE, VIEW("none"), word_of);
    buf_fini(&text);
}

/* What the last run left in progress was found at this start, before there was a loop. */
static void page_unknown(struct buf *out, const struct shards *shards, unsigned recovered)
{
    page_begin(out, METRIC_UNKNOWN);
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++) {
        uint64_t sum = cause == CAUSE_CRASH ? recovered : 0;
        for (unsigned i = 0; i < shards->count; i++) {
            sum += metrics_read(&shards->items[i].flow.metrics->unknown[cause]);
        }
        page_labelled(out, METRIC_UNKNOWN, "cause", cause_name((enum cause) cause), sum);
    }
}

static void page_loops(struct buf *out, const struct shards *shards)
{
    page_begin(out, METRIC_LOOP_CONNECTIONS);
    for (unsigned i = 0; i < shards->count; i++) {
        char number[16];
        (void) snprintf(number, sizeof number, "%u", i);
        page_labelled(out, METRIC_LOOP_CONNECTIONS, "loop", number,
                      metrics_read(&shards->items[i].flow.metrics->connections));
    }
}

static void page_times(struct buf *out, const struct shards *shards)
{
    struct metrics_histogram added = { .sum = 0 }, replay = { .sum = 0 };
    for (unsigned i = 0; i < shards->count; i++) {
        metrics_histogram_add(&added, &shards->items[i].flow.metrics->added);
        metrics_histogram_add(&replay, &shards->items[i].flow.metrics->replay);
    }
    page_histogram(out, METRIC_ADDED, &metrics_answer_bounds, &added);
    page_histogram(out, METRIC_REPLAY, &metrics_answer_bounds, &replay);
}

static void page_cache(struct buf *out, const struct shards *shards)
{
    uint64_t cached = 0, bytes = 0;
    for (unsigned i = 0; i < shards->count; i++) {
        cached += metrics_read(&shards->items[i].flow.metrics->cached);
        bytes += replay_cache_bytes(shards->items[i].flow.replay_cache);
    }
    page_number(out, METRIC_CACHED, cached, 1);
    page_number(out, METRIC_CACHE_BYTES, bytes, 1);
}

/* --- the parts --- */

static void page_upstream(struct buf *out, const struct shards *shards)
{
    uint64_t made = 0, reused = 0;
    for (unsigned i = 0; i < shards->count; i++) {
        struct upstream_figures figures;
        upstream_figures(shards->items[i].flow.upstream, &figures);
        made += figures.connects;
        reused += figures.reuses;
    }
    page_begin(out, METRIC_UPSTREAM_CONNECTIONS);
    page_labelled(out, METRIC_UPSTREAM_CONNECTIONS, "kind", "new", made);
    page_labelled(out, METRIC_UPSTREAM_CONNECTIONS, "kind", "reused", reused);
}

static void page_store(struct buf *out, const struct commons *commons)
{
    struct store_worker_figures figures;
    store_worker_figures(commons->worker, &figures);
    page_begin(out, METRIC_RECORDS);
    for (int state = RECORD_ABSENT + 1; state < RECORD_STATE_COUNT; state++) {
        page_labelled(out, METRIC_RECORDS, "state", record_state_name((enum record_state) state),
                      store_records(commons->live, (enum record_state) state));
    }
    page_histogram(out, METRIC_COMMIT, &store_commit_bounds, &figures.commit_time);
    page_histogram(out, METRIC_BATCH_TASKS, &store_batch_bounds, &figures.batch_tasks);
    page_begin(out, METRIC_QUEUE);
    page_labelled(out, METRIC_QUEUE, "kind", "outcomes", figures.queued_outcomes);
    page_labelled(out, METRIC_QUEUE, "kind", "claims", figures.queued_claims);
    page_labelled(out, METRIC_QUEUE, "kind", "reads", figures.queued_reads);
    page_number(out, METRIC_COMMIT_AGE, (uint64_t) figures.last_commit_age_ms, MILLISECONDS);
    page_number(out, METRIC_NO_RESERVE, figures.no_room ? 1 : 0, 1);
    page_number(out, METRIC_SWEEP_BEHIND, (uint64_t) figures.sweep_behind_ms, MILLISECONDS);
}

static void page_process(struct buf *out, int64_t started_wall_ms)
{
    struct process_figures figures;
    process_figures(&figures);
    page_number(out, METRIC_START_TIME, (uint64_t) started_wall_ms, MILLISECONDS);
    page_number(out, METRIC_CPU, figures.cpu_us, METRICS_MICROSECONDS);
    if (figures.resident_bytes > 0) {
        page_number(out, METRIC_RESIDENT, figures.resident_bytes, 1);
    }
    if (figures.open_fds > 0) {
        page_number(out, METRIC_OPEN_FDS, figures.open_fds, 1);
    }
    page_number(out, METRIC_MAX_FDS, figures.max_fds, 1);
}

void metrics_page_write(const struct metrics_facts *facts, struct buf *out)
{
    const struct shards *shards = facts->shards;
    const struct commons *commons = shards->items[0].flow.commons;
    bool durable = strcmp(commons->settings->store, "memory") != 0;
    const struct metrics_label info[] = { { "version", VIEW(NONBIS_VERSION) },
                                          { "store", view_of(durable ? "sqlite" : "memory") } };
    page_begin(out, METRIC_INFO);
    metrics_write_sample(out, &families[METRIC_INFO], info, 2, 1, 1);
    page_number(out, METRIC_READY, facts->ready ? 1 : 0, 1);
    page_number(out, METRIC_DURABLE, durable ? 1 : 0, 1);
    page_requests(out, shards, &commons->settings->routes);
    page_unknown(out, shards, commons->store.recovered);
    page_number(out, METRIC_RUNNING, atomic_load(&commons->running), 1);
    page_number(out, METRIC_WAITERS, waiter_count_now(commons->waiter_count), 1);
    page_number(out, METRIC_QUOTA_TENANTS, quotas_tracked(commons->quotas), 1);
    page_number(out, METRIC_CONNECTIONS, atomic_load(&commons->connections), 1);
    page_loops(out, shards);
    page_times(out, shards);
    page_cache(out, shards);
    page_upstream(out, shards);
    page_store(out, commons);
    page_process(out, facts->started_wall_ms);
}
