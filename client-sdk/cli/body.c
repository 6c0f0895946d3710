/* body.c - see body.h. */
#include "client-sdk/cli/body.h"

#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { BODY_BYTES = 16 * 1024 * 1024 };

static bool complain_of_body(const char *from, size_t most)
{
    if (errno == EFBIG) {
        complain("%s has more than %zu bytes, which is the limit of a body (--max-body); nothing was sent", from, most);
    } else {
        complain("%s cannot be read: %s; nothing was sent", from, strerror(errno));
    }
    return false;
}

bool body_read(const struct options *options, struct buf *body)
{
    size_t most = BODY_BYTES;
    if (!option_size(options, OPTION_MAX_BODY, &most)) {
        return false;
    }
    body->max = most;
    if (options->given[OPTION_DATA] > 1) {
        complain("-d is given %u times; a request has one body", options->given[OPTION_DATA]);
        return false;
    }
    const char *data = options->values[OPTION_DATA];
    if (data == NULL) {
        return true;
    }
    if (strcmp(data, "@-") == 0) {
        return file_read(STDIN_FILENO, body) || complain_of_body("stdin", most);
    }
    if (data[0] == '@') {
        return file_read_path(data + 1, body) || complain_of_body(data + 1, most);
    }
    buf_append_text(body, data);
    errno = strlen(data) > most ? EFBIG : ENOMEM;
    return !body->failed || complain_of_body("the text behind -d", most);
}

bool body_goes_with(const char *method)
{
    return strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0;
}
