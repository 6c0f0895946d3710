/* command_log.c - what is told of a request on a protected route when it has ended: its line in the log, and the counts. Loop thread. */
#include "server/base/clock.h"
#include "server/flow/exchange_state.h"

/* What nobody may overlook: the outcome of an execution of ours that nobody knows, or that the store does not. */
static bool log_is_urgent(const struct exchange *x)
{
    return x->execution > 0 && (x->unrecorded || x->outcome.kind == OUTCOME_UNKNOWN);
}

/* Of our own execution, or of the record that was found; NULL where nothing of that may be told. */
static const uint8_t *log_command_id(const struct exchange *x)
{
    if (x->execution > 0) {
        return x->command_id;
    }
    if (x->answer_kind == ANSWER_REPLAY) {
        return x->task.found.record.command_id;
    }
    return x->problem.record.command_id;
}

static void log_command(const struct exchange *x, struct log_line *line)
{
    const uint8_t *command_id = log_command_id(x);
    if (command_id != NULL) {
        answer_log_command(line, command_id);
    }
}

/* Names joined by commas. */
static void log_differs(const struct exchange *x, struct log_line *line)
{
    struct buf names;
    buf_init(&names, 256);
    bool stranger = (x->problem.differs & DIFFERS_CREDENTIALS) != 0;
    for (unsigned bit = 0; bit <= FINGERPRINT_PART_COUNT; bit++) {
        if (((stranger ? DIFFERS_CREDENTIALS : x->problem.differs) & (1U << bit)) != 0) {
            buf_append_text(&names, names.len > 0 ? "," : "");
            buf_append_text(&names, fingerprint_part_name(bit));
        }
    }
    if (names.len > 0) {
        log_view(line, "differs", buf_view(&names));
    }
    buf_fini(&names);
}

/* The problem that the client was told, if it was told one. */
static void log_problem(const struct exchange *x, struct log_line *line)
{
    if (x->told_request == 0) {
        return;
    }
    /* The first caller, whose command went on: not how it ended. */
    bool still_running = x->problem.problem == PROBLEM_STILL_RUNNING;
    log_text(line, still_running ? "told" : "problem", problem_table[x->problem.problem].name);
    log_differs(x, line);
    if (x->problem.reason != NULL) {
        log_text(line, "reason", x->problem.reason);
    }
    if (x->store_result != NULL && !x->unrecorded) {
        log_text(line, "store_result", x->store_result);
    }
    answer_log_request(x->flow, line, x->told_request);
}

static void log_execution(const struct exchange *x, struct log_line *line)
{
    log_int(line, "execution", x->execution);
    log_text(line, "upstream", attempt_end_name(x->attempt.end));
    if (x->attempt.end == ATTEMPT_COMPLETE) {
        log_int(line, "upstream_status", x->status);
    } else {
        log_text(line, "why", x->attempt_reason);
    }
    if (x->unrecorded) {
        log_text(line, "store_result", x->store_result);
    }
}

/* Of the record before the attempt and after it; nothing where it was not read, or only a restart can tell. */
static void log_state(struct log_line *line, const char *name, enum record_state state)
{
    if (state != RECORD_STATE_COUNT) {
        log_text(line, name, state == RECORD_ABSENT ? "not_seen" : record_state_name(state));
    }
}

/* 0 when it did not come to both. */
static int64_t span_us(int64_t from_us, int64_t to_us)
{
    return from_us != 0 && to_us != 0 ? to_us - from_us : 0;
}

static void log_times(const struct exchange *x, struct log_line *line)
{
    log_int(line, "claim_us", x->claim_took_us);
    if (x->has_waited) {
        log_int(line, "waited_us", x->waited_us);
    }
    log_int(line, "upstream_us", span_us(x->sent_us, x->response_us));
    log_int(line, "store_us", span_us(x->response_us, x->recorded_us));
    log_int(line, "total_us", clock_monotonic_us() - x->started_us);
}

static void exchange_log(const struct exchange *x)
{
    enum log_level level = log_is_urgent(x) ? LOG_WARN : LOG_INFO;
    if (!log_enabled(level)) {
        return;
    }
    struct log_line line;
    log_begin(&line, level, "exchange");
    log_text(&line, "result", result_name(x->result));
    log_int(&line, "status", x->told_status);
    log_problem(x, &line);
    log_text(&line, "method", x->method);
    answer_log_path(&line, view_make(x->origin, x->path_len));
    log_text(&line, "route", x->route->text);
    answer_log_key(x->flow, &line, view_of(x->tenant), view_make(x->key.text, x->key.len));
    log_command(x, &line);
    log_state(&line, "before", x->state_before);
    log_state(&line, "after", x->state_after);
    if (x->execution > 0) {
        log_execution(x, &line);
    }
    log_times(x, &line);
    if (x->flow->settings->loops > 1) {
        log_int(&line, "loop", x->flow->number);
    }
    log_end(&line);
}

/* A time counts when nobody else is in it: neither a client that reads slowly, nor a handler or a rival that works. */
static void exchange_count(const struct exchange *x)
{
    struct metrics *metrics = x->flow->metrics;
    int64_t took_us = span_us(x->whole_us, x->answered_us) - x->waited_us;
    enum result result = x->result;
    if (result == RESULT_REFUSED || result == RESULT_IN_PROGRESS || result == RESULT_UNAVAILABLE) {
        result = result_of_problem(x->problem.problem);
    }
    metrics_count_request(metrics, metrics_row_of(x->route), result);
    if (log_is_urgent(x)) {
        metrics_count_unknown(metrics, x->outcome.kind == OUTCOME_UNKNOWN ? x->outcome.cause : CAUSE_UNRECORDED);
    }
    if (x->answered_us != 0 && result == RESULT_REPLAYED) {
        metrics_observe_answer(&metrics->replay, took_us);
    } else if (x->answered_us != 0 && result == RESULT_EXECUTED) {
        metrics_observe_answer(&metrics->added, took_us - span_us(x->sent_us, x->response_us));
    }
}

void exchange_tell_end(struct exchange *x)
{
    if (x->result == RESULT_NONE) {
        x->result = RESULT_INCOMPLETE_REQUEST;
    }
    exchange_count(x);
    exchange_log(x);
}
