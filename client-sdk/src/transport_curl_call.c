/* transport_curl_call.c - one exchange: the pre-request hook, driving it, and the facts at its end. See transport_curl.h.
 *
 * libcurl sends a request again by itself when a kept connection ends without an answer, whatever the method. No option turns
 * that off; the hook, which it calls before each sending, does (docs/facts.md 1). The same hook tells what was certainly not
 * sent (docs/facts.md 2). */
#include "client-sdk/src/transport_curl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    POLL_MS = 1000,              /* libcurl shortens it to its own timers */
    ONE_PIECE_BELOW = 64 * 1024, /* smaller bodies go out together with the head, and are counted with it ... */
    ONE_PIECE_UNTIL = 0x080700   /* ... by versions before this one */
};

/* ---- sending once ------------------------------------------------------------------------------------------------- */

/* What the caller does in there may write to pipes of its own. */
static int call_ask_caller(struct http_call *call)
{
    pipe_shield_down(&call->shield);
    int refused = call->request->before_send(call->request->before_send_arg);
    pipe_shield_up(&call->shield);
    return refused;
}

static int on_prereq(void *context, char *address, char *local_address, int port, int local_port)
{
    (void) address;
    (void) local_address;
    (void) port;
    (void) local_port;
    struct http_call *call = context;
    struct transport_facts *facts = call->facts;
    if (++facts->hook_calls > 1) {
        return CURL_PREREQFUNC_ABORT;
    }
    if (waker_is_cancelled(call->request->waker)) {
        facts->cancelled = facts->hook_refused = true;
    } else if (call->request->before_send != NULL && call_ask_caller(call) != 0) {
        facts->hook_refused = true;
    }
    return facts->hook_refused ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* ---- driving ------------------------------------------------------------------------------------------------------ */

/* Until libcurl is done or the waker rings for a cancel. A ring for something else is only silenced: its flag stays. */
static CURLcode call_drive(struct http_call *call)
{
    struct http_session *session = call->session;
    struct waker *waker = call->request->waker;
    for (;;) {
        if (waker_is_cancelled(waker)) {
            call->facts->cancelled = true;
            return CURLE_ABORTED_BY_CALLBACK;
        }
        int running = 0, left = 0;
        CURLMcode failed = curl_multi_perform(session->multi, &running);
        CURLMsg *message = failed == CURLM_OK ? curl_multi_info_read(session->multi, &left) : NULL;
        if (message != NULL) {
            return message->data.result;
        }
        struct curl_waitfd bell = { .fd = waker->fd, .events = CURL_WAIT_POLLIN };
        if (failed == CURLM_OK) {
            failed = curl_multi_poll(session->multi, &bell, 1, POLL_MS, NULL);
        }
        if (failed != CURLM_OK && !(failed == CURLM_UNRECOVERABLE_POLL && errno == EINTR)) {
            session->broken = true;
            (void) snprintf(call->error, sizeof(call->error), "%s", curl_multi_strerror(failed));
            return failed == CURLM_OUT_OF_MEMORY ? CURLE_OUT_OF_MEMORY : CURLE_FAILED_INIT;
        }
        if (bell.revents != 0) {
            waker_quiet(waker);
        }
    }
}

/* ---- facts -------------------------------------------------------------------------------------------------------- */

static uint64_t request_bytes_at_most(const struct transport_request *request)
{
    enum { OWN_FIELDS_AT_MOST = 4096 }; /* Host, Content-Length, User-Agent, the request line's ends */
    uint64_t bytes = strlen(request->method) + 2 * strlen(request->url) + request->body_len + OWN_FIELDS_AT_MOST;
    for (size_t i = 0; i < request->field_count; i++) {
        bytes += strlen(request->fields[i].name) + strlen(request->fields[i].value) + 4;
    }
    return bytes;
}

/* Zero only if nothing was sent. There were versions of libcurl that forget to count the head. */
static uint64_t call_bytes_sent(const struct http_call *call)
{
    const struct transport_facts *facts = call->facts;
    const struct transport_request *request = call->request;
    if (facts->hook_calls == 0 || facts->hook_refused) {
        return 0;
    }
    long head = 0;
    curl_off_t body = 0;
    (void) curl_easy_getinfo(call->session->easy, CURLINFO_REQUEST_SIZE, &head);
    (void) curl_easy_getinfo(call->session->easy, CURLINFO_SIZE_UPLOAD_T, &body);
    if (head <= 0) {
        return request_bytes_at_most(request);
    }
    bool counted_with_head =
        request->body_len < ONE_PIECE_BELOW && curl_version_info(CURLVERSION_NOW)->version_num < ONE_PIECE_UNTIL;
    return (uint64_t) head + (counted_with_head || body < 0 ? 0 : (uint64_t) body);
}

static void call_take_facts(struct http_call *call, CURLcode code)
{
    struct transport_facts *facts = call->facts;
    struct http_session *session = call->session;
    facts->code = (int) code;
    facts->arrived_wall_ms = call->reader.arrived_wall_ms;
    facts->bytes_sent = call_bytes_sent(call);
    if (facts->hook_calls == 0) {
        long os_errno = 0;
        (void) curl_easy_getinfo(session->easy, CURLINFO_OS_ERRNO, &os_errno);
        facts->os_errno = (int) os_errno;
    }
    if (code == CURLE_OK && http_reader_judge(&call->reader)) {
        /* Only while the handle is in its multi: the connection, if it rests there now. */
        (void) curl_easy_getinfo(session->easy, CURLINFO_ACTIVESOCKET, &session->kept);
    }
    http_message_write(call);
}

/* ---- all of it ---------------------------------------------------------------------------------------------------- */

static CURLcode call_set_up(struct http_call *call)
{
    CURL *easy = call->session->easy;
    CURLcode code = http_options_set(call);
    bool ok = code == CURLE_OK && curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->error) == CURLE_OK &&
              curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_prereq) == CURLE_OK &&
              curl_easy_setopt(easy, CURLOPT_PREREQDATA, call) == CURLE_OK &&
              curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, http_reader_on_header) == CURLE_OK &&
              curl_easy_setopt(easy, CURLOPT_HEADERDATA, &call->reader) == CURLE_OK &&
              curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, http_reader_on_body) == CURLE_OK &&
              curl_easy_setopt(easy, CURLOPT_WRITEDATA, &call->reader) == CURLE_OK;
    return ok || code != CURLE_OK ? code : CURLE_FAILED_INIT;
}

bool http_call_run(struct http_call *call)
{
    struct http_session *session = call->session;
    http_reader_init(&call->reader, &call->facts->answer, call->request->method);
    CURLcode code = call_set_up(call);
    bool begun = code == CURLE_OK;
    if (begun && curl_multi_add_handle(session->multi, session->easy) != CURLM_OK) {
        code = CURLE_FAILED_INIT;
        begun = false;
        session->broken = true;
    }
    if (begun) {
        call_take_facts(call, call_drive(call));
        session->broken = curl_multi_remove_handle(session->multi, session->easy) != CURLM_OK || session->broken;
    } else {
        (void) snprintf(call->facts->message, sizeof(call->facts->message),
                        "libcurl did not take the options of the request: %s", curl_easy_strerror(code));
    }
    (void) curl_easy_setopt(session->easy, CURLOPT_HTTPHEADER, NULL);
    (void) curl_easy_setopt(session->easy, CURLOPT_ERRORBUFFER, NULL);
    curl_slist_free_all(call->fields);
    http_reader_fini(&call->reader);
    return begun;
}
