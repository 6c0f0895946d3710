/* loop.h - one event loop per thread: descriptors, timers, messages from other threads, signals. loop.c is the only user of libuv.
 *
 * Everything here belongs to the thread that runs the loop, except loop_post and loop_post_list. */
#ifndef NONBIS_SERVER_BASE_LOOP_H
#define NONBIS_SERVER_BASE_LOOP_H

#include "common/list.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;

struct loop *loop_new(void);       /* ends the process when the system has no descriptors left */
void loop_free(struct loop *loop); /* all watches and timers must be closed; closes what libuv still holds */
void loop_run(struct loop *loop);  /* until loop_stop */
void loop_stop(struct loop *loop);
bool loop_run_once(struct loop *loop, bool wait); /* for tests: one turn; false once loop_stop was called */
int64_t loop_now_ms(struct loop *loop);           /* monotonic, as of this turn */

/* --- timers: storage of the owner. A stopped timer needs no closing; call loop_timer_fini before the storage goes away. --- */
struct loop_timer { /* private */
    struct loop *loop;
    void (*fire)(void *context);
    void *context;
    int64_t due_ms;
    size_t slot;     /* place in the heap, from 1; 0: not running */
    uint64_t number; /* of its start */
};
void loop_timer_init(struct loop_timer *timer, struct loop *loop, void (*fire)(void *context), void *context);
/* One shot; again: moves it. With 0 ms from the callback of a timer: in the next turn, behind a look at the descriptors. */
void loop_timer_start(struct loop_timer *timer, int64_t after_ms);
void loop_timer_stop(struct loop_timer *timer);
bool loop_timer_running(const struct loop_timer *timer);

/* --- descriptors. Closing is asynchronous in libuv, so a watch is allocated here and freed by loop_watch_close; no callback comes
 * after close. The descriptor itself stays the caller's, who closes it only after loop_watch_close returned. --- */
enum {
    LOOP_READABLE = 1,
    LOOP_WRITABLE = 2,
    LOOP_HANGUP = 4 /* the peer has closed its sending side, whatever lies unread before that (docs/facts.md 59) */
};
struct loop_watch;
struct loop_watch *loop_watch_new(struct loop *loop, int fd, void (*ready)(void *context, int events), void *context);
/* 0: pause. Cheap when nothing changes. What lasts is reported in every turn. An error condition is reported as readable and writable, and as hung up
 * when that was asked for; then the watch pauses. */
void loop_watch_set(struct loop_watch *watch, int events);
void loop_watch_close(struct loop_watch *watch);

/* --- messages. The node lives in the thing that is posted; `deliver` runs on the loop's thread. --- */
struct loop_message {
    struct list_node node;
    void (*deliver)(struct loop_message *message);
};
void loop_post(struct loop *loop, struct loop_message *message); /* any thread */
void loop_post_list(struct loop *loop,
                    struct list *messages); /* any thread; one wake-up for all; the list is empty afterwards */
void loop_defer(struct loop *loop,
                struct loop_message *message); /* own thread: delivered later in this turn, before the loop waits */

/* --- work before the loop waits (libmicrohttpd must run again after a resume). --- */
void loop_on_idle(struct loop *loop, void (*before_wait)(void *context),
                  void *context); /* several may be added; for life */

/* --- signals, as events of this loop. --- */
void loop_on_signal(struct loop *loop, int signal_number, void (*arrived)(void *context, int signal_number),
                    void *context);

#endif
