/* session.c - see session.h. */
#include "client-sdk/cli/session.h"

#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/nearest.h"
#include "client-sdk/cli/output.h"
#include "client-sdk/cli/shell.h"
#include "client-sdk/cli/signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A URL with a user in it is not shown: a password would be. */
static const char *shown_url(const char *url)
{
    return strchr(url, '@') != NULL ? "the URL" : url;
}

/* ---- policy ------------------------------------------------------------------------------------------------------- */

static enum exit_code profile_open(struct session *session, const char *name)
{
    int error = nonbis_policy_new(&session->policy, name);
    if (error != NONBIS_ERROR_NAME) {
        return exit_code_of_error(error);
    }
    struct nearest nearest;
    nearest_begin(&nearest, name);
    for (unsigned i = 0; nonbis_profile_name(i) != NULL; i++) {
        nearest_offer(&nearest, nonbis_profile_name(i));
    }
    complain("--profile \"%s\": there is no such profile%s%s%s; %s", name,
             nearest.best != NULL ? "; did you mean " : "", nearest.best != NULL ? nearest.best : "",
             nearest.best != NULL ? "?" : "", option_at(OPTION_PROFILE)->help);
    return EXIT_CODE_USAGE;
}

static enum exit_code policy_fill(struct session *session)
{
    const struct options *options = session->options;
    for (int i = 1; i < NONBIS_OPTION_END; i++) {
        const char *text = options->policy[i];
        if (text == NULL) {
            continue;
        }
        const char *name = nonbis_option_name((enum nonbis_option) i);
        int error = nonbis_policy_set_text(session->policy, name, text);
        if (error != NONBIS_OK) {
            complain("--%s \"%s\" is not possible: %s", name, text, nonbis_option_help((enum nonbis_option) i));
            return exit_code_of_error(error);
        }
    }
    if (!option_is_given(options, OPTION_NO_STATUS_CHECK)) {
        return EXIT_CODE_DONE;
    }
    if (options->policy[NONBIS_SERVER] != NULL && strcmp(options->policy[NONBIS_SERVER], "keyed") != 0) {
        complain("--no-status-check says --server keyed, and --server %s is given too", options->policy[NONBIS_SERVER]);
        return EXIT_CODE_USAGE;
    }
    return exit_code_of_error(nonbis_policy_set(session->policy, NONBIS_SERVER, NONBIS_SERVER_KEYED));
}

/* ---- client ------------------------------------------------------------------------------------------------------- */

static enum exit_code client_open(struct session *session)
{
    const char *why = NULL;
    int error = nonbis_policy_check(session->policy, &why);
    if (error != NONBIS_OK) {
        complain("%s; nothing was sent", why != NULL ? why : nonbis_error_text(error));
        return exit_code_of_error(error);
    }
    error = nonbis_client_new(&session->client, session->policy);
    if (error != NONBIS_OK) {
        complain("the client cannot be set up: %s; nothing was sent", nonbis_error_text(error));
    }
    return exit_code_of_error(error);
}

static enum exit_code client_texts(struct session *session)
{
    static const struct {
        enum option_id option;
        enum nonbis_client_text text;
    } texts[] = { { OPTION_CA_FILE, NONBIS_CLIENT_CA_FILE },   { OPTION_CERT_FILE, NONBIS_CLIENT_CERT_FILE },
                  { OPTION_CERT_KEY, NONBIS_CLIENT_KEY_FILE }, { OPTION_UNIX_SOCKET, NONBIS_CLIENT_UNIX_SOCKET },
                  { OPTION_PROXY, NONBIS_CLIENT_PROXY },       { OPTION_USER_AGENT, NONBIS_CLIENT_USER_AGENT } };
    char agent[64];
    (void) snprintf(agent, sizeof agent, "nonbis/%s", nonbis_version());
    int error = nonbis_client_set_text(session->client, NONBIS_CLIENT_USER_AGENT, agent);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && error == NONBIS_OK; i++) {
        const char *value = session->options->values[texts[i].option];
        error = value != NULL ? nonbis_client_set_text(session->client, texts[i].text, value) : NONBIS_OK;
        if (error != NONBIS_OK) {
            complain("--%s %s cannot be set: %s; nothing was sent", option_at(texts[i].option)->name, shown_url(value),
                     nonbis_error_text(error));
        }
    }
    return exit_code_of_error(error);
}

