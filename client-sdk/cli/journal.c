/* journal.c - `nonbis journal ls|show|prune`: looks at the journal, and clears it of what is decided. */
#include "client-sdk/cli/command.h"
#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/explain.h"
#include "client-sdk/cli/options.h"
#include "client-sdk/cli/output_json.h"
#include "client-sdk/cli/printable.h"
#include "client-sdk/cli/session.h"
#include "common/http_time.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WEEK_MS = 7 * 86400000, SHOWN_BYTES = 8192 };

static enum exit_code complain_of_journal(struct nonbis_client *client, int error)
{
    const char *why = nonbis_client_message(client);
    complain("the journal: %s", why[0] != '\0' ? why : nonbis_error_text(error));
    return exit_code_of_error(error);
}

/* ---- ls ----------------------------------------------------------------------------------------------------------- */

struct listing {
    const struct options *options;
    int64_t now_ms;
    const char *wanted_key; /* NULL: all */
    size_t told;
    bool failed; /* stdout takes no more */
};

static void age_text(int64_t ms, char out[EXPLAIN_TIME])
{
    static const struct {
        int64_t ms;
        char letter;
    } units[] = { { 86400000, 'd' }, { 3600000, 'h' }, { 60000, 'm' }, { 1000, 's' } };
    (void) snprintf(out, EXPLAIN_TIME, "0s");
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (ms >= units[i].ms) {
            (void) snprintf(out, EXPLAIN_TIME, "%lld%c", (long long) (ms / units[i].ms), units[i].letter);
            return;
        }
    }
}

/* One line: state, age, how the last run ended, key, request. */
static bool print_line(const struct listing *listing, const struct nonbis_journal_entry *entry)
{
    char age[EXPLAIN_TIME], status[16] = "-", rest[SHOWN_BYTES];
    age_text(listing->now_ms - entry->created_wall_ms, age);
    if (entry->http_status != 0) {
        (void) snprintf(status, sizeof status, "%d", entry->http_status);
    }
    (void) snprintf(rest, sizeof rest, "%s %s %s%s", entry->key, entry->method, entry->url,
                    entry->locked ? " (at work)" : "");
    printable_clean(rest, strlen(rest), false);
    return printf("%-5s %5s %-12s %-3s %s\n", entry->state, age,
                  entry->outcome != 0 ? nonbis_outcome_name(entry->outcome) : "-", status, rest) > 0;
}

static void print_time(const char *name, int64_t wall_ms)
{
    char text[RFC3339_BYTES];
    rfc3339_write(wall_ms, text);
    printf("%-9s %s\n", name, text);
}

static bool print_entry(const struct nonbis_journal_entry *entry)
{
    char shown[SHOWN_BYTES], request[SHOWN_BYTES];
    printf("%-9s %s\n%-9s %s%s\n", "key", printable_copy(shown, sizeof shown, entry->key), "state", entry->state,
           entry->locked ? ", another process works on it" : "");
    if (entry->fault != NULL) {
        printf("%-9s %s\n", "fault", printable_copy(shown, sizeof shown, entry->fault));
        return ferror(stdout) == 0;
    }
    (void) snprintf(request, sizeof request, "%s %s", entry->method, entry->url);
    printf("%-9s %s\n%-9s %zu bytes\n", "request", printable_copy(shown, sizeof shown, request), "body",
           entry->body_len);
    print_time("created", entry->created_wall_ms);
    print_time("changed", entry->changed_wall_ms);
    if (entry->outcome != 0) {
        printf("%-9s %s (%s)\n", "outcome", nonbis_outcome_name(entry->outcome), nonbis_stop_name(entry->stop));
    }
    if (entry->http_status != 0) {
        printf("%-9s %d\n", "answer", entry->http_status);
    }
    return ferror(stdout) == 0;
}

static int on_entry(const struct nonbis_journal_entry *entry, void *arg)
{
    struct listing *listing = arg;
    bool undecided = strcmp(entry->state, "done") != 0, good = true;
    if (listing->wanted_key != NULL ? strcmp(listing->wanted_key, entry->key) != 0
                                    : option_is_given(listing->options, OPTION_UNDECIDED) && !undecided) {
        return 0;
    }
    listing->told++;
    if (option_is_given(listing->options, OPTION_JSON)) {
        good = output_json_print(output_json_entry(entry));
        if (!good && errno != EPIPE) {
            complain("the list could not be written to stdout: %s", strerror(errno));
        }
    } else {
        good = listing->wanted_key != NULL ? print_entry(entry) : print_line(listing, entry);
    }
    listing->failed = !good;
    return good && listing->wanted_key == NULL ? 0 : 1;
}

static enum exit_code journal_list(const struct options *options, struct nonbis_client *client, const char *key)
{
    struct listing listing = { .options = options, .wanted_key = key, .now_ms = (int64_t) time(NULL) * 1000 };
    int result = nonbis_journal_each(client, on_entry, &listing);
    if (result < 0) {
        return complain_of_journal(client, result);
    }
    if (key != NULL && listing.told == 0) {
        complain("the journal has no key \"%s\"; nonbis journal ls tells which it has", key);
        return EXIT_CODE_USAGE;
    }
    return listing.failed || fflush(stdout) != 0 ? EXIT_CODE_INTERNAL : EXIT_CODE_DONE;
}

/* ---- prune -------------------------------------------------------------------------------------------------------- */

static enum exit_code journal_prune(const struct options *options, struct nonbis_client *client)
{
    int64_t older_ms = WEEK_MS;
    if (!option_duration_ms(options, OPTION_OLDER_THAN, &older_ms)) {
        return EXIT_CODE_USAGE;
    }
    int removed = nonbis_journal_prune(client, older_ms, option_is_given(options, OPTION_UNDECIDED));
    if (removed < 0) {
        return complain_of_journal(client, removed);
    }
    if (option_is_given(options, OPTION_JSON)) {
        printf("{\"removed\":%d}\n", removed);
    } else {
        printf("%d removed\n", removed);
    }
    return fflush(stdout) == 0 ? EXIT_CODE_DONE : EXIT_CODE_INTERNAL;
}

enum exit_code journal_run(const struct options *options)
{
    const char *what = options->arguments[0], *path = NULL;
    bool list = strcmp(what, "ls") == 0, show = strcmp(what, "show") == 0, prune = strcmp(what, "prune") == 0;
    if ((!list && !show && !prune) || options->argument_count != (show ? 2U : 1U)) {
        complain("\"journal %s\" is not understood; wanted is: nonbis journal ls, show KEY, or prune", what);
        return EXIT_CODE_USAGE;
    }
    if (!session_journal_path(options, &path)) {
        complain("--journal none: there is nothing to look at");
        return EXIT_CODE_USAGE;
    }
    struct nonbis_client *client = NULL;
    int error = nonbis_client_new(&client, NULL);
    if (error != NONBIS_OK) {
        complain("the client cannot be set up: %s", nonbis_error_text(error));
        return exit_code_of_error(error);
    }
    error = nonbis_client_use_journal(client, path);
    enum exit_code code = EXIT_CODE_DONE;
    if (error != NONBIS_OK) {
        code = complain_of_journal(client, error);
    } else if (prune) {
        code = journal_prune(options, client);
    } else {
        code = journal_list(options, client, show ? options->arguments[1] : NULL);
    }
    nonbis_client_free(client);
    return code;
}
