/* exposition.c - see exposition.h. */
#include "tests/support/exposition.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 128, LINE_MAX_BYTES = 1024, SERIES_MAX = 4096 };

/* The page up to here. */
struct reading {
    char family[NAME_MAX_BYTES];
    bool has_type, histogram, counter;
    double last_bound, last_bucket;
    bool bucket_infinite, has_sum, has_count;
    char *families[SERIES_MAX], *series[SERIES_MAX];
    size_t family_count, series_count;
};

static char fault[LINE_MAX_BYTES + 128];

static const char *wrong(const char *what, const char *line)
{
    (void) snprintf(fault, sizeof fault, "%s: %s", what, line);
    return fault;
}

/* False: it was there already. */
static bool remember(char **list, size_t *count, const char *text, size_t len)
{
    for (size_t i = 0; i < *count; i++) {
        if (strlen(list[i]) == len && memcmp(list[i], text, len) == 0) {
            return false;
        }
    }
    if (*count < SERIES_MAX) {
        list[(*count)++] = strndup(text, len);
    }
    return true;
}

static size_t name_len(const char *text)
{
    size_t len = 0;
    while (isalpha((unsigned char) text[len]) || text[len] == '_' || text[len] == ':' ||
           (len > 0 && isdigit((unsigned char) text[len]))) {
        len++;
    }
    return len;
}

/* Behind the closing brace; NULL: not well-formed. */
static const char *skip_labels(const char *at)
{
    at++;
    while (*at != '}') {
        size_t len = name_len(at);
        if (len == 0 || at[len] != '=' || at[len + 1] != '"') {
            return NULL;
        }
        for (at += len + 2; *at != '"'; at++) {
            if (*at == '\0' || (*at == '\\' && strchr("\\\"n", at[1]) == NULL) || (*at == '\\' && at[1] == '\0')) {
                return NULL;
            }
            at += *at == '\\';
        }
        at++;
        if (*at == ',' && at[1] != '}') {
            at++;
        } else if (*at != '}') {
            return NULL;
        }
    }
    return at + 1;
}

/* A family is over: a histogram must be whole. */
static const char *end_family(const struct reading *r)
{
    if (r->family[0] != '\0' && !r->has_type) {
        return wrong("a family without TYPE", r->family);
    }
    if (r->histogram && (!r->bucket_infinite || !r->has_sum || !r->has_count)) {
        return wrong("a histogram that is not whole", r->family);
    }
    return NULL;
}

static const char *read_comment(struct reading *r, const char *line)
{
    const char *name = line + strlen("# HELP ");
    size_t len = strlen(line) > strlen("# HELP ") ? name_len(name) : 0;
    if (len == 0 || len >= NAME_MAX_BYTES || name[len] != ' ' || name[len + 1] == '\0') {
        return wrong("a comment that is neither HELP nor TYPE", line);
    }
    if (strncmp(line, "# HELP ", 7) == 0) {
        const char *unfinished = end_family(r);
        if (unfinished != NULL) {
            return unfinished;
        }
        if (!remember(r->families, &r->family_count, name, len)) {
            return wrong("a family that comes twice", line);
        }
        (void) snprintf(r->family, sizeof r->family, "%.*s", (int) len, name);
        r->has_type = r->histogram = r->counter = r->bucket_infinite = r->has_sum = r->has_count = false;
        r->last_bound = -1;
        r->last_bucket = 0;
        return NULL;
    }
    if (strncmp(line, "# TYPE ", 7) != 0 || strlen(r->family) != len || strncmp(r->family, name, len) != 0 ||
        r->has_type) {
        return wrong("a TYPE that does not follow its HELP", line);
    }
    const char *type = name + len + 1;
    r->has_type = true;
    r->histogram = strcmp(type, "histogram") == 0;
    r->counter = strcmp(type, "counter") == 0;
    bool total = len > 6 && strncmp(name + len - 6, "_total", 6) == 0;
    if (!r->histogram && !r->counter && strcmp(type, "gauge") != 0) {
        return wrong("a type that is not used here", line);
    }
    return r->counter == total ? NULL : wrong("counters, and they alone, end in _total", line);
}

