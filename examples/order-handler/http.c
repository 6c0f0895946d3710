/* http.c - requests in, orders placed, answers out; the only place here that knows libmicrohttpd. */
#include "examples/order-handler/http.h"
#include "common/buf.h"
#include "schema/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { BODY_BYTES_MAX = 1024 * 1024, CONNECTIONS_MAX = 4096, THREAD_STACK_BYTES = 256 * 1024, STOP_WAIT_S = 30 };

struct http {
    struct MHD_Daemon *daemon;
    const struct options *options;
    struct ledger *ledger;
    int stop_fd; /* an eventfd, readable once http_close was called: ends what hangs */
    pthread_mutex_t mutex;
    pthread_cond_t idle;
    unsigned acting; /* requests whose body is whole and whose answer is not yet sent */
};

struct request {
    struct buf body;
    bool acting;
};

/* What happened to a request, until it is answered. A closed connection is `status` 0. */
struct reply {
    unsigned status;
    char *body; /* from cJSON; given to libmicrohttpd */
    char location[32];
};

static const char *header(struct MHD_Connection *connection, const char *name)
{
    const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value == NULL ? "" : value;
}

static void reply_json(struct reply *reply, unsigned status, cJSON *json)
{
    reply->status = status;
    reply->body = json == NULL ? NULL : cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
}

static void reply_error(struct reply *reply, unsigned status, const char *text)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "error", text);
    reply_json(reply, status, json);
}

/* The key without its quotes, so that "k" and k are found alike; a key that is none is kept as it came. */
static void read_key(const char *text, struct key *key)
{
    if (key_parse(view_of(text), key) != KEY_OK) {
        snprintf(key->text, sizeof key->text, "%s", text);
    }
}

/* Never answers: returns when the other side has left or this process stops. */
static void hang(const struct http *http, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct pollfd fds[] = { { .fd = http->stop_fd, .events = POLLIN },
                            { .fd = info->connect_fd, .events = POLLRDHUP } };
    while (poll(fds, 2, -1) < 0 && errno == EINTR) {
    }
}

/* The request's own words win over the command line. False when they are not understood. */
static bool read_faults(const struct http *http, struct MHD_Connection *connection, struct fault *fault,
                        unsigned *latency_ms)
{
    const struct faults *faults = &http->options->faults;
    const char *fail = header(connection, "X-Fail");
    const char *latency = header(connection, "X-Latency");
    *fault = (struct fault){ .kind = FAULT_NONE };
    *latency_ms = faults->latency_after_ms;
    if (fail[0] != '\0') {
        if (!fault_read(view_of(fail), fault)) {
            return false;
        }
    } else if (faults_strike(faults)) {
        *fault = faults->fault;
    }
    if (latency[0] != '\0') {
        uint64_t ms;
        if (!view_to_uint64(view_of(latency), &ms) || ms > FAULTS_LATENCY_MS_MAX) {
            return false;
        }
        *latency_ms = (unsigned) ms;
    }
    return true;
}

/* Acts: from here on the world is another one. */
static void place_order(struct http *http, const struct arrival *arrival, struct reply *reply)
{
    struct order order;
    const char *wrong = order_read(arrival->body, &order);
    if (wrong != NULL) {
        reply_error(reply, MHD_HTTP_BAD_REQUEST, wrong);
        return;
    }
    if (!order_mark_execution(&order) || ledger_add_order(http->ledger, arrival, &order) != LEDGER_OK) {
        reply_error(reply, MHD_HTTP_INTERNAL_SERVER_ERROR, "the order was not written");
        return;
    }
    snprintf(reply->location, sizeof reply->location, "/orders/%lld", (long long) order.id);
    reply_json(reply, MHD_HTTP_CREATED, order_to_json(&order));
}

