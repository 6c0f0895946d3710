/* transport_http_pool.c - sessions at rest. See transport_curl.h.
 *
 * A session's connection stays open until its session is used again or the pool is full: nobody runs in between, and an idle
 * socket that the server has closed costs a descriptor. */
#include "client-sdk/src/transport_curl.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

static struct http_session *session_new(void)
{
    struct http_session *session = calloc(1, sizeof(*session));
    if (session == NULL) {
        return NULL;
    }
    session->kept = CURL_SOCKET_BAD;
    session->multi = curl_multi_init();
    session->easy = curl_easy_init();
    if (session->multi == NULL || session->easy == NULL ||
        curl_multi_setopt(session->multi, CURLMOPT_MAXCONNECTS, 1L) != CURLM_OK) {
        http_session_free(session);
        return NULL;
    }
    return session;
}

void http_session_free(struct http_session *session)
{
    curl_easy_cleanup(session->easy);
    (void) curl_multi_cleanup(session->multi);
    free(session);
}

static bool session_is_young(const struct http_session *session, uint64_t origin, int64_t now_ms)
{
    return session->kept != CURL_SOCKET_BAD && session->origin == origin &&
           now_ms - session->kept_at_ms < SESSION_KEEP_MS;
}

bool http_session_may_reuse(const struct http_session *session, uint64_t origin, int64_t now_ms)
{
    if (!session_is_young(session, origin, now_ms)) {
        return false;
    }
    struct pollfd connection = { .fd = session->kept, .events = POLLIN };
    int ready;
    do {
        ready = poll(&connection, 1, 0);
    } while (ready < 0 && errno == EINTR);
    return ready == 0;
}

bool http_pool_init(struct http_pool *pool)
{
    pool->idle = NULL;
    pool->idle_count = 0;
    return pthread_mutex_init(&pool->lock, NULL) == 0;
}

void http_pool_fini(struct http_pool *pool)
{
    while (pool->idle != NULL) {
        struct http_session *session = pool->idle;
        pool->idle = session->next;
        http_session_free(session);
    }
    (void) pthread_mutex_destroy(&pool->lock);
}

struct http_session *http_pool_take(struct http_pool *pool, uint64_t origin, int64_t now_ms)
{
    pthread_mutex_lock(&pool->lock);
    struct http_session **chosen = NULL;
    for (struct http_session **at = &pool->idle; *at != NULL; at = &(*at)->next) {
        if (session_is_young(*at, origin, now_ms)) {
            chosen = at;
            break;
        }
        if ((*at)->kept == CURL_SOCKET_BAD || now_ms - (*at)->kept_at_ms >= SESSION_KEEP_MS) {
            chosen = at; /* the last such one has rested longest */
        }
    }
    struct http_session *session = NULL;
    if (chosen != NULL) {
        session = *chosen;
        *chosen = session->next;
        session->next = NULL;
        pool->idle_count--;
    }
    pthread_mutex_unlock(&pool->lock);
    return session != NULL ? session : session_new();
}

void http_pool_give(struct http_pool *pool, struct http_session *session)
{
    struct http_session *surplus = NULL;
    pthread_mutex_lock(&pool->lock);
    session->next = pool->idle;
    pool->idle = session;
    if (++pool->idle_count > POOL_IDLE_MAX) {
        struct http_session **last = &pool->idle;
        while ((*last)->next != NULL) {
            last = &(*last)->next;
        }
        surplus = *last;
        *last = NULL;
        pool->idle_count--;
    }
    pthread_mutex_unlock(&pool->lock);
    if (surplus != NULL) {
        http_session_free(surplus);
    }
}
