/* output.c - see output.h. */
#include "client-sdk/cli/output.h"

#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/file.h"
#include "client-sdk/cli/output_json.h"
#include "client-sdk/cli/printable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_BYTES = 1024 * 1024 };

static const char *output_path(const struct options *options)
{
    const char *path = options->values[OPTION_OUTPUT];
    return path != NULL && strcmp(path, "-") != 0 ? path : NULL;
}

bool output_check(const struct options *options)
{
    const char *path = output_path(options);
    if (path == NULL || file_can_replace(path)) {
        return true;
    }
    complain("-o %s could not be written: %s; nothing was sent", path, strerror(errno));
    return false;
}

bool output_is_answer(const struct nonbis_op *op)
{
    if (nonbis_op_http_status(op) == 0) {
        return false;
    }
    bool turned_down = nonbis_op_outcome(op) == NONBIS_NOT_APPLIED && nonbis_op_stop(op) == NONBIS_STOP_SERVER_SAID_NO;
    return nonbis_op_is_final(op) || turned_down;
}

/* Why the body is not in hand; NULL: it is, or nobody can know. */
static const char *body_is_cut(const struct nonbis_policy *policy, const struct nonbis_op *op)
{
    size_t len = 0;
    (void) nonbis_op_body(op, &len);
    bool lost = (nonbis_op_marks(op) & NONBIS_MARK_BODY_LOST) != 0;
    if (nonbis_op_body_is_whole(op) || lost) {
        return NULL;
    }
    if ((int64_t) len >= nonbis_policy_get(policy, NONBIS_RESPONSE_MAX)) {
        return "is longer than --response-max";
    }
    /* An answer that says where it ends, and did not end there, is none at all: so it came whole, and could not be kept. */
    bool framed = nonbis_op_field(op, "Content-Length") != NULL || nonbis_op_field(op, "Transfer-Encoding") != NULL;
    return framed ? "was more than there is memory for" : NULL;
}

/* ---- the answer itself -------------------------------------------------------------------------------------------- */

/* "HTTP/1.1 201", fields, empty line; the reason phrase is not kept. */
static void head_write(const struct nonbis_op *op, struct buf *head)
{
    const char *name = NULL, *value = NULL;
    buf_printf(head, "HTTP/1.1 %d\n", nonbis_op_http_status(op));
    for (size_t i = 0; nonbis_op_field_at(op, i, &name, &value); i++) {
        buf_append_text(head, name);
        buf_append_text(head, ": ");
        buf_append_text(head, value);
        buf_append_text(head, "\n");
    }
    buf_append_text(head, "\n");
}

/* What goes to a terminal goes past a person: there the bytes of the answer must not play with it. `-o -` says that they may. */
static bool answer_write_shown(const struct view *parts, size_t count)
{
    bool good = true;
    for (size_t i = 0; i < count && good; i++) {
        char *copy = malloc(parts[i].len + 1);
        good = copy != NULL;
        if (good) {
            memcpy(copy, parts[i].ptr != NULL ? parts[i].ptr : "", parts[i].len);
            printable_clean(copy, parts[i].len, true);
            good = file_write(STDOUT_FILENO, copy, parts[i].len);
        }
        free(copy);
    }
    return good;
}

static bool answer_write_stdout(const struct options *options, const struct view *parts, size_t count)
{
    if (options->values[OPTION_OUTPUT] == NULL && isatty(STDOUT_FILENO)) {
        return answer_write_shown(parts, count);
    }
    bool good = true;
    for (size_t i = 0; i < count && good; i++) {
        good = file_write(STDOUT_FILENO, parts[i].ptr, parts[i].len);
    }
    return good;
}

/* False with errno. */
static bool answer_write(const struct options *options, const struct nonbis_op *op)
{
    struct buf head;
    struct view parts[2] = { { NULL, 0 }, { NULL, 0 } };
    const char *path = output_path(options);
    buf_init(&head, HEAD_BYTES);
    if (option_is_given(options, OPTION_INCLUDE)) {
        head_write(op, &head);
    }
    parts[0] = buf_view(&head);
    parts[1].ptr = nonbis_op_body(op, &parts[1].len);
    errno = ENOMEM;
    bool good = !head.failed && (path != NULL ? file_replace(path, parts, 2) : answer_write_stdout(options, parts, 2));
    buf_fini(&head);
    return good;
}

/* Whether the answer is where it was wanted. */
static bool answer_show(const struct options *options, const struct nonbis_policy *policy, const struct nonbis_op *op)
{
    const char *path = output_path(options);
    if (!output_is_answer(op) || (option_is_given(options, OPTION_JSON) && path == NULL)) {
        return true;
    }
    const char *cut = body_is_cut(policy, op);
    if (cut != NULL) {
        complain("the body of the answer %s and was not kept, so nothing of it is shown", cut);
        return false;
    }
    if ((nonbis_op_marks(op) & NONBIS_MARK_BODY_LOST) != 0) {
        complain("warning: it was executed, but the server does not keep the body of its answer any more");
    } else if (!nonbis_op_body_is_whole(op)) {
        complain("warning: only the end of the connection ended the body of the answer; it may be cut");
    }
    if (!answer_write(options, op)) {
        complain("the answer could not be written to %s: %s", path != NULL ? path : "stdout", strerror(errno));
        return false;
    }
    return true;
}

/* ---- the end ------------------------------------------------------------------------------------------------------ */

static bool json_show(const struct options *options, const struct nonbis_op *op, enum exit_code code)
{
    if (!option_is_given(options, OPTION_JSON) ||
        output_json_print(output_json_end(op, code, output_path(options) == NULL && output_is_answer(op)))) {
        return true;
    }
    complain("the object of --json could not be written to stdout: %s", strerror(errno));
    return false;
}

enum exit_code output_end(const struct options *options, const struct nonbis_policy *policy, const struct nonbis_op *op,
                          enum exit_code code)
{
    bool good = answer_show(options, policy, op);
    if (!good && code == EXIT_CODE_DONE) {
        code = EXIT_CODE_IN_PROGRESS;
    }
    if (!json_show(options, op, code) && code == EXIT_CODE_DONE) {
        code = EXIT_CODE_IN_PROGRESS;
    }
    return code;
}

enum exit_code output_refusal(const struct options *options, const char *what, const char *why, enum exit_code code)
{
    complain("%s: %s", what, why);
    if (option_is_given(options, OPTION_JSON)) {
        (void) output_json_print(output_json_refusal(why, code));
    }
    return code;
}
