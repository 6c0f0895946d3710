/* main.c - order-handler: a small but real handler that takes orders and remembers every effect (ledger.h).
 *
 * It knows nothing of idempotency: an order that arrives twice is placed twice. That is what nonbis is for. */
#include "examples/order-handler/http.h"

#include <signal.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct options options;
    switch (options_read(argc, argv, &options)) {
    case OPTIONS_HELP:
        return 0;
    case OPTIONS_WRONG:
        return 64;
    case OPTIONS_RUN:
        break;
    }

    /* Blocked before the first thread exists, so that only sigwait below ever sees them. */
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);

    struct ledger *ledger = ledger_open(options.db);
    if (ledger == NULL) {
        return 73;
    }
    struct http *http = http_open(&options, ledger);
    if (http == NULL) {
        ledger_close(ledger);
        return 69;
    }
    printf("order-handler listening on %s:%u\n", options.host, http_port(http));
    fflush(stdout);

    int caught;
    sigwait(&stop, &caught);

    http_close(http);
    ledger_close(ledger);
    return 0;
}
