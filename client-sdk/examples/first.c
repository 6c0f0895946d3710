/* first.c - sends one order, and says what became of it.
 *
 *     first URL */
#include <nonbis.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    static const char body[] = "{\"item\":\"tea\",\"amount\":3}";
    struct nonbis_client *client = NULL;
    struct nonbis_op *op = NULL;
    int error, ok = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: first URL\n");
        return 2;
    }
    error = nonbis_client_new(&client, NULL);
    if (error == NONBIS_OK) {
        error = nonbis_op_new(&op, client, argv[1], body, strlen(body));
    }
    if (error == NONBIS_OK) {
        error = nonbis_op_set_header(op, "Content-Type",
                                     "application/json", 0);
    }
    if (error == NONBIS_OK) {
        error = nonbis_op_run(op);
    }
    if (error != NONBIS_OK) {
        fprintf(stderr, "nothing was sent: %s\n",
                nonbis_error_text(error));
    } else {
        ok = nonbis_op_outcome(op) == NONBIS_COMPLETED;
        printf("%s, %s, HTTP %d\n",
               nonbis_outcome_name(nonbis_op_outcome(op)),
               nonbis_stop_name(nonbis_op_stop(op)),
               nonbis_op_http_status(op));
    }
    nonbis_op_free(op);
    nonbis_client_free(client);
    return ok ? 0 : 1;
}
