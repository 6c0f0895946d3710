/* main.c - nonbisd, read aloud: settings, store, listeners, run, and everything undone in reverse. */
#include "server/api/json_body.h"
#include "server/base/clock.h"
#include "server/base/memory.h"
#include "server/base/process.h"
#include "server/base/supervisor.h"
#include "server/digest/digest.h"
#include "server/flow/health.h"
#include "server/flow/itself.h"
#include "server/flow/stop.h"
#include "server/store/bench.h"
#include "server/store/check.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    EXIT_ADDRESS = 69,
    EXIT_SOFTWARE_START = 70,
    EXIT_OUTPUT = 70,
    EXIT_CONFIGURATION = 78,
    MAIN_TEXT_MAX =
        16 * 1024 * 1024, /* longer than all arguments that the kernel takes, also as --print-config writes them */
    HEAP_STEP_BYTES = 256 * 1024,
    DESCRIPTORS_OWN = 128, /* of the first loop, the store and the logs */
    DESCRIPTORS_LOOP = 16, /* of each further loop */
    ADMIN_CONNECTIONS_MAX = 64,
    SWEEP_EVERY_MS = 1000
};

struct server {
    struct settings settings;
    int64_t started_wall_ms;
    struct store *store;
    struct store_info store_info;
    struct commons commons;
    struct shards shards;
    struct acceptor *data_acceptor, *admin_acceptor; /* until the stop has them */
    struct edge *admin;                              /* NULL: off */
    struct health health;
    struct stop stop;
};

static int fail(int exit_code, const struct buf *error)
{
    (void) fprintf(stderr, "nonbisd: %.*s\n", VIEW_ARGS(buf_view(error)));
    return exit_code;
}

static void print(const struct buf *text)
{
    if (text->len > 0) { /* else there may be no bytes to point to */
        (void) fwrite(text->ptr, 1, text->len, stdout);
    }
}

/* What was asked for and did not arrive whole must not look as if it had. */
static int end_output(int exit_code, const struct buf *text)
{
    bool written = fflush(stdout) == 0;
    int error = errno;
    if (written && ferror(stdout) == 0 && !text->failed) {
        return exit_code;
    }
    (void) fprintf(stderr, "nonbisd: could not write all of it to standard output: %s\n",
                   written ? "an earlier part of it was lost" : strerror(error));
    return exit_code != 0 ? exit_code : EXIT_OUTPUT;
}

/* One line about a value that cannot be used: where it was given, and why. */
static int tell_wrong(const struct server *server, const char *setting, const struct buf *why, struct buf *errors)
{
    settings_place_write(&server->settings, setting, errors);
    buf_append_text(errors, " ");
    buf_append(errors, buf_view(why));
    buf_append_text(errors, "\n");
    return EXIT_CONFIGURATION;
}

/* What can be told wrong of a pair, when each of it is good. */
static int check_pairs(const struct server *server, const struct upstream_target *target, struct buf *why,
                       struct buf *errors)
{
    const struct settings *settings = &server->settings;
    int exit_code = 0;
    buf_clear(why);
    if (itself_is_taken(settings->listen, settings->admin)) {
        buf_printf(why, "\"%s\": listen (%s) has this address already; give each its own port", settings->admin,
                   settings->listen);
        exit_code = tell_wrong(server, "admin", why, errors);
    }
    buf_clear(why);
    if (target != NULL && itself_is_target(settings->listen, target->host, target->port)) {
        buf_printf(why, "\"%s\": this is the server itself (it listens on %s); name the handler's address",
                   settings->upstream, settings->listen);
        exit_code = tell_wrong(server, "upstream", why, errors);
    }
    return exit_code;
}

/* What can be told wrong of addresses without touching them: all of it, one line each. */
static int check_addresses(const struct server *server, struct buf *errors)
{
    const struct settings *settings = &server->settings;
    struct upstream_target target;
    struct buf why;
    int exit_code = 0;
    buf_init(&why, MAIN_TEXT_MAX);
    if (!acceptor_check_address(settings->listen, &why)) {
        exit_code = tell_wrong(server, "listen", &why, errors);
    }
    buf_clear(&why);
    if (strcmp(settings->admin, "off") != 0 && !acceptor_check_address(settings->admin, &why)) {
        exit_code = tell_wrong(server, "admin", &why, errors);
    }
    buf_clear(&why);
    bool has_target = settings->upstream[0] != '\0';
    if (has_target &&
        !(upstream_parse_url(settings->upstream, &target, &why) && upstream_prepare(&target, NULL, &why))) {
        exit_code = tell_wrong(server, "upstream", &why, errors);
        has_target = false;
    }
    if (exit_code == 0) {
        exit_code = check_pairs(server, has_target ? &target : NULL, &why, errors);
    }
    buf_fini(&why);
    return exit_code;
}

