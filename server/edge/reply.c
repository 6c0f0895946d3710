/* reply.c - answers: from a status, a field block and a body to libmicrohttpd's response. The loop's thread.
 *
 * What libmicrohttpd 0.9.75 can say about a body that does not go out (HEAD, 304):
 *   - a length: the response has that size and its reader is never called;
 *   - no length: only with the end of the connection. Its other ways are worse: size 0 announces "Content-Length: 0", which is a lie
 *     about the resource, and an unknown size sends "0\r\n\r\n" as a body, so that the next answer is out of step
 *     (docs/facts.md 29). */
#include "server/edge/inside.h"

#include "common/http_time.h"
#include "schema/limits.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    REPLY_BLOCK = 16 * 1024,  /* bytes that libmicrohttpd asks a reader for at a time */
    REPLY_HEAD_OWN = 192,     /* status line, Date, Connection, framing, and the blank line: what libmicrohttpd adds */
    REPLY_BY_HAND_MAX = 8192, /* a refusal of an endless upload: a problem document with its head */
};

static bool reply_has_body(const struct edge_request *request, int status)
{
    return status != 204 && status != 304 && !view_equal(request->head.method, VIEW("HEAD"));
}

struct MHD_Response *reply_make_bare(bool close)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (response == NULL || (close && MHD_add_response_header(response, "Connection", "close") != MHD_YES)) {
        log_message(LOG_ERROR, "edge", "libmicrohttpd cannot make an empty answer: out of memory; the process ends");
        abort();
    }
    return response;
}

/* --- fields --- */

static bool reply_add_field(struct MHD_Response *response, const struct header *field)
{
    if (field->value.len == 0) {
        return true; /* libmicrohttpd refuses empty values; nothing is lost by leaving the field out */
    }
    if (view_equal_nocase(field->name, VIEW("Transfer-Encoding")) ||
        memchr(field->value.ptr, '\0', field->value.len) != NULL) {
        return false;
    }
    /* libmicrohttpd wants two texts, and copies them: most fit here. */
    char small[512];
    size_t room = field->name.len + field->value.len + 2;
    char *name = room <= sizeof small ? small : memory_new(room);
    char *value = name + field->name.len + 1;
    memcpy(name, field->name.ptr, field->name.len);
    name[field->name.len] = '\0';
    memcpy(value, field->value.ptr, field->value.len);
    value[field->value.len] = '\0';
    bool added = MHD_add_response_header(response, name, value) == MHD_YES;
    if (name != small) {
        free(name);
    }
    return added;
}

/* False when a field is refused, or the head would not fit beside the request's (docs/facts.md 27). */
static bool reply_add_fields(struct edge_request *request, struct MHD_Response *response, int status,
                             struct view fields, bool close)
{
    if (request->pool_used + fields.len + REPLY_HEAD_OWN > LIMIT_CONNECTION_POOL) {
        log_message(LOG_ERROR, "edge",
                    "the head of an answer (status %d, %zu bytes of fields) does not fit beside its request's; a bare "
                    "500 is sent",
                    status, fields.len);
        return false;
    }
    if (close && MHD_add_response_header(response, "Connection", "close") != MHD_YES) { /* first: docs/facts.md 11 */
        return false;
    }
    struct view rest = fields;
    struct header field;
    while (field_block_next(&rest, &field)) {
        if (!reply_add_field(response, &field)) {
            log_message(LOG_ERROR, "edge", "field %.*s of an answer (status %d) cannot be sent; a bare 500 is sent",
                        VIEW_ARGS(field.name), status);
            return false;
        }
    }
    return true;
}

/* --- response objects --- */

