/* transport.c - what every transport shares. */
#include "client-sdk/src/transport.h"

#include <string.h>

void transport_facts_init(struct transport_facts *facts, size_t body_max)
{
    memset(facts, 0, sizeof(*facts));
    answer_init(&facts->answer, body_max);
}

void transport_facts_fini(struct transport_facts *facts)
{
    answer_fini(&facts->answer);
}
