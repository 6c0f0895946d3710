/* names.c - see names.h.
 *
 *   names_ask -> thread: getaddrinfo -> desk (list of answers, eventfd) -> loop: names_on_answers -> waiters
 *
 * A thread that hangs in the resolver cannot be ended, and nobody may wait for it. So what threads and loop share is a desk of its
 * own, which the last of them frees; once the loop has left it, answers are thrown away. */
#include "server/upstream/names.h"

#include "server/base/memory.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    NAMES_KNOWN_MS = 60 * 1000, /* the resolver does not tell how long an answer holds */
    /* A look-up that takes longer is left behind, and whoever comes next begins another: resolvers give up after some seconds, and
     * one that does not must not be the last. */
    NAMES_PATIENCE_MS = 10 * 1000,
    NAMES_THREADS_MAX = 8,
    NAMES_STACK_BYTES = 256 * 1024, /* modules of the resolver are not frugal */
    NAMES_WHY_MAX = 120,
};

/* --- what threads and loop share --- */

struct names_desk {
    pthread_mutex_t lock; /* of all here */
    struct list answers;  /* struct lookup */
    int wake;             /* eventfd: there are answers */
    unsigned users;       /* the loop, and each thread */
    bool left;            /* by the loop */
};

struct lookup {
    struct list_node node;
    struct names_desk *desk;
    uint64_t number;
    int code, os_error; /* of getaddrinfo */
    struct addrinfo *found;
    char host[];
};

static void lookup_free(struct lookup *lookup)
{
    if (lookup->found != NULL) {
        freeaddrinfo(lookup->found);
    }
    free(lookup);
}

/* Takes the lock, which is held, away. */
static void desk_leave(struct names_desk *desk)
{
    bool last = --desk->users == 0;
    pthread_mutex_unlock(&desk->lock);
    if (last) {
        (void) close(desk->wake);
        pthread_mutex_destroy(&desk->lock);
        free(desk);
    }
}

static void *lookup_run(void *context)
{
    struct lookup *lookup = context;
    struct names_desk *desk = lookup->desk;
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    lookup->code = getaddrinfo(lookup->host, NULL, &hints, &lookup->found);
    lookup->os_error = errno;
    if (lookup->code != 0) {
        lookup->found = NULL;
    }
    pthread_mutex_lock(&desk->lock);
    if (desk->left) {
        lookup_free(lookup);
    } else {
        list_append(&desk->answers, &lookup->node);
        (void) eventfd_write(desk->wake, 1);
    }
    desk_leave(desk);
    return NULL;
}

/* --- the loop's side --- */

struct names {
    struct loop *loop;
    struct names_desk *desk;
    struct loop_watch *watch;
    struct list waiters;
    struct addresses *known;
    bool is_asked; /* `known` was looked up; else it holds for good */
    int64_t known_until_ms;
    uint64_t newest; /* number of the youngest look-up */
    int64_t newest_since_ms;
    unsigned running; /* look-ups without an answer */
    bool newest_runs;
    unsigned port;
    char host[sizeof((struct upstream_target *) NULL)->host];
};

static bool lookup_start_thread(struct lookup *lookup)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    (void) sigfillset(&all);
    pthread_attr_init(&attributes);
    (void) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void) pthread_attr_setstacksize(&attributes, NAMES_STACK_BYTES);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are events of the first loop */
    int failed = pthread_create(&thread, &attributes, lookup_run, lookup);
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed != 0) { /* else the look-up is the thread's */
        lookup->code = EAI_SYSTEM;
        lookup->os_error = failed;
    }
    return failed == 0;
}

static void names_look_up(struct names *names)
{
    struct names_desk *desk = names->desk;
    size_t len = strlen(names->host);
    struct lookup *lookup = memory_new(sizeof *lookup + len + 1);
    memcpy(lookup->host, names->host, len);
    lookup->desk = desk;
    lookup->number = ++names->newest;
    names->newest_since_ms = loop_now_ms(names->loop);
    names->newest_runs = true;
    names->running++;
    pthread_mutex_lock(&desk->lock);
    desk->users++;
    pthread_mutex_unlock(&desk->lock);
    if (!lookup_start_thread(lookup)) {
        pthread_mutex_lock(&desk->lock);
        list_append(&desk->answers, &lookup->node);
        (void) eventfd_write(desk->wake, 1);
        desk_leave(desk);
    }
}

static void names_tell_known(struct names *names)
{
    struct list_node *node;
    while ((node = list_take_first(&names->waiters)) != NULL) {
        struct name_waiter *waiter = LIST_ITEM(node, struct name_waiter, node);
        waiter->known(waiter, names->known);
    }
}

