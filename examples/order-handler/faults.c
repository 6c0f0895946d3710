/* faults.c - the words of faults, and chance. */
#include "examples/order-handler/faults.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>

bool fault_read(struct view text, struct fault *fault)
{
    static const struct {
        struct view word;
        enum fault_kind kind;
    } words[] = {
        { { "close-before", 12 }, FAULT_CLOSE_BEFORE },
        { { "close-after", 11 }, FAULT_CLOSE_AFTER },
        { { "hang", 4 }, FAULT_HANG },
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (view_equal(text, words[i].word)) {
            *fault = (struct fault){ .kind = words[i].kind };
            return true;
        }
    }
    struct view prefix = VIEW("status=");
    if (view_starts_with(text, prefix)) {
        text = view_make(text.ptr + prefix.len, text.len - prefix.len);
    }
    uint64_t status;
    if (!view_to_uint64(text, &status) || status < 200 || status > 599) {
        return false;
    }
    *fault = (struct fault){ .kind = FAULT_STATUS, .status = (unsigned) status };
    return true;
}

bool faults_strike(const struct faults *faults)
{
    if (faults->fault.kind == FAULT_NONE || faults->rate_percent == 0) {
        return false;
    }
    uint16_t chance = 0;
    if (faults->rate_percent < 100 && getrandom(&chance, sizeof chance, 0) != (ssize_t) sizeof chance) {
        return true;
    }
    return chance % 100 < faults->rate_percent;
}

void faults_wait(unsigned ms)
{
    struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = (long) (ms % 1000) * 1000000L };
    while (ms != 0 && nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}
