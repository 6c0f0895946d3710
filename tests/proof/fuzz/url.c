/* url.c - fuzzes client-sdk/src/url.c. The input is a URL.
 *
 * Of a URL that is taken the origin and the endpoint are its beginning, without a user name, a query, or anything that is no visible ASCII. */
#include "client-sdk/src/url.h"

#include "tests/proof/fuzz/fuzz.h"

FUZZ_TARGET(url)
{
    char *text = fuzz_text(input);
    size_t len = strlen(text);
    struct url_parts parts = { { NULL, 0 }, { NULL, 0 } };
    bool taken = url_split(text, &parts);
    if (taken) {
        MUST(parts.origin.ptr == text && parts.endpoint.ptr == text);
        MUST(parts.origin.len <= parts.endpoint.len && parts.endpoint.len <= len);
        MUST(view_starts_with_nocase(parts.origin, VIEW("http")));
        const char *host = strstr(text, "://");
        MUST(host != NULL && parts.origin.len > (size_t) (host - text) + 3);
        for (size_t i = 0; i < len; i++) {
            MUST(text[i] > 0x20 && text[i] < 0x7F);
        }
        for (size_t i = (size_t) (host - text) + 3; i < parts.origin.len; i++) {
            MUST(strchr("/?#\\@", text[i]) == NULL);
        }
        MUST(memchr(text, '?', parts.endpoint.len) == NULL && memchr(text, '#', parts.endpoint.len) == NULL);
        MUST(parts.endpoint.len == len || text[parts.endpoint.len] == '?' || text[parts.endpoint.len] == '#');
        MUST(parts.endpoint.len == parts.origin.len || text[parts.origin.len] == '/');
    }
    free(text);
    return taken;
}
