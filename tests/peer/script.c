/* script.c - one connection of the scripted peer: reads requests, runs steps. A thread per connection. */
#include "tests/peer/inside.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECORD_MAX = 1 << 30, HEAD_MAX = 1 << 20 };

/* --- bytes --- */

/* The next byte, or -1 when the other side closed. */
static int link_byte(struct peer_link *link)
{
    if (link->read_from == link->read_until) {
        ssize_t got = recv(link->fd, link->read, sizeof link->read, 0);
        if (got <= 0) {
            return -1;
        }
        link->read_from = 0;
        link->read_until = (size_t) got;
    }
    return (unsigned char) link->read[link->read_from++];
}

/* So many bytes; kept in `record` unless that is NULL. */
static bool link_read(struct peer_link *link, struct peer_record *record, uint64_t count)
{
    while (count > 0) {
        int first = link_byte(link);
        if (first < 0) {
            return false;
        }
        link->read_from--;
        size_t there = link->read_until - link->read_from;
        size_t part = there < count ? there : (size_t) count;
        if (record != NULL) {
            pthread_mutex_lock(&link->peer->lock);
            buf_append_bytes(&record->bytes, link->read + link->read_from, part);
            pthread_mutex_unlock(&link->peer->lock);
        }
        link->read_from += part;
        count -= part;
    }
    return true;
}

/* A line with its end; false on close. */
static bool link_line(struct peer_link *link, struct buf *line)
{
    int byte;
    while ((byte = link_byte(link)) >= 0) {
        char c = (char) byte;
        buf_append_bytes(line, &c, 1);
        if (c == '\n') {
            return !line->failed;
        }
    }
    return false;
}

static bool link_send(struct peer_link *link, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t went = send(link->fd, bytes, len, MSG_NOSIGNAL);
        if (went <= 0) {
            return false;
        }
        bytes += went;
        len -= (size_t) went;
    }
    return true;
}

/* --- the pattern --- */

enum { PATTERN_PERIOD = 251, PATTERN_BLOCK = 64 * 1024 };

static char pattern[PATTERN_BLOCK + PATTERN_PERIOD];
static pthread_once_t pattern_once = PTHREAD_ONCE_INIT;

static void pattern_make(void)
{
    for (size_t i = 0; i < sizeof pattern; i++) {
        pattern[i] = (char) (unsigned char) (i % PATTERN_PERIOD);
    }
}

void peer_pattern_write(char *out, size_t len, uint64_t offset)
{
    pthread_once(&pattern_once, pattern_make);
    while (len > 0) {
        size_t part = len < PATTERN_BLOCK ? len : PATTERN_BLOCK;
        memcpy(out, pattern + offset % PATTERN_PERIOD, part);
        out += part;
        offset += part;
        len -= part;
    }
}

bool peer_pattern_matches(const char *bytes, size_t len, uint64_t offset)
{
    pthread_once(&pattern_once, pattern_make);
    while (len > 0) {
        size_t part = len < PATTERN_BLOCK ? len : PATTERN_BLOCK;
        if (memcmp(bytes, pattern + offset % PATTERN_PERIOD, part) != 0) {
            return false;
        }
        bytes += part;
        offset += part;
        len -= part;
    }
    return true;
}

/* So many bytes that must continue the pattern at `*offset`. */
static bool link_read_pattern(struct peer_link *link, uint64_t count, uint64_t *offset)
{
    while (count > 0) {
        if (link_byte(link) < 0) {
            return false;
        }
        link->read_from--;
        size_t there = link->read_until - link->read_from;
        size_t part = there < count ? there : (size_t) count;
        if (!peer_pattern_matches(link->read + link->read_from, part, *offset)) {
            return false;
        }
        link->read_from += part;
        *offset += part;
        count -= part;
    }
    return true;
}

static bool link_read_pattern_chunks(struct peer_link *link)
{
    uint64_t offset = 0;
    for (;;) {
        struct buf line;
        buf_init(&line, HEAD_MAX);
        bool got = link_line(link, &line);
        buf_append_bytes(&line, "", 1);
        uint64_t size = got ? strtoull(line.ptr, NULL, 16) : 0;
        buf_fini(&line);
        if (!got || !link_read_pattern(link, size, &offset) || !link_read(link, NULL, 2)) {
            return false;
        }
        if (size == 0) {
            return true;
        }
    }
}

static bool link_send_pattern(struct peer_link *link, uint64_t count)
{
    pthread_once(&pattern_once, pattern_make);
    for (uint64_t offset = 0; offset < count;) {
        size_t part = count - offset < PATTERN_BLOCK ? (size_t) (count - offset) : PATTERN_BLOCK;
        if (!link_send(link, pattern + offset % PATTERN_PERIOD, part)) {
            return false;
        }
        offset += part;
    }
    return true;
}

/* --- requests --- */

