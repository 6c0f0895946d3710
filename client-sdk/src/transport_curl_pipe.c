/* transport_curl_pipe.c - no SIGPIPE gets out of an exchange. See transport_curl.h.
 *
 * Not every libcurl and TLS library writes with MSG_NOSIGNAL. Writing to a closed connection raises the signal in the writing
 * thread, so it is blocked in this one, and what was raised is taken away. Signal mask and pending signals of the calling thread
 * are all that this touches. */
#include "client-sdk/src/transport_curl.h"

#include <errno.h>
#include <time.h>

void pipe_shield_up(struct pipe_shield *shield)
{
    sigset_t pending, pipe_alone;
    (void) sigemptyset(&pipe_alone);
    (void) sigaddset(&pipe_alone, SIGPIPE);
    (void) sigemptyset(&pending);
    (void) sigpending(&pending);
    shield->was_pending = sigismember(&pending, SIGPIPE) == 1;
    (void) pthread_sigmask(SIG_BLOCK, &pipe_alone, &shield->before);
}

void pipe_shield_down(const struct pipe_shield *shield)
{
    if (!shield->was_pending) {
        const struct timespec at_once = { 0 };
        sigset_t pipe_alone;
        (void) sigemptyset(&pipe_alone);
        (void) sigaddset(&pipe_alone, SIGPIPE);
        while (sigtimedwait(&pipe_alone, NULL, &at_once) < 0 && errno == EINTR) {
        }
    }
    (void) pthread_sigmask(SIG_SETMASK, &shield->before, NULL);
}
