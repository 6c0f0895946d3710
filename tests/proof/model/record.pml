/* record.pml - the life of ONE record, in every order of events: clients' attempts on any number of loops, the store's batches, the handler, time,
 * voids, crashes. What follows from what is not written here: it is read from the tables of server/core (tables.pml, made by tables.c). Here is what
 * the tables are used for, what may go wrong, and what must hold.
 *
 *   Clients --> Exchange(i): phase, event -> step_next, step_deed --> Store: batches on row, number, kept     World: time, sweep, void, crash, drain
 *                    |                                                  row_verdict, row_claim, row_finish
 *                    `--> Handler(i): acts, or not; now, later, never
 *
 * An exchange is one attempt and is used once; it makes one execution at most. Results come back to each exchange by themselves and in any order, which
 * is what loops of their own do. A batch is one step: before it nothing of it can be seen, behind it all of it. Budgets bound crashes, faults and voids, so
 * that every run ends; whoever has no end then is stuck.
 *
 * One search runs one row of tools/run-model, which gives it, in the environment:
 *
 *   CRASHES  kills and restarts                       CALLERS  2: another credential too
 *   FAULTS   commits that fail, or are uncertain      STOPS    a drain that ends before what runs has ended
 *   VOIDS    voids                                    TIMERS   1: deadlines may also come when their phase is over
 *   WAITS    1: repeats may wait for the outcome      RETRIES  1: the store goes on behind an uncertain commit, which is tried again
 *   MISTAKE  a number below: that mistake is made, and must be found
 *   BLUNT    1: only what the handler itself sees counts, so that a mistake is followed to the harm that it does
 *
 * Assumed: retention outlasts what the network and the handler still hold, and an exchange that has an answer to give; a handler that says that it did
 * not act will not (docs/reliability.md). */
#include "tables.pml"

#ifndef N
#define N 2 /* exchanges: 2 or 3 */
#endif

hidden byte max_crashes, max_faults, max_voids, max_stops, callers, timers, waiting, retries, blunt, mistake;
c_decl {
\#include <stdlib.h>
    static int chosen(const char *name, int otherwise)
    {
        const char *text = getenv(name);
        return text == 0 ? otherwise : atoi(text);
    }
}

/* The mistakes. tools/run-model takes names and words from here. */
#define M_CLAIM_EARLY 1             /* a claim is told, and forwarded, before it is durable */
#define M_TOLD_EARLY 2              /* an outcome is told before it is durable */
#define M_LOOK_UP_EARLY 3           /* a look-up is told before its batch is durable */
#define M_CRASH_RELEASES 4          /* a start releases what was in progress */
#define M_TIMEOUT_RELEASES 5        /* hard_timeout counts as not executed */
#define M_GATEWAY_RELEASES 6        /* 502 or 504 counts as not executed */
#define M_CUT_COMPLETES 7           /* a cut answer counts as whole */
#define M_DEADLINE_RELEASES 8       /* not executed releases what was told as unknown */
#define M_UNKNOWN_IS_FREE 9         /* unknown is forwarded again */
#define M_RUNNING_IS_FREE 10        /* in progress is forwarded again */
#define M_COMPLETED_IS_FREE 11      /* completed is forwarded again */
#define M_EXPIRED_IS_FREE 12        /* expired is forwarded again */
#define M_VOIDED_IS_FREE 13         /* voided is forwarded */
#define M_PAYLOAD_IGNORED 14        /* another payload counts as the same */
#define M_CALLER_IGNORED 15         /* another credential counts as the same */
#define M_UNKNOWN_IS_REPLAYED 16    /* unknown is replayed as completed */
#define M_FOREIGN_OUTCOME 17        /* an outcome is stored for whichever execution is the newest */
#define M_UNKNOWN_IS_FORGOTTEN 18   /* unknown is forgotten by age */
#define M_VOID_OF_TOMBSTONE 19      /* an expired key counts as voided */
#define M_UNRECORDED_AS_RECORDED 20 /* an outcome that was not stored is told as stored */
#define M_GONE_CANCELS 21           /* a client that leaves cancels its command */
#define M_SECOND_SEND 22            /* a broken exchange is sent again */
#define M_WAITER_FORWARDS 23        /* who waited for an execution claims one itself */
#define M_RELEASED_BY_KEY 24        /* a release is told to all waiters of its key */
#define M_SILENT_BATCH 25           /* a batch that failed is told to nobody */
#define MISTAKEN(what) (mistake == what)

