/* rules.c - the rules of checker.h, one command at a time. */
#include "tests/proof/history/rules.h"

#include <stdlib.h>
#include <string.h>

static bool is(const char *word, const char *wanted)
{
    return strcmp(word, wanted) == 0;
}

static bool is_answered(const struct history_event *event)
{
    return event->answer != 0 && event->to != HISTORY_NEVER;
}

static bool is_declined(const struct history_event *arrival)
{
    return is(arrival->does, "decline");
}

/* "Not now", which says nothing of the command. */
static bool is_put_off(const struct history_event *event)
{
    return (event->answer == 429 || event->answer == 503) && (event->word[0] == '\0' || is(event->word, "refused"));
}

static enum standing standing_of_state(const char *state)
{
    static const struct {
        const char *state;
        enum standing standing;
    } states[] = { { "in_progress", STANDING_RUNNING },
                   { "completed", STANDING_COMPLETED },
                   { "unknown", STANDING_UNKNOWN },
                   { "released", STANDING_RELEASED },
                   { "voided", STANDING_VOIDED } };
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (is(state, states[i].state)) {
            return states[i].standing;
        }
    }
    return STANDING_NOTHING;
}

static enum standing standing_of_attempt(const struct history_event *event)
{
    static const struct {
        const char *word;
        enum standing standing;
    } words[] = { { "executed", STANDING_COMPLETED },
                  { "replayed", STANDING_COMPLETED },
                  { "unknown", STANDING_UNKNOWN },
                  { "not-executed", STANDING_RELEASED },
                  { "in-progress", STANDING_RUNNING } };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (is(event->word, words[i].word)) {
            return words[i].standing;
        }
    }
    return is(event->problem, "key-voided") ? STANDING_VOIDED : STANDING_NOTHING;
}

enum standing standing_of(const struct history_event *event)
{
    if (event->kind == HISTORY_ARRIVAL || !is_answered(event)) {
        return STANDING_NOTHING;
    }
    if (event->kind == HISTORY_ATTEMPT) {
        return standing_of_attempt(event);
    }
    if (event->answer == 404 && is(event->problem, "key-not-seen")) {
        return STANDING_ABSENT;
    }
    return is(event->problem, "in-progress") ? STANDING_RUNNING : standing_of_state(event->state);
}

/* --- R1, R2, R9, R5, R6 of what reached the handler --- */

static void check_origin(const struct command *command, const struct history_event *arrival,
                         struct checker_report *report)
{
    size_t at = index_find_no(command->attempts, arrival->no);
    const struct history_event *attempt = at < command->attempts->count ? command->attempts->items[at] : NULL;
    if (attempt == NULL || attempt->no != arrival->no || attempt->from > arrival->from) {
        rule_broken(report, 9, arrival, "the handler got what nobody had sent");
    } else if (!is(attempt->tenant, arrival->tenant) || !is(attempt->key, arrival->key)) {
        rule_broken(report, 5, arrival, "the handler got an attempt of %s/%s as another command", attempt->tenant,
                    attempt->key);
    } else if (!is(attempt->payload, arrival->payload)) {
        rule_broken(report, 6, arrival, "the handler got another payload than the one that was sent (%s)",
                    attempt->payload);
    }
}

static void check_arrivals(const struct command *command, struct checker_report *report)
{
    const struct history_event *last = NULL, *run = NULL;
    for (size_t i = 0; i < command->count; i++) {
        const struct history_event *arrival = command->events[i];
        if (arrival->kind != HISTORY_ARRIVAL) {
            continue;
        }
        check_origin(command, arrival, report);
        if (run != NULL) {
            rule_broken(report, 1, arrival, "executed again; it ran before as %s (number %u)", run->execution,
                        run->number);
        }
        if (last != NULL && arrival->number <= last->number) {
            rule_broken(report, 8, arrival, "its number is not above that of the arrival before it (%u)", last->number);
        }
        if (last != NULL && !is(arrival->payload, last->payload)) {
            rule_broken(report, 6, arrival, "the handler had this command with another payload (%s)", last->payload);
        }
        run = is_declined(arrival) ? run : arrival;
        last = arrival;
    }
}

