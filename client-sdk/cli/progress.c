/* progress.c - see progress.h. */
#include "client-sdk/cli/progress.h"

#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void progress_init(struct progress *progress, const struct options *options)
{
    bool quiet = option_is_given(options, OPTION_QUIET);
    *progress = (struct progress){ .lines = !quiet,
                                   .all = option_is_given(options, OPTION_VERBOSE),
                                   .explain = option_is_given(options, OPTION_EXPLAIN) };
    progress->on_terminal =
        !quiet && !progress->all && !progress->explain && !option_is_given(options, OPTION_NO_PROGRESS);
}

void progress_begin(struct progress *progress, struct nonbis_op *op)
{
    progress->happened[0] = '\0';
    progress->terminal = progress->on_terminal ? terminal_open(op) : NULL;
}

void progress_end(struct progress *progress)
{
    terminal_close(progress->terminal);
    progress->terminal = NULL;
}

static void tell(struct progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(struct progress *progress, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    (void) vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (progress->terminal != NULL) {
        terminal_clear(progress->terminal);
    }
    complain("%s", text);
}

/* ---- words -------------------------------------------------------------------------------------------------------- */

/* What an exchange came to. */
static void note_happened(struct progress *progress, const struct nonbis_event *event)
{
    char what[64];
    if (event->kind == NONBIS_EVENT_TOLD) {
        (void) snprintf(progress->happened, sizeof progress->happened, "status: %s", event->error_kind);
        return;
    }
    if (event->http_status != 0) {
        (void) snprintf(what, sizeof what, "answered %d", event->http_status);
    } else {
        (void) snprintf(what, sizeof what, "%s (%s)", event->bytes_sent == 0 ? "not sent" : "no answer",
                        event->error_kind[0] != '\0' ? event->error_kind : "network");
    }
    (void) snprintf(progress->happened, sizeof progress->happened, "attempt %u/%u: %s", event->attempt,
                    event->attempts_max, what);
}

/* What is waited for. */
static void next_step(const struct nonbis_event *event, char *out, size_t size)
{
    static const struct {
        const char *reason, *step;
    } questions[] = { { "command-in-progress", "asking again" },
                      { "command-completed", "fetching its answer" },
                      { "voiding", "voiding it" } };
    if (event->next == NONBIS_NEXT_ATTEMPT) {
        (void) snprintf(out, size, "attempt %u/%u", event->attempt + 1, event->attempts_max);
        return;
    }
    const char *step = "the question for its status";
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        step = strcmp(event->decision, questions[i].reason) == 0 ? questions[i].step : step;
    }
    (void) snprintf(out, size, "%s", step);
}

/* "in 1.2s (server asked 1s)", "at once". */
static void when_text(const struct nonbis_event *event, char *out, size_t size)
{
    char delay[EXPLAIN_TIME], server[EXPLAIN_TIME];
    explain_ms(event->delay_ms, delay);
    explain_ms(event->server_delay_ms, server);
    if (event->delay_ms <= 0) {
        (void) snprintf(out, size, "at once");
    } else if (event->server_delay_ms >= 0) {
        (void) snprintf(out, size, "in %s (server asked %s)", delay, server);
    } else {
        (void) snprintf(out, size, "in %s", delay);
    }
}

static void tell_why(struct progress *progress, const struct nonbis_event *event)
{
    char left[EXPLAIN_TIME], tokens[48] = "";
    explain_ms(event->deadline_left_ms, left);
    if (event->tokens_left_milli >= 0) {
        (void) snprintf(tokens, sizeof tokens, ", %lld.%lld retry tokens",
                        (long long) (event->tokens_left_milli / 1000),
                        (long long) (event->tokens_left_milli % 1000 / 100));
    }
    tell(progress, "  why: %s: %s; left: %s of the deadline%s", event->decision, explain_reason(event->decision), left,
         tokens);
}

/* ---- events ------------------------------------------------------------------------------------------------------- */

static void on_decision(struct progress *progress, const struct nonbis_event *event)
{
    char next[64], when[96];
    next_step(event, next, sizeof next);
    when_text(event, when, sizeof when);
    const char *happened = progress->happened;
    if (progress->terminal != NULL) {
        if (happened[0] != '\0') {
            tell(progress, "%s", happened);
        }
        if (event->delay_ms > 0) {
            terminal_wait(progress->terminal, next, event->delay_ms, event->server_delay_ms);
        }
    } else if (progress->lines) {
        tell(progress, "%s%s%s %s", happened, happened[0] != '\0' ? "; " : "", next, when);
    }
    if (progress->explain) {
        tell_why(progress, event);
    }
    progress->happened[0] = '\0';
}

static void on_outcome(struct progress *progress, const struct nonbis_event *event)
{
    char took[EXPLAIN_TIME];
    explain_ms(event->elapsed_ms, took);
    if (progress->all) {
        tell(progress, "outcome: %s, stop: %s (%s) after %s", nonbis_outcome_name(event->outcome),
             nonbis_stop_name(event->stop), event->decision, took);
    }
    if (progress->explain) {
        tell_why(progress, event);
    }
}

/* The lines that only -v wants. */
static void tell_all(struct progress *progress, const struct nonbis_event *event)
{
    char took[EXPLAIN_TIME];
    explain_ms(event->elapsed_ms, took);
    switch (event->kind) {
    case NONBIS_EVENT_ATTEMPT:
        tell(progress, "attempt %u/%u: %s %s", event->attempt, event->attempts_max, event->method, event->endpoint);
        break;
    case NONBIS_EVENT_SENT:
        tell(progress, "attempt %u/%u: connected, the request leaves now", event->attempt, event->attempts_max);
        break;
    case NONBIS_EVENT_ANSWER:
        tell(progress, "%s after %s, %llu bytes sent", progress->happened, took,
             (unsigned long long) event->bytes_sent);
        break;
    case NONBIS_EVENT_ASK:
        tell(progress, "asking for its status");
        break;
    case NONBIS_EVENT_TOLD:
        tell(progress, "%s after %s", progress->happened, took);
        break;
    default:
        break;
    }
}

void progress_event(struct progress *progress, const struct nonbis_event *event)
{
    char what[64];
    if (event->kind == NONBIS_EVENT_ANSWER || event->kind == NONBIS_EVENT_TOLD) {
        note_happened(progress, event);
    }
    if (progress->all) {
        tell_all(progress, event);
    }
    if (event->kind == NONBIS_EVENT_DECISION) {
        on_decision(progress, event);
    } else if (event->kind == NONBIS_EVENT_OUTCOME) {
        on_outcome(progress, event);
    } else if (progress->terminal != NULL && event->kind == NONBIS_EVENT_ATTEMPT) {
        (void) snprintf(what, sizeof what, "attempt %u/%u", event->attempt, event->attempts_max);
        terminal_work(progress->terminal, what);
    } else if (progress->terminal != NULL && event->kind == NONBIS_EVENT_ASK) {
        terminal_work(progress->terminal, "asking for its status");
    }
}
