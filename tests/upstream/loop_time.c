/* loop_time.c - see loop_time.h. */
#include "tests/upstream/loop_time.h"

#include <dlfcn.h>
#include <uv.h>

static uint64_t passed_ms;

uint64_t uv_now(const uv_loop_t *loop)
{
    static uint64_t (*of_library)(const uv_loop_t *loop);
    if (of_library == NULL) {
        *(void **) &of_library = dlsym(RTLD_NEXT, "uv_now");
    }
    return of_library(loop) + passed_ms;
}

void loop_time_pass(int64_t ms)
{
    passed_ms += (uint64_t) ms;
}
