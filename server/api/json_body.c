/* json_body.c - see json_body.h. */
#include "server/api/json_body.h"

#include "common/http_time.h"
#include "server/base/memory.h"

#include <stdlib.h>

void json_body_end_without_memory(void)
{
    cJSON_Hooks hooks = { .malloc_fn = memory_bytes, .free_fn = free };
    cJSON_InitHooks(&hooks);
}

void json_body_init(struct json_body *body)
{
    body->object = cJSON_CreateObject();
    body->failed = body->object == NULL;
}

void json_body_finish(struct json_body *body, struct buf *out)
{
    char *text = body->failed ? NULL : cJSON_PrintUnformatted(body->object);
    if (text != NULL) {
        buf_append_text(out, text);
    } else {
        out->failed = true;
    }
    cJSON_free(text);
    cJSON_Delete(body->object);
    body->object = NULL;
}

/* Text may carry bytes of a request. cJSON stops at NUL and writes bytes over 0x7F as they are, valid UTF-8 or not: all our
 * own words are ASCII, so anything else becomes '?'. */
static char *text_clean(struct view text)
{
    char *clean = memory_text(text);
    for (size_t i = 0; i < text.len; i++) {
        if (clean[i] == '\0' || (unsigned char) clean[i] > 0x7E) {
            clean[i] = '?';
        }
    }
    return clean;
}

void json_body_add_text(struct json_body *body, cJSON *object, const char *name, struct view text)
{
    char *clean = text_clean(text);
    body->failed |= cJSON_AddStringToObject(object, name, clean) == NULL;
    free(clean);
}

void json_body_add_number(struct json_body *body, cJSON *object, const char *name, double number)
{
    body->failed |= cJSON_AddNumberToObject(object, name, number) == NULL;
}

void json_body_add_bool(struct json_body *body, cJSON *object, const char *name, bool value)
{
    body->failed |= cJSON_AddBoolToObject(object, name, value) == NULL;
}

void json_body_add_null(struct json_body *body, cJSON *object, const char *name)
{
    body->failed |= cJSON_AddNullToObject(object, name) == NULL;
}

void json_body_add_time(struct json_body *body, cJSON *object, const char *name, int64_t unix_ms)
{
    char text[RFC3339_BYTES];
    if (unix_ms == 0) {
        json_body_add_null(body, object, name);
        return;
    }
    rfc3339_write(unix_ms, text);
    json_body_add_text(body, object, name, view_of(text));
}

cJSON *json_body_add_object(struct json_body *body, const char *name)
{
    cJSON *object = cJSON_AddObjectToObject(body->object, name);
    body->failed |= object == NULL;
    return object;
}