/* The value of a field in a head, as it was written; empty when it is not there. */
static struct view head_field(struct view head, struct view name)
{
    struct view line;
    while (view_next_item(&head, '\n', &line)) {
        if (view_starts_with_nocase(line, name) && line.len > name.len && line.ptr[name.len] == ':') {
            struct view value = view_trim(view_make(line.ptr + name.len + 1, line.len - name.len - 1));
            if (value.len > 0 && value.ptr[value.len - 1] == '\r') {
                value.len--;
            }
            return value;
        }
    }
    return view_make(NULL, 0);
}

static void link_enter(struct peer_link *link, enum peer_stage stage)
{
    pthread_mutex_lock(&link->peer->lock);
    link->stage = stage;
    pthread_cond_broadcast(&link->peer->changed);
    pthread_mutex_unlock(&link->peer->lock);
}

/* The first bytes stay in the socket until it is known that they are there: so nothing that came is overlooked (peer_wait_read). */
static void link_rest(struct peer_link *link)
{
    char first;
    if (link->read_from == link->read_until) {
        link_enter(link, PEER_RESTS);
        (void) recv(link->fd, &first, 1, MSG_PEEK);
    }
    link_enter(link, PEER_READS);
}

/* Reads a head; it is counted and recorded the moment its blank line is here. NULL: the connection ended first. */
static struct peer_record *link_read_head(struct peer_link *link, unsigned *number)
{
    struct peer *peer = link->peer;
    struct buf head;
    buf_init(&head, HEAD_MAX);
    size_t line_from;
    link_rest(link);
    do {
        line_from = head.len;
        if (!link_line(link, &head)) {
            buf_fini(&head);
            return NULL;
        }
    } while (head.len - line_from > 2 || line_from == 0);
    struct peer_record *record = calloc(1, sizeof *record);
    buf_init(&record->bytes, RECORD_MAX);
    buf_append(&record->bytes, buf_view(&head));
    struct view key = head_field(buf_view(&head), VIEW("Idempotency-Key"));
    (void) snprintf(record->key, sizeof record->key, "%.*s", VIEW_ARGS(key));
    buf_fini(&head);
    pthread_mutex_lock(&peer->lock);
    if (peer->record_count == PEER_REQUESTS_MAX) {
        abort();
    }
    peer->records[peer->record_count++] = record;
    *number = peer->record_count;
    link->stage = PEER_ACTS;
    pthread_cond_broadcast(&peer->changed);
    pthread_mutex_unlock(&peer->lock);
    return record;
}

static bool link_read_chunks(struct peer_link *link, struct peer_record *record)
{
    for (;;) {
        struct buf line;
        buf_init(&line, HEAD_MAX);
        bool got = link_line(link, &line);
        uint64_t size = 0;
        if (got) {
            buf_append_bytes(&line, "", 1);
            size = strtoull(line.ptr, NULL, 16);
            pthread_mutex_lock(&link->peer->lock);
            buf_append_bytes(&record->bytes, line.ptr, line.len - 1);
            pthread_mutex_unlock(&link->peer->lock);
        }
        buf_fini(&line);
        if (!got) {
            return false;
        }
        /* A chunk and its line end, or behind the last one the blank line (no trailers are sent to it). */
        if (!link_read(link, record, size + 2)) {
            return false;
        }
        if (size == 0) {
            return true;
        }
    }
}

static bool link_read_body(struct peer_link *link, struct peer_record *record, bool as_pattern)
{
    struct peer *peer = link->peer;
    if (record->whole) {
        return true;
    }
    /* Only this thread appends to this record. */
    uint64_t length = 0;
    (void) view_to_uint64(head_field(buf_view(&record->bytes), VIEW("Content-Length")), &length);
    bool chunked = head_field(buf_view(&record->bytes), VIEW("Transfer-Encoding")).len > 0;
    uint64_t offset = 0;
    bool good = as_pattern ? (chunked ? link_read_pattern_chunks(link) : link_read_pattern(link, length, &offset))
                           : (chunked ? link_read_chunks(link, record) : link_read(link, record, length));
    if (!good) {
        return false;
    }
    pthread_mutex_lock(&peer->lock);
    record->whole = true;
    peer->whole++;
    pthread_cond_broadcast(&peer->changed);
    pthread_mutex_unlock(&peer->lock);
    return true;
}

/* --- steps --- */

static void link_close(struct peer_link *link, bool reset)
{
    pthread_mutex_lock(&link->peer->lock);
    if (reset) {
        struct linger at_once = { .l_onoff = 1, .l_linger = 0 };
        (void) setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    } else {
        /* close() with unread bytes would be a reset. */
        while (recv(link->fd, link->read, sizeof link->read, MSG_DONTWAIT) > 0) {
        }
    }
    (void) close(link->fd);
    link->fd = -1;
    link->peer->ended++;
    pthread_cond_broadcast(&link->peer->changed);
    pthread_mutex_unlock(&link->peer->lock);
}

