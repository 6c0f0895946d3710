/* lock_file.c - see lock_file.h. One thread at a time. */
#include "server/store/lock_file.h"

#include "common/view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { LOCK_TEXT_MAX = 8192 }; /* bytes: a path and five short lines */

#define LOCK_HEAD "nonbis store lock 1"

static const char *const lock_states[] = {
    [LOCK_STOPPED] = "stopped", [LOCK_RUNNING] = "running", [LOCK_CLOSING] = "closing"
};
enum { LOCK_STATES = sizeof lock_states / sizeof lock_states[0] };

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static bool hex_read(struct view text, uint8_t *out, size_t bytes)
{
    if (text.len != bytes * 2) {
        return false;
    }
    for (size_t i = 0; i < bytes; i++) {
        int high = hex_value(text.ptr[2 * i]), low = hex_value(text.ptr[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        out[i] = (uint8_t) (high << 4 | low);
    }
    return true;
}

static void lock_file_read_state(struct lock_file *lock, struct view name)
{
    for (int i = 0; i < LOCK_STATES; i++) {
        if (view_equal(name, view_of(lock_states[i]))) {
            lock->state = (enum lock_state) i;
        }
    }
}

/* "state NAME" and, in a line of its own behind it, "time MS": the second line and the third and no others, since a path may hold anything. */
static void lock_file_read_head(struct lock_file *lock, struct view rest)
{
    struct view line;
    uint64_t ms;
    if (!view_next_item(&rest, '\n', &line) || !view_starts_with(line, VIEW("state "))) {
        return;
    }
    lock_file_read_state(lock, view_make(line.ptr + 6, line.len - 6));
    if (view_next_item(&rest, '\n', &line) && view_starts_with(line, VIEW("time ")) &&
        view_to_uint64(view_make(line.ptr + 5, line.len - 5), &ms) && ms <= INT64_MAX) {
        lock->time_ms = (int64_t) ms;
    }
}

static void lock_file_read(struct lock_file *lock)
{
    char text[LOCK_TEXT_MAX];
    ssize_t len = pread(lock->fd, text, sizeof text, 0);
    struct view rest = view_make(text, len > 0 ? (size_t) len : 0), line;
    if (!view_next_item(&rest, '\n', &line) || !view_equal(line, VIEW(LOCK_HEAD))) {
        return; /* new, or not ours: it remembers nothing */
    }
    lock_file_read_head(lock, rest);
    bool in_path = false; /* it may hold lines that look like ours */
    while (view_next_item(&rest, '\n', &line)) {
        uint64_t pid;
        in_path = in_path || view_starts_with(line, VIEW("path "));
        if (!in_path && view_starts_with(line, VIEW("store "))) {
            lock->remembers = hex_read(view_make(line.ptr + 6, line.len - 6), lock->store_id, sizeof lock->store_id);
        } else if (view_starts_with(line, VIEW("pid ")) &&
                   view_to_uint64(view_make(line.ptr + 4, line.len - 4), &pid)) {
            lock->pid = (long) pid;
        }
    }
}

enum lock_result lock_file_take(struct lock_file *lock, const char *path)
{
    *lock = (struct lock_file){ .fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) };
    if (lock->fd < 0) {
        return LOCK_REFUSED;
    }
    bool taken = flock(lock->fd, LOCK_EX | LOCK_NB) == 0;
    int error = errno;
    lock_file_read(lock);
    if (taken) {
        return LOCK_TAKEN;
    }
    (void) close(lock->fd);
    lock->fd = -1;
    errno = error;
    return error == EWOULDBLOCK ? LOCK_HELD : LOCK_REFUSED;
}

static bool lock_file_put(struct lock_file *lock, const char *text, size_t len)
{
    ssize_t put = pwrite(lock->fd, text, len, 0);
    if (put >= 0 && (size_t) put != len) {
        errno = ENOSPC;
        return false;
    }
    return put >= 0 && ftruncate(lock->fd, (off_t) len) == 0 && fdatasync(lock->fd) == 0;
}

bool lock_file_write(struct lock_file *lock, const char *database_path, const uint8_t *store_id, enum lock_state state)
{
    char text[LOCK_TEXT_MAX], store[48] = "";
    if (store_id != NULL) {
        memcpy(lock->store_id, store_id, sizeof lock->store_id);
        lock->remembers = true;
    }
    if (lock->remembers) {
        char *at = store + snprintf(store, sizeof store, "store ");
        for (size_t i = 0; i < sizeof lock->store_id; i++) {
            at += snprintf(at, 3, "%02x", lock->store_id[i]);
        }
        (void) snprintf(at, 2, "\n");
    }
    int len = snprintf(text, sizeof text, LOCK_HEAD "\nstate %s\ntime %020lld\n%spath %s\npid %ld\n",
                       lock_states[state], (long long) lock->time_ms, store, database_path, (long) getpid());
    if (len < 0 || (size_t) len >= sizeof text) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (!lock_file_put(lock, text, (size_t) len)) {
        return false;
    }
    lock->state = state;
    return true;
}

void lock_file_release(struct lock_file *lock)
{
    if (lock->fd >= 0) {
        (void) close(lock->fd); /* drops the lock; the pid stays as a trace and counts for nothing */
        lock->fd = -1;
    }
}
