/* fields.c - which fields go on, are stored, are replayed: lists as data, and one walk per direction.
 * Owns nothing. Any thread. */
#include "server/http/fields.h"

#include "schema/wire.h"

#define NAME(literal)                                                                                                  \
    {                                                                                                                  \
        (literal), sizeof(literal) - 1                                                                                 \
    }
#define NAMES(list) (list), sizeof(list) / sizeof((list)[0])

/* Of one connection only (RFC 9110 section 7.6.1), beside those that Connection names; and framing, which every
 * leg writes anew. */
static const struct view hop_by_hop[] = {
    NAME("Connection"),
    NAME("Content-Length"),
    NAME("Transfer-Encoding"),
    NAME("Keep-Alive"),
    NAME("TE"),
    NAME("Trailer"),
    NAME("Upgrade"),
    NAME("Proxy-Connection"),
    NAME("Proxy-Authenticate"),
    NAME("Proxy-Authorization"),
};

/* Not to the handler: Expect was answered here; Via is written again with our part behind it. */
static const struct view not_to_handler[] = { NAME("Expect"), NAME("Via"), NAME("X-Forwarded-For"),
                                              NAME("X-Forwarded-Proto"), NAME("X-Forwarded-Host") };
static const struct view not_to_handler_prefixes[] = { NAME(WIRE_OWN_PREFIX) };

/* Not from the handler (section 10). */
static const struct view not_to_client[] = { NAME(WIRE_STATUS), NAME(WIRE_REPLAYED), NAME(WIRE_EXPIRES) };
static const struct view not_to_client_prefixes[] = { NAME(WIRE_OWN_PREFIX) };

/* True of one answer at one time, or meant for one receiver (section 10). */
static const struct view not_replayed[] = { NAME("Date"),        NAME("Age"),
                                            NAME("Set-Cookie"),  NAME("WWW-Authenticate"),
                                            NAME("Retry-After"), NAME("Server-Timing") };
static const struct view not_replayed_prefixes[] = { NAME("Proxy-"), NAME("RateLimit") };

static bool is_listed(struct view name, const struct view *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (header_name_is(name, list[i])) {
            return true;
        }
    }
    return false;
}

static bool has_listed_prefix(struct view name, const struct view *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (view_starts_with_nocase(name, list[i])) {
            return true;
        }
    }
    return false;
}

/* Whether a Connection value names fields at all: most say only what becomes of the connection. */
static bool connection_names_some(struct view value)
{
    struct view item;
    while (view_next_item(&value, ',', &item)) {
        if (!header_name_is(item, VIEW("keep-alive")) && !header_name_is(item, VIEW("close"))) {
            return true;
        }
    }
    return false;
}

/* Whether a comma separated list holds this name, in any case. */
static bool list_names(struct view list, struct view name)
{
    struct view item;
    while (view_next_item(&list, ',', &item)) {
        if (header_name_is(item, name)) {
            return true;
        }
    }
    return false;
}

/* ---- to the handler ---- */

static bool span_connection_names_some(struct header_span request)
{
    for (size_t i = 0; i < request.count; i++) {
        if (header_name_is(request.items[i].name, VIEW("Connection")) &&
            connection_names_some(request.items[i].value)) {
            return true;
        }
    }
    return false;
}

static bool span_connection_names(struct header_span request, struct view name)
{
    for (size_t i = 0; i < request.count; i++) {
        if (header_name_is(request.items[i].name, VIEW("Connection")) && list_names(request.items[i].value, name)) {
            return true;
        }
    }
    return false;
}

/* One Via field: all that was received, in order, and ours behind it (RFC 9110 section 7.6.3). */
static void write_via(struct header_span request, struct view via_name, struct buf *out)
{
    buf_append(out, VIEW("Via: "));
    for (size_t i = 0; i < request.count; i++) {
        if (header_name_is(request.items[i].name, VIEW("Via")) && request.items[i].value.len > 0) {
            buf_append(out, request.items[i].value);
            buf_append(out, VIEW(", "));
        }
    }
    buf_append(out, VIEW("1.1 "));
    buf_append(out, via_name);
    buf_append(out, VIEW("\r\n"));
}

static void add_if_known(struct buf *out, struct view name, struct view value)
{
    if (value.len > 0) {
        field_block_add(out, name, value);
    }
}

