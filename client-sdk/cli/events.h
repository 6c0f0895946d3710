/* events.h - --events: a line of JSON for each event of the library. Never bodies, credentials, keys or query strings: the
 * library's events hold none. */
#ifndef NONBIS_CLI_EVENTS_H
#define NONBIS_CLI_EVENTS_H

#include "client-sdk/cli/options.h"

struct events {
    int fd;     /* -1: nobody wants them */
    bool owned; /* opened here */
    bool failed;
};

/* FILE is appended to; fd:N is a descriptor that the caller's shell has opened. False: it said what is wrong. */
bool events_open(struct events *events, const struct options *options);
void events_close(struct events *events);
/* What cannot be written is told once, and changes nothing. */
void events_write(struct events *events, const struct nonbis_event *event);

#endif
