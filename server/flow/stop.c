/* stop.c - see stop.h. */
#include "server/flow/stop.h"

#include "server/base/memory.h"
#include "server/base/supervisor.h"
#include "server/flow/late.h"
#include "server/flow/own.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    STOP_EXIT_STORE = 74, /* the store failed while running: a restart reads the truth */
    STOP_EXIT_FORCED = 1, /* a second signal */
    STOP_POLL_MS = 5,     /* how often the last answers are looked after */
    STOP_LAST_ANSWERS_MS = 2000,
    STOP_RECORD_MS = 10000, /* after drain_timeout: for the last records to become durable */
    STOP_CLOSE_MS = 8000,   /* for what comes at the end, on a slow disk: the log is emptied */
};

/* --- one loop's part, on its own thread --- */

static void part_on_closing(void *context)
{
    struct stop_part *part = context;
    unsigned requests = edge_requests(part->shard->edge) + (part->admin != NULL ? edge_requests(part->admin) : 0);
    if (requests == 0 || loop_now_ms(part->shard->loop) - part->closing_since_ms > STOP_LAST_ANSWERS_MS) {
        loop_post(part->stop->loop, &part->closed);
        return;
    }
    loop_timer_start(&part->closing, STOP_POLL_MS);
}

/* Nothing runs here, or no more: what came after the report of that is waited for as well. */
static void part_on_quiet(void *context)
{
    struct stop_part *part = context;
    struct flow *flow = &part->shard->flow;
    if (flow->draining && !part->told_quiet) {
        part->told_quiet = true;
        loop_post(part->stop->loop, &part->quiet);
    }
    if (!part->close_ordered || part->is_closing) {
        return;
    }
    part->is_closing = true;
    flow->stopped = true; /* what comes from now on could not be answered, since its connection is being closed */
    (void) command_stop_all(flow); /* what is left has not arrived whole: nothing has happened yet */
    edge_quiesce(part->shard->edge);
    if (part->admin != NULL) {
        edge_quiesce(part->admin);
    }
    part->closing_since_ms = loop_now_ms(part->shard->loop);
    loop_timer_start(&part->closing, 0);
}

static void part_check_quiet(struct stop_part *part)
{
    if (flow_is_quiet(&part->shard->flow)) {
        part_on_quiet(part);
    }
}

static void part_deliver_drain(struct loop_message *message)
{
    struct stop_part *part = LIST_ITEM(message, struct stop_part, drain);
    part->shard->flow.draining = true;
    part->shard->flow.draining_reason = part->stop->reason;
    part_check_quiet(part);
}

static void part_deliver_cut(struct loop_message *message)
{
    struct stop_part *part = LIST_ITEM(message, struct stop_part, cut);
    struct flow *flow = &part->shard->flow;
    if (part->is_closing) {
        return; /* nothing is left to be cut */
    }
    flow->stopped = true;
    size_t relays = flow->relays.count, running = command_stop_all(flow);
    log_message(LOG_WARN, "stop",
                "drain_timeout is over: %zu command%s recorded unknown, %zu pass-through request%s cut", running,
                running == 1 ? " is" : "s are", relays, relays == 1 ? " is" : "s are");
    own_stop_all(flow);
    relay_stop_all(flow);
    late_drop_all(flow);
}

static void part_deliver_close(struct loop_message *message)
{
    struct stop_part *part = LIST_ITEM(message, struct stop_part, close);
    part->close_ordered = true;
    part_check_quiet(part);
}

/* Every wait that the store had agreed to was begun before this: what it answers now is that it is down. */
static void part_deliver_forsaken(struct loop_message *message)
{
    struct flow *flow = &LIST_ITEM(message, struct stop_part, forsaken)->shard->flow;
    command_stop_waiting(flow);
    own_stop_all(flow);
}

static void part_deliver_end(struct loop_message *message)
{
    loop_stop(LIST_ITEM(message, struct stop_part, end)->shard->loop);
}

/* --- the lead, on the first loop --- */

static struct stop *stop_of(struct loop_message *message, size_t offset)
{
    return ((struct stop_part *) (void *) ((char *) message - offset))->stop;
}

static void stop_deliver_quiet(struct loop_message *message)
{
    struct stop *stop = stop_of(message, offsetof(struct stop_part, quiet));
    if (++stop->quiet_count < stop->shards->count) {
        return;
    }
    /* Whatever was accepted before has been dealt, and reaches its loop before the order does. */
    acceptor_close(stop->data_acceptor);
    acceptor_close(stop->admin_acceptor);
    stop->data_acceptor = stop->admin_acceptor = NULL;
    for (unsigned i = 0; i < stop->shards->count; i++) {
        loop_post(stop->shards->items[i].loop, &stop->parts[i].close);
    }
}

static void stop_deliver_closed(struct loop_message *message)
{
    struct stop *stop = stop_of(message, offsetof(struct stop_part, closed));
    if (++stop->closed_count < stop->shards->count) {
        return;
    }
    stop->ended = true;
    loop_timer_stop(&stop->drain);
    for (unsigned i = 0; i < stop->shards->count; i++) {
        loop_post(stop->shards->items[i].loop, &stop->parts[i].end);
    }
}

