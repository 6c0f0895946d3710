/* output_json.c - see output_json.h. Names are those of the library; what is not there is null. */
#include "client-sdk/cli/output_json.h"

#include "client-sdk/cli/file.h"
#include "common/http_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- bytes -------------------------------------------------------------------------------------------------------- */

/* Whether the bytes are UTF-8 (RFC 3629) without NUL, so that a JSON text can hold them as they are. */
static bool is_text(const unsigned char *at, size_t len)
{
    size_t i = 0;
    while (i < len) {
        unsigned lead = at[i];
        unsigned more = lead < 0x80 ? 0 : lead < 0xC2 ? 9 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : lead < 0xF5 ? 3 : 9;
        if (lead == 0 || more == 9 || len - i <= more) {
            return false;
        }
        for (unsigned k = 1; k <= more; k++) {
            if ((at[i + k] & 0xC0U) != 0x80U) {
                return false;
            }
        }
        bool wrong = (lead == 0xE0 && at[i + 1] < 0xA0) || (lead == 0xED && at[i + 1] > 0x9F) ||
                     (lead == 0xF0 && at[i + 1] < 0x90) || (lead == 0xF4 && at[i + 1] > 0x8F);
        if (wrong) {
            return false;
        }
        i += more + 1;
    }
    return true;
}

static char *base64_make(const unsigned char *at, size_t len)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = malloc((len + 2) / 3 * 4 + 1), *to = out;
    for (size_t i = 0; out != NULL && i < len; i += 3) {
        unsigned second = i + 1 < len ? at[i + 1] : 0U, third = i + 2 < len ? at[i + 2] : 0U;
        unsigned word = (unsigned) at[i] << 16 | second << 8 | third;
        *to++ = letters[word >> 18];
        *to++ = letters[word >> 12 & 63];
        *to++ = i + 1 < len ? letters[word >> 6 & 63] : '=';
        *to++ = i + 2 < len ? letters[word & 63] : '=';
    }
    if (out != NULL) {
        *to = '\0';
    }
    return out;
}

cJSON *output_json_text(const char *text)
{
    size_t len = strlen(text);
    if (is_text((const unsigned char *) text, len)) {
        return cJSON_CreateString(text);
    }
    char *out = malloc(2 * len + 1), *to = out;
    for (size_t i = 0; out != NULL && i < len;) {
        const unsigned char *at = (const unsigned char *) text + i;
        size_t size = 1;
        while (size <= 4 && size <= len - i && !is_text(at, size)) {
            size++;
        }
        if (size <= 4 && size <= len - i) {
            memcpy(to, at, size);
            to += size;
            i += size;
        } else { /* as ISO 8859-1, which fields were once (RFC 9110 section 5.5) */
            *to++ = (char) (0xC0 | *at >> 6);
            *to++ = (char) (0x80 | (*at & 0x3F));
            i++;
        }
    }
    if (out != NULL) {
        *to = '\0';
    }
    cJSON *string = out != NULL ? cJSON_CreateString(out) : NULL;
    free(out);
    return string;
}

/* ---- members ------------------------------------------------------------------------------------------------------ */

static void add_text(cJSON *object, const char *name, const char *text)
{
    if (text == NULL || text[0] == '\0') {
        cJSON_AddNullToObject(object, name);
    } else {
        cJSON_AddItemToObject(object, name, output_json_text(text));
    }
}

static void add_number(cJSON *object, const char *name, int64_t number, int64_t none)
{
    if (number == none) {
        cJSON_AddNullToObject(object, name);
    } else {
        cJSON_AddNumberToObject(object, name, (double) number);
    }
}

static void add_time(cJSON *object, const char *name, int64_t wall_ms)
{
    char text[RFC3339_BYTES] = "";
    if (wall_ms != 0) {
        rfc3339_write(wall_ms, text);
    }
    add_text(object, name, text);
}

static void add_body(cJSON *object, const struct nonbis_op *op)
{
    size_t len = 0;
    const unsigned char *body = nonbis_op_body(op, &len);
    bool plain = len == 0 || is_text(body, len);
    char *text = plain ? malloc(len + 1) : base64_make(body, len);
    if (text != NULL && plain) {
        if (len > 0) {
            memcpy(text, body, len);
        }
        text[len] = '\0';
    }
    if (text != NULL) {
        cJSON_AddStringToObject(object, plain ? "body" : "body_base64", text);
    }
    free(text);
}

