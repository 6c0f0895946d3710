/* reserve.h - room on the disk that is kept for the outcomes of running commands (docs/contract.md 11.5): a file beside the store that takes up
 * blocks, and whose bytes nobody reads. Giving them up leaves that room to the log. One thread at a time. */
#ifndef NONBIS_SERVER_STORE_RESERVE_H
#define NONBIS_SERVER_STORE_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

struct reserve {
    char *path;    /* NULL: not open */
    int64_t bytes; /* how many it is to take up; 0: none is wanted */
    int fd;        /* -1: there is no file */
    bool held;     /* the file takes up that many, or none is wanted */
};

/* Opens the file of an earlier run, and then holds what that did; makes none, and takes no room. With 0 bytes an old one is removed. `path` is copied. */
void reserve_open(struct reserve *reserve, const char *path, int64_t bytes);
/* Takes up the room, if it does not yet. 0, or an errno: then no room is taken. EEXIST: a file lies there that no reserve has made; it is left alone. */
int reserve_hold(struct reserve *reserve);
/* Gives the room up. True: there is more room than before. */
bool reserve_give_up(struct reserve *reserve);
/* The file stays, with what it takes up: the next start needs it too. */
void reserve_close(struct reserve *reserve);

#endif
