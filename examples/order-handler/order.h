/* order.h - an order: read from a client's JSON, written as ours. Owns its texts. Any thread. */
#ifndef ORDER_HANDLER_ORDER_H
#define ORDER_HANDLER_ORDER_H

#include "common/key.h"

#include <cjson/cJSON.h>

enum { ORDER_ITEM_BYTES_MAX = 200, ORDER_EXECUTION_BYTES = 16 };

struct order {
    int64_t id;                                /* given by the ledger */
    char execution[ORDER_EXECUTION_BYTES + 1]; /* random for each execution, so that two are told apart */
    char item[ORDER_ITEM_BYTES_MAX + 1];
    int64_t amount; /* of the smallest unit of money: whole, not negative */
};

/* Reads {"item":"...","amount":N,...}; further members are ignored. Gives NULL, or a sentence that says what is wrong. */
const char *order_read(struct view body, struct order *order);

/* A fresh execution id. False when the kernel gives no random bytes. */
bool order_mark_execution(struct order *order);

/* {"order":1,"execution":"...","item":"...","amount":N}; NULL when memory is out. The caller deletes it. */
cJSON *order_to_json(const struct order *order);

#endif
