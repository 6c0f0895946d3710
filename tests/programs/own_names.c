/* own_names.c - a program with names of its own that are names inside libnonbis, linked with libnonbis.a: neither disturbs the
 * other. Built and run by the tests of the client.
 *
 *     own_names URL      prints what became of a POST, and how often its own functions were called: only by itself */
#include <nonbis.h>

#include <stdio.h>
#include <string.h>

static int calls;

void buf_append(void *buf, const char *text);
int view_equal(const char *a, const char *b);
int key_parse(const char *text);
int run_operation(void);
int planner;
int answer_init;

void buf_append(void *buf, const char *text)
{
    (void) buf;
    (void) text;
    calls++;
}

int view_equal(const char *a, const char *b)
{
    calls++;
    return strcmp(a, b) == 0;
}

int key_parse(const char *text)
{
    calls++;
    return text != NULL;
}

int run_operation(void)
{
    calls++;
    return -1;
}

int main(int argc, char **argv)
{
    struct nonbis_client *client = NULL;
    struct nonbis_op *op = NULL;
    enum nonbis_outcome outcome = NONBIS_NOT_SENT;
    int own = 0;

    if (argc == 2 && nonbis_client_new(&client, NULL) == NONBIS_OK &&
        nonbis_op_new(&op, client, argv[1], "{}", 2) == NONBIS_OK && nonbis_op_run(op) == NONBIS_OK) {
        outcome = nonbis_op_outcome(op);
    }
    nonbis_op_free(op);
    nonbis_client_free(client);
    buf_append(NULL, "");
    own = 1 + key_parse("k") + view_equal("a", "a");
    printf("%s, %d calls\n", nonbis_outcome_name(outcome), calls);
    return calls == 3 && own == 3 ? 0 : 1;
}
