/* route.c - fuzzes server/config/route_parse.c. The input is the text of a --route, read under the default settings.
 *
 * A route that is taken keeps the rules of docs/contract.md section 1: a method, a pattern in its normal form outside /_nonbis, its times in
 * order, no status that is in two lists, no success that may run again; and it is printed so that it is read again as the same. One
 * that is refused is told in one harmless sentence. */
#include "schema/wire.h"
#include "server/config/values.h"
#include "server/http/headers.h"

#include "tests/proof/fuzz/fuzz.h"

static struct settings defaults;

static void defaults_make(void)
{
    char *argv[] = { (char *) (uintptr_t) "nonbisd", (char *) (uintptr_t) "--print-config" };
    char *environment[] = { (char *) (uintptr_t) "HOME=/home/ada", NULL };
    enum settings_action action;
    struct buf told;
    buf_init(&told, 4096);
    MUST(settings_read(&defaults, &action, 2, argv, environment, &told) == 0);
    MUST(told.len == 0);
    buf_fini(&told);
}

/* What settings_print makes of a route, without "route = " and its comment. */
static void print(const struct route *route, struct buf *out)
{
    static const char start[] = "\nroute = ";
    struct settings settings = defaults;
    struct route only = *route;
    settings.routes = (struct routes){ .items = &only, .count = 1 };
    settings.routes_default = false;
    struct buf all;
    buf_init(&all, 64 * 1024);
    settings_print(&settings, &all);
    buf_append_bytes(&all, "", 1);
    MUST(!all.failed);
    const char *line = strstr(all.ptr, start);
    MUST(line != NULL);
    line += sizeof(start) - 1;
    const char *end = strstr(line, "  # flag --route\n");
    MUST(end != NULL && strchr(line, '\n') == strchr(end, '\n'));
    buf_append_bytes(out, line, (size_t) (end - line));
    buf_fini(&all);
}

static void rules_must_hold(const struct route *route)
{
    MUST(route->retention.ttl_ms <= route->retention.tombstone_ttl_ms);
    MUST(route->answer_timeout_ms <= route->hard_timeout_ms && route->answer_timeout_ms > 0);
    MUST(route->in_flight_wait_ms >= 0 && route->in_flight_wait_ms <= defaults.wait_max_ms);
    for (int status = 0; status < 700; status++) {
        bool release = status_set_has(&route->rules.release, status);
        bool unknown = status_set_has(&route->rules.unknown, status);
        MUST(!release || (status >= 400 && status < 600 && !unknown));
        MUST(!unknown || (status >= 200 && status < 600));
    }
    struct view rest = route->replay_drop, name;
    while (view_next_item(&rest, ',', &name)) {
        MUST(header_is_token(name));
    }
}

static void pattern_must_hold(const struct route *route)
{
    struct view pattern = route->pattern, own = VIEW(WIRE_PREFIX);
    MUST(pattern.len > 0 && pattern.ptr[0] == '/' && fuzz_is_message(pattern, false));
    MUST(memchr(pattern.ptr, ' ', pattern.len) == NULL && memchr(pattern.ptr, '?', pattern.len) == NULL);
    const char *star = memchr(pattern.ptr, '*', pattern.len);
    MUST(star == NULL || star == pattern.ptr + pattern.len - 1);
    MUST(!path_matches(pattern, own) ||
         pattern.len <= own.len); /* the prefixes above it may cover it: it is never asked for */
    MUST(!view_equal(pattern, own));
    struct path_form form;
    path_form_init(&form, pattern);
    MUST(!form.malformed && !form.ambiguous && view_equal(buf_view(&form.normal), pattern));
    path_form_fini(&form);
    MUST(route->method.len > 0 && !view_equal(route->method, VIEW("CONNECT")));
    MUST(view_equal(route->method, VIEW("*")) || header_is_token(route->method));
}

FUZZ_TARGET(route)
{
    if (defaults.listen == NULL) {
        defaults_make();
    }
    struct route route, again;
    struct buf told, first, second;
    buf_init(&told, 4096);
    buf_init(&first, 16 * 1024);
    buf_init(&second, 16 * 1024);
    bool taken = route_parse(&route, input, &defaults, &told);
    MUST(fuzz_is_message(buf_view(&told), false) && !told.failed);
    if (taken) {
        MUST(told.len == 0);
        rules_must_hold(&route);
        pattern_must_hold(&route);
        print(&route, &first);
        MUST(route_parse(&again, buf_view(&first), &defaults, &told));
        print(&again, &second);
        MUST(view_equal(buf_view(&first), buf_view(&second)));
        route_fini(&again);
    } else {
        MUST(told.len > 0 && route.text == NULL);
    }
    route_fini(&route);
    buf_fini(&told);
    buf_fini(&first);
    buf_fini(&second);
    return taken;
}
