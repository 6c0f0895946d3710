/* policy.c - the table of options and the profiles over it; see policy.h. Owns no state. */
#include "client-sdk/src/policy.h"

#include "common/view.h"

#include <stdlib.h>
#include <string.h>

enum unit {
    UNIT_COUNT,
    UNIT_MS,
    UNIT_MILLI, /* thousandths of a token */
    UNIT_BYTES,
    UNIT_SWITCH,
    UNIT_JITTER,
    UNIT_SERVER
};

#define DAY_MS INT64_C(86400000)

static const struct option_row {
    const char *name;
    enum unit unit;
    int64_t least, most;
    int64_t standard; /* the profile that the others are differences from */
    const char *help;
} options[NONBIS_OPTION_END] = {
    [NONBIS_ATTEMPTS] = { "attempts", UNIT_COUNT, 1, 100, 4, "sendings in all, 1 to 100; 1: never again" },
    [NONBIS_BASE_MS] = { "base-delay", UNIT_MS, 0, DAY_MS, 500, "window of the first wait, 0 to 1d; doubles" },
    [NONBIS_CAP_MS] = { "max-delay", UNIT_MS, 0, DAY_MS, 8000, "largest window of a wait, 0 to 1d" },
    [NONBIS_JITTER] = { "jitter", UNIT_JITTER, NONBIS_JITTER_FULL, NONBIS_JITTER_DECORRELATED, NONBIS_JITTER_FULL,
                        "full, equal or decorrelated" },
    [NONBIS_ATTEMPT_MS] = { "attempt-timeout", UNIT_MS, 1, DAY_MS, 10000, "of one attempt, 1ms to 1d" },
    [NONBIS_CONNECT_MS] = { "connect-timeout", UNIT_MS, 1, DAY_MS, 3000,
                            "name, TCP and TLS of one attempt, 1ms to 1d" },
    [NONBIS_DEADLINE_MS] = { "deadline", UNIT_MS, 1, 7 * DAY_MS, 30000, "of all attempts and waits, 1ms to 7d" },
    [NONBIS_MIN_ATTEMPT_MS] = { "min-attempt", UNIT_MS, 0, DAY_MS, 500, "time that a wait must leave, 0 to 1d" },
    [NONBIS_SERVER_WAIT_MS] = { "max-server-wait", UNIT_MS, 0, 7 * DAY_MS, 60000,
                                "longest Retry-After that is waited for, 0 to 7d" },
    [NONBIS_BUDGET_MILLI] = { "budget", UNIT_MILLI, 0, 1000000000, 10000,
                              "size of the retry budget in tokens; 0: none" },
    [NONBIS_DEPOSIT_MILLI] = { "budget-deposit", UNIT_MILLI, 0, 1000000, 100, "tokens that a first attempt adds" },
    [NONBIS_COST_MILLI] = { "budget-cost", UNIT_MILLI, 1, 1000000, 1000, "tokens that a retry takes" },
    [NONBIS_BREAKER_FAILURES] = { "breaker-failures", UNIT_COUNT, 0, 1000000, 0,
                                  "failures in a row that open the circuit; 0: no circuit breaker" },
    [NONBIS_BREAKER_MS] = { "breaker-open", UNIT_MS, 1, DAY_MS, 30000, "how long it stays open, 1ms to 1d" },
    [NONBIS_SERVER] = { "server", UNIT_SERVER, NONBIS_SERVER_DETECT, NONBIS_SERVER_PLAIN, NONBIS_SERVER_DETECT,
                        "detect, nonbis, keyed (deduplicates, no status) or plain (does not deduplicate)" },
    [NONBIS_STATUS_MS] = { "status-timeout", UNIT_MS, 1, DAY_MS, 2000, "of one question for the status, 1ms to 1d" },
    [NONBIS_POLL_MS] = { "poll", UNIT_MS, 0, DAY_MS, 5000, "window of the first wait for a running command, 0 to 1d" },
    [NONBIS_POLL_CAP_MS] = { "max-poll", UNIT_MS, 0, DAY_MS, 60000, "largest window of such a wait, 0 to 1d" },
    [NONBIS_HOLD_MS] = { "hold", UNIT_MS, 0, DAY_MS, 5000, "how long a status query asks to be held, 0 to 1d" },
    [NONBIS_RETENTION_MS] = { "retention", UNIT_MS, 0, 3650 * DAY_MS, DAY_MS,
                              "how long the server surely remembers a key, 0 to 3650d" },
    [NONBIS_RESPONSE_MAX] = { "response-max", UNIT_BYTES, 0, INT64_C(1) << 30, 16 << 20,
                              "bytes of an answer that are kept, 0 to 1GiB" },
    [NONBIS_KEY_QUOTED] = { "key-quoted", UNIT_SWITCH, 0, 1, 0, "1: Idempotency-Key: \"k\", 0: bare" },
    [NONBIS_SEED] = { "seed", UNIT_COUNT, 0, INT64_MAX, 0, "the same chances in waits again; 0: the system's" },
};

