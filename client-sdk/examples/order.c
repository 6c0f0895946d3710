/* order.c - sends the order of a number, however often it is started:
 * the number makes the key, and so the intent.
 *
 *     order URL NUMBER
 *
 * ORDER_TOKEN of the environment is sent, and is not stored. */
#include <nonbis.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything that belongs to the request, before the first run. */
static int prepare(struct nonbis_op *op, const char *number)
{
    char key[64], bearer[256];
    const char *token = getenv("ORDER_TOKEN");
    int error, len;

    snprintf(key, sizeof key, "order-%s", number);
    error = nonbis_op_set_key(op, key);
    if (error == NONBIS_OK) {
        error = nonbis_op_set_name(op, "place-order");
    }
    if (error == NONBIS_OK) {
        error = nonbis_op_set_method(op, "POST");
    }
    if (error == NONBIS_OK) {
        error =
            nonbis_op_set_header(op, "Content-Type", "application/json",
                                 NONBIS_HEADER_STORED);
    }
    if (error == NONBIS_OK && token != NULL) {
        len = snprintf(bearer, sizeof bearer, "Bearer %s", token);
        error =
            len < (int) sizeof bearer
                ? nonbis_op_set_header(op, "Authorization", bearer, 0)
                : NONBIS_ERROR_FIELD;
    }
    return error;
}

/* Cut off, two numbers could make one key: one order would be lost. */
static int is_number(const char *text)
{
    size_t len = strspn(text, "0123456789");
    return len >= 1 && len <= 40 && text[len] == '\0';
}

int main(int argc, char **argv)
{
    struct nonbis_client *client = NULL;
    struct nonbis_op *op = NULL;
    char body[128];
    int error, ok = 0;

    if (argc != 3 || !is_number(argv[2])) {
        fprintf(stderr, "usage: order URL NUMBER\n");
        return 2;
    }
    snprintf(body, sizeof body, "{\"item\":\"order %s\",\"amount\":3}",
             argv[2]);
    error = nonbis_client_new(&client, NULL);
    if (error == NONBIS_OK) {
        error = nonbis_op_new(&op, client, argv[1], body,
                              strlen(body)); /* copies the body */
    }
    if (error == NONBIS_OK) {
        error = prepare(op, argv[2]);
    }
    if (error == NONBIS_OK) {
        error = nonbis_op_run(op);
    }
    if (error != NONBIS_OK) {
        fprintf(stderr, "nothing was sent: %s\n",
                nonbis_error_text(error));
    } else if (nonbis_op_outcome(op) != NONBIS_COMPLETED) {
        fprintf(stderr, "%s\n", nonbis_op_message(op));
    } else {
        printf("%s %s: %d\n", nonbis_op_key(op),
               nonbis_op_marks(op) & NONBIS_MARK_REPLAYED
                   ? "was executed before"
                   : "was executed",
               nonbis_op_http_status(op));
        ok = 1;
    }
    nonbis_op_free(op);
    nonbis_client_free(client);
    return ok ? 0 : 1;
}
