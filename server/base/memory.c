/* memory.c - see memory.h. */
#include "server/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void memory_end(size_t bytes)
{
    (void) fprintf(stderr,
                   "nonbisd: out of memory: %zu bytes were asked for; the process ends now and "
                   "running commands become unknown at the next start\n",
                   bytes);
    abort();
}

static void *memory_checked(void *memory, size_t bytes)
{
    if (memory == NULL) {
        memory_end(bytes);
    }
    return memory;
}

void *memory_bytes(size_t bytes)
{
    return memory_checked(malloc(bytes == 0 ? 1 : bytes), bytes);
}

void *memory_new(size_t bytes)
{
    return memory_checked(calloc(1, bytes == 0 ? 1 : bytes), bytes);
}

void *memory_resize(void *old, size_t bytes)
{
    return memory_checked(realloc(old, bytes == 0 ? 1 : bytes), bytes);
}

void *memory_copy(const void *bytes, size_t len)
{
    void *copy = memory_bytes(len);
    if (len > 0) {
        memcpy(copy, bytes, len);
    }
    return copy;
}

char *memory_text(struct view text)
{
    char *copy = memory_checked(malloc(text.len + 1), text.len + 1);
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    copy[text.len] = '\0';
    return copy;
}
