/* lab.c - see lab.h. */
#include "tests/libraries/lab.h"

#include "tests/support/suite.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WAITS_MAX = 200, WAIT_MS = 10 };

static void lab_note(struct lab *lab, const char *text)
{
    size_t used = strlen(lab->log);
    (void) snprintf(lab->log + used, sizeof lab->log - used, "%s", text);
}

static void *on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
    (void) connection;
    lab_note(cls, "uri ");
    lab_note(cls, uri == NULL ? "(none)" : uri);
    lab_note(cls, "\n");
    return NULL;
}

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void) kind;
    char text[4096];
    (void) snprintf(text, sizeof text, "[%s=%s]", name, value == NULL ? "" : value);
    lab_note(cls, text);
    return MHD_YES;
}

static ssize_t on_read(void *cls, uint64_t position, char *out, size_t room)
{
    (void) position;
    (void) out;
    (void) room;
    struct lab *lab = cls;
    if (lab->reader_calls++ == 0) {
        lab_note(lab, "reader\n");
    }
    return lab->reader_waits ? 0 : MHD_CONTENT_READER_END_OF_STREAM;
}

static enum MHD_Result lab_answer(struct lab *lab, struct MHD_Connection *connection)
{
    static char ok[] = "ok";
    struct MHD_Response *response = lab->unknown_size
                                        ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1024, on_read, lab, NULL)
                                        : MHD_create_response_from_buffer(2, ok, MHD_RESPMEM_PERSISTENT);
    if (lab->reply_header_bytes > 0) {
        char *value = calloc(1, lab->reply_header_bytes + 1);
        ck_assert_ptr_nonnull(value);
        memset(value, 'x', lab->reply_header_bytes);
        ck_assert_int_eq(MHD_add_response_header(response, "X-Big", value), MHD_YES);
        free(value);
    }
    for (int i = 0; i < 2 && lab->fields[i] != NULL; i++) {
        ck_assert_int_eq(MHD_add_response_header(response, lab->fields[i][0], lab->fields[i][1]), MHD_YES);
    }
    enum MHD_Result queued = MHD_queue_response(connection, lab->status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result on_first_call(struct lab *lab, struct MHD_Connection *connection, const char *method,
                                     const char *url)
{
    lab->requests++;
    lab_note(lab, "head ");
    lab_note(lab, method);
    lab_note(lab, " ");
    lab_note(lab, url);
    lab_note(lab, " ");
    (void) MHD_get_connection_values(connection, MHD_HEADER_KIND, on_header, lab);
    const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "look-up");
    lab_note(lab, " look-up=");
    lab_note(lab, value == NULL ? "" : value);
    lab_note(lab, "\n");
    if (lab->suspend_at_head) {
        lab_note(lab, "suspended\n");
        MHD_suspend_connection(connection);
    }
    return lab->answer_at_head ? lab_answer(lab, connection) : MHD_YES;
}

static enum MHD_Result on_call(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                               const char *version, const char *upload, size_t *upload_len, void **slot)
{
    static int seen;
    (void) version;
    struct lab *lab = cls;
    lab->connection = connection;
    if (*slot == NULL) {
        *slot = &seen;
        return on_first_call(lab, connection, method, url);
    }
    if (*upload_len > 0) {
        lab_note(lab, "part\n");
        size_t used = strlen(lab->first_body);
        if (lab->requests == 1 && used + *upload_len < sizeof lab->first_body) {
            memcpy(lab->first_body + used, upload, *upload_len);
        }
        *upload_len = 0;
        if (lab->answer_at_part) {
            lab_note(lab, lab_answer(lab, connection) == MHD_YES ? "queued 1\n" : "queued 0\n");
        }
        return MHD_YES;
    }
    lab_note(lab, "size 0\n");
    if (lab->suspend_at_end) {
        lab_note(lab, "suspended\n");
        MHD_suspend_connection(connection);
        return MHD_YES;
    }
    return lab_answer(lab, connection);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **slot, enum MHD_RequestTerminationCode how)
{
    (void) connection;
    (void) slot;
    (void) how;
    lab_note(cls, "completed\n");
}

