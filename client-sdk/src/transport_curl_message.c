/* transport_curl_message.c - the sentence about an exchange that went wrong: what was tried, on which host, why. It holds no path,
 * no query and no credentials. See transport_curl.h. */
#include "client-sdk/src/transport_curl.h"

#include <stdio.h>
#include <string.h>

enum { HOST_MAX = 64, CAUSE_MAX = 140 }; /* so that neither leaves no room for the other */

struct view http_authority_of(const char *url)
{
    const char *scheme_end = strstr(url, "://");
    const char *from = scheme_end != NULL ? scheme_end + 3 : url;
    size_t len = strcspn(from, "/?#");
    for (size_t i = len; i > 0; i--) {
        if (from[i - 1] == '@') {
            return view_make(from + i, len - i);
        }
    }
    return view_make(from, len);
}

/* What was being done when it ended. */
static const char *message_deed(const struct http_call *call)
{
    const struct transport_facts *facts = call->facts;
    if (facts->hook_calls == 0) {
        return "connecting to";
    }
    if (facts->hook_refused) {
        return "connected to";
    }
    return facts->answer.status != 0 ? "reading the answer of" : "waiting for the answer of";
}

/* Why it ended; `room` is where a text of our own may be made. NULL: nothing went wrong. */
static const char *message_cause(const struct http_call *call, char *room, size_t size)
{
    const struct transport_facts *facts = call->facts;
    const struct transport_request *request = call->request;
    const char *told = call->error[0] != '\0' ? call->error : curl_easy_strerror((CURLcode) facts->code);
    if (facts->cancelled) {
        return facts->hook_calls == 0 || facts->hook_refused ? "cancelled before anything was sent" : "cancelled";
    }
    if (facts->hook_refused) {
        return "held back, nothing was sent";
    }
    if (facts->hook_calls > 1) {
        return "the kept connection ended without an answer; libcurl was stopped from sending again";
    }
    if (call->reader.head_too_large) {
        (void) snprintf(room, size, "its head is larger than %d bytes", ANSWER_HEAD_MAX);
        return room;
    }
    if (call->reader.trailer_bytes > HTTP_TRAILERS_MAX) {
        (void) snprintf(room, size, "its trailers are larger than %d bytes", HTTP_TRAILERS_MAX);
        return room;
    }
    if (call->reader.interim > HTTP_INTERIM_MAX) {
        (void) snprintf(room, size, "more than %d interim answers came in front of one", HTTP_INTERIM_MAX);
        return room;
    }
    if (call->reader.switched) {
        return "it switched to another protocol, which nobody asked for";
    }
    switch (facts->code) {
    case CURLE_OK:
        if (!facts->answer.head_whole) {
            return "it ended within its head";
        }
        return facts->answer.whole || facts->answer.by_close ? NULL : "its lengths contradict each other or its bytes";
    case CURLE_COULDNT_CONNECT:
        return facts->os_errno != 0 ? strerror(facts->os_errno) : told;
    case CURLE_OPERATION_TIMEDOUT:
        (void) snprintf(room, size, "not done within %lld ms (%s)",
                        (long long) (facts->hook_calls == 0 && request->connect_timeout_ms < request->timeout_ms
                                         ? request->connect_timeout_ms
                                         : request->timeout_ms),
                        told);
        return room;
    case CURLE_GOT_NOTHING:
        return "the connection ended without one";
    case CURLE_UNSUPPORTED_PROTOCOL:
        (void) snprintf(room, size, "%s (%s)",
                        facts->hook_calls > 0 ? "what came is no HTTP/1.1" : "not a URL for this client", told);
        return room;
    default:
        return told;
    }
}

void http_message_write(const struct http_call *call)
{
    struct transport_facts *facts = call->facts;
    char room[CURL_ERROR_SIZE + 80];
    const char *cause = message_cause(call, room, sizeof(room));
    facts->message[0] = '\0';
    if (cause == NULL) {
        return;
    }
    struct view host = http_authority_of(call->request->url);
    const char *through = call->texts[NONBIS_CLIENT_UNIX_SOCKET] != NULL ? " through its Unix socket"
                          : call->texts[NONBIS_CLIENT_PROXY] != NULL     ? " through the proxy"
                                                                         : "";
    (void) snprintf(facts->message, sizeof(facts->message), "%s %.*s%s: %.*s", message_deed(call),
                    host.len < HOST_MAX ? (int) host.len : HOST_MAX, host.ptr, through, CAUSE_MAX, cause);
}
