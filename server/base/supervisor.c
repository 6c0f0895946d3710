/* supervisor.c - the datagrams to a supervisor. Owns no socket between them. */
#include "server/base/supervisor.h"

#include "server/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int supervisor_send(const char *name, const char *state)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t len = strlen(name);
    if (len >= sizeof address.sun_path) {
        return ENAMETOOLONG;
    }
    memcpy(address.sun_path, name, len);
    if (name[0] == '@') { /* a name that is no file */
        address.sun_path[0] = '\0';
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno;
    }
    socklen_t room = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + len);
    ssize_t sent =
        sendto(fd, state, strlen(state), MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *) &address, room);
    int error = sent < 0 ? errno : 0;
    (void) close(fd);
    return error;
}

static void supervisor_tell(const char *state)
{
    const char *name = getenv("NOTIFY_SOCKET");
    if (name == NULL || name[0] == '\0') {
        return;
    }
    int error = supervisor_send(name, state);
    if (error != 0) {
        log_message(
            LOG_WARN, "supervisor",
            "could not tell %s to the socket %s (NOTIFY_SOCKET): %s. It may take this process for one that hangs, and "
            "end it",
            state, name, strerror(error));
    }
}

void supervisor_tell_ready(void)
{
    supervisor_tell("READY=1");
}

void supervisor_tell_stopping(int64_t within_ms)
{
    char state[64];
    (void) snprintf(state, sizeof state, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRId64, within_ms * 1000);
    supervisor_tell(state);
}