bool session_journal_path(const struct options *options, const char **path)
{
    const char *variable = getenv("NONBIS_JOURNAL");
    *path = options->values[OPTION_JOURNAL];
    if (*path == NULL && variable != NULL && variable[0] != '\0') {
        *path = variable;
    }
    return *path == NULL || strcmp(*path, "none") != 0;
}

static enum exit_code journal_open(struct session *session, enum session_journal wanted)
{
    const char *path = NULL;
    if (wanted == SESSION_JOURNAL_NEVER || !session_journal_path(session->options, &path)) {
        return EXIT_CODE_DONE;
    }
    int error = nonbis_client_use_journal(session->client, path);
    session->has_journal = error == NONBIS_OK;
    if (error == NONBIS_OK) {
        return EXIT_CODE_DONE;
    }
    const char *why = nonbis_client_message(session->client);
    why = why[0] != '\0' ? why : nonbis_error_text(error);
    if (wanted == SESSION_JOURNAL_MAY) {
        complain("warning: the journal cannot be used: %s; going on without it", why);
        return EXIT_CODE_DONE;
    }
    return output_refusal(session->options,
                          "the journal cannot be used, nothing was sent (--journal none does without)", why,
                          exit_code_of_error(error));
}

static int on_event(const struct nonbis_event *event, void *arg)
{
    struct session *session = arg;
    if (event->kind == NONBIS_EVENT_SENT) {
        signals_note_sent();
    }
    events_write(&session->events, event);
    progress_event(&session->progress, event);
    return 0;
}

enum exit_code session_open(struct session *session, const struct options *options, enum session_journal journal)
{
    *session = (struct session){ .options = options, .events = { .fd = -1 } };
    progress_init(&session->progress, options);
    bool good =
        fields_init(&session->fields, options) && events_open(&session->events, options) && output_check(options);
    enum exit_code code = good ? profile_open(session, options->values[OPTION_PROFILE]) : EXIT_CODE_USAGE;
    code = code == EXIT_CODE_DONE ? policy_fill(session) : code;
    code = code == EXIT_CODE_DONE ? client_open(session) : code;
    code = code == EXIT_CODE_DONE ? client_texts(session) : code;
    code = code == EXIT_CODE_DONE ? journal_open(session, journal) : code;
    if (code == EXIT_CODE_DONE) {
        nonbis_client_on_event(session->client, on_event, session);
    }
    return code;
}

void session_close(struct session *session)
{
    nonbis_client_free(session->client);
    nonbis_policy_free(session->policy);
    events_close(&session->events);
    fields_fini(&session->fields);
}

/* ---- a run -------------------------------------------------------------------------------------------------------- */

static bool status_url_put(const struct session *session, struct nonbis_op *op)
{
    const char *base = session->options->values[OPTION_STATUS_URL];
    if (base != NULL && nonbis_op_set_status_url(op, base) != NONBIS_OK) {
        complain("--status-url %s: wants http:// or https:// with a host, and no query; nothing was sent",
                 shown_url(base));
        return false;
    }
    return true;
}

bool session_dress(const struct session *session, struct nonbis_op *op, bool has_body)
{
    return status_url_put(session, op) && fields_put(&session->fields, op, has_body);
}

bool session_dress_lacking(const struct session *session, struct nonbis_op *op)
{
    return status_url_put(session, op) && fields_put_lacking(&session->fields, op);
}

static struct ending ending_of(const struct nonbis_op *op)
{
    unsigned attempts = nonbis_op_attempts(op);
    const struct nonbis_attempt *last = attempts > 0 ? nonbis_op_attempt(op, attempts - 1) : NULL;
    return (struct ending){ .outcome = nonbis_op_outcome(op),
                            .stop = nonbis_op_stop(op),
                            .final = nonbis_op_is_final(op),
                            .http_status = nonbis_op_http_status(op),
                            .marks = nonbis_op_marks(op),
                            .attempt = last != NULL ? last->result : "",
                            .local_error = nonbis_op_local_error(op),
                            .signal = signals_caught() };
}

