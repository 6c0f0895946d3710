/* command_log.c - the one line in the log about a request on a protected route. Loop thread. */
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
    if (x->store_result != NULL) {
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
    log_int(line, "claim_us", x->claimed_us - x->claim_us);
    log_int(line, "upstream_us", x->response_us - x->sent_us);
    log_int(line, "store_us", x->recorded_us - x->response_us);
}

void exchange_log(const struct exchange *x)
{
    enum log_level level = log_is_urgent(x) ? LOG_WARN : LOG_INFO;
    if (!log_enabled(level)) {
        return;
    }
    struct log_line line;
    log_begin(&line, level, "exchange");
    log_text(&line, "result", x->result != NULL ? x->result : "incomplete-request");
    log_int(&line, "status", x->told_status);
    log_problem(x, &line);
    log_text(&line, "method", x->method);
    answer_log_path(&line, view_make(x->origin, x->path_len));
    log_text(&line, "route", x->route->text);
    answer_log_key(x->flow, &line, view_of(x->tenant), view_make(x->key.text, x->key.len));
    log_command(x, &line);
    if (x->execution > 0) {
        log_execution(x, &line);
    }
    log_int(&line, "total_us", clock_monotonic_us() - x->started_us);
    log_end(&line);
}
