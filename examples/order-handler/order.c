/* order.c - an order as JSON, both ways. */
#include "examples/order-handler/order.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* The largest whole number below which every whole number is a double: JSON's amounts come as doubles. */
static const double amount_max = 9007199254740991.0;

static const char *order_read_members(const cJSON *json, struct order *order)
{
    if (!cJSON_IsObject(json)) {
        return "the body is not a JSON object";
    }
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, "item");
    if (!cJSON_IsString(item) || item->valuestring[0] == '\0') {
        return "\"item\" has to be a text that is not empty";
    }
    if (strlen(item->valuestring) > ORDER_ITEM_BYTES_MAX) {
        return "\"item\" is longer than 200 bytes";
    }
    const cJSON *amount = cJSON_GetObjectItemCaseSensitive(json, "amount");
    if (!cJSON_IsNumber(amount) || !(amount->valuedouble >= 0) || amount->valuedouble > amount_max ||
        floor(amount->valuedouble) < amount->valuedouble) {
        return "\"amount\" has to be a whole number that is not negative";
    }
    memcpy(order->item, item->valuestring, strlen(item->valuestring) + 1);
    order->amount = (int64_t) amount->valuedouble;
    return NULL;
}

const char *order_read(struct view body, struct order *order)
{
    *order = (struct order){ .id = 0 };
    cJSON *json = cJSON_ParseWithLength(body.ptr == NULL ? "" : body.ptr, body.len);
    const char *wrong = order_read_members(json, order);
    cJSON_Delete(json);
    return wrong;
}

bool order_mark_execution(struct order *order)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t) sizeof random) {
        return false;
    }
    snprintf(order->execution, sizeof order->execution, "%016llx", (unsigned long long) random);
    return true;
}

cJSON *order_to_json(const struct order *order)
{
    cJSON *json = cJSON_CreateObject();
    if (json == NULL || cJSON_AddNumberToObject(json, "order", (double) order->id) == NULL ||
        cJSON_AddStringToObject(json, "execution", order->execution) == NULL ||
        cJSON_AddStringToObject(json, "item", order->item) == NULL ||
        cJSON_AddNumberToObject(json, "amount", (double) order->amount) == NULL) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}
