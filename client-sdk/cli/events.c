/* events.c - see events.h. */
#include "client-sdk/cli/events.h"

#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/file.h"
#include "client-sdk/cli/output_json.h"
#include "client-sdk/cli/signals.h"
#include "common/http_time.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DESCRIPTOR_MAX = 1 << 20, PATIENCE_MS = 2000 };

static bool descriptor_read(const char *text, int *fd)
{
    uint64_t number = 0;
    if (!view_to_uint64(view_of(text), &number) || number > DESCRIPTOR_MAX ||
        (fcntl((int) number, F_GETFL) & O_ACCMODE) == O_RDONLY || fcntl((int) number, F_GETFL) < 0) {
        return false;
    }
    *fd = (int) number;
    return true;
}

bool events_open(struct events *events, const struct options *options)
{
    const char *where = options->values[OPTION_EVENTS];
    *events = (struct events){ .fd = -1 };
    if (where == NULL) {
        return true;
    }
    if (strncmp(where, "fd:", 3) == 0) {
        if (!descriptor_read(where + 3, &events->fd)) {
            complain("--events %s: that is no open descriptor that can be written to; nothing was sent", where);
            return false;
        }
        return true;
    }
    events->fd = open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    events->owned = true;
    if (events->fd < 0) {
        complain("--events %s cannot be opened: %s; nothing was sent", where, strerror(errno));
        return false;
    }
    return true;
}

void events_close(struct events *events)
{
    if (events->owned && events->fd >= 0) {
        close(events->fd);
    }
    events->fd = -1;
}

static const char *kind_name(enum nonbis_event_kind kind)
{
    switch (kind) {
    case NONBIS_EVENT_ATTEMPT:
        return "attempt";
    case NONBIS_EVENT_SENT:
        return "sent";
    case NONBIS_EVENT_ANSWER:
        return "answer";
    case NONBIS_EVENT_DECISION:
        return "decision";
    case NONBIS_EVENT_ASK:
        return "ask";
    case NONBIS_EVENT_TOLD:
        return "told";
    case NONBIS_EVENT_OUTCOME:
        break;
    }
    return "outcome";
}

static void add_count(cJSON *object, const char *name, int64_t number, int64_t none)
{
    if (number == none) {
        cJSON_AddNullToObject(object, name);
    } else {
        cJSON_AddNumberToObject(object, name, (double) number);
    }
}

static cJSON *event_json(const struct nonbis_event *event)
{
    struct timespec now;
    char at[RFC3339_BYTES];
    clock_gettime(CLOCK_REALTIME, &now);
    rfc3339_write((int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000, at);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "event", kind_name(event->kind));
    cJSON_AddStringToObject(object, "time", at);
    cJSON_AddItemToObject(object, "name", output_json_text(event->name));
    cJSON_AddStringToObject(object, "endpoint", event->endpoint);
    cJSON_AddStringToObject(object, "method", event->method);
    cJSON_AddNumberToObject(object, "attempt", event->attempt);
    cJSON_AddNumberToObject(object, "attempts_max", event->attempts_max);
    cJSON_AddBoolToObject(object, "keyed", event->keyed);
    add_count(object, "delay_ms", event->delay_ms, -1);
    add_count(object, "server_delay_ms", event->server_delay_ms, -1);
    cJSON_AddStringToObject(object, "error_kind", event->error_kind);
    add_count(object, "http_status", event->http_status, 0);
    cJSON_AddStringToObject(object, "decision", event->decision);
    add_count(object, "deadline_left_ms", event->deadline_left_ms, -1);
    add_count(object, "tokens_left_milli", event->tokens_left_milli, -1);
    add_count(object, "elapsed_ms", event->elapsed_ms, -1);
    add_count(object, "bytes_sent", (int64_t) event->bytes_sent, -1);
    cJSON_AddStringToObject(object, "outcome", nonbis_outcome_name(event->outcome));
    if (event->stop != 0) {
        cJSON_AddStringToObject(object, "stop", nonbis_stop_name(event->stop));
    } else {
        cJSON_AddNullToObject(object, "stop");
    }
    if (event->next != 0) {
        cJSON_AddStringToObject(object, "next", event->next == NONBIS_NEXT_ATTEMPT ? "attempt" : "ask");
    } else {
        cJSON_AddNullToObject(object, "next");
    }
    return object;
}

static bool run_is_over(void)
{
    return signals_caught() != 0;
}

/* Whoever reads them must not hold up the run: what takes nothing for a while gets no more. */
void events_write(struct events *events, const struct nonbis_event *event)
{
    if (events->fd < 0 || events->failed) {
        return;
    }
    cJSON *object = event_json(event);
    char *text = cJSON_PrintUnformatted(object);
    size_t len = text != NULL ? strlen(text) : 0;
    if (len > 0) {
        text[len] = '\n'; /* where the NUL was: one write a line, which nobody needs to end */
    }
    if (len == 0 || !file_write_patiently(events->fd, text, len + 1, PATIENCE_MS, run_is_over)) {
        events->failed = true;
        complain("warning: --events cannot be written: %s; the run goes on without",
                 errno == ETIMEDOUT ? "nothing is taken there for 2 s" : strerror(errno));
    }
    free(text);
    cJSON_Delete(object);
}
