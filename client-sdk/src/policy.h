/* policy.h - how often, how long, how patiently: the values behind struct nonbis_policy. Owns numbers only.
 *
 * One table (policy.c) holds every option's name, unit, range and help; profiles are rows over it. A client copies its
 * policy, and nothing changes it afterwards: then any thread may read it. */
#ifndef NONBIS_CLIENT_POLICY_H
#define NONBIS_CLIENT_POLICY_H

#include "client-sdk/include/nonbis.h"

#include <stdbool.h>

struct nonbis_policy {
    int64_t values[NONBIS_OPTION_END]; /* by enum nonbis_option; [0] is not used */
};

/* False when there is no profile of that name (NULL: standard). */
bool policy_init(struct nonbis_policy *policy, const char *profile);

/* The value of an option that exists. */
static inline int64_t policy_value(const struct nonbis_policy *policy, enum nonbis_option option)
{
    return policy->values[option];
}

/* NULL, or a sentence about two options that contradict each other. */
const char *policy_contradiction(const struct nonbis_policy *policy);

#endif
