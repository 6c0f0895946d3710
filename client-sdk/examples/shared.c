/* shared.c - four threads send orders of their own through one client:
 * one policy, one retry budget, kept connections.
 *
 *     shared URL */
#include <nonbis.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4 };

struct job {
    struct nonbis_client *client;
    const char *url;
    enum nonbis_outcome outcome;
};

/* An operation belongs to the thread that runs it. */
static void *send_order(void *arg)
{
    struct job *job = arg;
    struct nonbis_op *op = NULL;
    static const char body[] = "{\"item\":\"tea\",\"amount\":1}";
    int error;

    error =
        nonbis_op_new(&op, job->client, job->url, body, strlen(body));
    if (error == NONBIS_OK) {
        error = nonbis_op_run(op);
    }
    if (error == NONBIS_OK) {
        job->outcome = nonbis_op_outcome(op);
    }
    nonbis_op_free(op);
    return NULL;
}

int main(int argc, char **argv)
{
    struct nonbis_client *client = NULL;
    struct job jobs[THREADS];
    pthread_t threads[THREADS];
    int i, error, started = 0, completed = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: shared URL\n");
        return 2;
    }
    error = nonbis_client_new(&client, NULL);
    if (error == NONBIS_OK) {
        error = nonbis_client_set_text(client, NONBIS_CLIENT_USER_AGENT,
                                       "shared/1.0");
    }
    if (error != NONBIS_OK) {
        fprintf(stderr, "no client: %s\n", nonbis_error_text(error));
        nonbis_client_free(client);
        return 1;
    }
    for (i = 0; i < THREADS; i++) {
        jobs[i].client = client;
        jobs[i].url = argv[1];
        jobs[i].outcome = NONBIS_NOT_SENT;
        error = pthread_create(&threads[i], NULL, send_order, &jobs[i]);
        if (error != 0) {
            break;
        }
        started++;
    }
    for (i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        completed += jobs[i].outcome == NONBIS_COMPLETED;
    }
    printf("%d of %d completed\n", completed, THREADS);
    nonbis_client_free(client); /* no operation of it exists any more */
    return completed == THREADS ? 0 : 1;
}
