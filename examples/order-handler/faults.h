/* faults.h - what a handler does wrong on purpose: slow answers, lost answers, error answers.
 *
 * The same words serve the command line (for every order) and the request fields X-Latency and X-Fail (for one). */
#ifndef ORDER_HANDLER_FAULTS_H
#define ORDER_HANDLER_FAULTS_H

#include "common/view.h"

enum { FAULTS_LATENCY_MS_MAX = 600000 };

enum fault_kind {
    FAULT_NONE,
    FAULT_STATUS,       /* answers that status and does not act */
    FAULT_CLOSE_BEFORE, /* closes the connection and does not act */
    FAULT_CLOSE_AFTER,  /* acts, then closes the connection without an answer */
    FAULT_HANG          /* acts, then never answers */
};

struct fault {
    enum fault_kind kind;
    unsigned status; /* for FAULT_STATUS */
};

struct faults {
    unsigned latency_before_ms, latency_after_ms;
    struct fault fault;
    unsigned rate_percent; /* how many orders meet the fault */
};

/* "503", "status=503", "close-before", "close-after", "hang". False for anything else. */
bool fault_read(struct view text, struct fault *fault);

/* Decides by chance whether this order meets the fault. */
bool faults_strike(const struct faults *faults);

void faults_wait(unsigned ms);

#endif
