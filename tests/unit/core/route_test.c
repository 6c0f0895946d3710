/* route_test.c - the first route that matches method and path (docs/contract.md section 1). */
#include "server/core/route.h"

#include "tests/support/suite.h"

#define ROUTE(m, p)                                                                                                    \
    {                                                                                                                  \
        .method = { m, sizeof(m) - 1 }, .pattern = { p, sizeof(p) - 1 }                                                \
    }

static struct route items[] = {
    ROUTE("POST", "/orders/special"), ROUTE("POST", "/orders/*"), ROUTE("PATCH", "/orders/*"), ROUTE("*", "/pay"),
    ROUTE("POST", "/orders/later"),   ROUTE("POST", "/"),
};
static const struct routes routes = { items, sizeof(items) / sizeof(items[0]) };

static const struct {
    const char *method, *path;
    int route; /* -1: none */
} rows[] = {
    { "POST", "/orders/special", 0 }, { "POST", "/orders/1", 1 },
    { "POST", "/orders", 1 },         { "POST", "/orders/later", 1 }, /* first match wins */
    { "POST", "/ordersx", -1 },       { "PATCH", "/orders/special", 2 },
    { "PUT", "/orders/1", -1 },       { "post", "/orders/1", -1 }, /* methods have case */
    { "POST", "/Orders/1", -1 },                                   /* so have paths */
    { "DELETE", "/pay", 3 },          { "POST", "/pay", 3 },
    { "POST", "/pay/1", -1 },         { "POST", "/", 5 },
    { "*", "/orders/1", -1 },
};

START_TEST(the_first_route_that_matches_is_found)
{
    const struct route *found = route_find(&routes, view_of(rows[_i].method), view_of(rows[_i].path));
    ck_assert_msg(found == (rows[_i].route < 0 ? NULL : &items[rows[_i].route]), "row %d: %s %s", _i, rows[_i].method,
                  rows[_i].path);
}
END_TEST

START_TEST(without_routes_nothing_is_protected)
{
    const struct routes none = { NULL, 0 };
    ck_assert_ptr_null(route_find(&none, VIEW("POST"), VIEW("/orders")));
}
END_TEST

SUITE(core_route)
{
    Suite *suite = suite_create("core/route");
    CASE_LOOP(suite, the_first_route_that_matches_is_found, sizeof(rows) / sizeof(rows[0]));
    CASE(suite, without_routes_nothing_is_protected);
    return suite;
}
