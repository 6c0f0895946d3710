/* loop.c - see loop.h. Timers are a binary heap of our own under one libuv timer, so that their storage can be the owner's and
 * needs no asynchronous close. */
#include "server/base/loop.h"

#include "server/base/log.h"
#include "server/base/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <uv.h>

enum { LOOP_HOOKS_MAX = 8, LOOP_SIGNALS_MAX = 8 };

struct loop_hook {
    void (*before_wait)(void *context);
    void *context;
};

struct loop_signal {
    uv_signal_t handle;
    void (*arrived)(void *context, int signal_number);
    void *context;
};

struct loop {
    uv_loop_t uv;
    uv_async_t wake;
    uv_prepare_t prepare;
    uv_timer_t timer;
    bool stopped;

    pthread_mutex_t lock; /* of inbox */
    struct list inbox;    /* posted by any thread */
    struct list deferred; /* own thread */

    struct loop_timer **heap; /* from 1; earliest first */
    size_t heap_count, heap_size;
    uint64_t started; /* timers, in all */
    bool firing;

    struct loop_hook hooks[LOOP_HOOKS_MAX];
    unsigned hook_count;
    struct loop_signal signals[LOOP_SIGNALS_MAX];
    unsigned signal_count;
};

static void loop_must(int code, const char *what)
{
    if (code != 0) {
        log_message(LOG_ERROR, "loop", "%s: %s; the process ends", what, uv_strerror(code));
        abort();
    }
}

/* --- messages --- */

static void loop_deliver(struct list *messages)
{
    struct list_node *node;
    while ((node = list_take_first(messages)) != NULL) {
        struct loop_message *message = LIST_ITEM(node, struct loop_message, node);
        message->deliver(message);
    }
}

static void loop_on_wake(uv_async_t *wake)
{
    struct loop *loop = wake->data;
    struct list taken;
    list_init(&taken);
    pthread_mutex_lock(&loop->lock);
    list_splice(&taken, &loop->inbox);
    pthread_mutex_unlock(&loop->lock);
    loop_deliver(&taken);
}

static void loop_arm(struct loop *loop);

static void loop_before_wait(uv_prepare_t *prepare)
{
    struct loop *loop = prepare->data;
    do {
        loop_deliver(&loop->deferred);
        for (unsigned i = 0; i < loop->hook_count; i++) {
            loop->hooks[i].before_wait(loop->hooks[i].context);
        }
    } while (loop->deferred.count > 0);
    loop_arm(loop);
}

void loop_post(struct loop *loop, struct loop_message *message)
{
    pthread_mutex_lock(&loop->lock);
    list_append(&loop->inbox, &message->node);
    bool first = loop->inbox.count == 1;
    pthread_mutex_unlock(&loop->lock);
    if (first) {
        loop_must(uv_async_send(&loop->wake), "wake a loop");
    }
}

void loop_post_list(struct loop *loop, struct list *messages)
{
    if (messages->count == 0) {
        return;
    }
    pthread_mutex_lock(&loop->lock);
    bool first = loop->inbox.count == 0;
    list_splice(&loop->inbox, messages);
    pthread_mutex_unlock(&loop->lock);
    if (first) {
        loop_must(uv_async_send(&loop->wake), "wake a loop");
    }
}

void loop_defer(struct loop *loop, struct loop_message *message)
{
    list_append(&loop->deferred, &message->node);
}

/* --- timers --- */

static void heap_put(struct loop *loop, size_t slot, struct loop_timer *timer)
{
    loop->heap[slot] = timer;
    timer->slot = slot;
}

/* Of those that are due at the same time, the one that was started first. */
static bool timer_is_before(const struct loop_timer *timer, const struct loop_timer *other)
{
    return timer->due_ms < other->due_ms || (timer->due_ms == other->due_ms && timer->number < other->number);
}

static void heap_rise(struct loop *loop, size_t slot)
{
    struct loop_timer *timer = loop->heap[slot];
    while (slot > 1 && timer_is_before(timer, loop->heap[slot / 2])) {
        heap_put(loop, slot, loop->heap[slot / 2]);
        slot /= 2;
    }
    heap_put(loop, slot, timer);
}

