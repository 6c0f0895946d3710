/* prefer.c - fuzzes common/prefer.c. The input is a value of Prefer.
 *
 * A wait that is found is 0 or more; what is not found writes nothing; other preferences before it change nothing, and behind it neither. The
 * grammar is short enough to be read a second time. */
#include "common/prefer.h"

#include "tests/proof/fuzz/fuzz.h"

static size_t skip_blanks(struct view text, size_t at)
{
    while (at < text.len && (text.ptr[at] == ' ' || text.ptr[at] == '\t')) {
        at++;
    }
    return at;
}

/* One digit at `*at`, in quotes perhaps behind a backslash; -1 when there is none. */
static int take_digit(struct view text, size_t *at, bool quoted)
{
    size_t here = *at + (quoted && *at < text.len && text.ptr[*at] == '\\');
    if (here >= text.len || text.ptr[here] < '0' || text.ptr[here] > '9') {
        return -1;
    }
    *at = here + 1;
    return text.ptr[here] - '0';
}

/* wait = 1*DIGIT, or wait = DQUOTE 1*DIGIT DQUOTE, then [ ";" anything ]; blanks between any two parts. */
static bool expected_element(struct view text, int64_t *wait_s)
{
    static const char capitals[] = "WAIT", small[] = "wait";
    size_t at = skip_blanks(text, 0);
    for (size_t i = 0; i < 4; i++, at++) {
        if (at >= text.len || (text.ptr[at] != capitals[i] && text.ptr[at] != small[i])) {
            return false;
        }
    }
    at = skip_blanks(text, at);
    if (at >= text.len || text.ptr[at] != '=') {
        return false;
    }
    at = skip_blanks(text, at + 1);
    bool quoted = at < text.len && text.ptr[at] == '"', any = false;
    at += quoted;
    uint64_t number = 0;
    for (int digit; (digit = take_digit(text, &at, quoted)) >= 0; any = true) {
        number = number > INT64_MAX / 10 ? (uint64_t) INT64_MAX : number * 10 + (uint64_t) digit;
        number = number > INT64_MAX ? (uint64_t) INT64_MAX : number;
    }
    if (quoted && (at >= text.len || text.ptr[at++] != '"')) {
        return false;
    }
    at = skip_blanks(text, at);
    *wait_s = (int64_t) number;
    return any && (at == text.len || text.ptr[at] == ';');
}

/* The first element that is one. A comma in quotes separates nothing, and behind a quote that stays open there is nothing. */
static bool expected_wait(struct view text, int64_t *wait_s)
{
    bool quoted = false;
    for (size_t from = 0, at = 0; at <= text.len; at++) {
        if (at < text.len && (quoted || text.ptr[at] != ',')) {
            if (quoted && text.ptr[at] == '\\') {
                at += at + 1 < text.len; /* what is behind it means nothing */
            } else if (text.ptr[at] == '"') {
                quoted = !quoted;
            }
            continue;
        }
        if (quoted) {
            return false;
        }
        if (expected_element(view_make(text.ptr + from, at - from), wait_s)) {
            return true;
        }
        from = at + 1;
    }
    return false;
}

static bool read_around(const char *before, struct view value, const char *behind, int64_t *wait_s)
{
    struct buf text;
    buf_init(&text, value.len + 100);
    buf_append_text(&text, before);
    buf_append(&text, value);
    buf_append_text(&text, behind);
    bool found = prefer_read_wait(buf_view(&text), wait_s) == PREFER_WAIT;
    buf_fini(&text);
    return found;
}

FUZZ_TARGET(prefer)
{
    int64_t wait_s = -7, again_s = -7, expected_s = -7;
    bool found = prefer_read_wait(input, &wait_s) == PREFER_WAIT;
    MUST(found ? wait_s >= 0 : wait_s == -7);
    MUST(read_around("respond-async, x=\"a,wait=3\", ,wait, ", input, "", &again_s) == found && again_s == wait_s);
    if (found) {
        MUST(read_around("\t", input, ", wait=1", &again_s) && again_s == wait_s);
    }
    MUST(expected_wait(input, &expected_s) == found && (!found || expected_s == wait_s));
    return found;
}