/* R2: what the store has when all is over, as a status tells it. */
static void check_claims(const struct command *command, struct checker_report *report)
{
    unsigned most = 0;
    const struct history_event *last = NULL, *told = NULL;
    for (size_t i = 0; i < command->count; i++) {
        const struct history_event *event = command->events[i];
        if (event->kind == HISTORY_ARRIVAL) {
            most = event->number > most ? event->number : most;
            last = event;
        } else if (event->kind == HISTORY_STATUS && event->from > command->quiet && is_answered(event)) {
            told = event;
        }
    }
    if (last != NULL && told == NULL) {
        rule_broken(report, 2, last, "nobody asked in the end whether the store has this execution");
    } else if (last != NULL && (told->answer != 200 || told->executions < most)) {
        rule_broken(report, 2, told, "the handler got execution %u, the store does not have it", most);
    }
}

/* --- R3, R4, R5 of recorded answers --- */

static bool is_recorded(const struct history_event *event)
{
    return event->kind == HISTORY_ATTEMPT && standing_of(event) == STANDING_COMPLETED;
}

static bool is_same_answer(const struct history_event *a, const struct history_event *b)
{
    return a->answer == b->answer && is(a->body, b->body) && is(a->fields, b->fields) && is(a->execution, b->execution);
}

/* R3: not only alike, but what the handler made of it. */
static void check_made(const struct command *command, const struct history_event *event, struct checker_report *report)
{
    const struct history_event *made = index_find_execution(command->executions, event->execution);
    if (made == NULL) {
        return; /* R5 */
    }
    if (is(made->does, "break")) {
        rule_broken(report, 3, event, "told as whole; the handler broke off in it");
    } else if (made->body[0] != '\0' && !is(made->body, event->body)) {
        rule_broken(report, 3, event, "not the body that the handler made (%s)", made->body);
    }
}

static void check_recorded(const struct command *command, struct checker_report *report)
{
    const struct history_event *first = NULL;
    unsigned executed = 0;
    for (size_t i = 0; i < command->count; i++) {
        const struct history_event *event = command->events[i];
        if (event->kind == HISTORY_ATTEMPT && event->execution[0] != '\0') {
            const struct history_event *made = index_find_execution(command->executions, event->execution);
            if (made == NULL || !is(made->tenant, event->tenant) || !is(made->key, event->key)) {
                rule_broken(report, 5, event, "tells of an execution of %s/%s", made != NULL ? made->tenant : "nobody",
                            made != NULL ? made->key : "");
            } else if (!is(made->payload, event->payload)) {
                rule_broken(report, 6, event, "tells what became of another payload (%s)", made->payload);
            }
            if (made != NULL && is(event->word, "executed") && made->no != event->no) {
                rule_broken(report, 9, event, "told as executed, by the execution of attempt %u", made->no);
            }
        }
        if (!is_recorded(event)) {
            continue;
        }
        if (first != NULL && !is_same_answer(first, event)) {
            rule_broken(report, 3, event, "not the answer that attempt %u got", first->no);
        }
        check_made(command, event, report);
        executed += is(event->word, "executed");
        if (executed > 1) {
            rule_broken(report, 9, event, "told as executed a second time");
        }
        first = first != NULL ? first : event;
    }
}

/* R4 */
static void check_loss(const struct command *command, struct checker_report *report)
{
    const struct history_event *known = NULL; /* the recorded answer that was whole first */
    for (size_t i = 0; i < command->count && known == NULL; i++) {
        known = is_recorded(command->by_end[i]) ? command->by_end[i] : NULL;
    }
    for (size_t i = 0; known != NULL && i < command->count; i++) {
        const struct history_event *event = command->events[i];
        bool own = event->kind != HISTORY_ATTEMPT || is(event->payload, known->payload);
        if (event->from <= known->to || !own || event->kind == HISTORY_ARRIVAL || !is_answered(event) ||
            is_put_off(event)) {
            continue;
        }
        if (standing_of(event) != STANDING_COMPLETED) {
            rule_broken(report, 4, event, "lost: attempt %u had got the recorded answer at %lld", known->no,
                        (long long) known->to);
        }
    }
}

