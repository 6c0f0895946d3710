/* Power failures, on a model of a disk that keeps as little as it may. What the spy wrote down is played onto it: a file's bytes
 * are there after its fsync only; of a change to a directory that was not synced since, nobody knows whether it is there, each
 * for itself; a rename is there in its target at least when it is gone from its source. After every call, with every choice of
 * what was kept, the entry must be in a state that fits what had returned. */
#include "tests/client/journal_lab.h"

enum { FILES = 32, PENDING = 12, NONE = -1 };

/* A change to directories: `add` appears in `to`, what was in `from` goes. */
struct pending {
    int file; /* NONE: an unlink */
    enum journal_place from, to;
    bool added, removed; /* on the disk for certain */
};

/* One name, K, in four directories. */
struct disk {
    int now[JOURNAL_PLACES];  /* which file K is, as the process sees it */
    int kept[JOURNAL_PLACES]; /* and as it is on the disk, before what is pending */
    bool whole[FILES];
    int files;
    struct pending pending[PENDING];
    size_t pending_count;
};

static void disk_apply_kept(struct disk *disk)
{
    size_t left = 0;
    for (size_t i = 0; i < disk->pending_count; i++) {
        struct pending *change = &disk->pending[i];
        bool has_add = change->file != NONE, has_remove = change->from < JOURNAL_PLACES;
        if ((!has_add || change->added) && (!has_remove || change->removed)) {
            if (has_add) {
                disk->kept[change->to] = change->file;
            }
            if (has_remove) {
                disk->kept[change->from] = NONE;
            }
        } else {
            disk->pending[left++] = *change;
        }
    }
    disk->pending_count = left;
}

static void disk_push(struct disk *disk, struct pending change)
{
    ck_assert_uint_lt(disk->pending_count, PENDING);
    disk->pending[disk->pending_count++] = change;
}

static void disk_play(struct disk *disk, const struct spy_change *change)
{
    switch (change->kind) {
    case SPY_CREATE:
        ck_assert_int_lt(disk->files, FILES);
        disk->now[change->to] = disk->files++;
        disk_push(disk, (struct pending){ disk->now[change->to], JOURNAL_PLACES, change->to, false, false });
        break;
    case SPY_SYNC_FILE:
        disk->whole[disk->now[JOURNAL_PLACE_TMP]] = true;
        break;
    case SPY_RENAME:
        disk_push(disk, (struct pending){ disk->now[change->from], change->from, change->to, false, false });
        disk->now[change->to] = disk->now[change->from];
        disk->now[change->from] = NONE;
        break;
    case SPY_UNLINK:
        disk_push(disk, (struct pending){ NONE, change->to, JOURNAL_PLACES, false, false });
        disk->now[change->to] = NONE;
        break;
    case SPY_SYNC_PLACE:
        for (size_t i = 0; i < disk->pending_count; i++) {
            struct pending *one = &disk->pending[i];
            one->removed = one->removed || one->from == change->to;
            one->added = one->added || one->to == change->to || one->removed;
        }
        disk_apply_kept(disk);
        break;
    default:
        break;
    }
}

/* What is found after the power came back: for each pending change a digit, 0 nothing of it, 1 added, 2 added and removed. */
static void disk_lose(const struct disk *disk, unsigned choice, int found[JOURNAL_PLACES])
{
    memcpy(found, disk->kept, sizeof(disk->kept));
    for (size_t i = 0; i < disk->pending_count; i++, choice /= 3) {
        const struct pending *change = &disk->pending[i];
        unsigned kept = choice % 3;
        if (change->file != NONE && (kept >= 1 || change->added)) {
            found[change->to] = change->file;
        }
        if (change->from < JOURNAL_PLACES && (kept == 2 || change->removed)) {
            found[change->from] = NONE;
        }
    }
}

/* By the rule of journal_files.h: the furthest counts. */
static const char *found_state(const struct disk *disk, const int found[JOURNAL_PLACES], bool *whole)
{
    static const char *const names[] = { "new", "sent", "done" };
    for (int place = JOURNAL_PLACE_DONE; place >= JOURNAL_PLACE_NEW; place--) {
        if (found[place] != NONE) {
            *whole = disk->whole[found[place]];
            return names[place];
        }
    }
    *whole = true;
    return "none";
}

