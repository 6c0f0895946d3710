/* route_parse.c - the text of a --route made into a route (docs/contract.md section 1).
 *
 *   METHOD PATH [OPTION=VALUE ...]      or, as it is printed,      "METHOD PATH" [OPTION=VALUE ...]
 *
 * A route is one block of memory: its text, and behind that what the text had to be turned into (the normal form of the
 * pattern, the tidied list of fields). Everything else in it points into the block. No state; any thread. */
#include "schema/limits.h"
#include "schema/wire.h"
#include "server/base/memory.h"
#include "server/config/values.h"
#include "server/http/headers.h"

#include <stdlib.h>
#include <string.h>

/* Bytes: a longer target is refused anyway. There is no bound on the whole text: printed, with every option, it is longer than it was given, and
 * must be read again. */
enum { PATH_MAX_BYTES = LIMIT_TARGET_BYTES };

/* A route under construction. */
struct draft {
    struct route route;
    struct view path; /* as written */
    struct setting_names drop;
    int64_t wait_max_ms;
    bool answer_default; /* answer_timeout is nobody's wish: a hard_timeout below it lowers it */
    unsigned seen;       /* bit per option: each may be given once */
    struct buf *error;
};

static bool refuse(struct buf *error, const char *expected, struct view got)
{
    buf_printf(error, "expected %s, got ", expected);
    shown_write(got, error);
    return false;
}

/* Cuts the next word off; blanks and tabs separate. False at the end. */
static bool word_next(struct view *rest, struct view *word)
{
    *rest = view_trim(*rest);
    size_t len = 0;
    while (len < rest->len && rest->ptr[len] != ' ' && rest->ptr[len] != '\t') {
        len++;
    }
    *word = view_make(rest->ptr, len);
    *rest = view_make(rest->ptr + len, rest->len - len);
    return len > 0;
}

/* --------------------------------------------------------------------------------------- method and path */

static bool method_take(struct draft *draft, struct view method)
{
    bool good = method.len > 0 && method.len <= 32;
    for (size_t i = 0; good && i < method.len; i++) {
        good = (method.ptr[i] >= 'A' && method.ptr[i] <= 'Z') || method.ptr[i] == '-';
    }
    if (!good && !view_equal(method, VIEW("*"))) {
        return refuse(draft->error, "METHOD PATH with a method in capitals, such as POST, or *", method);
    }
    if (view_equal(method, VIEW("CONNECT")) || view_equal(method, VIEW("TRACE"))) {
        return refuse(draft->error, "a method other than CONNECT and TRACE, which are never served", method);
    }
    draft->route.method = method;
    return true;
}

/* What is wrong with a path as a pattern, or NULL. `form` is its normal form. */
static const char *path_fault(struct view path, const struct path_form *form)
{
    if (path.len > PATH_MAX_BYTES) {
        return "a path of at most 4096 bytes";
    }
    for (size_t i = 0; i < path.len; i++) {
        unsigned char byte = (unsigned char) path.ptr[i];
        if (byte <= 0x20 || byte >= 0x7F) {
            return "a path of visible ASCII (%XX for other bytes)";
        }
        if (byte == '"') { /* a printed route stands in quotes */
            return "a path with %22 where it has a quote";
        }
        if (byte == '?' || byte == '#') {
            return "a path without query and fragment (a query never decides the route)";
        }
        if (byte == '*' && i + 1 < path.len) {
            return "a path with a * at its end only";
        }
    }
    if (path.len == 0 || path.ptr[0] != '/') {
        return "a path that starts with /, such as /orders/*";
    }
    if (form->malformed) {
        return "two hex digits behind every % of the path";
    }
    if (form->ambiguous) {
        return "a path without dot segments, %2F and %00 (such requests are refused where they could be protected)";
    }
    struct view own = VIEW(WIRE_PREFIX);
    struct view normal = buf_view(&form->normal);
    bool below = view_starts_with(normal, own) && (normal.len == own.len || strchr("/*", normal.ptr[own.len]) != NULL);
    return below ? "a path outside " WIRE_PREFIX ", which belongs to nonbis" : NULL;
}

/* Takes "METHOD PATH", quoted or not, off `rest`. */
static bool head_take(struct draft *draft, struct view *rest)
{
    struct view head = *rest, method = { NULL, 0 }, path = { NULL, 0 };
    const char *quote = rest->len > 1 && rest->ptr[0] == '"' ? memchr(rest->ptr + 1, '"', rest->len - 1) : NULL;
    if (quote != NULL) {
        head = view_make(rest->ptr + 1, (size_t) (quote - rest->ptr) - 1);
        *rest = view_make(quote + 1, rest->len - head.len - 2);
    }
    word_next(&head, &method);
    word_next(&head, &path);
    if (!method_take(draft, method)) {
        return false;
    }
    if (quote == NULL) {
        *rest = head;
    } else if (view_trim(head).len > 0) {
        return refuse(draft->error, "METHOD PATH between the quotes", head);
    }
    draft->path = path;
    return true;
}