/* What must hold. The names are never true: the checker prints the one that was violated. */
#define MUST(holds, rule) assert((holds) || blunt || rule)
#define HARM(never, rule) assert(!(never) || rule)
hidden byte at_most_once,             /* forwarded again only when every earlier execution is proved or declared not to have happened */
    at_most_one_effect,               /* the same, counted at the handler */
    sent_once,                        /* of one execution */
    forwarded_on_a_durable_claim, told_is_durable, /* 11.1 */
    a_told_outcome_stays, one_outcome_is_told, a_kept_answer_came, only_completed_is_replayed, executed_has_an_answer,
    recorded_is_told_rightly,         /* and unrecorded is told as that */
    unknown_is_never_free,            /* it stays unknown, completes, or ends as a tombstone */
    not_executed_is_true, voided_is_true, unknown_is_true, expired_is_true, in_progress_is_true, still_running_is_true,
    voided_stays_voided, voided_never_acts,
    one_payload_one_caller, the_same_is_the_same, /* another is refused; the same is not */
    kept_for_its_time,                /* no record is forgotten before its last time, none counts behind it */
    a_waiter_never_forwards, a_waiter_hears_of_its_own,
    nobody_is_stuck, every_execution_is_recorded, outcomes_land, /* in the end each request has its answer, each execution its outcome */
    one_question_at_once, recorded_when_ended, free_can_be_claimed, no_impossible_cell; /* the tables fit each other */

#if N == 3
#define EVERY(p) (p(0) && p(1) && p(2))
#define ANY(p) (p(0) || p(1) || p(2))
#else
#define EVERY(p) (p(0) && p(1))
#define ANY(p) (p(0) || p(1))
#endif

/* --- on disk --- */
byte row;    /* of the tables: what is written, and which of its times are over */
byte number; /* of the newest execution */
byte kept;   /* 1 + the exchange whose answer is kept */

/* --- in the process --- */
bool down;     /* a commit was uncertain: the store refuses everything until the restart */
bool stopping; /* the drain is over */
byte phase[N];
byte client[N], payload[N], caller[N];
byte held[N];      /* the number of the execution that it claimed */
byte outcome[N];   /* of that */
byte recorded[N];  /* what the store said about it */
byte says[N];      /* 1 + the exchange whose answer a look-up found */
byte task[N];      /* what the store was asked */
byte mail[N];      /* 1 + the event that the store answered with */
byte waits[N];     /* for the execution of that number */
byte ended[N];     /* how that ended, as it is told to the waiter, and whose it was */
byte ender[N];
bool waited[N], late[N], timer[N];
byte stopped[N];   /* 1 + the phase in which the end of the drain was told */

#define HERE 0      /* client: waits for an answer */
#define TOLD 1      /* is being told still-running */
#define AWAY 2
#define YES 1       /* recorded */
#define FAILED 2
#define IDLE 0      /* task */
#define CLAIM 1
#define FINISH 2
#define CLAIM_RUN 3 /* part of the batch that runs */
#define FINISH_RUN 4
#define ENDED 1     /* ended */
#define RELEASED 2

/* --- the truth, which nobody in the process knows --- */
byte ex[N];
#define EX_NONE 0
#define EX_RUN 1      /* the handler has it, and has not acted */
#define EX_ACTED 2    /* it has, and has not answered */
#define EX_LOOSE 3    /* nobody listens any more, and it may act yet */
#define EX_CLEARED 4  /* proved or declared: did not act, and will not */
#define EX_ANSWERED 5 /* a complete answer came */
#define EX_GONE 6     /* acted or not: nobody can tell */

/* What was promised in this life of the key. */
byte effects, told, winner, owner; /* told: 1 + the exchange whose outcome; winner, owner: payload and caller that count */
bool voidtold, lost;               /* lost: it was unknown once */
byte crashes, faults, voids, stops;

#define CLEAR(i) (ex[i] == EX_NONE || ex[i] == EX_CLEARED)
#define RUNNING(i) (ex[i] == EX_RUN || ex[i] == EX_ACTED)
#define UNTOUCHED (EVERY(CLEAR) && effects == 0)
#define STATE row_state[row]
#define WRITTEN_RUNNING (row_recover[row] != NO)

