/* resolver.h - the resolver of these tests: a getaddrinfo of our own that stands before the C library's, so that no test asks a real
 * one. It knows the names that end in ".test"; all others go to the C library. Any thread. */
#ifndef NONBIS_TESTS_UPSTREAM_RESOLVER_H
#define NONBIS_TESTS_UPSTREAM_RESOLVER_H

/* What every name stands for from now on: numeric addresses with blanks between them; "": no such name (and so at first). */
void resolver_know(const char *addresses);
/* Whoever asks from now on, until resolver_know, is told that code of getaddrinfo (EAI_AGAIN). */
void resolver_fail(int code);
/* Whoever asks waits from now on until released. */
void resolver_hold(void);
void resolver_release(void);
/* Until so many look-ups have begun, all in all. */
void resolver_wait_asked(unsigned count);
unsigned resolver_count_asked(void);

#endif
