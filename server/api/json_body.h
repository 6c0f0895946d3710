/* json_body.h - a JSON object being built, for the bodies of this room. Any thread. */
#ifndef NONBIS_SERVER_API_JSON_BODY_H
#define NONBIS_SERVER_API_JSON_BODY_H

#include "common/buf.h"

#include <cjson/cJSON.h>

/* `failed` is sticky, so that a member that could not be added is never silently missing. */
struct json_body {
    cJSON *object;
    bool failed;
};

/* Once, before the first thread: from then on bodies are made, or the process ends (server/base/memory.h). Without it they fail. */
void json_body_end_without_memory(void);

void json_body_init(struct json_body *body);
/* Appends the object to `out`, unformatted, and frees it; out->failed when anything was wrong. */
void json_body_finish(struct json_body *body, struct buf *out);

/* Members go to `object`: body->object, or one that json_body_add_object made. Text that is not ASCII, and NUL, become '?'. */
void json_body_add_text(struct json_body *body, cJSON *object, const char *name, struct view text);
void json_body_add_number(struct json_body *body, cJSON *object, const char *name, double number);
void json_body_add_bool(struct json_body *body, cJSON *object, const char *name, bool value);
void json_body_add_null(struct json_body *body, cJSON *object, const char *name);
/* RFC 3339, or null for 0. */
void json_body_add_time(struct json_body *body, cJSON *object, const char *name, int64_t unix_ms);
/* NULL, and failed, when it could not be made; the functions above take NULL and do nothing. */
cJSON *json_body_add_object(struct json_body *body, const char *name);

#endif
