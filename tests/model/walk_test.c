/* walk_test.c - the tables of server/core walked at random, and with planted faults, each of which must be found. */
#include "tests/model/walk.h"

#include "tests/support/suite.h"

enum { STEPS = 1000 * 1000 };

static const struct walk_rules right = { &exchange_table, &decision_table, WALK_FAULT_NONE };

static void print_figures(const struct walk_figures *figures)
{
    char line[1024];
    int len = 0;
    for (int event = 0; event < EVENT_COUNT; event++) {
        len += snprintf(line + len, sizeof(line) - (size_t) len, " %s=%u", event_name((enum event) event),
                        figures->events[event]);
    }
    FIGURE("walk events:%s", line);
    len = 0;
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
        len += snprintf(line + len, sizeof(line) - (size_t) len, " %s=%u", verdict_name((enum verdict) verdict),
                        figures->verdicts[verdict]);
    }
    FIGURE("walk verdicts:%s", line);
    for (int phase = 0; phase < PHASE_CLOSED; phase++) {
        len = 0;
        for (int event = 0; event < EVENT_COUNT; event++) {
            if (exchange_table.cell[phase][event].deed != DEED_IMPOSSIBLE) {
                len += snprintf(line + len, sizeof(line) - (size_t) len, " %s=%u", event_name((enum event) event),
                                figures->cells[phase][event]);
            }
        }
        FIGURE("walk events in %s:%s", phase_name((enum phase) phase), line);
    }
}

START_TEST(a_long_random_walk_violates_nothing_and_meets_every_possible_cell)
{
    unsigned seed = suite_seed();
    struct walk_figures figures;
    const char *violation = walk(&right, seed, STEPS, &figures);
    FIGURE("walk seed=%u steps=%u exchanges=%u keys=%u effects=%u restarts=%u", seed, figures.steps, figures.exchanges,
           figures.keys, figures.effects, figures.restarts);
    FIGURE("walk waits=%u again=%u answered as the released rival=%u replayed=%u", figures.waits, figures.waits_again,
           figures.shared, figures.replayed);
    print_figures(&figures);
    ck_assert_msg(violation == NULL, "seed %u, step %u: %s", seed, figures.steps, violation);
    ck_assert_uint_gt(figures.waits, 0);
    ck_assert_uint_gt(figures.waits_again, 0);
    ck_assert_uint_gt(figures.shared, 0);
    ck_assert_uint_gt(figures.replayed, 0);
    for (int event = 0; event < EVENT_COUNT; event++) {
        ck_assert_msg(figures.events[event] > 0, "%s never happened (seed %u)", event_name((enum event) event), seed);
    }
    for (int verdict = VERDICT_FORWARD; verdict < VERDICT_COUNT; verdict++) {
        ck_assert_msg(figures.verdicts[verdict] > 0, "%s was never decided (seed %u)",
                      verdict_name((enum verdict) verdict), seed);
    }
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        for (int event = 0; event < EVENT_COUNT; event++) {
            bool possible = exchange_table.cell[phase][event].deed != DEED_IMPOSSIBLE;
            ck_assert_msg((figures.cells[phase][event] > 0) == possible, "%s in %s (seed %u)",
                          event_name((enum event) event), phase_name((enum phase) phase), seed);
        }
    }
}
END_TEST

