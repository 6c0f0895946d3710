/* guard_test.c - server/http/guard.c: check 1 of contract section 4. The hostile rows are those that the HTTP library was
 * seen to let through (docs/facts.md 7 and 8), as they look when they reach the guard. */
#include "server/http/guard.h"
#include "tests/support/suite.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

enum { FIELDS_MAX = 120 };

static const struct header read_items[] = { { { "X-Tenant", 8 }, { NULL, 0 } }, { { "X-API-Key", 9 }, { NULL, 0 } } };
static const struct header_span read_fields = { read_items, 2 };

/* Fields are written "Name=value" and end with NULL; "=" may stand in values. */
static struct guard_verdict check(const char *method, const char *target, const char *version,
                                  const char *const *fields)
{
    static struct header items[FIELDS_MAX];
    size_t count = 0;
    for (; fields[count] != NULL; count++) {
        const char *mark = strchr(fields[count], '=');
        items[count].name = view_make(fields[count], (size_t) (mark - fields[count]));
        items[count].value = view_of(mark + 1);
    }
    struct guard_head head = { .method = view_of(method),
                               .target = view_of(target),
                               .version = view_of(version),
                               .headers = { items, count },
                               .read_fields = &read_fields,
                               .header_bytes_max = 8192 };
    return guard_check(&head);
}

static const struct {
    const char *method, *target, *version;
    const char *fields[8];
    enum guard_body body;
    uint64_t length;
    bool expect_continue;
    const char *origin;
} clean[] = {
    { "POST", "/a", "HTTP/1.1", { "Host=h", "Content-Length=3" }, GUARD_BODY_LENGTH, 3, false, "/a" },
    { "POST", "/a", "HTTP/1.1", { "Host=h", "content-length=0" }, GUARD_BODY_LENGTH, 0, false, "/a" },
    { "POST",
      "/a",
      "HTTP/1.0",
      { "Host=h", "Content-Length=18446744073709551615" },
      GUARD_BODY_LENGTH,
      UINT64_MAX,
      false,
      "/a" },
    { "POST", "/a", "HTTP/1.1", { "Host=h", "Transfer-Encoding=chunked" }, GUARD_BODY_CHUNKED, 0, false, "/a" },
    { "POST", "/a", "HTTP/1.1", { "Host=h", "transfer-encoding=CHUNKED" }, GUARD_BODY_CHUNKED, 0, false, "/a" },
    { "POST", "/a", "HTTP/1.1", { "Host=h" }, GUARD_BODY_NONE, 0, false, "/a" }, /* 411 is the route's word */
    { "GET", "/a?b=c", "HTTP/1.1", { "Host=h" }, GUARD_BODY_NONE, 0, false, "/a?b=c" },
    { "GET", "/", "HTTP/1.1", { "Host=h", "Content-Length=3" }, GUARD_BODY_LENGTH, 3, false, "/" },
    { "M-SEARCH", "/", "HTTP/1.1", { "Host=h" }, GUARD_BODY_NONE, 0, false, "/" },
    { "OPTIONS", "*", "HTTP/1.1", { "Host=h" }, GUARD_BODY_NONE, 0, false, "*" },
    { "POST", "http://H:1/a", "HTTP/1.1", { "Host=h:1", "Content-Length=3" }, GUARD_BODY_LENGTH, 3, false, "/a" },
    { "POST",
      "/",
      "HTTP/1.1",
      { "Host=[::1]:8620", "Content-Length=3", "Expect=100-Continue" },
      GUARD_BODY_LENGTH,
      3,
      true,
      "/" },
    { "POST",
      "/",
      "HTTP/1.0",
      { "Host=h", "Content-Length=3", "Expect=100-continue" },
      GUARD_BODY_LENGTH,
      3,
      false,
      "/" },
    /* Two keys are another check's answer (key-malformed), several cookies and Vias are nobody's. */
    { "POST",
      "/",
      "HTTP/1.1",
      { "Host=h", "Content-Length=1", "Idempotency-Key=a", "Idempotency-Key=b" },
      GUARD_BODY_LENGTH,
      1,
      false,
      "/" },
    { "GET",
      "/",
      "HTTP/1.1",
      { "Host=h", "Cookie=a", "Cookie=b", "Via=1.1 a", "Via=1.1 b" },
      GUARD_BODY_NONE,
      0,
      false,
      "/" },
    { "GET",
      "/",
      "HTTP/1.1",
      { "Host=h", "Connection=keep-alive, TE, Upgrade, X-Mine", "Connection=close" },
      GUARD_BODY_NONE,
      0,
      false,
      "/" },
    { "GET",
      "/",
      "HTTP/1.1",
      { "Host=h", "X-Tenant=a", "X-Tenant=a", "X-API-Key=b", "Authorization=c" },
      GUARD_BODY_NONE,
      0,
      false,
      "/" },
    { "GET",
      "/",
      "HTTP/1.1",
      { "Host=h", "X-Empty=", "X-Tab=a\tb", "X-Latin=\xE9", "Idempotency=x" },
      GUARD_BODY_NONE,
      0,
      false,
      "/" },
};

