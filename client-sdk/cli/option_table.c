/* option_table.c - the table of options.h. Its order is that of --help. */
#include "client-sdk/cli/options.h"

#define POST COMMAND_BIT(COMMAND_POST)
#define QUERY COMMANDS_QUERY
#define RUN COMMANDS_RUN
#define WAIT COMMAND_BIT(COMMAND_WAIT)
#define RESUME COMMAND_BIT(COMMAND_RESUME)
#define JOURNAL COMMAND_BIT(COMMAND_JOURNAL)
#define SIM COMMAND_BIT(COMMAND_SIM)
#define RUNS_ON (RUN & ~COMMAND_BIT(COMMAND_STATUS)) /* those that decide, and so have something to tell on their way */

static const struct option_row rows[OPTION_COUNT] = {
    [OPTION_DATA] = { "data", 'd', "DATA", POST,
                      "the body: a text, @FILE, or @- for stdin, which is read whole first" },
    [OPTION_HEADER] = { "header", 'H', "'NAME: VALUE'", RUN,
                        "a request field; those that smell of secrets are never put into the journal" },
    [OPTION_KEY] = { "key", 'k', "KEY", POST, "this Idempotency-Key instead of a new one" },
    [OPTION_NO_KEY] = { "no-key", '\0', NULL, POST, "no key: exactly one attempt, and no journal" },
    [OPTION_METHOD] = { "method", 'X', "METHOD", POST, "another method than POST" },
    [OPTION_AUTH_FILE] = { "auth-file", '\0', "FILE", RUN,
                           "request fields, one a line, that are never stored or shown" },
    [OPTION_MAX_BODY] = { "max-body", '\0', "SIZE", POST, "largest body that is read (16MiB)" },
    [OPTION_NAME] = { "name", '\0', "WORD", POST, "a word for events and the journal, not sent" },
    [OPTION_DRY_RUN] = { "dry-run", '\0', NULL, POST, "print the request and the times of its attempts, send nothing" },
    [OPTION_URL] = { "url", '\0', "URL", QUERY, "any URL of the server (else: the journal, then NONBIS_URL)" },
    [OPTION_STATUS_URL] = { "status-url", '\0', "URL", RUN, "where /_nonbis/v1 is, when not at the origin of the URL" },
    [OPTION_PROFILE] = { "profile", '\0', "NAME", RUN,
                         "interactive, standard (default), batch, read, background, unkeyed, keyed, reconnect" },
    [OPTION_NO_STATUS_CHECK] = { "no-status-check", '\0', NULL, RUN, "never ask for the status: --server keyed" },
    [OPTION_JOURNAL] = { "journal", '\0', "DIR|none", RUN | JOURNAL,
                         "where keys outlive a crash (NONBIS_JOURNAL, else ~/.local/state/nonbis/journal)" },
    [OPTION_OUTPUT] = { "output", 'o', "FILE", POST | WAIT | RESUME,
                        "the final answer goes to FILE, in one step, or FILE stays as it is" },
    [OPTION_INCLUDE] = { "include", 'i', NULL, POST | WAIT | RESUME, "the answer's status and fields before its body" },
    [OPTION_JSON] = { "json", '\0', NULL, RUN | JOURNAL | SIM, "one JSON object on stdout (journal ls: one a line)" },
    [OPTION_EVENTS] = { "events", '\0', "FILE|fd:N", RUN, "a line of JSON for every attempt and decision" },
    [OPTION_EXPLAIN] = { "explain", '\0', NULL, RUNS_ON, "why each decision was taken, on stderr" },
    [OPTION_QUIET] = { "quiet", 'q', NULL, RUN, "no line per decision; -qq: errors only, not even the key" },
    [OPTION_VERBOSE] = { "verbose", 'v', NULL, RUN, "a line on stderr for everything that happens" },
    [OPTION_NO_PROGRESS] = { "no-progress", '\0', NULL, RUNS_ON, "on a terminal too, lines instead of a countdown" },
    [OPTION_CA_FILE] = { "cacert", '\0', "FILE", RUN, "certificates to trust, PEM, instead of the system's" },
    [OPTION_CERT_FILE] = { "cert", '\0', "FILE", RUN, "own certificate, PEM" },
    [OPTION_CERT_KEY] = { "cert-key", '\0', "FILE", RUN, "its private key, PEM" },
    [OPTION_UNIX_SOCKET] = { "unix-socket", '\0', "PATH", RUN, "connect to this socket instead of the URL's host" },
    [OPTION_PROXY] = { "proxy", '\0', "URL", RUN,
                       "a proxy; the environment's are not used, since they may send again" },
    [OPTION_USER_AGENT] = { "user-agent", '\0', "TEXT", RUN, "User-Agent (nonbis/VERSION)" },
    [OPTION_OLDER_THAN] = { "older-than", '\0', "DURATION", JOURNAL, "prune: what was changed last before that (7d)" },
    [OPTION_UNDECIDED] = { "undecided", '\0', NULL, JOURNAL, "ls: only those; prune: those too" },
    [OPTION_CLIENTS] = { "clients", '\0', "N", SIM, "how many (1000)" },
    [OPTION_RETRIES] = { "retries", '\0', "N", SIM, "retries of each (4)" },
    [OPTION_STRATEGY] = { "strategy", '\0', "NAME", SIM,
                          "one of immediate, fixed, exponential, equal, full, decorrelated (all of them)" },
    [OPTION_NO_PLOT] = { "no-plot", '\0', NULL, SIM, "the table only" },
    [OPTION_SEED] = { "seed", '\0', "N", SIM, "the same chances again" },
    [OPTION_HELP] = { "help", 'h', NULL, COMMANDS_ALL, "tell about the command" },
};

const struct option_row *option_at(enum option_id id)
{
    return &rows[id];
}

unsigned option_policy_commands(enum nonbis_option option)
{
    return RUN | (option == NONBIS_BASE_MS || option == NONBIS_CAP_MS ? SIM : 0);
}
