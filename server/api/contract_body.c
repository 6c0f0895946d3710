/* contract_body.c - see contract_body.h. */
#include "server/api/contract_body.h"

#include "schema/limits.h"
#include "schema/wire.h"
#include "server/api/json_body.h"

static_assert(LIMIT_KEY_BYTES == 255, "the words below tell the number");

static const char key_words[] =
    "1 to 255 bytes of visible ASCII (0x21 to 0x7E), case-sensitive; bare without quotation marks, or one "
    "structured-field String, whose parameters are ignored; \"k\" and k are the same key";

void contract_body_write(const struct contract_facts *facts, struct buf *out)
{
    struct json_body body;
    json_body_init(&body);
    json_body_add_number(&body, body.object, "version", WIRE_CONTRACT_VERSION);
    cJSON *retention = json_body_add_object(&body, "retention");
    json_body_add_number(&body, retention, "ttl", (double) facts->ttl_ms / 1000.0);
    json_body_add_number(&body, retention, "tombstone_ttl", (double) facts->tombstone_ttl_ms / 1000.0);
    cJSON *limits = json_body_add_object(&body, "limits");
    json_body_add_number(&body, limits, "body_max", (double) facts->body_max);
    json_body_add_number(&body, limits, "response_keep_max", (double) facts->response_keep_max);
    json_body_add_number(&body, limits, "key_max", LIMIT_KEY_BYTES);
    json_body_add_text(&body, body.object, "key", view_of(key_words));
    json_body_add_number(&body, body.object, "wait_max", (double) facts->wait_max_ms / 1000.0);
    json_body_add_time(&body, body.object, "window_start", facts->window_start_ms);
    json_body_finish(&body, out);
}

void route_body_write(const struct route_facts *facts, struct buf *out)
{
    struct json_body body;
    json_body_init(&body);
    json_body_add_number(&body, body.object, "version", WIRE_CONTRACT_VERSION);
    json_body_add_text(&body, body.object, "method", facts->method);
    json_body_add_bool(&body, body.object, "protected", facts->is_protected);
    if (facts->is_protected) {
        json_body_add_text(&body, body.object, "key", facts->key_required ? VIEW("required") : VIEW("optional"));
    } else {
        json_body_add_null(&body, body.object, "key");
    }
    json_body_add_time(&body, body.object, "window_start", facts->window_start_ms);
    json_body_finish(&body, out);
}
