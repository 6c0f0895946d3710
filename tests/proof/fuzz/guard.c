/* guard.c - fuzzes server/http/guard.c. The input is a request head as fuzz_head.h says.
 *
 * What is taken is exactly what the rules below allow, which are check 1 of docs/contract.md section 4 in other words; and the case of names,
 * the order of fields, and a harmless field more change nothing. */
#include "tests/proof/fuzz/fuzz.h"
#include "tests/proof/fuzz/fuzz_head.h"

enum { HEADER_BYTES_MAX = 2000 };

static const struct header read_items[] = { { { "X-Tenant", 8 }, { NULL, 0 } }, { { "X-API-Key", 9 }, { NULL, 0 } } };
static const struct header_span read_fields = { read_items, 2 };

static bool is(struct view a, const char *b)
{
    return view_equal_nocase(a, view_of(b));
}

static size_t count_of(struct header_span fields, const char *name, struct view *first)
{
    size_t count = 0;
    for (size_t i = fields.count; i-- > 0;) {
        if (is(fields.items[i].name, name)) {
            *first = fields.items[i].value;
            count++;
        }
    }
    return count;
}

/* --- the rules, once more ------------------------------------------------------------------------------------------------------------- */

static bool only(struct view text, const char *punctuation)
{
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.ptr[i];
        bool plain =
            (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '-';
        if (!plain && (byte == '\0' || strchr(punctuation, byte) == NULL)) {
            return false;
        }
    }
    return text.len > 0;
}

#define TOKEN "!#$%&'*+.^_`|~"

static bool line_is_good(const struct guard_head *head)
{
    for (size_t i = 0; i < head->method.len; i++) {
        if (head->method.ptr[i] >= 'a' && head->method.ptr[i] <= 'z') {
            return false;
        }
    }
    return only(head->method, TOKEN) && !is(head->method, "CONNECT") && !is(head->method, "TRACE") &&
           head->version.len == 8 && memcmp(head->version.ptr, "HTTP/1.", 7) == 0 && head->version.ptr[7] >= '0' &&
           head->version.ptr[7] <= '9' && head->target.len <= 4096;
}

static bool names_a_read_field(struct view list)
{
    static const char *const names[] = { "Host",
                                         "Content-Length",
                                         "Transfer-Encoding",
                                         "Content-Type",
                                         "Content-Encoding",
                                         "Authorization",
                                         "Idempotency-Key",
                                         "Via",
                                         "Expect",
                                         "Prefer",
                                         "X-Tenant",
                                         "X-API-Key" };
    struct view item;
    while (view_next_item(&list, ',', &item)) {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            if (is(item, names[i])) {
                return true;
            }
        }
        if (item.len >= 7 && is(view_make(item.ptr, 7), "Nonbis-")) {
            return true;
        }
    }
    return false;
}

static bool field_is_good(const struct header *field)
{
    for (size_t i = 0; i < field->value.len; i++) {
        unsigned char byte = (unsigned char) field->value.ptr[i];
        if (byte == 0x7F || (byte < 0x20 && byte != '\t')) {
            return false;
        }
    }
    bool like_key = field->name.len > 15 && is(view_make(field->name.ptr, 15), "Idempotency-Key");
    return only(field->name, TOKEN) && !like_key && (!is(field->name, "Expect") || is(field->value, "100-continue")) &&
           (!is(field->name, "Connection") || !names_a_read_field(field->value));
}

static bool is_number(struct view text)
{
    uint64_t number;
    return view_to_uint64(text, &number);
}

static bool framing_is_good(const struct guard_head *head)
{
    static const char *const once[] = { "Content-Type", "Content-Encoding", "Authorization", "Content-Length",
                                        "Transfer-Encoding" };
    struct view value = { NULL, 0 };
    for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++) {
        if (count_of(head->headers, once[i], &value) > 1) {
            return false;
        }
    }
    size_t lengths = count_of(head->headers, "Content-Length", &value);
    if (lengths > 0 && !is_number(value)) {
        return false;
    }
    size_t codings = count_of(head->headers, "Transfer-Encoding", &value);
    return lengths + codings <= 1 && (codings == 0 || (is(value, "chunked") && head->version.ptr[7] != '0'));
}

