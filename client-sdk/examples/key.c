/* key.c - makes a key, or says of texts whether they can be one.
 *
 *     key [TEXT]... */
#include <nonbis.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    char key[NONBIS_KEY_SIZE];
    int i, bad = 0;

    if (argc == 1) {
        int error = nonbis_key_make(key);
        if (error != NONBIS_OK) {
            fprintf(stderr, "no key: %s\n", nonbis_error_text(error));
            return 1;
        }
        printf("%s\n", key);
        return 0;
    }
    for (i = 1; i < argc; i++) {
        const char *why = "";
        if (nonbis_key_check(argv[i], &why) == NONBIS_OK) {
            printf("%s: a key\n", argv[i]);
        } else {
            printf("%s: no key: %s\n", argv[i], why);
            bad = 1;
        }
    }
    return bad;
}
