/* plan_step.h - between planner.c (what a finding leads to) and plan_step.c (waits, questions, limits). Pure. */
#ifndef NONBIS_CLIENT_PLAN_STEP_H
#define NONBIS_CLIENT_PLAN_STEP_H

#include "client-sdk/src/planner.h"

static inline int64_t plan_value(const struct plan_input *in, enum nonbis_option option)
{
    return policy_value(in->policy, option);
}

static inline int64_t plan_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t plan_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

bool plan_can_ask(const struct plan_input *in);  /* the server can be asked about the command at all */
bool plan_may_send(const struct plan_input *in); /* the caller wants it: wait, void and status never send the command */
bool plan_is_open(const struct plan_input *in);  /* something that was sent is not settled yet */
bool plan_is_safe(const struct plan_input *in);  /* a further sending can do no harm */
bool plan_key_is_too_old(
    const struct plan_input *in); /* the server may have forgotten it: a sending would be a new command */
int64_t plan_floor_left(const struct plan_input *in); /* what is left of the patience that the server asked for */
int64_t plan_backoff_ms(const struct plan_input *in);
int64_t plan_poll_ms(const struct plan_input *in);

struct plan plan_stop(const struct plan_input *in, enum nonbis_stop stop, enum reason reason);
struct plan plan_stop_later(const struct plan_input *in, int64_t wait_ms, enum reason reason);
struct plan plan_stop_untold(const struct plan_input *in); /* only a sending could tell more */

/* Now: an attempt, or a question. What is left of the deadline bounds it. */
struct plan plan_do(const struct plan_input *in, enum plan_action action, enum ask ask, enum reason reason);

/* A wait of `delay_ms` behind what the server asks for, or a stop when it cannot end in time. */
struct plan plan_wait(const struct plan_input *in, int64_t delay_ms, enum plan_action next, enum ask ask,
                      enum reason reason);

/* A question at once, unless the server asked for patience. */
struct plan plan_ask(const struct plan_input *in, enum ask ask, enum reason reason);

/* A limit forbids to send again: what is still open is asked for until it is decided or time is up; then the stop. */
struct plan plan_blocked(const struct plan_input *in, enum nonbis_stop stop, enum reason reason);

/* Sends again after `delay_ms`, or tells which limit forbids it; plan_retry takes delay and reason from the policy. */
struct plan plan_retry_after(const struct plan_input *in, int64_t delay_ms, enum reason reason);
struct plan plan_retry(const struct plan_input *in);

#endif
