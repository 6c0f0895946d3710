/* url_test.c - which upstream URLs are understood, and what is said about the others. */
#include "tests/upstream/probe.h"

static const struct {
    const char *url, *scheme, *host;
    unsigned port;
} good[] = {
    { "http://127.0.0.1:3000", "http", "127.0.0.1", 3000 },
    { "http://127.0.0.1:3000/", "http", "127.0.0.1", 3000 },
    { "http://handler", "http", "handler", 80 },
    { "https://handler.example", "https", "handler.example", 443 },
    { "HTTPS://Handler.example:8443", "https", "Handler.example", 8443 },
    { "http://[::1]:8080", "http", "[::1]", 8080 },
    { "http://[::1]", "http", "[::1]", 80 },
    { "http://a-b_c.d:65535", "http", "a-b_c.d", 65535 },
    { "unix:/run/app.sock", "unix", "/run/app.sock", 0 },
};

START_TEST(good_urls_are_taken_apart)
{
    struct upstream_target target;
    struct buf error;
    buf_init(&error, 1000);
    ck_assert_msg(upstream_parse_url(good[_i].url, &target, &error), "%.*s", (int) error.len, error.ptr);
    ck_assert_str_eq(target.scheme, good[_i].scheme);
    ck_assert_str_eq(target.host, good[_i].host);
    ck_assert_uint_eq(target.port, good[_i].port);
    ck_assert_uint_eq(error.len, 0);
    buf_fini(&error);
}
END_TEST

#define TEN "aaaaaaaaaa"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static const struct {
    const char *url, *says;
} bad[] = {
    { NULL, "the URL is empty" },
    { "", "the URL is empty" },
    { "127.0.0.1:3000", "\"127.0.0.1:3000\": the scheme is missing" },
    { "ftp://handler", "\"ftp://handler\": only http://, https:// and unix:" },
    { "http://", "\"http://\": there is no host" },
    { "http://:80", "\"http://:80\": the host is not a name" },
    { "http:///x", "\"http:///x\": a path does not belong" },
    { "http://u:p@handler", "user names and passwords" },
    { "http://handler/api", "\"http://handler/api\": a path does not belong" },
    { "http://handler//", "a path does not belong" },
    { "http://handler?x", "a query does not belong" },
    { "http://handler/?x", "a query does not belong" },
    { "http://handler#f", "a fragment does not belong" },
    { "http://handler:", "the port is not a number" },
    { "http://handler:0", "the port is not a number" },
    { "http://handler:65536", "the port is not a number" },
    { "http://handler:80a", "the port is not a number" },
    { "http://handler:-1", "the port is not a number" },
    { "http://handler:000080", "the port is not a number" },
    { "http://han dler", "blanks and control bytes" },
    { " http://handler", "blanks and control bytes" },
    { "http://handler\t", "blanks and control bytes" },
    { "http://handler\r\n", "blanks and control bytes" },
    { "http://::1:80", "the host is not a name" },
    { "http://[::1", "the host is not a name" },
    { "http://[::1]x:80", "the host is not a name" },
    { "http://[]:80", "the host is not a name" },
    { "http://h%41:80", "the host is not a name" },
    { "http://" HUNDRED HUNDRED HUNDRED, "the host is too long" },
    { "unix:", "wants the absolute path" },
    { "unix:run/app.sock", "wants the absolute path" },
    { "unix:/" HUNDRED TEN, "the path of the socket is too long" },
};

START_TEST(bad_urls_are_refused_with_a_sentence_that_names_them)
{
    struct upstream_target target;
    struct buf error;
    buf_init(&error, 2000);
    ck_assert(!upstream_parse_url(bad[_i].url, &target, &error));
    buf_append_bytes(&error, "", 1);
    ck_assert_msg(strstr(error.ptr, bad[_i].says) != NULL, "it says \"%s\"", error.ptr);
    buf_fini(&error);
}
END_TEST

START_TEST(an_upstream_with_a_bad_url_is_not_opened)
{
    struct loop *loop = loop_new();
    struct upstream_options options = probe_options();
    options.url = "gopher://x";
    struct buf error;
    buf_init(&error, 1000);
    ck_assert_ptr_null(upstream_open(loop, &options, &error));
    ck_assert_uint_gt(error.len, 0);
    buf_fini(&error);
    loop_free(loop);
}
END_TEST

SUITE(upstream_url)
{
    Suite *suite = suite_create("upstream/url");
    CASE_LOOP(suite, good_urls_are_taken_apart, sizeof good / sizeof good[0]);
    CASE_LOOP(suite, bad_urls_are_refused_with_a_sentence_that_names_them, sizeof bad / sizeof bad[0]);
    CASE(suite, an_upstream_with_a_bad_url_is_not_opened);
    return suite;
}
