/* fault_statement.h - SQLite fails on command: the n-th statement that is run, or that is prepared. Whatever makes it fail in life (no memory, a damaged page),
 * a caller sees no more of it than a code. */
#ifndef NONBIS_TESTS_FAULT_STATEMENT_H
#define NONBIS_TESTS_FAULT_STATEMENT_H

enum fault_statement_kind {
    FAULT_RUN,    /* SQLITE_INTERRUPT; a transaction that was writing is undone by SQLite itself */
    FAULT_PREPARE /* SQLITE_AUTH */
};

/* For every connection of this process that is opened from now on. */
void fault_statement_install(void);
/* The n-th from now (1: the next) and no other. */
void fault_statement_arm(enum fault_statement_kind kind, unsigned nth);
/* Whether it failed. */
int fault_statement_disarm(void);

#endif
