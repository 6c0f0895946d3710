/* store_refusal.h - a store that must not open, and what it says of that. */
#ifndef NONBIS_TESTS_STORE_REFUSAL_H
#define NONBIS_TESTS_STORE_REFUSAL_H

#include "tests/store/store_fixture.h"

static char refusal[4096];

static inline void refused(const struct store_options *options, int exit_code)
{
    struct buf error;
    int code = -1;
    buf_init(&error, sizeof refusal - 1);
    struct store *store = store_open_sqlite(options, &error, &code);
    (void) snprintf(refusal, sizeof refusal, "%.*s", VIEW_ARGS(buf_view(&error)));
    buf_fini(&error);
    ck_assert_ptr_null(store);
    ck_assert_msg(code == exit_code, "exit code %d: %s", code, refusal);
    ck_assert_msg(strstr(refusal, options->path) != NULL, "the store is not named: %s", refusal);
}

/* The newest refusal. */
static inline void says(const char *words)
{
    ck_assert_msg(strstr(refusal, words) != NULL, "\"%s\" is not in: %s", words, refusal);
}

#endif