/* The folder of the default store is ours to make; one that somebody named must exist. Failures show when the store is opened. */
static void make_state_folder(const struct settings *settings)
{
    for (size_t i = 0; i < setting_table_count; i++) {
        if (setting_table[i].offset == offsetof(struct settings, store) && settings->sources[i] != SOURCE_DEFAULT) {
            return;
        }
    }
    char *path = memory_text(view_of(settings->store));
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void) mkdir(path, 0700);
        *slash = '/';
    }
    free(path);
}

/* Recovery does not know the route of a command: it keeps each as long as any route promises. */
static struct retention longest_retention(const struct settings *settings)
{
    struct retention longest = { .ttl_ms = settings->ttl_ms, .tombstone_ttl_ms = settings->tombstone_ttl_ms };
    for (unsigned i = 0; i < settings->routes.count; i++) {
        const struct retention *route = &settings->routes.items[i].retention;
        longest.ttl_ms = route->ttl_ms > longest.ttl_ms ? route->ttl_ms : longest.ttl_ms;
        longest.tombstone_ttl_ms =
            route->tombstone_ttl_ms > longest.tombstone_ttl_ms ? route->tombstone_ttl_ms : longest.tombstone_ttl_ms;
    }
    return longest;
}

static struct store_options store_options_of(const struct settings *settings)
{
    return (struct store_options){
        .path = settings->store,
        .identity = { .tenant_source = view_of(settings->tenant),
                      .guard = view_of(settings->guard.text),
                      .fingerprint_version = FINGERPRINT_VERSION },
        .max_downtime_ms = settings->max_downtime_ms,
        .crash_retention = longest_retention(settings),
        .reserve_bytes = settings->store_reserve,
    };
}

static int open_store(struct server *server, struct buf *error)
{
    const struct settings *settings = &server->settings;
    const struct store_options options = store_options_of(settings);
    int exit_code = 0;
    make_state_folder(settings);
    if (strcmp(settings->store, "memory") == 0) {
        server->store = store_open_memory(&options);
        log_message(LOG_WARN, "store", "memory: every key is forgotten when the process ends");
    } else {
        server->store = store_open_sqlite(&options, error, &exit_code);
    }
    if (server->store == NULL) {
        return exit_code;
    }
    server->store_info = server->store->info;
    if (server->store_info.recovered > 0) {
        unsigned count = server->store_info.recovered;
        log_message(LOG_WARN, "recovery", "%u command%s in progress when the last run ended; %s outcome is unknown",
                    count, count == 1 ? " was" : "s were", count == 1 ? "its" : "their");
    }
    return 0;
}

static void start_worker(struct server *server)
{
    const struct settings *settings = &server->settings;
    const struct store_worker_options options = {
        .claims_max = (unsigned) settings->store_queue_max,
        .reads_max = (unsigned) settings->store_queue_max,
        .sweep_batch = (unsigned) settings->sweep_batch,
        .sweep_every_ms = SWEEP_EVERY_MS,
        .wait_max_ms = settings->wait_max_ms,
        .failed = stop_on_store_failed,
        .context = &server->stop,
    };
    server->commons.worker = store_worker_start(server->store, &options);
}

static void adopt_operator(void *context, int fd, const void *sockaddr, unsigned len)
{
    struct server *server = context;
    edge_adopt(server->admin, fd, sockaddr, len);
}

/* Listening comes first, so that an address in use leaves no new store behind; the edges that take connections over are made
 * later, but before a loop runs. */

static int open_listeners(struct server *server, struct buf *error)
{
    const struct settings *settings = &server->settings;
    struct upstream_target target;
    struct loop *loop = server->shards.items[0].loop;
    server->data_acceptor = acceptor_open(loop, settings->listen, shards_deal, &server->shards, error);
    if (server->data_acceptor == NULL) {
        return EXIT_ADDRESS;
    }
    /* Asked again of the port that the kernel chose. */
    const char *listen = acceptor_address(server->data_acceptor);
    if (upstream_parse_url(settings->upstream, &target, error) && itself_is_target(listen, target.host, target.port)) {
        buf_printf(error, "--upstream %s is this server itself (it listens on %s): name the handler's address",
                   settings->upstream, listen);
        return EXIT_ADDRESS;
    }
    if (strcmp(settings->admin, "off") == 0) {
        return 0;
    }
    server->admin_acceptor = acceptor_open(loop, settings->admin, adopt_operator, server, error);
    return server->admin_acceptor != NULL ? 0 : EXIT_ADDRESS;
}