/* What must hold whenever the disk or the world has changed; a status query may come at any time. */
inline check() {
    MUST((STATE == STATE_ABSENT) == row_over[row], kept_for_its_time);
    MUST(told == 0 || (kept == told && (STATE == STATE_COMPLETED || STATE == STATE_EXPIRED)), a_told_outcome_stays);
    MUST(!voidtold || STATE == STATE_VOIDED, voided_stays_voided);
    MUST(row_executed[row] != EXECUTED_NO || UNTOUCHED, not_executed_is_true);
    MUST(row_executed[row] != EXECUTED_YES || kept != 0, executed_has_an_answer);
    MUST(kept == 0 || ex[kept - 1] == EX_ANSWERED, a_kept_answer_came);
    if :: STATE == STATE_UNKNOWN -> lost = true :: else fi;
    MUST(!lost || STATE == STATE_UNKNOWN || STATE == STATE_COMPLETED || STATE == STATE_EXPIRED, unknown_is_never_free)
}

inline tell(e) {
    MUST(kept == e && (STATE == STATE_COMPLETED || STATE == STATE_EXPIRED), told_is_durable);
    MUST(told == 0 || told == e, one_outcome_is_told);
    told = e
}

inline let_go(i) { /* nobody listens to the handler any more */
    if :: ex[i] == EX_RUN -> ex[i] = EX_LOOSE :: ex[i] == EX_ACTED -> ex[i] = EX_GONE :: else fi
}

inline forget(i) { /* the exchange ends */
    phase[i] = PHASE_CLOSED;
    client[i] = HERE; payload[i] = 0; caller[i] = 0; recorded[i] = 0; says[i] = 0; task[i] = IDLE; mail[i] = 0;
    waits[i] = 0; ended[i] = 0; ender[i] = 0; waited[i] = false; timer[i] = false; stopped[i] = 0;
    if :: !late[i] -> held[i] = 0; outcome[i] = 0 :: else fi
}

inline pick_kind(i, way) { /* what the code makes of it */
    if
    :: way_kind[(way) * 3 + KIND_COMPLETED] -> outcome[i] = KIND_COMPLETED
    :: way_kind[(way) * 3 + KIND_NOT_EXECUTED] -> outcome[i] = KIND_NOT_EXECUTED
    :: way_kind[(way) * 3 + KIND_UNKNOWN] -> outcome[i] = KIND_UNKNOWN
    :: MISTAKEN(M_GATEWAY_RELEASES) && (way) == WAY_OPEN -> outcome[i] = KIND_NOT_EXECUTED
    :: MISTAKEN(M_CUT_COMPLETES) && (way) == WAY_OPEN -> outcome[i] = KIND_COMPLETED
    :: MISTAKEN(M_TIMEOUT_RELEASES) && (way) == WAY_ABORTED -> outcome[i] = KIND_NOT_EXECUTED
    fi
}

/* ---- one attempt: events as the world gives them, deeds as the table says ---- */

inline arrive(i) {
    timer[i] = timers;
    payload[i] = 1; caller[i] = 1; /* the first one names them: 1 and 2 are alike */
    if :: i > 0 -> payload[i] = 2 :: true fi;
    if :: i > 0 && callers == 2 -> caller[i] = 2 :: true fi
}

inline upstream_ends(i) {
    if
    :: ex[i] == EX_RUN -> ex[i] = EX_CLEARED; pick_kind(i, WAY_NOT_SENT)
    :: ex[i] == EX_RUN -> ex[i] = EX_CLEARED; pick_kind(i, WAY_DECLARED)
    :: ex[i] = EX_ANSWERED; pick_kind(i, WAY_ANSWERED) /* acted, or refused for good */
    :: let_go(i); pick_kind(i, WAY_OPEN)
    fi
}

inline do_answer(i) {
    if
    :: held[i] != 0 ->
        MUST(recorded[i] == (deed == DEED_ANSWER_UNRECORDED -> FAILED : YES), recorded_is_told_rightly);
        if
        :: recorded[i] == YES && outcome[i] == KIND_COMPLETED -> tell(i + 1)
        :: recorded[i] == YES && outcome[i] == KIND_NOT_EXECUTED -> MUST(ex[i] == EX_CLEARED, not_executed_is_true)
        :: else
        fi
    :: held[i] == 0 && says[i] != 0 -> tell(says[i])
    :: else
    fi
}

