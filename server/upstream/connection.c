/* connection.c - see connection.h. The only user of libcurl in the server: names, TCP, TLS and Unix sockets are its work, driven
 * by curl_multi_socket_action on our loop. With CONNECT_ONLY it neither writes nor reads a byte of HTTP, so it cannot send a
 * request twice (docs/facts.md 1, 3, 4, 6c).
 *
 * libcurl must not be called from inside its own callbacks: they only note what it wants; owners are told after it returned. */
#include "server/upstream/connection.h"

#include "server/base/memory.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PEER_TEXT_MAX = 300,
    /* libcurl may close idle connections over this number; ours are never idle in its eyes, but it must not even try. */
    CONNECTIONS_CACHE_MAX = 1 << 20,
};

struct connections {
    struct loop *loop;
    CURLM *multi;
    struct loop_timer timer; /* libcurl's */
    bool secured;
    long connect_timeout_ms;
    char url[PEER_TEXT_MAX], peer[PEER_TEXT_MAX];
    char *unix_path; /* NULL: TCP */
    char *ca_file;   /* NULL: the system's */
};

/* A descriptor that libcurl wants watched while it connects. */
struct connecting_watch {
    struct connections *connections;
    struct loop_watch *watch;
    curl_socket_t fd;
};

static void curl_must(bool ok, const char *what)
{
    if (!ok) {
        (void) fprintf(stderr, "nonbisd: libcurl could not %s; the process ends\n", what);
        abort();
    }
}

/* --- libcurl on the loop --- */

static void connection_on_ready(void *context, int events)
{
    struct connection *connection = context;
    connection->owner->ready(connection->context, events);
}

static void connection_settle(struct connection *connection, CURLcode result)
{
    if (result == CURLE_OK && connection->watch == NULL) {
        curl_socket_t fd = CURL_SOCKET_BAD;
        (void) curl_easy_getinfo(connection->easy, CURLINFO_ACTIVESOCKET, &fd);
        /* The first read ties the connection to this handle; before it libcurl may close the connection when another handle
         * connects (docs/facts.md 36). Nothing was asked yet, so there is nothing to read. */
        if (fd != CURL_SOCKET_BAD && connection_look(connection) == CONNECTION_AGAIN) {
            connection->watch = loop_watch_new(connection->connections->loop, fd, connection_on_ready, connection);
            connection->owner->opened(connection->context);
            return;
        }
        connection->owner->failed(connection->context,
                                  "connected, but closed or spoken to before the request was sent");
        return;
    }
    long os_error = 0;
    (void) curl_easy_getinfo(connection->easy, CURLINFO_OS_ERRNO, &os_error);
    const char *reason = connection->error[0] != '\0' ? connection->error : curl_easy_strerror(result);
    char timed_out[CURL_ERROR_SIZE + 60];
    if (result == CURLE_COULDNT_CONNECT && os_error != 0) {
        reason = strerror((int) os_error);
    } else if (result == CURLE_OPERATION_TIMEDOUT) {
        (void) snprintf(timed_out, sizeof timed_out, "not made within connect_timeout (%ld ms): %s",
                        connection->connections->connect_timeout_ms, reason);
        reason = timed_out;
    }
    connection->owner->failed(connection->context, reason);
}

/* Tells the owners of all connections that are made, or that failed. */
static void connections_settle(struct connections *connections)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(connections->multi, &left)) != NULL) {
        struct connection *connection = NULL;
        CURLcode result = message->data.result; /* the message is gone once its handle is removed */
        (void) curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **) &connection);
        connection_settle(connection, result);
    }
}

