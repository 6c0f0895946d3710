/* lab.h - libmicrohttpd by itself, in external epoll mode, with one client, on one thread: for microhttpd_test.c. */
#ifndef NONBIS_TESTS_LIBRARIES_LAB_H
#define NONBIS_TESTS_LIBRARIES_LAB_H

#include <errno.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct lab {
    struct MHD_Daemon *daemon;
    struct MHD_Connection *connection; /* of the latest call */
    int epoll_fd, server_fd, client;

    /* What the handler does; by default it answers 200 "ok" at the end. */
    bool answer_at_head, answer_at_part, suspend_at_head, suspend_at_end, unknown_size, reader_waits;
    unsigned status;
    size_t reply_header_bytes;
    const char *const *fields[2]; /* of the answer: name and value, or NULL */

    char log[8192];       /* one line per call */
    char first_body[256]; /* of the first request */
    int requests, reader_calls;
    char answer[32768]; /* all that the client read */
    size_t answer_len;
    bool ended, reset;
};

void lab_start(struct lab *lab, size_t pool_bytes);
void lab_stop(struct lab *lab);
void lab_pair(int pair[2]); /* a connected TCP pair: client, server */
void lab_send(struct lab *lab, const char *text);
void lab_send_bytes(struct lab *lab, const char *bytes, size_t len);
void lab_close_client(struct lab *lab);
void lab_turn(struct lab *lab, int times); /* runs the daemon and reads, without waiting */
bool lab_epoll_is_readable(const struct lab *lab);
/* Run until it is there; false after 2 s. */
bool lab_wait_log(struct lab *lab, const char *text);
bool lab_wait_answer(struct lab *lab, const char *text); /* a NUL-free answer that contains it */
bool lab_wait_end(struct lab *lab);

#endif
