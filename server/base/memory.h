/* memory.h - allocation for the server: succeeds or ends the process.
 *
 * Running out of memory is treated as the crash that it nearly is: a message, abort(), and recovery at the next
 * start, where every running command becomes unknown. That path is tested anyway (kill -9); hundreds of half-done
 * refusals would not be. Any thread. */
#ifndef NONBIS_SERVER_BASE_MEMORY_H
#define NONBIS_SERVER_BASE_MEMORY_H

#include "common/view.h"

void *memory_new(size_t bytes);               /* zeroed */
void *memory_bytes(size_t bytes);             /* not zeroed */
void *memory_resize(void *old, size_t bytes); /* new bytes not zeroed */
void *memory_copy(const void *bytes, size_t len);
char *memory_text(struct view text); /* NUL-terminated copy */

/* The end, with that message: also of what has memory of its own (common/buf.h). */
void memory_end(size_t bytes) __attribute__((noreturn));

#endif
