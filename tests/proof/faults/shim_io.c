/* shim_io.c - makes the n-th sync or write of the store's files fail (shim.h: struct plan). Threads: the store is used by one at a time. */
#include "tests/proof/faults/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATH_ROOM = 1200 };

static struct plan *plan;
static const char *store;

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        _exit(70);
    }
    return found;
}

__attribute__((constructor)) static void plan_open(void)
{
    const char *path = getenv(PLAN_FILE);
    store = getenv(PLAN_STORE);
    int fd = path != NULL && store != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *mapped = fd >= 0 ? mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (mapped == MAP_FAILED) {
        (void) fprintf(stderr, "shim_io: could not map the plan %s\n", path != NULL ? path : "(none)");
        _exit(70);
    }
    (void) close(fd);
    plan = mapped;
}

static int is_ours(int fd)
{
    char link[64], path[PATH_ROOM];
    (void) snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = plan == NULL ? -1 : readlink(link, path, sizeof path);
    return len > 0 && (size_t) len >= strlen(store) && strncmp(path, store, strlen(store)) == 0;
}

static int is_met(enum plan_operation operation, int fd)
{
    if (plan == NULL || __atomic_load_n(&plan->operation, __ATOMIC_ACQUIRE) != operation || !is_ours(fd)) {
        return 0;
    }
    uint32_t now = ++plan->count;
    if (now != plan->nth && (now < plan->nth || !plan->lasting)) {
        return 0;
    }
    plan->hits++;
    return 1;
}

static int sync_with(const char *name, int fd)
{
    int (*sync_real)(int);
    *(void **) (void *) &sync_real = real(name);
    if (is_met(PLAN_SYNC, fd)) {
        errno = plan->code;
        return -1;
    }
    return sync_real(fd);
}

int fdatasync(int fd)
{
    return sync_with("fdatasync", fd);
}

int fsync(int fd)
{
    return sync_with("fsync", fd);
}

static ssize_t write_with(const char *name, int fd, const void *bytes, size_t len, off_t at)
{
    ssize_t (*write_real)(int, const void *, size_t, off_t);
    *(void **) (void *) &write_real = real(name);
    if (is_met(PLAN_WRITE, fd)) {
        if (plan->half && len > 1 && plan->count == plan->nth) {
            return write_real(fd, bytes, len / 2, at); /* the next one is told why */
        }
        errno = plan->code;
        return -1;
    }
    return write_real(fd, bytes, len, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    return write_with("pwrite", fd, bytes, len, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t at)
{
    return write_with("pwrite64", fd, bytes, len, at);
}
