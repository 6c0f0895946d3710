/* url.h - the parts of a URL that the client must know. Pure. Any thread. */
#ifndef NONBIS_CLIENT_URL_H
#define NONBIS_CLIENT_URL_H

#include "common/view.h"

struct url_parts {
    struct view origin;   /* scheme://host[:port] */
    struct view endpoint; /* origin and path, without the query */
};

/* http or https, any case; a host; no user:password (it would end up in events and journals); no blanks, control bytes or
 * bytes above 0x7E. The views point into `url`. */
bool url_split(const char *url, struct url_parts *parts);

#endif
