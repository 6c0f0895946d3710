/* options.c - reads the command line; see options.h. Own, not getopt: words that are not known are answered with the nearest
 * one, and nothing is abbreviated by chance. */
#include "client-sdk/cli/options.h"

#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/nearest.h"
#include "common/view.h"

#include <stdio.h>
#include <string.h>

/* ---- words that are not known ------------------------------------------------------------------------------------- */

/* What other tools call it. */
static const char *known_elsewhere(const char *name)
{
    static const struct {
        const char *theirs, *ours;
    } words[] = {
        { "retry", "--attempts (with the first)" },
        { "retries", "--attempts (with the first)" },
        { "retry-delay", "--base-delay" },
        { "retry-max-time", "--deadline" },
        { "max-time", "--deadline" },
        { "timeout", "--attempt-timeout, or --deadline for all" },
        { "request", "--method" },
        { "idempotency-key", "--key" },
        { "data-binary", "--data @FILE" },
        { "data-raw", "--data" },
        { "silent", "--quiet" },
        { "extra-load", "--budget-deposit (0.1 is 10 %)" },
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].theirs, name) == 0) {
            return words[i].ours;
        }
    }
    return NULL;
}

static void complain_of_option(enum command_id command, const char *name)
{
    const char *command_name = command_at(command)->name, *ours = known_elsewhere(name);
    struct nearest nearest;
    nearest_begin(&nearest, name);
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = option_at((enum option_id) i);
        if ((row->commands & COMMAND_BIT(command)) != 0) {
            nearest_offer(&nearest, row->name);
        }
    }
    for (int i = 1; nonbis_option_name((enum nonbis_option) i) != NULL; i++) {
        if ((option_policy_commands((enum nonbis_option) i) & COMMAND_BIT(command)) != 0) {
            nearest_offer(&nearest, nonbis_option_name((enum nonbis_option) i));
        }
    }
    if (ours != NULL) {
        complain("%s has no option --%s; here it is %s", command_name, name, ours);
    } else if (nearest.best != NULL) {
        complain("%s has no option --%s; did you mean --%s? \"nonbis help %s\" tells them all", command_name, name,
                 nearest.best, command_name);
    } else {
        complain("%s has no option --%s; \"nonbis help %s\" tells them all", command_name, name, command_name);
    }
}

static void complain_of_command(const char *name)
{
    struct nearest nearest;
    nearest_begin(&nearest, name);
    for (int i = 0; i < COMMAND_COUNT; i++) {
        nearest_offer(&nearest, command_at((enum command_id) i)->name);
    }
    if (strncmp(name, "http://", 7) == 0 || strncmp(name, "https://", 8) == 0) {
        complain("what to do comes first: nonbis post URL");
    } else if (nearest.best != NULL) {
        complain("there is no command \"%s\"; did you mean \"%s\"? \"nonbis help\" tells them all", name, nearest.best);
    } else {
        complain("there is no command \"%s\"; \"nonbis help\" tells them all", name);
    }
}

/* ---- taking ------------------------------------------------------------------------------------------------------- */

struct cursor {
    struct options *options;
    int argc, at;
    char **argv;
};

static bool take_value(struct cursor *cursor, const char *shown, const char *argument, const char *behind,
                       const char **value)
{
    if (behind != NULL) {
        *value = behind;
        return true;
    }
    if (cursor->at + 1 >= cursor->argc) {
        complain("%s wants %s behind it", shown, argument);
        return false;
    }
    *value = cursor->argv[++cursor->at];
    return true;
}

static bool keep(struct options *options, enum option_id id, const char *value)
{
    options->values[id] = value;
    options->given[id]++;
    if (id != OPTION_HEADER) {
        return true;
    }
    if (options->field_count == OPTIONS_FIELDS_MAX) {
        complain("more than %d fields are given with -H", OPTIONS_FIELDS_MAX);
        return false;
    }
    options->fields[options->field_count++] = value;
    return true;
}

static bool take_row(struct cursor *cursor, enum option_id id, const char *shown, const char *behind)
{
    const struct option_row *row = option_at(id);
    const char *value = row->name;
    if (row->argument == NULL && behind != NULL) {
        complain("%s takes no value, and \"%s\" is given", shown, behind);
        return false;
    }
    if (row->argument != NULL && !take_value(cursor, shown, row->argument, behind, &value)) {
        return false;
    }
    return keep(cursor->options, id, value);
}

/* --name, --name=value, --name value. */
static bool take_long(struct cursor *cursor, const char *text)
{
    struct options *options = cursor->options;
    const char *equals = strchr(text, '=');
    char name[64], shown[70];
    size_t len = equals != NULL ? (size_t) (equals - text) : strlen(text);
    (void) snprintf(name, sizeof name, "%.*s", len < sizeof name ? (int) len : (int) sizeof name - 1, text);
    (void) snprintf(shown, sizeof shown, "--%s", name);
    unsigned bit = COMMAND_BIT(options->command);
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = option_at((enum option_id) i);
        if ((row->commands & bit) != 0 && strcmp(row->name, name) == 0) {
            return take_row(cursor, (enum option_id) i, shown, equals != NULL ? equals + 1 : NULL);
        }
    }
    for (int i = 1; nonbis_option_name((enum nonbis_option) i) != NULL; i++) {
        if ((option_policy_commands((enum nonbis_option) i) & bit) != 0 &&
            strcmp(nonbis_option_name((enum nonbis_option) i), name) == 0) {
            return take_value(cursor, shown, "a value", equals != NULL ? equals + 1 : NULL, &options->policy[i]);
        }
    }
    complain_of_option(options->command, name);
    return false;
}

