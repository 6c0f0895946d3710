/* connection_tls.c - connections to `https://`, made and secured by libcurl and driven by curl_multi_socket_action on our loop. The
 * only user of libcurl in the server. With CONNECT_ONLY it neither writes nor reads a byte of HTTP, so it cannot send a request
 * twice (docs/facts.md 1, 3, 4, 6c).
 *
 * libcurl must not be called from inside its own callbacks: they only note what it wants; owners are told after it returned. */
#include "server/base/memory.h"
#include "server/upstream/connection_ways.h"
#include "server/upstream/curl_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libcurl may close idle connections over this number; ours are never idle in its eyes, but it must not even try. */
enum { TLS_CACHE_MAX = 1 << 20 };

enum { TLS_RECEIVED_SHUTDOWN = 2 }; /* SSL_RECEIVED_SHUTDOWN of OpenSSL */

struct tls_connections {
    struct connections base;
    const struct curl_library *curl;
    CURLM *multi;
    struct loop_timer timer; /* libcurl's */
    char url[CONNECTIONS_PEER_MAX];
    char *ca_file; /* NULL: the system's */
};

struct tls_connection {
    struct connection base;
    CURL *easy; /* in the multi handle while the connection lives (docs/facts.md 6c) */
    char error[CURL_ERROR_SIZE];
};

/* A descriptor that libcurl wants watched while it connects. */
struct connecting_watch {
    struct tls_connections *connections;
    struct loop_watch *watch;
    curl_socket_t fd;
};

static struct tls_connections *tls_all_of(const struct connection *connection)
{
    return LIST_ITEM(connection->connections, struct tls_connections, base);
}

static struct tls_connection *tls_of(struct connection *connection)
{
    return LIST_ITEM(connection, struct tls_connection, base);
}

static void curl_must(bool ok, const char *what)
{
    if (!ok) {
        (void) fprintf(stderr, "nonbisd: libcurl could not %s; the process ends\n", what);
        abort();
    }
}

/* --- libcurl on the loop --- */

static void tls_settle_one(struct tls_connection *tls, CURLcode result)
{
    const struct curl_library *curl = tls_all_of(&tls->base)->curl;
    if (result == CURLE_OK) {
        curl_socket_t fd = CURL_SOCKET_BAD;
        (void) curl->easy_getinfo(tls->easy, CURLINFO_ACTIVESOCKET, &fd);
        /* The look that follows ties the connection to this handle; before its first read libcurl may close the connection when
         * another handle connects (docs/facts.md 36). */
        connection_is_made(&tls->base, fd);
        return;
    }
    long os_error = 0;
    (void) curl->easy_getinfo(tls->easy, CURLINFO_OS_ERRNO, &os_error);
    const char *reason = tls->error[0] != '\0' ? tls->error : curl->easy_strerror(result);
    if (result == CURLE_OPERATION_TIMEDOUT) {
        connection_is_late(&tls->base, reason);
    } else if (result == CURLE_COULDNT_CONNECT && os_error != 0) {
        connection_is_not_made(&tls->base, strerror((int) os_error));
    } else {
        connection_is_not_made(&tls->base, reason);
    }
}

/* Tells the owners of all connections that are made, or that failed. */
static void tls_settle(struct tls_connections *all)
{
    CURLMsg *message;
    int left;
    while ((message = all->curl->multi_info_read(all->multi, &left)) != NULL) {
        struct tls_connection *tls = NULL;
        CURLcode result = message->data.result; /* the message is gone once its handle is removed */
        (void) all->curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **) &tls);
        tls_settle_one(tls, result);
    }
}

