/* journal.h - what outlives the process: one entry per command. The seam between run.c and the journal's files.
 *
 * A command's state is the directory that its entry lies in:
 *
 *     new/KEY    written durably (file, then directory) before anything is sent: not sent
 *     sent/KEY   moved there durably inside the pre-request hook, before the first byte: perhaps sent
 *     done/KEY   decided: outcome is final, or nothing was sent and the caller was told so
 *
 * A crash between any two steps leaves the entry in one of them, whole. An entry is worked on by one operation at a time, in
 * all processes: who has it open holds its lock, and the lock falls with the process. Files are 0600, directories 0700.
 * Fields that carry secrets are never written. What cannot be written is answered false, and then nothing is sent.
 *
 * Threads: a journal may be used by several; an entry belongs to one. */
#ifndef NONBIS_CLIENT_JOURNAL_H
#define NONBIS_CLIENT_JOURNAL_H

#include "client-sdk/include/nonbis.h"
#include "client-sdk/src/transport.h"

enum journal_state { JOURNAL_NEW, JOURNAL_SENT, JOURNAL_DONE };

/* What is stored. Texts are borrowed when writing, and owned by the entry when read. */
struct journal_record {
    const char *key, *method, *url, *status_url /* "" : origin of url */, *name;
    const struct transport_field *fields; /* only those that may be stored */
    size_t field_count;
    const char *const *unstored; /* the names of the others: what must be set again before it is the same request */
    size_t unstored_count;
    const void *body;
    size_t body_len;
    bool has_body;
    bool own_key;
    int64_t created_wall_ms; /* no later than the first sending: the age of the key is counted from here */
    /* of the last run that ended; 0 when none did */
    enum nonbis_outcome outcome;
    enum nonbis_stop stop;
    int http_status;
    int64_t ended_wall_ms;
};

struct journal_entry; /* an open, locked entry */

struct journal {
    /* NONBIS_OK, NONBIS_ERROR_EXISTS (in new or sent, or in done and completed: open it instead), NONBIS_ERROR_LOCKED,
     * NONBIS_ERROR_JOURNAL. Another entry of that key in done is replaced: it was not executed. Durable on return. */
    int (*create)(struct journal *journal, const struct journal_record *record, struct journal_entry **entry);
    /* Moves to sent; durable on return. Already there: NONBIS_OK at once. Called inside the pre-request hook. */
    int (*mark_sent)(struct journal *journal, struct journal_entry *entry);
    /* Keeps how a run ended. `decided`: moves to done, else it stays where it is. */
    int (*mark_ended)(struct journal *journal, struct journal_entry *entry, const struct journal_record *record,
                      bool decided);
    /* Opens and locks the entry of a key. `*record` belongs to the entry. NONBIS_ERROR_NOT_FOUND, _LOCKED, _JOURNAL. */
    int (*open)(struct journal *journal, const char *key, struct journal_entry **entry,
                const struct journal_record **record, enum journal_state *state);
    /* The next undecided, unlocked entry behind the key `*after` in the order of their names ("" at first), which is that
     * of their times for our keys. NONBIS_END when there is none. `after` has room for NONBIS_JOURNAL_NAME bytes. */
    int (*open_next)(struct journal *journal, char *after, struct journal_entry **entry,
                     const struct journal_record **record, enum journal_state *state);
    void (*close)(struct journal *journal, struct journal_entry *entry); /* unlocks and frees */

    /* As nonbis_journal_each and nonbis_journal_prune. */
    int (*each)(struct journal *journal, int (*callback)(const struct nonbis_journal_entry *entry, void *arg),
                void *arg);
    int (*prune)(struct journal *journal, int64_t wall_ms, int64_t older_than_ms, bool undecided);
    const char *(*message)(struct journal *journal); /* about the last error: what, which path, why */
    void (*free)(struct journal *journal);
};

enum { NONBIS_JOURNAL_NAME = 1024 };

/* A directory (NULL: the default place). NULL when it cannot be used; `message` then tells why. */
struct journal *journal_directory_open(const char *path, char *message, size_t message_size);

#endif
