/* post.c - `nonbis post`: one intent, one key, to its end. */
#include "client-sdk/cli/body.h"
#include "client-sdk/cli/command.h"
#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/dry_run.h"
#include "client-sdk/cli/key.h"
#include "client-sdk/cli/output.h"
#include "client-sdk/cli/session.h"

#include <stdio.h>
#include <string.h>

/* A URL with a user in it is not shown: a password would be. */
static const char *shown_url(const char *url)
{
    return strchr(url, '@') != NULL ? "the URL" : url;
}

static enum exit_code complain_of_making(const struct options *options, int error)
{
    if (error == NONBIS_ERROR_URL) {
        complain("%s cannot be sent to: %s; nothing was sent", shown_url(options->arguments[0]),
                 "it wants http:// or https:// with a host, and no user:password@ (--auth-file is for secrets)");
    } else {
        complain("the request cannot be made: %s; nothing was sent", nonbis_error_text(error));
    }
    return exit_code_of_error(error);
}

static enum exit_code complain_of_key(const char *key)
{
    const char *why = key_why_not(key);
    complain("-k \"%s\" can be no key: %s; nothing was sent", key,
             why != NULL ? why : nonbis_error_text(NONBIS_ERROR_KEY));
    return EXIT_CODE_USAGE;
}

static enum exit_code key_put(const struct options *options, struct nonbis_op *op)
{
    const char *key = options->values[OPTION_KEY];
    if (option_is_given(options, OPTION_NO_KEY)) {
        if (key != NULL) {
            complain("-k and --no-key contradict each other; nothing was sent");
            return EXIT_CODE_USAGE;
        }
        return exit_code_of_error(nonbis_op_set_key(op, NULL));
    }
    return key == NULL || nonbis_op_set_key(op, key) == NONBIS_OK ? EXIT_CODE_DONE : complain_of_key(key);
}

static enum exit_code method_and_name_put(const struct options *options, struct nonbis_op *op)
{
    const char *method = options->values[OPTION_METHOD], *name = options->values[OPTION_NAME];
    if (method != NULL && nonbis_op_set_method(op, method) != NONBIS_OK) {
        complain("-X \"%s\": a method has up to 32 capital letters; nothing was sent", method);
        return EXIT_CODE_USAGE;
    }
    if (method != NULL && option_is_given(options, OPTION_DATA) && !body_goes_with(method)) {
        complain("-X %s: such a request is sent without a body, and -d gives one; nothing was sent", method);
        return EXIT_CODE_USAGE;
    }
    return name != NULL ? exit_code_of_error(nonbis_op_set_name(op, name)) : EXIT_CODE_DONE;
}

/* Everything that the operation carries, in the order in which mistakes are told. */
static enum exit_code op_make(const struct session *session, const struct buf *body, struct nonbis_op **op)
{
    const struct options *options = session->options;
    int error = nonbis_op_new(op, session->client, options->arguments[0], body->ptr, body->len);
    if (error != NONBIS_OK) {
        return complain_of_making(options, error);
    }
    enum exit_code code = key_put(options, *op);
    code = code == EXIT_CODE_DONE ? method_and_name_put(options, *op) : code;
    return code == EXIT_CODE_DONE && !session_dress(session, *op, body->len > 0) ? EXIT_CODE_USAGE : code;
}

/* ---- a key that the journal has already --------------------------------------------------------------------------- */

static bool texts_differ(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") != 0;
}

/* The first part of the request that is another one, as a server compares them (contract 3.7); NULL: it is the same. */
static const char *difference(const struct nonbis_op *a, const struct nonbis_op *b)
{
    size_t a_len = 0, b_len = 0;
    const void *a_body = nonbis_op_request_body(a, &a_len), *b_body = nonbis_op_request_body(b, &b_len);
    if (texts_differ(nonbis_op_method(a), nonbis_op_method(b))) {
        return "method";
    }
    if (texts_differ(nonbis_op_url(a), nonbis_op_url(b))) {
        return "URL";
    }
    static const char *const fields[] = { "Content-Type", "Content-Encoding" };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (texts_differ(nonbis_op_request_field(a, fields[i]), nonbis_op_request_field(b, fields[i]))) {
            return fields[i];
        }
    }
    return a_len != b_len || (a_len > 0 && memcmp(a_body, b_body, a_len) != 0) ? "body" : NULL;
}

static enum exit_code complain_of_reuse(const struct session *session, const struct nonbis_op *op, const char *part)
{
    char why[512];
    (void) snprintf(
        why, sizeof why,
        "the journal has the key %s for another request: the %s is another one; a new intent needs a new key; "
        "nothing was sent",
        nonbis_op_key(op), part);
    return output_refusal(session->options, nonbis_op_url(op), why, EXIT_CODE_KEY_REUSED);
}

/* The same request is gone on with, from where it stands; another one is refused. `*op` is then the journal's. */
static enum exit_code go_on_from_journal(struct session *session, struct nonbis_op **op)
{
    struct nonbis_op *there = NULL;
    int error = nonbis_op_open(&there, session->client, nonbis_op_key(*op));
    if (error != NONBIS_OK) {
        const char *why = nonbis_client_message(session->client);
        return output_refusal(session->options, nonbis_op_url(*op), why[0] != '\0' ? why : nonbis_error_text(error),
                              exit_code_of_error(error));
    }
    const char *part = difference(there, *op);
    if (part != NULL) {
        nonbis_op_free(there);
        return complain_of_reuse(session, *op, part);
    }
    nonbis_op_free(*op);
    *op = there;
    if (session->options->given[OPTION_QUIET] == 0) {
        complain("the journal has this request already (%s); going on with it",
                 nonbis_op_outcome(there) != 0 ? nonbis_outcome_name(nonbis_op_outcome(there)) : "begun");
    }
    return session_dress(session, there, false) ? session_run(session, there, nonbis_op_run) : EXIT_CODE_USAGE;
}

static enum exit_code op_send(struct session *session, struct nonbis_op **op)
{
    const char *key = nonbis_op_key(*op);
    if (session->options->given[OPTION_QUIET] < 2 && key[0] != '\0') {
        complain("key %s", key);
    }
    int error = session_try(session, *op, nonbis_op_run);
    if (error == NONBIS_ERROR_EXISTS) {
        return go_on_from_journal(session, op);
    }
    return error != NONBIS_OK ? session_refusal(session, *op, error) : session_tell(session, *op, nonbis_op_run);
}

enum exit_code post_run(const struct options *options)
{
    struct session session;
    struct buf body;
    struct nonbis_op *op = NULL;
    bool dry = option_is_given(options, OPTION_DRY_RUN);
    buf_init(&body, 0);
    enum exit_code code = session_open(&session, options, dry ? SESSION_JOURNAL_NEVER : SESSION_JOURNAL_MUST);
    if (code == EXIT_CODE_DONE && !body_read(options, &body)) {
        code = EXIT_CODE_USAGE;
    }
    code = code == EXIT_CODE_DONE ? op_make(&session, &body, &op) : code;
    if (code == EXIT_CODE_DONE) {
        code = dry ? dry_run_print(&session, op, &body) : op_send(&session, &op);
    }
    nonbis_op_free(op);
    session_close(&session);
    buf_fini(&body);
    return code;
}
