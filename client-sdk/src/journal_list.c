/* journal_list.c - all entries at once: names, lists, clearing up. See journal_files.h. */
#include "client-sdk/src/journal_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- names -------------------------------------------------------------------------------------------------------- */

static int names_say_memory(void)
{
    (void) journal_say("out of memory while listing the journal");
    return NONBIS_ERROR_MEMORY;
}

bool journal_names_push(struct journal_names *names, enum journal_place place, const char *name)
{
    if (names->count == names->cap) {
        size_t cap = names->cap > 0 ? names->cap * 2 : 64;
        struct journal_found *grown = realloc(names->items, cap * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        names->items = grown;
        names->cap = cap;
    }
    struct journal_found *found = &names->items[names->count++];
    found->place = place;
    (void) snprintf(found->name, sizeof(found->name), "%s", name);
    return true;
}

int journal_names_add(struct journal_directory *directory, enum journal_place place, struct journal_names *names)
{
    /* A description of its own: where one reader is does not move another. */
    int fd = directory->calls->openat(directory->places[place], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        int result = journal_say_failed(directory, "list", place, "");
        if (fd >= 0) {
            (void) close(fd);
        }
        return result;
    }
    int result = NONBIS_OK;
    while (result == NONBIS_OK) {
        errno = 0;
        const struct dirent *item = directory->calls->readdir(dir);
        if (item == NULL) {
            result = errno != 0 ? journal_say_failed(directory, "list", place, "") : NONBIS_OK;
            break;
        }
        if (item->d_name[0] != '.' && !journal_names_push(names, place, item->d_name)) {
            result = names_say_memory();
        }
    }
    (void) closedir(dir);
    return result;
}

/* The furthest place of a name first: those that follow are then dropped. */
static int found_compare(const void *a, const void *b)
{
    const struct journal_found *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order != 0 ? order : (int) right->place - (int) left->place;
}

void journal_names_sort(struct journal_names *names)
{
    size_t kept = 0;
    if (names->count > 1) {
        qsort(names->items, names->count, sizeof(*names->items), found_compare);
    }
    for (size_t i = 0; i < names->count; i++) {
        if (kept == 0 || strcmp(names->items[kept - 1].name, names->items[i].name) != 0) {
            if (kept != i) {
                names->items[kept] = names->items[i];
            }
            kept++;
        }
    }
    names->count = kept;
}

void journal_names_fini(struct journal_names *names)
{
    free(names->items);
    *names = (struct journal_names){ .items = NULL };
}

/* ---- each --------------------------------------------------------------------------------------------------------- */

/* What is told of one entry, and the memory of its texts. */
struct line {
    struct nonbis_journal_entry entry;
    const char *name;
    char *texts;
};

struct lines {
    struct line *items;
    size_t count;
};

static int line_compare(const void *a, const void *b)
{
    const struct line *left = a, *right = b;
    if (left->entry.created_wall_ms != right->entry.created_wall_ms) {
        return left->entry.created_wall_ms < right->entry.created_wall_ms ? -1 : 1;
    }
    return strcmp(left->name, right->name);
}

static void lines_fini(struct lines *lines)
{
    for (size_t i = 0; i < lines->count; i++) {
        free(lines->items[i].texts);
    }
    free(lines->items);
}

/* The texts in one piece of memory. `fault` may be NULL. */
static bool line_keep_texts(struct line *line, const char *key, const char *method, const char *url, const char *fault)
{
    const char *const from[] = { key, method, url, fault };
    const char **const to[] = { &line->entry.key, &line->entry.method, &line->entry.url, &line->entry.fault };
    size_t size = 1;
    for (size_t i = 0; i < 4 && from[i] != NULL; i++) {
        size += strlen(from[i]) + 1;
    }
    char *at = line->texts = malloc(size);
    for (size_t i = 0; i < 4 && from[i] != NULL && at != NULL; i++) {
        *to[i] = at;
        at += strlen(memcpy(at, from[i], strlen(from[i]) + 1)) + 1;
    }
    return line->texts != NULL;
}

static bool line_from_record(struct line *line, const struct journal_record *record, enum journal_place place)
{
    line->entry =
        (struct nonbis_journal_entry){ .state = journal_place_name(place),
                                       .body_len = record->body_len,
                                       .created_wall_ms = record->created_wall_ms,
                                       .changed_wall_ms =
                                           record->ended_wall_ms != 0 ? record->ended_wall_ms : record->created_wall_ms,
                                       .outcome = record->outcome,
                                       .stop = record->stop,
                                       .http_status = record->http_status };
    return line_keep_texts(line, record->key, record->method, record->url, NULL);
}

/* What cannot be read is in the list all the same: with its key where the name tells it, "unreadable" and its path where
 * others have method and URL, and why. */
static bool line_from_damaged(struct line *line, const struct journal_directory *directory, enum journal_place place,
                              int64_t file_wall_ms)
{
    char key[JOURNAL_NAME_KEY];
    char *path = NULL;
    line->entry = (struct nonbis_journal_entry){ .state = journal_place_name(place),
                                                 .created_wall_ms = file_wall_ms,
                                                 .changed_wall_ms = file_wall_ms };
    if (asprintf(&path, "%s/%s/%s", directory->path, journal_place_name(place), line->name) < 0) {
        return false;
    }
    bool kept =
        line_keep_texts(line, journal_name_key(line->name, key) ? key : line->name, "unreadable", path, journal_said());
    free(path);
    return kept;
}

/* Reads it where it was seen, or where it has moved to since. NONBIS_ERROR_NOT_FOUND: it is gone. */
static int line_read(struct journal_directory *directory, const struct journal_found *found, struct line *line)
{
    struct journal_text text;
    int64_t file_wall_ms = 0;
    enum journal_place place = found->place;
    line->name = found->name;
    int result = journal_file_read(directory, found->name, place, &text, &file_wall_ms);
    for (int at = JOURNAL_PLACE_NEW; result == NONBIS_ERROR_NOT_FOUND && at <= JOURNAL_PLACE_DONE; at++) {
        place = (enum journal_place) at;
        result = journal_file_read(directory, found->name, place, &text, &file_wall_ms);
    }
    if (result == NONBIS_OK) {
        bool kept = line_from_record(line, &text.record, place);
        journal_text_fini(&text);
        return kept ? NONBIS_OK : names_say_memory();
    }
    if (result == NONBIS_ERROR_JOURNAL) {
        return line_from_damaged(line, directory, place, file_wall_ms) ? NONBIS_OK : names_say_memory();
    }
    return result;
}

/* The order of the places is the order in which entries move, so that none is missed between two; and `new` again, for one
 * that replaces a decided one meanwhile. */
static int each_names(struct journal_directory *directory, struct journal_names *names)
{
    static const enum journal_place order[] = { JOURNAL_PLACE_NEW, JOURNAL_PLACE_SENT, JOURNAL_PLACE_DONE,
                                                JOURNAL_PLACE_NEW };
    int result = NONBIS_OK;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]) && result == NONBIS_OK; i++) {
        result = journal_names_add(directory, order[i], names);
    }
    journal_names_sort(names);
    return result;
}