/* A cell of the life of a request, and the fault planted there. */
static const struct {
    enum phase phase;
    enum event event;
    struct step fault;
} exchange_faults[] = {
    { PHASE_READING, EVENT_BODY_WHOLE, { PHASE_FORWARDING, DEED_FORWARD } },
    { PHASE_CLAIMING, EVENT_FOUND, { PHASE_FORWARDING, DEED_FORWARD } },
    { PHASE_CLAIMING, EVENT_CLAIM_FAILED, { PHASE_FORWARDING, DEED_FORWARD } },
    { PHASE_CLAIMING, EVENT_MUST_WAIT, { PHASE_FORWARDING, DEED_FORWARD } },
    { PHASE_CLAIMING, EVENT_CLIENT_GONE, { PHASE_CLOSED, DEED_FREE } },
    { PHASE_CLAIMING, EVENT_CLAIMED, { PHASE_REPLYING, DEED_ANSWER } },
    { PHASE_FORWARDING, EVENT_CLIENT_GONE, { PHASE_CLOSED, DEED_FREE } },
    { PHASE_FORWARDING, EVENT_UPSTREAM_DONE, { PHASE_REPLYING, DEED_ANSWER } },
    { PHASE_FORWARDING, EVENT_ANSWER_DEADLINE, { PHASE_REPLYING, DEED_ANSWER } },
    { PHASE_FORWARDING, EVENT_HARD_DEADLINE, { PHASE_REPLYING, DEED_ANSWER } },
    { PHASE_FORWARDING, EVENT_HARD_DEADLINE, { PHASE_CLOSED, DEED_FREE } },
    { PHASE_FORWARDING, EVENT_HARD_DEADLINE, { PHASE_FORWARDING, DEED_FORWARD } },
    { PHASE_FORWARDING, EVENT_ANSWERED, { PHASE_CLOSED, DEED_FREE } },
    { PHASE_FORWARDING, EVENT_STOP, { PHASE_CLOSED, DEED_FREE } },
    { PHASE_RECORDING, EVENT_RECORD_FAILED, { PHASE_REPLYING, DEED_ANSWER } },
    { PHASE_RECORDING, EVENT_RECORDED, { PHASE_REPLYING, DEED_ANSWER_UNRECORDED } },
    { PHASE_RECORDING, EVENT_RECORDED, { PHASE_FORWARDING, DEED_FORWARD } },
    { PHASE_RECORDING, EVENT_ANSWER_DEADLINE, { PHASE_REPLYING, DEED_ANSWER } },
    { PHASE_RECORDING, EVENT_CLIENT_GONE, { PHASE_CLOSED, DEED_FREE } },
    { PHASE_WAITING, EVENT_RIVAL_ENDED, { PHASE_FORWARDING, DEED_FORWARD } },
    { PHASE_WAITING, EVENT_RIVAL_ENDED, { PHASE_WAITING, DEED_NONE } },
    { PHASE_WAITING, EVENT_RIVAL_RELEASED, { PHASE_FORWARDING, DEED_FORWARD } },
    { PHASE_WAITING, EVENT_RIVAL_RELEASED, { PHASE_CLAIMING, DEED_CLAIM } },
    { PHASE_WAITING, EVENT_RIVAL_RELEASED, { PHASE_WAITING, DEED_NONE } },
    { PHASE_WAITING, EVENT_RIVAL_RELEASED, { PHASE_CLOSED, DEED_FREE } },
    { PHASE_WAITING, EVENT_ANSWER_DEADLINE, { PHASE_WAITING, DEED_NONE } },
    { PHASE_WAITING, EVENT_CLIENT_GONE, { PHASE_WAITING, DEED_DETACH } },
    { PHASE_WAITING, EVENT_STOP, { PHASE_WAITING, DEED_NONE } },
    { PHASE_REPLYING, EVENT_RIVAL_RELEASED, { PHASE_REPLYING, DEED_ANSWER } },
    { PHASE_REPLYING, EVENT_ANSWERED, { PHASE_REPLYING, DEED_NONE } },
    { PHASE_REPLYING, EVENT_ANSWER_DEADLINE, { PHASE_REPLYING, DEED_ANSWER } },
};

START_TEST(the_walk_finds_a_fault_in_the_life_of_a_request)
{
    struct exchange_table broken = exchange_table;
    broken.cell[exchange_faults[_i].phase][exchange_faults[_i].event] = exchange_faults[_i].fault;
    const struct walk_rules rules = { &broken, &decision_table, WALK_FAULT_NONE };
    unsigned seed = suite_seed();
    struct walk_figures figures;
    const char *violation = walk(&rules, seed, STEPS, &figures);
    ck_assert_msg(violation != NULL, "fault %d (%s in %s -> %s) was not found in %u steps, seed %u", _i,
                  event_name(exchange_faults[_i].event), phase_name(exchange_faults[_i].phase),
                  deed_name(exchange_faults[_i].fault.deed), figures.steps, seed);
    FIGURE("%s in %s -> %s: step %u: %s", event_name(exchange_faults[_i].event), phase_name(exchange_faults[_i].phase),
           deed_name(exchange_faults[_i].fault.deed), figures.steps, violation);
}
END_TEST

/* Nothing in the table is there by chance: any other next phase or deed, in any cell that can be met, is found. */
START_TEST(the_walk_finds_every_other_content_of_every_cell)
{
    unsigned seed = suite_seed(), faults = 0;
    const enum phase phase = (enum phase) _i;
    for (int event = 0; event < EVENT_COUNT; event++) {
        const struct step good = exchange_table.cell[phase][event];
        for (int fault = 0; fault < PHASE_COUNT * DEED_COUNT && good.deed != DEED_IMPOSSIBLE; fault++) {
            struct step wrong = { (enum phase)(fault % PHASE_COUNT), (enum deed)(fault / PHASE_COUNT) };
            if (wrong.next == good.next && wrong.deed == good.deed) {
                continue;
            }
            struct exchange_table broken = exchange_table;
            broken.cell[phase][event] = wrong;
            faults++;
            const struct walk_rules rules = { &broken, &decision_table, WALK_FAULT_NONE };
            ck_assert_msg(walk(&rules, seed + faults, STEPS, NULL) != NULL, "%s in %s -> %s, %s was not found, seed %u",
                          event_name((enum event) event), phase_name(phase), phase_name(wrong.next),
                          deed_name(wrong.deed), seed + faults);
        }
    }
    FIGURE("walk faults in %s: %u, all found, seed=%u", phase_name(phase), faults, seed);
}
END_TEST

