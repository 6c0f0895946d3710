/* options.h - the one table of options, and the command line read against it. Help, completion, the man page and the tests go
 * by the table. The policy's options are not in it: they are asked of the library, by name, and so can never be missing. */
#ifndef NONBIS_CLI_OPTIONS_H
#define NONBIS_CLI_OPTIONS_H

#include "client-sdk/cli/command.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_id {
    OPTION_DATA,
    OPTION_HEADER,
    OPTION_KEY,
    OPTION_NO_KEY,
    OPTION_METHOD,
    OPTION_AUTH_FILE,
    OPTION_MAX_BODY,
    OPTION_NAME,
    OPTION_DRY_RUN,
    OPTION_URL,
    OPTION_STATUS_URL,
    OPTION_PROFILE,
    OPTION_NO_STATUS_CHECK,
    OPTION_JOURNAL,
    OPTION_OUTPUT,
    OPTION_INCLUDE,
    OPTION_JSON,
    OPTION_EVENTS,
    OPTION_EXPLAIN,
    OPTION_QUIET,
    OPTION_VERBOSE,
    OPTION_NO_PROGRESS,
    OPTION_CA_FILE,
    OPTION_CERT_FILE,
    OPTION_CERT_KEY,
    OPTION_UNIX_SOCKET,
    OPTION_PROXY,
    OPTION_USER_AGENT,
    OPTION_OLDER_THAN,
    OPTION_UNDECIDED,
    OPTION_CLIENTS,
    OPTION_RETRIES,
    OPTION_STRATEGY,
    OPTION_NO_PLOT,
    OPTION_SEED,
    OPTION_HELP,
    OPTION_COUNT
};

struct option_row {
    const char *name;
    char letter;          /* '\0': none */
    const char *argument; /* NULL: it takes none */
    unsigned commands;    /* mask of COMMAND_BIT */
    const char *help;
};

const struct option_row *option_at(enum option_id id);
/* Which commands take a policy option. */
unsigned option_policy_commands(enum nonbis_option option);

enum { OPTIONS_FIELDS_MAX = 100, OPTIONS_ARGUMENTS_MAX = 1000 };

/* The command line. Texts are those of argv. */
struct options {
    enum command_id command;
    const char *arguments[OPTIONS_ARGUMENTS_MAX];
    size_t argument_count;
    const char *values[OPTION_COUNT];       /* the last one given; NULL: not given. Of a flag: its name */
    unsigned given[OPTION_COUNT];           /* how often */
    const char *fields[OPTIONS_FIELDS_MAX]; /* -H, in their order */
    size_t field_count;
    const char *policy[NONBIS_OPTION_END]; /* by enum nonbis_option */
};

/* False: it said what is wrong. --help and --version become the commands of that name. */
bool options_read(struct options *options, int argc, char **argv);

bool option_is_given(const struct options *options, enum option_id id);

/* A number of an option within its range, else `*value` stays as it is. False: it said what is wrong. */
bool option_number(const struct options *options, enum option_id id, uint64_t least, uint64_t most, uint64_t *value);
/* The same of a duration ("500ms", "7d") and of a size ("16MiB"), read as the library reads them. */
bool option_duration_ms(const struct options *options, enum option_id id, int64_t *ms);
bool option_size(const struct options *options, enum option_id id, size_t *bytes);

#endif