static const struct power_story {
    const char *name;
    const char *before; /* what is on the disk already */
    const char *steps;
    const char *where[6]; /* when so many have returned */
} stories[] = {
    { "a whole life", "none", "csud", { "none new", "new sent", "sent", "sent done", "done" } },
    { "not sent after all", "none", "cd", { "none new", "new done", "done" } },
    { "in place of a decided one", "done", "csd", { "done new", "new sent", "sent done", "done" } },
    { "found in new", "new", "osd", { "new", "new sent", "sent done", "done" } },
    { "found in sent", "sent", "osd", { "sent", "sent", "sent done", "done" } },
    /* Whoever moved it died before his syncs: our mark_sent must make good for them. */
    { "found in sent, not yet durable", "new>sent", "osd", { "new sent", "new sent", "sent done", "done" } },
    { "found in sent, from done, not yet durable",
      "done>sent",
      "osd",
      { "done sent", "done sent", "sent done", "done" } },
    { "a decided one that is sent again", "done", "osd", { "done", "done sent", "sent done", "done" } },
};

static enum journal_state state_of(const char *name)
{
    return name[0] == 'n' ? JOURNAL_NEW : name[0] == 's' ? JOURNAL_SENT : JOURNAL_DONE;
}

static void disk_init(struct disk *disk, const char *before)
{
    *disk = (struct disk){ .whole = { true }, .files = 1 };
    for (int i = 0; i < JOURNAL_PLACES; i++) {
        disk->now[i] = disk->kept[i] = NONE;
    }
    if (strcmp(before, "none") != 0) {
        const char *move = strchr(before, '>');
        enum journal_place first = (enum journal_place) state_of(before);
        disk->now[first] = disk->kept[first] = 0;
        if (move != NULL) {
            disk_play(disk, &(struct spy_change){ SPY_RENAME, first, JOURNAL_PLACE_SENT, 0 });
        }
    }
}

static void live(struct journal_lab *lab, const struct power_story *story)
{
    struct journal_record record = journal_lab_record("k"), ended = journal_lab_ended("k");
    struct journal_entry *entry = NULL;
    const struct journal_record *read = NULL;
    enum journal_state state = JOURNAL_NEW;
    struct journal *journal = lab->journal;
    if (strcmp(story->before, "none") != 0) {
        journal_lab_put(lab, "k", strchr(story->before, '>') != NULL ? JOURNAL_SENT : state_of(story->before));
    }
    spy_reset();
    for (int i = 0; story->steps[i] != '\0'; i++) {
        char step = story->steps[i];
        int result = step == 'c'   ? journal->create(journal, &record, &entry)
                     : step == 'o' ? journal->open(journal, "k", &entry, &read, &state)
                     : step == 's' ? journal->mark_sent(journal, entry)
                                   : journal->mark_ended(journal, entry, &ended, step == 'd');
        ck_assert_int_eq(result, NONBIS_OK);
        spy_returned(i + 1);
    }
    journal->close(journal, entry);
}

/* The moment in which a step returns has one answer only. */
static const char *exact_state(const struct power_story *story, int returned)
{
    char step = story->steps[returned - 1];
    return step == 'c' ? "new" : step == 's' ? "sent" : step == 'd' ? "done" : story->where[returned];
}

static unsigned check_disk(const struct disk *disk, const struct power_story *story, const char *where, int returned,
                           size_t at)
{
    unsigned choices = 1;
    for (size_t i = 0; i < disk->pending_count; i++) {
        choices *= 3;
    }
    for (unsigned choice = 0; choice < choices; choice++) {
        int found[JOURNAL_PLACES];
        bool whole = false;
        disk_lose(disk, choice, found);
        const char *state = found_state(disk, found, &whole);
        ck_assert_msg(strstr(where, state) != NULL,
                      "%s: power lost after change %zu, %d steps had returned: %s (choice %u)", story->name, at,
                      returned, state, choice);
        ck_assert_msg(whole, "%s: power lost after change %zu: torn in %s", story->name, at, state);
    }
    return choices;
}

START_TEST(a_power_failure_anywhere_leaves_one_whole_entry)
{
    const struct power_story *story = &stories[_i];
    struct journal_lab lab;
    struct disk disk;
    int returned = 0;
    unsigned worlds = 0;
    journal_lab_open(&lab, &spy_calls);
    live(&lab, story);
    journal_lab_close(&lab);
    disk_init(&disk, story->before);
    worlds += check_disk(&disk, story, story->where[0], 0, 0);
    for (size_t i = 0; i < spy.change_count; i++) {
        bool is_return = spy.changes[i].kind == SPY_RETURNED;
        disk_play(&disk, &spy.changes[i]);
        returned = is_return ? spy.changes[i].step : returned;
        worlds += check_disk(&disk, story, is_return ? exact_state(story, returned) : story->where[returned], returned,
                             i + 1);
    }
    FIGURE("journal: %s: %zu changes, %u disks after a power failure", story->name, spy.change_count, worlds);
    ck_assert_int_eq(returned, (int) strlen(story->steps));
}
END_TEST

SUITE(journal_power)
{
    Suite *suite = suite_create("client/journal_power");
    CASE_LOOP(suite, a_power_failure_anywhere_leaves_one_whole_entry, sizeof(stories) / sizeof(stories[0]));
    return suite;
}