static void add_fields(cJSON *object, const struct nonbis_op *op)
{
    cJSON *fields = cJSON_AddArrayToObject(object, "headers");
    const char *name = NULL, *value = NULL;
    for (size_t i = 0; nonbis_op_field_at(op, i, &name, &value); i++) {
        cJSON *pair = cJSON_CreateArray();
        cJSON_AddItemToArray(pair, output_json_text(name));
        cJSON_AddItemToArray(pair, output_json_text(value));
        cJSON_AddItemToArray(fields, pair);
    }
}

static void add_attempts(cJSON *object, const struct nonbis_op *op)
{
    cJSON *attempts = cJSON_AddArrayToObject(object, "attempts");
    for (unsigned i = 0; i < nonbis_op_attempts(op); i++) {
        const struct nonbis_attempt *attempt = nonbis_op_attempt(op, i);
        cJSON *one = cJSON_CreateObject();
        cJSON_AddNumberToObject(one, "n", attempt->number);
        cJSON_AddStringToObject(one, "class", attempt->result);
        add_text(one, "error_kind", attempt->error_kind);
        cJSON_AddBoolToObject(one, "sent", attempt->sent);
        add_number(one, "http", attempt->http_status, 0);
        cJSON_AddNumberToObject(one, "transport_code", attempt->transport_code);
        cJSON_AddNumberToObject(one, "bytes_sent", (double) attempt->bytes_sent);
        cJSON_AddNumberToObject(one, "ms", (double) attempt->elapsed_ms);
        cJSON_AddNumberToObject(one, "delay_ms", (double) attempt->delay_ms);
        add_text(one, "reason", attempt->delay_reason);
        add_time(one, "started", attempt->started_wall_ms);
        cJSON_AddItemToArray(attempts, one);
    }
}

static void add_warnings(cJSON *object, unsigned marks)
{
    static const struct {
        unsigned mark;
        const char *word;
    } words[] = { { NONBIS_MARK_UNRECORDED, "unrecorded" },
                  { NONBIS_MARK_IGNORED, "key-ignored" },
                  { NONBIS_MARK_BODY_LOST, "body-lost" },
                  { NONBIS_MARK_CREDENTIALS, "other-credentials" } };
    cJSON *warnings = cJSON_AddArrayToObject(object, "warnings");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if ((marks & words[i].mark) != 0) {
            cJSON_AddItemToArray(warnings, cJSON_CreateString(words[i].word));
        }
    }
}

/* ---- objects ------------------------------------------------------------------------------------------------------ */

cJSON *output_json_end(const struct nonbis_op *op, enum exit_code code, bool with_body)
{
    unsigned marks = nonbis_op_marks(op);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "outcome", nonbis_outcome_name(nonbis_op_outcome(op)));
    cJSON_AddStringToObject(object, "stop", nonbis_stop_name(nonbis_op_stop(op)));
    add_text(object, "reason", nonbis_op_reason(op));
    cJSON_AddNumberToObject(object, "exit_code", code);
    add_text(object, "key", nonbis_op_key(op));
    cJSON_AddStringToObject(object, "method", nonbis_op_method(op));
    cJSON_AddStringToObject(object, "url", nonbis_op_url(op));
    cJSON_AddBoolToObject(object, "final", nonbis_op_is_final(op));
    cJSON_AddBoolToObject(object, "replayed", (marks & NONBIS_MARK_REPLAYED) != 0);
    cJSON_AddBoolToObject(object, "voided", (marks & NONBIS_MARK_VOIDED) != 0);
    add_warnings(object, marks);
    add_attempts(object, op);
    add_number(object, "retry_after_s", nonbis_op_retry_after_s(op), -1);
    add_number(object, "deadline_left_ms", nonbis_op_deadline_left_ms(op), -1);
    add_text(object, "expires", nonbis_op_field(op, "Idempotency-Expires"));
    add_text(object, "message", nonbis_op_message(op));
    add_number(object, "status", nonbis_op_http_status(op), 0);
    if (nonbis_op_http_status(op) != 0) {
        add_fields(object, op);
        cJSON_AddBoolToObject(object, "body_is_whole", nonbis_op_body_is_whole(op));
        if (with_body) {
            add_body(object, op);
        }
    }
    return object;
}