/* attempts, base, cap, attempt, deadline, server wait, budget, poll: in this order, -1 is as in standard. */
static const enum nonbis_option profile_columns[] = { NONBIS_ATTEMPTS,     NONBIS_BASE_MS,     NONBIS_CAP_MS,
                                                      NONBIS_ATTEMPT_MS,   NONBIS_DEADLINE_MS, NONBIS_SERVER_WAIT_MS,
                                                      NONBIS_BUDGET_MILLI, NONBIS_POLL_MS,     NONBIS_HOLD_MS,
                                                      NONBIS_JITTER };
enum { PROFILE_COLUMNS = sizeof(profile_columns) / sizeof(profile_columns[0]) };

static const struct profile_row {
    const char *name;
    int64_t values[PROFILE_COLUMNS];
} profiles[] = {
    { "standard", { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 } },
    { "interactive", { 2, 500, 2000, 5000, 10000, 10000, 3000, 1000, 2000, -1 } },
    { "batch", { 6, 1000, 30000, 20000, 300000, 120000, 10000, -1, -1, -1 } },
    { "read", { 3, 300, 3000, 8000, 8000, 8000, 20000, 1000, 2000, -1 } },
    { "background", { 2, 1000, 30000, 15000, 15000, 15000, 20000, -1, -1, -1 } },
    { "unkeyed", { 1, 300, 3000, 8000, 8000, 8000, 3000, 1000, 2000, -1 } },
    { "keyed", { 2, 500, 2000, 10000, 10000, 10000, 3000, 1000, 2000, -1 } },
    { "reconnect", { 6, 500, 30000, 20000, 300000, 120000, 10000, -1, -1, NONBIS_JITTER_DECORRELATED } },
};

static const struct option_row *option_row(enum nonbis_option option)
{
    return (int) option > 0 && option < NONBIS_OPTION_END ? &options[option] : NULL;
}

bool policy_init(struct nonbis_policy *policy, const char *profile)
{
    const char *wanted = profile != NULL ? profile : "standard";
    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        if (strcmp(profiles[i].name, wanted) != 0) {
            continue;
        }
        policy->values[0] = 0;
        for (int option = 1; option < NONBIS_OPTION_END; option++) {
            policy->values[option] = options[option].standard;
        }
        for (size_t column = 0; column < PROFILE_COLUMNS; column++) {
            if (profiles[i].values[column] >= 0) {
                policy->values[profile_columns[column]] = profiles[i].values[column];
            }
        }
        return true;
    }
    return false;
}

const char *policy_contradiction(const struct nonbis_policy *policy)
{
    if (policy_value(policy, NONBIS_MIN_ATTEMPT_MS) > policy_value(policy, NONBIS_DEADLINE_MS)) {
        return "min-attempt is longer than deadline: no attempt could ever follow a wait";
    }
    if (policy_value(policy, NONBIS_BASE_MS) > policy_value(policy, NONBIS_CAP_MS)) {
        return "base-delay is longer than max-delay";
    }
    if (policy_value(policy, NONBIS_POLL_MS) > policy_value(policy, NONBIS_POLL_CAP_MS)) {
        return "poll is longer than max-poll";
    }
    int64_t budget = policy_value(policy, NONBIS_BUDGET_MILLI);
    if (budget > 0 && policy_value(policy, NONBIS_COST_MILLI) > budget) {
        return "budget-cost is larger than budget: no retry could ever be paid; attempts=1 says so directly";
    }
    return NULL;
}

/* ---- public ------------------------------------------------------------------------------------------------------- */