static const struct {
    enum record_state state;
    enum match match;
    enum verdict fault;
} decision_faults[] = {
    { RECORD_IN_PROGRESS, MATCH_SAME, VERDICT_FORWARD },
    { RECORD_COMPLETED, MATCH_SAME, VERDICT_FORWARD },
    { RECORD_UNKNOWN, MATCH_SAME, VERDICT_FORWARD },
    { RECORD_EXPIRED, MATCH_SAME, VERDICT_FORWARD },
    { RECORD_VOIDED, MATCH_SAME, VERDICT_FORWARD },
    { RECORD_RELEASED, MATCH_OTHER_PAYLOAD, VERDICT_FORWARD },
    { RECORD_COMPLETED, MATCH_OTHER_PAYLOAD, VERDICT_REPLAY },
    { RECORD_COMPLETED, MATCH_OTHER_CREDENTIAL, VERDICT_REPLAY },
    { RECORD_UNKNOWN, MATCH_SAME, VERDICT_REPLAY },
    { RECORD_UNKNOWN, MATCH_SAME, VERDICT_KEY_VOIDED },
    { RECORD_RELEASED, MATCH_SAME, VERDICT_KEY_EXPIRED },
};

START_TEST(the_walk_finds_a_fault_in_the_decisions)
{
    struct decision_table broken = decision_table;
    broken.cell[decision_faults[_i].state][decision_faults[_i].match][0] = decision_faults[_i].fault;
    broken.cell[decision_faults[_i].state][decision_faults[_i].match][1] = decision_faults[_i].fault;
    unsigned seed = suite_seed();
    struct walk_figures figures;
    const struct walk_rules rules = { &exchange_table, &broken, WALK_FAULT_NONE };
    const char *violation = walk(&rules, seed, STEPS, &figures);
    ck_assert_msg(violation != NULL, "fault %d (%s, match %d -> %s) was not found in %u steps, seed %u", _i,
                  record_state_name(decision_faults[_i].state), (int) decision_faults[_i].match,
                  verdict_name(decision_faults[_i].fault), figures.steps, seed);
    FIGURE("%s, match %d -> %s: step %u: %s", record_state_name(decision_faults[_i].state),
           (int) decision_faults[_i].match, verdict_name(decision_faults[_i].fault), figures.steps, violation);
}
END_TEST

static const char *const fault_names[WALK_FAULT_COUNT] = {
    [WALK_FAULT_NONE] = "none",
    [WALK_FAULT_RELEASED_BY_KEY] = "a release is told to all waiters of its key",
    [WALK_FAULT_RELEASED_EARLY] = "a release is told before it is durable",
    [WALK_FAULT_WAITER_CLAIMS] = "the look-up after a wait may claim",
    [WALK_FAULT_END_NOT_TOLD] = "a waiter is forgotten",
    [WALK_FAULT_TIMER_RUNS_ON] = "the end of a wait is not stopped with it",
    [WALK_FAULT_TIMER_LOST] = "the end of a wait is not armed again",
    [WALK_FAULT_TIMER_WHOLE] = "the whole of a wait is armed again",
};

START_TEST(the_walk_finds_a_fault_of_who_lets_requests_wait)
{
    const struct walk_rules rules = { &exchange_table, &decision_table, (enum walk_fault) _i };
    unsigned seed = suite_seed();
    struct walk_figures figures;
    const char *violation = walk(&rules, seed, STEPS, &figures);
    if (_i == WALK_FAULT_NONE) {
        ck_assert_msg(violation == NULL, "seed %u, step %u: %s", seed, figures.steps, violation);
        return;
    }
    ck_assert_msg(violation != NULL, "fault %d (%s) was not found in %u steps, seed %u", _i, fault_names[_i],
                  figures.steps, seed);
    FIGURE("%s: step %u: %s", fault_names[_i], figures.steps, violation);
}
END_TEST

SUITE(walk)
{
    Suite *suite = suite_create("model/walk");
    CASE(suite, a_long_random_walk_violates_nothing_and_meets_every_possible_cell);
    CASE_LOOP(suite, the_walk_finds_a_fault_in_the_life_of_a_request,
              sizeof(exchange_faults) / sizeof(exchange_faults[0]));
    CASE_LOOP(suite, the_walk_finds_every_other_content_of_every_cell, PHASE_CLOSED);
    CASE_LOOP(suite, the_walk_finds_a_fault_of_who_lets_requests_wait, WALK_FAULT_COUNT);
    CASE_LOOP(suite, the_walk_finds_a_fault_in_the_decisions, sizeof(decision_faults) / sizeof(decision_faults[0]));
    return suite;
}
