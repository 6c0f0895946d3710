/* journal_directory.c - the journal over a directory: what each call of journal.h does with the files. See journal_files.h.
 *
 * Every change is made under the lock of the entry's name, so that looking, writing and moving are one step to others. */
#include "client-sdk/src/journal_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the entry lies is `place`. What it takes until that is surely on the disk is `unsynced`: a process before us may have
 * died between renaming and syncing, and `sent` must not become `new` again by a power failure once we have sent. */
struct journal_entry {
    int lock;
    char name[JOURNAL_NAME_SIZE];
    enum journal_place place;
    bool unsynced[JOURNAL_PLACES];
    bool failed; /* a sync has failed: a later one that succeeds proves nothing */
    struct journal_text text;
};

static struct journal_directory *directory_of(struct journal *journal)
{
    return (struct journal_directory *) (void *) journal; /* its first member */
}

static void directory_close_entry(struct journal *journal, struct journal_entry *entry)
{
    (void) journal;
    if (entry != NULL) {
        journal_lock_drop(entry->lock);
        journal_text_fini(&entry->text);
        free(entry);
    }
}

static struct journal_entry *entry_new(const char *name, int lock)
{
    struct journal_entry *entry = calloc(1, sizeof(*entry));
    if (entry == NULL) {
        (void) journal_say("out of memory while opening the journal's entry %s", name);
        return NULL;
    }
    entry->lock = lock;
    (void) snprintf(entry->name, sizeof(entry->name), "%s", name);
    return entry;
}

/* ---- create ------------------------------------------------------------------------------------------------------- */

/* Nothing was sent and the caller is told so: the entry must not be there for a resume. The error said first stays. */
static void create_undo(struct journal_directory *directory, const char *name)
{
    const struct journal_calls *calls = directory->calls;
    if (calls->unlinkat(directory->places[JOURNAL_PLACE_NEW], name, 0) != 0) {
        (void) journal_say("%s; and %s/%s/%s could not be removed again: remove it, or it will be sent by a resume",
                           journal_said(), directory->path, journal_place_name(JOURNAL_PLACE_NEW), name);
    } else {
        (void) calls->fsync(directory->places[JOURNAL_PLACE_NEW]);
    }
}

/* The decided entry of the same key goes, by way of tmp so that it can come back. */
static int create_drop_decided(struct journal_directory *directory, const char *name)
{
    const struct journal_calls *calls = directory->calls;
    int done = directory->places[JOURNAL_PLACE_DONE], tmp = directory->places[JOURNAL_PLACE_TMP];
    int result = journal_file_move(directory, name, JOURNAL_PLACE_DONE, JOURNAL_PLACE_TMP);
    if (result != NONBIS_OK) {
        return result;
    }
    result = journal_place_sync(directory, JOURNAL_PLACE_DONE);
    if (result != NONBIS_OK) {
        (void) calls->renameat(tmp, name, done, name);
    } else {
        (void) calls->unlinkat(tmp, name, 0); /* else it is left over, and cleaned some day */
    }
    return result;
}

/* A completed entry is the proof that its command was executed: no other use of the key takes its place. */
static int create_look_at_decided(struct journal_directory *directory, const char *name, const char *key)
{
    struct journal_text text = { .bytes = NULL };
    int result = journal_file_read(directory, name, JOURNAL_PLACE_DONE, &text, NULL);
    if (result != NONBIS_OK) {
        return result == NONBIS_ERROR_MEMORY ? result : NONBIS_OK; /* damaged, it proves nothing */
    }
    if (text.record.outcome == NONBIS_COMPLETED) {
        (void) journal_say(
            "the journal has the key %s already, in %s/%s, as completed: open that entry if it is the same "
            "request, and use another key if it is not",
            key, directory->path, journal_place_name(JOURNAL_PLACE_DONE));
        result = NONBIS_ERROR_EXISTS;
    }
    journal_text_fini(&text);
    return result;
}

