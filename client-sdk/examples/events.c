/* events.c - writes a line for everything that happens on the way.
 *
 *     events URL */
#include <nonbis.h>

#include <stdio.h>
#include <string.h>

static int tell(const struct nonbis_event *event, void *arg)
{
    FILE *out = arg;
    switch (event->kind) {
    case NONBIS_EVENT_ATTEMPT:
        fprintf(out, "%s: attempt %u of %u\n", event->name,
                event->attempt, event->attempts_max);
        break;
    case NONBIS_EVENT_SENT:
        fprintf(out, "  connected, sending\n");
        break;
    case NONBIS_EVENT_ANSWER:
        fprintf(out, "  HTTP %d %s\n", event->http_status,
                event->error_kind);
        break;
    case NONBIS_EVENT_DECISION:
        fprintf(out, "  %s%s\n", event->decision,
                event->server_delay_ms > 0 ? ", as the server asked"
                                           : "");
        break;
    case NONBIS_EVENT_ASK:
        fprintf(out, "  asking the server what it knows\n");
        break;
    case NONBIS_EVENT_TOLD:
        fprintf(out, "  told: %s\n", event->error_kind);
        break;
    case NONBIS_EVENT_OUTCOME:
        fprintf(out, "%s: %s, %s\n", event->name,
                nonbis_outcome_name(event->outcome), event->decision);
        break;
    }
    return 0; /* 1 would stop the run */
}

int main(int argc, char **argv)
{
    static const char body[] = "{\"item\":\"tea\",\"amount\":3}";
    struct nonbis_client *client = NULL;
    struct nonbis_op *op = NULL;
    int error;

    if (argc != 2) {
        fprintf(stderr, "usage: events URL\n");
        return 2;
    }
    error = nonbis_client_new(&client, NULL);
    if (error == NONBIS_OK) {
        nonbis_client_on_event(client, tell, stdout);
        error = nonbis_op_new(&op, client, argv[1], body, strlen(body));
    }
    if (error == NONBIS_OK) {
        error = nonbis_op_set_name(op, "tea");
    }
    if (error == NONBIS_OK) {
        error = nonbis_op_run(op);
    }
    nonbis_op_free(op);
    nonbis_client_free(client);
    return error == NONBIS_OK ? 0 : 1;
}
