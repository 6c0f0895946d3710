/* file.h - bytes in and out of descriptors, whole or not at all. */
#ifndef NONBIS_CLI_FILE_H
#define NONBIS_CLI_FILE_H

#include "common/buf.h"

#include <stdbool.h>

/* Everything, or false with errno. */
bool file_write(int fd, const void *bytes, size_t len);
/* The same to a pipe that may stand still: false with ETIMEDOUT when it takes nothing for so long, with EINTR when `is_over` says so
 * after a signal. */
bool file_write_patiently(int fd, const void *bytes, size_t len, int patience_ms, bool (*is_over)(void));

/* To its end into `out`, whose ceiling bounds it. False with errno; EFBIG when the ceiling was met. */
bool file_read(int fd, struct buf *out);
/* The same of a path. */
bool file_read_path(const char *path, struct buf *out);

/* Whether `path` could be replaced later: its folder takes new files. False with errno. */
bool file_can_replace(const char *path);
/* Makes the parts, one behind the other, the content of `path` in one step: a file beside it, made durable, then renamed over it. What is no regular
 * file (a device, a pipe) is written to as it stands. False with errno; `path` is then as it was. */
bool file_replace(const char *path, const struct view *parts, size_t count);

#endif