static int create_locked(struct journal_directory *directory, const char *name, const struct journal_record *record)
{
    enum journal_place place = JOURNAL_PLACE_NEW;
    int result = journal_file_settle(directory, name, &place);
    bool replaces = result == NONBIS_OK && place == JOURNAL_PLACE_DONE;
    if (result == NONBIS_OK && !replaces) {
        (void) journal_say("the journal has the key %s already, in %s/%s: open that entry and run it on", record->key,
                           directory->path, journal_place_name(place));
        return NONBIS_ERROR_EXISTS;
    }
    if (replaces) {
        result = create_look_at_decided(directory, name, record->key);
    }
    if (result != NONBIS_OK && result != NONBIS_ERROR_NOT_FOUND) {
        return result;
    }
    result = journal_file_write(directory, name, record);
    if (result != NONBIS_OK) {
        return result;
    }
    result = journal_file_move(directory, name, JOURNAL_PLACE_TMP, JOURNAL_PLACE_NEW);
    if (result != NONBIS_OK) {
        (void) directory->calls->unlinkat(directory->places[JOURNAL_PLACE_TMP], name, 0);
        return result;
    }
    result = journal_place_sync(directory, JOURNAL_PLACE_NEW);
    if (result == NONBIS_OK && replaces) {
        result = create_drop_decided(directory, name); /* until it is gone it counts, and not the new one */
    }
    if (result != NONBIS_OK) {
        create_undo(directory, name);
    }
    return result;
}

static int name_make(const char *key, char name[JOURNAL_NAME_SIZE])
{
    if (key == NULL || !journal_name_make(key, name)) {
        (void) journal_say("a key in the journal has 1 to 255 bytes of visible ASCII");
        return NONBIS_ERROR_KEY;
    }
    return NONBIS_OK;
}

static int directory_create(struct journal *journal, const struct journal_record *record, struct journal_entry **entry)
{
    struct journal_directory *directory = directory_of(journal);
    char name[JOURNAL_NAME_SIZE];
    int lock = -1;
    int result = name_make(record->key, name);
    if (result == NONBIS_OK) {
        result = journal_lock_take(directory, name, &lock);
    }
    if (result != NONBIS_OK) {
        return result;
    }
    struct journal_entry *made = entry_new(name, lock);
    result = made != NULL ? create_locked(directory, name, record) : NONBIS_ERROR_MEMORY;
    if (result != NONBIS_OK) {
        journal_lock_drop(lock);
        free(made);
        return result;
    }
    *entry = made;
    return NONBIS_OK;
}

/* ---- moving ------------------------------------------------------------------------------------------------------- */

static int entry_move(struct journal_directory *directory, struct journal_entry *entry, enum journal_place to)
{
    int result = journal_file_move(directory, entry->name, entry->place, to);
    if (result == NONBIS_OK) {
        entry->unsynced[entry->place] = entry->unsynced[to] = true;
        entry->place = to;
    }
    return result;
}

/* The place it is in first: then it is in two for a moment, and never in none. */
static int entry_sync(struct journal_directory *directory, struct journal_entry *entry)
{
    for (int i = -1; i < (int) JOURNAL_PLACE_TMP; i++) {
        enum journal_place place = i < 0 ? entry->place : (enum journal_place) i;
        if (entry->unsynced[place]) {
            int result = journal_place_sync(directory, place);
            if (result != NONBIS_OK) {
                entry->failed = true;
                return result;
            }
            entry->unsynced[place] = false;
        }
    }
    return NONBIS_OK;
}

static int directory_mark_sent(struct journal *journal, struct journal_entry *entry)
{
    struct journal_directory *directory = directory_of(journal);
    if (entry->failed) {
        return journal_say("the disk has failed before to keep the journal's entry %s/%s/%s: it is not sent from here "
                           "again",
                           directory->path, journal_place_name(entry->place), entry->name);
    }
    int result = NONBIS_OK;
    if (entry->place != JOURNAL_PLACE_SENT) {
        result = entry_move(directory, entry, JOURNAL_PLACE_SENT);
    }
    return result == NONBIS_OK ? entry_sync(directory, entry) : result;
}

static int directory_mark_ended(struct journal *journal, struct journal_entry *entry,
                                const struct journal_record *record, bool decided)
{
    struct journal_directory *directory = directory_of(journal);
    char name[JOURNAL_NAME_SIZE];
    int result = name_make(record->key, name);
    if (result == NONBIS_OK && strcmp(name, entry->name) != 0) {
        (void) journal_say("the key %s is not that of the journal's entry %s", record->key, entry->name);
        result = NONBIS_ERROR_KEY;
    }
    if (result == NONBIS_OK) {
        result = journal_file_write(directory, name, record);
    }
    if (result != NONBIS_OK) {
        return result;
    }
    /* First the text where it is, then the place: so there is one entry, whole, at every moment. */
    result = journal_file_move(directory, name, JOURNAL_PLACE_TMP, entry->place);
    if (result != NONBIS_OK) {
        (void) directory->calls->unlinkat(directory->places[JOURNAL_PLACE_TMP], name, 0);
        return result;
    }
    entry->unsynced[entry->place] = true;
    if (decided && entry->place != JOURNAL_PLACE_DONE) {
        result = entry_move(directory, entry, JOURNAL_PLACE_DONE);
    }
    return result == NONBIS_OK ? entry_sync(directory, entry) : result;
}

