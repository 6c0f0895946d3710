/* query.c - `nonbis status|wait|void KEY`: commands that know only a key. Where the server is says --url, else the journal, else
 * NONBIS_URL. */
#include "client-sdk/cli/command.h"
#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/key.h"
#include "client-sdk/cli/lookup.h"
#include "client-sdk/cli/output.h"
#include "client-sdk/cli/output_json.h"
#include "client-sdk/cli/printable.h"
#include "client-sdk/cli/session.h"
#include "client-sdk/cli/shell.h"
#include "client-sdk/cli/signals.h"
#include "common/http_time.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which operation ---------------------------------------------------------------------------------------------- */

/* A key that is in the journal is meant as it stands there. */
static enum exit_code op_for_url(const struct session *session, const struct lookup *found, const char *url,
                                 const char *named_by, struct nonbis_op **op)
{
    char spelled[KEY_SPELLED];
    const char *key = session->options->arguments[0];
    key = found->there ? key_spelled(spelled, key) : key;
    int error = nonbis_op_new_for_key(op, session->client, url, key);
    if (error == NONBIS_ERROR_KEY) {
        complain("\"%s\" can be no key: %s", key, key_why_not(key));
    } else if (error == NONBIS_ERROR_URL) {
        complain("%s names no server: it wants http:// or https:// with a host, and no user:password@", named_by);
    } else if (error != NONBIS_OK) {
        complain("the question cannot be made: %s", nonbis_error_text(error));
    }
    return exit_code_of_error(error);
}

/* The journal's operation while it is undecided, so that the journal learns how it ends. Of a decided one only the server is
 * taken: what the journal knows of its end may be less than the server knows. */
static enum exit_code op_of_journal(const struct session *session, const struct lookup *found, struct nonbis_op **op)
{
    const char *key = session->options->arguments[0];
    if (found->decided) {
        return op_for_url(session, found, found->url, "the journal", op);
    }
    int error = nonbis_op_open(op, session->client, key);
    if (error == NONBIS_ERROR_LOCKED) {
        complain("another process works on this key; asking beside it");
        return op_for_url(session, found, found->url, "the journal", op);
    }
    if (error != NONBIS_OK) {
        const char *why = nonbis_client_message(session->client);
        complain("the journal's entry of this key: %s", why[0] != '\0' ? why : nonbis_error_text(error));
    }
    return exit_code_of_error(error);
}

static enum exit_code op_find(const struct session *session, struct lookup *found, struct nonbis_op **op)
{
    const char *url = session->options->values[OPTION_URL], *variable = getenv("NONBIS_URL");
    const char *key = session->options->arguments[0];
    int error = session->has_journal ? lookup_key(found, session->client, key) : NONBIS_OK;
    if (error != NONBIS_OK && url == NULL) {
        complain("the journal: %s", nonbis_client_message(session->client));
        return exit_code_of_error(error);
    }
    if (url != NULL) {
        return op_for_url(session, found, url, "--url", op);
    }
    if (found->fault != NULL) {
        complain("the journal's entry of this key cannot be read, so --url must name the server: %s", found->fault);
        return EXIT_CODE_JOURNAL;
    }
    if (found->url != NULL) {
        return op_of_journal(session, found, op);
    }
    if (variable != NULL && variable[0] != '\0') {
        return op_for_url(session, found, variable, "NONBIS_URL", op);
    }
    complain("%s \"%s\": the journal has no such key, and neither --url nor NONBIS_URL names a server",
             command_at(session->options->command)->name, key);
    return EXIT_CODE_USAGE;
}

/* ---- status ------------------------------------------------------------------------------------------------------- */

