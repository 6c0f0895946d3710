/* bench.h - what a disk gives to the store: measured on request (`nonbisd --bench-store`), in files of its own beside the store,
 * which is not touched. Own thread; nothing else of the server runs. */
#ifndef NONBIS_SERVER_STORE_BENCH_H
#define NONBIS_SERVER_STORE_BENCH_H

#include "server/store/store.h"

/* Each measurement takes `each_ms`; there are five. `options->path` is the user's store: its folder is where the files are made, and
 * removed again, also when a signal (INT, TERM) ends it early. The text for the user goes to `out`. Returns 0, or an exit code
 * (73: no file can be made there; 74: the disk failed; 1: a signal) with the reason in `error`. */
int store_bench(const struct store_options *options, int64_t each_ms, struct buf *out, struct buf *error);

#endif
