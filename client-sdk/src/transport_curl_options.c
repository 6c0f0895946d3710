/* transport_curl_options.c - what libcurl is told about a call, and above all what it is told to leave. See transport_curl.h.
 *
 * Every call starts from libcurl's defaults, so that nothing of an earlier one can stay. What is written to the wire is the
 * request as it was given, plus Host, Content-Length and User-Agent (docs/facts.md 4). */
#include "client-sdk/src/transport_curl.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TCP_KEEP_ALIVE_S = 15 };

/* Sticky: the first refusal stays. */
struct options {
    CURL *easy;
    CURLcode code;
};

static void options_note(struct options *options, CURLcode code)
{
    if (options->code == CURLE_OK) {
        options->code = code;
    }
}

static void set_long(struct options *options, CURLoption option, long value)
{
    options_note(options, curl_easy_setopt(options->easy, option, value));
}

static void set_text(struct options *options, CURLoption option, const char *value)
{
    options_note(options, curl_easy_setopt(options->easy, option, value));
}

/* ---- the connection ----------------------------------------------------------------------------------------------- */

static void set_protocol(struct options *options)
{
    set_long(options, CURLOPT_NOSIGNAL, 1);
    set_long(options, CURLOPT_HTTP_VERSION,
             CURL_HTTP_VERSION_1_1); /* HTTP/2 sends refused streams again; ALPN too (33) */
    set_long(options, CURLOPT_HTTP09_ALLOWED, 0);
    set_long(options, CURLOPT_FOLLOWLOCATION, 0); /* each hop would be one more sending */
    set_long(options, CURLOPT_NETRC, CURL_NETRC_IGNORED);
    set_long(options, CURLOPT_PATH_AS_IS, 1); /* the target is part of what a key stands for (contract 3) */
#if LIBCURL_VERSION_NUM >= 0x075500
    set_text(options, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    set_long(options, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    set_long(options, CURLOPT_QUICK_EXIT, 1); /* do not wait for a resolver that hangs (55) */
#endif
}

static void set_connection(struct options *options, const struct http_call *call)
{
    const struct transport_request *request = call->request;
    const char *const *texts = call->texts;
    set_long(options, CURLOPT_TIMEOUT_MS, request->timeout_ms < INT_MAX ? (long) request->timeout_ms : INT_MAX);
    set_long(options, CURLOPT_CONNECTTIMEOUT_MS,
             request->connect_timeout_ms < INT_MAX ? (long) request->connect_timeout_ms : INT_MAX);
    set_long(options, CURLOPT_FRESH_CONNECT, call->fresh ? 1 : 0);
    if (request->fresh) {
        set_long(options, CURLOPT_DNS_CACHE_TIMEOUT, 0); /* the server may have moved */
    }
    set_long(options, CURLOPT_TCP_KEEPALIVE, 1); /* a long answer outlives what stands between */
    set_long(options, CURLOPT_TCP_KEEPIDLE, TCP_KEEP_ALIVE_S);
    set_long(options, CURLOPT_TCP_KEEPINTVL, TCP_KEEP_ALIVE_S);
    set_text(options, CURLOPT_UNIX_SOCKET_PATH, texts[NONBIS_CLIENT_UNIX_SOCKET]);
    set_text(options, CURLOPT_PROXY, texts[NONBIS_CLIENT_PROXY] != NULL ? texts[NONBIS_CLIENT_PROXY] : "");
    set_text(options, CURLOPT_NOPROXY, ""); /* else the environment's */
    set_long(options, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1);
    set_long(options, CURLOPT_HEADEROPT, CURLHEADER_SEPARATE); /* the proxy gets none of the fields */
}

static void set_tls(struct options *options, const struct http_call *call)
{
    const char *const *texts = call->texts;
    set_long(options, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
    if (texts[NONBIS_CLIENT_CA_FILE] != NULL) {
        set_text(options, CURLOPT_CAINFO, texts[NONBIS_CLIENT_CA_FILE]); /* instead of the system's, not besides them */
    }
    /* Reading the system's certificates takes up to 90 ms and nobody can cancel it. libcurl keeps what it read, but not when
     * there is a directory of them as well, which holds the same (docs/facts.md 60). */
    if (texts[NONBIS_CLIENT_CA_FILE] != NULL || curl_version_info(CURLVERSION_NOW)->cainfo != NULL) {
        set_text(options, CURLOPT_CAPATH, NULL);
    }
    if (texts[NONBIS_CLIENT_CERT_FILE] != NULL) {
        set_text(options, CURLOPT_SSLCERT, texts[NONBIS_CLIENT_CERT_FILE]);
    }
    if (texts[NONBIS_CLIENT_KEY_FILE] != NULL) {
        set_text(options, CURLOPT_SSLKEY, texts[NONBIS_CLIENT_KEY_FILE]);
    }
}

/* ---- the request -------------------------------------------------------------------------------------------------- */

static bool fields_add(struct curl_slist **fields, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*fields, line);
    if (longer == NULL) {
        return false;
    }
    *fields = longer;
    return true;
}

/* A field without a value is written "Name;" for libcurl; "Name:", also with blanks behind it, takes away one of its own. */
static bool fields_add_one(struct curl_slist **fields, const struct transport_field *field)
{
    char few[512];
    size_t size = strlen(field->name) + strlen(field->value) + sizeof(": ");
    char *line = size <= sizeof(few) ? few : malloc(size);
    if (line == NULL) {
        return false;
    }
    bool empty = view_trim(view_of(field->value)).len == 0;
    (void) snprintf(line, size, empty ? "%s;" : "%s: %s", field->name, field->value);
    bool added = fields_add(fields, line);
    if (line != few) {
        free(line);
    }
    return added;
}

static bool request_lists(const struct transport_request *request, const char *name)
{
    for (size_t i = 0; i < request->field_count; i++) {
        if (view_equal_nocase(view_of(request->fields[i].name), view_of(name))) {
            return true;
        }
    }
    return false;
}

static void set_fields(struct options *options, struct http_call *call)
{
    static const char *const unasked[] = { "Accept", "Content-Type", "Expect" };
    bool ok = true;
    for (size_t i = 0; i < call->request->field_count && ok; i++) {
        ok = fields_add_one(&call->fields, &call->request->fields[i]);
    }
    for (size_t i = 0; i < sizeof(unasked) / sizeof(unasked[0]) && ok; i++) {
        char line[20];
        (void) snprintf(line, sizeof(line), "%s:", unasked[i]);
        ok = request_lists(call->request, unasked[i]) || fields_add(&call->fields, line);
    }
    options_note(options, ok ? CURLE_OK : CURLE_OUT_OF_MEMORY);
    options_note(options, curl_easy_setopt(options->easy, CURLOPT_HTTPHEADER, call->fields));
    const char *agent = call->texts[NONBIS_CLIENT_USER_AGENT];
    set_text(options, CURLOPT_USERAGENT, agent != NULL ? agent : "libnonbis/" NONBIS_VERSION);
}

static void set_request(struct options *options, const struct http_call *call)
{
    const struct transport_request *request = call->request;
    set_text(options, CURLOPT_URL, request->url);
    if (request->has_body) {
        set_long(options, CURLOPT_POST, 1);
        /* Not copied: it is the caller's for the length of the call. */
        set_text(options, CURLOPT_POSTFIELDS, request->body_len > 0 ? request->body : "");
        options_note(options,
                     curl_easy_setopt(options->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) request->body_len));
    } else if (strcmp(request->method, "HEAD") == 0) {
        set_long(options, CURLOPT_NOBODY, 1);
        return;
    } else {
        set_long(options, CURLOPT_HTTPGET, 1);
    }
    if (strcmp(request->method, request->has_body ? "POST" : "GET") != 0) {
        set_text(options, CURLOPT_CUSTOMREQUEST, request->method);
    }
}

CURLcode http_options_set(struct http_call *call)
{
    struct options options = { .easy = call->session->easy, .code = CURLE_OK };
    curl_easy_reset(options.easy); /* connections, names and TLS sessions stay */
    set_protocol(&options);
    set_connection(&options, call);
    set_tls(&options, call);
    set_fields(&options, call);
    set_request(&options, call);
    return options.code;
}
