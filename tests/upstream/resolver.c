/* resolver.c - see resolver.h. */
#include "tests/upstream/resolver.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char known[500];
static bool held;
static int failure; /* 0: none */
static unsigned asked;

typedef int resolve(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result);

static resolve *resolver_of_system(void)
{
    resolve *found = NULL;
    *(void **) &found = dlsym(RTLD_NEXT, "getaddrinfo");
    return found;
}

/* A list of the answers for each address: the C library frees lists entry by entry. */
static int resolver_answer(const char *addresses, const struct addrinfo *hints, struct addrinfo **result)
{
    char copy[sizeof known], *rest = NULL;
    struct addrinfo **end = result;
    *result = NULL;
    (void) snprintf(copy, sizeof copy, "%s", addresses);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        struct addrinfo numeric = *hints;
        numeric.ai_flags |= AI_NUMERICHOST;
        int code = resolver_of_system()(word, NULL, &numeric, end);
        if (code != 0) {
            return code;
        }
        end = &(*end)->ai_next;
    }
    return *result != NULL ? 0 : EAI_NONAME;
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
    char addresses[sizeof known];
    size_t len = node != NULL ? strlen(node) : 0;
    if (len < 5 || strcmp(node + len - 5, ".test") != 0) {
        return resolver_of_system()(node, service, hints, result);
    }
    pthread_mutex_lock(&lock);
    asked++;
    pthread_cond_broadcast(&changed);
    while (held) {
        pthread_cond_wait(&changed, &lock);
    }
    memcpy(addresses, known, sizeof addresses);
    int code = failure;
    pthread_mutex_unlock(&lock);
    return code != 0 ? code : resolver_answer(addresses, hints, result);
}

void resolver_know(const char *addresses)
{
    pthread_mutex_lock(&lock);
    (void) snprintf(known, sizeof known, "%s", addresses);
    failure = 0;
    pthread_mutex_unlock(&lock);
}

void resolver_fail(int code)
{
    pthread_mutex_lock(&lock);
    failure = code;
    pthread_mutex_unlock(&lock);
}

static void resolver_set_held(bool hold)
{
    pthread_mutex_lock(&lock);
    held = hold;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void resolver_hold(void)
{
    resolver_set_held(true);
}

void resolver_release(void)
{
    resolver_set_held(false);
}

void resolver_wait_asked(unsigned count)
{
    pthread_mutex_lock(&lock);
    while (asked < count) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

unsigned resolver_count_asked(void)
{
    pthread_mutex_lock(&lock);
    unsigned count = asked;
    pthread_mutex_unlock(&lock);
    return count;
}
