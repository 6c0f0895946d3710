/* tables.c - writes the tables of server/core as Promela, to standard output: tests/proof/model/record.pml includes them and runs on them.
 *
 * Constants      ROWS, NO (an operation that is refused), PHASE_*, EVENT_*, DEED_*, VERDICT_*, STATE_*, EXECUTED_*, KIND_*, WAY_*
 * Of a row       row_state, row_executed, row_over, row_counts_up, row_tick, row_sweep, row_recover,
 *                row_claim[row * 4 + asker], row_verdict[(row * 4 + asker) * 2 + may_wait], row_cancel[row * 2 + caller],
 *                row_finish and row_finish_other[row * 3 + kind]; asker is 2 * payload + caller, all from 0
 * Of a cell      step_next and step_deed[phase * EVENTS + event]
 * Of a way       way_kind[way * 3 + kind]: whether outcome_of() may say so */
#include "server/core/exchange.h"
#include "tests/proof/model/life.h"
#include "tests/proof/model/ways.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { NO = 255 };

static struct life life;

/* "in_progress" as STATE_IN_PROGRESS */
static void define(const char *prefix, const char *name, int value)
{
    printf("#define %s_", prefix);
    for (; *name != '\0'; name++) {
        putchar(isalnum((unsigned char) *name) ? toupper((unsigned char) *name) : '_');
    }
    printf(" %d\n", value);
}

static void define_names(void)
{
    printf("#define ROWS %d\n#define NO %d\n#define EVENTS %d\n", life.count, NO, EVENT_COUNT);
    for (int i = 0; i < PHASE_COUNT; i++) {
        define("PHASE", phase_name((enum phase) i), i);
    }
    for (int i = 0; i < EVENT_COUNT; i++) {
        define("EVENT", event_name((enum event) i), i);
    }
    for (int i = 0; i < DEED_COUNT; i++) {
        define("DEED", deed_name((enum deed) i), i);
    }
    for (int i = 0; i < VERDICT_COUNT; i++) {
        define("VERDICT", verdict_name((enum verdict) i), i);
    }
    for (int i = 0; i < RECORD_STATE_COUNT; i++) {
        define("STATE", record_state_name((enum record_state) i), i);
    }
    for (int i = 0; i <= EXECUTED_UNKNOWN; i++) {
        define("EXECUTED", executed_name((enum executed) i), i);
    }
    for (int i = 0; i < WAY_COUNT; i++) {
        define("WAY", way_name((enum way) i), i);
    }
    define("KIND", "completed", OUTCOME_COMPLETED);
    define("KIND", "not_executed", OUTCOME_NOT_EXECUTED);
    define("KIND", "unknown", OUTCOME_UNKNOWN);
}

/* Hidden: constants need no place in each state of the search. */
static void array(const char *name, int count, int per_line, int (*item)(int index))
{
    printf("hidden byte %s[%d] = {", name, count);
    for (int i = 0; i < count; i++) {
        int value = item(i);
        printf("%s%d%s", i % per_line == 0 ? "\n    " : " ", value == LIFE_NO ? NO : value, i + 1 < count ? "," : "");
    }
    printf(" };\n");
}

static int item_state(int i)
{
    return (int) life.rows[i].state;
}
static int item_executed(int i)
{
    return (int) life.rows[i].executed;
}
static int item_over(int i)
{
    return life.rows[i].over;
}
static int item_counts_up(int i)
{
    return life.rows[i].counts_up;
}
static int item_tick(int i)
{
    return life.rows[i].moves.tick;
}
static int item_sweep(int i)
{
    return life.rows[i].moves.sweep;
}
static int item_recover(int i)
{
    return life.rows[i].moves.recover;
}
static int item_cancel(int i)
{
    return life.rows[i / 2].moves.cancel[i % 2];
}
static int item_claim(int i)
{
    return life.rows[i / 4].moves.claim[i / 2 % 2][i % 2];
}
static int item_finish(int i)
{
    return life.rows[i / LIFE_KINDS].moves.finish[i % LIFE_KINDS];
}
static int item_finish_other(int i)
{
    return life.rows[i / LIFE_KINDS].moves.finish_other[i % LIFE_KINDS];
}
static int item_verdict(int i)
{
    return (int) life.rows[i / 8].verdict[i / 4 % 2][i / 2 % 2][i % 2];
}
static int item_next(int i)
{
    return (int) exchange_next((enum phase)(i / EVENT_COUNT), (enum event)(i % EVENT_COUNT)).next;
}
static int item_deed(int i)
{
    return (int) exchange_next((enum phase)(i / EVENT_COUNT), (enum event)(i % EVENT_COUNT)).deed;
}
static int item_way(int i)
{
    return (int) (way_outcomes((enum way)(i / LIFE_KINDS)) >> (i % LIFE_KINDS) & 1);
}

int main(void)
{
    if (!life_draw(&life)) {
        fprintf(stderr, "tables: the life of a record cannot be drawn as a table: %s\n", life.fault);
        return EXIT_FAILURE;
    }
    printf("/* Made by tests/proof/model/tables.c from server/core. Rows:\n");
    for (int i = 0; i < life.count; i++) {
        printf(" * %3d %s, payload %d, caller %d\n", i, situation_name(life.rows[i].situation), life.rows[i].payload,
               life.rows[i].caller);
    }
    printf(" */\n");
    define_names();
    array("row_state", life.count, 32, item_state);
    array("row_executed", life.count, 32, item_executed);
    array("row_over", life.count, 32, item_over);
    array("row_counts_up", life.count, 32, item_counts_up);
    array("row_tick", life.count, 32, item_tick);
    array("row_sweep", life.count, 32, item_sweep);
    array("row_recover", life.count, 32, item_recover);
    array("row_cancel", life.count * LIFE_CALLERS, 32, item_cancel);
    array("row_claim", life.count * 4, 32, item_claim);
    array("row_finish", life.count * LIFE_KINDS, 30, item_finish);
    array("row_finish_other", life.count * LIFE_KINDS, 30, item_finish_other);
    array("row_verdict", life.count * 8, 32, item_verdict);
    array("step_next", PHASE_COUNT * EVENT_COUNT, EVENT_COUNT, item_next);
    array("step_deed", PHASE_COUNT * EVENT_COUNT, EVENT_COUNT, item_deed);
    array("way_kind", WAY_COUNT * LIFE_KINDS, LIFE_KINDS, item_way);
    return EXIT_SUCCESS;
}
