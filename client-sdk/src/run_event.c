/* run_event.c - what the callback and the counters are told. See run.h. Never bodies, credentials, keys or query strings. */
#include "client-sdk/src/run.h"

#include <stdio.h>

static enum nonbis_next next_of(const struct plan *plan)
{
    enum plan_action action = plan->action == PLAN_WAIT ? plan->next_action : plan->action;
    return action == PLAN_ATTEMPT ? NONBIS_NEXT_ATTEMPT : NONBIS_NEXT_ASK;
}

bool run_event(struct nonbis_op *op, enum nonbis_event_kind kind, const struct reading *reading,
               const struct plan *plan)
{
    struct nonbis_client *client = op->client;
    if (client->on_event == NULL) {
        return true;
    }
    const struct history *history = &op->history;
    int64_t now_ms = run_now_ms(op), left_ms = history->deadline_ms - now_ms;
    char name[512];
    (void) snprintf(name, sizeof(name), "%s %s", op->method, op->endpoint);
    bool begins = kind == NONBIS_EVENT_ATTEMPT || kind == NONBIS_EVENT_SENT;
    bool decides = plan != NULL && (kind == NONBIS_EVENT_DECISION || kind == NONBIS_EVENT_OUTCOME);
    const struct nonbis_event event = {
        .kind = kind,
        .op = op,
        .name = op->name != NULL ? op->name : name,
        .endpoint = op->endpoint,
        .method = op->method,
        .attempt = history->exchanges + (begins ? 1 : 0),
        .attempts_max = (unsigned) policy_value(&client->policy, NONBIS_ATTEMPTS),
        .keyed = op->key[0] != '\0',
        .delay_ms = plan != NULL && plan->action == PLAN_WAIT ? plan->delay_ms : 0,
        .server_delay_ms = plan != NULL ? plan->server_delay_ms : -1,
        .error_kind = reading != NULL ? reading_kind(reading) : "",
        .http_status = reading != NULL ? reading->http_status : 0,
        .decision = kind == NONBIS_EVENT_OUTCOME ? op->reason_text
                    : decides                    ? reason_text(plan->reason)
                                                 : "",
        .deadline_left_ms = left_ms > 0 ? left_ms : 0,
        .tokens_left_milli = budget_tokens_milli(&client->budget),
        .elapsed_ms = reading != NULL ? op->facts.elapsed_ms : now_ms - history->started_ms,
        .bytes_sent = reading != NULL ? op->facts.bytes_sent : 0,
        .outcome = standing_outcome(history->standing),
        .stop = kind == NONBIS_EVENT_OUTCOME ? op->stop : (enum nonbis_stop) 0,
        .next = decides && kind == NONBIS_EVENT_DECISION ? next_of(plan) : (enum nonbis_next) 0,
    };
    return client->on_event(&event, client->on_event_arg) == 0;
}

/* ---- counters ----------------------------------------------------------------------------------------------------- */

/* In which of stats.retry_on a finding that is retried is counted. */
static int retry_column(const struct reading *reading)
{
    switch (reading->http_status) {
    case 408:
        return 0;
    case 425:
        return 1;
    case 429:
        return 2;
    case 503:
        return 3;
    default:
        return reading->http_status >= 500 ? 4 : 5;
    }
}

void run_count_attempt(struct nonbis_op *op, const struct reading *reading)
{
    struct nonbis_stats *stats = &op->client->stats;
    bool ambiguous = standing_after(STANDING_UNSENT, reading->finding) == STANDING_AMBIGUOUS;
    pthread_mutex_lock(&op->client->lock);
    stats->attempts++;
    stats->retries += op->history.tries > 1 ? 1 : 0;
    if (op->history.tries > 1 && op->retry_column >= 0) {
        stats->retry_on[op->retry_column]++;
    }
    op->retry_column = retry_column(reading); /* should there be another */
    stats->ambiguous += ambiguous ? 1 : 0;
    op->was_ambiguous = op->was_ambiguous || ambiguous;
    stats->not_sent += op->facts.hook_calls == 0 || op->facts.hook_refused ? 1 : 0;
    stats->resends_blocked += op->facts.hook_calls > 1 ? 1 : 0;
    stats->replays += reading->replayed ? 1 : 0;
    stats->rate_limited += reading->http_status == 429 ? 1 : 0;
    stats->timeouts += reading->timed_out ? 1 : 0;
    pthread_mutex_unlock(&op->client->lock);
}

void run_count_wait(struct nonbis_op *op, const struct plan *plan)
{
    static const int64_t bounds_ms[NONBIS_DELAY_BUCKETS - 1] = { 100, 250, 500, 1000, 2000, 5000, 10000 };
    int bucket = 0;
    while (bucket < NONBIS_DELAY_BUCKETS - 1 && plan->delay_ms >= bounds_ms[bucket]) {
        bucket++;
    }
    pthread_mutex_lock(&op->client->lock);
    op->client->stats.delays[bucket]++;
    pthread_mutex_unlock(&op->client->lock);
}

void run_count_end(struct nonbis_op *op, int64_t elapsed_ms)
{
    struct nonbis_stats *stats = &op->client->stats;
    bool retried = op->history.tries > 1, completed = op->outcome == NONBIS_COMPLETED;
    pthread_mutex_lock(&op->client->lock);
    stats->runs++;
    stats->outcomes[op->outcome]++;
    stats->stops[op->stop]++;
    stats->completed_after_retry += retried && completed ? 1 : 0;
    stats->failed_after_retry += retried && !completed ? 1 : 0;
    stats->ambiguous_resolved += op->was_ambiguous && op->outcome != NONBIS_UNKNOWN ? 1 : 0;
    stats->elapsed_ms += (uint64_t) elapsed_ms;
    pthread_mutex_unlock(&op->client->lock);
    op->was_ambiguous = false;
    op->retry_column = -1;
}