/* ---- opening ------------------------------------------------------------------------------------------------------ */

static int open_locked(struct journal_directory *directory, struct journal_entry *entry, const char *key)
{
    int result = journal_file_read(directory, entry->name, entry->place, &entry->text, NULL);
    if (result == NONBIS_OK && key != NULL && strcmp(entry->text.record.key, key) != 0) {
        result = journal_say("the keys %s and %s have the same name in the journal, %s/%s/%s: use another key", key,
                             entry->text.record.key, directory->path, journal_place_name(entry->place), entry->name);
    }
    if (entry->place == JOURNAL_PLACE_SENT) {
        entry->unsynced[JOURNAL_PLACE_SENT] = true;
        entry->unsynced[JOURNAL_PLACE_NEW] = entry->unsynced[JOURNAL_PLACE_DONE] = true;
    }
    return result;
}

/* `key` NULL: any, but undecided; NONBIS_ERROR_NOT_FOUND when it is decided by now. */
static int open_name(struct journal_directory *directory, const char *name, const char *key,
                     struct journal_entry **entry)
{
    int lock = -1;
    int result = journal_lock_take(directory, name, &lock);
    if (result != NONBIS_OK) {
        return result;
    }
    struct journal_entry *opened = entry_new(name, lock);
    if (opened == NULL) {
        journal_lock_drop(lock);
        return NONBIS_ERROR_MEMORY;
    }
    result = journal_file_settle(directory, name, &opened->place);
    if (result == NONBIS_OK && key == NULL && opened->place == JOURNAL_PLACE_DONE) {
        result = NONBIS_ERROR_NOT_FOUND;
    }
    if (result == NONBIS_OK) {
        result = open_locked(directory, opened, key);
    }
    if (result != NONBIS_OK) {
        directory_close_entry(&directory->journal, opened);
        return result;
    }
    *entry = opened;
    return NONBIS_OK;
}

static void open_tell(const struct journal_entry *entry, const struct journal_record **record,
                      enum journal_state *state)
{
    *record = &entry->text.record;
    *state = (enum journal_state) entry->place;
}

static int directory_open(struct journal *journal, const char *key, struct journal_entry **entry,
                          const struct journal_record **record, enum journal_state *state)
{
    char name[JOURNAL_NAME_SIZE];
    int result = name_make(key, name);
    if (result == NONBIS_OK) {
        result = open_name(directory_of(journal), name, key, entry);
    }
    if (result == NONBIS_OK) {
        open_tell(*entry, record, state);
    }
    return result;
}

/* The names behind `after`, listed anew unless the list goes on there: so a walk lists the directories twice, and not once per
 * entry. */
static int ahead_fill(struct journal_directory *directory, const char *after)
{
    struct journal_names *names = &directory->ahead;
    size_t next = directory->ahead_next;
    if (next > 0 && next < names->count && strcmp(names->items[next - 1].name, after) == 0) {
        return NONBIS_OK;
    }
    names->count = directory->ahead_next = 0;
    int result = journal_names_add(directory, JOURNAL_PLACE_NEW, names);
    if (result == NONBIS_OK) {
        result = journal_names_add(directory, JOURNAL_PLACE_SENT, names);
    }
    if (result != NONBIS_OK) {
        names->count = 0;
        return result;
    }
    journal_names_sort(names);
    for (next = 0; next < names->count && strcmp(names->items[next].name, after) <= 0; next++) {
    }
    directory->ahead_next = next;
    return NONBIS_OK;
}

/* `after` may be shared by threads, and moves on: `name` is this one's. */
static int ahead_take(struct journal_directory *directory, char *after, char name[NONBIS_JOURNAL_NAME])
{
    (void) pthread_mutex_lock(&directory->mutex);
    int result = ahead_fill(directory, after);
    if (result == NONBIS_OK && directory->ahead_next == directory->ahead.count) {
        journal_names_fini(&directory->ahead);
        directory->ahead_next = 0;
        result = NONBIS_END;
    } else if (result == NONBIS_OK) {
        (void) snprintf(name, NONBIS_JOURNAL_NAME, "%s", directory->ahead.items[directory->ahead_next++].name);
        memcpy(after, name, NONBIS_JOURNAL_NAME);
    }
    (void) pthread_mutex_unlock(&directory->mutex);
    return result;
}