inline do_deed(i) {
    if
    :: deed == DEED_NONE
    :: deed == DEED_CLAIM ->
        MUST(task[i] == IDLE && mail[i] == 0, one_question_at_once);
        if :: task[i] = CLAIM :: mail[i] = 1 + EVENT_CLAIM_FAILED fi /* its queue may be full */
    :: deed == DEED_FORWARD ->
        MUST(held[i] != 0 && WRITTEN_RUNNING && number == held[i], forwarded_on_a_durable_claim);
        MUST(UNTOUCHED && !voidtold, at_most_once);
        MUST(ex[i] == EX_NONE, sent_once);
        ex[i] = EX_RUN
    :: deed == DEED_RECORD || deed == DEED_RECORD_UNKNOWN ->
        if :: deed == DEED_RECORD_UNKNOWN -> let_go(i); pick_kind(i, WAY_ABORTED) :: else fi;
        MUST(held[i] != 0 && recorded[i] == 0 && !RUNNING(i), recorded_when_ended);
        task[i] = FINISH
    :: deed == DEED_WAIT -> waited[i] = true
    :: deed == DEED_ANSWER || deed == DEED_ANSWER_UNRECORDED -> do_answer(i)
    :: deed == DEED_TELL_STILL_RUNNING ->
        MUST(client[i] == HERE && RUNNING(i), still_running_is_true);
        client[i] = TOLD
    :: deed == DEED_DETACH -> client[i] = AWAY
    :: deed == DEED_FREE ->
        MUST(task[i] == IDLE && mail[i] == 0, one_question_at_once);
        MUST(held[i] == 0 || recorded[i] != 0, every_execution_is_recorded);
        forget(i)
    :: else -> MUST(false, no_impossible_cell)
    fi;
    deed = 0
}

proctype Exchange(byte i) {
    byte event, deed;
end:
    do
    :: atomic {
        if
        :: phase[i] == PHASE_READING && (i == 0 || phase[i - 1] != PHASE_READING) ->
            if
            :: event = EVENT_BODY_WHOLE; arrive(i)
            :: event = EVENT_REFUSED
            :: event = EVENT_CLIENT_GONE
            fi
        :: mail[i] != 0 ->
            event = mail[i] - 1; mail[i] = 0;
            if :: event == EVENT_RECORDED -> recorded[i] = YES :: event == EVENT_RECORD_FAILED -> recorded[i] = FAILED :: else fi
        :: phase[i] == PHASE_FORWARDING && RUNNING(i) -> event = EVENT_UPSTREAM_DONE; upstream_ends(i)
        :: phase[i] == PHASE_FORWARDING -> event = EVENT_HARD_DEADLINE
        :: phase[i] == PHASE_WAITING -> event = EVENT_ANSWER_DEADLINE
        :: phase[i] == PHASE_FORWARDING && client[i] == HERE && (!timers || timer[i]) -> event = EVENT_ANSWER_DEADLINE; timer[i] = false
        :: (phase[i] == PHASE_RECORDING || phase[i] == PHASE_REPLYING) && timer[i] ->
            timer[i] = false; if :: event = EVENT_ANSWER_DEADLINE :: event = EVENT_HARD_DEADLINE fi
        :: phase[i] == PHASE_WAITING && ended[i] == ENDED -> event = EVENT_RIVAL_ENDED
        :: phase[i] == PHASE_WAITING && ended[i] == RELEASED -> event = EVENT_RIVAL_RELEASED;
            MUST(ex[ender[i] - 1] == EX_CLEARED, not_executed_is_true)
        :: phase[i] == PHASE_WAITING && ended[i] == 0 && STATE == STATE_UNKNOWN -> event = EVENT_RIVAL_ENDED /* its deadline */
        :: phase[i] != PHASE_READING && phase[i] != PHASE_REPLYING && phase[i] != PHASE_CLOSED && client[i] == HERE -> event = EVENT_CLIENT_GONE
        :: phase[i] == PHASE_WAITING && client[i] == AWAY -> event = EVENT_CLIENT_GONE
        :: phase[i] != PHASE_REPLYING && client[i] == TOLD -> event = EVENT_ANSWERED
        :: phase[i] == PHASE_REPLYING -> event = EVENT_ANSWERED
        :: phase[i] == PHASE_REPLYING && client[i] != AWAY -> event = EVENT_CLIENT_GONE
        :: stopping && phase[i] != PHASE_CLOSED && stopped[i] != phase[i] + 1 -> event = EVENT_STOP; stopped[i] = phase[i] + 1
        fi;
        deed = step_deed[phase[i] * EVENTS + event];
        if
        :: MISTAKEN(M_GONE_CANCELS) && phase[i] == PHASE_FORWARDING && event == EVENT_CLIENT_GONE -> let_go(i); deed = DEED_FREE
        :: MISTAKEN(M_UNRECORDED_AS_RECORDED) && event == EVENT_RECORD_FAILED -> deed = DEED_ANSWER
        :: MISTAKEN(M_SECOND_SEND) && event == EVENT_UPSTREAM_DONE && outcome[i] == KIND_UNKNOWN -> event = EVENT_CLIENT_GONE; deed = DEED_FORWARD
        :: else
        fi;
        if /* a wait is over when its phase is */
        :: phase[i] == PHASE_WAITING && step_next[phase[i] * EVENTS + event] != PHASE_WAITING -> waits[i] = 0; ended[i] = 0; ender[i] = 0
        :: else
        fi;
        phase[i] = step_next[phase[i] * EVENTS + event]; event = 0;
        do_deed(i) }
    od
}

