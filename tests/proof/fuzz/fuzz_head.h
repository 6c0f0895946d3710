/* fuzz_head.h - a request head out of an input, for the targets that want one: lines, "METHOD TARGET VERSION" and then "Name: value".
 * One thread. */
#ifndef NONBIS_TESTS_PROOF_FUZZ_HEAD_H
#define NONBIS_TESTS_PROOF_FUZZ_HEAD_H

#include "server/http/guard.h"

enum { FUZZ_FIELDS_MAX = 130 };

/* Sets method, target, version and headers to views into `text`, valid until the next call. Once the lines are cut, every byte 0x1E in it
 * becomes a line feed, so that names and values may hold any byte. */
void fuzz_head_cut(struct guard_head *head, char *text, size_t len);

#endif