void lab_pair(int pair[2])
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *) &address, len), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *) &address, &len), 0);
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(pair[0], (struct sockaddr *) &address, len), 0);
    pair[1] = accept(listener, NULL, NULL);
    ck_assert_int_ge(pair[1], 0);
    (void) close(listener);
}

void lab_start(struct lab *lab, size_t pool_bytes)
{
    memset(lab, 0, sizeof *lab);
    lab->status = 200;
    lab->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
                                   on_call, lab, MHD_OPTION_CONNECTION_MEMORY_LIMIT, pool_bytes,
                                   MHD_OPTION_CONNECTION_TIMEOUT, 60U, MHD_OPTION_URI_LOG_CALLBACK, on_uri, lab,
                                   MHD_OPTION_NOTIFY_COMPLETED, on_completed, lab, MHD_OPTION_END);
    ck_assert_ptr_nonnull(lab->daemon);
    lab->epoll_fd = MHD_get_daemon_info(lab->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    int pair[2];
    lab_pair(pair);
    lab->client = pair[0];
    lab->server_fd = pair[1];
    struct sockaddr unspecified = { .sa_family = AF_UNIX };
    ck_assert_int_eq(MHD_add_connection(lab->daemon, pair[1], &unspecified, sizeof unspecified), MHD_YES);
}

void lab_close_client(struct lab *lab)
{
    (void) close(lab->client);
    lab->client = -1;
}

void lab_stop(struct lab *lab)
{
    MHD_stop_daemon(lab->daemon);
    if (lab->client >= 0) {
        lab_close_client(lab);
    }
}

void lab_send_bytes(struct lab *lab, const char *bytes, size_t len)
{
    ck_assert_int_eq(send(lab->client, bytes, len, MSG_NOSIGNAL), (ssize_t) len);
}

void lab_send(struct lab *lab, const char *text)
{
    lab_send_bytes(lab, text, strlen(text));
}

static void lab_read(struct lab *lab)
{
    ssize_t got = lab->client < 0 || lab->ended ? -1
                                                : recv(lab->client, lab->answer + lab->answer_len,
                                                       sizeof lab->answer - 1 - lab->answer_len, MSG_DONTWAIT);
    if (got > 0) {
        lab->answer_len += (size_t) got;
    } else if (lab->client >= 0 && !lab->ended && (got == 0 || errno == ECONNRESET)) {
        lab->ended = true;
        lab->reset = got < 0;
    }
}

void lab_turn(struct lab *lab, int times)
{
    for (int i = 0; i < times; i++) {
        ck_assert_int_eq(MHD_run(lab->daemon), MHD_YES);
        lab_read(lab);
    }
}

bool lab_epoll_is_readable(const struct lab *lab)
{
    struct pollfd ready = { .fd = lab->epoll_fd, .events = POLLIN };
    return poll(&ready, 1, 0) > 0;
}

/* Waits for the daemon or the client to have something to do. */
static void lab_step(struct lab *lab)
{
    struct pollfd ready[2] = { { .fd = lab->epoll_fd, .events = POLLIN },
                               { .fd = lab->ended ? -1 : lab->client, .events = POLLIN } };
    (void) poll(ready, 2, WAIT_MS);
    lab_turn(lab, 1);
}

bool lab_wait_log(struct lab *lab, const char *text)
{
    for (int i = 0; i < WAITS_MAX && strstr(lab->log, text) == NULL; i++) {
        lab_step(lab);
    }
    return strstr(lab->log, text) != NULL;
}

bool lab_wait_answer(struct lab *lab, const char *text)
{
    for (int i = 0; i < WAITS_MAX && strstr(lab->answer, text) == NULL; i++) {
        lab_step(lab);
    }
    return strstr(lab->answer, text) != NULL;
}

bool lab_wait_end(struct lab *lab)
{
    for (int i = 0; i < WAITS_MAX && !lab->ended; i++) {
        lab_step(lab);
    }
    return lab->ended;
}
