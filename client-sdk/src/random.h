/* random.h - where chance comes from. Tests bring a seeded source; the system's is getrandom(2). Thread-safe. */
#ifndef NONBIS_CLIENT_RANDOM_H
#define NONBIS_CLIENT_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random_source {
    /* Fills `bytes`; false when chance is not to be had: no key is made then. */
    bool (*fill)(struct random_source *source, void *bytes, size_t len);
};

struct random_source *random_system(void);

/* A word for jitter. When the source fails: a word from the clock, since a bad jitter harms nobody, a missing one does. */
uint64_t random_word(struct random_source *source);

#endif