static bool target_is_good(const struct guard_head *head)
{
    struct view host = { NULL, 0 };
    struct target target;
    return count_of(head->headers, "Host", &host) == 1 && only(host, "._~!$&'()*+;=%:[]") &&
           target_split(head->target, host, &target) == TARGET_OK; /* that one is fuzzed in target.c */
}

static bool is_good(const struct guard_head *head)
{
    size_t bytes = head->target.len;
    bool good = line_is_good(head) && head->headers.count <= 100;
    for (size_t i = 0; i < head->headers.count && good; i++) {
        good = field_is_good(&head->headers.items[i]);
        bytes += head->headers.items[i].name.len + head->headers.items[i].value.len + 4;
    }
    return good && bytes <= head->header_bytes_max && framing_is_good(head) && target_is_good(head);
}

/* --- the properties ------------------------------------------------------------------------------------------------------------------- */

static void verdict_must_hold(const struct guard_head *head, const struct guard_verdict *verdict)
{
    struct view value = { NULL, 0 };
    uint64_t length = 0;
    size_t lengths = count_of(head->headers, "Content-Length", &value);
    if (lengths > 0) {
        MUST(verdict->body == GUARD_BODY_LENGTH && view_to_uint64(value, &length) && length == verdict->length);
    } else {
        bool coded = count_of(head->headers, "Transfer-Encoding", &value) > 0;
        MUST(verdict->body == (coded ? GUARD_BODY_CHUNKED : GUARD_BODY_NONE));
    }
    MUST(count_of(head->headers, "Host", &value) == 1 && view_equal(verdict->host, value));
    MUST(verdict->expect_continue == (count_of(head->headers, "Expect", &value) > 0 && head->version.ptr[7] != '0'));
}

static void must_be_judged(const struct guard_head *head, const struct guard_verdict *expected)
{
    struct guard_verdict verdict = guard_check(head);
    MUST((verdict.status == 0) == (expected->status == 0) && verdict.body == expected->body);
    MUST(verdict.length == expected->length && verdict.expect_continue == expected->expect_continue);
}

/* Names in the other case, fields in the other order: the same verdict, as far as it is good. */
static void turned_must_hold(const struct guard_head *head, const struct guard_verdict *verdict)
{
    static struct header items[FUZZ_FIELDS_MAX];
    struct buf names;
    buf_init(&names, 64 * 1024);
    MUST(buf_reserve(&names, HEADER_BYTES_MAX) !=
         NULL); /* so that it does not move: good names are no longer together */
    for (size_t i = 0; i < head->headers.count; i++) {
        const struct header *field = &head->headers.items[head->headers.count - 1 - i];
        char *name = names.ptr + names.len;
        for (size_t j = 0; j < field->name.len; j++) {
            char byte = field->name.ptr[j];
            bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
            name[j] = (char) (letter ? byte ^ 0x20 : byte);
        }
        names.len += field->name.len;
        items[i] = (struct header){ view_make(name, field->name.len), field->value };
    }
    struct guard_head turned = *head;
    turned.headers.items = items;
    must_be_judged(&turned, verdict);
    if (head->headers.count < 100) {
        items[head->headers.count] = (struct header){ VIEW("X-Harmless"), VIEW("a, chunked") };
        turned.headers.count++;
        turned.header_bytes_max += 100;
        must_be_judged(&turned, verdict);
    }
    buf_fini(&names);
}

FUZZ_TARGET(guard)
{
    char *text = fuzz_text(input);
    struct guard_head head = { .read_fields = &read_fields, .header_bytes_max = HEADER_BYTES_MAX };
    fuzz_head_cut(&head, text, input.len);
    struct guard_verdict verdict = guard_check(&head);
    bool good = verdict.status == 0;
    MUST(good ? verdict.detail == NULL : verdict.detail != NULL && verdict.detail[0] != '\0');
    MUST(good || verdict.status == 400 || verdict.status == 414 || verdict.status == 431 || verdict.status == 501 ||
         verdict.status == 505);
    MUST(good == is_good(&head));
    if (good) {
        verdict_must_hold(&head, &verdict);
        turned_must_hold(&head, &verdict);
    }
    free(text);
    return good;
}
