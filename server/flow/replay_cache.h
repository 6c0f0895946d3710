/* replay_cache.h - answers that were replayed lately, kept in memory so that further repeats of the same command need not ask the store.
 *
 * Only what the store has told as completed and durable gets in, in the message by which it told it, on the loop that was told. Such a record is
 * never written again before the end of its time (server/core/record.h), and time is asked at every look; so nothing has to be taken out but for
 * room. Whatever may one day change a completed record earlier must send word here.
 *
 * A look decides by core/decision.h over the whole record, tenant and key compared in full: same payload, another payload, another caller come out
 * as they would from the store. Belongs to one loop; no lock. */
#ifndef NONBIS_SERVER_FLOW_REPLAY_CACHE_H
#define NONBIS_SERVER_FLOW_REPLAY_CACHE_H

#include "server/store/store.h"

struct replay_cache;

/* NULL for 0 bytes, which all functions here take. `bytes_max` counts everything but the table of buckets (64 KiB, made with the first entry). */
struct replay_cache *replay_cache_new(size_t bytes_max);
void replay_cache_free(struct replay_cache *cache);

/* True: `found` is what the store would answer at `now_ms` (store time): a replay with its response (the caller frees it), or the refusal of another
 * payload or caller. False: ask the store; `found` is as it was. */
bool replay_cache_find(struct replay_cache *cache, const struct store_claim *claim, int64_t now_ms,
                       struct store_found *found);

/* Keeps a copy of a replay that the store answered to `claim`; nothing for what is no replay, or is too large (over an eighth of bytes_max). */
void replay_cache_keep(struct replay_cache *cache, const struct store_claim *claim, const struct store_found *found);

/* Any thread, roughly. */
size_t replay_cache_bytes(const struct replay_cache *cache);

#endif
