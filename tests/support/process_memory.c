/* process_memory.c - see process_memory.h. */
#include "tests/support/process_memory.h"

#include "tests/support/suite.h"

#include <dirent.h>

/* "Name:   123 kB" in a file of /proc. */
static long read_kb(pid_t pid, const char *file, const char *name)
{
    char path[64];
    char line[256];
    long value = -1;
    (void) snprintf(path, sizeof path, "/proc/%d/%s", (int) pid, file);
    FILE *in = fopen(path, "r");
    while (in != NULL && value < 0 && fgets(line, sizeof line, in) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            value = strtol(line + strlen(name), NULL, 10);
        }
    }
    if (in != NULL) {
        fclose(in);
    }
    ck_assert_msg(value >= 0, "no %s in %s", name, path);
    return value;
}

long process_memory_now_kb(pid_t pid)
{
    return read_kb(pid, "smaps_rollup", "Pss:");
}

long process_memory_own_kb(pid_t pid)
{
    return read_kb(pid, "smaps_rollup", "Anonymous:");
}

long process_memory_peak_kb(pid_t pid)
{
    return read_kb(pid, "status", "VmHWM:");
}

void process_memory_reset_peak(pid_t pid)
{
    char path[64];
    (void) snprintf(path, sizeof path, "/proc/%d/clear_refs", (int) pid);
    FILE *out = fopen(path, "w");
    ck_assert_msg(out != NULL && fputs("5", out) >= 0 && fclose(out) == 0, "cannot write %s", path);
}

unsigned process_descriptors(pid_t pid)
{
    char path[64];
    unsigned count = 0;
    (void) snprintf(path, sizeof path, "/proc/%d/fd", (int) pid);
    DIR *folder = opendir(path);
    ck_assert_ptr_nonnull(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count - 2; /* . and .. */
}