static void heap_sink(struct loop *loop, size_t slot)
{
    struct loop_timer *timer = loop->heap[slot];
    for (;;) {
        size_t child = slot * 2;
        if (child > loop->heap_count) {
            break;
        }
        if (child < loop->heap_count && timer_is_before(loop->heap[child + 1], loop->heap[child])) {
            child++;
        }
        if (timer_is_before(timer, loop->heap[child])) {
            break;
        }
        heap_put(loop, slot, loop->heap[child]);
        slot = child;
    }
    heap_put(loop, slot, timer);
}

static void loop_on_timer(uv_timer_t *handle);

/* Arms libuv's one timer for the earliest of ours. An early fire is harmless: it only arms again. Not while it fires: libuv would call it again
 * within the same turn, and never look at a descriptor as long as somebody wants another turn at once (docs/facts.md 71). */
static void loop_arm(struct loop *loop)
{
    if (loop->heap_count == 0 || loop->firing) {
        return;
    }
    int64_t now_ms = (int64_t) uv_now(&loop->uv);
    int64_t due_ms = loop->heap[1]->due_ms;
    uint64_t after_ms = due_ms > now_ms ? (uint64_t) (due_ms - now_ms) : 0;
    if (uv_is_active((uv_handle_t *) &loop->timer) && uv_timer_get_due_in(&loop->timer) <= after_ms) {
        return;
    }
    loop_must(uv_timer_start(&loop->timer, loop_on_timer, after_ms, 0), "start a timer");
}

static void loop_on_timer(uv_timer_t *handle)
{
    struct loop *loop = handle->data;
    int64_t now_ms = (int64_t) uv_now(&loop->uv);
    /* What is started with 0 ms by a callback waits for the next turn. */
    uint64_t last = loop->started;
    loop->firing = true;
    while (loop->heap_count > 0 && loop->heap[1]->due_ms <= now_ms && loop->heap[1]->number <= last) {
        struct loop_timer *timer = loop->heap[1];
        loop_timer_stop(timer);
        timer->fire(timer->context);
    }
    loop->firing = false; /* loop_before_wait arms it */
}

void loop_timer_init(struct loop_timer *timer, struct loop *loop, void (*fire)(void *context), void *context)
{
    *timer = (struct loop_timer){ .loop = loop, .fire = fire, .context = context };
}

void loop_timer_start(struct loop_timer *timer, int64_t after_ms)
{
    struct loop *loop = timer->loop;
    loop_timer_stop(timer);
    timer->due_ms = (int64_t) uv_now(&loop->uv) + (after_ms > 0 ? after_ms : 0);
    timer->number = ++loop->started;
    if (loop->heap_count + 1 >= loop->heap_size) {
        loop->heap_size = loop->heap_size == 0 ? 64 : loop->heap_size * 2;
        loop->heap = memory_resize(loop->heap, loop->heap_size * sizeof(struct loop_timer *));
    }
    loop->heap[++loop->heap_count] = timer;
    timer->slot = loop->heap_count;
    heap_rise(loop, timer->slot);
    loop_arm(loop);
}

void loop_timer_stop(struct loop_timer *timer)
{
    struct loop *loop = timer->loop;
    size_t slot = timer->slot;
    if (slot == 0) {
        return;
    }
    timer->slot = 0;
    struct loop_timer *last = loop->heap[loop->heap_count--];
    if (last != timer) {
        heap_put(loop, slot, last);
        heap_rise(loop, slot);
        heap_sink(loop, last->slot);
    }
}

bool loop_timer_running(const struct loop_timer *timer)
{
    return timer->slot != 0;
}

/* --- descriptors --- */

struct loop_watch {
    uv_poll_t handle;
    int events;
    bool closed;
    void (*ready)(void *context, int events);
    void *context;
};

static void loop_on_ready(uv_poll_t *handle, int status, int events)
{
    struct loop_watch *watch = handle->data;
    if (watch->closed) {
        return;
    }
    if (status < 0) {
        int told = LOOP_READABLE | LOOP_WRITABLE | (watch->events & LOOP_HANGUP);
        watch->events = 0; /* libuv stops a handle that saw an error; the reader finds out which one */
        watch->ready(watch->context, told);
        return;
    }
    watch->ready(watch->context, ((events & UV_READABLE) != 0 ? LOOP_READABLE : 0) |
                                     ((events & UV_WRITABLE) != 0 ? LOOP_WRITABLE : 0) |
                                     ((events & UV_DISCONNECT) != 0 ? LOOP_HANGUP : 0));
}

