/* curl_library.c - see curl_library.h. Nothing is unloaded: the library stays for as long as the process. */
#include "server/upstream/curl_library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* The soname: the interface, of whatever version. */
#define CURL_LIBRARY_NAME "libcurl.so.4"

enum { CURL_VERSION_MIN = 0x075700 }; /* 7.87.0: QUICK_EXIT, PROTOCOLS_STR (connection_tls.c) */

#define FUNCTION(name)                                                                                                 \
    {                                                                                                                  \
        "curl_" #name, offsetof(struct curl_library, name)                                                             \
    }

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
    FUNCTION(global_init),      FUNCTION(version_info),        FUNCTION(easy_init),           FUNCTION(easy_setopt),
    FUNCTION(easy_getinfo),     FUNCTION(easy_strerror),       FUNCTION(easy_send),           FUNCTION(easy_recv),
    FUNCTION(easy_cleanup),     FUNCTION(multi_init),          FUNCTION(multi_setopt),        FUNCTION(multi_assign),
    FUNCTION(multi_add_handle), FUNCTION(multi_remove_handle), FUNCTION(multi_socket_action), FUNCTION(multi_info_read),
    FUNCTION(multi_cleanup),
};

static const struct curl_library *curl_library_refuse(struct buf *error, const char *why)
{
    buf_printf(error,
               "\"https://\" needs libcurl, which cannot be used: %s; install it (Debian and Ubuntu: the package "
               "libcurl4), or name the handler by http:// or unix:",
               why);
    return NULL;
}

/* NULL, or what is wrong. */
static const char *curl_library_fill(struct curl_library *library, void *handle)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *function = dlsym(handle, functions[i].name);
        if (function == NULL) {
            return dlerror();
        }
        memcpy((char *) library + functions[i].offset, &function, sizeof function);
    }
    const curl_version_info_data *version = library->version_info(CURLVERSION_NOW);
    if (version->version_num < CURL_VERSION_MIN) {
        return "it is older than 7.87.0";
    }
    if ((version->features & CURL_VERSION_SSL) == 0) {
        return "it was built without TLS";
    }
    library->ssl_get_shutdown = NULL;
    if (version->ssl_version != NULL && view_starts_with(view_of(version->ssl_version), VIEW("OpenSSL/"))) {
        *(void **) &library->ssl_get_shutdown = dlsym(handle, "SSL_get_shutdown");
    }
    return library->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? NULL : "it does not start";
}

const struct curl_library *curl_library_load(const char *name, struct buf *error)
{
    static struct curl_library loaded;
    static void *loaded_handle;
    void *handle = dlopen(name != NULL ? name : CURL_LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        return curl_library_refuse(error, dlerror());
    }
    if (handle == loaded_handle) {
        return &loaded;
    }
    struct curl_library library;
    const char *wrong = curl_library_fill(&library, handle);
    if (wrong != NULL) {
        return curl_library_refuse(error, wrong);
    }
    loaded = library;
    loaded_handle = handle;
    return &loaded;
}
