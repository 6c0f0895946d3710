/* resume.c - `nonbis resume`: goes on with what a crash, a deadline or a signal left undecided; always with the key that the
 * journal has. */
#include "client-sdk/cli/command.h"
#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/lookup.h"
#include "client-sdk/cli/output.h"
#include "client-sdk/cli/output_json.h"
#include "client-sdk/cli/printable.h"
#include "client-sdk/cli/session.h"
#include "client-sdk/cli/signals.h"

#include <stdio.h>
#include <string.h>

/* One line of a list: "KEY completed done 201 POST URL", or an object. */
static bool print_one(const struct options *options, const struct nonbis_op *op, enum exit_code code)
{
    if (option_is_given(options, OPTION_JSON)) {
        return output_json_print(output_json_end(op, code, true));
    }
    char url[8192];
    return printf("%s %s %s %d %s %s\n", nonbis_op_key(op), nonbis_outcome_name(nonbis_op_outcome(op)),
                  nonbis_stop_name(nonbis_op_stop(op)), nonbis_op_http_status(op), nonbis_op_method(op),
                  printable_copy(url, sizeof url, nonbis_op_url(op))) > 0 &&
           fflush(stdout) == 0;
}

static enum exit_code run_one_of_many(struct session *session, struct nonbis_op *op)
{
    enum exit_code code = EXIT_CODE_USAGE;
    if (session_dress_lacking(session, op)) {
        int error = session_try(session, op, nonbis_op_run);
        code = error != NONBIS_OK ? session_refusal(session, op, error) : session_code(op, nonbis_op_run);
        if (error == NONBIS_OK && !print_one(session->options, op, code)) {
            complain("stdout takes no more lines; going on without");
        }
        if (error == NONBIS_OK && code != EXIT_CODE_DONE) {
            complain("%s", nonbis_op_message(op));
        }
    }
    nonbis_op_free(op);
    return code;
}

static enum exit_code complain_of_journal(const struct session *session, const char *key, int error)
{
    const char *why = nonbis_client_message(session->client);
    complain("%s%s%s", key, key[0] != '\0' ? ": " : "the journal: ", why[0] != '\0' ? why : nonbis_error_text(error));
    return exit_code_of_error(error);
}

/* Entries that cannot be read are told of behind the others, each once; an error that comes again is the whole journal's. */
static enum exit_code resume_all(struct session *session)
{
    enum exit_code worst = EXIT_CODE_DONE;
    char last[512] = "";
    while (signals_caught() == 0) {
        struct nonbis_op *op = NULL;
        int error = nonbis_client_resume(session->client, &op);
        if (error == NONBIS_END) {
            return worst;
        }
        if (error != NONBIS_OK) {
            const char *why = nonbis_client_message(session->client);
            bool other = error == NONBIS_ERROR_JOURNAL && strncmp(why, last, sizeof last - 1) != 0;
            worst = exit_code_worse(worst, other || last[0] == '\0' ? complain_of_journal(session, "", error)
                                                                    : exit_code_of_error(error));
            if (!other) {
                return worst;
            }
            (void) snprintf(last, sizeof last, "%s", why);
            continue;
        }
        worst = exit_code_worse(worst, run_one_of_many(session, op));
    }
    return exit_code_worse(worst, (enum exit_code)(128 + signals_caught()));
}

/* Decided, and so nothing to go on with. Completed is the exception: its answer can be fetched once more. */
static bool is_over(const struct session *session, const char *key, enum exit_code *code)
{
    struct lookup found;
    bool over = lookup_key(&found, session->client, key) == NONBIS_OK && found.decided && found.fault == NULL &&
                found.outcome != NONBIS_COMPLETED;
    if (over) {
        const struct ending ending = { .outcome = found.outcome,
                                       .stop = found.stop,
                                       .final = 1,
                                       .http_status = found.http_status,
                                       .attempt = "",
                                       .local_error = NONBIS_ERROR_TRANSPORT };
        *code = exit_code_of(&ending);
        complain("%s: the journal has it as decided: %s (%s)%s", key, nonbis_outcome_name(found.outcome),
                 nonbis_stop_name(found.stop),
                 found.outcome == NONBIS_NOT_SENT ? "; to send it after all: nonbis post" : "");
    }
    lookup_fini(&found);
    return over;
}

static enum exit_code resume_one(struct session *session, const char *key, bool alone)
{
    struct nonbis_op *op = NULL;
    enum exit_code code = EXIT_CODE_DONE;
    if (is_over(session, key, &code)) {
        return code;
    }
    int error = nonbis_op_open(&op, session->client, key);
    if (error != NONBIS_OK) {
        return complain_of_journal(session, key, error);
    }
    if (!alone) {
        return run_one_of_many(session, op);
    }
    code = session_dress(session, op, false) ? session_run(session, op, nonbis_op_run) : EXIT_CODE_USAGE;
    nonbis_op_free(op);
    return code;
}

static enum exit_code resume_named(struct session *session)
{
    const struct options *options = session->options;
    enum exit_code worst = EXIT_CODE_DONE;
    for (size_t i = 0; i < options->argument_count && signals_caught() == 0; i++) {
        worst = exit_code_worse(worst, resume_one(session, options->arguments[i], options->argument_count == 1));
    }
    return worst;
}

enum exit_code resume_run(const struct options *options)
{
    struct session session;
    if (option_is_given(options, OPTION_OUTPUT) && options->argument_count != 1) {
        complain("resume: -o FILE takes one answer, and so wants one KEY");
        return EXIT_CODE_USAGE;
    }
    enum exit_code code = session_open(&session, options, SESSION_JOURNAL_MUST);
    if (code == EXIT_CODE_DONE && !session.has_journal) {
        complain("resume --journal none: there is nothing to resume");
        code = EXIT_CODE_USAGE;
    }
    if (code == EXIT_CODE_DONE) {
        code = options->argument_count > 0 ? resume_named(&session) : resume_all(&session);
    }
    session_close(&session);
    return code;
}