struct loop_watch *loop_watch_new(struct loop *loop, int fd, void (*ready)(void *context, int events), void *context)
{
    struct loop_watch *watch = memory_new(sizeof *watch);
    watch->ready = ready;
    watch->context = context;
    loop_must(uv_poll_init(&loop->uv, &watch->handle, fd), "watch a descriptor");
    watch->handle.data = watch;
    return watch;
}

void loop_watch_set(struct loop_watch *watch, int events)
{
    if (events == watch->events) {
        return;
    }
    watch->events = events;
    if (events == 0) {
        (void) uv_poll_stop(&watch->handle);
        return;
    }
    int wanted = ((events & LOOP_READABLE) != 0 ? UV_READABLE : 0) | ((events & LOOP_WRITABLE) != 0 ? UV_WRITABLE : 0) |
                 ((events & LOOP_HANGUP) != 0 ? UV_DISCONNECT : 0);
    loop_must(uv_poll_start(&watch->handle, wanted, loop_on_ready), "watch a descriptor");
}

static void loop_watch_free(uv_handle_t *handle)
{
    free(handle->data);
}

void loop_watch_close(struct loop_watch *watch)
{
    watch->closed = true;
    uv_close((uv_handle_t *) &watch->handle, loop_watch_free);
}

/* --- hooks and signals --- */

void loop_on_idle(struct loop *loop, void (*before_wait)(void *context), void *context)
{
    if (loop->hook_count == LOOP_HOOKS_MAX) {
        abort();
    }
    loop->hooks[loop->hook_count++] = (struct loop_hook){ before_wait, context };
}

static void loop_on_uv_signal(uv_signal_t *handle, int signal_number)
{
    struct loop_signal *entry = handle->data;
    entry->arrived(entry->context, signal_number);
}

void loop_on_signal(struct loop *loop, int signal_number, void (*arrived)(void *context, int signal_number),
                    void *context)
{
    if (loop->signal_count == LOOP_SIGNALS_MAX) {
        abort();
    }
    struct loop_signal *entry = &loop->signals[loop->signal_count++];
    entry->arrived = arrived;
    entry->context = context;
    loop_must(uv_signal_init(&loop->uv, &entry->handle), "watch a signal");
    entry->handle.data = entry;
    loop_must(uv_signal_start(&entry->handle, loop_on_uv_signal, signal_number), "watch a signal");
}

/* --- life --- */

struct loop *loop_new(void)
{
    struct loop *loop = memory_new(sizeof *loop);
    list_init(&loop->inbox);
    list_init(&loop->deferred);
    pthread_mutex_init(&loop->lock, NULL);
    loop_must(uv_loop_init(&loop->uv), "make an event loop");
    loop_must(uv_async_init(&loop->uv, &loop->wake, loop_on_wake), "make an event loop");
    loop_must(uv_prepare_init(&loop->uv, &loop->prepare), "make an event loop");
    loop_must(uv_prepare_start(&loop->prepare, loop_before_wait), "make an event loop");
    loop_must(uv_timer_init(&loop->uv, &loop->timer), "make an event loop");
    loop->wake.data = loop->prepare.data = loop->timer.data = loop;
    return loop;
}

static void loop_close_handle(uv_handle_t *handle, void *context)
{
    (void) context;
    if (!uv_is_closing(handle)) {
        uv_close(handle, handle->type == UV_POLL ? loop_watch_free : NULL);
    }
}

void loop_free(struct loop *loop)
{
    if (loop == NULL) {
        return;
    }
    uv_walk(&loop->uv, loop_close_handle, NULL);
    (void) uv_run(&loop->uv, UV_RUN_DEFAULT);
    loop_must(uv_loop_close(&loop->uv), "close an event loop");
    pthread_mutex_destroy(&loop->lock);
    free(loop->heap);
    free(loop);
}

void loop_run(struct loop *loop)
{
    while (!loop->stopped) {
        (void) uv_run(&loop->uv, UV_RUN_DEFAULT);
    }
}

void loop_stop(struct loop *loop)
{
    loop->stopped = true;
    uv_stop(&loop->uv);
}

bool loop_run_once(struct loop *loop, bool wait)
{
    (void) uv_run(&loop->uv, wait ? UV_RUN_ONCE : UV_RUN_NOWAIT);
    return !loop->stopped;
}

int64_t loop_now_ms(struct loop *loop)
{
    return (int64_t) uv_now(&loop->uv);
}