/* --------------------------------------------------------------------------------------- options */

/* "401,403"; `first` and `last` bound the statuses. */
static bool statuses_take(struct status_set *set, struct view text, int first, int last, struct buf *error)
{
    struct status_set made = { { 0 } };
    struct view rest = text, item;
    while (view_next_item(&rest, ',', &item)) {
        uint64_t status = 0;
        if (!view_to_uint64(item, &status) || status < (uint64_t) first || status > (uint64_t) last) {
            buf_printf(error, "expected status codes from %d to %d separated by commas, got ", first, last);
            shown_write(item, error);
            return false;
        }
        status_set_add(&made, (int) status);
    }
    *set = made;
    return true;
}

/* As the setting of the same name, with its range. */
static bool time_take(int64_t *ms, const char *name, struct view value, struct buf *error)
{
    const struct setting_row *row = setting_find(view_of(name));
    return duration_read(value, row->min, row->max, ms, error);
}

enum option {
    OPTION_KEY,
    OPTION_TTL,
    OPTION_TOMBSTONE_TTL,
    OPTION_ANSWER,
    OPTION_HARD,
    OPTION_WAIT,
    OPTION_RELEASE,
    OPTION_UNKNOWN,
    OPTION_DROP
};
static const char *const option_names[] = {
    "key",         "ttl", "tombstone_ttl", "answer_timeout", "hard_timeout", "in_flight_wait", "release", "unknown",
    "replay_drop", NULL
};

static bool key_take(struct route *route, struct view value, struct buf *error)
{
    bool optional = view_equal(value, VIEW("optional"));
    if (!optional && !view_equal(value, VIEW("required"))) {
        return refuse(error, "required or optional", value);
    }
    route->key_required = !optional;
    return true;
}

static bool option_set(struct draft *draft, int option, struct view value)
{
    struct route *route = &draft->route;
    const char *name = option_names[option];
    switch ((enum option) option) {
    case OPTION_KEY:
        return key_take(route, value, draft->error);
    case OPTION_TTL:
        return time_take(&route->retention.ttl_ms, name, value, draft->error);
    case OPTION_TOMBSTONE_TTL:
        return time_take(&route->retention.tombstone_ttl_ms, name, value, draft->error);
    case OPTION_ANSWER:
        return time_take(&route->answer_timeout_ms, name, value, draft->error);
    case OPTION_HARD:
        return time_take(&route->hard_timeout_ms, name, value, draft->error);
    case OPTION_WAIT:
        return time_take(&route->in_flight_wait_ms, "wait_max", value, draft->error);
    case OPTION_RELEASE:
        /* A success that may run again would be the very thing that nonbis prevents. */
        return statuses_take(&route->rules.release, value, 400, 599, draft->error);
    case OPTION_UNKNOWN:
        return statuses_take(&route->rules.unknown, value, 200, 599, draft->error);
    case OPTION_DROP:
        return names_read(value, &draft->drop, draft->error);
    }
    return false;
}

static bool option_take(struct draft *draft, struct view word)
{
    const char *equals = memchr(word.ptr, '=', word.len);
    struct view name = view_make(word.ptr, equals != NULL ? (size_t) (equals - word.ptr) : word.len);
    int option = 0;
    while (option_names[option] != NULL && !view_equal(name, view_of(option_names[option]))) {
        option++;
    }
    if (option_names[option] == NULL) {
        buf_append_text(draft->error, "unknown option ");
        shown_write(name, draft->error);
        const char *near = nearest_name(name, option_names);
        if (near != NULL) {
            buf_printf(draft->error, "; did you mean %s?", near);
        } else {
            buf_append_text(draft->error,
                            "; options are key, ttl, tombstone_ttl, answer_timeout, hard_timeout, in_flight_wait, "
                            "release, unknown, replay_drop");
        }
        return false;
    }
    if (equals == NULL) {
        buf_printf(draft->error, "expected %s=VALUE, got no value", option_names[option]);
        return false;
    }
    if ((draft->seen & 1U << option) != 0) {
        buf_printf(draft->error, "option %s is given twice", option_names[option]);
        return false;
    }
    draft->seen |= 1U << option;
    size_t told = draft->error->len;
    size_t value_at = name.len + 1;
    buf_printf(draft->error, "%s: ", option_names[option]);
    if (!option_set(draft, option, view_make(word.ptr + value_at, word.len - value_at))) {
        return false;
    }
    draft->error->len = told; /* there is nothing to tell */
    return true;
}

/* --------------------------------------------------------------------------------------- relations */

static bool seen_any(const struct draft *draft, enum option one, enum option other)
{
    return (draft->seen & (1U << one | 1U << other)) != 0;
}

