/* transport_probe.c - see transport_probe.h. */
#include "tests/client/transport_probe.h"

#include "client-sdk/src/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

/* ---- names -------------------------------------------------------------------------------------------------------- */

static pthread_mutex_t resolver_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t resolver_changed = PTHREAD_COND_INITIALIZER;
static bool resolver_asked;
static unsigned resolver_releases, resolver_lookups;

/* The library's threads find this one before the C library's. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
    if (node != NULL && strcmp(node, "missing.test") == 0) {
        return EAI_NONAME;
    }
    if (node != NULL && strcmp(node, "slow.test") == 0) {
        pthread_mutex_lock(&resolver_lock);
        resolver_asked = true;
        pthread_cond_broadcast(&resolver_changed);
        for (unsigned seen = resolver_releases; seen == resolver_releases;) {
            pthread_cond_wait(&resolver_changed, &resolver_lock);
        }
        pthread_mutex_unlock(&resolver_lock);
        return EAI_NONAME;
    }
    if (node != NULL && strcmp(node, "here.test") == 0) {
        pthread_mutex_lock(&resolver_lock);
        resolver_lookups++;
        pthread_mutex_unlock(&resolver_lock);
        node = "127.0.0.1";
    }
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = NULL;
    *(void **) &real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(node, service, hints, result);
}

void probe_resolver_wait_asked(void)
{
    pthread_mutex_lock(&resolver_lock);
    while (!resolver_asked) {
        pthread_cond_wait(&resolver_changed, &resolver_lock);
    }
    resolver_asked = false;
    pthread_mutex_unlock(&resolver_lock);
}

void probe_resolver_release(void)
{
    pthread_mutex_lock(&resolver_lock);
    resolver_releases++;
    pthread_cond_broadcast(&resolver_changed);
    pthread_mutex_unlock(&resolver_lock);
}

unsigned probe_resolver_lookups(void)
{
    pthread_mutex_lock(&resolver_lock);
    unsigned lookups = resolver_lookups;
    pthread_mutex_unlock(&resolver_lock);
    return lookups;
}

/* ---- connecting --------------------------------------------------------------------------------------------------- */

static void (*after_connect)(void *arg);
static void *after_connect_arg;
static atomic_int connected_fd = -1;

/* Under the C library's name; its own declaration takes a union that ISO C does not know. */
int probe_connect(int fd, const struct sockaddr *address, socklen_t len) __asm__("connect");

int probe_connect(int fd, const struct sockaddr *address, socklen_t len)
{
    int (*real)(int, const struct sockaddr *, socklen_t) = NULL;
    *(void **) &real = dlsym(RTLD_NEXT, "connect");
    int result = real(fd, address, len);
    int saved = errno;
    connected_fd = fd;
    if (after_connect != NULL) {
        after_connect(after_connect_arg);
    }
    errno = saved;
    return result;
}

void probe_after_connect(void (*callback)(void *arg), void *arg)
{
    after_connect_arg = arg;
    after_connect = callback;
}

int probe_connected_fd(void)
{
    return connected_fd;
}

/* ---- the probe ---------------------------------------------------------------------------------------------------- */

static int on_before_send(void *arg)
{
    struct probe *probe = arg;
    probe->asked++;
    return probe->says;
}

static void probe_begin(struct probe *probe)
{
    int error = 0;
    pthread_mutex_lock(&resolver_lock);
    resolver_asked = false;
    resolver_lookups = 0;
    pthread_mutex_unlock(&resolver_lock);
    probe->transport = transport_curl_new(&error);
    ck_assert_ptr_nonnull(probe->transport);
    ck_assert_int_eq(probe->transport->set_text(probe->transport, NONBIS_CLIENT_USER_AGENT, "probe"), NONBIS_OK);
    ck_assert(waker_init(&probe->waker));
    transport_facts_init(&probe->facts, PROBE_BODY_MAX);
    probe->request = (struct transport_request){ .method = "POST",
                                                 .url = probe->url,
                                                 .fields = probe->fields,
                                                 .body = "{}",
                                                 .body_len = 2,
                                                 .has_body = true,
                                                 .timeout_ms = PROBE_PATIENCE_MS,
                                                 .connect_timeout_ms = PROBE_PATIENCE_MS,
                                                 .before_send = on_before_send,
                                                 .before_send_arg = probe,
                                                 .waker = &probe->waker };
    probe_field(probe, "Idempotency-Key", "k-1");
}

void probe_open(struct probe *probe)
{
    memset(probe, 0, sizeof *probe);
    probe->peer = peer_new();
    (void) snprintf(probe->url, sizeof probe->url, "%s/orders", peer_url(probe->peer));
    probe_begin(probe);
}

void probe_open_unix(struct probe *probe, const char *path)
{
    memset(probe, 0, sizeof *probe);
    probe->peer = peer_new_unix(path);
    (void) snprintf(probe->url, sizeof probe->url, "http://orders.test/orders");
    probe_begin(probe);
    ck_assert_int_eq(probe->transport->set_text(probe->transport, NONBIS_CLIENT_UNIX_SOCKET, path), NONBIS_OK);
}

void probe_close(struct probe *probe)
{
    probe_after_connect(NULL, NULL);
    probe->transport->free(probe->transport);
    transport_facts_fini(&probe->facts);
    waker_fini(&probe->waker);
    peer_free(probe->peer);
}

void probe_aim(struct probe *probe, const char *url)
{
    (void) snprintf(probe->url, sizeof probe->url, "%s", url);
}

void probe_field(struct probe *probe, const char *name, const char *value)
{
    ck_assert_uint_lt(probe->request.field_count, sizeof probe->fields / sizeof probe->fields[0]);
    probe->fields[probe->request.field_count++] = (struct transport_field){ name, value };
}

static int64_t stopped_ms(struct clock *clock)
{
    (void) clock;
    return 5000;
}

/* In this process, which is this test's alone. */
void probe_stop_clock(void)
{
    clock_system()->monotonic_ms = stopped_ms;
}

void probe_send(struct probe *probe)
{
    bool begun = probe->transport->perform(probe->transport, &probe->request, &probe->facts);
    ck_assert_msg(begun, "not begun: %s", probe->facts.message);
}

char *probe_received(struct probe *probe, unsigned n)
{
    struct buf request;
    size_t len = 0;
    buf_init(&request, 1 << 24);
    ck_assert_msg(peer_request(probe->peer, n, &request), "the peer has no request %u", n);
    buf_append_bytes(&request, "", 1);
    ck_assert(!request.failed);
    return buf_take(&request, &len);
}

int64_t probe_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
