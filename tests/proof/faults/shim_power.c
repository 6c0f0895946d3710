/* shim_power.c - plays a disk that loses power (see power.h): of the files in one folder it keeps, in another folder, what was synced. That is what a disk
 * must keep, and in the worst case all that it keeps:
 *
 *   content of a file     as of its last fdatasync or fsync
 *   names in the folder   as of the last sync of the folder itself; a new file whose name was not synced is lost with all of its content
 *
 * What is there when the program starts is on the disk. A kill in mid-copy leaves a part of what was being synced, as a cut in mid-sync does. Files are told
 * apart by inode and time of birth, since numbers are given again. With POWER_NORMAL it sets `synchronous` to what the store would have refused: the control.
 *
 * Threads: the store is opened by one thread and then owned by another, never both at once. */
#include "tests/proof/faults/shim.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 1024, PATH_ROOM = 1200, BLOCK = 256 * 1024 };

static const char *store, *disk, *cut_from;
static unsigned cut_at;
static int cut_behind;
static struct {
    off_t from, to; /* written since the last sync; empty when from >= to */
} written[FILES_MAX];

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        (void) fprintf(stderr, "shim_power: there is no %s: %s\n", name, dlerror());
        _exit(70);
    }
    return found;
}

static void must(int good, const char *what)
{
    if (!good) {
        (void) fprintf(stderr, "shim_power: %s: %s\n", what, strerror(errno));
        _exit(70);
    }
}

/* --- the durable side --- */

static void name_of(int fd, const char *name, char *out, size_t size)
{
    struct statx seen;
    must(statx(fd, name, name[0] == '\0' ? AT_EMPTY_PATH : 0, STATX_INO | STATX_BTIME, &seen) == 0, "statx");
    (void) snprintf(out, size, "%llu-%lld.%u", (unsigned long long) seen.stx_ino, (long long) seen.stx_btime.tv_sec,
                    seen.stx_btime.tv_nsec);
}

/* Brings bytes `from` to `to`, and the length, of the file to the disk. */
static void keep_content(int fd, off_t from, off_t to)
{
    static char block[BLOCK];
    char name[64], path[PATH_ROOM];
    struct stat status;
    name_of(fd, "", name, sizeof name);
    (void) snprintf(path, sizeof path, "%s/%s", disk, name);
    if (access(path, F_OK) != 0) {
        from = 0;
        to = INT64_MAX;
    }
    int kept = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    must(kept >= 0 && fstat(fd, &status) == 0, path);
    ssize_t (*write_real)(int, const void *, size_t, off_t);
    *(void **) (void *) &write_real = real("pwrite");
    while (from < to && from < status.st_size) {
        size_t want = to - from < BLOCK ? (size_t) (to - from) : BLOCK;
        ssize_t got = pread(fd, block, want, from);
        must(got > 0 && write_real(kept, block, (size_t) got, from) == got, path);
        from += got;
    }
    must(ftruncate(kept, status.st_size) == 0 && close(kept) == 0, path);
}

static void keep_names(int fd)
{
    char path[PATH_ROOM], fresh[PATH_ROOM + 8], name[64];
    DIR *folder = opendir(store);
    (void) snprintf(path, sizeof path, "%s/" POWER_ENTRIES, disk);
    (void) snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *list = fopen(fresh, "we");
    must(folder != NULL && list != NULL, fresh);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_type == DT_REG) {
            name_of(fd, entry->d_name, name, sizeof name);
            (void) fprintf(list, "%s %s\n", name, entry->d_name);
        }
    }
    must(closedir(folder) == 0 && fclose(list) == 0 && rename(fresh, path) == 0, path);
}

/* Only nonbisd's own folder counts; it is in `store` as the kernel names it. */
static int is_ours(int fd, const char **inside)
{
    static char path[PATH_ROOM];
    char link[64];
    (void) snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = store == NULL ? -1 : readlink(link, path, sizeof path - 1);
    size_t store_len = store == NULL ? 0 : strlen(store);
    if (len < 0 || strncmp(path, store, store_len) != 0) {
        return 0;
    }
    path[len] = '\0';
    *inside = path + store_len;
    return (*inside)[0] == '\0' || (*inside)[0] == '/';
}

