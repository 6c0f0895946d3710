/* power.c - see power.h. One thread, with the program ended. */
#include "tests/proof/faults/power.h"

#include "tests/proof/faults/shim.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTOR = 512, NAMES_MAX = 16, PATH_ROOM = 1400 };

void power_begin(struct power *power, const char *folder, bool normal)
{
    *power = (struct power){ 0 };
    (void) snprintf(power->folder, sizeof power->folder, "%s", folder);
    (void) snprintf(power->disk, sizeof power->disk, "%s.disk", folder);
    ck_assert_int_eq(mkdir(power->disk, 0700), 0);
    setenv(POWER_STORE, power->folder, 1);
    setenv(POWER_DISK, power->disk, 1);
    if (normal) {
        setenv(POWER_NORMAL, "1", 1);
    }
}

void power_end(void)
{
    unsetenv(POWER_STORE);
    unsetenv(POWER_DISK);
    unsetenv(POWER_NORMAL);
}

struct content {
    char *bytes;
    size_t len;
};

static struct content read_all(const char *path)
{
    struct content content = { 0 };
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        content.bytes = calloc(1, 1);
        return content;
    }
    ck_assert_int_eq(fstat(fd, &status), 0);
    content.len = (size_t) status.st_size;
    content.bytes = malloc(content.len + 1);
    ck_assert_int_eq(pread(fd, content.bytes, content.len, 0), (ssize_t) content.len);
    close(fd);
    return content;
}

static void write_all(const char *path, const struct content *content)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, content->bytes, content->len), (ssize_t) content->len);
    close(fd);
}

static void name_of(const char *path, char *out, size_t size)
{
    struct statx seen;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &seen) != 0) {
        out[0] = '\0';
        return;
    }
    (void) snprintf(out, size, "%llu-%lld.%u", (unsigned long long) seen.stx_ino, (long long) seen.stx_btime.tv_sec,
                    seen.stx_btime.tv_nsec);
}

/* --- what is kept of one file --- */

/* A file that grew may have any length in between. One that was cut short has the old one or the new one: file systems write a length as one change,
 * and SQLite builds on it as well. */
static size_t mixed_length(size_t kept, size_t live, struct suite_random *random)
{
    if (live < kept) {
        return suite_random_below(random, 2) == 0 ? kept : live;
    }
    switch (suite_random_below(random, 4)) {
    case 0:
        return kept;
    case 1:
        return kept + suite_random_below(random, (unsigned) (live - kept) + 1);
    default:
        return live;
    }
}

/* Takes for every sector the kept or the live one, with a chance that is drawn once for the file: near nothing, half, near everything. */
static struct content mix(const struct content *kept, const struct content *live, struct suite_random *random)
{
    struct content mixed = { .len = mixed_length(kept->len, live->len, random) };
    unsigned chance = suite_random_below(random, 101);
    mixed.bytes = calloc(1, mixed.len + 1);
    for (size_t at = 0; at < mixed.len; at += SECTOR) {
        bool cut_off = at >= live->len; /* what a shorter length had cut off is there again as it was */
        const struct content *from = suite_random_below(random, 100) < chance && !cut_off ? live : kept;
        size_t end = at + SECTOR < mixed.len ? at + SECTOR : mixed.len;
        size_t there = end < from->len ? end : from->len;
        if (at < there) {
            memcpy(mixed.bytes + at, from->bytes + at, there - at);
        }
    }
    return mixed;
}

static unsigned long long differing(const struct content *left, const struct content *live)
{
    unsigned long long count = 0;
    for (size_t at = 0; at < live->len; at += SECTOR) {
        size_t end = at + SECTOR < live->len ? at + SECTOR : live->len;
        bool same = end <= left->len && memcmp(left->bytes + at, live->bytes + at, end - at) == 0;
        count += same ? 0 : end - at;
    }
    return count;
}

/* --- the folder --- */

struct entry {
    char id[64], name[256];
    bool durable;
    struct content left;
};

static unsigned read_entries(const struct power *power, struct entry *entries)
{
    char path[PATH_ROOM], line[400];
    unsigned count = 0;
    (void) snprintf(path, sizeof path, "%s/" POWER_ENTRIES, power->disk);
    FILE *list = fopen(path, "re");
    ck_assert_ptr_nonnull(list);
    while (fgets(line, sizeof line, list) != NULL) {
        ck_assert_uint_lt(count, NAMES_MAX);
        ck_assert_int_eq(sscanf(line, "%63s %255s", entries[count].id, entries[count].name), 2);
        entries[count++].durable = true;
    }
    (void) fclose(list);
    return count;
}

/* New names, whose folder was not synced since. */
static unsigned add_live(const struct power *power, struct entry *entries, unsigned count)
{
    DIR *folder = opendir(power->folder);
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *one; (one = readdir(folder)) != NULL;) {
        bool known = one->d_type != DT_REG;
        for (unsigned i = 0; i < count; i++) {
            known = known || strcmp(entries[i].name, one->d_name) == 0;
        }
        if (!known) {
            char path[PATH_ROOM];
            ck_assert_uint_lt(count, NAMES_MAX);
            (void) snprintf(entries[count].name, sizeof entries[count].name, "%s", one->d_name);
            (void) snprintf(path, sizeof path, "%s/%s", power->folder, one->d_name);
            name_of(path, entries[count].id, sizeof entries[count].id);
            count++;
        }
    }
    closedir(folder);
    return count;
}

static void leave(struct power *power, struct entry *entry, enum power_loss loss, struct suite_random *random)
{
    char live_path[PATH_ROOM], kept_path[PATH_ROOM], live_id[64];
    (void) snprintf(live_path, sizeof live_path, "%s/%s", power->folder, entry->name);
    (void) snprintf(kept_path, sizeof kept_path, "%s/%s", power->disk, entry->id);
    name_of(live_path, live_id, sizeof live_id);
    struct content kept = read_all(kept_path);
    if (strcmp(live_id, entry->id) != 0) { /* removed or replaced, which the disk has not heard of */
        entry->left = kept;
        return;
    }
    struct content live = read_all(live_path);
    if (loss == POWER_MIXED) {
        entry->left = mix(&kept, &live, random);
        free(kept.bytes);
    } else {
        entry->left = kept;
    }
    power->dropped += differing(&entry->left, &live);
    free(live.bytes);
}

static void empty(const char *path)
{
    DIR *folder = opendir(path);
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *one; (one = readdir(folder)) != NULL;) {
        if (one->d_type == DT_REG) {
            ck_assert_int_eq(unlinkat(dirfd(folder), one->d_name, 0), 0);
        }
    }
    closedir(folder);
}

void power_cut(struct power *power, enum power_loss loss, struct suite_random *random)
{
    struct entry entries[NAMES_MAX] = { 0 };
    unsigned durable = read_entries(power, entries);
    unsigned count = add_live(power, entries, durable);
    for (unsigned i = 0; i < count; i++) {
        bool stays = entries[i].durable || (loss == POWER_MIXED && suite_random_below(random, 2) == 0);
        power->names_dropped += stays ? 0 : 1;
        if (stays) {
            leave(power, &entries[i], loss, random);
        }
    }
    empty(power->folder);
    empty(power->disk);
    for (unsigned i = 0; i < count; i++) {
        if (entries[i].left.bytes != NULL) {
            char path[PATH_ROOM];
            (void) snprintf(path, sizeof path, "%s/%s", power->folder, entries[i].name);
            write_all(path, &entries[i].left);
            free(entries[i].left.bytes);
        }
    }
}
