/* shim_memory.c - makes the n-th allocation of the process return NULL (shim.h: struct plan). What it needs itself is on the stack. Any thread.
 *
 * glibc's own way in (__libc_malloc and its like) is used instead of dlsym, which allocates. */
#include "tests/proof/faults/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

static struct plan *plan;

__attribute__((constructor)) static void plan_open(void)
{
    const char *path = getenv(PLAN_FILE);
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *mapped = fd >= 0 ? mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (mapped == MAP_FAILED) {
        _exit(70);
    }
    (void) close(fd);
    plan = mapped;
}

static int is_met(void)
{
    if (plan == NULL || __atomic_load_n(&plan->operation, __ATOMIC_ACQUIRE) != PLAN_MEMORY) {
        return 0;
    }
    uint32_t now = __atomic_add_fetch(&plan->count, 1, __ATOMIC_RELAXED);
    if (now != plan->nth && (now < plan->nth || !plan->lasting)) {
        return 0;
    }
    __atomic_add_fetch(&plan->hits, 1, __ATOMIC_RELAXED);
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t bytes)
{
    return is_met() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return is_met() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return is_met() ? NULL : __libc_realloc(old, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    return is_met() ? NULL : __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return is_met() ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *memory = is_met() ? NULL : __libc_memalign(alignment, bytes);
    if (memory == NULL) {
        return ENOMEM;
    }
    *out = memory;
    return 0;
}