static bool link_wait(struct peer_link *link)
{
    struct peer *peer = link->peer;
    pthread_mutex_lock(&peer->lock);
    peer->stalled++;
    pthread_cond_broadcast(&peer->changed);
    while (peer->releases == 0 && !peer->stopping) {
        pthread_cond_wait(&peer->changed, &peer->lock);
    }
    if (peer->releases > 0) {
        peer->releases--;
    }
    peer->stalled--;
    bool go_on = !peer->stopping;
    pthread_mutex_unlock(&peer->lock);
    return go_on;
}

static bool link_answer(struct peer_link *link, struct view body)
{
    char head[100];
    int len = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", body.len);
    struct buf answer;
    buf_init(&answer, RECORD_MAX);
    buf_append_bytes(&answer, head, (size_t) len);
    buf_append(&answer, body);
    bool went = link_send(link, answer.ptr, answer.len); /* in one packet where it fits */
    buf_fini(&answer);
    return went;
}

static bool link_drip(struct peer_link *link, const char *text)
{
    int on = 1;
    (void) setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    for (; *text != '\0'; text++) {
        if (!link_send(link, text, 1)) {
            return false;
        }
    }
    return true;
}

static bool link_send_often(struct peer_link *link, const struct peer_step *step)
{
    size_t times = step->count > 0 ? step->count : 1;
    size_t len = strlen(step->text);
    for (size_t i = 0; i < times; i++) {
        if (!link_send(link, step->text, len)) {
            return false;
        }
    }
    return true;
}

/* One step. False: the connection is over. */
static bool link_step(struct peer_link *link, const struct peer_step *step, struct peer_record **record,
                      unsigned *number)
{
    char text[20];
    switch (step->op) {
    case PEER_READ:
        *record = link_read_head(link, number);
        return *record != NULL && link_read_body(link, *record, false);
    case PEER_BODY:
        return *record != NULL && link_read_body(link, *record, false);
    case PEER_BODY_PATTERN:
        return *record != NULL && link_read_body(link, *record, true);
    case PEER_READ_BYTES:
        return link_read(link, NULL, step->count);
    case PEER_SEND:
        return link_send_often(link, step);
    case PEER_SEND_BYTES:
        return link_send(link, step->text, step->count);
    case PEER_SEND_PATTERN:
        return link_send_pattern(link, step->count);
    case PEER_DRIP:
        return link_drip(link, step->text);
    case PEER_NUMBER:
        (void) snprintf(text, sizeof text, "%u", *number);
        return link_answer(link, view_of(text));
    case PEER_ECHO:
        return *record != NULL && link_answer(link, buf_view(&(*record)->bytes));
    case PEER_WAIT:
        return link_wait(link);
    case PEER_WAIT_END:
        while (link_byte(link) >= 0) {
            link->read_from = link->read_until;
        }
        return false;
    case PEER_SHUTDOWN:
        (void) shutdown(link->fd, SHUT_WR);
        return true;
    case PEER_CLOSE:
        return false;
    case PEER_RESET:
        link_close(link, true);
        return false;
    case PEER_STOP:
        break;
    }
    return true;
}

static bool link_run(struct peer_link *link, const struct peer_step *steps, struct peer_record *record, unsigned number)
{
    for (; steps->op != PEER_STOP; steps++) {
        if (!link_step(link, steps, &record, &number)) {
            return false;
        }
    }
    return true;
}

static const struct peer_step *link_choose(struct peer_link *link, const struct peer_record *record, unsigned number)
{
    struct peer *peer = link->peer;
    struct view wanted = record != NULL ? head_field(buf_view(&record->bytes), VIEW("X-Script")) : view_make(NULL, 0);
    const struct peer_step *by_number = NULL;
    const struct peer_step *by_name = NULL;
    pthread_mutex_lock(&peer->lock);
    for (unsigned i = 0; i < peer->choice_count; i++) {
        const struct peer_choice *choice = &peer->choices[i];
        if (record == NULL && choice->connection == link->number) {
            by_number = choice->steps;
        } else if (record != NULL && choice->request == number) {
            by_number = choice->steps;
        } else if (record != NULL && choice->name != NULL && view_equal(wanted, view_of(choice->name))) {
            by_name = choice->steps;
        }
    }
    const struct peer_step *fallback = record != NULL ? peer->fallback : NULL;
    pthread_mutex_unlock(&peer->lock);
    return by_name != NULL ? by_name : by_number != NULL ? by_number : fallback;
}

void *peer_serve(void *argument)
{
    struct peer_link *link = argument;
    const struct peer_step *first = link_choose(link, NULL, 0);
    bool open = first == NULL || link_run(link, first, NULL, 0);
    while (open) {
        unsigned number = 0;
        struct peer_record *record = link_read_head(link, &number);
        open = record != NULL && link_run(link, link_choose(link, record, number), record, number);
    }
    if (link->fd >= 0) {
        link_close(link, false);
    }
    return NULL;
}
