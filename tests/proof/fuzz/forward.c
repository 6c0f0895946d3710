/* forward.c - fuzzes server/http/fields.c (to the handler) and request_writer.c, behind the guard. The input is a request head as fuzz_head.h
 * says.
 *
 * What the guard takes is written for the handler as one request head that a strict reader finds to be one, and no more: the request line as it
 * was, every field that is meant for the handler byte for byte and in its order, none that speaks of this connection or for nonbis or a
 * proxy, and one framing. */
#include "schema/wire.h"
#include "server/http/fields.h"
#include "server/http/request_writer.h"

#include "tests/proof/fuzz/fuzz.h"
#include "tests/proof/fuzz/fuzz_head.h"

static bool is(struct view a, const char *b)
{
    return view_equal_nocase(a, view_of(b));
}

static bool is_any(struct view name, const char *const *names)
{
    while (*names != NULL && !is(name, *names)) {
        names++;
    }
    return *names != NULL;
}

static bool is_named_by_connection(const struct guard_head *head, struct view name)
{
    for (size_t i = 0; i < head->headers.count; i++) {
        struct view rest = head->headers.items[i].value, item;
        while (is(head->headers.items[i].name, "Connection") && view_next_item(&rest, ',', &item)) {
            if (view_equal_nocase(item, name)) {
                return true;
            }
        }
    }
    return false;
}

/* What the handler must see of what the client sent. */
static bool is_passed_on(const struct guard_head *head, struct view name)
{
    static const char *const kept_back[] = { "Connection",
                                             "Content-Length",
                                             "Transfer-Encoding",
                                             "Keep-Alive",
                                             "TE",
                                             "Trailer",
                                             "Upgrade",
                                             "Proxy-Connection",
                                             "Proxy-Authenticate",
                                             "Expect",
                                             "X-Forwarded-For",
                                             "X-Forwarded-Proto",
                                             "Via",
                                             "X-Forwarded-Host",
                                             "Proxy-Authorization",
                                             NULL };
    bool own = name.len >= 7 && is(view_make(name.ptr, 7), "Nonbis-");
    return !own && !is_any(name, kept_back) && !is_named_by_connection(head, name);
}

/* The next line, which ends with CR LF and holds neither alone. */
static struct view strict_line(struct view *rest)
{
    struct view line = fuzz_line(rest);
    MUST(line.len > 0 && line.ptr[line.len - 1] == '\r');
    line.len--;
    MUST(line.len == 0 || (memchr(line.ptr, '\r', line.len) == NULL && memchr(line.ptr, '\0', line.len) == NULL));
    return line;
}

static bool next_field(struct view *rest, struct header *field)
{
    struct view line = strict_line(rest);
    if (line.len == 0) {
        return false;
    }
    const char *colon = memchr(line.ptr, ':', line.len);
    MUST(colon != NULL);
    field->name = view_make(line.ptr, (size_t) (colon - line.ptr));
    field->value = view_trim(view_make(colon + 1, line.len - field->name.len - 1));
    MUST(header_is_token(field->name) && header_value_is_clean(field->value));
    return true;
}

static void must_be_next(struct view *rest, const char *name, struct view value)
{
    struct header field;
    MUST(next_field(rest, &field) && is(field.name, name) && view_equal(field.value, value));
}

static void head_must_hold(struct view written, const struct guard_head *head, const struct guard_verdict *verdict)
{
    struct buf line;
    struct header field;
    buf_init(&line, 3 * 4096);
    buf_append(&line, head->method);
    buf_append_text(&line, " ");
    buf_append(&line, verdict->target.origin);
    buf_append_text(&line, " HTTP/1.1");
    MUST(view_equal(strict_line(&written), buf_view(&line)));
    buf_fini(&line);
    for (size_t i = 0; i < head->headers.count; i++) {
        if (is_passed_on(head, head->headers.items[i].name)) {
            MUST(next_field(&written, &field) && view_equal(field.name, head->headers.items[i].name));
            MUST(view_equal(field.value, head->headers.items[i].value));
        }
    }
    MUST(next_field(&written, &field) && is(field.name, "Via"));
    MUST(field.value.len >= 7 && is(view_make(field.value.ptr + field.value.len - 7, 7), "1.1 own"));
    must_be_next(&written, "X-Forwarded-For", VIEW("192.0.2.1"));
    must_be_next(&written, "X-Forwarded-Proto", VIEW("http"));
    must_be_next(&written, "X-Forwarded-Host", verdict->host);
    must_be_next(&written, WIRE_COMMAND_ID, VIEW("0123456789abcdef0123456789abcdef"));
    must_be_next(&written, WIRE_EXECUTION, VIEW("2"));
    if (verdict->body == GUARD_BODY_LENGTH) {
        uint64_t length = 0;
        MUST(next_field(&written, &field) && is(field.name, "Content-Length"));
        MUST(view_to_uint64(field.value, &length) && length == verdict->length);
    } else if (verdict->body == GUARD_BODY_CHUNKED) {
        must_be_next(&written, "Transfer-Encoding", VIEW("chunked"));
    }
    MUST(!next_field(&written, &field) && written.len == 0);
}

FUZZ_TARGET(forward)
{
    static const enum request_framing framings[] = { [GUARD_BODY_NONE] = REQUEST_NO_BODY,
                                                     [GUARD_BODY_LENGTH] = REQUEST_LENGTH,
                                                     [GUARD_BODY_CHUNKED] = REQUEST_CHUNKED };
    char *text = fuzz_text(input);
    struct guard_head head = { .header_bytes_max = 8192 };
    fuzz_head_cut(&head, text, input.len);
    struct guard_verdict verdict = guard_check(&head);
    if (verdict.status == 0) {
        struct fields_added added = { .via_name = VIEW("own"),
                                      .client_addr = VIEW("192.0.2.1"),
                                      .proto = VIEW("http"),
                                      .host = verdict.host,
                                      .command_id = VIEW("0123456789abcdef0123456789abcdef"),
                                      .execution = 2 };
        struct buf fields, written;
        buf_init(&fields, 64 * 1024);
        buf_init(&written, 64 * 1024);
        fields_to_handler(head.headers, &added, &fields);
        MUST(request_write_head(&written, head.method, verdict.target.origin, buf_view(&fields), framings[verdict.body],
                                verdict.length));
        MUST(!fields.failed && !written.failed);
        head_must_hold(buf_view(&written), &head, &verdict);
        buf_fini(&fields);
        buf_fini(&written);
    }
    free(text);
    return verdict.status == 0;
}
