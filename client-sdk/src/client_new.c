/* client_new.c - a client out of the real parts: libcurl, the directory of the journal, the system's clock and chance. Apart
 * from client.c, so that tests with parts of their own need neither. */
#include "client-sdk/src/client.h"

int nonbis_client_new(struct nonbis_client **out, const struct nonbis_policy *policy)
{
    int error = NONBIS_ERROR_TRANSPORT;
    if (out == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    struct transport *transport = transport_curl_new(&error);
    if (transport == NULL) {
        return error;
    }
    const struct client_parts parts = { .transport = transport, .clock = clock_system(), .random = random_system() };
    error = client_make(out, policy, &parts);
    if (error != NONBIS_OK) {
        transport->free(transport);
    }
    return error;
}

int nonbis_client_use_journal(struct nonbis_client *client, const char *path)
{
    if (client == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    if (client->parts.journal != NULL) {
        return NONBIS_ERROR_STATE;
    }
    client->parts.journal = journal_directory_open(path, client->message, sizeof(client->message));
    return client->parts.journal != NULL ? NONBIS_OK : NONBIS_ERROR_JOURNAL;
}
