/* transport_curl.c - the transport by libcurl: set-up, texts, one perform from end to end. See transport.h and transport_curl.h.
 *
 * libcurl's global state is set up once and left: the program may use libcurl too, and whoever cleaned up would take it away
 * from the others. Threads: everything here but set_text may be called by several at once. */
#include "client-sdk/src/transport_curl.h"

#include "client-sdk/src/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

enum { CURL_VERSION_OLDEST = 0x075000 }; /* 7.80: the pre-request hook */

struct transport_curl {
    struct transport transport; /* first */
    char *texts[CURL_TEXTS];
    struct http_pool pool;
};

static struct transport_curl *transport_curl_of(struct transport *transport)
{
    return (struct transport_curl *) transport;
}

/* ---- performing --------------------------------------------------------------------------------------------------- */

/* FNV-1a over scheme, host and port. Two origins that collide cost a connection: libcurl looks for itself. */
static uint64_t origin_hash(const char *url)
{
    struct view authority = http_authority_of(url);
    uint64_t hash = 14695981039346656037U;
    for (const char *at = url; at < authority.ptr + authority.len; at++) {
        hash = (hash ^ (unsigned char) *at) * 1099511628211U;
    }
    return hash;
}

static void facts_begin(struct transport_facts *facts)
{
    struct answer answer = facts->answer;
    answer_clear(&answer);
    memset(facts, 0, sizeof(*facts));
    facts->answer = answer;
}

static bool transport_curl_perform(struct transport *transport, const struct transport_request *request,
                                   struct transport_facts *facts)
{
    struct transport_curl *own = transport_curl_of(transport);
    struct clock *clock = clock_system();
    int64_t began_ms = clock->monotonic_ms(clock);
    uint64_t origin = origin_hash(request->url);
    struct http_call call = { .texts = (const char *const *) own->texts, .request = request, .facts = facts };
    facts_begin(facts);
    call.session = http_pool_take(&own->pool, origin, began_ms);
    if (call.session == NULL) {
        (void) snprintf(facts->message, sizeof(facts->message), "libcurl could not be set up: out of memory");
        return false;
    }
    call.fresh = request->fresh || !http_session_may_reuse(call.session, origin, began_ms);
    call.session->kept = CURL_SOCKET_BAD;
    pipe_shield_up(&call.shield);
    bool begun = http_call_run(&call);
    pipe_shield_down(&call.shield);
    int64_t now_ms = clock->monotonic_ms(clock);
    facts->elapsed_ms = now_ms - began_ms;
    if (call.session->broken) {
        http_session_free(call.session);
        return begun;
    }
    call.session->kept_at_ms = now_ms;
    call.session->origin = origin;
    http_pool_give(&own->pool, call.session);
    return begun;
}

/* ---- texts -------------------------------------------------------------------------------------------------------- */

static bool text_has_controls(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char) *text < 0x20 || *text == 0x7F) {
            return true;
        }
    }
    return false;
}

static bool text_is_proxy(const char *text)
{
    CURLU *url = curl_url();
    bool good = url != NULL &&
                curl_url_set(url, CURLUPART_URL, text, CURLU_DEFAULT_SCHEME | CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK;
    curl_url_cleanup(url);
    return good;
}

static int text_check(enum nonbis_client_text which, const char *text)
{
    if (text_has_controls(text)) {
        return which == NONBIS_CLIENT_USER_AGENT ? NONBIS_ERROR_FIELD : NONBIS_ERROR_RANGE;
    }
    if (which == NONBIS_CLIENT_UNIX_SOCKET && strlen(text) >= sizeof(((struct sockaddr_un *) NULL)->sun_path)) {
        return NONBIS_ERROR_RANGE;
    }
    return which == NONBIS_CLIENT_PROXY && text[0] != '\0' && !text_is_proxy(text) ? NONBIS_ERROR_URL : NONBIS_OK;
}

/* "" takes a text back. */
static int transport_curl_set_text(struct transport *transport, enum nonbis_client_text which, const char *text)
{
    struct transport_curl *own = transport_curl_of(transport);
    if (text == NULL || which < NONBIS_CLIENT_CA_FILE || which > NONBIS_CLIENT_USER_AGENT) {
        return NONBIS_ERROR_MISUSE;
    }
    int error = text_check(which, text);
    if (error != NONBIS_OK) {
        return error;
    }
    char *copy = text[0] != '\0' ? strdup(text) : NULL;
    if (text[0] != '\0' && copy == NULL) {
        return NONBIS_ERROR_MEMORY;
    }
    free(own->texts[which]);
    own->texts[which] = copy;
    return NONBIS_OK;
}

/* ---- life --------------------------------------------------------------------------------------------------------- */

static void transport_curl_free(struct transport *transport)
{
    struct transport_curl *own = transport_curl_of(transport);
    http_pool_fini(&own->pool);
    for (int i = 0; i < CURL_TEXTS; i++) {
        free(own->texts[i]);
    }
    free(own);
}

static pthread_once_t libcurl_once = PTHREAD_ONCE_INIT;
static bool libcurl_is_there;

static void libcurl_set_up(void)
{
    const curl_version_info_data *version = curl_version_info(CURLVERSION_NOW);
    libcurl_is_there = version->version_num >= CURL_VERSION_OLDEST && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

struct transport *transport_curl_new(int *error)
{
    (void) pthread_once(&libcurl_once, libcurl_set_up);
    if (!libcurl_is_there) {
        *error = NONBIS_ERROR_TRANSPORT;
        return NULL;
    }
    struct transport_curl *own = calloc(1, sizeof(*own));
    if (own == NULL || !http_pool_init(&own->pool)) {
        free(own);
        *error = NONBIS_ERROR_MEMORY;
        return NULL;
    }
    own->transport = (struct transport){ .perform = transport_curl_perform,
                                         .set_text = transport_curl_set_text,
                                         .free = transport_curl_free };
    return &own->transport;
}
