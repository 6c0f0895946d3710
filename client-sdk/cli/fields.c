/* fields.c - see fields.h. A name may come once: the library keeps one line per name, and to drop one silently would send another
 * request than was asked for. */
#include "client-sdk/cli/fields.h"

#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { SECRET_BYTES = 64 * 1024, FIELD_NAME_MAX = 200, LINE_MAX_BYTES = 16 * 1024 };

bool field_is_secret(const char *name)
{
    static const char *const smells[] = { "auth",    "token",     "key",    "secret",     "password",
                                          "cookie",  "session",   "passwd", "credential", "signature",
                                          "api-sig", "assertion", "bearer" };
    char low[FIELD_NAME_MAX + 1];
    size_t len = strlen(name);
    if (len > FIELD_NAME_MAX) {
        return true;
    }
    for (size_t i = 0; i <= len; i++) {
        low[i] = (char) (name[i] >= 'A' && name[i] <= 'Z' ? name[i] + ('a' - 'A') : name[i]);
    }
    for (size_t i = 0; i < sizeof smells / sizeof smells[0]; i++) {
        if (strstr(low, smells[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* ---- --auth-file -------------------------------------------------------------------------------------------------- */

static void warn_of_mode(const char *path)
{
    struct stat about;
    if (stat(path, &about) == 0 && S_ISREG(about.st_mode) && (about.st_mode & 077) != 0) {
        complain("warning: --auth-file %s can be read by others (mode %04o)", path, (unsigned) about.st_mode & 07777U);
    }
}

bool fields_init(struct fields *fields, const struct options *options)
{
    *fields = (struct fields){ .options = options };
    buf_init(&fields->secret, SECRET_BYTES);
    const char *path = options->values[OPTION_AUTH_FILE];
    if (path == NULL) {
        return true;
    }
    if (!file_read_path(path, &fields->secret)) {
        complain("--auth-file %s cannot be read: %s; nothing was sent", path,
                 errno == EFBIG ? "it has more than 64 KiB" : strerror(errno));
        return false;
    }
    warn_of_mode(path);
    return true;
}

void fields_fini(struct fields *fields)
{
    buf_fini(&fields->secret);
}

/* ---- lines -------------------------------------------------------------------------------------------------------- */

struct line {
    char name[FIELD_NAME_MAX + 1];
    char value[LINE_MAX_BYTES];
};

/* "Name: value", the blanks around the value left out. */
static bool line_read(struct view text, const char *where, struct line *line)
{
    const char *colon = memchr(text.ptr, ':', text.len);
    size_t name_len = colon != NULL ? (size_t) (colon - text.ptr) : 0;
    if (name_len == 0 || name_len > FIELD_NAME_MAX || text.len - name_len >= sizeof line->value) {
        complain("%s wants 'Name: value', a name of at most %d bytes and a line of at most %d; nothing was sent", where,
                 FIELD_NAME_MAX, LINE_MAX_BYTES);
        return false;
    }
    if (memchr(text.ptr, '\0', text.len) != NULL) { /* what stands behind it would be left out */
        complain("%s holds a NUL byte; nothing was sent", where);
        return false;
    }
    struct view value = view_trim(view_make(colon + 1, text.len - name_len - 1));
    (void) snprintf(line->name, sizeof line->name, "%.*s", (int) name_len, text.ptr);
    (void) snprintf(line->value, sizeof line->value, "%.*s", VIEW_ARGS(value));
    return true;
}

struct walk {
    bool (*each)(void *arg, const char *name, const char *value, bool secret);
    void *arg;
    char seen[OPTIONS_FIELDS_MAX * 2][FIELD_NAME_MAX + 1];
    size_t seen_count;
    bool has_type;
};

static bool walk_line(struct walk *walk, struct view text, const char *where, bool secret)
{
    struct line line;
    if (!line_read(text, where, &line)) {
        return false;
    }
    for (size_t i = 0; i < walk->seen_count; i++) {
        if (strcasecmp(walk->seen[i], line.name) == 0) {
            complain("%s: %s is given twice, and one line per name can be sent; nothing was sent", where, line.name);
            return false;
        }
    }
    if (walk->seen_count == sizeof walk->seen / sizeof walk->seen[0]) {
        complain("%s: too many fields; nothing was sent", where);
        return false;
    }
    (void) snprintf(walk->seen[walk->seen_count++], sizeof walk->seen[0], "%s", line.name);
    if (strcasecmp(line.name, "Content-Type") == 0) {
        walk->has_type = true;
        if (line.value[0] == '\0') {
            return true; /* 'Content-Type:' says that there shall be none */
        }
    }
    return walk->each(walk->arg, line.name, line.value, secret || field_is_secret(line.name));
}

static bool walk_secrets(struct walk *walk, struct view rest)
{
    struct view text;
    while (view_next_item(&rest, '\n', &text)) {
        while (text.len > 0 && text.ptr[text.len - 1] == '\r') {
            text.len--;
        }
        if (text.len > 0 && text.ptr[0] != '#' && !walk_line(walk, text, "a line of --auth-file", true)) {
            return false;
        }
    }
    return true;
}

static bool walk_all(struct walk *walk, const struct fields *fields, bool has_body)
{
    for (size_t i = 0; i < fields->options->field_count; i++) {
        if (!walk_line(walk, view_of(fields->options->fields[i]), "-H", false)) {
            return false;
        }
    }
    if (!walk_secrets(walk, buf_view(&fields->secret))) {
        return false;
    }
    return !has_body || walk->has_type || walk->each(walk->arg, "Content-Type", "application/json", false);
}

bool fields_each(const struct fields *fields, bool has_body,
                 bool (*each)(void *arg, const char *name, const char *value, bool secret), void *arg)
{
    struct walk *walk = calloc(1, sizeof *walk); /* 40 KiB: not for the stack */
    if (walk == NULL) {
        complain("out of memory for the fields of the request"); /* also asked for when it was sent */
        return false;
    }
    walk->each = each;
    walk->arg = arg;
    bool good = walk_all(walk, fields, has_body);
    free(walk);
    return good;
}

/* ---- onto an operation -------------------------------------------------------------------------------------------- */

static bool put_one(void *arg, const char *name, const char *value, bool secret)
{
    int error = nonbis_op_set_header(arg, name, value, secret ? 0 : NONBIS_HEADER_STORED);
    if (error == NONBIS_OK) {
        return true;
    }
    if (strcasecmp(name, "Idempotency-Key") == 0) {
        complain(
            "-H Idempotency-Key: the key is given with -k, so that it is the same on every attempt; nothing was sent");
    } else {
        complain("the field %s cannot be set: %s; nothing was sent", name, nonbis_error_text(error));
    }
    return false;
}

bool fields_put(const struct fields *fields, struct nonbis_op *op, bool has_body)
{
    return fields_each(fields, has_body, put_one, op);
}

static bool put_lacking(void *arg, const char *name, const char *value, bool secret)
{
    for (unsigned i = 0; nonbis_op_lacks(arg, i) != NULL; i++) {
        if (strcasecmp(nonbis_op_lacks(arg, i), name) == 0) {
            return put_one(arg, name, value, secret);
        }
    }
    return true;
}

bool fields_put_lacking(const struct fields *fields, struct nonbis_op *op)
{
    return fields_each(fields, false, put_lacking, op);
}

static bool note_secret(void *arg, const char *name, const char *value, bool secret)
{
    bool *any = arg;
    (void) name;
    (void) value;
    *any = *any || secret;
    return true;
}

bool fields_have_secrets(const struct fields *fields)
{
    bool any = false;
    return fields_each(fields, false, note_secret, &any) && any;
}