static int each_lines(struct journal_directory *directory, const struct journal_names *names, struct lines *lines)
{
    lines->items = calloc(names->count > 0 ? names->count : 1, sizeof(*lines->items));
    if (lines->items == NULL) {
        return names_say_memory();
    }
    for (size_t i = 0; i < names->count; i++) {
        int result = line_read(directory, &names->items[i], &lines->items[lines->count]);
        if (result == NONBIS_OK) {
            lines->count++;
        } else if (result != NONBIS_ERROR_NOT_FOUND) {
            return result;
        }
    }
    if (lines->count > 1) {
        qsort(lines->items, lines->count, sizeof(*lines->items), line_compare);
    }
    return NONBIS_OK;
}

int journal_list_each(struct journal *journal, int (*callback)(const struct nonbis_journal_entry *entry, void *arg),
                      void *arg)
{
    struct journal_directory *directory = (struct journal_directory *) (void *) journal;
    struct journal_names names = { .items = NULL };
    struct lines lines = { .items = NULL };
    int told = 0;
    int result = each_names(directory, &names);
    if (result == NONBIS_OK) {
        result = each_lines(directory, &names, &lines);
    }
    for (size_t i = 0; i < lines.count && result == NONBIS_OK; i++) {
        struct line *line = &lines.items[i];
        line->entry.locked = journal_lock_is_taken(directory, line->name) ? 1 : 0;
        told++;
        if (callback(&line->entry, arg) != 0) {
            break;
        }
    }
    lines_fini(&lines);
    journal_names_fini(&names);
    return result == NONBIS_OK ? told : result;
}

