/* key_index.h - which row holds a key: a table in memory over the rows of the SQLite store, instead of a UNIQUE index on random bytes, which
 * costs a page of the log for every claim (docs/facts.md 21b). Built at start by one scan; 15 to 19 bytes a key from a million keys on. Owns
 * its memory; knows no SQLite. One thread at a time.
 *
 * A hit is a candidate: only 60 bits of the hash are kept, so the reader compares the row (hash, tenant, key). What a transaction changed here
 * is undone with it. It never stands still to grow: each of its 256 parts grows alone, by a quarter. */
#ifndef NONBIS_SERVER_STORE_KEY_INDEX_H
#define NONBIS_SERVER_STORE_KEY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct key_index;

enum { KEY_INDEX_HASH_BYTES = 16 };

/* A row is from 1 to this: 44 bits, which is a thousand commands a second for 557 years. */
#define KEY_INDEX_ROW_MAX ((INT64_C(1) << 44) - 1)

struct key_index *key_index_new(void);
void key_index_free(struct key_index *index);
size_t key_index_count(const struct key_index *index);
/* All that it holds on to, but for what one transaction changed. */
size_t key_index_bytes(const struct key_index *index);

/* The same row is added once only. */
void key_index_add(struct key_index *index, const uint8_t hash[KEY_INDEX_HASH_BYTES], int64_t row);
/* False when it is not there. */
bool key_index_remove(struct key_index *index, const uint8_t hash[KEY_INDEX_HASH_BYTES], int64_t row);

/* The next candidate, or 0. Start with *cursor = 0; nothing may be added or removed between two calls. */
int64_t key_index_next(const struct key_index *index, const uint8_t hash[KEY_INDEX_HASH_BYTES], size_t *cursor);

/* A walk over everything: true as soon as `same` says so of two rows whose hashes agree in what is kept of them. */
bool key_index_any_twins(const struct key_index *index, bool (*same)(void *context, int64_t a, int64_t b),
                         void *context);

void key_index_settle(struct key_index *index); /* committed, or begun: what was changed stays */
void key_index_undo(struct key_index *index);   /* back to what it was at the last settle */

/* For tests: how many slots a look-up of this hash reads. */
size_t key_index_probes(const struct key_index *index, const uint8_t hash[KEY_INDEX_HASH_BYTES]);

/* Many rows at once, as a start has them: parts are filled one after the other, so that the memory of one is at hand. What was given is in the index
 * after key_index_load_end, which frees the load; no transaction knows of it, and nothing else may be done to the index meanwhile. */
struct key_index_load;
struct key_index_load *key_index_load_begin(struct key_index *index);
void key_index_load_add(struct key_index_load *load, const uint8_t hash[KEY_INDEX_HASH_BYTES], int64_t row);
void key_index_load_end(struct key_index_load *load);

#endif
