/* backlog.h - how far the sweep is behind, and when that is worth a word. Pure; the owner sees to the threads. */
#ifndef NONBIS_SERVER_STORE_BACKLOG_H
#define NONBIS_SERVER_STORE_BACKLOG_H

#include <stdint.h>

struct backlog {
    int64_t due_ms;  /* store time: since when the oldest record is due that the last sweep left; 0: none */
    int64_t tell_ms; /* so far behind is worth a word; 0: nothing is behind */
};

/* After a sweep that left a record due since `due_ms` (0: none). For how long it has been due, when that is to be told; else 0. What is found after
 * a long stop is work and no news: told is what grows by a minute, and then at each doubling. */
int64_t backlog_note(struct backlog *backlog, int64_t due_ms, int64_t now_ms);
int64_t backlog_behind_ms(const struct backlog *backlog, int64_t now_ms);

#endif
