/* words.h - short words for scripts of the peer (peer.h) in files that have many. */
#ifndef NONBIS_TESTS_PEER_WORDS_H
#define NONBIS_TESTS_PEER_WORDS_H

#include "tests/peer/peer.h"

#define DO(step)                                                                                                       \
    {                                                                                                                  \
        step, NULL, 0                                                                                                  \
    }
#define SAY(text)                                                                                                      \
    {                                                                                                                  \
        PEER_SEND, text, 0                                                                                             \
    }

#endif
