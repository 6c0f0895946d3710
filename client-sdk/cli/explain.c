/* explain.c - see explain.h. */
#include "client-sdk/cli/explain.h"

#include <stdio.h>
#include <string.h>

const char *explain_reason(const char *word)
{
    static const struct {
        const char *word, *sentence;
    } reasons[] = {
        { "completed", "the answer is final" },
        { "max-attempts-reached", "the attempts that --attempts allows are used up" },
        { "non-retryable-error", "the same request would get the same answer" },
        { "operation-not-retry-safe",
          "the server has not shown that it deduplicates here, so a repeat could be a second execution" },
        { "body-not-replayable", "the body is not at hand" },
        { "deadline-exceeded", "no further attempt could end before --deadline" },
        { "server-delay",
          "the server asked for this much patience; chance comes on top, so that a crowd does not return together" },
        { "backoff-jitter", "chance within a window that doubles from --base-delay to --max-delay" },
        { "server-rate-limit", "the server limits the rate; chance comes on top of what it asked for" },
        { "server-wait-too-long", "the server asks for more patience than --max-server-wait or --deadline allow" },
        { "retry-budget-exhausted", "the retry budget is empty: retries may add only so much load" },
        { "circuit-open", "too many failures in a row; the circuit breaker is open" },
        { "offline", "there is no network; that uses up no attempt" },
        { "outcome-check", "it may have been executed, so the server is asked before anything is sent again" },
        { "command-in-progress", "the server still executes it" },
        { "command-completed", "it was executed; its recorded answer is fetched" },
        { "not-seen", "the server knows no such command, so the same key may be sent again" },
        { "key-expired", "the key is older than the server's memory" },
        { "refused", "refused before the handler was asked" },
        { "outcome-unknown", "the server itself cannot know" },
        { "no-status-resource", "the server cannot be asked; only a run with the same key could tell" },
        { "voiding", "\"not yet\" is made \"never\"" },
        { "voided", "it was not executed and never will be" },
        { "cancelled", "a signal asked for it" },
        { "stopped-by-caller", "the caller asked for it" },
        { "local-error", "something here failed" },
    };
    size_t len = strcspn(word, ":"); /* non-retryable-error:KIND */
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (strlen(reasons[i].word) == len && strncmp(reasons[i].word, word, len) == 0) {
            return reasons[i].sentence;
        }
    }
    return "";
}

void explain_tenths(int64_t ms, char out[EXPLAIN_TIME])
{
    int64_t tenths = ms > 0 ? (ms + 99) / 100 : 0; /* upwards: at 0.0 it is over */
    (void) snprintf(out, EXPLAIN_TIME, "%lld.%llds", (long long) (tenths / 10), (long long) (tenths % 10));
}

void explain_ms(int64_t ms, char out[EXPLAIN_TIME])
{
    if (ms < 1000) {
        (void) snprintf(out, EXPLAIN_TIME, "%lldms", (long long) ms);
    } else if (ms >= 120000) {
        (void) snprintf(out, EXPLAIN_TIME, "%lldm%llds", (long long) (ms / 60000), (long long) (ms / 1000 % 60));
    } else if (ms % 1000 == 0) {
        (void) snprintf(out, EXPLAIN_TIME, "%llds", (long long) (ms / 1000));
    } else {
        explain_tenths(ms, out);
    }
}
