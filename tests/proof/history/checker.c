/* checker.c - see checker.h: sorts a history into commands, hands each to the rules (rules.c), and adds up. */
#include "tests/proof/history/rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTER_BYTES = sizeof(void *) };

void rule_broken(struct checker_report *report, int rule, const struct history_event *event, const char *format, ...)
{
    report->faults_all++;
    if (report->faults[rule]++ > 0) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    char *text = report->first[rule];
    size_t len = (size_t) vsnprintf(text, CHECKER_TEXT_MAX, format, arguments);
    va_end(arguments);
    struct buf line;
    buf_init(&line, CHECKER_TEXT_MAX);
    if (event != NULL) {
        history_write_event(event, &line);
    }
    if (len < CHECKER_TEXT_MAX && line.len > 0) {
        (void) snprintf(text + len, CHECKER_TEXT_MAX - len, ": %.*s", (int) line.len - 1, line.ptr);
    }
    buf_fini(&line);
}

/* --- orders --- */

static const struct history_event *item(const void *element)
{
    return *(const struct history_event *const *) element;
}

static int compare_times(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_commands(const struct history_event *a, const struct history_event *b)
{
    int order = strcmp(a->tenant, b->tenant);
    return order != 0 ? order : strcmp(a->key, b->key);
}

static int by_command_and_begin(const void *a, const void *b)
{
    int order = compare_commands(item(a), item(b));
    order = order != 0 ? order : compare_times(item(a)->from, item(b)->from);
    return order != 0 ? order : compare_times(item(a)->to, item(b)->to);
}

static int by_command_and_end(const void *a, const void *b)
{
    int order = compare_commands(item(a), item(b));
    return order != 0 ? order : compare_times(item(a)->to, item(b)->to);
}

static int by_execution(const void *a, const void *b)
{
    return strcmp(item(a)->execution, item(b)->execution);
}

static int by_no(const void *a, const void *b)
{
    return item(a)->no < item(b)->no ? -1 : item(a)->no > item(b)->no;
}

static bool is_of_a_command(const struct history_event *event)
{
    return event->kind <= HISTORY_VOID;
}

static struct index index_make(const struct history *history, int kind, int (*order)(const void *, const void *))
{
    struct index index = { .items = malloc((history->count + 1) * POINTER_BYTES) };
    for (size_t i = 0; index.items != NULL && i < history->count; i++) {
        const struct history_event *event = &history->events[i];
        if (kind < 0 ? is_of_a_command(event) : (int) event->kind == kind) {
            index.items[index.count++] = event;
        }
    }
    qsort((void *) index.items, index.count, POINTER_BYTES, order);
    return index;
}

const struct history_event *index_find_execution(const struct index *index, const char *execution)
{
    struct history_event wanted = { 0 };
    const struct history_event *key = &wanted;
    (void) snprintf(wanted.execution, sizeof wanted.execution, "%s", execution);
    const void *found =
        bsearch((const void *) &key, (const void *) index->items, index->count, POINTER_BYTES, by_execution);
    return found == NULL ? NULL : item(found);
}

size_t index_find_no(const struct index *index, unsigned no)
{
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->items[middle]->no < no) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* --- rules about the whole --- */

/* R12 */
static void check_plan(const struct history *history, struct checker_report *report)
{
    for (size_t i = 0; i < history->count; i++) {
        const struct history_event *plan = &history->events[i];
        bool met = plan->kind != HISTORY_PLAN;
        for (size_t j = 0; !met && j < history->count; j++) {
            met = history->events[j].kind == HISTORY_FAULT && strcmp(history->events[j].fault, plan->fault) == 0;
        }
        if (!met) {
            rule_broken(report, 12, plan, "a fault that was planned was never met");
        }
    }
}

static int64_t quiet_since(const struct history *history)
{
    int64_t quiet = HISTORY_NEVER;
    for (size_t i = 0; i < history->count; i++) {
        quiet = history->events[i].kind == HISTORY_QUIET ? history->events[i].from : quiet;
    }
    return quiet;
}

/* --- commands --- */

static void command_sum_up(struct command *command)
{
    command->first_arrival = command->first_run = command->first_asked = HISTORY_NEVER;
    for (size_t i = command->count; i-- > 0;) {
        const struct history_event *event = command->events[i];
        if (event->kind == HISTORY_ARRIVAL) {
            command->first_arrival = event->from;
            command->first_run = strcmp(event->does, "decline") == 0 ? command->first_run : event->from;
        } else if (event->kind != HISTORY_STATUS) {
            command->first_asked = event->from;
        }
    }
}

static void count_command(const struct command *command, struct checker_report *report)
{
    enum standing last = STANDING_NOTHING;
    bool acknowledged = false;
    for (size_t i = 0; i < command->count; i++) {
        const struct history_event *event = command->events[i];
        enum standing standing = standing_of(event);
        last = standing > last ? standing : last;
        acknowledged = acknowledged || (event->kind == HISTORY_ATTEMPT && standing == STANDING_COMPLETED);
        report->attempts += event->kind == HISTORY_ATTEMPT;
        report->unanswered += event->kind == HISTORY_ATTEMPT && event->to == HISTORY_NEVER;
        report->arrivals += event->kind == HISTORY_ARRIVAL;
        report->executions += event->kind == HISTORY_ARRIVAL && strcmp(event->does, "decline") != 0;
    }
    report->keys += command->first_asked != HISTORY_NEVER;
    report->acknowledged += acknowledged;
    report->unknown += last == STANDING_UNKNOWN;
    report->voided += last == STANDING_VOIDED;
}

void checker_run(const struct history *history, int64_t grace_ns, struct checker_report *report)
{
    *report = (struct checker_report){ .keys = 0 };
    struct index begun = index_make(history, -1, by_command_and_begin);
    struct index ended = index_make(history, -1, by_command_and_end);
    struct index executions = index_make(history, HISTORY_ARRIVAL, by_execution);
    struct index arrivals = index_make(history, HISTORY_ARRIVAL, by_no);
    struct index attempts = index_make(history, HISTORY_ATTEMPT, by_no);
    struct command command = {
        .quiet = quiet_since(history), .executions = &executions, .arrivals = &arrivals, .attempts = &attempts
    };
    command.settled = command.quiet == HISTORY_NEVER ? HISTORY_NEVER : command.quiet + grace_ns;
    if (command.quiet == HISTORY_NEVER) {
        rule_broken(report, 11, NULL, "the history has no line `quiet`: nobody looked at what remained");
    }
    for (size_t i = 0; i < begun.count; i += command.count) {
        command.events = &begun.items[i];
        command.by_end = &ended.items[i]; /* the same commands in the same order, so the same slice */
        command.count = 1;
        while (i + command.count < begun.count &&
               compare_commands(begun.items[i], begun.items[i + command.count]) == 0) {
            command.count++;
        }
        command_sum_up(&command);
        rules_check_command(&command, report);
        count_command(&command, report);
    }
    check_plan(history, report);
    free((void *) begun.items);
    free((void *) ended.items);
    free((void *) executions.items);
    free((void *) arrivals.items);
    free((void *) attempts.items);
}

void checker_write(const struct checker_report *report, struct buf *out)
{
    for (int rule = 1; rule < CHECKER_RULES; rule++) {
        if (report->faults[rule] > 0) {
            buf_printf(out, "R%d is broken %u times; first: %s\n", rule, report->faults[rule], report->first[rule]);
        }
    }
}
