/* metrics.c - see metrics.h. */
#include "server/base/metrics.h"

void metrics_observe(struct metrics_histogram *histogram, const struct metrics_bounds *bounds, uint64_t parts)
{
    unsigned at = 0;
    while (at < bounds->count && parts > bounds->upper[at]) {
        at++;
    }
    metrics_add(&histogram->counts[at], 1);
    metrics_add(&histogram->sum, parts);
}

void metrics_histogram_add(struct metrics_histogram *total, const struct metrics_histogram *live)
{
    for (unsigned i = 0; i <= METRICS_BOUNDS_MAX; i++) {
        total->counts[i] += metrics_read(&live->counts[i]);
    }
    total->sum += metrics_read(&live->sum);
}

/* --- the text --- */

/* A backslash, a line feed, and in a value a quote would end the text or the line. */
static void write_escaped(struct buf *out, struct view text, bool quoted)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '\n') {
            buf_append(out, VIEW("\\n"));
            continue;
        }
        if (c == '\\' || (c == '"' && quoted)) {
            buf_append(out, VIEW("\\"));
        }
        buf_append_bytes(out, &c, 1);
    }
}

void metrics_write_family(struct buf *out, const struct metrics_family *family)
{
    buf_append(out, VIEW("# HELP "));
    buf_append_text(out, family->name);
    buf_append(out, VIEW(" "));
    write_escaped(out, view_of(family->help), false);
    buf_append(out, VIEW("\n# TYPE "));
    buf_append_text(out, family->name);
    buf_append(out, VIEW(" "));
    buf_append_text(out, family->type);
    buf_append(out, VIEW("\n"));
}

/* "0.00025", "1": no zeros at the end, no point without digits behind it. */
static void write_decimal(struct buf *out, uint64_t parts, uint64_t per)
{
    uint64_t rest = parts % per;
    buf_append_uint(out, parts / per);
    if (rest != 0) {
        buf_append(out, VIEW("."));
    }
    for (uint64_t digit = per / 10; rest != 0; digit /= 10) {
        buf_append_uint(out, rest / digit);
        rest %= digit;
    }
}

static void write_label(struct buf *out, bool first, const struct metrics_label *label)
{
    buf_append_text(out, first ? "{" : ",");
    buf_append_text(out, label->name);
    buf_append(out, VIEW("=\""));
    write_escaped(out, label->value, true);
    buf_append(out, VIEW("\""));
}

static void write_line(struct buf *out, const char *name, const char *suffix, const struct metrics_label *labels,
                       size_t label_count, uint64_t parts, uint64_t per)
{
    buf_append_text(out, name);
    buf_append_text(out, suffix);
    for (size_t i = 0; i < label_count; i++) {
        write_label(out, i == 0, &labels[i]);
    }
    buf_append_text(out, label_count > 0 ? "} " : " ");
    write_decimal(out, parts, per);
    buf_append(out, VIEW("\n"));
}

void metrics_write_sample(struct buf *out, const struct metrics_family *family, const struct metrics_label *labels,
                          size_t label_count, uint64_t parts, uint64_t per)
{
    write_line(out, family->name, "", labels, label_count, parts, per);
}

void metrics_write_histogram(struct buf *out, const struct metrics_family *family, const struct metrics_bounds *bounds,
                             const struct metrics_histogram *histogram)
{
    uint64_t count = 0;
    struct buf text;
    buf_init(&text, 64);
    for (unsigned i = 0; i <= bounds->count; i++) {
        buf_clear(&text);
        if (i < bounds->count) {
            write_decimal(&text, bounds->upper[i], bounds->parts);
        } else {
            buf_append(&text, VIEW("+Inf"));
        }
        count += histogram->counts[i];
        const struct metrics_label bound = { "le", buf_view(&text) };
        write_line(out, family->name, "_bucket", &bound, 1, count, 1);
    }
    write_line(out, family->name, "_sum", NULL, 0, histogram->sum, bounds->parts);
    write_line(out, family->name, "_count", NULL, 0, count, 1);
    buf_fini(&text);
}
