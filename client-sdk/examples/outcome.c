/* outcome.c - what a caller does about each outcome, and the history
 * of the attempts.
 *
 *     outcome URL */
#include <nonbis.h>

#include <stdio.h>
#include <string.h>

static const char *advice(const struct nonbis_op *op)
{
    switch (nonbis_op_outcome(op)) {
    case NONBIS_COMPLETED:
        return nonbis_op_http_status(op) < 400
                   ? "done"
                   : "done, and the handler said no";
    case NONBIS_REJECTED:
        return "repair the request, and make a new operation";
    case NONBIS_NOT_SENT:
        return "nothing happened: try again, or tell the user so";
    case NONBIS_NOT_APPLIED:
        return nonbis_op_is_final(op)
                   ? "it never happened and never will"
                   : "run this operation again";
    case NONBIS_IN_PROGRESS:
        return "wait for this operation later";
    case NONBIS_UNKNOWN:
        break;
    }
    return "keep the key; run this operation again, or ask a human";
}

static void show(const struct nonbis_op *op)
{
    const struct nonbis_attempt *attempt;
    unsigned i;

    for (i = 0; (attempt = nonbis_op_attempt(op, i)) != NULL; i++) {
        printf("attempt %u: %s, %s, HTTP %d\n", attempt->number,
               attempt->result, attempt->sent ? "sent" : "not sent",
               attempt->http_status);
    }
    printf("%s: %s\n", nonbis_outcome_name(nonbis_op_outcome(op)),
           advice(op));
    if (nonbis_op_stop(op) == NONBIS_STOP_RETRY_LATER) {
        printf("not before %ld s\n",
               (long) nonbis_op_retry_after_s(op));
    }
}

int main(int argc, char **argv)
{
    static const char body[] = "{\"item\":\"tea\",\"amount\":3}";
    struct nonbis_policy *policy = NULL;
    struct nonbis_client *client = NULL;
    struct nonbis_op *op = NULL;
    int error;

    if (argc != 2) {
        fprintf(stderr, "usage: outcome URL\n");
        return 2;
    }
    /* Somebody waits: two attempts within ten seconds. */
    error = nonbis_policy_new(&policy, "interactive");
    if (error == NONBIS_OK) {
        error = nonbis_client_new(&client, policy);
    }
    if (error == NONBIS_OK) {
        error = nonbis_op_new(&op, client, argv[1], body, strlen(body));
    }
    if (error == NONBIS_OK) {
        error = nonbis_op_run(op);
    }
    if (error == NONBIS_OK) {
        show(op);
    } else {
        fprintf(stderr, "nothing was sent: %s\n",
                nonbis_error_text(error));
    }
    nonbis_op_free(op);
    nonbis_client_free(client);
    nonbis_policy_free(policy);
    return error == NONBIS_OK ? 0 : 1;
}