/* The library did nothing: why, and how to go on where something is there already. */
enum exit_code session_refusal(const struct session *session, const struct nonbis_op *op, int error)
{
    const char *why = nonbis_op_message(op);
    enum exit_code code = output_refusal(session->options, nonbis_op_url(op),
                                         why[0] != '\0' ? why : nonbis_error_text(error), exit_code_of_error(error));
    if (error == NONBIS_ERROR_LACKS) {
        const char *key = nonbis_op_key(op);
        char word[SHELL_KEY];
        (void) shell_key_argument(word, key);
        if (key[0] == '-') {
            complain("to go on: nonbis resume -H '%s: VALUE' %s", nonbis_op_lacks(op, 0), word);
        } else {
            complain("to go on: nonbis resume %s -H '%s: VALUE'", word, nonbis_op_lacks(op, 0));
        }
    }
    return code;
}

int session_try(struct session *session, struct nonbis_op *op, session_deed *deed)
{
    signals_watch(op);
    progress_begin(&session->progress, op);
    int error = deed(op);
    progress_end(&session->progress);
    signals_watch(NULL);
    return error;
}

enum exit_code session_code(const struct nonbis_op *op, session_deed *deed)
{
    const struct ending ending = ending_of(op);
    return deed == nonbis_op_void ? exit_code_of_void(&ending) : exit_code_of(&ending);
}

/* The sentence about the end: always, unless all is well. */
static void tell_end(const struct nonbis_op *op, enum exit_code code, bool voiding)
{
    bool warned = (nonbis_op_marks(op) & (NONBIS_MARK_UNRECORDED | NONBIS_MARK_IGNORED)) != 0;
    if (voiding && nonbis_op_outcome(op) == NONBIS_COMPLETED) {
        complain("%s: too late, it was executed; nonbis wait tells its answer", nonbis_op_key(op));
    } else if (code != EXIT_CODE_DONE || warned) {
        complain("%s", nonbis_op_message(op));
    }
}

/* How to go on, where going on is what is left. */
static void advise(const struct session *session, const struct nonbis_op *op, enum exit_code code)
{
    const char *key = nonbis_op_key(op);
    bool open = code == EXIT_CODE_UNKNOWN || code == EXIT_CODE_IN_PROGRESS || code == EXIT_CODE_RETRY_LATER ||
                (code == EXIT_CODE_NOT_APPLIED && (nonbis_op_marks(op) & NONBIS_MARK_VOIDED) == 0);
    if (!open || key[0] == '\0') {
        return;
    }
    bool wait = code == EXIT_CODE_IN_PROGRESS;
    const char *secrets = fields_have_secrets(&session->fields) ? ", with its secret fields given again" : "";
    char word[SHELL_KEY], spelled[KEY_SPELLED], url[SHELL_URL];
    if (session->has_journal) {
        complain("to go on: nonbis %s %s%s", wait ? "wait" : "resume", shell_key_argument(word, key), secrets);
    } else if (wait) {
        complain("to go on: nonbis wait --url %s %s%s", shell_word(url, sizeof url, nonbis_op_url(op)),
                 shell_key_argument(word, key_spelled(spelled, key)), secrets);
    } else {
        complain("to go on: the same command with -k %s", shell_key_spelled(word, key));
    }
}

enum exit_code session_tell(const struct session *session, const struct nonbis_op *op, session_deed *deed)
{
    enum exit_code code = output_end(session->options, session->policy, op, session_code(op, deed));
    tell_end(op, code, deed == nonbis_op_void);
    advise(session, op, code);
    return code;
}

enum exit_code session_run(struct session *session, struct nonbis_op *op, session_deed *deed)
{
    int error = session_try(session, op, deed);
    return error != NONBIS_OK ? session_refusal(session, op, error) : session_tell(session, op, deed);
}