static void tls_on_timer(void *context)
{
    struct tls_connections *all = context;
    int running;
    (void) all->curl->multi_socket_action(all->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    tls_settle(all);
}

static void tls_on_descriptor(void *context, int events)
{
    const struct connecting_watch *entry = context;
    struct tls_connections *all = entry->connections; /* the entry may be gone when libcurl returns */
    int flags =
        ((events & LOOP_READABLE) != 0 ? CURL_CSELECT_IN : 0) | ((events & LOOP_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0);
    int running;
    (void) all->curl->multi_socket_action(all->multi, entry->fd, flags, &running);
    tls_settle(all);
}

/* libcurl wants a descriptor watched (or no longer). It lets go of a connection's descriptor before it says that the connection
 * is made, so our own watch never meets this one. */
static int tls_on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *assigned)
{
    (void) easy;
    struct tls_connections *all = context;
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
        entry->connections = all;
        entry->fd = fd;
        entry->watch = loop_watch_new(all->base.loop, fd, tls_on_descriptor, entry);
        (void) all->curl->multi_assign(all->multi, fd, entry);
    }
    loop_watch_set(entry->watch, ((what & CURL_POLL_IN) != 0 ? LOOP_READABLE : 0) |
                                     ((what & CURL_POLL_OUT) != 0 ? LOOP_WRITABLE : 0));
    return 0;
}

static int tls_on_timeout(CURLM *multi, long timeout_ms, void *context)
{
    (void) multi;
    struct tls_connections *all = context;
    if (timeout_ms < 0) {
        loop_timer_stop(&all->timer);
    } else {
        loop_timer_start(&all->timer, timeout_ms);
    }
    return 0;
}

/* --- all connections --- */

static struct connections *tls_start(struct loop *loop, const struct upstream_target *target,
                                     const struct upstream_options *options, struct buf *error)
{
    const struct curl_library *curl = curl_library_load(options->curl_library, error);
    if (curl == NULL) {
        return NULL;
    }
    struct tls_connections *all = memory_new(sizeof *all);
    all->curl = curl;
    (void) snprintf(all->url, sizeof all->url, "https://%s:%u/", target->host, target->port);
    all->ca_file = options->ca_file != NULL ? memory_text(view_of(options->ca_file)) : NULL;
    loop_timer_init(&all->timer, loop, tls_on_timer, all);
    all->multi = curl->multi_init();
    curl_must(all->multi != NULL, "make a multi handle");
    (void) curl->multi_setopt(all->multi, CURLMOPT_SOCKETFUNCTION, tls_on_socket);
    (void) curl->multi_setopt(all->multi, CURLMOPT_SOCKETDATA, all);
    (void) curl->multi_setopt(all->multi, CURLMOPT_TIMERFUNCTION, tls_on_timeout);
    (void) curl->multi_setopt(all->multi, CURLMOPT_TIMERDATA, all);
    (void) curl->multi_setopt(all->multi, CURLMOPT_MAXCONNECTS, (long) TLS_CACHE_MAX);
    return &all->base;
}

static void tls_end(struct connections *connections)
{
    struct tls_connections *all = LIST_ITEM(connections, struct tls_connections, base);
    (void) all->curl->multi_cleanup(all->multi);
    loop_timer_stop(&all->timer);
    free(all->ca_file);
    free(all);
}

/* --- one connection --- */

static struct connection *tls_make(struct connections *connections)
{
    (void) connections;
    struct tls_connection *tls = memory_new(sizeof *tls);
    return &tls->base;
}

static void tls_configure(struct tls_connection *tls)
{
    const struct tls_connections *all = tls_all_of(&tls->base);
    const struct curl_library *curl = all->curl;
    CURL *easy = tls->easy;
    bool ok = curl->easy_setopt(easy, CURLOPT_URL, all->url) == CURLE_OK;
    ok = ok && curl->easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L) == CURLE_OK;
    ok = ok && curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https") == CURLE_OK;
    /* Without these two, ALPN picks HTTP/2 and proxy variables of the environment are obeyed (docs/facts.md 33). */
    ok = ok && curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1) == CURLE_OK;
    ok = ok && curl->easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK;
    ok = ok && curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
    ok = ok && curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long) all->base.connect_timeout_ms) == CURLE_OK;
    ok = ok && curl->easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK;
    /* Else giving up a name that is still being looked up would block the loop until the resolver's thread returns. */
    ok = ok && curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK;
    ok = ok && curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, tls->error) == CURLE_OK;
    ok = ok && curl->easy_setopt(easy, CURLOPT_PRIVATE, (char *) tls) == CURLE_OK;
    if (all->ca_file != NULL) {
        ok = ok && curl->easy_setopt(easy, CURLOPT_CAINFO, all->ca_file) == CURLE_OK;
    }
    /* Else the system's directory is trusted besides the file, and every TLS connection reads all certificates again, which
     * stops the loop for up to 90 ms (docs/facts.md 60). */
    if (all->ca_file != NULL || curl->version_info(CURLVERSION_NOW)->cainfo != NULL) {
        ok = ok && curl->easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK;
    }
    curl_must(ok, "take the options of a connection");
}

