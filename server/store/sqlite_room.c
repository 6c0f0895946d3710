/* sqlite_room.c - what a full disk means for the store (docs/contract.md 11.5): the room that is kept for the outcomes of running commands is given up
 * when one of them finds no other, and no command is claimed until it is there again. Not: which operations go on without room (batch.c). One thread at
 * a time. */
#include "server/store/sqlite_store.h"

#include "server/base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
    AGAIN_MS = 2000,      /* between tries to have it again */
    PAGE_BYTES_MAX = 4096 /* of a store of an older version; a new one has smaller pages */
};

void sqlite_room_open(struct sqlite_store *sqlite, const char *path, int64_t bytes)
{
    char file[PATH_MAX + 16];
    (void) snprintf(file, sizeof file, "%s.reserve", path);
    reserve_open(&sqlite->reserve, file, bytes);
}

bool sqlite_room_takes_claims(const struct store *store)
{
    return ((const struct sqlite_store *) (const void *) store)->reserve.held;
}

bool sqlite_room_make(struct store *store)
{
    struct sqlite_store *sqlite = sqlite_store_of(store);
    if (!reserve_give_up(&sqlite->reserve)) {
        return false;
    }
    sqlite->reserve_again_ms = store->clock->monotonic_ms(store->clock->context) + AGAIN_MS;
    sqlite->reserve_told = true;
    log_message(LOG_WARN, "store",
                "the disk is full: the room kept in %s (bytes: %lld) goes to the outcomes of running commands; new "
                "commands are refused until as much is free again",
                sqlite->reserve.path, (long long) sqlite->reserve.bytes);
    return true;
}

bool sqlite_room_is_for_outcomes(const struct sqlite_store *sqlite)
{
    return !sqlite->reserve.held && (int64_t) sqlite->wal_pages * PAGE_BYTES_MAX >= sqlite->reserve.bytes / 4;
}

bool sqlite_room_is_due(const struct sqlite_store *sqlite, int64_t monotonic_ms)
{
    return !sqlite->reserve.held && monotonic_ms >= sqlite->reserve_again_ms;
}

void sqlite_room_tend(struct sqlite_store *sqlite, int64_t monotonic_ms)
{
    if (!sqlite_room_is_due(sqlite, monotonic_ms)) {
        return;
    }
    sqlite->reserve_again_ms = monotonic_ms + AGAIN_MS;
    int error = reserve_hold(&sqlite->reserve);
    if (error == 0 && sqlite->reserve_told) {
        log_message(
            LOG_INFO, "store",
            "room for the outcomes of running commands is kept in %s again (bytes: %lld): new commands are taken",
            sqlite->reserve.path, (long long) sqlite->reserve.bytes);
        sqlite->reserve_told = false;
    } else if (error != 0 && !sqlite->reserve_told) {
        sqlite->reserve_told = true;
        log_message(
            LOG_WARN, "store",
            "no room can be kept in %s for the outcomes of running commands (bytes: %lld): %s. New commands are "
            "refused until it can; store_reserve sets how much, and 0 does without",
            sqlite->reserve.path, (long long) sqlite->reserve.bytes,
            error == EEXIST ? "another file lies there, which is left alone; move it away" : strerror(error));
    }
}
