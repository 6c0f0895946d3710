/* trial.h - what every run of the proof has: the oracle (a process), nonbisd in front of it, clients that write down what they ask and hear, and
 * at the end the checker over the whole history. Functions may be called from any thread, but for those that start, end, settle and check. */
#ifndef NONBIS_TESTS_PROOF_TRIAL_H
#define NONBIS_TESTS_PROOF_TRIAL_H

#include "tests/proof/history/checker.h"
#include "tests/support/daemon.h"
#include "tests/support/http_client.h"
#include "tests/support/suite.h"

#include <pthread.h>

struct trial {
    const char *name; /* of the run, in its line and in the name of its history */
    unsigned seed;
    const char *const *settings; /* more arguments of nonbisd, NULL-terminated, or NULL */
    struct daemon oracle, nonbis;
    int keeper; /* of the oracle's port */
    char store[600], ledger[600];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct history history;
    char address[64];    /* of nonbisd */
    unsigned generation; /* starts of nonbisd */
    unsigned attempts, answered;
    unsigned first_key, newest_key; /* that clients have chosen, since the history began */
    bool over;                      /* clients end */
};

/* What a client wants. */
struct intent {
    char tenant[HISTORY_WORD_MAX], key[HISTORY_KEY_MAX];
    unsigned amount;    /* the body: tenant, key and this */
    const char *act;    /* for the oracle (tests/proof/oracle/main.c); NULL: act and answer */
    const char *fields; /* more lines, or NULL */
};

int64_t trial_now_ns(void); /* the time of all events of a history: CLOCK_MONOTONIC */
void trial_open(struct trial *trial, const char *name, unsigned seed, const char *const *settings);
/* Starts nonbisd on the trial's store; `crash_at` NULL: the product itself, else build/nonbisd-crashing ("P3:7"). */
void trial_start(struct trial *trial, const char *crash_at);
void trial_kill(struct trial *trial);
/* Starts the oracle again, at the address and on the ledger that it had. */
void trial_restart_oracle(struct trial *trial);
/* An empty request to the oracle itself; false: no answer. */
bool trial_tell_oracle(const struct trial *trial, const char *method, const char *target);
void trial_end(struct trial *trial);

/* Each asks once, waits for the answer, writes both down, and copies what it heard to `told` (may be NULL). True: it is whole. */
bool trial_attempt(struct trial *trial, const struct intent *intent, struct history_event *told);
bool trial_ask(struct trial *trial, const char *tenant, const char *key, struct history_event *told);
bool trial_void(struct trial *trial, const char *tenant, const char *key, struct history_event *told);
/* As trial_attempt, but the request is sent, and the answer read, a byte at a time, so far apart. */
bool trial_attempt_slowly(struct trial *trial, const struct intent *intent, int byte_ms, struct history_event *told);
/* Many at once, a thread each; `told[i]` is for `intents[i]`. Both arrays must stay until the end. */
struct trial_crowd {
    struct trial *trial;
    const struct intent *intents;
    struct history_event *told;
    unsigned count, next;
    pthread_t *threads;
};
void trial_crowd_begin(struct trial_crowd *crowd, struct trial *trial, const struct intent *intents,
                       struct history_event *told, unsigned count);
void trial_crowd_end(struct trial_crowd *crowd);

/* An attempt whose client leaves without an answer: where in its life. */
enum trial_leave { LEAVE_IN_HEAD, LEAVE_BEFORE_LAST_BYTE, LEAVE_AT_ONCE, LEAVE_WHILE_IT_RUNS, LEAVE_IN_ANSWER, LEAVES };
/* `arrivals`: how many of the trial have then reached the handler (LEAVE_WHILE_IT_RUNS waits for it; LEAVE_IN_ANSWER for the
 * first byte of the answer). */
void trial_attempt_and_leave(struct trial *trial, const struct intent *intent, enum trial_leave leave,
                             unsigned arrivals);

/* Clients that write, repeat, ask and void without pause, by chance: from the first start on, until they are ended. They note the faults that they
 * meet: lost-answer, declined, in-progress, unknown, mismatch, voided, and what had become of a command without an answer. Rude ones also leave in
 * mid-request (left) and send a byte at a time (slow). */
struct trial_client {
    struct trial *trial;
    pthread_t thread;
    struct suite_random random;
    bool rude;
};
void trial_clients_begin(struct trial *trial, struct trial_client *clients, unsigned count, unsigned seed, bool rude);
void trial_clients_end(struct trial *trial, struct trial_client *clients, unsigned count);

/* SIGSTOP; it has stopped when this returns: a signal alone leaves its threads some time. */
void trial_stop_process(const struct daemon *daemon);
/* The fault itself: a process stands still for this long. What is watched (a connection of ours to nonbisd) stays silent. */
void trial_stand_still(const struct trial *trial, int ms);

void trial_plan(struct trial *trial, const char *fault);
void trial_met(struct trial *trial, const char *fault);
/* A client's wait until nonbisd was started more often than `generation`, or all is over (false). Returns the new one in *generation. */
bool trial_wait_start(struct trial *trial, unsigned *generation);
/* Until so many answers were whole, since the trial was opened. */
void trial_wait_answered(struct trial *trial, unsigned answered);

/* All faults are over: repeats every command (amount 1), and asks for its status. nonbisd must run. */
void trial_settle(struct trial *trial);
/* Fails the test unless every rule holds; the history stays beside the logs. Rule numbers of `report` are for the run's line. */
void trial_check(struct trial *trial, struct checker_report *report);
/* Begins a new history, and a new ledger, with keys that the last one does not have. Behind trial_check, with nothing under way. */
void trial_forget(struct trial *trial);

#endif