static void connections_on_timer(void *context)
{
    struct connections *connections = context;
    int running;
    (void) curl_multi_socket_action(connections->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    connections_settle(connections);
}

static void connections_on_descriptor(void *context, int events)
{
    const struct connecting_watch *entry = context;
    struct connections *connections = entry->connections; /* the entry may be gone when libcurl returns */
    int flags =
        ((events & LOOP_READABLE) != 0 ? CURL_CSELECT_IN : 0) | ((events & LOOP_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0);
    int running;
    (void) curl_multi_socket_action(connections->multi, entry->fd, flags, &running);
    connections_settle(connections);
}

/* libcurl wants a descriptor watched (or no longer). It lets go of a connection's descriptor before it says that the connection
 * is made, so our own watch never meets this one. */
static int connections_on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *assigned)
{
    (void) easy;
    struct connections *connections = context;
    struct connecting_watch *entry = assigned;
    if (what == CURL_POLL_REMOVE) {
        if (entry != NULL) {
            loop_watch_close(entry->watch);
            free(entry);
        }
        return 0;
    }
    if (entry == NULL) {
        entry = memory_new(sizeof *entry);
        entry->connections = connections;
        entry->fd = fd;
        entry->watch = loop_watch_new(connections->loop, fd, connections_on_descriptor, entry);
        (void) curl_multi_assign(connections->multi, fd, entry);
    }
    loop_watch_set(entry->watch, ((what & CURL_POLL_IN) != 0 ? LOOP_READABLE : 0) |
                                     ((what & CURL_POLL_OUT) != 0 ? LOOP_WRITABLE : 0));
    return 0;
}

static int connections_on_timeout(CURLM *multi, long timeout_ms, void *context)
{
    (void) multi;
    struct connections *connections = context;
    if (timeout_ms < 0) {
        loop_timer_stop(&connections->timer);
    } else {
        loop_timer_start(&connections->timer, timeout_ms);
    }
    return 0;
}

/* --- all connections --- */

static void connections_prepare_library(void)
{
    curl_must(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "start");
}

struct connections *connections_new(struct loop *loop, const struct upstream_target *target,
                                    const struct upstream_options *options)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, connections_prepare_library);
    struct connections *connections = memory_new(sizeof *connections);
    connections->loop = loop;
    connections->connect_timeout_ms = (long) options->connect_timeout_ms;
    connections->secured = strcmp(target->scheme, "https") == 0;
    if (strcmp(target->scheme, "unix") == 0) {
        connections->unix_path = memory_text(view_of(target->host));
        (void) snprintf(connections->url, sizeof connections->url, "http://localhost/");
        (void) snprintf(connections->peer, sizeof connections->peer, "unix:%s", target->host);
    } else {
        (void) snprintf(connections->url, sizeof connections->url, "%s://%s:%u/", target->scheme, target->host,
                        target->port);
        (void) snprintf(connections->peer, sizeof connections->peer, "%s:%u", target->host, target->port);
    }
    connections->ca_file = options->ca_file != NULL ? memory_text(view_of(options->ca_file)) : NULL;
    loop_timer_init(&connections->timer, loop, connections_on_timer, connections);
    connections->multi = curl_multi_init();
    curl_must(connections->multi != NULL, "make a multi handle");
    curl_multi_setopt(connections->multi, CURLMOPT_SOCKETFUNCTION, connections_on_socket);
    curl_multi_setopt(connections->multi, CURLMOPT_SOCKETDATA, connections);
    curl_multi_setopt(connections->multi, CURLMOPT_TIMERFUNCTION, connections_on_timeout);
    curl_multi_setopt(connections->multi, CURLMOPT_TIMERDATA, connections);
    curl_multi_setopt(connections->multi, CURLMOPT_MAXCONNECTS, (long) CONNECTIONS_CACHE_MAX);
    return connections;
}

void connections_free(struct connections *connections)
{
    (void) curl_multi_cleanup(connections->multi);
    loop_timer_stop(&connections->timer);
    free(connections->unix_path);
    free(connections->ca_file);
    free(connections);
}

const char *connections_peer(const struct connections *connections)
{
    return connections->peer;
}

bool connections_secured(const struct connections *connections)
{
    return connections->secured;
}

/* --- one connection --- */