static void post_order(struct http *http, struct MHD_Connection *connection, const struct request *request,
                       struct reply *reply)
{
    struct key key;
    read_key(header(connection, WIRE_IDEMPOTENCY_KEY), &key);
    uint64_t execution = 0;
    view_to_uint64(view_of(header(connection, WIRE_EXECUTION)), &execution);
    struct arrival arrival = { .key = key.text,
                               .command = header(connection, WIRE_COMMAND_ID),
                               .execution = (int64_t) execution,
                               .body = buf_view(&request->body) };
    if (ledger_log_arrival(http->ledger, &arrival) != LEDGER_OK) {
        reply_error(reply, MHD_HTTP_INTERNAL_SERVER_ERROR, "the arrival was not logged, so nothing was done");
        return;
    }
    struct fault fault;
    unsigned latency_ms;
    if (!read_faults(http, connection, &fault, &latency_ms)) {
        reply_error(reply, MHD_HTTP_BAD_REQUEST, "X-Fail or X-Latency is not understood");
        return;
    }
    faults_wait(http->options->faults.latency_before_ms);
    if (fault.kind == FAULT_CLOSE_BEFORE) {
        return;
    }
    if (fault.kind == FAULT_STATUS) {
        reply_error(reply, fault.status, "failed on purpose, before acting");
        return;
    }
    place_order(http, &arrival, reply);
    faults_wait(latency_ms);
    if (fault.kind == FAULT_HANG) {
        hang(http, connection);
    }
    if (fault.kind == FAULT_HANG || fault.kind == FAULT_CLOSE_AFTER) {
        reply->status = 0;
    }
}

static void get_order(struct http *http, struct view id_text, struct reply *reply)
{
    uint64_t id;
    struct order order;
    enum ledger_result result = LEDGER_MISSING;
    if (view_to_uint64(id_text, &id) && id <= INT64_MAX) {
        result = ledger_find_order(http->ledger, (int64_t) id, &order);
    }
    if (result == LEDGER_OK) {
        reply_json(reply, MHD_HTTP_OK, order_to_json(&order));
    } else if (result == LEDGER_MISSING) {
        reply_error(reply, MHD_HTTP_NOT_FOUND, "there is no such order");
    } else {
        reply_error(reply, MHD_HTTP_INTERNAL_SERVER_ERROR, "the ledger cannot be read");
    }
}

static void add_order_to_list(const struct order *order, void *context)
{
    cJSON_AddItemToArray(context, order_to_json(order));
}

static void get_effects(struct http *http, struct MHD_Connection *connection, struct reply *reply)
{
    const char *key = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "key");
    struct effects effects;
    cJSON *orders = cJSON_CreateArray();
    if (ledger_read_effects(http->ledger, key, &effects, add_order_to_list, orders) != LEDGER_OK) {
        cJSON_Delete(orders);
        reply_error(reply, MHD_HTTP_INTERNAL_SERVER_ERROR, "the ledger cannot be read");
        return;
    }
    cJSON *json = cJSON_CreateObject();
    if (key != NULL) {
        cJSON_AddStringToObject(json, "key", key);
    }
    cJSON_AddNumberToObject(json, "arrivals", (double) effects.arrivals);
    cJSON_AddNumberToObject(json, "executions", (double) effects.executions);
    if (key != NULL) {
        cJSON_AddItemToObject(json, "orders", orders);
    } else {
        cJSON_Delete(orders);
        cJSON_AddNumberToObject(json, "keys", (double) effects.keys);
        cJSON_AddNumberToObject(json, "executions_most", (double) effects.executions_most);
    }
    reply_json(reply, MHD_HTTP_OK, json);
}

static void answer(struct http *http, struct MHD_Connection *connection, const char *method, const char *path,
                   const struct request *request, struct reply *reply)
{
    static const char orders[] = "/orders/";
    if (strcmp(path, "/orders") == 0 && strcmp(method, "POST") == 0) {
        if (request->body.failed) {
            reply_error(reply, MHD_HTTP_CONTENT_TOO_LARGE, "the body is larger than 1 MiB");
        } else {
            post_order(http, connection, request, reply);
        }
    } else if (strcmp(path, "/orders") == 0) {
        reply_error(reply, MHD_HTTP_METHOD_NOT_ALLOWED, "orders are placed with POST");
    } else if (strcmp(method, "GET") == 0 && strncmp(path, orders, sizeof orders - 1) == 0) {
        get_order(http, view_of(path + sizeof orders - 1), reply);
    } else if (strcmp(method, "GET") == 0 && strcmp(path, "/effects") == 0) {
        get_effects(http, connection, reply);
    } else {
        reply_error(reply, MHD_HTTP_NOT_FOUND, "there are /orders, /orders/ID and /effects");
    }
}

