/* cancel.c - sends an order until it is decided; Ctrl-C ends that at
 * once, and the outcome is told all the same.
 *
 *     cancel URL */
#define _POSIX_C_SOURCE 200809L
#include <nonbis.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Set before the handler is, and freed after it is gone. */
static struct nonbis_op *running;

static void on_interrupt(int number)
{
    (void) number;
    nonbis_op_cancel(running);
}

static void interrupt_is(void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(SIGINT, &action, NULL);
}

int main(int argc, char **argv)
{
    static const char body[] = "{\"item\":\"tea\",\"amount\":3}";
    struct nonbis_client *client = NULL;
    int error;

    if (argc != 2) {
        fprintf(stderr, "usage: cancel URL\n");
        return 2;
    }
    error = nonbis_client_new(&client, NULL);
    if (error == NONBIS_OK) {
        error = nonbis_op_new(&running, client, argv[1], body,
                              strlen(body));
    }
    if (error == NONBIS_OK) {
        interrupt_is(on_interrupt);
        error = nonbis_op_run(running);
        interrupt_is(SIG_DFL);
    }
    if (error != NONBIS_OK) {
        fprintf(stderr, "nothing was sent: %s\n",
                nonbis_error_text(error));
    } else {
        printf("%s, %s\n",
               nonbis_outcome_name(nonbis_op_outcome(running)),
               nonbis_stop_name(nonbis_op_stop(running)));
        if (!nonbis_op_is_final(running)) {
            printf("go on with this key only: %s\n",
                   nonbis_op_key(running));
        }
    }
    nonbis_op_free(running);
    nonbis_client_free(client);
    return error == NONBIS_OK ? 0 : 1;
}
