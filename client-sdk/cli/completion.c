/* completion.c - `nonbis completion bash|zsh|fish`: scripts out of the tables, so that they know what the command knows. Keys are
 * asked of the journal at the moment of completing. */
#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/options.h"

#include <stdio.h>
#include <string.h>

/* One option of a command, of either table. */
struct shown_option {
    char letter;
    const char *name, *argument, *help;
    enum nonbis_option policy; /* 0: of our table */
};

static void each_option(enum command_id id, void (*each)(enum command_id id, const struct shown_option *option))
{
    unsigned bit = COMMAND_BIT(id);
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = option_at((enum option_id) i);
        if ((row->commands & bit) != 0) {
            const struct shown_option shown = { row->letter, row->name, row->argument, row->help,
                                                (enum nonbis_option) 0 };
            each(id, &shown);
        }
    }
    for (int i = 1; nonbis_option_name((enum nonbis_option) i) != NULL; i++) {
        enum nonbis_option option = (enum nonbis_option) i;
        if ((option_policy_commands(option) & bit) != 0) {
            const struct shown_option shown = { '\0', nonbis_option_name(option), "VALUE", nonbis_option_help(option),
                                                option };
            each(id, &shown);
        }
    }
}

static void each_command(void (*each)(enum command_id id))
{
    for (int i = 0; i < COMMAND_COUNT; i++) {
        each((enum command_id) i);
    }
}

/* What may stand behind an option, where that is a closed list; "" else. */
static const char *value_words(const struct shown_option *option)
{
    static const struct {
        const char *name, *words;
    } lists[] = { { "profile", "interactive standard batch read background unkeyed keyed reconnect" },
                  { "jitter", "full equal decorrelated" },
                  { "server", "detect nonbis keyed plain" },
                  { "key-quoted", "on off" },
                  { "strategy", "immediate fixed exponential equal full decorrelated" } };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (strcmp(lists[i].name, option->name) == 0) {
            return lists[i].words;
        }
    }
    return "";
}

static bool value_is_file(const struct shown_option *option)
{
    return option->argument != NULL &&
           (strncmp(option->argument, "FILE", 4) == 0 || strcmp(option->argument, "PATH") == 0 ||
            strncmp(option->argument, "DIR", 3) == 0);
}

static bool takes_key(enum command_id id)
{
    return ((COMMANDS_QUERY | COMMAND_BIT(COMMAND_RESUME)) & COMMAND_BIT(id)) != 0;
}

/* Prints a text with a backslash before the bytes of `special`, and quotes made fit for '...'. */
static void print_quoted(const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
            continue;
        }
        if (strchr(special, *text) != NULL) {
            putchar('\\');
        }
        putchar(*text);
    }
}

static void print_command_name(enum command_id id)
{
    printf("%s ", command_at(id)->name);
}

/* ---- bash --------------------------------------------------------------------------------------------------------- */

static void bash_option(enum command_id id, const struct shown_option *option)
{
    (void) id;
    printf("--%s ", option->name);
    if (option->letter != '\0') {
        printf("-%c ", option->letter);
    }
}

static void bash_value(enum command_id id, const struct shown_option *option)
{
    const char *words = value_words(option);
    if (words[0] == '\0' && !value_is_file(option)) {
        return;
    }
    printf("        %s:--%s", command_at(id)->name, option->name);
    if (option->letter != '\0') {
        printf("|%s:-%c", command_at(id)->name, option->letter);
    }
    if (words[0] != '\0') {
        printf(") COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", words);
    } else {
        printf(") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n");
    }
}

static void bash_values(enum command_id id)
{
    each_option(id, bash_value);
}

static void bash_command(enum command_id id)
{
    printf("        %s) words='", command_at(id)->name);
    each_option(id, bash_option);
    printf("%s", command_at(id)->words);
    if (id == COMMAND_HELP) {
        putchar(' ');
        each_command(print_command_name);
    }
    printf("' ;;\n");
}

static void print_bash(void)
{
    printf("# bash completion of nonbis; made by: nonbis completion bash\n"
           "_nonbis() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words=\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        COMPREPLY=($(compgen -W '");
    each_command(print_command_name);
    printf("' -- \"$cur\"))\n"
           "        return\n"
           "    fi\n"
           "    case $command:$prev in\n");
    each_command(bash_values);
    printf("    esac\n"
           "    case $command in\n");
    each_command(bash_command);
    printf(
        "    esac\n"
        "    case $command in\n"
        "        status|wait|void) [[ $cur == -* ]] || words=$(nonbis journal ls 2>/dev/null | awk '{ print $5 }') ;;\n"
        "        resume) [[ $cur == -* ]] || words=$(nonbis journal ls --undecided 2>/dev/null | awk '{ print $5 }') "
        ";;\n"
        "    esac\n"
        "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
        "}\n"
        "complete -F _nonbis nonbis\n");
}