static void stop_on_drain_end(void *context)
{
    struct stop *stop = context;
    if (stop->cut) {
        log_message(
            LOG_ERROR, "stop",
            "the last outcomes could not be recorded in time; running commands become unknown at the next start");
        _exit(stop->exit_code != 0 ? stop->exit_code : STOP_EXIT_STORE);
    }
    stop->cut = true;
    loop_timer_start(&stop->drain, STOP_RECORD_MS);
    for (unsigned i = 0; i < stop->shards->count; i++) {
        loop_post(stop->shards->items[i].loop, &stop->parts[i].cut);
    }
}

static void stop_begin(struct stop *stop, const char *reason, const char *why, int exit_code)
{
    if (exit_code != 0) {
        stop->exit_code = exit_code;
    }
    if (stop->begun) {
        return;
    }
    stop->begun = true;
    stop->reason = reason;
    const struct flow *first = &stop->shards->items[0].flow;
    unsigned running = atomic_load(&first->commons->running);
    log_message(LOG_INFO, "drain", "%s: new commands are refused, %u running one%s", why, running,
                running == 1 ? " finishes" : "s finish");
    supervisor_tell_stopping(first->settings->drain_timeout_ms + STOP_RECORD_MS + STOP_LAST_ANSWERS_MS + STOP_CLOSE_MS);
    loop_timer_start(&stop->drain, first->settings->drain_timeout_ms);
    for (unsigned i = 1; i < stop->shards->count; i++) {
        loop_post(stop->shards->items[i].loop, &stop->parts[i].drain);
    }
    part_deliver_drain(&stop->parts[0].drain);
}

static void stop_on_signal(void *context, int signal_number)
{
    struct stop *stop = context;
    const char *name = signal_number == SIGTERM ? "SIGTERM" : "SIGINT";
    if (stop->signalled) {
        log_message(LOG_WARN, "stop",
                    "a second signal: the process leaves now; running commands become unknown at the next start");
        log_flush();
        _exit(STOP_EXIT_FORCED);
    }
    stop->signalled = true;
    if (stop->begun) { /* the store failed before: nobody has asked yet that what runs be cut */
        log_message(LOG_INFO, "stop",
                    "%s: what runs still finishes, as it did already; a second signal ends it at once", name);
    }
    stop_begin(stop, "draining", name, 0);
}

static void stop_deliver_store_failed(struct loop_message *message)
{
    struct stop *stop = LIST_ITEM(message, struct stop, store_failed);
    log_message(
        LOG_ERROR, "store",
        "the store failed, the truth is on the disk only: nothing new is claimed, running answers are delivered, "
        "then the process exits %d to be started again",
        STOP_EXIT_STORE);
    stop_begin(stop, "store", "the store failed", STOP_EXIT_STORE);
    for (unsigned i = 0; i < stop->shards->count; i++) {
        loop_post(stop->shards->items[i].loop, &stop->parts[i].forsaken);
    }
}

void stop_on_store_failed(void *context)
{
    struct stop *stop = context;
    stop->store_failed.deliver = stop_deliver_store_failed;
    loop_post(stop->loop, &stop->store_failed);
}

/* --- life --- */

void stop_init(struct stop *stop, struct shards *shards)
{
    *stop = (struct stop){ .shards = shards, .loop = shards->items[0].loop };
    stop->parts = memory_new(shards->count * sizeof stop->parts[0]);
    for (unsigned i = 0; i < shards->count; i++) {
        struct stop_part *part = &stop->parts[i];
        struct shard *shard = &shards->items[i];
        *part = (struct stop_part){ .stop = stop, .shard = shard };
        part->drain.deliver = part_deliver_drain;
        part->cut.deliver = part_deliver_cut;
        part->close.deliver = part_deliver_close;
        part->end.deliver = part_deliver_end;
        part->forsaken.deliver = part_deliver_forsaken;
        part->quiet.deliver = stop_deliver_quiet;
        part->closed.deliver = stop_deliver_closed;
        loop_timer_init(&part->closing, shard->loop, part_on_closing, part);
    }
    loop_timer_init(&stop->drain, stop->loop, stop_on_drain_end, stop);
    loop_on_signal(stop->loop, SIGTERM, stop_on_signal, stop);
    loop_on_signal(stop->loop, SIGINT, stop_on_signal, stop);
}

void stop_own(struct stop *stop, struct acceptor *data, struct acceptor *admin, struct edge *admin_edge)
{
    stop->data_acceptor = data;
    stop->admin_acceptor = admin;
    stop->parts[0].admin = admin_edge;
    for (unsigned i = 0; i < stop->shards->count; i++) {
        stop->shards->items[i].flow.quiet = part_on_quiet;
        stop->shards->items[i].flow.quiet_context = &stop->parts[i];
    }
}

void stop_fini(struct stop *stop)
{
    acceptor_close(stop->data_acceptor);
    acceptor_close(stop->admin_acceptor);
    loop_timer_stop(&stop->drain);
    for (unsigned i = 0; i < stop->shards->count; i++) {
        loop_timer_stop(&stop->parts[i].closing);
        stop->shards->items[i].flow.quiet = NULL;
    }
    free(stop->parts);
}
