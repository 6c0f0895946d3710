/* strict.h - reads requests as RFC 9112 writes them, and nothing else: what is not that to the letter is odd. It shares no code with the server,
 * so that both cannot be wrong in the same way. Pure. */
#ifndef NONBIS_TESTS_PROOF_STRICT_H
#define NONBIS_TESTS_PROOF_STRICT_H

#include "common/buf.h"

enum strict_result {
    STRICT_WHOLE,
    STRICT_CUT,  /* well so far, and the bytes end in the middle of it */
    STRICT_NONE, /* no byte is left */
    STRICT_ODD,  /* not a request, or one that two readers could read in two ways */
};

struct strict {
    struct view method, target, key; /* key: the first line of that field, empty when there is none */
    unsigned keys;                   /* lines of it */
    struct buf body;                 /* without chunk framing */
    bool headed;                     /* the head is whole */
};

/* Takes one request off `rest` (all of it when the request is cut or odd). `request` is made new; free it with strict_fini. */
enum strict_result strict_next(struct view *rest, struct strict *request);
void strict_fini(struct strict *request);

#endif
