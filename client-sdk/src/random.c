/* random.c - see random.h. */
#include "client-sdk/src/random.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>

static bool system_fill(struct random_source *source, void *bytes, size_t len)
{
    (void) source;
    unsigned char *at = bytes;
    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        at += got;
        len -= (size_t) got;
    }
    return true;
}

struct random_source *random_system(void)
{
    static struct random_source system_source = { .fill = system_fill };
    return &system_source;
}

uint64_t random_word(struct random_source *source)
{
    uint64_t word = 0;
    if (!source->fill(source, &word, sizeof(word))) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        /* The last digits of a clock in the upper bits, which is where backoff_below looks. */
        word = (uint64_t) now.tv_nsec * UINT64_C(0x9E3779B97F4A7C15);
    }
    return word;
}