/* ---- the handler: it acts, now or behind the back of who gave up, or never ---- */

proctype Handler(byte i) {
end:
    do
    :: atomic {
        if
        :: ex[i] == EX_RUN -> ex[i] = EX_ACTED; effects++
        :: ex[i] == EX_LOOSE -> ex[i] = EX_GONE; effects++
        :: ex[i] == EX_LOOSE -> ex[i] = EX_GONE
        fi;
        HARM(effects > 1, at_most_one_effect);
        HARM(effects > 0 && voidtold, voided_never_acts);
        check() }
    od
}

/* ---- the store: everything that is queued, as one transaction ---- */

#define ASKED(i) (task[i] == CLAIM || task[i] == FINISH)
#define CLAIMS(i) (task[i] == CLAIM)

mtype = { ALL, NO_CLAIMS, READS, OUTCOMES, FAILS, GHOST, GONE, OFF };
/* ALL        everything, and it is durable
 * NO_CLAIMS  no room for new claims      READS  no room for anything       OUTCOMES  failed, and again without claims and look-ups
 * FAILS      nothing of it is there      GHOST  told as failed, but it is there (uncertain)      GONE  uncertain, and it is not
 * OFF        the store is down */
#define COMMITS (pass == ALL || pass == NO_CLAIMS || pass == READS || pass == OUTCOMES)

/* What a look-up finds; the scratch row is that of the transaction. */
#define FREE_BY_MISTAKE ((MISTAKEN(M_UNKNOWN_IS_FREE) && row_state[trow] == STATE_UNKNOWN) || \
    (MISTAKEN(M_RUNNING_IS_FREE) && row_state[trow] == STATE_IN_PROGRESS) || \
    (MISTAKEN(M_COMPLETED_IS_FREE) && row_state[trow] == STATE_COMPLETED) || \
    (MISTAKEN(M_EXPIRED_IS_FREE) && row_state[trow] == STATE_EXPIRED) || (MISTAKEN(M_VOIDED_IS_FREE) && row_state[trow] == STATE_VOIDED))
#define CLAIM_NOW row_claim[(FREE_BY_MISTAKE -> 0 : trow) * 4 + asker]

inline check_verdict(i) {
    if
    :: (twinner != 0 && payload[i] != twinner) || (towner != 0 && caller[i] != towner) ->
        MUST(verdict == VERDICT_KEY_REUSED, one_payload_one_caller)
    :: else ->
        MUST(verdict != VERDICT_KEY_REUSED && verdict != VERDICT_IMPOSSIBLE, the_same_is_the_same);
        MUST(verdict != VERDICT_FORWARD || (UNTOUCHED && !voidtold), at_most_once);
        MUST(verdict != VERDICT_REPLAY || tkept != 0, only_completed_is_replayed);
        MUST(told == 0 || verdict == VERDICT_REPLAY || verdict == VERDICT_KEY_EXPIRED, a_told_outcome_stays);
        MUST((verdict == VERDICT_KEY_VOIDED) == (row_state[trow] == STATE_VOIDED), voided_is_true);
        MUST((verdict == VERDICT_OUTCOME_UNKNOWN) == (row_state[trow] == STATE_UNKNOWN), unknown_is_true);
        MUST((verdict == VERDICT_KEY_EXPIRED) == (row_state[trow] == STATE_EXPIRED), expired_is_true);
        MUST((verdict == VERDICT_IN_PROGRESS || verdict == VERDICT_WAIT) == (row_state[trow] == STATE_IN_PROGRESS), in_progress_is_true)
    fi
}

