/* url.c - what --upstream means: scheme, host and port, or the path of a Unix socket. Connects nothing. Any thread. */
#include "server/upstream/upstream.h"

#include <stdio.h>
#include <string.h>

enum {
    PORT_HTTP = 80,
    PORT_HTTPS = 443,
    PORT_LAST = 65535,
    UNIX_PATH_MAX_BYTES = 107, /* sun_path holds 108 with its NUL */
};

static bool url_refuse(struct buf *error, const char *url, const char *why)
{
    buf_printf(error, "\"%s\": %s", url, why);
    return false;
}

/* Letters, digits and "-._": what names and IPv4 addresses are made of. In brackets: an IPv6 address. */
static bool url_host_is_clean(struct view host)
{
    bool bracketed = host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']';
    const char *allowed =
        bracketed ? "0123456789abcdefABCDEF:." : "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    size_t from = bracketed ? 1 : 0;
    size_t until = bracketed ? host.len - 1 : host.len;
    for (size_t i = from; i < until; i++) {
        if (host.ptr[i] == '\0' || strchr(allowed, host.ptr[i]) == NULL) {
            return false;
        }
    }
    return until > from;
}

/* Where the host ends and ":port" begins; an IPv6 address has colons of its own. */
static size_t url_host_length(struct view authority)
{
    const char *bracket = memchr(authority.ptr, ']', authority.len);
    size_t at = bracket != NULL ? (size_t) (bracket - authority.ptr) : 0;
    while (at < authority.len && authority.ptr[at] != ':') {
        at++;
    }
    return at;
}

static bool url_parse_authority(const char *url, struct view authority, struct upstream_target *target,
                                struct buf *error)
{
    if (authority.len == 0) {
        return url_refuse(error, url, "there is no host in it");
    }
    struct view host = { authority.ptr, url_host_length(authority) };
    if (!url_host_is_clean(host)) {
        return url_refuse(error, url, "the host is not a name or an address (IPv6: in brackets)");
    }
    if (host.len >= sizeof target->host) {
        return url_refuse(error, url, "the host is too long (over 255 bytes)");
    }
    memcpy(target->host, host.ptr, host.len);
    target->host[host.len] = '\0';
    if (host.len == authority.len) {
        return true;
    }
    uint64_t port = 0;
    struct view digits = { authority.ptr + host.len + 1, authority.len - host.len - 1 };
    if (digits.len > 5 || !view_to_uint64(digits, &port) || port == 0 || port > PORT_LAST) {
        return url_refuse(error, url, "the port is not a number from 1 to 65535");
    }
    target->port = (unsigned) port;
    return true;
}

static bool url_parse_unix(const char *url, struct view path, struct upstream_target *target, struct buf *error)
{
    if (path.len == 0 || path.ptr[0] != '/') {
        return url_refuse(error, url, "unix: wants the absolute path of a socket, as in unix:/run/app.sock");
    }
    if (path.len > UNIX_PATH_MAX_BYTES) {
        return url_refuse(error, url, "the path of the socket is too long (over 107 bytes)");
    }
    memcpy(target->scheme, "unix", sizeof "unix");
    memcpy(target->host, path.ptr, path.len);
    target->host[path.len] = '\0';
    target->port = 0;
    return true;
}

/* A URL with other parts would promise something that is not done: the client's own target is forwarded as it is. */
static const char *url_part_too_much(struct view authority, struct view rest)
{
    if (memchr(authority.ptr, '@', authority.len) != NULL) {
        return "user names and passwords do not belong into it (the client's own credentials are forwarded)";
    }
    if (memchr(rest.ptr, '#', rest.len) != NULL) {
        return "a fragment does not belong into it";
    }
    if (memchr(rest.ptr, '?', rest.len) != NULL) {
        return "a query does not belong into it";
    }
    if (rest.len > 1 || (rest.len == 1 && rest.ptr[0] != '/')) {
        return "a path does not belong into it (the client's own path is forwarded)";
    }
    return NULL;
}

bool upstream_parse_url(const char *url, struct upstream_target *target, struct buf *error)
{
    memset(target, 0, sizeof *target);
    struct view text = view_of(url);
    if (text.len == 0) {
        buf_append_text(error, "the URL is empty; it looks like http://127.0.0.1:3000 or unix:/run/app.sock");
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char) text.ptr[i] <= ' ' || text.ptr[i] == 0x7F) {
            return url_refuse(error, url, "blanks and control bytes do not belong into it");
        }
    }
    if (view_starts_with_nocase(text, VIEW("unix:"))) {
        return url_parse_unix(url, view_make(text.ptr + 5, text.len - 5), target, error);
    }
    bool tls = view_starts_with_nocase(text, VIEW("https://"));
    if (!tls && !view_starts_with_nocase(text, VIEW("http://"))) {
        const char *why = strstr(url, "://") != NULL
                              ? "only http://, https:// and unix: are spoken"
                              : "the scheme is missing; it looks like http://127.0.0.1:3000 or unix:/run/app.sock";
        return url_refuse(error, url, why);
    }
    (void) snprintf(target->scheme, sizeof target->scheme, "%s", tls ? "https" : "http");
    target->port = tls ? PORT_HTTPS : PORT_HTTP;
    size_t from = tls ? sizeof "https://" - 1 : sizeof "http://" - 1;
    size_t length = strcspn(url + from, "/?#");
    struct view authority = { url + from, length };
    struct view rest = { url + from + length, text.len - from - length };
    const char *too_much = url_part_too_much(authority, rest);
    if (too_much != NULL) {
        return url_refuse(error, url, too_much);
    }
    return url_parse_authority(url, authority, target, error);
}
