/* reply_stream.c - a streaming answer in flight: a ring that edge_reply_write fills and libmicrohttpd's reader empties. Owns the
 * ring. The loop's thread.
 *
 * The reader suspends its connection when there is nothing to read: returning 0 alone makes the loop spin (docs/facts.md 31).
 * With a declared length the last byte is held back until edge_reply_end: libmicrohttpd would otherwise complete the request, and
 * gone() would come, while the handler still thinks that its answer is open. */
#include "server/edge/inside.h"

#include "server/base/log.h"

#include <stdlib.h>
#include <string.h>

void reply_stream_free(struct reply_stream *stream)
{
    if (stream != NULL) {
        free(stream->ring);
        free(stream);
    }
}

static size_t stream_readable(const struct reply_stream *stream)
{
    bool hold_last = stream->has_length && !stream->ended && stream->unwritten == 0 && stream->len > 0;
    return hold_last ? stream->len - 1 : stream->len;
}

static size_t stream_take(struct reply_stream *stream, char *out, size_t room)
{
    size_t len = stream_readable(stream);
    len = len < room ? len : room;
    size_t first = EDGE_STREAM_BUFFER - stream->start;
    first = first < len ? first : len;
    memcpy(out, stream->ring + stream->start, first);
    memcpy(out + first, stream->ring, len - first);
    stream->start = (stream->start + len) % EDGE_STREAM_BUFFER;
    stream->len -= len;
    return len;
}

static void stream_put(struct reply_stream *stream, const char *bytes, size_t len)
{
    size_t at = (stream->start + stream->len) % EDGE_STREAM_BUFFER;
    size_t first = EDGE_STREAM_BUFFER - at;
    first = first < len ? first : len;
    memcpy(stream->ring + at, bytes, first);
    memcpy(stream->ring, bytes + first, len - first);
    stream->len += len;
}

ssize_t reply_stream_read(void *cls, uint64_t position, char *out, size_t room)
{
    (void) position;
    struct edge_request *request = cls;
    struct reply_stream *stream = request->stream;
    request_is_asked(request);
    if (request->cut) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    size_t len = stream_take(stream, out, room);
    if (stream->wants_room && stream->len <= EDGE_STREAM_BUFFER / 2) {
        stream->wants_room = false;
        request->edge->handler->drained(request->edge->context, request);
        if (request->cut) {
            return MHD_CONTENT_READER_END_WITH_ERROR;
        }
        if (len == 0) {
            len = stream_take(stream, out, room);
        }
    }
    if (len > 0) {
        return (ssize_t) len;
    }
    if (stream->ended && stream->len == 0) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    request_suspend(request);
    return 0;
}

size_t edge_reply_write(struct edge_request *request, struct view bytes)
{
    struct reply_stream *stream = request->stream;
    if (stream == NULL || request->cut || stream->ended || stream->ring == NULL) {
        return bytes.len; /* no body goes out: HEAD, 204, 304 */
    }
    size_t wanted = bytes.len;
    size_t excess = 0;
    if (stream->has_length && wanted > stream->unwritten) {
        excess = wanted - (size_t) stream->unwritten;
        wanted = (size_t) stream->unwritten;
        log_message(LOG_ERROR, "edge", "a streamed answer is longer than it announced; the rest is dropped");
    }
    size_t room = EDGE_STREAM_BUFFER - stream->len;
    size_t len = wanted < room ? wanted : room;
    stream_put(stream, bytes.ptr, len);
    if (stream->has_length) {
        stream->unwritten -= len;
    }
    if (len < wanted) {
        stream->wants_room = true;
        excess = 0;
    }
    if (request->reply == REPLY_QUEUED && stream_readable(stream) > 0) {
        request_resume(request);
    }
    return len + excess;
}

void edge_reply_end(struct edge_request *request)
{
    struct reply_stream *stream = request->stream;
    if (stream == NULL || request->cut || stream->ended) {
        return;
    }
    if (stream->ring != NULL && stream->has_length && stream->unwritten > 0) {
        log_message(LOG_ERROR, "edge", "a streamed answer is shorter than it announced; the connection is cut");
        edge_reply_cut(request);
        return;
    }
    stream->ended = true;
    if (request->reply == REPLY_PREPARING) {
        request->reply = REPLY_READY;
    }
    request_resume(request);
}

void edge_reply_cut(struct edge_request *request)
{
    if (request->cut) {
        return;
    }
    request->cut = true;
    hangup_end(request);
    request_reset_connection(request);
    request_resume(request);
    edge_run_soon(request->edge);
}
