/* crowd.c - see crowd.h. */
#include "tests/support/crowd.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_barrier_t start_line;

static void *member_run(void *context)
{
    struct crowd_member *member = context;
    char request[1024];
    int len = snprintf(request, sizeof request,
                       "POST %s HTTP/1.1\r\nHost: test.example\r\nContent-Type: application/json\r\n"
                       "Idempotency-Key: %s\r\n%sContent-Length: %zu\r\n\r\n%s",
                       member->target != NULL ? member->target : "/orders", member->key,
                       member->fields != NULL ? member->fields : "", strlen(member->body), member->body);
    int fd = http_connect(member->address);
    pthread_barrier_wait(&start_line);
    if (fd >= 0) {
        if (http_send(fd, request, (size_t) len)) {
            member->answer = http_receive(fd, false, NULL);
        }
        close(fd);
    }
    return NULL;
}

void crowd_run(struct crowd_member *members, int count)
{
    pthread_t threads[CROWD_MAX];
    pthread_barrier_init(&start_line, NULL, (unsigned) count);
    for (int i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, member_run, &members[i]);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&start_line);
}

void crowd_free(struct crowd_member *members, int count)
{
    for (int i = 0; i < count; i++) {
        http_answer_free(&members[i].answer);
    }
}
