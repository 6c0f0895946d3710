/* store_tally.c - see store_tally.h. */
#include "tests/model/store_tally.h"

#include "tests/support/suite.h"

static const char *const operation_names[OPERATION_COUNT] = {
    "claim",      "claim-unallowed", "claim-payload", "claim-credential", "complete", "release", "lose",
    "finish-old", "finish-foreign",  "look-up",       "look-up-id",       "void",     "sweep",
};

/* What came of it: a name of at most this many per operation. */
enum { RESULTS_MAX = 24 };
static struct {
    const char *name;
    unsigned count;
} results[OPERATION_COUNT][RESULTS_MAX];

/* Each of these must have happened. */
static const struct {
    enum operation operation;
    const char *result;
} required[] = {
    { CLAIM_SAME, "new" },
    { CLAIM_SAME, "taken-over" },
    { CLAIM_SAME, "replay" },
    { CLAIM_SAME, "wait" },
    { CLAIM_SAME, "in-progress" },
    { CLAIM_SAME, "key-expired" },
    { CLAIM_SAME, "key-voided" },
    { CLAIM_SAME, "outcome-unknown" },
    { CLAIM_UNALLOWED, "forward" },
    { CLAIM_UNALLOWED, "replay" },
    { CLAIM_OTHER_PAYLOAD, "new" },
    { CLAIM_OTHER_PAYLOAD, "key-reused" },
    { CLAIM_OTHER_CREDENTIAL, "new" },
    { CLAIM_OTHER_CREDENTIAL, "taken-over" },
    { CLAIM_OTHER_CREDENTIAL, "key-reused" },
    { FINISH_COMPLETED, "ok" },
    { FINISH_COMPLETED, "stale" },
    { FINISH_COMPLETED, "late truth" },
    { FINISH_RELEASED, "ok" },
    { FINISH_RELEASED, "stale" },
    { FINISH_RELEASED, "past the deadline" },
    { FINISH_UNKNOWN, "ok" },
    { FINISH_UNKNOWN, "stale" },
    { FINISH_OLD, "stale" },
    { FINISH_FOREIGN, "stale" },
    { LOOK_UP, "absent" },
    { LOOK_UP, "in_progress" },
    { LOOK_UP, "completed" },
    { LOOK_UP, "unknown" },
    { LOOK_UP, "released" },
    { LOOK_UP, "expired" },
    { LOOK_UP, "voided" },
    { LOOK_UP_ID, "absent" },
    { LOOK_UP_ID, "foreign" },
    { LOOK_UP_ID, "in_progress" },
    { LOOK_UP_ID, "completed" },
    { LOOK_UP_ID, "released" },
    { LOOK_UP_ID, "voided" },
    { VOID, "voided unseen" },
    { VOID, "voided released" },
    { VOID, "in_progress" },
    { VOID, "completed" },
    { VOID, "unknown" },
    { VOID, "expired" },
    { VOID, "voided" },
    { SWEEP, "nothing" },
    { SWEEP, "expired" },
    { SWEEP, "forgotten" },
    { SWEEP, "both" },
    { SWEEP, "limit met" },
};

void tally_count(enum operation operation, const char *name)
{
    for (int i = 0; i < RESULTS_MAX; i++) {
        if (results[operation][i].name == NULL) {
            results[operation][i].name = name;
        }
        if (strcmp(results[operation][i].name, name) == 0) {
            results[operation][i].count++;
            return;
        }
    }
    ck_abort_msg("more results of %s than there is room for", operation_names[operation]);
}

void tally_print(void)
{
    for (int i = 0; i < OPERATION_COUNT; i++) {
        char line[512];
        int len = snprintf(line, sizeof line, "%s:", operation_names[i]);
        for (int j = 0; j < RESULTS_MAX && results[i][j].name != NULL; j++) {
            len += snprintf(line + len, sizeof line - (size_t) len, " %s=%u", results[i][j].name, results[i][j].count);
        }
        FIGURE("store model %s", line);
    }
}

void tally_check(void)
{
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        unsigned count = 0;
        for (int j = 0; j < RESULTS_MAX && results[required[i].operation][j].name != NULL; j++) {
            if (strcmp(results[required[i].operation][j].name, required[i].result) == 0) {
                count = results[required[i].operation][j].count;
            }
        }
        ck_assert_msg(count > 0, "%s never came to \"%s\"", operation_names[required[i].operation], required[i].result);
    }
}
