/* shell.h - texts in commands that a person copies into a shell. */
#ifndef NONBIS_CLI_SHELL_H
#define NONBIS_CLI_SHELL_H

#include <stddef.h>

enum {
    KEY_SPELLED = 2 * 255 + 3,             /* quoted, every byte escaped */
    SHELL_KEY = 4 * (KEY_SPELLED - 1) + 6, /* that in a shell's quotes, and "-- " in front of it */
    SHELL_URL = 4096
};

/* As one word of a shell; cut where it does not fit. Returns `out`. */
const char *shell_word(char *out, size_t size, const char *text);

/* A key as what reads field values reads it back (-k, and KEY beside --url): one with a quote in it has only the quoted form
 * (contract 2.2). Returns `out`. */
const char *key_spelled(char out[KEY_SPELLED], const char *key);

/* The same as a shell's word. */
const char *shell_key_spelled(char out[SHELL_KEY], const char *key);

/* As the argument KEY of a command that looks into the journal, which knows keys as they are; it has to be the last one, since a
 * key may look like an option. */
const char *shell_key_argument(char out[SHELL_KEY], const char *key);

#endif
