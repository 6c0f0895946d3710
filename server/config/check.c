/* check.c - the form of single texts, and what must hold between settings. Whether an address can be listened on or a handler
 * reached is not asked here. No state; any thread. */
#include "server/config/values.h"
#include "server/http/headers.h"

#include <string.h>

/* --------------------------------------------------------------------------------------------- single texts */

static bool port_is_good(struct view text)
{
    uint64_t port = 0;
    return text.len <= 5 && view_to_uint64(text, &port) && port <= 65535;
}

/* Behind the last colon a port, before it something; a colon in that only between brackets. */
static bool address_is_good(struct view text)
{
    size_t colon = text.len;
    while (colon > 0 && text.ptr[colon - 1] != ':') {
        colon--;
    }
    if (colon <= 1 || !port_is_good(view_make(text.ptr + colon, text.len - colon))) {
        return false;
    }
    struct view host = view_make(text.ptr, colon - 1);
    bool bracketed = host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']';
    return bracketed || memchr(host.ptr, ':', host.len) == NULL;
}

#define ADDRESS_FORM "ADDRESS:PORT or [IPV6]:PORT with a port from 0 to 65535"

bool check_listen(struct view text, struct buf *error)
{
    bool good = address_is_good(text);
    buf_append_text(error, good ? "" : "expected " ADDRESS_FORM);
    return good;
}

bool check_admin(struct view text, struct buf *error)
{
    bool good = view_equal(text, VIEW("off")) || address_is_good(text);
    buf_append_text(error, good ? "" : "expected off, or " ADDRESS_FORM);
    return good;
}

bool check_upstream(struct view text, struct buf *error)
{
    static const char *const starts[] = { "http://", "https://", "unix:/" };
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        if (view_starts_with(text, view_of(starts[i])) && text.len > strlen(starts[i])) {
            return true;
        }
    }
    buf_append_text(error, "expected http://HOST[:PORT], https://HOST[:PORT] or unix:/PATH");
    return false;
}

bool check_tenant(struct view text, struct buf *error)
{
    struct view prefix = VIEW("header:");
    if (view_equal(text, VIEW("none"))) {
        return true;
    }
    if (view_starts_with(text, prefix)) {
        struct view name = view_make(text.ptr + prefix.len, text.len - prefix.len);
        /* A key that is its own tenant, or a name that every request carries, would separate nobody from anybody. */
        bool own = view_equal_nocase(name, VIEW("Idempotency-Key")) || view_equal_nocase(name, VIEW("Host"));
        if (header_is_token(name) && !own) {
            return true;
        }
        buf_append_text(error, "expected header:NAME with the name of a field that an authenticating front proxy sets");
        return false;
    }
    buf_append_text(error, "expected none or header:NAME");
    return false;
}

bool check_problem_prefix(struct view text, struct buf *error)
{
    bool clean = text.len <= 200;
    for (size_t i = 0; clean && i < text.len; i++) {
        clean = text.ptr[i] > 0x20 && text.ptr[i] < 0x7F && strchr("\"\\<>^`{|}", text.ptr[i]) == NULL;
    }
    if (!clean) {
        buf_append_text(error, "expected the start of a URI, at most 200 bytes (RFC 3986 section 2)");
    }
    return clean;
}

/* --------------------------------------------------------------------------------------------- relations */

struct relation {
    const char *smaller, *larger, *why;
};

static const struct relation relations[] = {
    { "answer_timeout", "hard_timeout", "a caller must be answered before the execution is given up" },
    { "ttl", "tombstone_ttl", "a key must be remembered for as long as its answer is replayed" },
};

static int64_t number_of(const struct settings *settings, const struct setting_row *row)
{
    int64_t number = 0;
    memcpy(&number, (const char *) settings + row->offset, sizeof(number));
    return number;
}

static void setting_tell(const struct settings *settings, const struct setting_row *row, struct buf *out)
{
    buf_printf(out, "%s (", row->name);
    value_write(settings, row, out);
    buf_append_text(out, ", ");
    source_write(settings, row, out);
    buf_append_text(out, ")");
}

bool check_relations(const struct settings *settings, const bool bad[SETTING_ROWS_MAX], struct buf *errors)
{
    bool good = true;
    for (size_t i = 0; i < sizeof(relations) / sizeof(relations[0]); i++) {
        const struct setting_row *smaller = setting_find(view_of(relations[i].smaller));
        const struct setting_row *larger = setting_find(view_of(relations[i].larger));
        if (bad[smaller - setting_table] || bad[larger - setting_table] ||
            number_of(settings, smaller) <= number_of(settings, larger)) {
            continue;
        }
        setting_tell(settings, smaller, errors);
        buf_append_text(errors, ": expected at most ");
        setting_tell(settings, larger, errors);
        buf_printf(errors, ": %s\n", relations[i].why);
        good = false;
    }
    /* The guard would then see a difference that the tenant already is (docs/contract.md section 3). */
    const struct setting_row *guard = setting_find(VIEW("guard"));
    for (size_t i = 0; i < settings->guard.count; i++) {
        if (settings->tenant_field.len > 0 && view_equal_nocase(settings->guard.items[i], settings->tenant_field)) {
            setting_tell(settings, guard, errors);
            buf_append_text(errors, ": expected a list without the field that names the ");
            setting_tell(settings, setting_find(VIEW("tenant")), errors);
            buf_append_text(errors, "\n");
            good = false;
        }
    }
    return good;
}