static void keep(int fd, const char *inside)
{
    if (inside[0] == '\0') {
        keep_names(fd);
        return;
    }
    off_t from = 0, to = INT64_MAX;
    if (fd < FILES_MAX) {
        from = written[fd].from;
        to = written[fd].to;
        written[fd].from = written[fd].to = 0;
    }
    keep_content(fd, from, to);
}

__attribute__((constructor)) static void power_on(void)
{
    store = getenv(POWER_STORE);
    disk = getenv(POWER_DISK);
    must(store != NULL && disk != NULL, "TEST_POWER_STORE and TEST_POWER_DISK");
    const char *at = getenv(POWER_CUT_AT);
    cut_from = getenv(POWER_CUT_FROM);
    cut_at = at != NULL ? (unsigned) strtoul(at, NULL, 10) : 0;
    cut_behind = at != NULL && strchr(at, '+') != NULL;
    int folder = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = opendir(store);
    must(folder >= 0 && entries != NULL, store);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (entry->d_type == DT_REG) {
            int fd = openat(folder, entry->d_name, O_RDONLY | O_CLOEXEC);
            must(fd >= 0, entry->d_name);
            keep_content(fd, 0, INT64_MAX);
            must(close(fd) == 0, entry->d_name);
        }
    }
    keep_names(folder);
    must(closedir(entries) == 0 && close(folder) == 0, store);
}

/* --- what the program calls --- */

static int sync_with(const char *name, int fd)
{
    static unsigned count;
    int (*sync_real)(int);
    const char *inside;
    const int ours = is_ours(fd, &inside);
    const int counts = ours && cut_at != 0 && (cut_from == NULL || access(cut_from, F_OK) == 0);
    const int last = counts && ++count == cut_at;
    *(void **) (void *) &sync_real = real(name);
    if (last && !cut_behind) {
        (void) raise(SIGKILL);
    }
    int result = sync_real(fd);
    if (result == 0 && ours) {
        int code = errno;
        keep(fd, inside);
        errno = code;
    }
    if (last) {
        (void) raise(SIGKILL);
    }
    return result;
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
    ssize_t put = write_real(fd, bytes, len, at);
    if (put > 0 && fd >= 0 && fd < FILES_MAX) {
        int none = written[fd].from >= written[fd].to;
        written[fd].from = none || at < written[fd].from ? at : written[fd].from;
        written[fd].to = none || at + put > written[fd].to ? at + put : written[fd].to;
    }
    return put;
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    return write_with("pwrite", fd, bytes, len, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t at)
{
    return write_with("pwrite64", fd, bytes, len, at);
}

int close(int fd)
{
    int (*close_real)(int);
    *(void **) (void *) &close_real = real("close");
    if (fd >= 0 && fd < FILES_MAX) {
        written[fd].from = 0;
        written[fd].to = INT64_MAX; /* whoever gets the number next: all of it, until it was synced once */
    }
    return close_real(fd);
}

/* The last thing that opening a store does: behind every check of the pragmas. */
int sqlite3_db_config(sqlite3 *db, int option, ...)
{
    int (*config_real)(sqlite3 *, int, ...);
    int (*exec_real)(sqlite3 *, const char *, void *, void *, char **);
    va_list arguments;
    *(void **) (void *) &config_real = real("sqlite3_db_config");
    *(void **) (void *) &exec_real = real("sqlite3_exec");
    va_start(arguments, option);
    int value = va_arg(arguments, int);
    int *out = va_arg(arguments, int *);
    va_end(arguments);
    if (getenv(POWER_NORMAL) != NULL && option == SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE && value == 0) {
        must(exec_real(db, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL) == 0, "PRAGMA synchronous");
    }
    return config_real(db, option, value, out);
}
