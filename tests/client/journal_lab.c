/* journal_lab.c - see journal_lab.h. */
#include "tests/client/journal_lab.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* ---- the journal -------------------------------------------------------------------------------------------------- */

void journal_lab_parent(struct journal_lab *lab)
{
    *lab = (struct journal_lab){ .journal = NULL };
    (void) snprintf(lab->parent, sizeof(lab->parent), "%s/nonbis-journal-XXXXXX",
                    access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(lab->parent));
    (void) snprintf(lab->path, sizeof(lab->path), "%s/journal", lab->parent);
}

void journal_lab_reopen(struct journal_lab *lab, const struct journal_calls *calls)
{
    char message[512] = "";
    if (lab->journal != NULL) {
        lab->journal->free(lab->journal);
    }
    lab->journal =
        journal_directory_open_with(calls != NULL ? calls : &journal_calls_system, lab->path, message, sizeof(message));
    ck_assert_msg(lab->journal != NULL, "%s", message);
}

void journal_lab_open(struct journal_lab *lab, const struct journal_calls *calls)
{
    journal_lab_parent(lab);
    journal_lab_reopen(lab, calls);
}

void journal_lab_remove(const char *path)
{
    char below[512];
    DIR *listing = opendir(path);
    for (struct dirent *item; listing != NULL && (item = readdir(listing)) != NULL;) {
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0) {
            (void) snprintf(below, sizeof(below), "%s/%s", path, item->d_name);
            if (unlink(below) != 0) {
                journal_lab_remove(below);
            }
        }
    }
    if (listing != NULL) {
        (void) closedir(listing);
    }
    (void) rmdir(path);
}

void journal_lab_close(struct journal_lab *lab)
{
    if (lab->journal != NULL) {
        lab->journal->free(lab->journal);
        lab->journal = NULL;
    }
    journal_lab_remove(lab->parent);
}

/* ---- records ------------------------------------------------------------------------------------------------------ */

struct journal_record journal_lab_record(const char *key)
{
    static const struct transport_field fields[] = { { "Content-Type", "application/json" }, { "X-Order", "a b" } };
    return (struct journal_record){ .key = key,
                                    .method = "POST",
                                    .url = "http://127.0.0.1:8620/orders",
                                    .status_url = "http://127.0.0.1:8621",
                                    .name = "charge card",
                                    .fields = fields,
                                    .field_count = 2,
                                    .body = "{\"n\":1}\n\0x",
                                    .body_len = 10,
                                    .has_body = true,
                                    .own_key = true,
                                    .created_wall_ms = 1732881600123 };
}

struct journal_record journal_lab_ended(const char *key)
{
    struct journal_record record = journal_lab_record(key);
    record.outcome = NONBIS_COMPLETED;
    record.stop = NONBIS_STOP_DONE;
    record.http_status = 201;
    record.ended_wall_ms = 1732881600456;
    return record;
}

void journal_lab_check(const struct journal_record *record, const char *key, bool ended)
{
    ck_assert_str_eq(record->key, key);
    ck_assert_str_eq(record->method, "POST");
    ck_assert_str_eq(record->url, "http://127.0.0.1:8620/orders");
    ck_assert_str_eq(record->status_url, "http://127.0.0.1:8621");
    ck_assert_str_eq(record->name, "charge card");
    ck_assert_uint_eq(record->field_count, 2);
    ck_assert_str_eq(record->fields[0].name, "Content-Type");
    ck_assert_str_eq(record->fields[0].value, "application/json");
    ck_assert_str_eq(record->fields[1].name, "X-Order");
    ck_assert_str_eq(record->fields[1].value, "a b");
    ck_assert(record->has_body);
    ck_assert_uint_eq(record->body_len, 10);
    ck_assert_mem_eq(record->body, "{\"n\":1}\n\0x", 10);
    ck_assert(record->own_key);
    ck_assert_int_eq(record->created_wall_ms, 1732881600123);
    ck_assert(ended ? record->outcome == NONBIS_COMPLETED || record->outcome == NONBIS_REJECTED : record->outcome == 0);
    ck_assert_int_eq((int) record->stop, ended ? 1 : 0);
    ck_assert_int_eq(record->http_status, ended ? 201 : 0);
    ck_assert_int_eq(record->ended_wall_ms, ended ? 1732881600456 : 0);
}

