/* http_client.c - see http_client.h. */
#include "tests/support/http_client.h"

#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { CLIENT_DEADLINE_S = 20 };

void http_answer_free(struct http_answer *answer)
{
    free(answer->head);
    free(answer->body);
    *answer = (struct http_answer){ 0 };
}

/* Calls back for every field of a head: a line after the first, "Name: value". Returns how many had the name; the first value is copied. */
static int scan_fields(const char *head, const char *name, char *value, size_t size)
{
    int count = 0;
    size_t name_len = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, name_len) != 0 || line[name_len] != ':') {
            continue;
        }
        if (++count == 1 && value != NULL) {
            const char *start = line + name_len + 1;
            start += strspn(start, " \t");
            size_t len = strcspn(start, "\r");
            (void) snprintf(value, size, "%.*s", (int) len, start);
        }
    }
    return count;
}

bool http_field(const struct http_answer *answer, const char *name, char *value, size_t size)
{
    return answer->head != NULL && scan_fields(answer->head, name, value, size) > 0;
}

int http_field_count(const struct http_answer *answer, const char *name)
{
    return answer->head == NULL ? 0 : scan_fields(answer->head, name, NULL, 0);
}

bool http_field_is(const struct http_answer *answer, const char *name, const char *value)
{
    char seen[1024];
    return http_field(answer, name, seen, sizeof seen) && strcmp(seen, value) == 0;
}

/* One that a signal has interrupted, as it does with a deadline also where nobody handles it (signal(7)). */
static bool connect_goes_on(int fd)
{
    struct pollfd one = { .fd = fd, .events = POLLOUT };
    int ready = 0, code = ETIMEDOUT;
    socklen_t len = sizeof code;
    do {
        ready = poll(&one, 1, CLIENT_DEADLINE_S * 1000 * suite_slowness());
    } while (ready < 0 && errno == EINTR);
    if (ready > 0) {
        (void) getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len);
    }
    errno = code;
    return code == 0;
}

int http_connect(const char *address)
{
    char host[64];
    unsigned port = 0;
    if (sscanf(address, "%63[^:]:%u", host, &port) != 2) {
        errno = EINVAL;
        return -1;
    }
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short) port) };
    inet_pton(AF_INET, host, &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval deadline = { .tv_sec = (time_t) CLIENT_DEADLINE_S * suite_slowness() };
    int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof deadline);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    bool connected = connect(fd, (const struct sockaddr *) &to, sizeof to) == 0;
    connected = connected || (errno == EINTR && connect_goes_on(fd));
    if (!connected) {
        int code = errno;
        close(fd);
        errno = code;
        return -1;
    }
    return fd;
}

/* A child that stops or ends interrupts a wait that has a deadline, with SA_RESTART too (signal(7)). */
static ssize_t receive_some(int fd, char *bytes, size_t size, int flags)
{
    for (;;) {
        ssize_t got = recv(fd, bytes, size, flags);
        if (got >= 0 || errno != EINTR) {
            return got;
        }
    }
}

bool http_send(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        len -= (size_t) sent;
    }
    return true;
}

/* Bytes of one connection as they come; a test never pipelines answers through two receivers, except from one input. */
struct input {
    int fd;
    bool closed, reset;
};

/* What has arrived so far, at least a byte, without taking it. 0: the connection has ended. */
static size_t input_peek(struct input *in, char *bytes, size_t size)
{
    ssize_t got = receive_some(in->fd, bytes, size, MSG_PEEK);
    if (got > 0) {
        return (size_t) got;
    }
    in->closed = true;
    in->reset = got < 0 && errno == ECONNRESET;
    return 0;
}

static bool input_bytes(struct input *in, char *bytes, size_t len, size_t *got)
{
    *got = 0;
    while (*got < len) {
        ssize_t n = receive_some(in->fd, bytes + *got, len - *got, 0);
        if (n <= 0) {
            in->closed = true;
            in->reset = n < 0 && errno == ECONNRESET;
            return false;
        }
        *got += (size_t) n;
    }
    return true;
}

/* Reads up to and without `end`, and nothing behind it. NULL when the connection ended first. */
static char *input_until(struct input *in, const char *end)
{
    char *text = calloc(1, 1);
    size_t len = 0;
    size_t end_len = strlen(end);
    char seen[1024];
    for (size_t there; (there = input_peek(in, seen, sizeof seen)) > 0;) {
        text = realloc(text, len + there + 1);
        memcpy(text + len, seen, there);
        text[len + there] = '\0';
        size_t from = len < end_len ? 0 : len - end_len; /* the end may have begun in what was read before */
        char *found = memmem(text + from, len + there - from, end, end_len);
        size_t taken = found != NULL ? (size_t) (found - text) + end_len - len : there;
        size_t got = 0;
        (void) input_bytes(in, seen, taken, &got); /* it is there */
        if (found != NULL) {
            *found = '\0';
            return text;
        }
        len += there;
    }
    free(text);
    return NULL;
}

