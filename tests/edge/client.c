/* client.c - see stage.h: the client's half. Blocking sockets that give up after 20 s. */
#include "tests/edge/stage.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

void client_connect(struct client *client, const struct stage *stage)
{
    *client = (struct client){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    buf_init(&client->in, 1 << 28);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(stage->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval limit = { .tv_sec = 20 };
    ck_assert_int_eq(setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    ck_assert_int_eq(setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit), 0);
    ck_assert_int_eq(connect(client->fd, (struct sockaddr *) &address, sizeof address), 0);
}

void client_close(struct client *client)
{
    (void) close(client->fd);
    buf_fini(&client->in);
}

void client_send_bytes(struct client *client, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t sent = send(client->fd, at, len, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) {
            client->reset = true;
            return; /* the server answered without reading on; the test looks at what it said */
        }
        ck_assert_msg(sent > 0, "send: %s", strerror(errno));
        at += sent;
        len -= (size_t) sent;
    }
}

void client_send(struct client *client, const char *text)
{
    client_send_bytes(client, text, strlen(text));
}

/* False at the end of the connection. */
static bool client_fill(struct client *client)
{
    if (client->ended) {
        return false;
    }
    char *room = buf_reserve(&client->in, 65536);
    ck_assert_ptr_nonnull(room);
    ssize_t got = recv(client->fd, room, 65536, 0);
    if (got > 0) {
        client->in.len += (size_t) got;
        return true;
    }
    ck_assert_msg(got == 0 || errno == ECONNRESET, "recv: %s", strerror(errno));
    client->ended = true;
    /* A reset behind the FIN shows only as the socket's error. */
    int error = 0;
    socklen_t len = sizeof error;
    ck_assert_int_eq(getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
    client->reset = client->reset || got < 0 || error != 0;
    return false;
}

static void client_use(struct client *client, size_t len)
{
    memmove(client->in.ptr, client->in.ptr + len, client->in.len - len);
    client->in.len -= len;
}

/* Index behind `what`, or 0. */
static size_t client_find(struct client *client, const char *what)
{
    for (;;) {
        const char *at = client->in.len == 0 ? NULL : memmem(client->in.ptr, client->in.len, what, strlen(what));
        if (at != NULL) {
            return (size_t) (at - client->in.ptr) + strlen(what);
        }
        if (!client_fill(client)) {
            return 0;
        }
    }
}

static bool client_need(struct client *client, size_t len)
{
    while (client->in.len < len) {
        if (!client_fill(client)) {
            return false;
        }
    }
    return true;
}

void client_read_head(struct client *client, struct answer *answer)
{
    memset(answer, 0, sizeof *answer);
    buf_init(&answer->body, 1 << 28);
    size_t len = client_find(client, "\r\n\r\n");
    if (len == 0) {
        return; /* status 0: no answer */
    }
    ck_assert_uint_lt(len, sizeof answer->head);
    memcpy(answer->head, client->in.ptr, len);
    answer->head[len] = '\0';
    client_use(client, len);
    ck_assert_int_eq(strncmp(answer->head, "HTTP/1.1 ", 9), 0);
    answer->status = (int) strtol(answer->head + 9, NULL, 10);
}

bool answer_has(const struct answer *answer, const char *line)
{
    for (const char *at = answer->head; at != NULL && *at != '\0'; at = strstr(at, "\r\n") + 2) {
        if (strncasecmp(at, line, strlen(line)) == 0) {
            return true;
        }
    }
    return false;
}

static void read_chunks(struct client *client, struct answer *answer)
{
    for (;;) {
        size_t line = client_find(client, "\r\n");
        if (line == 0) {
            return;
        }
        size_t size = strtoul(client->in.ptr, NULL, 16);
        client_use(client, line);
        if (!client_need(client, size + 2)) {
            return;
        }
        buf_append_bytes(&answer->body, client->in.ptr, size);
        client_use(client, size + 2);
        if (size == 0) {
            answer->whole = true;
            return;
        }
    }
}

void client_read(struct client *client, const char *method, struct answer *answer)
{
    client_read_head(client, answer);
    if (answer->status == 0) {
        return;
    }
    if (strcmp(method, "HEAD") == 0 || answer->status == 204 || answer->status == 304) {
        answer->whole = true;
        return;
    }
    if (answer_has(answer, "transfer-encoding: chunked")) {
        read_chunks(client, answer);
        return;
    }
    const char *length = strcasestr(answer->head, "\r\ncontent-length: ");
    if (length != NULL) {
        size_t size = strtoul(length + 18, NULL, 10);
        answer->whole = client_need(client, size);
        size_t got = answer->whole ? size : client->in.len;
        buf_append_bytes(&answer->body, client->in.ptr, got);
        client_use(client, got);
        return;
    }
    while (client_fill(client)) {
    }
    buf_append(&answer->body, buf_view(&client->in));
    client_use(client, client->in.len);
    answer->whole = !client->reset;
}

bool client_sees_end(struct client *client)
{
    return client->in.len == 0 && !client_fill(client);
}

void answer_fini(struct answer *answer)
{
    buf_fini(&answer->body);
}

void client_ask(struct client *client, const char *request, const char *method, int status, const char *body)
{
    struct answer answer;
    client_send(client, request);
    client_read(client, method, &answer);
    ck_assert_int_eq(answer.status, status);
    ck_assert(answer.whole);
    ck_assert_msg(view_equal(buf_view(&answer.body), view_of(body)), "body is \"%.*s\"",
                  VIEW_ARGS(buf_view(&answer.body)));
    answer_fini(&answer);
}

size_t resident_kib(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(file);
    unsigned long total, resident;
    ck_assert_int_eq(fscanf(file, "%lu %lu", &total, &resident), 2);
    (void) fclose(file);
    return resident * (size_t) sysconf(_SC_PAGESIZE) / 1024;
}