static void make_admin_edge(struct server *server)
{
    const struct settings *settings = &server->settings;
    const struct edge_options options = {
        .connections_max = ADMIN_CONNECTIONS_MAX,
        .client_idle_ms = settings->client_idle_ms,
        .head_deadline_ms = settings->header_deadline_ms,
        .body_deadline_ms = settings->body_deadline_ms,
        .body_max = (size_t) settings->body_max,
    };
    if (server->admin_acceptor != NULL) {
        server->admin = edge_new(server->shards.items[0].loop, &options, &health_handler, &server->health);
    }
}

/* Every client takes a descriptor, and its request, passed through or executed, another one; an execution goes on when its client has left. */
static void reserve_descriptors(const struct settings *settings)
{
    int64_t wanted = 2 * settings->connections_max + settings->running_max + DESCRIPTORS_OWN +
                     (settings->loops - 1) * DESCRIPTORS_LOOP;
    int64_t limit = process_raise_descriptor_limit(wanted);
    if (limit < wanted) {
        log_message(LOG_WARN, "descriptors",
                    "this process may open %lld descriptors, and connections_max and running_max can take %lld: raise "
                    "its limit "
                    "(ulimit -n, LimitNOFILE=) or lower them",
                    (long long) limit, (long long) wanted);
    }
}

static void say_started(const struct server *server)
{
    const struct settings *settings = &server->settings;
    if (settings->guard.count > 0) {
        log_message(LOG_INFO, "note",
                    "a repeat under another %s is refused (setting guard); clients whose tokens change between an "
                    "attempt and its "
                    "retry need --set guard= and, so that callers stay apart, --set tenant=header:NAME",
                    settings->guard.text);
    }
    struct log_line line;
    char *store = realpath(settings->store, NULL); /* "memory" is no path, or one that nobody meant */
    bool is_file = strcmp(settings->store, "memory") != 0 && store != NULL;
    log_begin_always(&line, LOG_INFO, "start");
    log_text(&line, "listen", acceptor_address(server->data_acceptor));
    log_text(&line, "admin", server->admin_acceptor != NULL ? acceptor_address(server->admin_acceptor) : "off");
    log_text(&line, "upstream", settings->upstream);
    log_text(&line, "store", is_file ? store : settings->store);
    log_text(&line, "kind", server->store_info.description);
    log_int(&line, "recovered", server->store_info.recovered);
    log_text(&line, "version", NONBIS_VERSION);
    log_end(&line);
    free(store);
}

static void close_all(struct server *server)
{
    health_fini(&server->health);
    stop_fini(&server->stop);
    edge_free(server->admin);
    shards_close(&server->shards);
    store_worker_stop(server->commons.worker);
    shards_free(&server->shards);
    commons_fini(&server->commons);
}

/* Nothing but this was started yet. */
static int serve_not(struct server *server, int exit_code, const struct buf *error)
{
    acceptor_close(server->data_acceptor);
    acceptor_close(server->admin_acceptor);
    shards_free(&server->shards);
    return fail(exit_code, error);
}

static int serve(struct server *server, struct buf *error)
{
    (void) mallopt(M_ARENA_MAX, (int) server->settings.loops + 1); /* and the store thread */
    shards_new(&server->shards, (unsigned) server->settings.loops);
    int exit_code = open_listeners(server, error);
    if (exit_code == 0) {
        exit_code = open_store(server, error);
    }
    if (exit_code != 0) {
        return serve_not(server, exit_code, error);
    }
    commons_init(&server->commons, &server->settings, server->store);
    stop_init(&server->stop, &server->shards);
    start_worker(server);
    if (shards_open(&server->shards, &server->commons, error)) {
        health_init(&server->health, &server->shards, server->settings.store, server->started_wall_ms);
        make_admin_edge(server);
        stop_own(&server->stop, server->data_acceptor, server->admin_acceptor, server->admin);
        reserve_descriptors(&server->settings);
        say_started(server);
        supervisor_tell_ready(); /* who connects from now on waits in the listeners' queue at most */
        shards_run(&server->shards);
        exit_code = server->stop.exit_code;
        log_message(LOG_INFO, "exit", "code %d", exit_code);
    } else {
        exit_code = fail(EXIT_ADDRESS, error);
        stop_own(&server->stop, server->data_acceptor, server->admin_acceptor, NULL);
        health_init(&server->health, &server->shards, server->settings.store, server->started_wall_ms);
    }
    close_all(server);
    log_flush(); /* what was held, also by the closing */
    return exit_code;
}