void journal_lab_put(struct journal_lab *lab, const char *key, enum journal_state state)
{
    struct journal *journal = lab->journal;
    struct journal_entry *entry = NULL;
    struct journal_record record = journal_lab_record(key), ended = journal_lab_ended(key);
    ck_assert_msg(journal->create(journal, &record, &entry) == NONBIS_OK, "%s", journal->message(journal));
    if (state != JOURNAL_NEW) {
        ck_assert_int_eq(journal->mark_sent(journal, entry), NONBIS_OK);
    }
    if (state == JOURNAL_DONE) {
        ended.outcome = NONBIS_REJECTED; /* a completed one would not give way to another use of its key */
        ck_assert_int_eq(journal->mark_ended(journal, entry, &ended, true), NONBIS_OK);
    }
    journal->close(journal, entry);
}

void journal_lab_put_at(struct journal_lab *lab, const char *key, int64_t created_wall_ms, enum journal_state state,
                        int64_t ended_wall_ms)
{
    struct journal_entry *entry = NULL;
    struct journal_record record = journal_lab_record(key);
    record.created_wall_ms = created_wall_ms;
    ck_assert_int_eq(lab->journal->create(lab->journal, &record, &entry), NONBIS_OK);
    if (state != JOURNAL_NEW) {
        ck_assert_int_eq(lab->journal->mark_sent(lab->journal, entry), NONBIS_OK);
    }
    if (ended_wall_ms != 0) {
        record.outcome = state == JOURNAL_DONE ? NONBIS_COMPLETED : NONBIS_UNKNOWN;
        record.stop = NONBIS_STOP_DONE;
        record.http_status = 200;
        record.ended_wall_ms = ended_wall_ms;
        ck_assert_int_eq(lab->journal->mark_ended(lab->journal, entry, &record, state == JOURNAL_DONE), NONBIS_OK);
    }
    lab->journal->close(lab->journal, entry);
}

/* ---- files -------------------------------------------------------------------------------------------------------- */

bool journal_lab_has_file(const struct journal_lab *lab, const char *place, const char *name)
{
    char path[512];
    struct stat status;
    (void) snprintf(path, sizeof(path), "%s/%s/%s", lab->path, place, name);
    return lstat(path, &status) == 0;
}

const char *journal_lab_where(const struct journal_lab *lab, const char *name)
{
    static char where[32];
    static const char *const places[] = { "new", "sent", "done" };
    where[0] = '\0';
    for (int i = 0; i < 3; i++) {
        if (journal_lab_has_file(lab, places[i], name)) {
            size_t len = strlen(where);
            (void) snprintf(where + len, sizeof(where) - len, "%s%s", len > 0 ? "+" : "", places[i]);
        }
    }
    return where;
}

unsigned journal_lab_count(const struct journal_lab *lab, const char *place)
{
    char path[512];
    unsigned count = 0;
    (void) snprintf(path, sizeof(path), "%s/%s", lab->path, place);
    DIR *listing = opendir(path);
    for (struct dirent *item; listing != NULL && (item = readdir(listing)) != NULL;) {
        count += item->d_name[0] != '.' ? 1 : 0;
    }
    if (listing != NULL) {
        (void) closedir(listing);
    }
    return count;
}

