/* curl_library.h - libcurl, loaded when a handler is to be reached by https and not before: it brings two dozen other libraries, and
 * a server whose handler is a neighbour needs none of them. Private to server/upstream. */
#ifndef NONBIS_SERVER_UPSTREAM_CURL_LIBRARY_H
#define NONBIS_SERVER_UPSTREAM_CURL_LIBRARY_H

#include "common/buf.h"

#include <curl/curl.h>

/* The functions that are used, by their names without "curl_". */
struct curl_library {
    __typeof__(curl_global_init) *global_init;
    __typeof__(curl_version_info) *version_info;
    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_setopt) *easy_setopt;
    __typeof__(curl_easy_getinfo) *easy_getinfo;
    __typeof__(curl_easy_strerror) *easy_strerror;
    __typeof__(curl_easy_send) *easy_send;
    __typeof__(curl_easy_recv) *easy_recv;
    __typeof__(curl_easy_cleanup) *easy_cleanup;
    __typeof__(curl_multi_init) *multi_init;
    __typeof__(curl_multi_setopt) *multi_setopt;
    __typeof__(curl_multi_assign) *multi_assign;
    __typeof__(curl_multi_add_handle) *multi_add_handle;
    __typeof__(curl_multi_remove_handle) *multi_remove_handle;
    __typeof__(curl_multi_socket_action) *multi_socket_action;
    __typeof__(curl_multi_info_read) *multi_info_read;
    __typeof__(curl_multi_cleanup) *multi_cleanup;
    int (*ssl_get_shutdown)(
        const void *ssl); /* of the OpenSSL that it brings (docs/facts.md 72); NULL: it has another TLS */
};

/* Loads it once for the process, and starts it. `name`: a file, or what the system's loader finds by this name; NULL: "libcurl.so.4".
 * NULL, and a sentence that says what to do, when it is not there or cannot be used. At start: one thread at a time. */
const struct curl_library *curl_library_load(const char *name, struct buf *error);

#endif