/* --- R6 of answers, R7, R8 --- */

/* When the first attempt with another payload than `payload` began; HISTORY_NEVER: there was none. */
static int64_t other_payload_since(const struct command *command, const char *payload)
{
    for (size_t i = 0; i < command->count; i++) {
        if (command->events[i]->kind == HISTORY_ATTEMPT && !is(command->events[i]->payload, payload)) {
            return command->events[i]->from;
        }
    }
    return HISTORY_NEVER;
}

static void check_payloads(const struct command *command, struct checker_report *report)
{
    const struct history_event *arrival = NULL, *attempt = NULL; /* the first of each */
    int64_t other_since = HISTORY_NEVER;                         /* than that of the first attempt */
    for (size_t i = 0; i < command->count; i++) {
        const struct history_event *event = command->events[i];
        if (event->kind == HISTORY_ARRIVAL) {
            arrival = arrival != NULL ? arrival : event;
        }
        if (event->kind != HISTORY_ATTEMPT) {
            continue;
        }
        if (attempt == NULL) {
            attempt = event;
            other_since = other_payload_since(command, event->payload);
        }
        bool refused = is(event->problem, "key-reused");
        if (refused && is(event->payload, attempt->payload) && other_since > event->to) {
            rule_broken(report, 6, event, "refused as another payload, and there was no other");
        }
        if (arrival != NULL && !is(arrival->payload, event->payload) && is_answered(event) && !refused &&
            !is_put_off(event)) {
            rule_broken(report, 6, event, "not refused, though the handler had it with payload %s", arrival->payload);
        }
    }
}

/* R7 and the half of R5 about records, of one event */
static void check_honesty(const struct command *command, const struct history_event *event,
                          struct checker_report *report)
{
    enum standing standing = standing_of(event);
    bool arrived_before = command->first_arrival < event->from;
    bool ran_before = command->first_run < event->from, ran_until = command->first_run < event->to;
    bool says_no = is_answered(event) && is(event->executed, "no");
    bool says_yes = is_answered(event) && is(event->executed, "yes");
    if (standing == STANDING_ABSENT && arrived_before) {
        rule_broken(report, 7, event, "told as not seen; the handler had it at %lld",
                    (long long) command->first_arrival);
    }
    if ((standing == STANDING_RELEASED || says_no) && ran_before) {
        rule_broken(report, 7, event, "told as not executed; it ran at %lld", (long long) command->first_run);
    }
    if ((standing == STANDING_COMPLETED || says_yes) && !ran_until) {
        rule_broken(report, 7, event, "told as completed; it had not run");
    }
    if (standing == STANDING_VOIDED && command->first_run != HISTORY_NEVER) {
        bool later = command->first_run > event->to;
        rule_broken(report, later ? 10 : 7, event, "told as voided; it ran at %lld", (long long) command->first_run);
    }
    if (standing > STANDING_ABSENT && command->first_asked > event->to) {
        rule_broken(report, 5, event, "told of a command that this tenant had not sent");
    }
}

/* Released and running are one step: they alternate. */
static int step_of(enum standing standing)
{
    static const int steps[] = {
        [STANDING_NOTHING] = 0, [STANDING_ABSENT] = 0,    [STANDING_RELEASED] = 1, [STANDING_RUNNING] = 1,
        [STANDING_UNKNOWN] = 2, [STANDING_COMPLETED] = 3, [STANDING_VOIDED] = 3
    };
    return steps[standing];
}