/* ---- zsh ---------------------------------------------------------------------------------------------------------- */

static void zsh_option(enum command_id id, const struct shown_option *option)
{
    (void) id;
    if (option->letter != '\0') {
        printf("                '*'{-%c,--%s}'[", option->letter, option->name);
    } else {
        printf("                '*--%s[", option->name);
    }
    print_quoted(option->help, "[]:\\");
    printf("]");
    if (option->argument != NULL) {
        printf(":value:");
        if (value_is_file(option)) {
            printf("_files");
        } else if (value_words(option)[0] != '\0') {
            printf("(%s)", value_words(option));
        }
    }
    printf("' \\\n");
}

static void zsh_command(enum command_id id)
{
    printf("        %s)\n            _arguments \\\n", command_at(id)->name);
    each_option(id, zsh_option);
    if (id == COMMAND_HELP) {
        printf("                '1:command:(exit-codes ");
        each_command(print_command_name);
        printf(")' ;;\n");
    } else if (takes_key(id)) {
        printf("                '*:key:($(nonbis journal ls%s 2>/dev/null | awk \"{ print \\$5 }\"))' ;;\n",
               id == COMMAND_RESUME ? " --undecided" : "");
    } else {
        printf("                '1:argument:(%s)' ;;\n", command_at(id)->words);
    }
}

static void zsh_name(enum command_id id)
{
    printf("        '%s:", command_at(id)->name);
    print_quoted(command_at(id)->summary, "\\");
    printf("'\n");
}

static void print_zsh(void)
{
    printf("#compdef nonbis\n"
           "# zsh completion of nonbis; made by: nonbis completion zsh\n"
           "_nonbis() {\n"
           "    local -a commands\n"
           "    commands=(\n");
    each_command(zsh_name);
    printf("    )\n"
           "    if (( CURRENT == 2 )); then\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    shift words\n"
           "    (( CURRENT-- ))\n"
           "    case $words[1] in\n");
    each_command(zsh_command);
    printf("    esac\n"
           "}\n"
           "if [ \"$funcstack[1]\" = _nonbis ]; then\n"
           "    _nonbis \"$@\"\n"
           "else\n"
           "    compdef _nonbis nonbis\n"
           "fi\n");
}

/* ---- fish --------------------------------------------------------------------------------------------------------- */

static void fish_option(enum command_id id, const struct shown_option *option)
{
    printf("complete -c nonbis -n '__fish_seen_subcommand_from %s' -l %s", command_at(id)->name, option->name);
    if (option->letter != '\0') {
        printf(" -s %c", option->letter);
    }
    if (option->argument != NULL && value_is_file(option)) {
        printf(" -r -F");
    } else if (option->argument != NULL) {
        printf(" -x");
        if (value_words(option)[0] != '\0') {
            printf(" -a '%s'", value_words(option));
        }
    }
    printf(" -d '");
    print_quoted(option->help, "");
    printf("'\n");
}

static void fish_command(enum command_id id)
{
    const struct command *command = command_at(id);
    printf("complete -c nonbis -n __fish_use_subcommand -a %s -d '", command->name);
    print_quoted(command->summary, "");
    printf("'\n");
    if (id == COMMAND_HELP) {
        printf("complete -c nonbis -n '__fish_seen_subcommand_from help' -a 'exit-codes ");
        each_command(print_command_name);
        printf("'\n");
    } else if (takes_key(id)) {
        printf("complete -c nonbis -n '__fish_seen_subcommand_from %s' -a '(nonbis journal ls%s 2>/dev/null | awk "
               "\"{ print \\\\$5 }\")'\n",
               command->name, id == COMMAND_RESUME ? " --undecided" : "");
    } else if (command->words[0] != '\0') {
        printf("complete -c nonbis -n '__fish_seen_subcommand_from %s' -a '%s'\n", command->name, command->words);
    }
    each_option(id, fish_option);
}

static void print_fish(void)
{
    printf("# fish completion of nonbis; made by: nonbis completion fish\n"
           "complete -c nonbis -f\n");
    each_command(fish_command);
}

enum exit_code completion_run(const struct options *options)
{
    const char *shell = options->arguments[0];
    if (strcmp(shell, "bash") == 0) {
        print_bash();
    } else if (strcmp(shell, "zsh") == 0) {
        print_zsh();
    } else if (strcmp(shell, "fish") == 0) {
        print_fish();
    } else {
        complain("completion \"%s\": there is one for bash, zsh and fish", shell);
        return EXIT_CODE_USAGE;
    }
    return fflush(stdout) == 0 ? EXIT_CODE_DONE : EXIT_CODE_INTERNAL;
}