/* MHD_NO closes the connection without a word: it is the answer of close-before, close-after and hang. */
static enum MHD_Result send_reply(struct MHD_Connection *connection, struct reply *reply)
{
    if (reply->status == 0 || reply->body == NULL) {
        cJSON_free(reply->body);
        return MHD_NO;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(reply->body), reply->body, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        cJSON_free(reply->body);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    if (reply->location[0] != '\0') {
        MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, reply->location);
    }
    enum MHD_Result queued = MHD_queue_response(connection, reply->status, response);
    MHD_destroy_response(response);
    return queued;
}

/* Called once for the head, then for each piece of the body, then once with nothing left. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data, size_t *data_len,
                                  void **slot)
{
    (void) version;
    struct http *http = context;
    struct request *request = *slot;
    if (request == NULL) {
        request = calloc(1, sizeof *request);
        if (request == NULL) {
            return MHD_NO;
        }
        buf_init(&request->body, BODY_BYTES_MAX);
        *slot = request;
        return MHD_YES;
    }
    if (*data_len != 0) {
        buf_append_bytes(&request->body, data, *data_len);
        *data_len = 0;
        return MHD_YES;
    }
    pthread_mutex_lock(&http->mutex);
    http->acting++;
    request->acting = true;
    pthread_mutex_unlock(&http->mutex);

    struct reply reply = { .status = 0 };
    answer(http, connection, method, path, request, &reply);
    return send_reply(connection, &reply);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **slot,
                         enum MHD_RequestTerminationCode code)
{
    (void) connection;
    (void) code;
    struct http *http = context;
    struct request *request = *slot;
    if (request == NULL) {
        return;
    }
    if (request->acting) {
        pthread_mutex_lock(&http->mutex);
        http->acting--;
        pthread_cond_signal(&http->idle);
        pthread_mutex_unlock(&http->mutex);
    }
    buf_fini(&request->body);
    free(request);
    *slot = NULL;
}

struct http *http_open(const struct options *options, struct ledger *ledger)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t) options->port) };
    if (inet_pton(AF_INET, options->host, &address.sin_addr) != 1) {
        fprintf(stderr, "order-handler: --listen wants a numeric IPv4 address, not \"%s\"\n", options->host);
        return NULL;
    }
    struct http *http = calloc(1, sizeof *http);
    if (http == NULL) {
        return NULL;
    }
    http->options = options;
    http->ledger = ledger;
    http->stop_fd = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&http->mutex, NULL);
    pthread_cond_init(&http->idle, NULL);
    http->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC, 0, NULL, NULL,
        on_request, http, MHD_OPTION_SOCK_ADDR, (struct sockaddr *) &address, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned) CONNECTIONS_MAX, MHD_OPTION_THREAD_STACK_SIZE, (size_t) THREAD_STACK_BYTES,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, http, MHD_OPTION_LISTENING_ADDRESS_REUSE, 1U, MHD_OPTION_END);
    if (http->stop_fd < 0 || http->daemon == NULL) {
        fprintf(stderr, "order-handler: cannot listen on %s:%u: %s\n", options->host, options->port, strerror(errno));
        http_close(http);
        return NULL;
    }
    return http;
}

unsigned http_port(const struct http *http)
{
    return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

/* Bounded, since a client that does not read its answer must not keep us alive. */
static void wait_until_idle(struct http *http)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += STOP_WAIT_S;
    pthread_mutex_lock(&http->mutex);
    while (http->acting != 0 && pthread_cond_timedwait(&http->idle, &http->mutex, &deadline) == 0) {
    }
    pthread_mutex_unlock(&http->mutex);
}

void http_close(struct http *http)
{
    if (http->daemon != NULL) {
        int listener = MHD_quiesce_daemon(http->daemon);
        uint64_t one = 1;
        if (write(http->stop_fd, &one, sizeof one) == (ssize_t) sizeof one) {
            wait_until_idle(http);
        }
        MHD_stop_daemon(http->daemon);
        if (listener >= 0) {
            close(listener);
        }
    }
    if (http->stop_fd >= 0) {
        close(http->stop_fd);
    }
    pthread_cond_destroy(&http->idle);
    pthread_mutex_destroy(&http->mutex);
    free(http);
}
