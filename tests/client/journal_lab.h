/* journal_lab.h - a journal in a directory of its own, and a spy between it and the system: writes the calls down, lets the n-th
 * one fail, or ends the process there. One spy per process. */
#ifndef NONBIS_TESTS_CLIENT_JOURNAL_LAB_H
#define NONBIS_TESTS_CLIENT_JOURNAL_LAB_H

#include "client-sdk/src/journal_files.h"
#include "tests/support/suite.h"

#define JOURNAL_LAB_KEY "019245f0-0000-7000-8000-000000000001"

struct journal_lab {
    char parent[64]; /* mode 0700, removed at the end with all that is in it */
    char path[96];   /* parent/journal */
    struct journal *journal;
};

/* NULL: the system's calls. The path does not exist before the journal is opened. */
void journal_lab_open(struct journal_lab *lab, const struct journal_calls *calls);
void journal_lab_reopen(struct journal_lab *lab, const struct journal_calls *calls);
void journal_lab_close(struct journal_lab *lab);
void journal_lab_parent(struct journal_lab *lab); /* only the parent, and the path's text */
void journal_lab_remove(const char *path);        /* a tree */

/* A record with everything in it; the body holds a NUL and a line feed. Its fields are static. */
struct journal_record journal_lab_record(const char *key);
/* The same, ended as COMPLETED with 201. */
struct journal_record journal_lab_ended(const char *key);
/* Fails the test unless it is the one or the other, byte for byte. */
void journal_lab_check(const struct journal_record *record, const char *key, bool ended);

/* Made and left in a state. */
void journal_lab_put(struct journal_lab *lab, const char *key, enum journal_state state);
/* With times of its own; ended when `ended_wall_ms` is not 0, as COMPLETED in done and as UNKNOWN elsewhere. */
void journal_lab_put_at(struct journal_lab *lab, const char *key, int64_t created_wall_ms, enum journal_state state,
                        int64_t ended_wall_ms);

/* "new", "sent", "done", "" for none, "new+sent" for a name in two. Looks at the files only. */
const char *journal_lab_where(const struct journal_lab *lab, const char *name);
/* Files in a place. */
unsigned journal_lab_count(const struct journal_lab *lab, const char *place);
void journal_lab_write_file(const struct journal_lab *lab, const char *place, const char *name, const void *bytes,
                            size_t len);
bool journal_lab_has_file(const struct journal_lab *lab, const char *place, const char *name);

/* ---- the spy ------------------------------------------------------------------------------------------------------ */

enum spy_kind { SPY_CREATE, SPY_SYNC_FILE, SPY_SYNC_PLACE, SPY_RENAME, SPY_UNLINK, SPY_RETURNED };

/* What a power failure is about. */
struct spy_change {
    enum spy_kind kind;
    enum journal_place from, to; /* SYNC_PLACE, CREATE, UNLINK: `to` */
    int step;                    /* RETURNED: what the test says has returned */
};

struct spy {
    unsigned calls;   /* so far */
    unsigned fail_at; /* that call fails with `error`; 0 none */
    bool fail_on;     /* and all that follow */
    int error;
    unsigned die_at;    /* the process ends instead of that call */
    unsigned meddle_at; /* before that call somebody else does something */
    void (*meddle)(void *arg);
    void *meddle_arg;
    char log[16384]; /* "rename tmp/K new/K; fsync new; " - what changes something; K is any name */
    struct spy_change changes[256];
    size_t change_count;
    char labels[1024][16]; /* of descriptors */
};

extern struct spy spy;
extern const struct journal_calls spy_calls;
enum { SPY_DIED = 77 };

void spy_reset(void);
void spy_returned(int step);

#endif
