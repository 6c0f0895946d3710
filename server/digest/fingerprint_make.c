/* fingerprint_make.c - hashing payloads and guarded fields (docs/contract.md section 3). Owns nothing. */
#include "server/digest/fingerprint_make.h"

#include "server/digest/hash.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct fingerprint) == 1 + FINGERPRINT_BYTES + FINGERPRINT_PART_COUNT * FINGERPRINT_PART_BYTES,
              "a fingerprint has no padding: stores copy it as bytes");

void fingerprint_make(const struct view parts[FINGERPRINT_PART_COUNT], struct fingerprint *out)
{
    const uint8_t version = FINGERPRINT_VERSION;
    struct hash whole;
    hash_begin(&whole, NULL, FINGERPRINT_BYTES);
    hash_add(&whole, &version, 1);
    for (unsigned i = 0; i < FINGERPRINT_PART_COUNT; i++) {
        hash_add_part(&whole, parts[i]);

        /* Only to say which part differs, never whether: a fast hash without a secret is enough. */
        static const unsigned char no_key[crypto_shorthash_KEYBYTES] = { 0 };
        unsigned char digest[crypto_shorthash_BYTES];
        if (crypto_shorthash(digest, (const unsigned char *) parts[i].ptr, parts[i].len, no_key) != 0) {
            abort();
        }
        memcpy(out->parts[i], digest, FINGERPRINT_PART_BYTES);
    }
    hash_end(&whole, out->digest, FINGERPRINT_BYTES);
    out->version = version;
}

/* A field name as a part, in lower case: names have no case, whatever the setting or the client writes. */
static void hash_add_name(struct hash *hash, struct view name)
{
    char lower[64];
    size_t len = 0;
    hash_add_number(hash, name.len);
    for (size_t i = 0; i < name.len; i++) {
        char byte = name.ptr[i];
        if (len == sizeof lower) {
            hash_add(hash, lower, len);
            len = 0;
        }
        lower[len++] = byte >= 'A' && byte <= 'Z' ? (char) (byte - 'A' + 'a') : byte;
    }
    hash_add(hash, lower, len);
}

void credential_make(const uint8_t guard_key[DIGEST_KEY_BYTES], const struct view *guard, size_t guard_count,
                     struct header_span headers, struct credential *out)
{
    memset(out, 0, sizeof(*out));
    if (guard_count == 0) {
        return;
    }
    struct hash hash;
    hash_begin(&hash, guard_key, CREDENTIAL_BYTES);
    for (size_t i = 0; i < guard_count; i++) {
        hash_add_name(&hash, guard[i]);
        /* The number of lines tells an absent field from an empty one, and one line from two. */
        struct view first;
        hash_add_number(&hash, headers_count(headers, guard[i], &first));
        for (size_t j = 0; j < headers.count; j++) {
            if (view_equal_nocase(headers.items[j].name, guard[i])) {
                hash_add_part(&hash, headers.items[j].value);
            }
        }
    }
    hash_end(&hash, out->digest, CREDENTIAL_BYTES);
    out->present = true;
}
