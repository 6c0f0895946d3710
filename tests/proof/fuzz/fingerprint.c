/* fingerprint.c - fuzzes server/digest/fingerprint_make.c and server/core/fingerprint.c. The first line of the input names a guarded field, the
 * next five are method, authority, target, Content-Type and Content-Encoding, and what is behind them is the body.
 *
 * The same payload is the same, and any other is another: one byte more, fewer or other in a part, or moved over to the next part, is seen, and the
 * part is named. A credential depends on its field's values, not on the case of its name, and not on other fields. */
#include "server/digest/fingerprint_make.h"

#include "tests/proof/fuzz/fuzz.h"

enum { PARTS = FINGERPRINT_PART_COUNT };

static unsigned differs(const struct view one[PARTS], const struct view other[PARTS])
{
    struct fingerprint a, b;
    fingerprint_make(one, &a);
    fingerprint_make(other, &b);
    MUST(fingerprint_differs(&a, &b) == fingerprint_differs(&b, &a));
    return fingerprint_differs(&a, &b);
}

/* A byte of a part, and where parts meet. */
static void payload_must_hold(const struct view parts[PARTS], size_t choice)
{
    struct view other[PARTS];
    memcpy(other, parts, sizeof(other));
    MUST(differs(parts, other) == 0);
    unsigned part = (unsigned) (choice % PARTS);
    if (parts[part].len == 0) {
        return;
    }
    char *copy = fuzz_text(parts[part]);
    size_t at = choice / PARTS % parts[part].len;
    copy[at] = (char) (copy[at] ^ (1 << (choice >> 16) % 8));
    other[part] = view_make(copy, parts[part].len);
    MUST(differs(parts, other) == 1U << part);
    other[part] = view_make(parts[part].ptr, parts[part].len - 1);
    MUST(differs(parts, other) == 1U << part);
    if (part + 1 < PARTS) { /* its last byte is the first of the next one */
        char *joined = malloc(parts[part + 1].len + 1);
        MUST(joined != NULL);
        joined[0] = parts[part].ptr[parts[part].len - 1];
        memcpy(joined + 1, parts[part + 1].ptr, parts[part + 1].len);
        other[part + 1] = view_make(joined, parts[part + 1].len + 1);
        MUST(differs(parts, other) == (3U << part));
        free(joined);
    }
    free(copy);
}

/* Under a guard of two fields: a value of the one that looks like the name of the other, and the other with that value. */
static void guard_of_two_must_hold(struct view name)
{
    static const uint8_t guard_key[DIGEST_KEY_BYTES] = { 7 };
    const struct view guard[] = { name, VIEW("x-guard") };
    const struct header one[] = { { name, VIEW("x-guard") } }, other[] = { { VIEW("x-guard"), VIEW("x-guard") } };
    struct credential a, b;
    credential_make(guard_key, guard, 2, (struct header_span){ one, 1 }, &a);
    credential_make(guard_key, guard, 2, (struct header_span){ other, 1 }, &b);
    MUST(credential_differs(&a, &b) == !view_equal_nocase(name, VIEW("x-guard")));
}

static struct credential credential_of(struct view name, const struct header *fields, size_t count)
{
    static const uint8_t guard_key[DIGEST_KEY_BYTES] = { 7 };
    struct credential made;
    credential_make(guard_key, &name, 1, (struct header_span){ fields, count }, &made);
    MUST(made.present);
    return made;
}

static void credential_must_hold(struct view name, struct view value, struct view other_value)
{
    char *turned = fuzz_text(name);
    for (size_t i = 0; i < name.len; i++) {
        bool letter = (turned[i] >= 'a' && turned[i] <= 'z') || (turned[i] >= 'A' && turned[i] <= 'Z');
        turned[i] = (char) (letter ? turned[i] ^ 0x20 : turned[i]);
    }
    struct view turned_name = view_make(turned, name.len);
    const struct header fields[] = { { name, value }, { VIEW("X-Other"), other_value }, { turned_name, other_value } };
    bool is_other = view_equal_nocase(name, VIEW("X-Other"));
    struct credential one = credential_of(name, fields, 1), none = credential_of(name, fields, 0);
    struct credential same = credential_of(turned_name, fields, is_other ? 1 : 2), two = credential_of(name, fields, 3);
    MUST(!credential_differs(&one, &same) && credential_differs(&one, &none) && credential_differs(&one, &two));
    const struct header second = { name, other_value };
    struct credential replaced = credential_of(name, &second, 1);
    MUST(credential_differs(&one, &replaced) == !view_equal(value, other_value));
    free(turned);
}

FUZZ_TARGET(fingerprint)
{
    struct view rest = input, parts[PARTS];
    struct view name = fuzz_line(&rest);
    for (unsigned i = 0; i + 1 < PARTS; i++) {
        parts[i] = fuzz_line(&rest);
    }
    parts[PARTS - 1] = rest;
    payload_must_hold(parts, fuzz_hash(input));
    guard_of_two_must_hold(name);
    credential_must_hold(name, parts[FINGERPRINT_METHOD], parts[FINGERPRINT_AUTHORITY]);
    return name.len > 0;
}
