/* shell.c - see shell.h. */
#include "client-sdk/cli/shell.h"

#include <stdio.h>
#include <string.h>

const char *shell_word(char *out, size_t size, const char *text)
{
    static const char quote[] = "'\\''"; /* ends the word, a quote, and goes on with it */
    size_t len = 0;
    out[len++] = '\'';
    for (; *text != '\0' && len + sizeof quote + 1 < size; text++) {
        if (*text == '\'') {
            memcpy(out + len, quote, sizeof quote - 1);
            len += sizeof quote - 1;
        } else {
            out[len++] = *text;
        }
    }
    out[len++] = '\'';
    out[len] = '\0';
    return out;
}

const char *key_spelled(char out[KEY_SPELLED], const char *key)
{
    if (strchr(key, '"') == NULL) {
        (void) snprintf(out, KEY_SPELLED, "%s", key);
        return out;
    }
    char *to = out;
    *to++ = '"';
    for (; *key != '\0' && to < out + KEY_SPELLED - 3; key++) {
        if (*key == '"' || *key == '\\') {
            *to++ = '\\';
        }
        *to++ = *key;
    }
    *to++ = '"';
    *to = '\0';
    return out;
}

const char *shell_key_spelled(char out[SHELL_KEY], const char *key)
{
    char spelled[KEY_SPELLED];
    return shell_word(out, SHELL_KEY, key_spelled(spelled, key));
}

const char *shell_key_argument(char out[SHELL_KEY], const char *key)
{
    size_t before = key[0] == '-' ? 3 : 0;
    memcpy(out, "-- ", before);
    (void) shell_word(out + before, SHELL_KEY - before, key);
    return out;
}