static void refuse_order(struct buf *error, const char *smaller, int64_t smaller_ms, const char *larger,
                         int64_t larger_ms)
{
    buf_printf(error, "expected %s (", smaller);
    duration_write(smaller_ms, error);
    buf_printf(error, ") to be at most %s (", larger);
    duration_write(larger_ms, error);
    buf_append_text(error, ")");
}

/* Both given: the contradiction is in the text. One given: the other came from the settings. */
static void refuse_order_hint(const struct draft *draft, enum option smaller, enum option larger)
{
    bool has_smaller = (draft->seen & 1U << smaller) != 0;
    bool has_larger = (draft->seen & 1U << larger) != 0;
    if (has_smaller != has_larger) {
        buf_printf(draft->error, "; give the route its own %s", option_names[has_smaller ? larger : smaller]);
    }
}

/* What must hold within a route. A pair that came whole from the settings is their own matter, told once there. */
static bool relations_hold(struct draft *draft)
{
    struct route *route = &draft->route;
    bool answer_given = (draft->seen & 1U << OPTION_ANSWER) != 0;
    if (draft->answer_default && !answer_given && route->answer_timeout_ms > route->hard_timeout_ms) {
        route->answer_timeout_ms = route->hard_timeout_ms;
    }
    if (seen_any(draft, OPTION_ANSWER, OPTION_HARD) && route->answer_timeout_ms > route->hard_timeout_ms) {
        refuse_order(draft->error, "answer_timeout", route->answer_timeout_ms, "hard_timeout", route->hard_timeout_ms);
        refuse_order_hint(draft, OPTION_ANSWER, OPTION_HARD);
        return false;
    }
    if (route->in_flight_wait_ms > draft->wait_max_ms) {
        refuse_order(draft->error, "in_flight_wait", route->in_flight_wait_ms, "wait_max", draft->wait_max_ms);
        return false;
    }
    const struct retention *kept = &route->retention;
    if (seen_any(draft, OPTION_TTL, OPTION_TOMBSTONE_TTL) && kept->ttl_ms > kept->tombstone_ttl_ms) {
        refuse_order(draft->error, "ttl", kept->ttl_ms, "tombstone_ttl", kept->tombstone_ttl_ms);
        refuse_order_hint(draft, OPTION_TTL, OPTION_TOMBSTONE_TTL);
        return false;
    }
    for (int status = 400; status < 600; status++) {
        if (status_set_has(&route->rules.release, status) && status_set_has(&route->rules.unknown, status)) {
            buf_printf(draft->error, "status %d is in release and in unknown; it can mean one of them", status);
            return false;
        }
    }
    return true;
}

/* --------------------------------------------------------------------------------------- the whole */

/* Moves what the draft points to into a block of the route's own. */
static void route_settle(struct draft *draft, struct view text, struct view normal, struct route *route)
{
    struct view drop = view_of(draft->drop.text);
    char *block = memory_new(text.len + 1 + normal.len + drop.len);
    memcpy(block, text.ptr, text.len);
    char *pattern = block + text.len + 1;
    memcpy(pattern, normal.ptr, normal.len);
    if (drop.len > 0) {
        memcpy(pattern + normal.len, drop.ptr, drop.len);
    }
    *route = draft->route;
    route->text = block;
    route->method.ptr = block + (draft->route.method.ptr - text.ptr);
    route->pattern = view_make(pattern, normal.len);
    route->replay_drop = view_make(pattern + normal.len, drop.len);
}

static bool draft_read(struct draft *draft, struct view text, struct route *route)
{
    struct view rest = text, word;
    if (!head_take(draft, &rest)) {
        return false;
    }
    struct path_form form;
    path_form_init(&form, draft->path);
    const char *fault = path_fault(draft->path, &form);
    bool good = fault == NULL || refuse(draft->error, fault, draft->path);
    while (good && word_next(&rest, &word)) {
        good = option_take(draft, word);
    }
    good = good && relations_hold(draft);
    if (good) {
        route_settle(draft, text, buf_view(&form.normal), route);
    }
    path_form_fini(&form);
    return good;
}

bool route_parse(struct route *route, struct view text, const struct settings *defaults, struct buf *error)
{
    *route = (struct route){ .text = NULL };
    text = view_trim(text);
    if (text.len == 0) {
        return refuse(error, "METHOD PATH [OPTION=VALUE ...]", text);
    }
    struct draft draft = {
        .answer_default = defaults->sources[setting_find(VIEW("answer_timeout")) - setting_table] == SOURCE_DEFAULT,
        .route = { .key_required = true,
                   .retention = { defaults->ttl_ms, defaults->tombstone_ttl_ms },
                   .answer_timeout_ms = defaults->answer_timeout_ms,
                   .hard_timeout_ms = defaults->hard_timeout_ms },
        .wait_max_ms = defaults->wait_max_ms,
        .error = error,
    };
    bool good = draft_read(&draft, text, route);
    free(draft.drop.text);
    return good;
}

void route_fini(struct route *route)
{
    free(route->text);
    *route = (struct route){ .text = NULL };
}
