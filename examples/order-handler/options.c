/* options.c - reads the command line of the order handler. */
#include "examples/order-handler/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "order-handler - takes orders over HTTP and keeps them in SQLite; a real handler behind nonbis.\n"
    "\n"
    "  --listen ADDR:PORT    where to listen (127.0.0.1:3000; port 0: the kernel chooses)\n"
    "  --db FILE             the ledger (orders.db)\n"
    "  --latency MS          time between acting and answering (0)\n"
    "  --latency-before MS   time between the arrival and acting (0)\n"
    "  --fail FAULT          a status, status=N, close-before, close-after or hang\n"
    "  --fail-rate PERCENT   of the orders that --fail meets (100)\n"
    "\n"
    "POST /orders {\"item\":\"...\",\"amount\":N}   201 with the order\n"
    "GET /orders/ID                            that order again\n"
    "GET /effects?key=K                        arrivals and executions of one key; without key: of all\n"
    "\n"
    "For tests, a request may carry  X-Latency: MS  and  X-Fail: FAULT.\n";

static bool option_ms(const char *name, const char *text, unsigned max, unsigned *number)
{
    uint64_t value;
    if (!view_to_uint64(view_of(text), &value) || value > max) {
        fprintf(stderr, "order-handler: --%s wants a whole number of at most %u, not \"%s\"\n", name, max, text);
        return false;
    }
    *number = (unsigned) value;
    return true;
}

static bool option_listen(const char *text, struct options *options)
{
    const char *colon = strrchr(text, ':');
    uint64_t port;
    if (colon == NULL || colon == text || (size_t) (colon - text) >= sizeof options->host ||
        !view_to_uint64(view_of(colon + 1), &port) || port > 65535) {
        fprintf(stderr, "order-handler: --listen wants ADDR:PORT, for example 127.0.0.1:3000, not \"%s\"\n", text);
        return false;
    }
    snprintf(options->host, sizeof options->host, "%.*s", (int) (colon - text), text);
    options->port = (unsigned) port;
    return true;
}

static bool option_fail(const char *text, struct options *options)
{
    if (!fault_read(view_of(text), &options->faults.fault)) {
        fprintf(stderr,
                "order-handler: --fail wants a status, status=N, close-before, close-after or hang, not \"%s\"\n",
                text);
        return false;
    }
    return true;
}

enum options_result options_read(int argc, char **argv, struct options *options)
{
    static const struct option names[] = {
        { "listen", required_argument, NULL, 'l' },  { "db", required_argument, NULL, 'd' },
        { "latency", required_argument, NULL, 'a' }, { "latency-before", required_argument, NULL, 'b' },
        { "fail", required_argument, NULL, 'f' },    { "fail-rate", required_argument, NULL, 'r' },
        { "help", no_argument, NULL, 'h' },          { NULL, 0, NULL, 0 },
    };
    *options = (struct options){ .host = "127.0.0.1", .port = 3000, .db = "orders.db", .faults.rate_percent = 100 };

    bool good = true;
    int letter;
    while ((letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (letter) {
        case 'l':
            good &= option_listen(optarg, options);
            break;
        case 'd':
            options->db = optarg;
            break;
        case 'a':
            good &= option_ms("latency", optarg, FAULTS_LATENCY_MS_MAX, &options->faults.latency_after_ms);
            break;
        case 'b':
            good &= option_ms("latency-before", optarg, FAULTS_LATENCY_MS_MAX, &options->faults.latency_before_ms);
            break;
        case 'f':
            good &= option_fail(optarg, options);
            break;
        case 'r':
            good &= option_ms("fail-rate", optarg, 100, &options->faults.rate_percent);
            break;
        case 'h':
            fputs(help, stdout);
            return OPTIONS_HELP;
        default:
            good = false;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "order-handler: \"%s\" is not understood; --help tells the options\n", argv[optind]);
        good = false;
    }
    return good ? OPTIONS_RUN : OPTIONS_WRONG;
}
