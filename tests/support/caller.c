/* caller.c - see caller.h. */
#include "tests/support/caller.h"

#include <stdio.h>

static void *caller_run(void *context)
{
    struct caller *caller = context;
    caller->answer = http_post(caller->address, "/orders", caller->key, "x");
    return NULL;
}

void caller_start(struct caller *caller, const char *address, const char *key)
{
    caller->address = address;
    (void) snprintf(caller->key, sizeof caller->key, "%s", key);
    pthread_create(&caller->thread, NULL, caller_run, caller);
}

void caller_join(struct caller *caller)
{
    pthread_join(caller->thread, NULL);
}
