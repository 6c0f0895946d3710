/* journal_name.h - the file name of a key.
 *
 * Lower-case letters, digits, `-` and `_` stand for themselves, every other byte is %xx (lower-case hex): so no name holds a
 * slash, a dot or a capital, and two keys that differ only in case have two names on every file system. Names of our own keys
 * are the keys, and sort by time. What would be longer than JOURNAL_NAME_PLAIN ends in `~` and half a SHA-256 of the key
 * instead: the key is then only inside the file, and compared. Pure. Any thread. */
#ifndef NONBIS_CLIENT_JOURNAL_NAME_H
#define NONBIS_CLIENT_JOURNAL_NAME_H

#include <stdbool.h>

enum {
    JOURNAL_NAME_PLAIN = 128, /* bytes; the tightest file systems allow 143 */
    JOURNAL_NAME_HEAD = 88,   /* of a long one, before `~` */
    JOURNAL_NAME_SIZE = 132,  /* with its NUL */
    JOURNAL_NAME_KEY = 256    /* a key and its NUL */
};

/* False: not a key (contract 2.3: 1 to 255 bytes of 0x21 to 0x7e). */
bool journal_name_make(const char *key, char name[JOURNAL_NAME_SIZE]);

/* The key of a name. False when the name is not one that journal_name_make makes, or holds only the key's beginning. */
bool journal_name_key(const char *name, char key[JOURNAL_NAME_KEY]);

#endif