/* -x, -xVALUE, -x VALUE, and several flags together: -qi. */
static bool take_letters(struct cursor *cursor, const char *text)
{
    for (; *text != '\0'; text++) {
        int found = -1;
        for (int i = 0; i < OPTION_COUNT; i++) {
            const struct option_row *row = option_at((enum option_id) i);
            if (row->letter == *text && (row->commands & COMMAND_BIT(cursor->options->command)) != 0) {
                found = i;
            }
        }
        const char *name = command_at(cursor->options->command)->name;
        if (found < 0) {
            complain("%s has no option -%c; \"nonbis help %s\" tells them all", name, *text, name);
            return false;
        }
        const char shown[] = { '-', *text, '\0' };
        bool has_value = option_at((enum option_id) found)->argument != NULL;
        if (!take_row(cursor, (enum option_id) found, shown, has_value && text[1] != '\0' ? text + 1 : NULL)) {
            return false;
        }
        if (has_value) {
            return true;
        }
    }
    return true;
}

static bool take_argument(struct options *options, const char *text)
{
    if (options->argument_count == OPTIONS_ARGUMENTS_MAX) {
        complain("more than %d arguments are given", OPTIONS_ARGUMENTS_MAX);
        return false;
    }
    options->arguments[options->argument_count++] = text;
    return true;
}

static bool check_arguments(const struct options *options)
{
    const struct command *command = command_at(options->command);
    if (options->argument_count >= command->least && options->argument_count <= command->most) {
        return true;
    }
    if (options->argument_count < command->least) {
        complain("%s wants %s; \"nonbis help %s\" tells more", command->name, command->arguments, command->name);
    } else {
        complain("%s: \"%s\" is one argument too many; wanted is: nonbis %s %s", command->name,
                 options->arguments[command->most], command->name, command->arguments);
    }
    return false;
}

/* -h asks about the command that it stands behind. */
static bool turn_to_help(struct options *options)
{
    const char *name = command_at(options->command)->name;
    bool about_help = options->command == COMMAND_HELP;
    options->command = COMMAND_HELP;
    options->arguments[0] = name;
    options->argument_count = about_help ? 0 : 1;
    return true;
}

bool options_read(struct options *options, int argc, char **argv)
{
    *options = (struct options){ .command = COMMAND_HELP };
    if (argc < 2) {
        complain("what shall be done? \"nonbis help\" tells what there is");
        return false;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        options->command = COMMAND_VERSION;
        return true;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        return true;
    }
    if (command_find(word, &options->command) == NULL) {
        complain_of_command(word);
        return false;
    }
    struct cursor cursor = { .options = options, .argc = argc, .at = 2, .argv = argv };
    bool only_arguments = false, good = true;
    for (; good && cursor.at < argc; cursor.at++) {
        const char *text = argv[cursor.at];
        if (only_arguments || text[0] != '-' || text[1] == '\0') {
            good = take_argument(options, text);
        } else if (strcmp(text, "--") == 0) {
            only_arguments = true;
        } else {
            good = text[1] == '-' ? take_long(&cursor, text + 2) : take_letters(&cursor, text + 1);
        }
    }
    if (good && option_is_given(options, OPTION_HELP)) {
        return turn_to_help(options);
    }
    return good && check_arguments(options);
}

/* ---- values ------------------------------------------------------------------------------------------------------- */

bool option_is_given(const struct options *options, enum option_id id)
{
    return options->given[id] > 0;
}

bool option_number(const struct options *options, enum option_id id, uint64_t least, uint64_t most, uint64_t *value)
{
    uint64_t number = 0;
    if (!option_is_given(options, id)) {
        return true;
    }
    if (!view_to_uint64(view_of(options->values[id]), &number) || number < least || number > most) {
        complain("--%s \"%s\": wants a whole number from %llu to %llu", option_at(id)->name, options->values[id],
                 (unsigned long long) least, (unsigned long long) most);
        return false;
    }
    *value = number;
    return true;
}

/* The library reads texts only for options of a policy: one with the widest range is borrowed. */
static bool read_as(const struct options *options, enum option_id id, enum nonbis_option like, int64_t *value)
{
    struct nonbis_policy *policy = NULL;
    if (!option_is_given(options, id)) {
        return true;
    }
    if (nonbis_policy_new(&policy, NULL) != NONBIS_OK) {
        complain("out of memory");
        return false;
    }
    bool good = nonbis_policy_set_text(policy, nonbis_option_name(like), options->values[id]) == NONBIS_OK;
    if (good) {
        *value = nonbis_policy_get(policy, like);
    }
    nonbis_policy_free(policy);
    return good;
}

bool option_duration_ms(const struct options *options, enum option_id id, int64_t *ms)
{
    bool good = read_as(options, id, NONBIS_RETENTION_MS, ms);
    if (!good) {
        complain("--%s \"%s\": wants a duration such as 500ms, 10s, 2m, 1h or 7d, up to 3650d", option_at(id)->name,
                 options->values[id]);
    }
    return good;
}

bool option_size(const struct options *options, enum option_id id, size_t *bytes)
{
    int64_t value = (int64_t) *bytes;
    bool good = read_as(options, id, NONBIS_RESPONSE_MAX, &value);
    if (!good) {
        complain("--%s \"%s\": wants a size such as 64KiB or 16MiB, up to 1GiB", option_at(id)->name,
                 options->values[id]);
    }
    *bytes = (size_t) value;
    return good;
}