static const char *read_bucket(struct reading *r, const char *line, double value)
{
    const char *bound = strstr(line, "le=\"");
    double upper = bound != NULL ? strtod(bound + 4, NULL) : -1; /* "+Inf" is read too */
    if (bound == NULL || !(upper > r->last_bound) || value < r->last_bucket || r->bucket_infinite) {
        return wrong("buckets that do not ascend", line);
    }
    r->last_bound = upper;
    r->last_bucket = value;
    r->bucket_infinite = isinf(upper) != 0;
    return NULL;
}

static const char *read_sample(struct reading *r, const char *line)
{
    size_t family = strlen(r->family), len = name_len(line);
    if (len == 0 || family == 0 || strncmp(line, r->family, family) != 0 || !r->has_type) {
        return wrong("a sample without HELP and TYPE before it", line);
    }
    const char *rest = line[len] == '{' ? skip_labels(line + len) : line + len;
    char *end = NULL;
    if (rest == NULL || *rest != ' ') {
        return wrong("labels that are not well-formed", line);
    }
    double value = strtod(rest + 1, &end);
    if (end == rest + 1 || *end != '\0' || value < 0) {
        return wrong("a value that is no number", line);
    }
    if (!remember(r->series, &r->series_count, line, (size_t) (rest - line))) {
        return wrong("a series that comes twice", line);
    }
    const char *suffix = line + family;
    size_t suffix_len = len - family;
    if (!r->histogram) {
        return suffix_len == 0 ? NULL : wrong("a sample of another family", line);
    }
    if (suffix_len == 7 && strncmp(suffix, "_bucket", 7) == 0) {
        return read_bucket(r, line, value);
    }
    if (suffix_len == 4 && strncmp(suffix, "_sum", 4) == 0) {
        r->has_sum = true;
        return NULL;
    }
    r->has_count = suffix_len == 6 && strncmp(suffix, "_count", 6) == 0;
    return r->has_count && value == r->last_bucket ? NULL : wrong("a count that is not that of the buckets", line);
}

const char *exposition_fault(const char *page)
{
    static struct reading r;
    const char *found = NULL;
    r = (struct reading){ .family = "" };
    while (*page != '\0' && found == NULL) {
        char line[LINE_MAX_BYTES];
        size_t len = strcspn(page, "\n");
        (void) snprintf(line, sizeof line, "%.*s", (int) len, page);
        if (page[len] != '\n' || len >= sizeof line || len == 0) {
            found = wrong("a line that does not end, is empty or too long", line);
            break;
        }
        found = line[0] == '#' ? read_comment(&r, line) : read_sample(&r, line);
        page += len + 1;
    }
    found = found != NULL ? found : end_family(&r);
    for (size_t i = 0; i < r.family_count; i++) {
        free(r.families[i]);
    }
    for (size_t i = 0; i < r.series_count; i++) {
        free(r.series[i]);
    }
    return found;
}

bool exposition_has(const char *page, const char *line)
{
    size_t len = strlen(line);
    for (const char *at = page; *at != '\0'; at += strcspn(at, "\n") + 1) {
        if (strncmp(at, line, len) == 0 && at[len] == '\n') {
            return true;
        }
        if (strchr(at, '\n') == NULL) {
            break;
        }
    }
    return false;
}

double exposition_value(const char *page, const char *series)
{
    size_t len = strlen(series);
    for (const char *at = page; (at = strstr(at, series)) != NULL; at += len) {
        if ((at == page || at[-1] == '\n') && at[len] == ' ') {
            return strtod(at + len + 1, NULL);
        }
    }
    return -1;
}

void exposition_counted(const char *page, const char *prefix, char *lines, size_t size)
{
    size_t used = 0;
    lines[0] = '\0';
    for (const char *at = page; *at != '\0'; at += strcspn(at, "\n") + 1) {
        int len = (int) strcspn(at, "\n");
        bool zero = len > 2 && strncmp(at + len - 2, " 0", 2) == 0;
        if (strncmp(at, prefix, strlen(prefix)) == 0 && !zero && used < size) {
            used += (size_t) snprintf(lines + used, size - used, "%.*s\n", len, at);
        }
        if (strchr(at, '\n') == NULL) {
            break;
        }
    }
}
