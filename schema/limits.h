/* limits.h - bounds that no setting moves, with unit and reason. Settings have theirs in server/config/table.c. */
#ifndef NONBIS_SCHEMA_LIMITS_H
#define NONBIS_SCHEMA_LIMITS_H

#include <assert.h>

enum {
    LIMIT_KEY_BYTES = 255,    /* contract 2 */
    LIMIT_TENANT_BYTES = 255, /* as a key: it is stored with every record */
    LIMIT_FIELD_COUNT = 100,  /* fields of one message: more is an attack or a bug */
    LIMIT_CONNECTION_POOL =
        16384, /* bytes per client connection; request head and reply head share it (docs/facts.md 27) */
    LIMIT_POOL_RESERVE = 2048,   /* what libmicrohttpd itself needs of the pool */
    LIMIT_REPLY_HEAD_OWN = 1024, /* room in a reply head for the fields that nonbis adds */
    LIMIT_TARGET_BYTES = 4096,   /* request target */
    LIMIT_ROUTES = 256,
    LIMIT_LOOPS = 64, /* server.loops: the store thread names them by the bits of a word */
    LIMIT_GUARD_FIELDS = 16,
    LIMIT_QUOTA_TENANTS =
        16384, /* whose quota is kept in mind, beside those that have a command running: about 1 MiB */
    LIMIT_EARLY_DISCARD = 64 * 1024, /* chunked body over body_max: read and thrown away up to here, then 413 */
};

#define LIMIT_REQUEST_HEADER_MAX 8192  /* default of request_header_max, bytes */
#define LIMIT_RESPONSE_HEADER_MAX 6144 /* default of response_header_max, bytes */

static_assert(LIMIT_REQUEST_HEADER_MAX + LIMIT_RESPONSE_HEADER_MAX + LIMIT_POOL_RESERVE <= LIMIT_CONNECTION_POOL,
              "request head and reply head must fit the connection pool together");

#endif