/* An entry that cannot be read must not keep those behind it from going on: it is told of when all the others were given. */
static bool damaged_remember(struct journal_directory *directory, const char *name)
{
    (void) pthread_mutex_lock(&directory->mutex);
    bool kept = journal_names_push(&directory->damaged, JOURNAL_PLACE_NEW, name);
    (void) pthread_mutex_unlock(&directory->mutex);
    return kept;
}

static bool damaged_take(struct journal_directory *directory, char name[NONBIS_JOURNAL_NAME])
{
    (void) pthread_mutex_lock(&directory->mutex);
    bool taken = directory->damaged.count > 0;
    if (taken) {
        directory->damaged.count--;
        (void) snprintf(name, NONBIS_JOURNAL_NAME, "%s", directory->damaged.items[directory->damaged.count].name);
    }
    (void) pthread_mutex_unlock(&directory->mutex);
    return taken;
}

static int walk_open(struct journal_directory *directory, const char *found, struct journal_entry **entry)
{
    char name[JOURNAL_NAME_SIZE];
    if (strlen(found) >= sizeof(name)) {
        return journal_say("%s in the journal %s is no entry of a journal", found, directory->path);
    }
    (void) snprintf(name, sizeof(name), "%s", found);
    return open_name(directory, name, NULL, entry);
}

static int directory_open_next(struct journal *journal, char *after, struct journal_entry **entry,
                               const struct journal_record **record, enum journal_state *state)
{
    struct journal_directory *directory = directory_of(journal);
    char name[NONBIS_JOURNAL_NAME] = "";
    for (;;) {
        int result = ahead_take(directory, after, name);
        bool again = result == NONBIS_END && damaged_take(directory, name);
        if (result != NONBIS_OK && !again) {
            return result;
        }
        result = walk_open(directory, name, entry);
        if (result == NONBIS_OK) {
            open_tell(*entry, record, state);
        }
        bool later = result == NONBIS_ERROR_JOURNAL && !again && damaged_remember(directory, name);
        if (result != NONBIS_ERROR_LOCKED && result != NONBIS_ERROR_NOT_FOUND && !later) {
            return result;
        }
    }
}

/* ---- the whole ---------------------------------------------------------------------------------------------------- */

static const char *directory_message(struct journal *journal)
{
    (void) journal;
    return journal_said();
}

static void directory_free(struct journal *journal)
{
    struct journal_directory *directory = directory_of(journal);
    journal_names_fini(&directory->ahead);
    journal_names_fini(&directory->damaged);
    journal_place_close(directory);
    (void) pthread_mutex_destroy(&directory->mutex);
    free(directory);
}

static const struct journal directory_calls = { .create = directory_create,
                                                .mark_sent = directory_mark_sent,
                                                .mark_ended = directory_mark_ended,
                                                .open = directory_open,
                                                .open_next = directory_open_next,
                                                .close = directory_close_entry,
                                                .each = journal_list_each,
                                                .prune = journal_list_prune,
                                                .message = directory_message,
                                                .free = directory_free };

struct journal *journal_directory_open_with(const struct journal_calls *calls, const char *path, char *message,
                                            size_t message_size)
{
    struct journal_directory *directory = calloc(1, sizeof(*directory));
    if (directory == NULL || pthread_mutex_init(&directory->mutex, NULL) != 0) {
        free(directory);
        (void) snprintf(message, message_size, "out of memory while opening the journal");
        return NULL;
    }
    directory->journal = directory_calls;
    directory->calls = calls;
    directory->root = directory->lock = -1;
    for (enum journal_place place = JOURNAL_PLACE_NEW; place < JOURNAL_PLACES; place++) {
        directory->places[place] = -1;
    }
    if (!journal_place_open(directory, path) || journal_tmp_clean(directory) != NONBIS_OK) {
        (void) snprintf(message, message_size, "%s", journal_said());
        directory_free(&directory->journal);
        return NULL;
    }
    return &directory->journal;
}

struct journal *journal_directory_open(const char *path, char *message, size_t message_size)
{
    return journal_directory_open_with(&journal_calls_system, path, message, message_size);
}
