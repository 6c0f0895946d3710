/* nearest.c - the name that somebody probably meant. Pure; any thread. */
#include "server/config/settings.h"

#include <string.h>

enum { NAME_BYTES_MAX = 64 }; /* longer ones are never near anything of ours */

/* Case and '-' against '_' are the commonest slips and cost nothing. */
static char folded(char c)
{
    return c >= 'A' && c <= 'Z' ? (char) (c - 'A' + 'a') : c == '-' ? '_' : c;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, substitutions, and swaps of neighbours (optimal string alignment). */
static unsigned edit_distance(struct view a, struct view b)
{
    unsigned rows[3][NAME_BYTES_MAX + 1]; /* the present row of the matrix and the two before it */
    for (unsigned column = 0; column <= b.len; column++) {
        rows[0][column] = column;
    }
    for (unsigned line = 1; line <= a.len; line++) {
        unsigned *now = rows[line % 3];
        const unsigned *before = rows[(line + 2) % 3];
        const unsigned *before_that = rows[(line + 1) % 3];
        now[0] = line;
        for (unsigned column = 1; column <= b.len; column++) {
            char ca = folded(a.ptr[line - 1]);
            char cb = folded(b.ptr[column - 1]);
            unsigned changed = before[column - 1] + (ca != cb);
            now[column] = least(changed, least(before[column], now[column - 1]) + 1);
            bool swapped = line > 1 && column > 1 && ca == folded(b.ptr[column - 2]) && folded(a.ptr[line - 2]) == cb;
            if (swapped) {
                now[column] = least(now[column], before_that[column - 2] + 1);
            }
        }
    }
    return rows[a.len % 3][b.len];
}

const char *nearest_name(struct view word, const char *const *names)
{
    if (word.len == 0 || word.len > NAME_BYTES_MAX) {
        return NULL;
    }
    const char *nearest = NULL;
    unsigned nearest_distance = 0;
    for (; *names != NULL; names++) {
        struct view name = view_of(*names);
        if (name.len > NAME_BYTES_MAX) {
            continue;
        }
        unsigned distance = edit_distance(word, name);
        size_t longer = word.len > name.len ? word.len : name.len;
        bool near = distance * 3 <= longer;
        if (near && (nearest == NULL || distance < nearest_distance)) {
            nearest = *names;
            nearest_distance = distance;
        }
    }
    return nearest;
}
