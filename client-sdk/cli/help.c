/* help.c - `nonbis help`: everything out of the tables (command.h, options.h, exit_code.h), so that nothing can be missing. */
#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/nearest.h"
#include "client-sdk/cli/options.h"

#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 28 };

static void print_commands(void)
{
    printf("nonbis - sends one write to the end, or says honestly that the end is not known\n\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const struct command *command = command_at((enum command_id) i);
        char left[64];
        (void) snprintf(left, sizeof left, "nonbis %s %s", command->name, command->arguments);
        printf("  %-32s %s\n", left, command->summary);
    }
    printf("\n\"nonbis help COMMAND\" tells its options, \"nonbis help exit-codes\" what a script may do, man nonbis "
           "all of it.\n"
           "Variables: NONBIS_URL (the server of status, wait and void), NONBIS_JOURNAL (as --journal).\n");
}

static void print_exit_codes(void)
{
    size_t count = 0;
    const struct exit_row *rows = exit_rows(&count);
    printf("Exit codes:\n");
    for (size_t i = 0; i < count; i++) {
        printf("  %3d  %s: %s\n", (int) rows[i].code, rows[i].meaning, rows[i].may);
    }
}

static void print_option(char letter, const char *name, const char *argument, const char *help)
{
    char left[80], short_form[8] = "    ";
    if (letter != '\0') {
        (void) snprintf(short_form, sizeof short_form, "-%c, ", letter);
    }
    (void) snprintf(left, sizeof left, "%s--%s%s%s", short_form, name, argument != NULL ? " " : "",
                    argument != NULL ? argument : "");
    printf("  %-*s %s%s\n", HELP_COLUMN, left, strlen(left) > HELP_COLUMN ? "\n                               " : "",
           help);
}

static void print_options(enum command_id id)
{
    unsigned bit = COMMAND_BIT(id);
    printf("\nOptions:\n");
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = option_at((enum option_id) i);
        if ((row->commands & bit) != 0) {
            print_option(row->letter, row->name, row->argument, row->help);
        }
    }
    bool first = true;
    for (int i = 1; nonbis_option_name((enum nonbis_option) i) != NULL; i++) {
        enum nonbis_option option = (enum nonbis_option) i;
        if ((option_policy_commands(option) & bit) != 0) {
            printf("%s", first ? "\nPolicy, over the profile's values (times: 500ms, 10s, 2m, 1h):\n" : "");
            print_option('\0', nonbis_option_name(option), "VALUE", nonbis_option_help(option));
            first = false;
        }
    }
}

static void print_command(enum command_id id)
{
    const struct command *command = command_at(id);
    printf("nonbis %s %s%s[OPTION]...\n%s\n", command->name, command->arguments,
           command->arguments[0] != '\0' ? " " : "", command->summary);
    if (command->about[0] != '\0') {
        printf("\n%s", command->about);
    }
    print_options(id);
    if ((COMMAND_BIT(id) & COMMANDS_RUN) != 0) {
        putchar('\n');
        print_exit_codes();
    }
}

static enum exit_code complain_of_topic(const char *topic)
{
    struct nearest nearest;
    nearest_begin(&nearest, topic);
    for (int i = 0; i < COMMAND_COUNT; i++) {
        nearest_offer(&nearest, command_at((enum command_id) i)->name);
    }
    complain("there is no help about \"%s\"%s%s", topic, nearest.best != NULL ? "; did you mean " : "",
             nearest.best != NULL ? nearest.best : "");
    return EXIT_CODE_USAGE;
}

enum exit_code help_run(const struct options *options)
{
    enum command_id id = COMMAND_HELP;
    if (options->argument_count == 0) {
        print_commands();
    } else if (strcmp(options->arguments[0], "exit-codes") == 0) {
        print_exit_codes();
    } else if (command_find(options->arguments[0], &id) != NULL) {
        print_command(id);
    } else {
        return complain_of_topic(options->arguments[0]);
    }
    return fflush(stdout) == 0 ? EXIT_CODE_DONE : EXIT_CODE_INTERNAL;
}

enum exit_code version_run(const struct options *options)
{
    (void) options;
    printf("nonbis %s\n", nonbis_version());
    return fflush(stdout) == 0 ? EXIT_CODE_DONE : EXIT_CODE_INTERNAL;
}
