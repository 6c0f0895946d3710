/* command.h - the table of commands: what `nonbis` can be told to do. Help, completion and main go by it. */
#ifndef NONBIS_CLI_COMMAND_H
#define NONBIS_CLI_COMMAND_H

#include "client-sdk/cli/exit_code.h"

struct options;

enum command_id {
    COMMAND_POST,
    COMMAND_STATUS,
    COMMAND_WAIT,
    COMMAND_VOID,
    COMMAND_RESUME,
    COMMAND_JOURNAL,
    COMMAND_KEY,
    COMMAND_SIM,
    COMMAND_VERSION,
    COMMAND_COMPLETION,
    COMMAND_HELP,
    COMMAND_COUNT
};

/* For masks: which commands an option belongs to. */
#define COMMAND_BIT(id) (1U << (unsigned) (id))
#define COMMANDS_QUERY (COMMAND_BIT(COMMAND_STATUS) | COMMAND_BIT(COMMAND_WAIT) | COMMAND_BIT(COMMAND_VOID))
#define COMMANDS_RUN (COMMAND_BIT(COMMAND_POST) | COMMANDS_QUERY | COMMAND_BIT(COMMAND_RESUME)) /* they need a client */
#define COMMANDS_ALL ((1U << (unsigned) COMMAND_COUNT) - 1U)

struct command {
    const char *name, *arguments, *summary;
    const char *words;  /* what the first argument may be, for completion; "" : anything */
    const char *about;  /* paragraphs for `help NAME` */
    size_t least, most; /* arguments */
    enum exit_code (*run)(const struct options *options);
};

const struct command *command_at(enum command_id id);
/* NULL when there is none of that name. */
const struct command *command_find(const char *name, enum command_id *id);

/* One per file. */
enum exit_code post_run(const struct options *options);
enum exit_code query_status_run(const struct options *options);
enum exit_code query_wait_run(const struct options *options);
enum exit_code query_void_run(const struct options *options);
enum exit_code resume_run(const struct options *options);
enum exit_code journal_run(const struct options *options);
enum exit_code key_run(const struct options *options);
enum exit_code sim_run(const struct options *options);
enum exit_code version_run(const struct options *options);
enum exit_code completion_run(const struct options *options);
enum exit_code help_run(const struct options *options);

#endif
