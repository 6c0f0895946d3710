/* lookup.c - see lookup.h. */
#include "client-sdk/cli/lookup.h"

#include <stdlib.h>
#include <string.h>

struct wanted {
    const char *key;
    struct lookup *lookup;
};

static int on_entry(const struct nonbis_journal_entry *entry, void *arg)
{
    const struct wanted *wanted = arg;
    if (strcmp(entry->key, wanted->key) != 0) {
        return 0;
    }
    *wanted->lookup = (struct lookup){ .there = true,
                                       .sent = strcmp(entry->state, "sent") == 0,
                                       .decided = strcmp(entry->state, "done") == 0,
                                       .url = entry->fault == NULL ? strdup(entry->url) : NULL,
                                       .fault = entry->fault != NULL ? strdup(entry->fault) : NULL,
                                       .created_ms = entry->created_wall_ms,
                                       .outcome = entry->outcome,
                                       .stop = entry->stop,
                                       .http_status = entry->http_status };
    return 1;
}

int lookup_key(struct lookup *lookup, struct nonbis_client *client, const char *key)
{
    struct wanted wanted = { .key = key, .lookup = lookup };
    *lookup = (struct lookup){ .there = false };
    int result = nonbis_journal_each(client, on_entry, &wanted);
    return result < 0 ? result : NONBIS_OK;
}

void lookup_fini(struct lookup *lookup)
{
    free(lookup->url);
    free(lookup->fault);
    lookup->url = lookup->fault = NULL;
}