/* R8: whatever was whole before an event began is a floor for it. */
static void check_order(const struct command *command, struct checker_report *report)
{
    const struct history_event *highest = NULL;
    unsigned executions = 0;
    bool voided = false, ended = false;
    for (size_t i = 0, done = 0; i < command->count; i++) {
        const struct history_event *event = command->events[i];
        enum standing standing = standing_of(event);
        for (; done < command->count && command->by_end[done]->to < event->from; done++) {
            const struct history_event *before = command->by_end[done];
            if (standing_of(before) == STANDING_NOTHING) {
                continue;
            }
            if (highest == NULL || step_of(standing_of(before)) > step_of(standing_of(highest))) {
                highest = before;
            }
            executions = before->executions > executions ? before->executions : executions;
        }
        if (standing == STANDING_NOTHING) {
            continue;
        }
        if (highest != NULL && step_of(standing) < step_of(standing_of(highest))) {
            rule_broken(report, 8, event, "a step back: at %lld it was told further (answer %u %s%s)",
                        (long long) highest->to, highest->answer, highest->word, highest->state);
        }
        if (event->kind == HISTORY_STATUS && event->answer == 200 && event->executions < executions) {
            rule_broken(report, 8, event, "told fewer executions than before (%u)", executions);
        }
        voided = voided || standing == STANDING_VOIDED;
        ended = ended || standing == STANDING_UNKNOWN || standing == STANDING_COMPLETED;
        if (voided && ended) {
            rule_broken(report, 8, event, "told both as voided and as unknown or completed");
            return;
        }
    }
}

/* --- R9, R10, R11 of attempts --- */

static void check_attempt(const struct command *command, const struct history_event *attempt,
                          struct checker_report *report)
{
    size_t at = index_find_no(command->arrivals, attempt->no), count = 0;
    const struct history_event *arrival = NULL;
    for (; at < command->arrivals->count && command->arrivals->items[at]->no == attempt->no; at++) {
        arrival = command->arrivals->items[at];
        count++;
    }
    if (count > 1) {
        rule_broken(report, 9, arrival, "one attempt reached the handler %zu times", count);
    }
    if (arrival == NULL || !is_answered(attempt)) {
        return;
    }
    if (is(attempt->word, "replayed") || attempt->answer == 409) {
        rule_broken(report, 9, attempt, "a repeat reached the handler, as %s", arrival->execution);
    }
    bool own_words = attempt->problem[0] != '\0'; /* of nonbis, not of the handler */
    bool refused = is(attempt->word, "refused") || (own_words && attempt->word[0] == '\0');
    bool not_reached = is(attempt->problem, "upstream-not-reached");
    if (refused || not_reached || (is(attempt->word, "not-executed") && !is_declined(arrival))) {
        rule_broken(report, 10, attempt, "told as not executed; the handler got it as %s", arrival->execution);
    }
}

static void check_end(const struct command *command, struct checker_report *report)
{
    bool asked = command->quiet == HISTORY_NEVER || command->first_asked == HISTORY_NEVER;
    for (size_t i = 0; i < command->count; i++) {
        const struct history_event *event = command->events[i];
        asked = asked || (event->kind == HISTORY_STATUS && event->from > command->settled &&
                          standing_of(event) != STANDING_NOTHING); /* "not now" is no answer to it */
        if (event->kind == HISTORY_ATTEMPT && event->from > command->quiet && !is_answered(event)) {
            rule_broken(report, 11, event, "no answer, though all faults were over");
        }
        if (event->from > command->settled && standing_of(event) == STANDING_RUNNING) {
            rule_broken(report, 11, event, "still in progress, though all faults were over");
        }
    }
    if (!asked) {
        rule_broken(report, 11, command->events[0], "nobody asked in the end what became of this command");
    }
}

void rules_check_command(const struct command *command, struct checker_report *report)
{
    check_arrivals(command, report);
    check_claims(command, report);
    check_recorded(command, report);
    check_loss(command, report);
    check_payloads(command, report);
    check_order(command, report);
    for (size_t i = 0; i < command->count; i++) {
        const struct history_event *event = command->events[i];
        check_honesty(command, event, report);
        if (event->kind == HISTORY_ATTEMPT) {
            check_attempt(command, event, report);
        }
    }
    check_end(command, report);
}
