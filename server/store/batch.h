/* batch.h - what the store thread takes from the queue at once: one transaction, a result for every task, and who hears of it. Owns the lists, not the
 * tasks. The store thread's, but for its use as a queue, under the lock of the worker (worker.c). */
#ifndef NONBIS_SERVER_STORE_BATCH_H
#define NONBIS_SERVER_STORE_BATCH_H

#include "server/store/worker.h"

/* Three lists of tasks: outcomes run first. */
struct store_batch {
    struct list outcomes, claims, reads;
};

void store_batch_init(struct store_batch *batch);
size_t store_batch_count(const struct store_batch *batch);
void store_batch_splice(struct store_batch *to, struct store_batch *from); /* moves everything to the end of `to` */

/* Afterwards every task has its result. `touch`: something is to be written in any case. */
enum store_result store_batch_run(struct store *store, struct store_batch *batch, bool touch, bool *wrote);
/* Of a batch that is durable, and before its results are posted: tells of the executions that ended, then takes down who waits for those that run. */
void store_batch_settle_waiting(struct store_batch *batch, struct waited *waited, int64_t now_ms);
/* Hands every task to the loop that it came from: one wake-up per loop. The batch is empty afterwards. */
void store_batch_post(struct store_batch *batch);

#endif
