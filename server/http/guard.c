/* guard.c - check 1 of docs/contract.md section 4 over one request head.
 *
 * The HTTP library lets framing attacks through (docs/facts.md 7 and 8); this is where they stop, before a body byte is
 * read. Two parsers on one connection must never see two different requests: whatever could be read in two
 * ways is refused, not repaired. Owns nothing. Any thread. */
#include "server/http/guard.h"

#include "schema/limits.h"
#include "schema/wire.h"

/* Fields that may come once at most; Host must come. */
enum single { SINGLE_HOST, SINGLE_LENGTH, SINGLE_CODING, SINGLE_TYPE, SINGLE_ENCODING, SINGLE_AUTHORIZATION, SINGLES };

static const struct {
    struct view name;
    const char *repeated;
} singles[SINGLES] = {
    [SINGLE_HOST] = { { "Host", 4 }, "there is more than one Host field" },
    [SINGLE_LENGTH] = { { "Content-Length", 14 }, "there is more than one Content-Length field" },
    [SINGLE_CODING] = { { "Transfer-Encoding", 17 }, "there is more than one Transfer-Encoding field" },
    [SINGLE_TYPE] = { { "Content-Type", 12 }, "there is more than one Content-Type field" },
    [SINGLE_ENCODING] = { { "Content-Encoding", 16 }, "there is more than one Content-Encoding field" },
    [SINGLE_AUTHORIZATION] = { { "Authorization", 13 }, "there is more than one Authorization field" },
};

/* Beside the singles, what nonbis reads and Connection may therefore not take away. */
static const struct view read_by_nonbis[] = {
    { WIRE_IDEMPOTENCY_KEY, sizeof(WIRE_IDEMPOTENCY_KEY) - 1 },
    { "Via", 3 },
    { "Expect", 6 },
    { "Prefer", 6 },
};

/* What the walk over the fields found. */
struct findings {
    size_t counts[SINGLES];
    struct view values[SINGLES];
    size_t connections; /* Connection fields */
    bool expect_continue;
};

struct fault {
    int status; /* 0: none */
    const char *detail;
};

static const struct fault no_fault = { 0, NULL };

static struct fault fault(int status, const char *detail)
{
    return (struct fault){ status, detail };
}

static struct fault check_request_line(const struct guard_head *head)
{
    if (head->version.len != 8 || !view_starts_with(head->version, VIEW("HTTP/1.")) || head->version.ptr[7] < '0' ||
        head->version.ptr[7] > '9') {
        return fault(505, "the protocol version is not HTTP/1.x");
    }
    bool capitals = header_is_token(head->method);
    for (size_t i = 0; i < head->method.len && capitals; i++) {
        capitals = head->method.ptr[i] < 'a' || head->method.ptr[i] > 'z';
    }
    if (!capitals) {
        return fault(501, "the method is not a token in capital letters");
    }
    if (view_equal(head->method, VIEW("CONNECT")) || view_equal(head->method, VIEW("TRACE"))) {
        return fault(501, "the methods CONNECT and TRACE are not supported");
    }
    if (head->target.len > LIMIT_TARGET_BYTES) {
        return fault(414, "the request target is longer than 4096 bytes");
    }
    return no_fault;
}

static_assert(LIMIT_TARGET_BYTES == 4096 && LIMIT_FIELD_COUNT == 100, "the sentences of the guard name these limits");

static struct fault check_size(const struct guard_head *head)
{
    if (head->headers.count > LIMIT_FIELD_COUNT) {
        return fault(431, "there are more than 100 header fields");
    }
    size_t bytes = head->target.len;
    for (size_t i = 0; i < head->headers.count; i++) {
        bytes += head->headers.items[i].name.len + head->headers.items[i].value.len + 4;
    }
    if (bytes > head->header_bytes_max) {
        return fault(431, "target and header fields together are longer than request_header_max");
    }
    return no_fault;
}

static struct fault check_field(const struct header *field, struct findings *found)
{
    if (!header_is_token(field->name)) {
        return fault(400, "the name of a header field is not a token");
    }
    if (!header_value_is_clean(field->value)) {
        return fault(400, "a header field holds a control byte");
    }
    /* The library glues a folded line to the field's name, and so would lose the key (docs/facts.md 8). */
    if (field->name.len > sizeof(WIRE_IDEMPOTENCY_KEY) - 1 &&
        view_starts_with_nocase(field->name, VIEW(WIRE_IDEMPOTENCY_KEY))) {
        return fault(400, "the name of a header field begins with Idempotency-Key and is longer: a folded line?");
    }
    for (int i = 0; i < SINGLES; i++) {
        if (header_name_is(field->name, singles[i].name)) {
            found->values[i] = field->value;
            return found->counts[i]++ > 0 ? fault(400, singles[i].repeated) : no_fault;
        }
    }
    if (header_name_is(field->name, VIEW("Connection"))) {
        found->connections++;
    } else if (header_name_is(field->name, VIEW("Expect"))) {
        if (!view_equal_nocase(field->value, VIEW("100-continue"))) {
            return fault(400, "the Expect field is not 100-continue");
        }
        found->expect_continue = true;
    }
    return no_fault;
}