void journal_lab_write_file(const struct journal_lab *lab, const char *place, const char *name, const void *bytes,
                            size_t len)
{
    char path[512];
    (void) snprintf(path, sizeof(path), "%s/%s/%s", lab->path, place, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
}

/* ---- the spy ------------------------------------------------------------------------------------------------------ */

struct spy spy;

void spy_reset(void)
{
    char labels[1024][16]; /* descriptors stay open */
    memcpy(labels, spy.labels, sizeof(labels));
    spy = (struct spy){ .calls = 0 };
    memcpy(spy.labels, labels, sizeof(labels));
}

/* True: let it fail. */
static bool spy_call(void)
{
    spy.calls++;
    if (spy.die_at != 0 && spy.calls == spy.die_at) {
        _exit(SPY_DIED);
    }
    if (spy.meddle_at != 0 && spy.calls == spy.meddle_at) {
        int kept = errno;
        spy.meddle(spy.meddle_arg);
        errno = kept;
    }
    if (spy.fail_at != 0 && (spy.calls == spy.fail_at || (spy.fail_on && spy.calls > spy.fail_at))) {
        errno = spy.error;
        return true;
    }
    return false;
}

static const char *spy_label(int fd)
{
    return fd >= 0 && fd < 1024 ? spy.labels[fd] : "";
}

static enum journal_place spy_place(int fd)
{
    static const char *const places[] = { "new", "sent", "done", "tmp" };
    for (int i = 0; i < JOURNAL_PLACES; i++) {
        if (strcmp(spy_label(fd), places[i]) == 0) {
            return (enum journal_place) i;
        }
    }
    return JOURNAL_PLACES;
}

static void spy_write_down(const char *verb, const char *what, const char *to)
{
    size_t len = strlen(spy.log);
    (void) snprintf(spy.log + len, sizeof(spy.log) - len, "%s %s%s%s; ", verb, what, to[0] != '\0' ? " " : "", to);
}

static void spy_change(enum spy_kind kind, enum journal_place from, enum journal_place to, int step)
{
    ck_assert_uint_lt(spy.change_count, sizeof(spy.changes) / sizeof(spy.changes[0]));
    spy.changes[spy.change_count++] = (struct spy_change){ kind, from, to, step };
}

void spy_returned(int step)
{
    spy_change(SPY_RETURNED, JOURNAL_PLACES, JOURNAL_PLACES, step);
}

static int spy_openat(int dir, const char *name, int flags, mode_t mode)
{
    if (spy_call()) {
        return -1;
    }
    int fd = openat(dir, name, flags, mode);
    ck_assert_int_lt(fd, 1024);
    if (fd < 0) {
        return fd;
    }
    char *label = spy.labels[fd];
    if (spy_place(dir) < JOURNAL_PLACES && strcmp(name, ".") != 0) {
        (void) snprintf(label, sizeof(spy.labels[0]), "%s/K", spy_label(dir));
        if ((flags & O_CREAT) != 0) {
            spy_write_down("create", label, "");
            spy_change(SPY_CREATE, JOURNAL_PLACES, spy_place(dir), 0);
        }
    } else {
        const char *slash = strrchr(name, '/');
        (void) snprintf(label, sizeof(spy.labels[0]), "%.15s", slash != NULL ? slash + 1 : name);
    }
    return fd;
}

static int spy_mkdirat(int dir, const char *name, mode_t mode)
{
    return spy_call() ? -1 : mkdirat(dir, name, mode);
}

static int spy_fchmodat(int dir, const char *name, mode_t mode, int flags)
{
    return spy_call() ? -1 : fchmodat(dir, name, mode, flags);
}

static ssize_t spy_read(int fd, void *bytes, size_t len)
{
    return spy_call() ? -1 : read(fd, bytes, len);
}

static ssize_t spy_write(int fd, const void *bytes, size_t len)
{
    if (spy_call()) {
        return -1;
    }
    spy_write_down("write", spy_label(fd), "");
    return write(fd, bytes, len);
}

static int spy_fstat(int fd, struct stat *status)
{
    return spy_call() ? -1 : fstat(fd, status);
}

static int spy_fstatat(int dir, const char *name, struct stat *status, int flags)
{
    return spy_call() ? -1 : fstatat(dir, name, status, flags);
}

static int spy_fsync(int fd)
{
    if (spy_call()) {
        return -1;
    }
    spy_write_down("fsync", spy_label(fd), "");
    if (strcmp(spy_label(fd), "tmp/K") == 0) {
        spy_change(SPY_SYNC_FILE, JOURNAL_PLACES, JOURNAL_PLACE_TMP, 0);
    } else if (spy_place(fd) < JOURNAL_PLACES) {
        spy_change(SPY_SYNC_PLACE, JOURNAL_PLACES, spy_place(fd), 0);
    }
    return fsync(fd);
}

static int spy_renameat(int from, const char *old_name, int to, const char *new_name)
{
    if (spy_call()) {
        return -1;
    }
    spy_write_down("rename", spy_label(from), spy_label(to));
    int result = renameat(from, old_name, to, new_name);
    if (result == 0) {
        spy_change(SPY_RENAME, spy_place(from), spy_place(to), 0);
    }
    return result;
}

static int spy_unlinkat(int dir, const char *name, int flags)
{
    if (spy_call()) {
        return -1;
    }
    spy_write_down("unlink", spy_label(dir), "");
    int result = unlinkat(dir, name, flags);
    if (result == 0) {
        spy_change(SPY_UNLINK, JOURNAL_PLACES, spy_place(dir), 0);
    }
    return result;
}

static int spy_lock(int fd, int command, struct flock *range)
{
    return spy_call() ? -1 : fcntl(fd, command, range);
}

static struct dirent *spy_readdir(DIR *dir)
{
    return spy_call() ? NULL : readdir(dir);
}

const struct journal_calls spy_calls = { .openat = spy_openat,
                                         .mkdirat = spy_mkdirat,
                                         .fchmodat = spy_fchmodat,
                                         .read = spy_read,
                                         .write = spy_write,
                                         .fstat = spy_fstat,
                                         .fstatat = spy_fstatat,
                                         .fsync = spy_fsync,
                                         .renameat = spy_renameat,
                                         .unlinkat = spy_unlinkat,
                                         .lock = spy_lock,
                                         .readdir = spy_readdir };