/* "name       text"; what the server says must not play with the terminal. */
static void print_row(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void print_row(const char *name, const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    (void) vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printable_clean(text, strlen(text), false);
    printf("%-10s %s\n", name, text);
}

static void print_time(const char *name, int64_t wall_ms)
{
    char text[RFC3339_BYTES];
    if (wall_ms != 0) {
        rfc3339_write(wall_ms, text);
        print_row(name, "%s", text);
    }
}

static void print_seen(const struct nonbis_status *status)
{
    print_row("state", "%s%s%s", status->state, status->cause[0] != '\0' ? ", because of " : "", status->cause);
    print_row("executed", "%s (%lld execution%s, %lld replay%s)", status->executed, (long long) status->executions,
              status->executions == 1 ? "" : "s", (long long) status->replays, status->replays == 1 ? "" : "s");
    if (status->request_method[0] != '\0') {
        print_row("request", "%s %s", status->request_method, status->request_target);
    }
    if (status->response_status != 0) {
        print_row("response", "%d, %lld bytes, %s", status->response_status, (long long) status->response_length,
                  status->response_kept ? "kept" : "body not kept");
    }
    print_time("created", status->created_ms);
    print_time("ended", status->completed_ms); /* also of a command that is unknown or voided */
    print_time("expires", status->expires_ms);
    print_row("id", "%s", status->id);
}

static enum exit_code print_status(const struct options *options, const struct nonbis_op *op,
                                   const struct nonbis_status *status, enum exit_code code)
{
    if (option_is_given(options, OPTION_JSON)) {
        if (!output_json_print(output_json_status(op, status, code))) {
            complain("the object of --json could not be written to stdout: %s", strerror(errno));
            return EXIT_CODE_INTERNAL;
        }
        return code;
    }
    if (!status->answered) {
        complain("%s", nonbis_op_message(op));
        return code;
    }
    print_row("key", "%s", nonbis_op_key(op));
    if (status->seen) {
        print_seen(status);
    } else {
        print_row("state", "not seen%s",
                  code == EXIT_CODE_EXPIRED ? "; it was sent before the server's memory begins: reconcile by hand"
                                            : ", which is not never: nonbis void makes it certain");
        print_time("remembers", status->window_start_ms);
    }
    return fflush(stdout) == 0 ? code : EXIT_CODE_INTERNAL;
}

static enum exit_code ask_once(struct session *session, struct nonbis_op *op, const struct lookup *found)
{
    const struct nonbis_status *status = NULL;
    bool sent = found->there && (found->sent || found->decided);
    signals_watch(op);
    int error = nonbis_op_status(op, &status);
    signals_watch(NULL);
    if (error != NONBIS_OK) {
        return output_refusal(session->options, nonbis_op_url(op), nonbis_error_text(error), exit_code_of_error(error));
    }
    return print_status(session->options, op, status, exit_code_of_status(status, sent ? found->created_ms : 0));
}

/* ---- commands ----------------------------------------------------------------------------------------------------- */

static enum exit_code query(const struct options *options, int (*run)(struct nonbis_op *op))
{
    struct session session;
    struct nonbis_op *op = NULL;
    struct lookup found = { .there = false };
    bool other_way = option_is_given(options, OPTION_URL) || getenv("NONBIS_URL") != NULL;
    enum exit_code code = session_open(&session, options, other_way ? SESSION_JOURNAL_MAY : SESSION_JOURNAL_MUST);
    code = code == EXIT_CODE_DONE ? op_find(&session, &found, &op) : code;
    if (code == EXIT_CODE_DONE && !session_dress(&session, op, false)) {
        code = EXIT_CODE_USAGE;
    }
    if (code == EXIT_CODE_DONE) {
        code = run == NULL ? ask_once(&session, op, &found) : session_run(&session, op, run);
    }
    nonbis_op_free(op);
    lookup_fini(&found);
    session_close(&session);
    return code;
}

enum exit_code query_status_run(const struct options *options)
{
    return query(options, NULL);
}

enum exit_code query_wait_run(const struct options *options)
{
    return query(options, nonbis_op_wait);
}

enum exit_code query_void_run(const struct options *options)
{
    return query(options, nonbis_op_void);
}
