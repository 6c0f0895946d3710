/* key.h - why a text can be no key. */
#ifndef NONBIS_CLI_KEY_H
#define NONBIS_CLI_KEY_H

/* A sentence; NULL: it can be one. */
const char *key_why_not(const char *text);

#endif