cJSON *output_json_refusal(const char *why, enum exit_code code)
{
    cJSON *object = cJSON_CreateObject();
    add_text(object, "error", why);
    cJSON_AddNumberToObject(object, "exit_code", code);
    return object;
}

cJSON *output_json_status(const struct nonbis_op *op, const struct nonbis_status *status, enum exit_code code)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "exit_code", code);
    cJSON_AddStringToObject(object, "key", nonbis_op_key(op));
    cJSON_AddStringToObject(object, "url", nonbis_op_url(op));
    cJSON_AddBoolToObject(object, "answered", status->answered);
    cJSON_AddBoolToObject(object, "seen", status->seen);
    if (!status->answered) {
        add_text(object, "message", nonbis_op_message(op));
        return object;
    }
    add_time(object, "window_start", status->window_start_ms);
    if (!status->seen) {
        return object;
    }
    add_text(object, "state", status->state);
    add_text(object, "executed", status->executed);
    add_text(object, "id", status->id);
    add_text(object, "cause", status->cause);
    cJSON_AddNumberToObject(object, "executions", (double) status->executions);
    cJSON_AddNumberToObject(object, "replays", (double) status->replays);
    add_time(object, "created_at", status->created_ms);
    add_time(object, "completed_at", status->completed_ms);
    add_time(object, "expires_at", status->expires_ms);
    cJSON_AddBoolToObject(object, "resolved", status->resolved);
    add_text(object, "request_method", status->request_method);
    add_text(object, "request_target", status->request_target);
    add_number(object, "response_status", status->response_status, 0);
    add_number(object, "response_length", status->response_status != 0 ? status->response_length : -1, -1);
    cJSON_AddBoolToObject(object, "response_kept", status->response_kept);
    add_number(object, "retry_after_ms", status->retry_after_ms, -1);
    return object;
}

cJSON *output_json_entry(const struct nonbis_journal_entry *entry)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "state", entry->state);
    add_text(object, "key", entry->key);
    cJSON_AddStringToObject(object, "method", entry->method);
    add_text(object, "url", entry->url);
    cJSON_AddNumberToObject(object, "body_length", (double) entry->body_len);
    add_time(object, "created", entry->created_wall_ms);
    add_time(object, "changed", entry->changed_wall_ms);
    add_text(object, "outcome", entry->outcome != 0 ? nonbis_outcome_name(entry->outcome) : "");
    add_text(object, "stop", entry->stop != 0 ? nonbis_stop_name(entry->stop) : "");
    add_number(object, "status", entry->http_status, 0);
    cJSON_AddBoolToObject(object, "locked", entry->locked);
    add_text(object, "fault", entry->fault != NULL ? entry->fault : "");
    return object;
}

/* cJSON leaves DEL and the control characters of UTF-8 as they are, and a terminal obeys them: U+0080 to U+009F as \\u0080 and so
 * on say the same. */
static bool print_escaped(const char *text)
{
    const char *from = text;
    for (const char *at = text; *at != '\0'; at++) {
        bool two = (unsigned char) at[0] == 0xC2 && (unsigned char) at[1] >= 0x80 && (unsigned char) at[1] <= 0x9F;
        char escape[8];
        if (!two && *at != 0x7F) {
            continue;
        }
        (void) snprintf(escape, sizeof escape, "\\u%04x", two ? (unsigned char) at[1] : 0x7FU);
        if (!file_write(STDOUT_FILENO, from, (size_t) (at - from)) || !file_write(STDOUT_FILENO, escape, 6)) {
            return false;
        }
        at += two ? 1 : 0;
        from = at + 1;
    }
    return file_write(STDOUT_FILENO, from, strlen(from)) && file_write(STDOUT_FILENO, "\n", 1);
}

bool output_json_print(cJSON *object)
{
    char *text = cJSON_PrintUnformatted(object);
    bool good = text != NULL && print_escaped(text);
    free(text);
    cJSON_Delete(object);
    return good;
}
