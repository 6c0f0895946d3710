/* front.h - runs Debian's HAProxy or nginx as a front proxy of this test alone: a plain configuration, a port of the kernel's choice, every
 * file in the test's folder. It ends with the test, whatever becomes of that. */
#ifndef NONBIS_TESTS_PROOF_FRONT_H
#define NONBIS_TESTS_PROOF_FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum front_kind { FRONT_HAPROXY, FRONT_NGINX, FRONT_KINDS };

struct front {
    enum front_kind kind;
    pid_t pid;
    char address[64]; /* where clients connect */
    char log_path
        [700]; /* a line per request that it read: "SERVER|STATUS|METHOD|KEY"; SERVER is BACKEND where it asked that */
};

const char *front_name(enum front_kind kind);
/* Its first line of `haproxy -v`, `nginx -v`: for the figures. Fails the test when the program is not there. */
void front_version(enum front_kind kind, char *out, size_t size);

/* `kept`: it keeps connections to the backend, for all of its clients; else each request gets one of its own. */
void front_start(struct front *front, enum front_kind kind, bool kept, const char *backend);
/* Lets it finish what it has, and waits for its end. */
void front_end(struct front *front);
/* How often, by its own log, it sent a request with this key to the backend. */
unsigned front_logged(const struct front *front, const char *key);

/* A listening socket on 127.0.0.1, port of the kernel's choice. */
int front_listen(char *address, size_t size);

#endif