static void append_body(struct http_answer *answer, const char *bytes, size_t len)
{
    answer->body = realloc(answer->body, answer->body_len + len + 1);
    if (len > 0) {
        memcpy(answer->body + answer->body_len, bytes, len);
    }
    answer->body_len += len;
    answer->body[answer->body_len] = '\0';
}

static void receive_length(struct input *in, struct http_answer *answer, size_t length)
{
    char *bytes = malloc(length + 1);
    size_t got = 0;
    answer->whole = input_bytes(in, bytes, length, &got);
    append_body(answer, bytes, got);
    free(bytes);
}

static void receive_chunked(struct input *in, struct http_answer *answer)
{
    for (;;) {
        char *line = input_until(in, "\r\n");
        if (line == NULL) {
            return;
        }
        size_t length = strtoul(line, NULL, 16);
        free(line);
        if (length > 0) {
            receive_length(in, answer, length);
            if (!answer->whole) {
                return;
            }
            answer->whole = false;
        }
        char *end = input_until(in, "\r\n");
        if (end == NULL) {
            return;
        }
        free(end);
        if (length == 0) {
            answer->whole = true;
            return;
        }
    }
}

static void receive_to_close(struct input *in, struct http_answer *answer)
{
    char bytes[4096];
    for (;;) {
        size_t got = 0;
        bool more = input_bytes(in, bytes, sizeof bytes, &got);
        append_body(answer, bytes, got);
        if (!more) {
            answer->whole = !in->reset;
            return;
        }
    }
}

static void receive_body(struct input *in, struct http_answer *answer, bool head_request)
{
    char value[128];
    append_body(answer, "", 0);
    if (head_request || answer->status == 204 || answer->status == 304) {
        answer->whole = true;
    } else if (http_field(answer, "Transfer-Encoding", value, sizeof value)) {
        receive_chunked(in, answer);
    } else if (http_field(answer, "Content-Length", value, sizeof value)) {
        receive_length(in, answer, strtoul(value, NULL, 10));
    } else {
        receive_to_close(in, answer);
    }
}

struct http_answer http_receive(int fd, bool head_request, int *informational)
{
    struct http_answer answer = { 0 };
    struct input in = { .fd = fd };
    for (;;) {
        free(answer.head);
        answer.head = input_until(&in, "\r\n\r\n");
        if (answer.head == NULL) {
            break;
        }
        if (sscanf(answer.head, "HTTP/1.%*d %d", &answer.status) != 1) {
            answer.status = 0;
            break;
        }
        if (answer.status >= 200) {
            receive_body(&in, &answer, head_request);
            break;
        }
        if (informational != NULL) {
            ++*informational;
        }
    }
    answer.closed = in.closed;
    answer.reset = in.reset;
    return answer;
}

bool http_closes(int fd)
{
    char byte;
    ssize_t got = receive_some(fd, &byte, 1, 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
}

struct http_answer http_request(const char *address, const char *method, const char *target, const char *fields,
                                const char *body)
{
    struct http_answer none = { 0 };
    int fd = http_connect(address);
    if (fd < 0) {
        return none;
    }
    size_t body_len = body == NULL ? 0 : strlen(body);
    size_t size = 4096 + strlen(target) + body_len + (fields == NULL ? 0 : strlen(fields));
    char *bytes = malloc(size);
    char length[64] = "";
    if (body != NULL) {
        (void) snprintf(length, sizeof length, "Content-Length: %zu\r\n", body_len);
    }
    int len = snprintf(bytes, size, "%s %s HTTP/1.1\r\nHost: test.example\r\n%s%s\r\n%s", method, target,
                       fields == NULL ? "" : fields, length, body == NULL ? "" : body);
    (void) http_send(fd, bytes, (size_t) len);
    free(bytes);
    struct http_answer answer = http_receive(fd, strcmp(method, "HEAD") == 0, NULL);
    close(fd);
    return answer;
}

struct http_answer http_post(const char *address, const char *target, const char *key, const char *body)
{
    char fields[512];
    (void) snprintf(fields, sizeof fields, "Content-Type: application/json\r\nIdempotency-Key: %s\r\n", key);
    return http_request(address, "POST", target, fields, body);
}
