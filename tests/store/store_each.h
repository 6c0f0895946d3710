/* store_each.h - a store of each implementation, for tests whose loop index is the implementation. One store at a time. For tests/store; header only, since
 * the clock of store_fixture.h is. */
#ifndef NONBIS_TESTS_STORE_EACH_H
#define NONBIS_TESTS_STORE_EACH_H

#include "tests/store/store_fixture.h"

enum { SQLITE, MEMORY, IMPLEMENTATIONS };

static char directory[64], path[80];

static inline struct store *open_store(int implementation)
{
    if (implementation == MEMORY) {
        struct store_options options = fixture_options("memory");
        return store_open_memory(&options);
    }
    fixture_directory(directory);
    (void) snprintf(path, sizeof path, "%s/store.db", directory);
    struct store_options options = fixture_options(path);
    return fixture_open(&options);
}

static inline void close_store(struct store *store)
{
    store_close(store);
    if (directory[0] != '\0') {
        fixture_remove(directory);
    }
}

#endif
