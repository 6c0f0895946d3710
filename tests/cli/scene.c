/* scene.c - see scene.h. */
#include "tests/cli/scene.h"

#include "tests/support/suite.h"

static struct buf text;

/* The n-th request as it came, with a NUL behind it. */
static const char *request_text(struct peer *peer, unsigned n)
{
    if (text.max == 0) {
        buf_init(&text, 64 << 20);
    }
    buf_clear(&text);
    ck_assert_msg(peer_request(peer, n, &text), "there was no request %u", n);
    buf_append_bytes(&text, "", 1);
    return text.ptr;
}

unsigned scene_count(struct peer *peer, const char *method, const char *path)
{
    char begin[256];
    unsigned count = 0;
    (void) snprintf(begin, sizeof begin, "%s %s", method, path);
    for (unsigned n = 1; n <= peer_count_requests(peer); n++) {
        count += strncmp(request_text(peer, n), begin, strlen(begin)) == 0 ? 1 : 0;
    }
    return count;
}

const char *scene_body(struct peer *peer, unsigned n)
{
    const char *end = strstr(request_text(peer, n), "\r\n\r\n");
    return end != NULL ? end + 4 : "";
}

const char *scene_field(struct peer *peer, unsigned n, const char *name)
{
    static char value[1024];
    char line[128];
    (void) snprintf(line, sizeof line, "\r\n%s: ", name);
    const char *at = strstr(request_text(peer, n), line);
    value[0] = '\0';
    if (at != NULL) {
        at += strlen(line);
        (void) snprintf(value, sizeof value, "%.*s", (int) strcspn(at, "\r"), at);
    }
    return value;
}