inline run_claim(i) {
    task[i] = CLAIM_RUN;
    asker = (payload[i] - 1) * 2 + caller[i] - 1;
    if
    :: MISTAKEN(M_PAYLOAD_IGNORED) && twinner != 0 -> asker = (twinner - 1) * 2 + caller[i] - 1
    :: MISTAKEN(M_CALLER_IGNORED) && towner != 0 -> asker = (payload[i] - 1) * 2 + towner - 1
    :: else
    fi;
    if :: waiting && !stopping -> wait = 1 :: wait = 0 fi;
    verdict = row_verdict[(trow * 4 + asker) * 2 + wait];
    if :: FREE_BY_MISTAKE && verdict != VERDICT_KEY_REUSED -> verdict = VERDICT_FORWARD :: else fi;
    if :: MISTAKEN(M_UNKNOWN_IS_REPLAYED) && verdict == VERDICT_OUTCOME_UNKNOWN -> verdict = VERDICT_REPLAY :: else fi;
    check_verdict(i);
    if
    :: verdict == VERDICT_FORWARD ->
        if
        :: stopping || (waited[i] && !MISTAKEN(M_WAITER_FORWARDS)) -> mail[i] = 1 + EVENT_FOUND /* no new work: refused */
        :: else ->
            MUST(CLAIM_NOW != NO, free_can_be_claimed);
            MUST(!waited[i], a_waiter_never_forwards);
            if
            :: pass == NO_CLAIMS || pass == READS -> mail[i] = 1 + EVENT_CLAIM_FAILED
            :: else ->
                tnumber = (row_counts_up[trow] -> tnumber + 1 : 1);
                trow = CLAIM_NOW; tkept = 0; twinner = payload[i]; towner = caller[i];
                held[i] = tnumber; mail[i] = 1 + EVENT_CLAIMED
            fi
        fi
    :: verdict == VERDICT_WAIT -> waits[i] = tnumber; mail[i] = 1 + EVENT_MUST_WAIT
    :: else -> says[i] = (verdict == VERDICT_REPLAY -> tkept : 0); mail[i] = 1 + EVENT_FOUND
    fi;
    verdict = 0; asker = 0; wait = 0
}

/* An execution has ended: whoever waits for it is told. */
inline tell_waiters(i, how) {
    j = 0;
    do
    :: j < N ->
        if
        :: waits[j] != 0 && (waits[j] == held[i] || MISTAKEN(M_RELEASED_BY_KEY)) ->
            MUST(waits[j] == held[i], a_waiter_hears_of_its_own);
            ended[j] = how; ender[j] = i + 1; waits[j] = 0
        :: else
        fi;
        j++
    :: else -> break
    od;
    j = 0
}

inline land(i) { /* where `to` leads */
    if
    :: MISTAKEN(M_DEADLINE_RELEASES) && outcome[i] == KIND_NOT_EXECUTED && row_recover[trow] != NO -> to = row_finish[row_claim[0] * 3 + KIND_NOT_EXECUTED]
    :: else
    fi;
    if
    :: to != NO ->
        trow = to;
        if
        :: outcome[i] == KIND_COMPLETED -> tkept = i + 1
        :: outcome[i] == KIND_NOT_EXECUTED && row_state[to] == STATE_UNKNOWN ->
            if :: COMMITS -> outcome[i] = KIND_UNKNOWN :: else fi /* too late: what counts is told */
        :: outcome[i] == KIND_NOT_EXECUTED && row_state[to] != STATE_UNKNOWN -> towner = 0
        :: else
        fi
    :: else
    fi
}

inline run_finish(i) {
    task[i] = FINISH_RUN;
    if
    :: pass == READS -> mail[i] = 1 + EVENT_RECORD_FAILED; late[i] = true
    :: else ->
        MUST(tnumber == held[i] && row_recover[trow] != NO, outcomes_land);
        to = row_finish[trow * 3 + outcome[i]];
        land(i);
        MUST(to != NO, outcomes_land);
        mail[i] = 1 + (to != NO -> EVENT_RECORDED : EVENT_RECORD_FAILED)
    fi;
    to = 0
}

