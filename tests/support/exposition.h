/* exposition.h - reads a page of metrics as Prometheus would (text format 0.0.4), and more strictly. Shares no code with the server. */
#ifndef NONBIS_TESTS_EXPOSITION_H
#define NONBIS_TESTS_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>

/* NULL when the page is valid: every line is whole; each family has one HELP, then one TYPE, then its samples in one piece; no series comes twice;
 * counters end in _total; buckets ascend, add up, and end with +Inf, which is the count. Else what is wrong, with the line. */
const char *exposition_fault(const char *page);

/* Whether `line` is a line of it, to the last byte. */
bool exposition_has(const char *page, const char *line);
/* The value behind a series, written as on the page: name{label="value"}; -1 when it is not there. */
double exposition_value(const char *page, const char *series);
/* The lines that begin with `prefix` and whose value is not 0, in their order; cut at size. */
void exposition_counted(const char *page, const char *prefix, char *lines, size_t size);

#endif
