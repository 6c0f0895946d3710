/* stream_client.h - a client of bodies too large to keep: it sends and checks the pattern of tests/peer/peer.h. Blocking, on the sockets of
 * http_client.h. */
#ifndef NONBIS_TESTS_STREAM_CLIENT_H
#define NONBIS_TESTS_STREAM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool stream_send_text(int fd, const char *text);
/* Bytes `from` up to `until` of the pattern. False: the other side took no more. */
bool stream_send_pattern(int fd, uint64_t from, uint64_t until);
/* Reads a head with its blank line, NUL-terminated, and nothing of what follows. Fails the test when none comes. */
void stream_read_head(int fd, char *head, size_t size);
/* Reads and checks; returns how far it got: less than `until` when the connection ended. Wrong bytes fail the test. */
uint64_t stream_read_pattern(int fd, uint64_t from, uint64_t until);

#endif
