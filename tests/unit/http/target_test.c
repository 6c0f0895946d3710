/* target_test.c - server/http/target.c: contract sections 1 and 3. */
#include "server/http/target.h"
#include "tests/support/suite.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const struct {
    const char *raw, *host;
    enum target_result result;
    const char *origin, *path, *authority;
} splits[] = {
    { "/", "h", TARGET_OK, "/", "/", "h" },
    { "/a/b?c=d&e=/f?g", "h:80", TARGET_OK, "/a/b?c=d&e=/f?g", "/a/b", "h:80" },
    { "/a?", "h", TARGET_OK, "/a?", "/a", "h" },
    { "/?q", "h", TARGET_OK, "/?q", "/", "h" },
    { "//a//b/", "h", TARGET_OK, "//a//b/", "//a//b/", "h" },
    { "/%41%zz", "h", TARGET_OK, "/%41%zz", "/%41%zz", "h" },
    { "/caf\xC3\xA9", "h", TARGET_OK, "/caf\xC3\xA9", "/caf\xC3\xA9", "h" },
    { "*", "h", TARGET_OK, "*", "*", "h" },
    /* Absolute form. */
    { "http://h/a?b", "h", TARGET_OK, "/a?b", "/a", "h" },
    { "HTTP://H:81/a", "h:81", TARGET_OK, "/a", "/a", "H:81" },
    { "https://h/a", "h", TARGET_OK, "/a", "/a", "h" },
    { "http://h", "h", TARGET_OK, "/", "/", "h" },
    { "http://[::1]:8/x", "[::1]:8", TARGET_OK, "/x", "/x", "[::1]:8" },
    { "http://other/a", "h", TARGET_OTHER_AUTHORITY, "", "", "" },
    { "http://h:80/a", "h", TARGET_OTHER_AUTHORITY, "", "", "" },
    { "http://h.evil/a", "h", TARGET_OTHER_AUTHORITY, "", "", "" },
    { "http://u@h/a", "h", TARGET_MALFORMED, "", "", "" },
    { "http://h@other/a", "h", TARGET_MALFORMED, "", "", "" },
    { "http:///a", "", TARGET_MALFORMED, "", "", "" },
    { "http://h?q", "h", TARGET_MALFORMED, "", "", "" },
    { "ftp://h/a", "h", TARGET_MALFORMED, "", "", "" },
    { "http:/a", "h", TARGET_MALFORMED, "", "", "" },
    /* Neither form. */
    { "", "h", TARGET_MALFORMED, "", "", "" },
    { "a", "h", TARGET_MALFORMED, "", "", "" },
    { "**", "h", TARGET_MALFORMED, "", "", "" },
    { "*?a", "h", TARGET_MALFORMED, "", "", "" },
    { "?a", "h", TARGET_MALFORMED, "", "", "" },
    { "h:443", "h:443", TARGET_MALFORMED, "", "", "" },
    { "/a#b", "h", TARGET_MALFORMED, "", "", "" },
    { "/a b", "h", TARGET_MALFORMED, "", "", "" },
    { "/a\tb", "h", TARGET_MALFORMED, "", "", "" },
    { "/a\r\nX: y", "h", TARGET_MALFORMED, "", "", "" },
    { "/a\x7F", "h", TARGET_MALFORMED, "", "", "" },
    { "/a?\x01", "h", TARGET_MALFORMED, "", "", "" },
};

START_TEST(a_target_is_split_as_received_or_refused)
{
    struct target target;
    enum target_result result = target_split(view_of(splits[_i].raw), view_of(splits[_i].host), &target);
    ck_assert_msg(result == splits[_i].result, "<%s> gave %d", splits[_i].raw, (int) result);
    ck_assert(view_equal(target.origin, view_of(splits[_i].origin)));
    ck_assert(view_equal(target.path, view_of(splits[_i].path)));
    ck_assert(view_equal(target.authority, view_of(splits[_i].authority)));
}
END_TEST

START_TEST(a_nul_in_a_target_is_refused)
{
    struct target target;
    ck_assert_int_eq(target_split(VIEW("/a\0b"), VIEW("h"), &target), TARGET_MALFORMED);
}
END_TEST

