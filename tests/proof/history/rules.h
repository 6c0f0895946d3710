/* rules.h - between checker.c, which sorts, and rules.c, which judges one command at a time. */
#ifndef NONBIS_TESTS_PROOF_RULES_H
#define NONBIS_TESTS_PROOF_RULES_H

#include "tests/proof/history/checker.h"

/* What an event tells of its command, in the order in which a command moves; released and running alternate. */
enum standing {
    STANDING_NOTHING,
    STANDING_ABSENT,
    STANDING_RELEASED,
    STANDING_RUNNING,
    STANDING_UNKNOWN,
    STANDING_COMPLETED,
    STANDING_VOIDED
};
enum standing standing_of(const struct history_event *event);

struct index {
    const struct history_event **items; /* sorted */
    size_t count;
};

/* All that there is to know of one command: its events by the time at which they began, and what several rules ask. */
struct command {
    const struct history_event *const *events, *const *by_end;
    size_t count;
    int64_t first_arrival, first_run; /* HISTORY_NEVER: none; a run is an arrival that was not declined */
    int64_t first_asked;              /* attempt or void */
    int64_t quiet, settled;
    const struct index *executions, *attempts, *arrivals; /* of the whole history: by execution, by `no`, by `no` */
};

void rules_check_command(const struct command *command, struct checker_report *report);
void rule_broken(struct checker_report *report, int rule, const struct history_event *event, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

const struct history_event *index_find_execution(const struct index *index, const char *execution);
/* The first with that number; the others stand behind it. */
size_t index_find_no(const struct index *index, unsigned no);

#endif
