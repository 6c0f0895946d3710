/* hangup.c - a client that leaves while its request waits for an answer: libmicrohttpd does not look at a suspended connection (docs/facts.md 10),
 * so the loop watches the same descriptor, for its end alone. Owns that watch. The loop's thread.
 *
 * It must be closed before libmicrohttpd closes the descriptor, whose number may be another connection's a moment later: so it ends with the first
 * word of an answer, with a cut, and at the latest when the request completes, which comes before the closing. */
#include "server/edge/inside.h"

static void hangup_on_ready(void *context, int events)
{
    (void) events;
    struct edge_request *request = context;
    struct edge *edge = request->edge;
    hangup_end(request);
    request->hung_up = true;
    if (edge->handler->hung_up != NULL) {
        edge->handler->hung_up(edge->context, request);
    }
}

void edge_watch_client(struct edge_request *request, bool on)
{
    if (!on) {
        hangup_end(request);
        return;
    }
    bool waits = request->phase == REQUEST_ENDED && request->reply == REPLY_NONE && !request->cut;
    if (waits && !request->hung_up && request->hangup == NULL) {
        request->hangup = loop_watch_new(request->edge->loop, request->connection->fd, hangup_on_ready, request);
        loop_watch_set(request->hangup, LOOP_HANGUP);
    }
}

void hangup_end(struct edge_request *request)
{
    if (request->hangup != NULL) {
        loop_watch_close(request->hangup);
        request->hangup = NULL;
    }
}