/* --bench-store and --check-store. */
static int look_at_store(const struct server *server, enum settings_action action)
{
    const struct settings *settings = &server->settings;
    const struct store_options options = store_options_of(settings);
    struct buf text, error;
    int exit_code = EXIT_CONFIGURATION;
    buf_init(&text, MAIN_TEXT_MAX);
    buf_init(&error, MAIN_TEXT_MAX);
    if (strcmp(settings->store, "memory") == 0) {
        buf_append_text(&error, action == ACTION_CHECK_STORE
                                    ? "--check-store: the store is memory, which is gone with its process; give a FILE"
                                    : "--bench-store: the store is memory, which has no disk; give --store FILE");
    } else if (action == ACTION_CHECK_STORE) {
        exit_code = store_check(settings->store, &text, &error);
    } else {
        make_state_folder(settings);
        exit_code = store_bench(&options, settings->bench_each_ms, &text, &error);
    }
    print(&text);
    if (exit_code != 0) {
        (void) fail(exit_code, &error);
    }
    exit_code = end_output(exit_code, &text);
    buf_fini(&text);
    buf_fini(&error);
    return exit_code;
}

static int act(struct server *server, enum settings_action action, struct buf *text)
{
    switch (action) {
    case ACTION_HELP:
        settings_help(text);
        print(text);
        return end_output(0, text);
    case ACTION_VERSION:
        (void) printf("nonbisd %s\n", NONBIS_VERSION);
        return end_output(0, text);
    case ACTION_PRINT_CONFIG:
        settings_print(&server->settings, text);
        print(text);
        return end_output(0, text);
    case ACTION_BENCH_STORE:
    case ACTION_CHECK_STORE:
        return look_at_store(server, action);
    case ACTION_CHECK:
        (void) printf("the configuration is valid\n");
        return end_output(0, text);
    case ACTION_RUN:
        break;
    }
    return serve(server, text);
}

/* What allocates for itself ends with the process as well, instead of an answer by halves (server/base/memory.h). libmicrohttpd, libuv and SQLite
 * report an error, which is looked at. */
static void memory_for_all(void)
{
    json_body_end_without_memory();
    buf_without_memory = memory_end;
}

int main(int argc, char **argv)
{
    static struct server server;
    extern char **environ;
    struct buf text;
    enum settings_action action = ACTION_RUN;
    buf_init(&text, MAIN_TEXT_MAX);
    memory_for_all();
    process_open_standard_descriptors();
    server.started_wall_ms = clock_wall_ms();
    (void) umask(0077);
    (void) signal(SIGPIPE, SIG_IGN);
    (void) signal(SIGXFSZ, SIG_IGN); /* a file that has reached its limit is told by the write that failed */
    (void) signal(SIGHUP, SIG_IGN);  /* there is nothing to read again yet, and a closed terminal is no reason to end */
    (void) mallopt(M_TOP_PAD, HEAP_STEP_BYTES);            /* heaps grow in larger steps: fewer system calls */
    (void) mallopt(M_TRIM_THRESHOLD, 4 * HEAP_STEP_BYTES); /* and are not cut after each batch */
    int exit_code = settings_read(&server.settings, &action, argc, argv, environ, &text);
    bool asks_about_itself = action == ACTION_HELP || action == ACTION_VERSION;
    int addresses = asks_about_itself ? 0 : check_addresses(&server, &text);
    exit_code = exit_code != 0 ? exit_code : addresses;
    if (exit_code != 0) {
        (void) fwrite(text.ptr, 1, text.len, stderr);
    } else if (!digest_init()) {
        (void) fprintf(stderr, "nonbisd: the random source of this machine cannot be used; nothing was started\n");
        exit_code = EXIT_SOFTWARE_START;
    } else {
        log_setup(server.settings.log_level, server.settings.log_format);
        exit_code = act(&server, action, &text);
    }
    settings_fini(&server.settings);
    buf_fini(&text);
    return exit_code;
}