static void connection_configure(struct connection *connection)
{
    const struct connections *connections = connection->connections;
    CURL *easy = connection->easy;
    bool ok = curl_easy_setopt(easy, CURLOPT_URL, connections->url) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
    /* Without these two, ALPN picks HTTP/2 and proxy variables of the environment are obeyed (docs/facts.md 33). */
    ok = ok && curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, connections->connect_timeout_ms) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK;
    /* Else giving up a name that is still being looked up would block the loop until the resolver's thread returns. */
    ok = ok && curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, connection->error) == CURLE_OK;
    ok = ok && curl_easy_setopt(easy, CURLOPT_PRIVATE, (char *) connection) == CURLE_OK;
    if (connections->unix_path != NULL) {
        ok = ok && curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, connections->unix_path) == CURLE_OK;
    }
    if (connections->ca_file != NULL) {
        ok = ok && curl_easy_setopt(easy, CURLOPT_CAINFO, connections->ca_file) == CURLE_OK;
    }
    /* Else the system's directory is trusted besides the file, and every TLS connection reads all certificates again, which
     * stops the loop for up to 90 ms (docs/facts.md 60). */
    if (connections->ca_file != NULL || curl_version_info(CURLVERSION_NOW)->cainfo != NULL) {
        ok = ok && curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK;
    }
    curl_must(ok, "take the options of a connection");
}

struct connection *connection_open(struct connections *connections, enum upstream_lane lane,
                                   const struct connection_owner *owner, void *context)
{
    struct connection *connection = memory_new(sizeof *connection);
    connection->connections = connections;
    connection->lane = lane;
    connection->owner = owner;
    connection->context = context;
    connection->error = memory_new(CURL_ERROR_SIZE);
    connection->easy = curl_easy_init();
    curl_must(connection->easy != NULL, "make a handle");
    connection_configure(connection);
    curl_must(curl_multi_add_handle(connections->multi, connection->easy) == CURLM_OK, "add a handle");
    return connection;
}

void connection_own(struct connection *connection, const struct connection_owner *owner, void *context)
{
    connection->owner = owner;
    connection->context = context;
}

void connection_close(struct connection *connection)
{
    if (connection->watch != NULL) {
        loop_watch_close(connection->watch);
    }
    /* Removing the handle closes a CONNECT_ONLY connection at once. */
    (void) curl_multi_remove_handle(connection->connections->multi, connection->easy);
    curl_easy_cleanup(connection->easy);
    free(connection->error);
    free(connection);
}

void connection_want(struct connection *connection, int events)
{
    loop_watch_set(connection->watch, events);
}

enum connection_io connection_send(struct connection *connection, const char *bytes, size_t len, size_t *sent)
{
    *sent = 0;
    CURLcode result = curl_easy_send(connection->easy, bytes, len, sent);
    if (result == CURLE_OK) {
        return *sent > 0 ? CONNECTION_DONE : CONNECTION_AGAIN;
    }
    return result == CURLE_AGAIN ? CONNECTION_AGAIN : CONNECTION_FAILED;
}

enum connection_io connection_receive(struct connection *connection, char *bytes, size_t len, size_t *received)
{
    *received = 0;
    CURLcode result = curl_easy_recv(connection->easy, bytes, len, received);
    if (result == CURLE_OK) {
        return *received > 0 ? CONNECTION_DONE : CONNECTION_CLOSED;
    }
    return result == CURLE_AGAIN ? CONNECTION_AGAIN : CONNECTION_FAILED;
}

enum connection_io connection_look(struct connection *connection)
{
    char byte;
    size_t received;
    return connection_receive(connection, &byte, 1, &received);
}

const char *connection_error(struct connection *connection)
{
    long os_error = 0;
    (void) curl_easy_getinfo(connection->easy, CURLINFO_OS_ERRNO, &os_error);
    if (os_error != 0) {
        return strerror((int) os_error);
    }
    return connection->error[0] != '\0' ? connection->error : "the connection broke";
}
