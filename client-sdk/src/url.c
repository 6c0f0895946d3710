/* url.c - see url.h. libcurl parses the URL again when it is used; here only what would mislead is refused. */
#include "client-sdk/src/url.h"

#include <string.h>

bool url_split(const char *url, struct url_parts *parts)
{
    struct view text = view_of(url);
    size_t scheme = view_starts_with_nocase(text, VIEW("http://"))    ? 7
                    : view_starts_with_nocase(text, VIEW("https://")) ? 8
                                                                      : 0;
    if (scheme == 0) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < 0x21 || text.ptr[i] > 0x7E) {
            return false;
        }
    }
    size_t authority = strcspn(url + scheme, "/?#\\");
    if (authority == 0 || url[scheme + authority] == '\\' || memchr(url + scheme, '@', authority) != NULL ||
        url[scheme] == ':') {
        return false;
    }
    parts->origin = view_make(url, scheme + authority);
    parts->endpoint = view_make(url, scheme + authority + strcspn(url + scheme + authority, "?#"));
    return true;
}