static ssize_t reply_read_nothing(void *cls, uint64_t position, char *out, size_t room)
{
    (void) cls;
    (void) position;
    (void) out;
    (void) room;
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* HEAD, 204, 304: the head of an answer whose body stays here. */
static struct MHD_Response *reply_make_headless_body(const struct edge_request *request, int status, bool has_length,
                                                     uint64_t length)
{
    (void) request;
    if (status == 204) {
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    }
    bool announced = has_length && length != MHD_SIZE_UNKNOWN; /* one length cannot be said: the largest */
    struct MHD_Response *response =
        MHD_create_response_from_callback(announced ? length : MHD_SIZE_UNKNOWN, 1, reply_read_nothing, NULL, NULL);
    if (response != NULL && !announced) {
        (void) MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    }
    return response;
}

static struct MHD_Response *reply_make_whole(struct edge_request *request, const struct edge_reply *reply)
{
    if (!reply_has_body(request, reply->status)) {
        bool has_length = reply->has_length || reply->body.len > 0;
        uint64_t length = reply->has_length ? reply->length : reply->body.len;
        free(reply->body_owner);
        return reply_make_headless_body(request, reply->status, has_length, length);
    }
    if (reply->body_owner != NULL) {
        return MHD_create_response_from_buffer_with_free_callback_cls(
            reply->body.len, (void *) (uintptr_t) reply->body.ptr, free, reply->body_owner);
    }
    return MHD_create_response_from_buffer(reply->body.len, (void *) (uintptr_t) reply->body.ptr,
                                           MHD_RESPMEM_MUST_COPY);
}

/* Takes `response` and makes it the request's answer, or the bare 500 that stands for it. */
static bool reply_prepare(struct edge_request *request, struct MHD_Response *response, int status, struct view fields,
                          bool close)
{
    if (response == NULL) {
        log_message(LOG_ERROR, "edge", "libmicrohttpd cannot make an answer: out of memory; the process ends");
        abort();
    }
    bool good =
        reply_add_fields(request, response, status, fields, close || request->close_after || request->edge->quiescing);
    if (!good) {
        MHD_destroy_response(response);
        response = reply_make_bare(true);
        status = 500;
    }
    request->response = response;
    request->status = (unsigned) status;
    return good;
}

static bool reply_may_start(const struct edge_request *request)
{
    if (request->cut) {
        return false;
    }
    if (request->reply != REPLY_NONE) {
        log_message(LOG_ERROR, "edge", "a request was answered twice; the second answer is dropped");
        return false;
    }
    return true;
}

static void reply_release(struct edge_request *request)
{
    request->reply = REPLY_READY;
    request_resume(request);
}

/* --- answers written by hand: the upload goes on, and libmicrohttpd takes no answer before its end (docs/facts.md 28) --- */

static void reply_write_by_hand(struct edge_request *request, const struct edge_reply *reply)
{
    char date[HTTP_DATE_BYTES];
    http_date_write(clock_wall_ms(), date);
    struct buf out;
    buf_init(&out, REPLY_BY_HAND_MAX);
    buf_printf(&out, "HTTP/1.1 %d %s\r\nDate: %s\r\nConnection: close\r\n", reply->status,
               MHD_get_reason_phrase_for((unsigned) reply->status), date);
    buf_append(&out, reply->fields);
    buf_printf(&out, "Content-Length: %zu\r\n\r\n", reply->body.len);
    buf_append(&out, reply->body);
    struct view text = buf_view(&out);
    ssize_t sent = out.failed ? -1 : send(request->connection->fd, text.ptr, text.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    request->written_whole = sent >= 0 && (size_t) sent == text.len;
    request->cut = !request->written_whole;
    if (request->cut) {
        request_reset_connection(request);
    }
    buf_fini(&out);
    free(reply->body_owner);
    request->reply = REPLY_QUEUED;
    request_resume(request);
}

bool edge_reply(struct edge_request *request, const struct edge_reply *reply)
{
    if (!reply_may_start(request)) {
        free(reply->body_owner);
        return false;
    }
    hangup_end(request);
    if (request->upload_unread) {
        reply_write_by_hand(request, reply);
        return true;
    }
    struct MHD_Response *response = reply_make_whole(request, reply);
    bool good = reply_prepare(request, response, reply->status, reply->fields, reply->close);
    reply_release(request);
    return good;
}

/* --- streaming answers: the beginning; the rest is reply_stream.c --- */

bool edge_reply_begin(struct edge_request *request, int status, struct view fields, bool has_length, uint64_t length)
{
    if (!reply_may_start(request)) {
        return false;
    }
    hangup_end(request);
    struct reply_stream *stream = memory_new(sizeof *stream);
    stream->has_length = has_length;
    stream->unwritten = length;
    struct MHD_Response *response;
    bool has_body = reply_has_body(request, status) && !(has_length && length == 0);
    if (has_body) {
        response = MHD_create_response_from_callback(has_length ? length : MHD_SIZE_UNKNOWN, REPLY_BLOCK,
                                                     reply_stream_read, request, NULL);
    } else if (reply_has_body(request, status)) {
        response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    } else {
        response = reply_make_headless_body(request, status, has_length, length);
    }
    request->stream = stream;
    bool good = reply_prepare(request, response, status, fields, false);
    if (!good || !has_body) {
        /* Nothing to read: the head goes out at edge_reply_end, so that gone() never comes before it. */
        request->reply = REPLY_PREPARING;
        return good;
    }
    stream->ring = memory_resize(NULL, EDGE_STREAM_BUFFER);
    reply_release(request);
    return true;
}