static const struct {
    const char *path, *normal;
    const char *resolved; /* NULL: not ambiguous */
    bool malformed;
} forms[] = {
    { "/", "/", NULL, false },
    { "/orders", "/orders", NULL, false },
    { "/orders/", "/orders", NULL, false },
    { "/orders//", "/orders", NULL, false },
    { "//orders///1", "/orders/1", NULL, false },
    { "//", "/", NULL, false },
    { "*", "*", NULL, false },
    { "", "", NULL, false },
    { "/Orders", "/Orders", NULL, false },
    { "/%6Frders", "/orders", NULL, false },
    { "/%6frders", "/orders", NULL, false },
    { "/%41%5a%7E%2d%5F%30", "/AZ~-_0", NULL, false },
    { "/a%3Ab%3b", "/a%3Ab%3B", NULL, false }, /* reserved: stays, digits in capitals */
    { "/caf%c3%a9", "/caf%C3%A9", NULL, false },
    { "/caf\xC3\xA9", "/caf\xC3\xA9", NULL, false },
    { "/a%20b", "/a%20b", NULL, false },
    { "/a%25 2F", "/a%25 2F", NULL, false },
    { "/%252F", "/%252F", NULL, false }, /* decoded once, never twice */
    { "/%2541", "/%2541", NULL, false },
    { "/a.b/..c/d..", "/a.b/..c/d..", NULL, false },
    { "/...", "/...", NULL, false },
    /* Ambiguous: refused under a protected pattern (section 1). */
    { "/a%2Fb", "/a%2Fb", "/a/b", false },
    { "/a%2fb", "/a%2Fb", "/a/b", false },
    { "/a%2F/b", "/a%2F/b", "/a/b", false },
    { "/public/../orders", "/public/../orders", "/orders", false },
    { "/public/%2e%2E/orders", "/public/../orders", "/orders", false },
    { "/public/.%2e/orders/", "/public/../orders", "/orders", false },
    { "/public/..%2Forders", "/public/..%2Forders", "/orders", false },
    { "/public%2F..%2Forders", "/public%2F..%2Forders", "/orders", false },
    { "/./orders", "/./orders", "/orders", false },
    { "/orders/.", "/orders/.", "/orders", false },
    { "/orders/1/..", "/orders/1/..", "/orders", false },
    { "/..", "/..", "/", false },
    { "/../../orders", "/../../orders", "/orders", false },
    { "/a/b/../../..", "/a/b/../../..", "/", false },
    { "/orders%00", "/orders%00", "/orders%00", false },
    { "/%2F", "/%2F", "/", false },
    { "%2Forders", "%2Forders", "/orders", false },
    { "..", "..", "/", false },
    /* A percent sign without two digits. */
    { "/a%", "/a%", NULL, true },
    { "/a%4", "/a%4", NULL, true },
    { "/a%4/", "/a%4", NULL, true },
    { "/a%zz", "/a%zz", NULL, true },
    { "/a%%41", "/a%A", NULL, true },
    { "/%2/../b", "/%2/../b", "/b", true },
};

START_TEST(a_path_has_one_normal_form)
{
    /* A copy of its own size, so that a sanitizer sees a read behind it. */
    char *path = malloc(strlen(forms[_i].path) + 1);
    memcpy(path, forms[_i].path, strlen(forms[_i].path));
    struct path_form form;
    path_form_init(&form, view_make(path, strlen(forms[_i].path)));
    ck_assert_msg(view_equal(buf_view(&form.normal), view_of(forms[_i].normal)), "<%s>: normal form <%.*s>",
                  forms[_i].path, VIEW_ARGS(buf_view(&form.normal)));
    ck_assert_msg(form.ambiguous == (forms[_i].resolved != NULL), "<%s>: ambiguous %d", forms[_i].path, form.ambiguous);
    ck_assert_msg(view_equal(buf_view(&form.resolved), view_of(forms[_i].resolved)), "<%s>: resolved <%.*s>",
                  forms[_i].path, VIEW_ARGS(buf_view(&form.resolved)));
    ck_assert(form.malformed == forms[_i].malformed);
    ck_assert(!form.normal.failed && !form.resolved.failed);
    path_form_fini(&form);
    free(path);
}
END_TEST

static const struct {
    const char *pattern, *path;
    bool matches;
} matches[] = {
    { "/orders", "/orders", true },
    { "/orders", "/orders/1", false },
    { "/orders", "/order", false },
    { "/orders", "/Orders", false },
    { "/orders/*", "/orders/1", true },
    { "/orders/*", "/orders/1/items", true },
    { "/orders/*", "/orders", true },
    { "/orders/*", "/ordersx", false },
    { "/orders/*", "/order", false },
    { "/orders*", "/orders", true },
    { "/orders*", "/ordersx", true },
    { "/*", "/", true },
    { "/*", "/x", true },
    { "/*", "*", false },
    { "/*", "", false },
    { "*", "*", true },
    { "*", "/x", true },
    { "/", "/", true },
    { "/", "/x", false },
    { "", "/", false },
};

START_TEST(a_pattern_is_exact_or_a_prefix)
{
    ck_assert_msg(path_matches(view_of(matches[_i].pattern), view_of(matches[_i].path)) == matches[_i].matches,
                  "pattern <%s>, path <%s>", matches[_i].pattern, matches[_i].path);
}
END_TEST

START_TEST(the_form_of_a_form_is_itself)
{
    static const char letters[] = "/./.%2f%2Fe00aA41~";
    unsigned seed = suite_seed();
    FIGURE("path forms seed=%u paths=20000", seed);
    struct suite_random random;
    suite_random_start(&random, seed);
    for (int round = 0; round < 20000; round++) {
        char path[24];
        size_t len = suite_random_below(&random, sizeof(path));
        for (size_t i = 0; i < len; i++) {
            path[i] = letters[suite_random_below(&random, sizeof(letters) - 1)];
        }
        struct path_form once, twice;
        path_form_init(&once, view_make(path, len));
        path_form_init(&twice, buf_view(&once.normal));
        ck_assert_uint_le(once.normal.len, len);
        ck_assert(!once.normal.failed && !once.resolved.failed);
        /* Not where a lone percent sign meets decoded digits: those paths are malformed. */
        ck_assert_msg(once.malformed || view_equal(buf_view(&once.normal), buf_view(&twice.normal)), "<%.*s> seed=%u",
                      (int) len, path, seed);
        ck_assert(once.malformed || once.ambiguous == twice.ambiguous);
        path_form_fini(&once);
        path_form_fini(&twice);
    }
}
END_TEST

SUITE(target)
{
    Suite *suite = suite_create("http/target");
    CASE_LOOP(suite, a_target_is_split_as_received_or_refused, ROWS(splits));
    CASE(suite, a_nul_in_a_target_is_refused);
    CASE_LOOP(suite, a_path_has_one_normal_form, ROWS(forms));
    CASE_LOOP(suite, a_pattern_is_exact_or_a_prefix, ROWS(matches));
    CASE(suite, the_form_of_a_form_is_itself);
    return suite;
}
