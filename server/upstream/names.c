/* names.c - see names.h.
 *
 *   names_ask -> thread: getaddrinfo -> desk (list of answers, eventfd) -> loop: names_on_answers -> waiters
 *
 *   addresses:  UNKNOWN --answer--> FRESH --a minute, or doubt--> asked for --no answer--> OLD: used at once, asked for in the background
 *                  ^                  ^                              |   |                  |  (doubt: asked for again)
 *                  |                  +---------- answer ------------+---|------------------+
 *                  +--------------------- "there is no such name", or a day passed ---------+
 *
 * A look-up that fails, or that takes too long, says nothing about the handler: the addresses that it had are tried. That there is no such
 * name is an answer, after which they may be somebody else's: a command is not sent there.
 *
 * A thread that hangs in the resolver cannot be ended, and nobody may wait for it. So what threads and loop share is a desk of its
 * own, which the last of them frees; once the loop has left it, answers are thrown away. */
#include "server/upstream/names.h"

#include "server/base/log.h"
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
    NAMES_OLD_HOURS = 24,       /* for so long after the last answer addresses are used without one */
    NAMES_OLD_MS = NAMES_OLD_HOURS * 3600 * 1000,
    NAMES_OLD_PAUSE_MS = 5 * 1000, /* and meanwhile the name is asked for no more often than that */
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
    bool is_old;   /* it is used without an answer */
    int64_t known_since_ms, known_until_ms;
    atomic_bool *failing, own_failing; /* told in the log */
    uint64_t newest;                   /* number of the youngest look-up */
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

static const char *lookup_cause(const struct lookup *lookup)
{
    return lookup->code == 0            ? "no address that could be connected to"
           : lookup->code == EAI_SYSTEM ? strerror(lookup->os_error)
                                        : gai_strerror(lookup->code);
}

static void names_tell_unknown(struct names *names, const char *cause)
{
    char why[NAMES_WHY_MAX + sizeof names->host];
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

/* --- without an answer --- */

bool names_have_old(const struct names *names)
{
    return names->is_asked && names->known != NULL && loop_now_ms(names->loop) - names->known_since_ms < NAMES_OLD_MS;
}

static void names_use_old(struct names *names, const char *why)
{
    names->is_old = true;
    if (!atomic_exchange(names->failing, true)) {
        log_message(
            LOG_WARN, "upstream",
            "the look-up of the handler's name \"%s\" failed: %s; the addresses that were found %lld s ago are used, "
            "for %d h at most, and it is asked for every %d s while there are requests",
            names->host, why, (long long) (loop_now_ms(names->loop) - names->known_since_ms) / 1000, NAMES_OLD_HOURS,
            NAMES_OLD_PAUSE_MS / 1000);
    }
}

/* An answer came: the resolver works. */
static void names_use_answer(struct names *names, const char *what)
{
    names->is_old = false;
    if (atomic_exchange(names->failing, false)) {
        log_message(LOG_WARN, "upstream", "the look-up of the handler's name \"%s\" is answered again: %s", names->host,
                    what);
    }
}

struct addresses *names_late(struct names *names, int64_t waited_ms)
{
    char why[NAMES_WHY_MAX];
    if (!names_have_old(names)) {
        return NULL;
    }
    (void) snprintf(why, sizeof why, "no answer in %lld ms", (long long) waited_ms);
    names_use_old(names, why);
    return addresses_share(names->known);
}

/* --- answers --- */

/* Else it failed, and what it was asked is as open as before. */
static bool lookup_is_answer(const struct lookup *lookup)
{
    return lookup->code == 0 || lookup->code == EAI_NONAME || lookup->code == EAI_NODATA ||
           lookup->code == EAI_ADDRFAMILY;
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
        names->known_since_ms = loop_now_ms(names->loop);
        names->known_until_ms = names->known_since_ms + NAMES_KNOWN_MS;
        names_use_answer(names, "its addresses are used");
        names_tell_known(names);
        return;
    }
    if (lookup->number != names->newest) {
        return;
    }
    const char *cause = lookup_cause(lookup);
    if (lookup_is_answer(lookup)) {
        addresses_release(names->known);
        names->known = NULL;
        names_use_answer(names, cause);
        names_tell_unknown(names, cause);
    } else if (names_have_old(names)) {
        names_use_old(names, cause);
        names_tell_known(names);
    } else {
        names_tell_unknown(names, cause);
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

struct names *names_new(struct loop *loop, const struct upstream_target *target, atomic_bool *failing,
                        struct buf *error)
{
    struct names *names = memory_new(sizeof *names);
    names->loop = loop;
    names->port = target->port;
    names->failing = failing != NULL ? failing : &names->own_failing;
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

static bool names_may_look_up(const struct names *names)
{
    bool late = loop_now_ms(names->loop) - names->newest_since_ms >= NAMES_PATIENCE_MS;
    return !names->newest_runs || (late && names->running < NAMES_THREADS_MAX);
}

struct addresses *names_known(struct names *names)
{
    int64_t now_ms = loop_now_ms(names->loop);
    if (names->known == NULL) {
        return NULL;
    }
    if (names->is_asked && now_ms >= names->known_until_ms) {
        if (!names->is_old || !names_have_old(names)) {
            return NULL;
        }
        if (now_ms - names->newest_since_ms >= NAMES_OLD_PAUSE_MS && names_may_look_up(names)) {
            names_look_up(names);
        }
    }
    return addresses_share(names->known);
}

void names_ask(struct names *names, struct name_waiter *waiter)
{
    list_append(&names->waiters, &waiter->node);
    if (names_may_look_up(names)) {
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
        names->is_old = false;
    }
}
