/* budget.c - see budget.h. */
#include "client-sdk/src/budget.h"

void budget_init(struct budget *budget, int64_t size_milli, int64_t deposit_milli, int64_t cost_milli)
{
    atomic_init(&budget->tokens_milli, size_milli);
    budget->size_milli = size_milli;
    budget->deposit_milli = deposit_milli;
    budget->cost_milli = cost_milli;
}

void budget_deposit(struct budget *budget)
{
    long long before = atomic_load(&budget->tokens_milli), after = 0;
    do {
        after = before + budget->deposit_milli;
        if (after > budget->size_milli) {
            after = budget->size_milli;
        }
    } while (!atomic_compare_exchange_weak(&budget->tokens_milli, &before, after));
}

bool budget_has(const struct budget *budget)
{
    return budget->size_milli == 0 || atomic_load(&budget->tokens_milli) >= budget->cost_milli;
}

bool budget_take(struct budget *budget)
{
    if (budget->size_milli == 0) {
        return true;
    }
    long long before = atomic_load(&budget->tokens_milli);
    do {
        if (before < budget->cost_milli) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&budget->tokens_milli, &before, before - budget->cost_milli));
    return true;
}

int64_t budget_tokens_milli(const struct budget *budget)
{
    return budget->size_milli == 0 ? -1 : atomic_load(&budget->tokens_milli);
}
