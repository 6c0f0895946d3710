/* key.c - `nonbis key new|check`. */
#include "client-sdk/cli/key.h"

#include "client-sdk/cli/command.h"
#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/options.h"

#include <stdio.h>
#include <string.h>

static enum exit_code key_new(void)
{
    char key[NONBIS_KEY_SIZE];
    int error = nonbis_key_make(key);
    if (error != NONBIS_OK) {
        complain("no key can be made: %s", nonbis_error_text(error));
        return exit_code_of_error(error);
    }
    return printf("%s\n", key) > 0 && fflush(stdout) == 0 ? EXIT_CODE_DONE : EXIT_CODE_INTERNAL;
}

const char *key_why_not(const char *text)
{
    const char *why = NULL;
    int error = nonbis_key_check(text, &why);
    if (error == NONBIS_OK) {
        return NULL;
    }
    return why != NULL ? why : nonbis_error_text(error);
}

static enum exit_code key_check(const char *key)
{
    const char *why = key_why_not(key);
    if (why != NULL) {
        complain("\"%s\" can be no key: %s", key, why);
    }
    return why != NULL ? EXIT_CODE_USAGE : EXIT_CODE_DONE;
}

enum exit_code key_run(const struct options *options)
{
    const char *what = options->arguments[0];
    if (strcmp(what, "new") == 0 && options->argument_count == 1) {
        return key_new();
    }
    if (strcmp(what, "check") == 0 && options->argument_count == 2) {
        return key_check(options->arguments[1]);
    }
    complain("\"key %s\" is not understood; wanted is: nonbis key new, or nonbis key check KEY", what);
    return EXIT_CODE_USAGE;
}
