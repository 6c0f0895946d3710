/* nearest.c - see nearest.h. The distance counts letters that are missing, added, other, or exchanged with their neighbour. */
#include "client-sdk/cli/nearest.h"

#include <stdbool.h>
#include <string.h>

enum { WORD_MAX = 40 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned distance_of(const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b);
    unsigned rows[3][WORD_MAX + 1]; /* the row before the last, the last, this one */
    if (a_len > WORD_MAX || b_len > WORD_MAX) {
        return WORD_MAX;
    }
    for (size_t j = 0; j <= b_len; j++) {
        rows[0][j] = rows[1][j] = rows[2][j] = (unsigned) j;
    }
    for (size_t i = 1; i <= a_len; i++) {
        const unsigned *two_ago = rows[(i + 1) % 3], *last = rows[(i + 2) % 3];
        unsigned *now = rows[i % 3];
        now[0] = (unsigned) i;
        for (size_t j = 1; j <= b_len; j++) {
            unsigned best = least(last[j], now[j - 1]) + 1;
            best = least(best, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                best = least(best, two_ago[j - 2] + 1);
            }
            now[j] = best;
        }
    }
    return rows[a_len % 3][b_len];
}

void nearest_begin(struct nearest *nearest, const char *word)
{
    *nearest = (struct nearest){ .word = word };
}

void nearest_offer(struct nearest *nearest, const char *candidate)
{
    size_t len = strlen(nearest->word);
    unsigned distance = distance_of(nearest->word, candidate);
    /* A beginning counts as one mistake; else a third of the letters may be wrong. */
    bool begins = len >= 3 && strncmp(nearest->word, candidate, len) == 0;
    if (begins) {
        distance = least(distance, 1);
    }
    if ((begins || distance <= 1 + len / 4) && (nearest->best == NULL || distance < nearest->distance)) {
        nearest->best = candidate;
        nearest->distance = distance;
    }
}