static void names_tell_unknown(struct names *names, const struct lookup *lookup)
{
    char why[NAMES_WHY_MAX + sizeof names->host];
    const char *cause = lookup->code == 0            ? "no address that could be connected to"
                        : lookup->code == EAI_SYSTEM ? strerror(lookup->os_error)
                                                     : gai_strerror(lookup->code);
    (void) snprintf(why, sizeof why, "Could not resolve host: %s (%s)", names->host, cause);
    /* Those that come while these are told wait for the next look-up. */
    for (size_t left = names->waiters.count; left > 0; left--) {
        struct list_node *node = list_take_first(&names->waiters);
        if (node == NULL) {
            return;
        }
        struct name_waiter *waiter = LIST_ITEM(node, struct name_waiter, node);
        waiter->unknown(waiter, why);
    }
}

/* An answer is welcome however late it comes; that there is none counts only from the youngest look-up. */
static void names_take_answer(struct names *names, const struct lookup *lookup)
{
    names->running--;
    if (lookup->number == names->newest) {
        names->newest_runs = false;
    }
    struct addresses *addresses = addresses_of_answer(lookup->found, names->port);
    if (addresses != NULL) {
        addresses_release(names->known);
        names->known = addresses;
        names->known_until_ms = loop_now_ms(names->loop) + NAMES_KNOWN_MS;
        names_tell_known(names);
    } else if (lookup->number == names->newest) {
        names_tell_unknown(names, lookup);
    }
}

static void names_on_answers(void *context, int events)
{
    (void) events;
    struct names *names = context;
    struct list answers;
    struct list_node *node;
    eventfd_t ignored;
    list_init(&answers);
    (void) eventfd_read(names->desk->wake, &ignored);
    pthread_mutex_lock(&names->desk->lock);
    list_splice(&answers, &names->desk->answers);
    pthread_mutex_unlock(&names->desk->lock);
    while ((node = list_take_first(&answers)) != NULL) {
        struct lookup *lookup = LIST_ITEM(node, struct lookup, node);
        names_take_answer(names, lookup);
        lookup_free(lookup);
    }
}

static bool names_open_desk(struct names *names, struct buf *error)
{
    int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake < 0) {
        buf_printf(error, "a descriptor to hear of the look-up of \"%s\" cannot be had: %s", names->host,
                   strerror(errno));
        return false;
    }
    struct names_desk *desk = memory_new(sizeof *desk);
    pthread_mutex_init(&desk->lock, NULL);
    list_init(&desk->answers);
    desk->wake = wake;
    desk->users = 1;
    names->desk = desk;
    names->watch = loop_watch_new(names->loop, wake, names_on_answers, names);
    loop_watch_set(names->watch, LOOP_READABLE);
    return true;
}

struct names *names_new(struct loop *loop, const struct upstream_target *target, struct buf *error)
{
    struct names *names = memory_new(sizeof *names);
    names->loop = loop;
    names->port = target->port;
    list_init(&names->waiters);
    (void) snprintf(names->host, sizeof names->host, "%s", target->host);
    names->known = addresses_of_target(target);
    names->is_asked = names->known == NULL;
    if (names->is_asked && !names_open_desk(names, error)) {
        free(names);
        return NULL;
    }
    return names;
}

void names_free(struct names *names)
{
    struct names_desk *desk = names->desk;
    if (desk != NULL) {
        struct list_node *node;
        loop_watch_close(names->watch);
        pthread_mutex_lock(&desk->lock);
        desk->left = true;
        while ((node = list_take_first(&desk->answers)) != NULL) {
            lookup_free(LIST_ITEM(node, struct lookup, node));
        }
        desk_leave(desk);
    }
    addresses_release(names->known);
    free(names);
}

struct addresses *names_known(struct names *names)
{
    if (names->known == NULL || (names->is_asked && loop_now_ms(names->loop) >= names->known_until_ms)) {
        return NULL;
    }
    return addresses_share(names->known);
}

void names_ask(struct names *names, struct name_waiter *waiter)
{
    list_append(&names->waiters, &waiter->node);
    bool late = loop_now_ms(names->loop) - names->newest_since_ms >= NAMES_PATIENCE_MS;
    if (!names->newest_runs || (late && names->running < NAMES_THREADS_MAX)) {
        names_look_up(names);
    }
}

void names_forget(struct names *names, struct name_waiter *waiter)
{
    if (waiter->node.next != NULL) {
        list_remove(&names->waiters, &waiter->node);
    }
}

void names_doubt(struct names *names, const struct addresses *addresses)
{
    if (names->is_asked && names->known == addresses) {
        names->known_until_ms = 0;
    }
}
