/* counters.c - sends some orders, and prints the client's counters as
 * a metrics exporter would.
 *
 *     counters URL COUNT */
#include <nonbis.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_counters(const struct nonbis_client *client)
{
    struct nonbis_stats stats;
    int outcome;

    nonbis_client_stats(client, &stats, sizeof stats);
    printf("runs %" PRIu64 "\nattempts %" PRIu64 "\nretries %" PRIu64
           "\n",
           stats.runs, stats.attempts, stats.retries);
    for (outcome = NONBIS_COMPLETED; outcome <= NONBIS_UNKNOWN;
         outcome++) {
        printf("outcome{%s} %" PRIu64 "\n",
               nonbis_outcome_name((enum nonbis_outcome) outcome),
               stats.outcomes[outcome]);
    }
    printf("completed_after_retry %" PRIu64 "\n",
           stats.completed_after_retry);
    printf("retry_tokens %.1f\n", (double) stats.tokens_milli / 1000);
}

static int send_order(struct nonbis_client *client, const char *url)
{
    static const char body[] = "{\"item\":\"tea\",\"amount\":3}";
    struct nonbis_op *op = NULL;
    int error;

    error = nonbis_op_new(&op, client, url, body, strlen(body));
    if (error == NONBIS_OK) {
        error = nonbis_op_run(op);
    }
    nonbis_op_free(op);
    return error;
}

int main(int argc, char **argv)
{
    struct nonbis_client *client = NULL;
    long i, count;

    if (argc != 3) {
        fprintf(stderr, "usage: counters URL COUNT\n");
        return 2;
    }
    if (nonbis_client_new(&client, NULL) != NONBIS_OK) {
        fprintf(stderr, "no client\n");
        return 1;
    }
    count = strtol(argv[2], NULL, 10);
    for (i = 0; i < count; i++) {
        if (send_order(client, argv[1]) != NONBIS_OK) {
            fprintf(stderr, "order %ld was not sent\n", i + 1);
        }
    }
    print_counters(client);
    nonbis_client_free(client);
    return 0;
}