static void tls_begin(struct connection *connection)
{
    struct tls_connection *tls = tls_of(connection);
    const struct tls_connections *all = tls_all_of(connection);
    tls->easy = all->curl->easy_init();
    curl_must(tls->easy != NULL, "make a handle");
    tls_configure(tls);
    curl_must(all->curl->multi_add_handle(all->multi, tls->easy) == CURLM_OK, "add a handle");
}

static void tls_close(struct connection *connection)
{
    struct tls_connection *tls = tls_of(connection);
    const struct tls_connections *all = tls_all_of(connection);
    /* Removing the handle closes a CONNECT_ONLY connection at once. */
    (void) all->curl->multi_remove_handle(all->multi, tls->easy);
    all->curl->easy_cleanup(tls->easy);
    free(tls);
}

static enum connection_io tls_send(struct connection *connection, const char *bytes, size_t len, size_t *sent)
{
    *sent = 0;
    CURLcode result = tls_all_of(connection)->curl->easy_send(tls_of(connection)->easy, bytes, len, sent);
    if (result == CURLE_OK) {
        return *sent > 0 ? CONNECTION_DONE : CONNECTION_AGAIN;
    }
    return result == CURLE_AGAIN ? CONNECTION_AGAIN : CONNECTION_FAILED;
}

/* libcurl tells an end of TCP like the end of TLS; then anybody between could end a body that only the end ends (docs/facts.md 72). */
static bool tls_was_ended(struct connection *connection)
{
    const struct curl_library *curl = tls_all_of(connection)->curl;
    struct curl_tlssessioninfo *session = NULL;
    if (curl->ssl_get_shutdown == NULL ||
        curl->easy_getinfo(tls_of(connection)->easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == NULL ||
        session->backend != CURLSSLBACKEND_OPENSSL || session->internals == NULL) {
        return true; /* nobody can tell */
    }
    return (curl->ssl_get_shutdown(session->internals) & TLS_RECEIVED_SHUTDOWN) != 0;
}

static enum connection_io tls_receive(struct connection *connection, char *bytes, size_t len, size_t *received)
{
    *received = 0;
    CURLcode result = tls_all_of(connection)->curl->easy_recv(tls_of(connection)->easy, bytes, len, received);
    if (result == CURLE_OK) {
        if (*received == 0 && !tls_was_ended(connection)) {
            (void) snprintf(tls_of(connection)->error, CURL_ERROR_SIZE, "the end of TCP came before that of TLS");
            return CONNECTION_FAILED;
        }
        return *received > 0 ? CONNECTION_DONE : CONNECTION_CLOSED;
    }
    return result == CURLE_AGAIN ? CONNECTION_AGAIN : CONNECTION_FAILED;
}

static const char *tls_error(struct connection *connection)
{
    const struct tls_connection *tls = tls_of(connection);
    long os_error = 0;
    (void) tls_all_of(connection)->curl->easy_getinfo(tls->easy, CURLINFO_OS_ERRNO, &os_error);
    if (os_error != 0) {
        return strerror((int) os_error);
    }
    return tls->error[0] != '\0' ? tls->error : "the connection broke";
}

const struct connection_way connection_way_tls = {
    .start = tls_start,
    .end = tls_end,
    .make = tls_make,
    .begin = tls_begin,
    .close = tls_close,
    .send = tls_send,
    .receive = tls_receive,
    .error = tls_error,
};