/* A batch that failed is told so to everybody in it. */
inline fail_told(i) {
    if
    :: task[i] == CLAIM_RUN ->
        if
        :: MISTAKEN(M_CLAIM_EARLY) && mail[i] == 1 + EVENT_CLAIMED
        :: MISTAKEN(M_LOOK_UP_EARLY) && mail[i] == 1 + EVENT_FOUND
        :: else -> mail[i] = 1 + EVENT_CLAIM_FAILED; held[i] = 0; says[i] = 0; waits[i] = 0
        fi
    :: task[i] == FINISH_RUN && !MISTAKEN(M_TOLD_EARLY) ->
        mail[i] = 1 + EVENT_RECORD_FAILED;
        late[i] = (pass == FAILS || (retries && (pass == GHOST || pass == GONE))) /* kept, and tried again */
    :: else
    fi;
    if :: MISTAKEN(M_SILENT_BATCH) -> mail[i] = 0 :: else fi
}

inline pick_pass() {
    if
    :: down -> pass = OFF
    :: !down -> pass = ALL
    :: !down && faults < max_faults -> faults++;
        if :: pass = NO_CLAIMS :: pass = READS :: pass = OUTCOMES :: pass = FAILS :: pass = GHOST :: pass = GONE fi
    fi
}

inline begin() { trow = row; tnumber = number; tkept = kept; twinner = winner; towner = owner }

inline commit() {
    if
    :: COMMITS || pass == GHOST -> row = trow; number = tnumber; kept = tkept; winner = twinner; owner = towner
    :: else
    fi;
    if
    :: pass == GHOST || pass == GONE -> down = !retries
    :: else
    fi;
    trow = 0; tnumber = 0; tkept = 0; twinner = 0; towner = 0
}

#define LATE_READY(i) (late[i] && !down)

#if N == 3
#define PICK(p) if :: p(0) -> i = 0 :: p(1) -> i = 1 :: p(2) -> i = 2 fi
#else
#define PICK(p) if :: p(0) -> i = 0 :: p(1) -> i = 1 fi
#endif

inline run_batch() {
    do /* outcomes first */
    :: i < N ->
        if
        :: task[i] == FINISH && pass == OFF -> task[i] = FINISH_RUN
        :: task[i] == FINISH && pass != OFF -> run_finish(i)
        :: task[i] == CLAIM && (pass == OFF || pass == OUTCOMES) -> task[i] = CLAIM_RUN; mail[i] = 1 + EVENT_CLAIM_FAILED
        :: else
        fi;
        i++
    :: else -> break
    od;
    do /* claims and look-ups, in the order in which they came */
    :: ANY(CLAIMS) -> PICK(CLAIMS); run_claim(i)
    :: else -> break
    od;
    i = 0;
    do
    :: i < N ->
        if
        :: !COMMITS -> fail_told(i)
        :: COMMITS && task[i] == FINISH_RUN && mail[i] == 1 + EVENT_RECORDED ->
            tell_waiters(i, (outcome[i] == KIND_NOT_EXECUTED -> RELEASED : ENDED))
        :: else
        fi;
        if :: task[i] == CLAIM_RUN || task[i] == FINISH_RUN -> task[i] = IDLE :: else fi;
        i++
    :: else -> break
    od
}

/* An outcome that was not stored is tried again, in a batch of its own. */
inline run_late() {
    PICK(LATE_READY);
    if
    :: pass == READS || pass == FAILS || (retries && !COMMITS) /* and once more */
    :: else ->
        if
        :: tnumber == held[i] || MISTAKEN(M_FOREIGN_OUTCOME) -> to = row_finish[trow * 3 + outcome[i]]
        :: else -> to = row_finish_other[trow * 3 + outcome[i]]
        fi;
        land(i);
        late[i] = false;
        if :: to != NO && COMMITS -> tell_waiters(i, ENDED) :: else fi; /* without the answer that released it */
        if :: phase[i] == PHASE_CLOSED -> held[i] = 0; outcome[i] = 0 :: else fi;
        to = 0
    fi
}

proctype Store() {
    byte i, j, to, asker, wait, verdict, trow, tnumber, tkept, twinner, towner;
    mtype pass;
end:
    do
    :: atomic { ANY(ASKED) || ANY(LATE_READY) ->
        pick_pass();
        begin();
        if
        :: ANY(ASKED) -> run_batch()
        :: ANY(LATE_READY) -> run_late()
        fi;
        i = 0;
        commit();
        pass = 0;
        check() }
    od
}

