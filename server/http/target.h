/* target.h - the request target: origin form, authority, and the normal form that routes match
 * (docs/contract.md sections 1, 3 and 4; RFC 9112 section 3.2). Pure. Any thread. */
#ifndef NONBIS_SERVER_HTTP_TARGET_H
#define NONBIS_SERVER_HTTP_TARGET_H

#include "common/buf.h"
#include "common/view.h"

enum target_result {
    TARGET_OK,
    TARGET_MALFORMED,       /* not origin form, absolute form or "*" ; control or blank bytes; fragment */
    TARGET_OTHER_AUTHORITY, /* absolute form whose authority is not the Host field */
    TARGET_RESULT_COUNT
};

struct target {
    struct view origin;    /* origin form as received, query included ("/a?b=1"), or "*" */
    struct view path;      /* of origin: up to the query */
    struct view authority; /* of the absolute form when it was one, else the Host field */
};

/* Splits a raw target; all results are views into `raw` and `host`. */
enum target_result target_split(struct view raw, struct view host, struct target *out);

/* What a path is for the routes. */
struct path_form {
    struct buf normal;   /* unreserved %XX decoded, "//" merged, one trailing slash dropped, case kept */
    struct buf resolved; /* the same with %2F decoded and dot segments resolved; meaningful when `ambiguous` */
    bool ambiguous;      /* an encoded slash, %00, or a dot segment (also encoded): refused under a protected pattern */
    bool malformed;      /* a % that is not followed by two hex digits */
};

void path_form_init(struct path_form *form, struct view path);
void path_form_fini(struct path_form *form);

/* Exact match, or a prefix ending in '*'. "/x/" followed by '*' also covers "/x". `normal_path` is a normal form; the pattern is
 * normalised when it is parsed. */
bool path_matches(struct view pattern, struct view normal_path);

#endif
