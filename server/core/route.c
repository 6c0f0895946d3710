/* route.c - finding the route of a request. Owns nothing; the routes are built and freed by server/config. */
#include "server/core/route.h"

const struct route *route_find(const struct routes *routes, struct view method, struct view normal_path)
{
    for (unsigned i = 0; i < routes->count; i++) {
        const struct route *route = &routes->items[i];
        /* Methods are case-sensitive (RFC 9110 section 9.1). */
        if (!view_equal(route->method, VIEW("*")) && !view_equal(route->method, method)) {
            continue;
        }
        if (path_matches(route->pattern, normal_path)) {
            return route;
        }
    }
    return NULL;
}