int nonbis_policy_new(struct nonbis_policy **out, const char *profile)
{
    if (out == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    struct nonbis_policy *policy = malloc(sizeof(*policy));
    if (policy == NULL) {
        return NONBIS_ERROR_MEMORY;
    }
    if (!policy_init(policy, profile)) {
        free(policy);
        return NONBIS_ERROR_NAME;
    }
    *out = policy;
    return NONBIS_OK;
}

const char *nonbis_profile_name(unsigned index)
{
    return index < sizeof(profiles) / sizeof(profiles[0]) ? profiles[index].name : NULL;
}

int nonbis_policy_check(const struct nonbis_policy *policy, const char **why)
{
    if (policy == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    const char *contradiction = policy_contradiction(policy);
    if (contradiction != NULL && why != NULL) {
        *why = contradiction;
    }
    return contradiction == NULL ? NONBIS_OK : NONBIS_ERROR_POLICY;
}

void nonbis_policy_free(struct nonbis_policy *policy)
{
    free(policy);
}

int nonbis_policy_set(struct nonbis_policy *policy, enum nonbis_option option, int64_t value)
{
    const struct option_row *row = option_row(option);
    if (policy == NULL || row == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    if (value < row->least || value > row->most) {
        return NONBIS_ERROR_RANGE;
    }
    policy->values[option] = value;
    return NONBIS_OK;
}

int64_t nonbis_policy_get(const struct nonbis_policy *policy, enum nonbis_option option)
{
    return policy == NULL || option_row(option) == NULL ? -1 : policy->values[option];
}

const char *nonbis_option_name(enum nonbis_option option)
{
    const struct option_row *row = option_row(option);
    return row != NULL ? row->name : NULL;
}

const char *nonbis_option_help(enum nonbis_option option)
{
    const struct option_row *row = option_row(option);
    return row != NULL ? row->help : NULL;
}

/* ---- values as text ----------------------------------------------------------------------------------------------- */

struct word {
    const char *text;
    int64_t value;
};

static bool word_read(const char *text, const struct word *words, int64_t *value)
{
    for (; words->text != NULL; words++) {
        if (strcmp(text, words->text) == 0) {
            *value = words->value;
            return true;
        }
    }
    return false;
}

/* Digits, then one of the suffixes. */
static bool scaled_read(const char *text, const struct word *suffixes, int64_t *value)
{
    size_t digits = strspn(text, "0123456789");
    uint64_t number = 0;
    int64_t factor = 0;
    if (!view_to_uint64(view_make(text, digits), &number) || !word_read(text + digits, suffixes, &factor) ||
        number > (uint64_t) (INT64_MAX / factor)) {
        return false;
    }
    *value = (int64_t) number * factor;
    return true;
}

/* "3", "0.1", "0.125": thousandths, and no finer. */
static bool milli_read(const char *text, int64_t *value)
{
    size_t whole = strspn(text, "0123456789");
    uint64_t tokens = 0, rest = 0;
    if (!view_to_uint64(view_make(text, whole), &tokens) || tokens > 1000000) {
        return false;
    }
    if (text[whole] == '.') {
        const char *fraction = text + whole + 1;
        size_t digits = strspn(fraction, "0123456789");
        if (digits < 1 || digits > 3 || fraction[digits] != '\0' ||
            !view_to_uint64(view_make(fraction, digits), &rest)) {
            return false;
        }
        for (; digits < 3; digits++) {
            rest *= 10;
        }
    } else if (text[whole] != '\0') {
        return false;
    }
    *value = (int64_t) (tokens * 1000 + rest);
    return true;
}

static bool option_read(enum unit unit, const char *text, int64_t *value)
{
    static const struct word none[] = { { "", 1 }, { NULL, 0 } };
    static const struct word times[] = { { "", 1 },        { "ms", 1 },       { "s", 1000 }, { "m", 60000 },
                                         { "h", 3600000 }, { "d", 86400000 }, { NULL, 0 } };
    static const struct word sizes[] = {
        { "", 1 }, { "B", 1 }, { "KiB", 1024 }, { "MiB", 1048576 }, { "GiB", 1073741824 }, { NULL, 0 }
    };
    static const struct word switches[] = { { "0", 0 }, { "off", 0 }, { "1", 1 }, { "on", 1 }, { NULL, 0 } };
    static const struct word jitters[] = { { "full", NONBIS_JITTER_FULL },
                                           { "equal", NONBIS_JITTER_EQUAL },
                                           { "decorrelated", NONBIS_JITTER_DECORRELATED },
                                           { NULL, 0 } };
    static const struct word servers[] = { { "detect", NONBIS_SERVER_DETECT },
                                           { "nonbis", NONBIS_SERVER_NONBIS },
                                           { "keyed", NONBIS_SERVER_KEYED },
                                           { "plain", NONBIS_SERVER_PLAIN },
                                           { NULL, 0 } };
    switch (unit) {
    case UNIT_COUNT:
        return scaled_read(text, none, value);
    case UNIT_MS:
        return scaled_read(text, times, value);
    case UNIT_MILLI:
        return milli_read(text, value);
    case UNIT_BYTES:
        return scaled_read(text, sizes, value);
    case UNIT_SWITCH:
        return word_read(text, switches, value);
    case UNIT_JITTER:
        return word_read(text, jitters, value);
    case UNIT_SERVER:
        return word_read(text, servers, value);
    }
    return false;
}

int nonbis_policy_set_text(struct nonbis_policy *policy, const char *name, const char *text)
{
    if (policy == NULL || name == NULL || text == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    for (int option = 1; option < NONBIS_OPTION_END; option++) {
        if (strcmp(options[option].name, name) == 0) {
            int64_t value = 0;
            return option_read(options[option].unit, text, &value)
                       ? nonbis_policy_set(policy, (enum nonbis_option) option, value)
                       : NONBIS_ERROR_RANGE;
        }
    }
    return NONBIS_ERROR_NAME;
}
