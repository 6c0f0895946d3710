/* budget.h - the retry budget of a client: a bucket that first attempts fill and retries empty, so that retries stay about
 * a tenth of the traffic when everything fails. In thousandths of a token, since tenths drift in floating point.
 *
 * Starts full. Lock-free; any thread. Never below 0, never above its size. */
#ifndef NONBIS_CLIENT_BUDGET_H
#define NONBIS_CLIENT_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct budget {
    atomic_llong tokens_milli;
    int64_t size_milli;    /* 0: no budget, every retry is allowed */
    int64_t deposit_milli; /* of a first attempt */
    int64_t cost_milli;    /* of a retry */
};

void budget_init(struct budget *budget, int64_t size_milli, int64_t deposit_milli, int64_t cost_milli);

void budget_deposit(struct budget *budget);   /* a first attempt begins */
bool budget_has(const struct budget *budget); /* a retry could be paid now; only budget_take makes it certain */
bool budget_take(struct budget *budget);      /* pays a retry, or says that it cannot */
int64_t budget_tokens_milli(const struct budget *budget); /* -1: no budget */

#endif
