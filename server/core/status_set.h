/* status_set.h - a set of HTTP status codes, 100 to 599, as bits. Pure. Any thread. */
#ifndef NONBIS_SERVER_CORE_STATUS_SET_H
#define NONBIS_SERVER_CORE_STATUS_SET_H

#include <stdbool.h>
#include <stdint.h>

struct status_set {
    uint64_t bits[8]; /* status - 100 */
};

static inline void status_set_add(struct status_set *set, int status)
{
    if (status >= 100 && status < 600) {
        set->bits[(status - 100) / 64] |= UINT64_C(1) << ((status - 100) % 64);
    }
}

static inline bool status_set_has(const struct status_set *set, int status)
{
    return status >= 100 && status < 600 && ((set->bits[(status - 100) / 64] >> ((status - 100) % 64)) & 1) != 0;
}

#endif
