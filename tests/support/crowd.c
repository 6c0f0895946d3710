/* crowd.c - see crowd.h. */
#include "tests/support/crowd.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct crowd {
    pthread_barrier_t called, connected,
        answered;                 /* `connected` is the members' own; the caller is at the two others */
    struct crowd_member *members; /* of this round; NULL: everybody leaves */
    int count;
    pthread_t threads[CROWD_MAX];
};

struct place {
    struct crowd *crowd;
    int index;
};

/* Returns the connection, or -1 when it cannot be used again. */
static int member_ask(struct crowd_member *member, int fd)
{
    char request[1024];
    int len = snprintf(request, sizeof request,
                       "POST %s HTTP/1.1\r\nHost: test.example\r\nContent-Type: application/json\r\n"
                       "Idempotency-Key: %s\r\n%sContent-Length: %zu\r\n\r\n%s",
                       member->target != NULL ? member->target : "/orders", member->key,
                       member->fields != NULL ? member->fields : "", strlen(member->body), member->body);
    if (http_send(fd, request, (size_t) len)) {
        member->answer = http_receive(fd, false, NULL);
        if (member->answer.whole && !member->answer.closed && !http_field_is(&member->answer, "Connection", "close")) {
            return fd;
        }
    }
    close(fd);
    return -1;
}

static void *place_run(void *context)
{
    struct place place = *(struct place *) context;
    struct crowd *crowd = place.crowd;
    int fd = -1;
    free(context);
    for (;;) {
        pthread_barrier_wait(&crowd->called);
        if (crowd->members == NULL) {
            break;
        }
        struct crowd_member *member = &crowd->members[place.index];
        if (fd < 0) {
            fd = http_connect(member->address);
        }
        pthread_barrier_wait(&crowd->connected);
        if (fd >= 0) {
            fd = member_ask(member, fd);
        }
        pthread_barrier_wait(&crowd->answered);
    }
    if (fd >= 0) {
        close(fd);
    }
    return NULL;
}

struct crowd *crowd_gather(int count)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    crowd->count = count;
    pthread_barrier_init(&crowd->called, NULL, (unsigned) count + 1);
    pthread_barrier_init(&crowd->connected, NULL, (unsigned) count);
    pthread_barrier_init(&crowd->answered, NULL, (unsigned) count + 1);
    for (int i = 0; i < count; i++) {
        struct place *place = malloc(sizeof *place);
        *place = (struct place){ .crowd = crowd, .index = i };
        pthread_create(&crowd->threads[i], NULL, place_run, place);
    }
    return crowd;
}

void crowd_round(struct crowd *crowd, struct crowd_member *members)
{
    crowd->members = members;
    pthread_barrier_wait(&crowd->called);
    pthread_barrier_wait(&crowd->answered);
}

void crowd_leave(struct crowd *crowd)
{
    crowd->members = NULL;
    pthread_barrier_wait(&crowd->called);
    for (int i = 0; i < crowd->count; i++) {
        pthread_join(crowd->threads[i], NULL);
    }
    pthread_barrier_destroy(&crowd->called);
    pthread_barrier_destroy(&crowd->connected);
    pthread_barrier_destroy(&crowd->answered);
    free(crowd);
}

void crowd_run(struct crowd_member *members, int count)
{
    struct crowd *crowd = crowd_gather(count);
    crowd_round(crowd, members);
    crowd_leave(crowd);
}

void crowd_free(struct crowd_member *members, int count)
{
    for (int i = 0; i < count; i++) {
        http_answer_free(&members[i].answer);
    }
}
