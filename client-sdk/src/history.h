/* history.h - what is known about one command in one run: the memory that the planner decides upon.
 *
 * `standing` is the sum of all findings, and is changed in one place (history.c, a full table of standing by finding):
 *
 *     unsent --> not_applied, ambiguous, running, unknown, completed, rejected, voided      and nothing leads back to unsent
 *     ambiguous --> something else only by a definite later word about the command itself
 *
 * Owns nothing. Pure: time comes in. One thread, that of the operation. */
#ifndef NONBIS_CLIENT_HISTORY_H
#define NONBIS_CLIENT_HISTORY_H

#include "client-sdk/src/classify.h"

enum standing {
    STANDING_UNSENT,      /* no byte of any attempt left */
    STANDING_NOT_APPLIED, /* all that was sent is proved or declared not to have taken effect */
    STANDING_AMBIGUOUS,   /* at least one attempt may have been executed, or is under way */
    STANDING_RUNNING,     /* the server executes it */
    STANDING_UNKNOWN,     /* the server itself does not know */
    STANDING_COMPLETED,
    STANDING_REJECTED, /* the deduplicating layer will not have it */
    STANDING_VOIDED,   /* never */
    STANDING_COUNT
};

enum goal {
    GOAL_RUN,  /* send until decided */
    GOAL_WAIT, /* only ask until decided */
    GOAL_VOID  /* make it never, or learn that it is too late */
};

enum safety {
    SAFETY_KEYED,
    SAFETY_REPEATABLE, /* GET, HEAD, OPTIONS, PUT, DELETE without a key */
    SAFETY_UNKEYED     /* exactly one attempt */
};

/* What was learned about the server on this route; kept by method and endpoint from one operation of a client to the next. */
enum evidence {
    EVIDENCE_NONE,
    EVIDENCE_CONTRACT, /* it has shown that it keeps docs/contract.md */
    EVIDENCE_IGNORES   /* it said that the key has no effect on this route */
};

struct history {
    /* set by history_begin */
    enum goal goal;
    int64_t started_ms, deadline_ms; /* monotonic */

    /* of the operation, kept over runs */
    enum safety safety;
    bool has_body;            /* the request can be made (again) */
    bool own_key;             /* made by us: nobody else can have used it */
    bool credentials_changed; /* since the first sending, or not known (resumed) */
    enum standing standing;
    bool answered; /* the final answer is in hand */
    bool promised; /* the policy says that the server keeps the contract (NONBIS_SERVER_NONBIS) */
    enum evidence evidence;
    bool no_status_resource;
    int64_t first_sent_wall_ms; /* 0: never sent. Resumed: when the journal wrote it, which is no later */
    bool proved; /* its final answer was in hand once, as the journal tells: whatever is told now, it was executed */

    /* of this run */
    bool in_window;     /* the server's own window_start covers the first sending: `retention` does not matter then */
    unsigned attempts;  /* that count */
    unsigned tries;     /* with those that do not: offline */
    unsigned exchanges; /* attempts of any kind, for the operation's numbering */
    unsigned asks;      /* questions since the last attempt */
    unsigned polls;     /* waits for a running command, in a row */
    bool has_last;
    enum finding last;
    enum ask last_ask; /* of the last question of this run; tells something when asks > 0 */
    int last_status;
    bool last_timed_out;
    int64_t retry_after_ms; /* of the last exchange; -1 */
    int64_t floor_ms;       /* monotonic: the server asked not to be called earlier. 0: it did not */
    int64_t previous_delay_ms;
    bool route_told; /* whether the route is protected was asked, and answered in some way */
    bool rested;     /* a wait was begun since the last attempt */
    bool hurried;    /* somebody wants the wait to end: as soon as the floor allows */

    /* the wait that is under way, as the planner wanted it */
    bool waiting;
    int64_t due_ms, delay_ms;
    int next_action; /* enum plan_action behind it */
    int next_ask;    /* enum ask */
    int wait_reason; /* enum reason */

    bool cancelled;   /* somebody cancelled */
    bool caller_stop; /* the callback said stop */
    int local_error;  /* enum nonbis_error: the run must end */
};

/* A new operation. */
void history_init(struct history *history, enum safety safety, bool has_body, bool own_key);

/* One that was found in the journal as perhaps sent, or of which only the key is known. `first_sent_wall_ms` as above. With
 * which credentials is not known then, unless the caller knows. */
void history_resume(struct history *history, int64_t first_sent_wall_ms);

/* A run begins: forgets waits and counts, keeps what is known about the command. */
void history_begin(struct history *history, enum goal goal, int64_t now_ms, int64_t deadline_ms);

/* Inside the hook: from here on it may have been sent. */
void history_note_sending(struct history *history, int64_t wall_ms);

/* An exchange ended at `now_ms`. May change reading->finding of a NOT_SEEN into what it is worth. */
void history_note_attempt(struct history *history, struct reading *reading, int64_t now_ms);
void history_note_answer(struct history *history, struct reading *reading, int64_t now_ms);

/* The cell of the table. */
enum standing standing_after(enum standing standing, enum finding finding);

enum nonbis_outcome standing_outcome(enum standing standing);

#endif
