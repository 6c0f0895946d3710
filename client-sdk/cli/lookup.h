/* lookup.h - what the journal has about one key. */
#ifndef NONBIS_CLI_LOOKUP_H
#define NONBIS_CLI_LOOKUP_H

#include "client-sdk/include/nonbis.h"

#include <stdbool.h>
#include <stdint.h>

struct lookup {
    bool there;
    bool sent, decided; /* where its entry lies */
    char *url;          /* owned; NULL: not there, cannot be read, or memory is out */
    char *fault;        /* owned; why it cannot be read; NULL: it can */
    int64_t created_ms;
    enum nonbis_outcome outcome;
    enum nonbis_stop stop;
    int http_status;
};

/* NONBIS_OK also when it is not there. fini either way. */
int lookup_key(struct lookup *lookup, struct nonbis_client *client, const char *key);
void lookup_fini(struct lookup *lookup);

#endif
