/* signals.c - see signals.h. */
#include "client-sdk/cli/signals.h"

#include "client-sdk/cli/exit_code.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

static _Atomic(struct nonbis_op *) running;
static atomic_int caught;
static atomic_bool sent;

static void on_signal(int number)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&caught, &none, number)) {
        _exit(atomic_load(&sent) ? EXIT_CODE_UNKNOWN : 128 + number);
    }
    struct nonbis_op *op = atomic_load(&running);
    if (op != NULL) {
        nonbis_op_cancel(op);
    }
}

void signals_watch(struct nonbis_op *op)
{
    static bool installed;
    atomic_store(&running, op);
    if (!installed) {
        struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
        sigemptyset(&action.sa_mask);
        installed = sigaction(SIGINT, &action, NULL) == 0 && sigaction(SIGTERM, &action, NULL) == 0;
    }
    if (op != NULL && atomic_load(&caught) != 0) {
        nonbis_op_cancel(op); /* it came in between */
    }
}

void signals_note_sent(void)
{
    atomic_store(&sent, true);
}

int signals_caught(void)
{
    return atomic_load(&caught);
}

void signals_ignore_pipe(void)
{
    struct sigaction action = { .sa_handler = SIG_IGN };
    sigemptyset(&action.sa_mask);
    (void) sigaction(SIGPIPE, &action, NULL);
}