START_TEST(a_clean_head_passes_with_its_framing)
{
    struct guard_verdict verdict = check(clean[_i].method, clean[_i].target, clean[_i].version, clean[_i].fields);
    ck_assert_msg(verdict.status == 0, "row %d: %d %s", _i, verdict.status, verdict.detail);
    ck_assert_ptr_null(verdict.detail);
    ck_assert_int_eq(verdict.body, clean[_i].body);
    ck_assert_uint_eq(verdict.length, clean[_i].length);
    ck_assert(verdict.expect_continue == clean[_i].expect_continue);
    ck_assert(view_equal(verdict.target.origin, view_of(clean[_i].origin)));
    ck_assert(view_equal(verdict.host, view_of(strchr(clean[_i].fields[0], '=') + 1)));
}
END_TEST

static const struct {
    int status;
    const char *method, *target, *version;
    const char *fields[8];
} hostile[] = {
    /* Framing: everything that two parsers could read as two different requests. */
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Content-Length=3", "Transfer-Encoding=chunked" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Transfer-Encoding=chunked", "Content-Length=3" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Transfer-Encoding=gzip", "Content-Length=3" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Content-Length=3", "Content-Length=4" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Content-Length=3", "content-length=3" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Content-Length=3, 3" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Content-Length=+3" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Content-Length=-1" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Content-Length=0x3" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Content-Length=3 " } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Content-Length=" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Content-Length=18446744073709551616" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Content-Length =3" } },
    { 501, "POST", "/", "HTTP/1.1", { "Host=h", "Transfer-Encoding=xchunked" } },
    { 501, "POST", "/", "HTTP/1.1", { "Host=h", "Transfer-Encoding=gzip, chunked" } },
    { 501, "POST", "/", "HTTP/1.1", { "Host=h", "Transfer-Encoding=chunked, chunked" } },
    { 501, "POST", "/", "HTTP/1.1", { "Host=h", "Transfer-Encoding=identity" } },
    { 501, "POST", "/", "HTTP/1.1", { "Host=h", "Transfer-Encoding=chunked;a=b" } },
    { 501, "POST", "/", "HTTP/1.1", { "Host=h", "Transfer-Encoding=\"chunked\"" } },
    { 501, "POST", "/", "HTTP/1.1", { "Host=h", "Transfer-Encoding=" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Transfer-Encoding=chunked", "Transfer-Encoding=chunked" } },
    { 400, "POST", "/", "HTTP/1.0", { "Host=h", "Transfer-Encoding=chunked" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Transfer-Encoding =chunked" } },
    /* Names and values. */
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Idempotency-Keyfolded=k1" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "idempotency-key-x=k1" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Idempotency-Key =k1" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "=x" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", " X=x" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "X(Y)=x" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "X\xC3\xA4=x" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "X\r=x" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "X=a\rb" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "X=a\r\nY: b" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "X=a\nb" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "X=\x01" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "X=\x7F" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Idempotency-Key=a\x0B" } },
    /* Fields that may come once. */
    { 400, "GET", "/", "HTTP/1.1", { NULL } },
    { 400, "GET", "/", "HTTP/1.0", { NULL } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Host=h" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "host=other" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=a b" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=a,b" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h/x" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=u@h" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Content-Type=a", "Content-Type=a" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Content-Encoding=a", "Content-Encoding=a" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Authorization=a", "authorization=a" } },
    /* Connection takes nothing away that was read. */
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Connection=Idempotency-Key" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Connection=close, authorization" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Connection=close", "connection=X-TENANT" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Connection=x-api-key" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Connection=Host" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Connection=Content-Length" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Connection=Transfer-Encoding" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Connection=Content-Type" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Connection=Content-Encoding" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Connection=,Via," } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Connection=Nonbis-Command-Id" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Connection=nonbis-" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Connection=Expect" } },
    { 400, "GET", "/", "HTTP/1.1", { "Host=h", "Connection=Prefer" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Content-Length=1", "Expect=foo" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Content-Length=1", "Expect=100-continue, foo" } },
    { 400, "POST", "/", "HTTP/1.1", { "Host=h", "Content-Length=1", "Expect=100-continue", "Expect=foo" } },
    /* The request line. */
    { 501, "post", "/", "HTTP/1.1", { "Host=h" } },
    { 501, "Post", "/", "HTTP/1.1", { "Host=h" } },
    { 501, "", "/", "HTTP/1.1", { "Host=h" } },
    { 501, "PO ST", "/", "HTTP/1.1", { "Host=h" } },
    { 501, "POST\x01", "/", "HTTP/1.1", { "Host=h" } },
    { 501, "CONNECT", "h:443", "HTTP/1.1", { "Host=h" } },
    { 501, "TRACE", "/", "HTTP/1.1", { "Host=h" } },
    { 505, "GET", "/", "HTTP/1.10", { "Host=h" } },
    { 505, "GET", "/", "HTTP/2.0", { "Host=h" } },
    { 505, "GET", "/", "HTTP/0.9", { "Host=h" } },
    { 505, "GET", "/", "http/1.1", { "Host=h" } },
    { 505, "GET", "/", "HTTP/1.10", { "Host=h" } },
    { 505, "GET", "/", "", { "Host=h" } },
    { 400, "GET", "http://other/", "HTTP/1.1", { "Host=h" } },
    { 400, "GET", "http://h:80/", "HTTP/1.1", { "Host=h" } },
    { 400, "GET", "http://u@h/", "HTTP/1.1", { "Host=h" } },
    { 400, "GET", "", "HTTP/1.1", { "Host=h" } },
    { 400, "GET", "a", "HTTP/1.1", { "Host=h" } },
    { 400, "GET", "/a b", "HTTP/1.1", { "Host=h" } },
    { 400, "GET", "/a\x0D", "HTTP/1.1", { "Host=h" } },
    { 400, "GET", "/a#b", "HTTP/1.1", { "Host=h" } },
};