static bool is_read(const struct guard_head *head, struct view name)
{
    if (view_starts_with_nocase(name, VIEW(WIRE_OWN_PREFIX))) {
        return true;
    }
    for (int i = 0; i < SINGLES; i++) {
        if (header_name_is(name, singles[i].name)) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(read_by_nonbis) / sizeof(read_by_nonbis[0]); i++) {
        if (header_name_is(name, read_by_nonbis[i])) {
            return true;
        }
    }
    for (size_t i = 0; head->read_fields != NULL && i < head->read_fields->count; i++) {
        if (header_name_is(name, head->read_fields->items[i].name)) {
            return true;
        }
    }
    return false;
}

/* A named field would be dropped on the way to the handler, after it had been believed here. */
static struct fault check_connection(const struct guard_head *head)
{
    for (size_t i = 0; i < head->headers.count; i++) {
        if (!header_name_is(head->headers.items[i].name, VIEW("Connection"))) {
            continue;
        }
        struct view rest = head->headers.items[i].value, name;
        while (view_next_item(&rest, ',', &name)) {
            if (is_read(head, name)) {
                return fault(400, "the Connection field names a field that is read here");
            }
        }
    }
    return no_fault;
}

static struct fault check_framing(const struct guard_head *head, const struct findings *found,
                                  struct guard_verdict *verdict)
{
    bool has_length = found->counts[SINGLE_LENGTH] > 0;
    if (found->counts[SINGLE_CODING] > 0) {
        if (has_length) {
            return fault(400, "there are both Content-Length and Transfer-Encoding");
        }
        if (view_equal(head->version, VIEW("HTTP/1.0"))) {
            return fault(400, "HTTP/1.0 has no Transfer-Encoding");
        }
        if (!view_equal_nocase(found->values[SINGLE_CODING], VIEW("chunked"))) {
            return fault(501, "the transfer coding is not chunked alone");
        }
        verdict->body = GUARD_BODY_CHUNKED;
    } else if (has_length) {
        if (!view_to_uint64(found->values[SINGLE_LENGTH], &verdict->length)) {
            return fault(400, "the Content-Length field is not a number in decimal digits");
        }
        verdict->body = GUARD_BODY_LENGTH;
    }
    return no_fault;
}

/* RFC 3986 section 3.2 without user information: what may name a host, with a port. */
static bool is_host(struct view text)
{
    static const char allowed[] = "-._~!$&'()*+;=%:[]";
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.ptr[i];
        bool good = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        for (size_t j = 0; !good && j < sizeof(allowed) - 1; j++) {
            good = byte == allowed[j];
        }
        if (!good) {
            return false;
        }
    }
    return text.len > 0;
}

static struct fault check_target(const struct guard_head *head, const struct findings *found,
                                 struct guard_verdict *verdict)
{
    if (found->counts[SINGLE_HOST] == 0) {
        return fault(400, "there is no Host field");
    }
    verdict->host = found->values[SINGLE_HOST];
    if (!is_host(verdict->host)) {
        return fault(400, "the Host field does not name a host");
    }
    switch (target_split(head->target, verdict->host, &verdict->target)) {
    case TARGET_OK:
        return no_fault;
    case TARGET_OTHER_AUTHORITY:
        return fault(400, "the authority of the request target is not the one of the Host field");
    case TARGET_MALFORMED:
    case TARGET_RESULT_COUNT:
        break;
    }
    return fault(400, "the request target is malformed");
}

static struct fault check_all(const struct guard_head *head, struct guard_verdict *verdict)
{
    struct findings found = { .connections = 0 };
    struct fault seen = check_request_line(head);
    if (seen.status == 0) {
        seen = check_size(head);
    }
    for (size_t i = 0; i < head->headers.count && seen.status == 0; i++) {
        seen = check_field(&head->headers.items[i], &found);
    }
    if (seen.status == 0 && found.connections > 0) {
        seen = check_connection(head);
    }
    if (seen.status == 0) {
        seen = check_framing(head, &found, verdict);
    }
    if (seen.status == 0) {
        seen = check_target(head, &found, verdict);
    }
    /* HTTP/1.0 knows no 100: the expectation is to be ignored there (RFC 9110 section 10.1.1). */
    verdict->expect_continue = found.expect_continue && !view_equal(head->version, VIEW("HTTP/1.0"));
    return seen;
}

struct guard_verdict guard_check(const struct guard_head *head)
{
    struct guard_verdict verdict = { .body = GUARD_BODY_NONE };
    struct fault seen = check_all(head, &verdict);
    verdict.status = seen.status;
    verdict.detail = seen.detail;
    return verdict;
}
