/* table.c - every setting of the server, once. Flags, environment, --help, --print-config and docs/settings.md follow this
 * table; tools/check-settings fails when a row has no test or the page lacks it. Read-only; any thread.
 *
 * `help` completes the sentence "this is the ..."; it stays under 60 bytes, so that --help keeps its columns. */
#include "schema/limits.h"
#include "server/config/values.h"
#include "server/core/quota.h"

#define AT(field) offsetof(struct settings, field)

#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define YEAR (365 * DAY)

static const char *const level_words[] = { "error", "warn", "info", "debug", NULL };
static const char *const format_words[] = { "text", "json", NULL };

/* The two head limits share the connection's pool with the library; with these bounds no setting can overdraw it. */
static_assert(LIMIT_REQUEST_HEADER_MAX + LIMIT_RESPONSE_HEADER_MAX + LIMIT_POOL_RESERVE <= LIMIT_CONNECTION_POOL,
              "the largest request_header_max and response_header_max must fit the pool together");
static_assert((int) SETTING_NAMES_MAX == (int) LIMIT_GUARD_FIELDS, "a guard list must fit");

/* clang-format off */
const struct setting_row setting_table[] = {
    { .name = "listen", .kind = SETTING_TEXT, .offset = AT(listen), .default_text = "127.0.0.1:8620",
      .check = check_listen, .flag = "--listen",
      .help = "address for clients; port 0: the kernel chooses",
      .test = "setting_listen" },
    { .name = "admin", .kind = SETTING_TEXT, .offset = AT(admin), .default_text = "127.0.0.1:8621",
      .check = check_admin, .flag = "--admin",
      .help = "address for operators (health), or off",
      .test = "setting_admin" },
    { .name = "upstream", .kind = SETTING_TEXT, .offset = AT(upstream), .default_text = "",
      .check = check_upstream, .flag = "--upstream",
      .help = "handler: http://HOST[:PORT], https://..., unix:/PATH",
      .test = "setting_upstream" },
    { .name = "store", .kind = SETTING_TEXT, .offset = AT(store), .default_text = "nonbis.db in the state directory",
      .flag = "--store",
      .help = "file of the records; memory: forget them at exit",
      .test = "setting_store" },
    { .name = "server.loops", .kind = SETTING_COUNT_OF, .offset = AT(loops), .default_text = "1",
      .min = 1, .max = LIMIT_LOOPS,
      .help = "threads that serve clients, beside the one of the store",
      .test = "setting_server_loops" },
    { .name = "log_level", .kind = SETTING_WORD, .offset = AT(log_level), .default_text = "info",
      .words = level_words, .flag = "--log-level",
      .help = "least urgent lines that are written",
      .test = "setting_log_level" },
    { .name = "log_format", .kind = SETTING_WORD, .offset = AT(log_format), .default_text = "text",
      .words = format_words, .flag = "--log-format",
      .help = "form of a log line",
      .test = "setting_log_format" },

    { .name = "tenant", .kind = SETTING_TEXT, .offset = AT(tenant), .default_text = "none",
      .check = check_tenant,
      .help = "whose key it is: none, or header:NAME",
      .test = "setting_tenant" },
    { .name = "guard", .kind = SETTING_NAMES, .offset = AT(guard), .default_text = "Authorization,X-API-Key",
      .help = "credential fields that a repeat must match; \"\": off",
      .test = "setting_guard" },
    { .name = "ttl", .kind = SETTING_MS, .offset = AT(ttl_ms), .default_text = "24h",
      .min = SECOND, .max = 10 * YEAR,
      .help = "time for which an answer is replayed",
      .test = "setting_ttl" },
    { .name = "tombstone_ttl", .kind = SETTING_MS, .offset = AT(tombstone_ttl_ms), .default_text = "720h",
      .min = SECOND, .max = 10 * YEAR,
      .help = "time for which a key is remembered; at least ttl",
      .test = "setting_tombstone_ttl" },
    { .name = "max_downtime", .kind = SETTING_MS, .offset = AT(max_downtime_ms), .default_text = "24h",
      .min = 0, .max = YEAR,
      .help = "most that retention advances while the server is off",
      .test = "setting_max_downtime" },

    { .name = "connect_timeout", .kind = SETTING_MS, .offset = AT(connect_timeout_ms), .default_text = "2s",
      .min = 10, .max = MINUTE,
      .help = "time to reach the handler",
      .test = "setting_connect_timeout" },
    { .name = "answer_timeout", .kind = SETTING_MS, .offset = AT(answer_timeout_ms), .default_text = "30s",
      .min = 10, .max = HOUR,
      .help = "time after which a caller is told still-running",
      .test = "setting_answer_timeout" },
    { .name = "hard_timeout", .kind = SETTING_MS, .offset = AT(hard_timeout_ms), .default_text = "120s",
      .min = 10, .max = DAY,
      .help = "end of an execution; then its outcome is unknown",
      .test = "setting_hard_timeout" },
    { .name = "passthrough_timeout", .kind = SETTING_MS, .offset = AT(passthrough_timeout_ms), .default_text = "60s",
      .min = 10, .max = DAY,
      .help = "inactivity that ends an unprotected exchange",
      .test = "setting_passthrough_timeout" },
    { .name = "header_deadline", .kind = SETTING_MS, .offset = AT(header_deadline_ms), .default_text = "10s",
      .min = 100, .max = HOUR,
      .help = "time for a request head, from the start of the wait for it",
      .test = "setting_header_deadline" },
    { .name = "body_deadline", .kind = SETTING_MS, .offset = AT(body_deadline_ms), .default_text = "60s",
      .min = 100, .max = DAY,
      .help = "time for the body of a protected request to arrive",
      .test = "setting_body_deadline" },
    { .name = "client_idle", .kind = SETTING_MS, .offset = AT(client_idle_ms), .default_text = "75s",
      .min = SECOND, .max = HOUR,
      .help = "inactivity that closes a client's connection",
      .test = "setting_client_idle" },
    { .name = "upstream_idle", .kind = SETTING_MS, .offset = AT(upstream_idle_ms), .default_text = "1s",
      .min = 0, .max = 10 * MINUTE,
      .help = "age up to which a kept connection is used again",
      .test = "setting_upstream_idle" },
    { .name = "drain_timeout", .kind = SETTING_MS, .offset = AT(drain_timeout_ms), .default_text = "30s",
      .min = 0, .max = HOUR,
      .help = "time for running commands to finish at shutdown",
      .test = "setting_drain_timeout" },

    { .name = "body_max", .kind = SETTING_BYTES, .offset = AT(body_max), .default_text = "1MiB",
      .min = KIB, .max = 64 * MIB,
      .help = "longest body of a protected request",
      .test = "setting_body_max" },
    { .name = "response_keep_max", .kind = SETTING_BYTES, .offset = AT(response_keep_max), .default_text = "1MiB",
      .min = 0, .max = 64 * MIB,
      .help = "longest response body that is kept for replays",
      .test = "setting_response_keep_max" },
    { .name = "request_header_max", .kind = SETTING_BYTES, .offset = AT(request_header_max), .default_text = "8KiB",
      .min = KIB, .max = LIMIT_REQUEST_HEADER_MAX,
      .help = "longest request head",
      .test = "setting_request_header_max" },
    { .name = "response_header_max", .kind = SETTING_BYTES, .offset = AT(response_header_max), .default_text = "6KiB",
      .min = KIB, .max = LIMIT_RESPONSE_HEADER_MAX,
      .help = "longest response head",
      .test = "setting_response_header_max" },
    { .name = "connections_max", .kind = SETTING_COUNT_OF, .offset = AT(connections_max), .default_text = "4096",
      .min = 1, .max = 1000000,
      .help = "most client connections at a time",
      .test = "setting_connections_max" },
    { .name = "running_max", .kind = SETTING_COUNT_OF, .offset = AT(running_max), .default_text = "1024",
      .min = 1, .max = 100000,
      .help = "most executions at a time",
      .test = "setting_running_max" },
    { .name = "store_queue_max", .kind = SETTING_COUNT_OF, .offset = AT(store_queue_max), .default_text = "4096",
      .min = 1, .max = 1000000,
      .help = "most claims, and most look-ups, that wait for the store",
      .test = "setting_store_queue_max" },
    { .name = "wait_max", .kind = SETTING_MS, .offset = AT(wait_max_ms), .default_text = "30s",
      .min = 0, .max = 10 * MINUTE,
      .help = "longest wait for the outcome of a running command; 0: none",
      .test = "setting_wait_max" },
    { .name = "waiters_per_key", .kind = SETTING_COUNT_OF, .offset = AT(waiters_per_key), .default_text = "64",
      .min = 0, .max = 100000,
      .help = "most that wait for one command",
      .test = "setting_waiters_per_key" },
    { .name = "waiters_per_tenant", .kind = SETTING_COUNT_OF, .offset = AT(waiters_per_tenant), .default_text = "128",
      .min = 0, .max = 100000,
      .help = "most of one tenant that wait, where there are tenants",
      .test = "setting_waiters_per_tenant" },
    { .name = "waiters_max", .kind = SETTING_COUNT_OF, .offset = AT(waiters_max), .default_text = "512",
      .min = 0, .max = 100000,
      .help = "most that wait at a time; more are answered at once",
      .test = "setting_waiters_max" },
    { .name = "tenant_rate", .kind = SETTING_RATE, .offset = AT(tenant_rate), .default_text = "0",
      .min = 0, .max = QUOTA_RATE_MAX,
      .help = "new commands of a tenant, such as 100/s; 0: no limit",
      .test = "setting_tenant_rate" },
    { .name = "tenant_burst", .kind = SETTING_COUNT_OF, .offset = AT(tenant_burst), .default_text = "0",
      .min = 0, .max = QUOTA_BURST_MAX,
      .help = "most of them at once; 0: those of a second",
      .test = "setting_tenant_burst" },
    { .name = "tenant_in_flight", .kind = SETTING_COUNT_OF, .offset = AT(tenant_in_flight), .default_text = "0",
      .min = 0, .max = 100000,
      .help = "most executions of a tenant at a time; 0: no limit",
      .test = "setting_tenant_in_flight" },
    { .name = "replay_cache", .kind = SETTING_BYTES, .offset = AT(replay_cache), .default_text = "32MiB",
      .min = 0, .max = 16 * KIB * MIB,
      .help = "memory for answers that are replayed often; 0: none",
      .test = "setting_replay_cache" },
    { .name = "store_reserve", .kind = SETTING_BYTES, .offset = AT(store_reserve), .default_text = "16MiB",
      .min = 0, .max = 64 * KIB * MIB,
      .help = "disk kept free for outcomes of running commands; 0: none",
      .test = "setting_store_reserve" },
    { .name = "sweep_batch", .kind = SETTING_COUNT_OF, .offset = AT(sweep_batch), .default_text = "100",
      .min = 1, .max = 10000,
      .help = "most expired records removed in one commit",
      .test = "setting_sweep_batch" },

    { .name = "allow_close_delimited", .kind = SETTING_BOOL, .offset = AT(allow_close_delimited), .default_text = "off",
      .help = "a response that ends only by close counts as whole",
      .test = "setting_allow_close_delimited" },
    { .name = "problem_prefix", .kind = SETTING_TEXT, .offset = AT(problem_prefix), .default_text = "urn:nonbis:problem:",
      .check = check_problem_prefix,
      .help = "start of a problem's type",
      .test = "setting_problem_prefix" },
};
/* clang-format on */

const size_t setting_table_count = sizeof(setting_table) / sizeof(setting_table[0]);
static_assert(sizeof(setting_table) / sizeof(setting_table[0]) <= SETTING_ROWS_MAX, "raise SETTING_ROWS_MAX");

/* Flags may be written with dashes, variables have underscores for dots. */
static bool name_byte_fits(char given, char have)
{
    return given == have || (given == '-' && have == '_') || (given == '_' && have == '.');
}

const struct setting_row *setting_find(struct view name)
{
    for (size_t row = 0; row < setting_table_count; row++) {
        const char *have = setting_table[row].name;
        size_t at = 0;
        while (at < name.len && have[at] != '\0' && name_byte_fits(name.ptr[at], have[at])) {
            at++;
        }
        if (at == name.len && have[at] == '\0') {
            return &setting_table[row];
        }
    }
    return NULL;
}
