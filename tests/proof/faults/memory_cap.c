/* memory_cap.c - see memory_cap.h. */
#include "tests/proof/faults/memory_cap.h"

#include "tests/support/suite.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

bool memory_cap_allowed(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    FIGURE("a cap on memory is not tried: a sanitizer takes more");
    return false;
#else
    return true;
#endif
}

static bool put(const struct memory_cap *cap, const char *name, unsigned long long value)
{
    char path[200];
    (void) snprintf(path, sizeof path, "%s/%s", cap->folder, name);
    FILE *out = fopen(path, "we");
    bool written = out != NULL && fprintf(out, "%llu\n", value) > 0;
    return (out == NULL || fclose(out) == 0) && written;
}

bool memory_cap_make(struct memory_cap *cap, pid_t pid, unsigned megabytes)
{
    static const struct {
        const char *kind, *root, *limit;
    } ways[] = { { "cgroup1", "/sys/fs/cgroup/memory", "memory.limit_in_bytes" },
                 { "cgroup2", "/sys/fs/cgroup", "memory.max" } };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        cap->kind = ways[i].kind;
        (void) snprintf(cap->folder, sizeof cap->folder, "%s/nonbis-test-%d", ways[i].root, (int) pid);
        if (mkdir(cap->folder, 0700) != 0) {
            continue;
        }
        if (put(cap, ways[i].limit, 1024ULL * 1024 * megabytes) && put(cap, "cgroup.procs", (unsigned long long) pid)) {
            return true;
        }
        (void) rmdir(cap->folder);
    }
    FIGURE("a cap on memory is not tried: this machine lets nobody make a control group");
    return false;
}

unsigned memory_cap_kills(const struct memory_cap *cap)
{
    char path[200], line[128];
    unsigned kills = 0;
    (void) snprintf(path, sizeof path, "%s/%s", cap->folder,
                    strcmp(cap->kind, "cgroup1") == 0 ? "memory.oom_control" : "memory.events");
    FILE *in = fopen(path, "re");
    ck_assert_ptr_nonnull(in);
    while (fgets(line, sizeof line, in) != NULL) {
        (void) sscanf(line, "oom_kill %u", &kills);
    }
    (void) fclose(in);
    return kills;
}

void memory_cap_end(struct memory_cap *cap)
{
    ck_assert_int_eq(rmdir(cap->folder), 0);
}

void memory_cap_address_space(pid_t pid, unsigned more_megabytes)
{
    char path[64];
    unsigned long pages = 0;
    (void) snprintf(path, sizeof path, "/proc/%d/statm", (int) pid);
    FILE *in = fopen(path, "re");
    ck_assert(in != NULL && fscanf(in, "%lu", &pages) == 1);
    (void) fclose(in);
    rlim_t bytes = (rlim_t) pages * (rlim_t) sysconf(_SC_PAGESIZE) + (rlim_t) more_megabytes * 1024 * 1024;
    const struct rlimit limit = { bytes, bytes };
    ck_assert_int_eq(prlimit(pid, RLIMIT_AS, &limit, NULL), 0);
}
