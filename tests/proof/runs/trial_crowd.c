/* trial_crowd.c - many attempts of a trial at once, a thread each. */
#include "tests/proof/runs/trial.h"

static void *crowd_run(void *context)
{
    struct trial_crowd *crowd = context;
    unsigned i = __atomic_fetch_add(&crowd->next, 1, __ATOMIC_SEQ_CST);
    (void) trial_attempt(crowd->trial, &crowd->intents[i], &crowd->told[i]);
    return NULL;
}

void trial_crowd_begin(struct trial_crowd *crowd, struct trial *trial, const struct intent *intents,
                       struct history_event *told, unsigned count)
{
    *crowd = (struct trial_crowd){ .trial = trial, .intents = intents, .told = told, .count = count };
    crowd->threads = calloc(count, sizeof *crowd->threads);
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(pthread_create(&crowd->threads[i], NULL, crowd_run, crowd), 0);
    }
}

void trial_crowd_end(struct trial_crowd *crowd)
{
    for (unsigned i = 0; i < crowd->count; i++) {
        pthread_join(crowd->threads[i], NULL);
    }
    free(crowd->threads);
}
