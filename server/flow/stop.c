/* stop.c - see stop.h. */
#include "server/flow/stop.h"

#include "server/flow/late.h"

#include <signal.h>
#include <unistd.h>

enum {
    STOP_EXIT_STORE = 74, /* the store failed while running: a restart reads the truth */
    STOP_EXIT_FORCED = 1, /* a second signal */
    STOP_POLL_MS = 5,     /* how often the last answers are looked after */
    STOP_LAST_ANSWERS_MS = 2000,
    STOP_RECORD_MS = 10000, /* after drain_timeout: for the last records to become durable */
};

static void stop_on_closing(void *context)
{
    struct stop *stop = context;
    unsigned requests = edge_requests(stop->data) + (stop->admin != NULL ? edge_requests(stop->admin) : 0);
    if (requests == 0 || loop_now_ms(stop->flow->loop) - stop->closing_since_ms > STOP_LAST_ANSWERS_MS) {
        loop_stop(stop->flow->loop);
        return;
    }
    loop_timer_start(&stop->closing, STOP_POLL_MS);
}

static void stop_on_quiet(void *context)
{
    struct stop *stop = context;
    if (!stop->begun || stop->ended) {
        return;
    }
    stop->ended = true;
    loop_timer_stop(&stop->drain);
    command_stop_all(stop->flow); /* what is left has not arrived whole: nothing has happened yet */
    acceptor_close(stop->data_acceptor);
    stop->data_acceptor = NULL;
    if (stop->admin_acceptor != NULL) {
        acceptor_close(stop->admin_acceptor);
        stop->admin_acceptor = NULL;
    }
    edge_quiesce(stop->data);
    if (stop->admin != NULL) {
        edge_quiesce(stop->admin);
    }
    stop->closing_since_ms = loop_now_ms(stop->flow->loop);
    loop_timer_start(&stop->closing, 0);
}

static void stop_on_drain_end(void *context)
{
    struct stop *stop = context;
    struct flow *flow = stop->flow;
    if (flow->stopped) {
        log_message(
            LOG_ERROR, "stop",
            "the last outcomes could not be recorded in time; running commands become unknown at the next start");
        _exit(stop->exit_code != 0 ? stop->exit_code : STOP_EXIT_STORE);
    }
    size_t running = flow->exchanges.count - flow->reading;
    flow->stopped = true;
    log_message(LOG_WARN, "stop",
                "drain_timeout is over: %zu command%s recorded unknown, %zu pass-through request%s cut", running,
                running == 1 ? " is" : "s are", flow->relays.count, flow->relays.count == 1 ? " is" : "s are");
    loop_timer_start(&stop->drain, STOP_RECORD_MS);
    command_stop_all(flow);
    relay_stop_all(flow);
    late_drop_all(flow);
}

static void stop_begin(struct stop *stop, const char *reason, const char *why, int exit_code)
{
    struct flow *flow = stop->flow;
    if (exit_code != 0) {
        stop->exit_code = exit_code;
    }
    if (stop->begun) {
        return;
    }
    stop->begun = true;
    flow->draining = true;
    flow->draining_reason = reason;
    size_t running = flow->exchanges.count - flow->reading;
    log_message(LOG_INFO, "drain", "%s: new commands are refused, %zu running one%s", why, running,
                running == 1 ? " finishes" : "s finish");
    loop_timer_start(&stop->drain, flow->settings->drain_timeout_ms);
    if (flow_is_quiet(flow)) {
        stop_on_quiet(stop);
    }
}

static void stop_on_signal(void *context, int signal_number)
{
    struct stop *stop = context;
    if (stop->begun) {
        log_message(LOG_WARN, "stop",
                    "a second signal: the process leaves now; running commands become unknown at the next start");
        _exit(STOP_EXIT_FORCED);
    }
    stop_begin(stop, "draining", signal_number == SIGTERM ? "SIGTERM" : "SIGINT", 0);
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
}

void stop_on_store_failed(void *context)
{
    struct stop *stop = context;
    stop->store_failed.deliver = stop_deliver_store_failed;
    loop_post(stop->flow->loop, &stop->store_failed);
}

void stop_init(struct stop *stop, struct flow *flow)
{
    *stop = (struct stop){ .flow = flow };
    loop_timer_init(&stop->drain, flow->loop, stop_on_drain_end, stop);
    loop_timer_init(&stop->closing, flow->loop, stop_on_closing, stop);
    flow->quiet = stop_on_quiet;
    flow->quiet_context = stop;
    loop_on_signal(flow->loop, SIGTERM, stop_on_signal, stop);
    loop_on_signal(flow->loop, SIGINT, stop_on_signal, stop);
}

void stop_fini(struct stop *stop)
{
    loop_timer_stop(&stop->drain);
    loop_timer_stop(&stop->closing);
    stop->flow->quiet = NULL;
}