void fields_to_handler(struct header_span request, const struct fields_added *added, struct buf *out)
{
    bool some_named = span_connection_names_some(request);
    for (size_t i = 0; i < request.count; i++) {
        struct view name = request.items[i].name;
        bool dropped = is_listed(name, NAMES(hop_by_hop)) || is_listed(name, NAMES(not_to_handler)) ||
                       has_listed_prefix(name, NAMES(not_to_handler_prefixes)) ||
                       (some_named && span_connection_names(request, name));
        if (!dropped) {
            field_block_add(out, name, request.items[i].value);
        }
    }
    write_via(request, added->via_name, out);
    add_if_known(out, VIEW("X-Forwarded-For"), added->client_addr);
    add_if_known(out, VIEW("X-Forwarded-Proto"), added->proto);
    add_if_known(out, VIEW("X-Forwarded-Host"), added->host);
    if (added->command_id.len > 0) {
        field_block_add(out, VIEW(WIRE_COMMAND_ID), added->command_id);
        buf_append(out, VIEW(WIRE_EXECUTION ": "));
        buf_append_uint(out, added->execution);
        buf_append(out, VIEW("\r\n"));
    }
}

/* received-by of one element "1.1 name (comment)"; empty when there is none. */
static struct view via_received_by(struct view element)
{
    size_t from = 0;
    while (from < element.len && element.ptr[from] != ' ' && element.ptr[from] != '\t') {
        from++;
    }
    struct view rest = view_trim(view_make(element.ptr + from, element.len - from));
    size_t len = 0;
    while (len < rest.len && rest.ptr[len] != ' ' && rest.ptr[len] != '\t' && rest.ptr[len] != '(') {
        len++;
    }
    return view_make(rest.ptr, len);
}

bool fields_has_loop(struct header_span request, struct view via_name)
{
    for (size_t i = 0; i < request.count; i++) {
        if (!header_name_is(request.items[i].name, VIEW("Via"))) {
            continue;
        }
        struct view rest = request.items[i].value, element;
        while (view_next_item(&rest, ',', &element)) {
            if (view_equal_nocase(via_received_by(element), via_name)) {
                return true;
            }
        }
    }
    return false;
}

/* ---- from the handler ---- */

static bool block_connection_names_some(struct view block)
{
    struct header field;
    while (field_block_next(&block, &field)) {
        if (header_name_is(field.name, VIEW("Connection")) && connection_names_some(field.value)) {
            return true;
        }
    }
    return false;
}

static bool block_connection_names(struct view block, struct view name)
{
    struct header field;
    while (field_block_next(&block, &field)) {
        if (header_name_is(field.name, VIEW("Connection")) && list_names(field.value, name)) {
            return true;
        }
    }
    return false;
}

/* End-to-end fields, in order. `for_replay`: without what is true of the first answer only, and without `drop`. */
static void write_response_fields(struct view block, bool for_replay, struct view drop, struct buf *out)
{
    bool some_named = block_connection_names_some(block);
    struct view rest = block;
    struct header field;
    while (field_block_next(&rest, &field)) {
        bool dropped = field.value.len == 0 || is_listed(field.name, NAMES(hop_by_hop)) ||
                       is_listed(field.name, NAMES(not_to_client)) ||
                       has_listed_prefix(field.name, NAMES(not_to_client_prefixes)) ||
                       (some_named && block_connection_names(block, field.name));
        if (for_replay && !dropped) {
            dropped = is_listed(field.name, NAMES(not_replayed)) ||
                      has_listed_prefix(field.name, NAMES(not_replayed_prefixes)) || list_names(drop, field.name);
        }
        if (!dropped) {
            field_block_add(out, field.name, field.value);
        }
    }
}

void fields_to_client(struct view response_block, struct buf *out)
{
    write_response_fields(response_block, false, VIEW(""), out);
}

void fields_to_keep(struct view response_block, struct view drop, struct buf *out)
{
    write_response_fields(response_block, true, drop, out);
}

static enum fields_word word_of(struct view text)
{
    if (view_equal_nocase(text, VIEW("completed"))) {
        return FIELDS_WORD_COMPLETED;
    }
    if (view_equal_nocase(text, VIEW("not-executed"))) {
        return FIELDS_WORD_NOT_EXECUTED;
    }
    return view_equal_nocase(text, VIEW("unknown")) ? FIELDS_WORD_UNKNOWN : FIELDS_WORD_NONE;
}

enum fields_word fields_handler_word(struct view response_block)
{
    enum fields_word said = FIELDS_WORD_NONE;
    struct header field;
    while (field_block_next(&response_block, &field)) {
        if (!header_name_is(field.name, VIEW(WIRE_OUTCOME))) {
            continue;
        }
        struct view item;
        while (view_next_item(&field.value, ',', &item)) {
            enum fields_word word = word_of(item);
            if (word != FIELDS_WORD_NONE && said != FIELDS_WORD_NONE && word != said) {
                return FIELDS_WORD_UNKNOWN;
            }
            said = word == FIELDS_WORD_NONE ? said : word;
        }
    }
    return said;
}
