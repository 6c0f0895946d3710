/* listener.h - somebody else who listens at an address of this machine, or who is silent there. */
#ifndef NONBIS_TESTS_UPSTREAM_LISTENER_H
#define NONBIS_TESTS_UPSTREAM_LISTENER_H

enum { LISTENER_FILLERS = 4 };

/* A listener on that address, with so long a queue. */
int listener_at(const char *ip, unsigned port, int backlog);
/* A listener whose queue is full: further attempts hear nothing. */
int listener_in_silence(const char *ip, unsigned port, int fillers[LISTENER_FILLERS]);
void listener_close(int listener, const int fillers[LISTENER_FILLERS]);

#endif
