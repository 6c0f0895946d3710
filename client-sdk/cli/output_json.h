/* output_json.h - the objects of --json. Texts on stdout, a line each. */
#ifndef NONBIS_CLI_OUTPUT_JSON_H
#define NONBIS_CLI_OUTPUT_JSON_H

#include "client-sdk/cli/exit_code.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

/* How an operation ended; `with_body`: with what it answered. The caller deletes it. */
cJSON *output_json_end(const struct nonbis_op *op, enum exit_code code, bool with_body);
cJSON *output_json_refusal(const char *why, enum exit_code code);
/* Of one question. */
cJSON *output_json_status(const struct nonbis_op *op, const struct nonbis_status *status, enum exit_code code);
cJSON *output_json_entry(const struct nonbis_journal_entry *entry);

/* A string of JSON, which is UTF-8 (RFC 8259 section 8.1), of bytes that may be none. NULL: out of memory. */
cJSON *output_json_text(const char *text);

/* Prints it and a line's end, and deletes it. False: stdout does not take it, or memory is out. */
bool output_json_print(cJSON *object);

#endif
