/* lab.h - a client without a network: a clock that only moves when somebody waits, a seeded source of chance, a transport that
 * plays a script, a journal in memory. What the code under test decides, the lab only writes down. One thread, unless said. */
#ifndef NONBIS_TESTS_CLIENT_LAB_H
#define NONBIS_TESTS_CLIENT_LAB_H

#include "client-sdk/src/client.h"
#include "tests/support/suite.h"

enum { LAB_EXCHANGES_MAX = 256, LAB_STEPS_MAX = 64 };

/* What the other side does with one exchange. The zero value: hook once, answer 200, whole, at once. */
struct lab_step {
    int status;         /* 0: 200, unless code or hooks say that there is none */
    const char *fields; /* "Name: value\nName: value" */
    const char *body;
    int code, os_errno; /* CURLcode; not 0: no answer unless `status` is set too (then it is cut) */
    int hooks;          /* how often the pre-request hook ran; 0 means once, -1 never */
    int64_t takes_ms;   /* how long it would like to take; the request's timeout cuts it to code 28 */
    bool cut, by_close; /* the answer is not whole */
    bool fails;         /* perform returns false */
};

/* What was sent. */
struct lab_exchange {
    int64_t at_ms; /* on the lab's clock */
    char method[8], url[96], key[80], prefer[16], authorization[24], asked[8];
    bool question; /* below /_nonbis */
    bool fresh, sent;
    int64_t timeout_ms;
    char body[16];
};

struct lab {
    struct clock clock;
    int64_t now_ms, wall_offset_ms;
    struct random_source random;
    struct suite_random chance;
    bool random_fails;
    struct transport transport;
    struct lab_step steps[LAB_STEPS_MAX]; /* played in order; the last one again and again */
    size_t step_count, step_next;
    /* Instead of steps, when set. */
    struct lab_step (*serve)(struct lab *lab, const struct lab_exchange *exchange, void *arg);
    void *serve_arg;
    struct lab_exchange *log;
    size_t log_count, attempts, questions; /* attempts: that were sent, at the peer */
    void (*while_waiting)(struct lab *lab, int64_t until_ms, struct waker *waker);
    int64_t overshoot_ms; /* how much later than asked a wait ends */
    int64_t waits;

    struct journal journal;
    bool with_journal;
    int create_error, sent_error, ended_error;
    enum journal_state journal_state;
    unsigned created, marked_sent, ended, closed;
    bool decided;
    size_t sent_at_mark;          /* how many attempts had been sent when mark_sent was called */
    struct journal_record record; /* as of create */

    struct nonbis_client *client;
    unsigned events[8];     /* by kind */
    unsigned stop_at_event; /* kind at which the callback says stop; 0 never */
    char told[4096];        /* reasons and kinds, one line per event */
};

/* `policy` as nonbis_client_new. */
void lab_open(struct lab *lab, unsigned seed, const struct nonbis_policy *policy);
void lab_open_with_journal(struct lab *lab, unsigned seed, const struct nonbis_policy *policy);
void lab_close(struct lab *lab);

void lab_step(struct lab *lab, struct lab_step step);

/* A policy of a profile with options changed: pairs of option and value, ended by 0. */
struct nonbis_policy lab_policy(const char *profile, ...);

/* A POST of "{}" to http://peer/orders. */
struct nonbis_op *lab_post(struct lab *lab);

/* Fills facts as the transport would for a step; for tests of classify. */
void lab_facts(struct transport_facts *facts, const struct lab_step *step);

#endif
