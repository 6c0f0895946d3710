/* journal_files.h - the files under a journal's directory: where they are, how they are written, moved and locked.
 *
 *     PATH/lock      one byte of it per name is locked while an entry of that name is open
 *     PATH/new, sent, done   NAME each; where it lies is its state
 *     PATH/tmp       NAME while it is written; what lies there unlocked is left over from a crash
 *
 * Locks are those of open file descriptions (fcntl F_OFD_SETLK) over the byte that a hash of the name chooses: they fall with
 * the process, hold between threads too, and since the lock file is never replaced there is no lock on a file that is gone.
 * A forked child that keeps running without exec keeps them.
 *
 * What is written: tmp/NAME, fsync, rename, fsync of the directory. A move is a rename, fsync of the target, fsync of the
 * source. A file that has its name is never changed, so readers need no lock. Should a crash on a file system without atomic
 * renames, or between two steps of replacing a decided entry, leave a name in two places, the furthest one counts (done, sent,
 * new), and who locks the name next removes the others.
 *
 * Threads: all of this may be called by several; the message is the calling thread's. */
#ifndef NONBIS_CLIENT_JOURNAL_FILES_H
#define NONBIS_CLIENT_JOURNAL_FILES_H

#include "client-sdk/src/journal.h"
#include "client-sdk/src/journal_name.h"
#include "client-sdk/src/journal_text.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The system calls, so that tests can write them down, let one fail, or end the process at one. */
struct journal_calls {
    int (*openat)(int dir, const char *name, int flags, mode_t mode);
    int (*mkdirat)(int dir, const char *name, mode_t mode);
    int (*fchmodat)(int dir, const char *name, mode_t mode, int flags);
    ssize_t (*read)(int fd, void *bytes, size_t len);
    ssize_t (*write)(int fd, const void *bytes, size_t len);
    int (*fstat)(int fd, struct stat *status);
    int (*fstatat)(int dir, const char *name, struct stat *status, int flags);
    int (*fsync)(int fd);
    int (*renameat)(int from, const char *old_name, int to, const char *new_name);
    int (*unlinkat)(int dir, const char *name, int flags);
    int (*lock)(int fd, int command, struct flock *range); /* fcntl */
    struct dirent *(*readdir)(DIR *dir);
};

extern const struct journal_calls journal_calls_system;

enum journal_place {
    JOURNAL_PLACE_NEW = JOURNAL_NEW,
    JOURNAL_PLACE_SENT = JOURNAL_SENT,
    JOURNAL_PLACE_DONE = JOURNAL_DONE,
    JOURNAL_PLACE_TMP,
    JOURNAL_PLACES
};

/* Names, sorted. */
struct journal_names {
    struct journal_found {
        char name[256];
        enum journal_place place;
    } * items;
    size_t count, cap;
};

struct journal_directory {
    struct journal journal; /* first: this is one */
    const struct journal_calls *calls;
    char *path;
    int root, places[JOURNAL_PLACES];
    int lock;       /* for questions; never holds a lock */
    dev_t lock_dev; /* which file that is */
    ino_t lock_ino;
    pthread_mutex_t mutex; /* over what follows: what open_next has seen and not yet given */
    struct journal_names ahead;
    size_t ahead_next;
    struct journal_names damaged; /* and what it could not read, told at the end */
};

/* ---- the message -------------------------------------------------------------------------------------------------- */

/* Each sets the thread's message; the result is NONBIS_ERROR_JOURNAL. */
int journal_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "cannot WHAT PATH/place/NAME: " and the text of errno. */
int journal_say_failed(const struct journal_directory *directory, const char *what, enum journal_place place,
                       const char *name);
const char *journal_said(void);

/* ---- the place (journal_place.c) ---------------------------------------------------------------------------------- */

/* Makes what is missing, checks who owns it, opens it. False: said why; journal_place_close all the same. */
bool journal_place_open(struct journal_directory *directory, const char *path);
void journal_place_close(struct journal_directory *directory);
const char *journal_place_name(enum journal_place place);

/* ---- files (journal_files.c). All results are NONBIS_OK or an error that was said. ------------------------------- */

/* NONBIS_ERROR_LOCKED when somebody has it, in any process or thread. */
int journal_lock_take(struct journal_directory *directory, const char *name, int *lock);
void journal_lock_drop(int lock);
bool journal_lock_is_taken(struct journal_directory *directory, const char *name);

/* Whole and durable in tmp. */
int journal_file_write(struct journal_directory *directory, const char *name, const struct journal_record *record);
/* Renames; not yet durable. */
int journal_file_move(struct journal_directory *directory, const char *name, enum journal_place from,
                      enum journal_place to);
int journal_file_remove(struct journal_directory *directory, const char *name, enum journal_place place);
int journal_place_sync(struct journal_directory *directory, enum journal_place place);

/* Which place a locked name is in, after removing what a crash left in the others; NONBIS_ERROR_NOT_FOUND. */
int journal_file_settle(struct journal_directory *directory, const char *name, enum journal_place *place);

/* NONBIS_ERROR_NOT_FOUND, NONBIS_ERROR_MEMORY; NONBIS_ERROR_JOURNAL also for what is damaged or newer, or has another key
 * than its name says. `*changed_wall_ms` (may be NULL) is the file's own time, set for every regular file. */
int journal_file_read(struct journal_directory *directory, const char *name, enum journal_place place,
                      struct journal_text *text, int64_t *changed_wall_ms);

/* False: out of memory. */
bool journal_names_push(struct journal_names *names, enum journal_place place, const char *name);
/* The names in a place, added. Dot files are not ours. */
int journal_names_add(struct journal_directory *directory, enum journal_place place, struct journal_names *names);
/* By name; of one in two places only the furthest is left. */
void journal_names_sort(struct journal_names *names);
void journal_names_fini(struct journal_names *names);

/* Removes what crashes have left in tmp. */
int journal_tmp_clean(struct journal_directory *directory);

/* ---- lists (journal_list.c) --------------------------------------------------------------------------------------- */

int journal_list_each(struct journal *journal, int (*callback)(const struct nonbis_journal_entry *entry, void *arg),
                      void *arg);
int journal_list_prune(struct journal *journal, int64_t wall_ms, int64_t older_than_ms, bool undecided);

/* As journal_directory_open, through other system calls. */
struct journal *journal_directory_open_with(const struct journal_calls *calls, const char *path, char *message,
                                            size_t message_size);

#endif
