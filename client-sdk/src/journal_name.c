/* journal_name.c - see journal_name.h. */
#include "client-sdk/src/journal_name.h"

#include "client-sdk/src/journal_digest.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

enum { HASH_DIGITS = 32 };
static_assert(JOURNAL_NAME_HEAD + 1 + HASH_DIGITS < JOURNAL_NAME_SIZE && JOURNAL_NAME_PLAIN < JOURNAL_NAME_SIZE,
              "both kinds of names fit");

static const char digits[] = "0123456789abcdef";

static bool stands_for_itself(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
}

/* Encodes as much of the key as fits in `max` bytes; true when that is all of it. */
static bool name_encode(const char *key, char *name, size_t max)
{
    size_t len = 0;
    for (; *key != '\0'; key++) {
        size_t needs = stands_for_itself(*key) ? 1 : 3;
        if (len + needs > max) {
            break;
        }
        if (needs == 1) {
            name[len++] = *key;
        } else {
            name[len++] = '%';
            name[len++] = digits[(unsigned char) *key >> 4];
            name[len++] = digits[*key & 15];
        }
    }
    name[len] = '\0';
    return *key == '\0';
}

bool journal_name_make(const char *key, char name[JOURNAL_NAME_SIZE])
{
    size_t len = strlen(key);
    if (len == 0 || len >= JOURNAL_NAME_KEY) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (key[i] < 0x21 || key[i] > 0x7e) {
            return false;
        }
    }
    if (!name_encode(key, name, JOURNAL_NAME_PLAIN)) {
        char hash[JOURNAL_DIGEST_HEX + 1];
        (void) name_encode(key, name, JOURNAL_NAME_HEAD);
        journal_digest_hex(key, len, hash);
        size_t head = strlen(name);
        name[head] = '~';
        memcpy(name + head + 1, hash, HASH_DIGITS);
        name[head + 1 + HASH_DIGITS] = '\0';
    }
    return true;
}

static int digit_value(char digit)
{
    const char *at = digit != '\0' ? strchr(digits, digit) : NULL;
    return at != NULL ? (int) (at - digits) : -1;
}

bool journal_name_key(const char *name, char key[JOURNAL_NAME_KEY])
{
    char again[JOURNAL_NAME_SIZE];
    size_t len = 0;
    if (strlen(name) > JOURNAL_NAME_PLAIN) {
        return false;
    }
    for (const char *at = name; *at != '\0'; at++) {
        if (*at != '%') {
            key[len++] = *at;
            continue;
        }
        int high = digit_value(at[1]);
        int low = high >= 0 ? digit_value(at[2]) : -1;
        if (low < 0) {
            return false;
        }
        key[len++] = (char) (high * 16 + low);
        at += 2;
    }
    key[len] = '\0';
    /* Only the one spelling that we make: `%61` is no name, and neither is one with a hash in it. */
    return strlen(key) == len && journal_name_make(key, again) && strcmp(again, name) == 0;
}
