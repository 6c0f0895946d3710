/* meter.c - what processes have used so far, from the kernel's own accounting.
 *
 *   meter PID...    prints "CPU_NS WRITE_BYTES PSS_KIB ANON_KIB" of these processes and all their descendants together
 *
 * CPU_NS: first column of /proc/PID/task/TID/schedstat over all threads, and for children that ended what their parents were told
 * (in ticks of 10 ms). WRITE_BYTES: what they made the kernel write to disks (/proc/PID/io). PSS_KIB: proportional set size, of
 * which ANON_KIB belongs to no file. The difference of two calls is the use in between. */
#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSES_MAX = 32768, TEXT_MAX = 4096 };

struct process {
    int pid, parent;
    uint64_t children_ticks; /* of those that ended */
    bool wanted;
};

static struct process processes[PROCESSES_MAX];
static size_t process_count;

static bool read_text(const char *path, char *text)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    size_t len = fread(text, 1, TEXT_MAX - 1, file);
    text[len] = '\0';
    fclose(file);
    return len > 0;
}

static void take_process(int pid)
{
    char path[64], text[TEXT_MAX];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const char *rest = read_text(path, text) ? strrchr(text, ')') : NULL; /* a name may hold anything */
    if (rest == NULL || process_count == PROCESSES_MAX) {
        return;
    }
    int parent = 0;
    unsigned long long user = 0, system = 0; /* fields 16 and 17: cutime, cstime */
    if (sscanf(rest, ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %llu %llu", &parent, &user, &system) == 3) {
        processes[process_count++] = (struct process){ .pid = pid, .parent = parent, .children_ticks = user + system };
    }
}

static void list_processes(void)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (isdigit((unsigned char) entry->d_name[0])) {
            take_process((int) strtol(entry->d_name, NULL, 10));
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

static void want_children(int pid)
{
    for (size_t i = 0; i < process_count; i++) {
        if (processes[i].parent == pid && !processes[i].wanted) {
            processes[i].wanted = true;
            want_children(processes[i].pid);
        }
    }
}

static uint64_t threads_ns(int pid)
{
    char path[320], text[TEXT_MAX];
    uint64_t sum = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", pid, entry->d_name);
        if (isdigit((unsigned char) entry->d_name[0]) && read_text(path, text)) {
            sum += strtoull(text, NULL, 10);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return sum;
}

/* The number behind `name` in a file of lines "name: number". */
static uint64_t number_in(int pid, const char *file, const char *name)
{
    char path[64], text[TEXT_MAX];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    const char *at = read_text(path, text) ? strstr(text, name) : NULL;
    return at == NULL ? 0 : strtoull(at + strlen(name), NULL, 10);
}

int main(int argc, char **argv)
{
    uint64_t cpu_ns = 0, written = 0, pss = 0, anonymous = 0;
    const uint64_t tick_ns = 1000000000ULL / (uint64_t) sysconf(_SC_CLK_TCK);
    list_processes();
    for (int i = 1; i < argc; i++) {
        for (size_t j = 0; j < process_count; j++) {
            processes[j].wanted = processes[j].wanted || processes[j].pid == (int) strtol(argv[i], NULL, 10);
        }
        want_children((int) strtol(argv[i], NULL, 10));
    }
    for (size_t i = 0; i < process_count; i++) {
        if (processes[i].wanted) {
            cpu_ns += threads_ns(processes[i].pid) + processes[i].children_ticks * tick_ns;
            written += number_in(processes[i].pid, "io", "\nwrite_bytes: ");
            pss += number_in(processes[i].pid, "smaps_rollup", "\nPss: ");
            anonymous += number_in(processes[i].pid, "smaps_rollup", "\nPss_Anon: ");
        }
    }
    printf("%llu %llu %llu %llu\n", (unsigned long long) cpu_ns, (unsigned long long) written, (unsigned long long) pss,
           (unsigned long long) anonymous);
    return 0;
}