START_TEST(a_hostile_head_is_refused_with_its_status)
{
    struct guard_verdict verdict =
        check(hostile[_i].method, hostile[_i].target, hostile[_i].version, hostile[_i].fields);
    ck_assert_msg(verdict.status == hostile[_i].status, "row %d (%s %s, %s): %d instead of %d", _i, hostile[_i].method,
                  hostile[_i].target, hostile[_i].fields[1], verdict.status, hostile[_i].status);
    ck_assert_ptr_nonnull(verdict.detail);
}
END_TEST

START_TEST(a_target_of_4096_bytes_passes_and_one_more_is_414)
{
    static char target[4098];
    const char *fields[] = { "Host=h", NULL };
    memset(target, 'a', 4097);
    target[0] = '/';
    ck_assert_int_eq(check("GET", target, "HTTP/1.1", fields).status, 414);
    target[4096] = '\0';
    ck_assert_int_eq(check("GET", target, "HTTP/1.1", fields).status, 0);
}
END_TEST

START_TEST(a_hundred_fields_pass_and_one_more_is_431)
{
    const char *fields[102] = { "Host=h" };
    for (int i = 1; i < 101; i++) {
        fields[i] = "X=y";
    }
    ck_assert_int_eq(check("GET", "/", "HTTP/1.1", fields).status, 431);
    fields[100] = NULL;
    ck_assert_int_eq(check("GET", "/", "HTTP/1.1", fields).status, 0);
}
END_TEST

START_TEST(the_bytes_of_a_head_count_with_four_more_per_field)
{
    struct header items[] = { { VIEW("Host"), VIEW("abc") }, { VIEW("X"), VIEW("") } };
    /* 5 of the target, 4 + 3 + 4, 1 + 0 + 4: 21. */
    struct guard_head head = { .method = VIEW("GET"),
                               .target = VIEW("/abcd"),
                               .version = VIEW("HTTP/1.1"),
                               .headers = { items, 2 },
                               .header_bytes_max = 21 };
    ck_assert_int_eq(guard_check(&head).status, 0);
    head.header_bytes_max = 20;
    ck_assert_int_eq(guard_check(&head).status, 431);
}
END_TEST

START_TEST(a_nul_byte_is_a_control_byte_everywhere)
{
    struct header items[] = { { VIEW("Host"), VIEW("abc") }, { VIEW("X"), VIEW("a\0b") } };
    struct guard_head head = { .method = VIEW("GET"),
                               .target = VIEW("/"),
                               .version = VIEW("HTTP/1.1"),
                               .headers = { items, 2 },
                               .header_bytes_max = 8192 };
    ck_assert_int_eq(guard_check(&head).status, 400);
    items[1] = (struct header){ VIEW("X\0Y"), VIEW("") };
    ck_assert_int_eq(guard_check(&head).status, 400);
    head.headers.count = 1;
    head.target = VIEW("/a\0b");
    ck_assert_int_eq(guard_check(&head).status, 400);
    head.target = VIEW("/");
    ck_assert_int_eq(guard_check(&head).status, 0);
}
END_TEST

START_TEST(a_detail_names_the_fault_and_no_value)
{
    struct guard_verdict verdict =
        check("POST", "/", "HTTP/1.1", (const char *[]){ "Host=h", "Content-Length=secret", NULL });
    ck_assert_str_eq(verdict.detail, "the Content-Length field is not a number in decimal digits");
    verdict = check("POST", "/", "HTTP/1.1", (const char *[]){ "Host=h", "Host=h", NULL });
    ck_assert_str_eq(verdict.detail, "there is more than one Host field");
}
END_TEST

SUITE(guard)
{
    Suite *suite = suite_create("http/guard");
    CASE_LOOP(suite, a_clean_head_passes_with_its_framing, ROWS(clean));
    CASE_LOOP(suite, a_hostile_head_is_refused_with_its_status, ROWS(hostile));
    CASE(suite, a_target_of_4096_bytes_passes_and_one_more_is_414);
    CASE(suite, a_hundred_fields_pass_and_one_more_is_431);
    CASE(suite, the_bytes_of_a_head_count_with_four_more_per_field);
    CASE(suite, a_nul_byte_is_a_control_byte_everywhere);
    CASE(suite, a_detail_names_the_fault_and_no_value);
    return suite;
}
