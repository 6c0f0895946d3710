/* session.h - what every command that talks to a server needs: policy, client, journal, fields, events, progress; and one run
 * within it. */
#ifndef NONBIS_CLI_SESSION_H
#define NONBIS_CLI_SESSION_H

#include "client-sdk/cli/events.h"
#include "client-sdk/cli/fields.h"
#include "client-sdk/cli/options.h"
#include "client-sdk/cli/progress.h"

struct session {
    const struct options *options;
    struct nonbis_policy *policy;
    struct nonbis_client *client;
    struct fields fields;
    struct events events;
    struct progress progress;
    bool has_journal;
};

enum session_journal {
    SESSION_JOURNAL_MUST,  /* what cannot be kept is not sent */
    SESSION_JOURNAL_MAY,   /* another way to the server is known: a journal that cannot be read is only told */
    SESSION_JOURNAL_NEVER, /* not touched */
};

/* Not EXIT_CODE_DONE: it said what is wrong. close either way. */
enum exit_code session_open(struct session *session, const struct options *options, enum session_journal journal);
void session_close(struct session *session);

/* The journal's folder as the user named it: a path, NULL for the default place. False: none is wanted. */
bool session_journal_path(const struct options *options, const char **path);

/* -H, --auth-file, --status-url. False: it said what is wrong. */
bool session_dress(const struct session *session, struct nonbis_op *op, bool has_body);
/* The same for one of many: only the fields that it lacks. */
bool session_dress_lacking(const struct session *session, struct nonbis_op *op);

/* nonbis_op_run, _wait or _void. */
typedef int session_deed(struct nonbis_op *op);

/* One run with signals, progress and events; then answer, sentence and exit code. */
enum exit_code session_run(struct session *session, struct nonbis_op *op, session_deed *deed);

/* The same in steps, for those that look at the error first, or tell the end otherwise. */
int session_try(struct session *session, struct nonbis_op *op, session_deed *deed);
enum exit_code session_refusal(const struct session *session, const struct nonbis_op *op, int error);
enum exit_code session_code(const struct nonbis_op *op, session_deed *deed);
enum exit_code session_tell(const struct session *session, const struct nonbis_op *op, session_deed *deed);

#endif
