/* status.c - asks what became of a key, waits while it runs, and makes
 * "never" of "not yet".
 *
 *     status URL KEY */
#include <nonbis.h>

#include <stdio.h>

static int settle(struct nonbis_op *op)
{
    const struct nonbis_status *status = NULL;
    int error = nonbis_op_status(op, &status);
    if (error != NONBIS_OK) {
        return error;
    }
    if (!status->answered) {
        printf("no answer: %s\n", nonbis_op_message(op));
        return NONBIS_OK;
    }
    if (!status->seen) {
        printf(
            "not seen, which is not never: a copy may be under way\n");
        error = nonbis_op_void(op);
    } else {
        printf("%s, executed: %s\n", status->state, status->executed);
        error = nonbis_op_wait(op);
    }
    if (error == NONBIS_OK) {
        printf("%s%s\n", nonbis_outcome_name(nonbis_op_outcome(op)),
               nonbis_op_is_final(op) ? ", for ever" : "");
    }
    return error;
}

int main(int argc, char **argv)
{
    struct nonbis_client *client = NULL;
    struct nonbis_op *op = NULL;
    int error;

    if (argc != 3) {
        fprintf(stderr, "usage: status URL KEY\n");
        return 2;
    }
    error = nonbis_client_new(&client, NULL);
    if (error == NONBIS_OK) {
        error = nonbis_op_new_for_key(&op, client, argv[1], argv[2]);
    }
    if (error == NONBIS_OK) {
        error = settle(op);
    }
    if (error != NONBIS_OK) {
        fprintf(stderr, "%s\n", nonbis_error_text(error));
    }
    nonbis_op_free(op);
    nonbis_client_free(client);
    return error == NONBIS_OK ? 0 : 1;
}