/* ---- clearing up -------------------------------------------------------------------------------------------------- */

int journal_tmp_clean(struct journal_directory *directory)
{
    struct journal_names names = { .items = NULL };
    int result = journal_names_add(directory, JOURNAL_PLACE_TMP, &names);
    for (size_t i = 0; i < names.count && result == NONBIS_OK; i++) {
        int lock = -1;
        if (journal_lock_take(directory, names.items[i].name, &lock) == NONBIS_OK) {
            (void) directory->calls->unlinkat(directory->places[JOURNAL_PLACE_TMP], names.items[i].name, 0);
            journal_lock_drop(lock); /* what could not be removed harms nobody */
        }
    }
    journal_names_fini(&names);
    return result;
}

/* What a prune is about. */
struct pruning {
    int64_t wall_ms, older_than_ms;
    bool undecided;
    bool touched[JOURNAL_PLACES];
    int removed;
};

/* When an entry changed last: what it says itself, else its file's time. False: neither can be had, so it stays. */
static bool prune_time(struct journal_directory *directory, const char *name, enum journal_place place,
                       int64_t *changed_wall_ms)
{
    struct journal_text text;
    int64_t file_wall_ms = INT64_MIN;
    if (journal_file_read(directory, name, place, &text, &file_wall_ms) == NONBIS_OK) {
        *changed_wall_ms = text.record.ended_wall_ms != 0 ? text.record.ended_wall_ms : text.record.created_wall_ms;
        journal_text_fini(&text);
        return true;
    }
    *changed_wall_ms = file_wall_ms;
    return file_wall_ms != INT64_MIN;
}

/* Under the name's lock: what it was when it was listed may be over. */
static int prune_one(struct journal_directory *directory, const char *name, struct pruning *pruning)
{
    enum journal_place place = JOURNAL_PLACE_NEW;
    int64_t changed_wall_ms = 0;
    int result = journal_file_settle(directory, name, &place);
    if (result != NONBIS_OK || (place != JOURNAL_PLACE_DONE && !pruning->undecided) ||
        !prune_time(directory, name, place, &changed_wall_ms) ||
        pruning->wall_ms - changed_wall_ms <= pruning->older_than_ms) {
        return result == NONBIS_ERROR_NOT_FOUND ? NONBIS_OK : result;
    }
    result = journal_file_remove(directory, name, place);
    if (result == NONBIS_OK) {
        pruning->touched[place] = true;
        pruning->removed++;
    }
    return result;
}

static int prune_names(struct journal_directory *directory, const struct journal_names *names, struct pruning *pruning)
{
    int result = NONBIS_OK;
    for (size_t i = 0; i < names->count && result == NONBIS_OK; i++) {
        int lock = -1;
        result = journal_lock_take(directory, names->items[i].name, &lock);
        if (result == NONBIS_OK) {
            result = prune_one(directory, names->items[i].name, pruning);
            journal_lock_drop(lock);
        } else if (result == NONBIS_ERROR_LOCKED) {
            result = NONBIS_OK;
        }
    }
    for (enum journal_place place = JOURNAL_PLACE_NEW; place <= JOURNAL_PLACE_DONE; place++) {
        if (pruning->touched[place] && result == NONBIS_OK) {
            result = journal_place_sync(directory, place);
        }
    }
    return result;
}

int journal_list_prune(struct journal *journal, int64_t wall_ms, int64_t older_than_ms, bool undecided)
{
    struct journal_directory *directory = (struct journal_directory *) (void *) journal;
    struct journal_names names = { .items = NULL };
    struct pruning pruning = { .wall_ms = wall_ms, .older_than_ms = older_than_ms, .undecided = undecided };
    int result = journal_tmp_clean(directory);
    for (enum journal_place place = JOURNAL_PLACE_NEW; place <= JOURNAL_PLACE_DONE && result == NONBIS_OK; place++) {
        if (undecided || place == JOURNAL_PLACE_DONE) {
            result = journal_names_add(directory, place, &names);
        }
    }
    journal_names_sort(&names);
    if (result == NONBIS_OK) {
        result = prune_names(directory, &names, &pruning);
    }
    journal_names_fini(&names);
    return result == NONBIS_OK ? pruning.removed : result;
}