/* ---- time, the sweep, void, kill and restart, the end of a drain ---- */

#define AT_REST(i) ((phase[i] == PHASE_READING || phase[i] == PHASE_CLOSED || (phase[i] == PHASE_CLAIMING && mail[i] == 0)) && \
    (ex[i] == EX_NONE || ex[i] == EX_CLEARED || ex[i] == EX_ANSWERED || ex[i] == EX_GONE))
#define NOT_BEGUN(i) (phase[i] == PHASE_READING || phase[i] == PHASE_CLOSED)
#define CLOSED(i) (phase[i] == PHASE_CLOSED)
#define NO_LATE(i) (!late[i])

inline pass_time() {
    row = row_tick[row];
    if
    :: row_over[row] -> /* the key is free: what was promised of it is over */
        number = 0; kept = 0; effects = 0; told = 0; winner = 0; owner = 0; voidtold = false; lost = false; i = 0;
        do :: i < N -> ex[i] = EX_NONE; held[i] = 0; i++ :: else -> break od; /* an outcome that comes yet finds another row */
        i = 0
    :: else
    fi
}

inline cancel() {
    voids++;
    if
    :: row_cancel[row * 2 + by - 1] != NO ->
        row = row_cancel[row * 2 + by - 1]; owner = by;
        if :: voidtold = true :: faults < max_faults -> faults++; down = true /* uncertain, and there */ fi
    :: row_cancel[row * 2 + by - 1] == NO && STATE == STATE_VOIDED && owner == by -> voidtold = true
    :: MISTAKEN(M_VOID_OF_TOMBSTONE) && row_cancel[row * 2 + by - 1] == NO && STATE == STATE_EXPIRED -> voidtold = true
    :: else /* not-voidable, in-progress, key-reused */
    fi
}

inline restart() {
    do
    :: i < N ->
        late[i] = false; let_go(i);
        if :: phase[i] != PHASE_READING -> forget(i) :: else -> stopped[i] = 0 fi;
        i++
    :: else -> break
    od;
    i = 0; down = false; stopping = false;
    if
    :: MISTAKEN(M_CRASH_RELEASES) && row_finish[row * 3 + KIND_NOT_EXECUTED] != NO -> row = row_finish[row * 3 + KIND_NOT_EXECUTED]; owner = 0
    :: !MISTAKEN(M_CRASH_RELEASES) && WRITTEN_RUNNING -> row = row_recover[row]
    :: else
    fi
}

proctype World() {
    byte i, by;
end:
    do
    :: atomic {
        if
        :: !down && row_tick[row] != NO && (!row_over[row_tick[row]] || EVERY(AT_REST)) -> pass_time()
        :: !down && row_sweep[row] != NO -> row = row_sweep[row]
        :: !down && MISTAKEN(M_UNKNOWN_IS_FORGOTTEN) && STATE == STATE_UNKNOWN -> row = 0
        :: !down && voids < max_voids -> if :: by = 1 :: callers == 2 -> by = 2 fi; cancel(); by = 0
        :: crashes < max_crashes -> crashes++; restart()
        :: down -> restart() /* it ends by itself, sooner or later */
        :: stopping && EVERY(NOT_BEGUN) -> restart()
        :: stops < max_stops -> stops++; stopping = true
        fi;
        check() }
    :: timeout -> /* nothing can happen any more */
        MUST(EVERY(CLOSED) && EVERY(NO_LATE), nobody_is_stuck);
        MUST(STATE == STATE_ABSENT || STATE == STATE_UNKNOWN, nobody_is_stuck);
        break
    od
}

init {
    byte i;
    atomic {
        c_code {
            max_crashes = chosen("CRASHES", 1);
            max_faults = chosen("FAULTS", 1);
            max_voids = chosen("VOIDS", 0);
            max_stops = chosen("STOPS", 0);
            callers = chosen("CALLERS", 1);
            timers = chosen("TIMERS", 0);
            waiting = chosen("WAITS", 0);
            retries = chosen("RETRIES", 0);
            blunt = chosen("BLUNT", 0);
            mistake = chosen("MISTAKE", 0);
        };
        do
        :: i < N -> phase[i] = PHASE_READING; run Exchange(i); run Handler(i); i++
        :: else -> break
        od;
        run Store(); run World()
    }
}
