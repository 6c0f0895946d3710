/* stage.h - an edge on a real loop in a thread of its own, behind a real listening socket, with a handler that does what the target
 * says; and a client with blocking sockets for the test's thread.
 *
 *   /whole            collects the body and echoes it
 *   /park             collects, then waits for stage_answer_parked
 *   /park-watched[?size=N]    the same, and watches its client meanwhile; the answer has N bytes
 *   /at-head          answers 403 at the head
 *   /up               streams the upload in, answers with the count
 *   /up-early         answers with its first part
 *   /up-slow          takes at most what stage_allow gave
 *   /down?size=N[&length=N]   streams N bytes out (pattern: byte i is 'a' + i % 26), announced if there is a length
 *   /open[?length=N]  begins a streaming answer; the test writes, ends or cuts it
 *   /open-watched     the same, after it began to watch its client
 *   /status?code=N[&length=N] answers with that status, no body, the length announced if given
 *   /fields?size=N    answers with about N bytes of fields
 *   /bad-field        answers with a field that cannot be sent */
#ifndef NONBIS_TESTS_EDGE_STAGE_H
#define NONBIS_TESTS_EDGE_STAGE_H

#include "common/buf.h"
#include "server/edge/edge.h"

#include <pthread.h>

struct stage {
    struct loop *loop;
    struct edge *edge;
    struct acceptor *acceptor;
    pthread_t thread;
    uint16_t port;
    struct edge_options options;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct buf events; /* one line per handler event, under the lock */

    struct list plays; /* the loop's thread only */
    size_t allowance;
    char last_peer[64];
    bool last_reply_good;
    unsigned connections, requests; /* as stage_count_edge found them */
};

void stage_start(struct stage *stage); /* body_max 1000, idle 60 s, 1100 connections */
void stage_start_with(struct stage *stage, const struct edge_options *options);
void stage_stop(struct stage *stage);                                    /* nothing may be left unanswered */
void stage_call(struct stage *stage, void (*work)(struct stage *stage)); /* on the loop's thread; returns when done */
void stage_wait(struct stage *stage, const char *event, unsigned count); /* until that line was seen so often */
unsigned stage_count(struct stage *stage, const char *event);

/* For stage_call. */
void stage_answer_parked(struct stage *stage);
void stage_watch_parked(struct stage *stage);
void stage_unwatch_all(struct stage *stage);
void stage_cut_all(struct stage *stage);
void stage_end_open(struct stage *stage);
void stage_write_open(struct stage *stage); /* "hello" */
void stage_quiesce(struct stage *stage);
void stage_count_edge(struct stage *stage);
void stage_allow(struct stage *stage, size_t bytes); /* itself a call */

struct client {
    int fd;
    struct buf in; /* read, not yet used */
    bool ended, reset;
};
struct answer {
    int status;
    char head[16384]; /* NUL-terminated, with the blank line */
    struct buf body;
    bool whole; /* the framing says so */
};
void client_connect(struct client *client, const struct stage *stage);
void client_close(struct client *client);
void client_send(struct client *client, const char *text);
void client_send_bytes(struct client *client, const void *bytes, size_t len);
void client_read(struct client *client, const char *method, struct answer *answer);
void client_read_head(struct client *client, struct answer *answer);
bool client_sees_end(struct client *client); /* true: FIN or RST and nothing before it */
bool answer_has(const struct answer *answer, const char *line);
void answer_fini(struct answer *answer);
void client_ask(struct client *client, const char *request, const char *method, int status, const char *body);

size_t resident_kib(void);

#endif
