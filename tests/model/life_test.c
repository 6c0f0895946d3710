/* life_test.c - the transitions of a record, the decisions, the life of a request and the outcome classes: as they were written by hand in
 * tests/proof/model/life.txt, and as the code has them. The code side is the table on which the model of `make model` runs. */
#include "tests/proof/model/life.h"

#include "server/core/exchange.h"
#include "tests/proof/model/ways.h"
#include "tests/support/suite.h"

enum { FACTS_MAX = 4000, FACT_BYTES = 128, COLUMNS_MAX = 16, LINE_BYTES = 512 };

static const char *const sections[] = { "record", "decision", "exchange", "outcome" };

/* "record: running, claim: -". Sorted, each once. */
struct facts {
    char text[FACTS_MAX][FACT_BYTES];
    size_t count;
};

static struct facts written, coded;
static struct life life;

static void fact_add(struct facts *facts, const char *section, const char *subject, const char *column,
                     const char *value)
{
    ck_assert_uint_lt(facts->count, FACTS_MAX);
    int length = snprintf(facts->text[facts->count++], FACT_BYTES, "%s: %s, %s: %s", section, subject, column, value);
    ck_assert_int_lt(length, FACT_BYTES);
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void facts_close(struct facts *facts)
{
    size_t kept = 0;
    qsort(facts->text, facts->count, FACT_BYTES, compare);
    for (size_t i = 0; i < facts->count; i++) {
        if (kept == 0 || strcmp(facts->text[kept - 1], facts->text[i]) != 0) {
            memmove(facts->text[kept++], facts->text[i], FACT_BYTES);
        }
    }
    facts->count = kept;
}

/* --- the file --- */

static void read_line(char *line, char *section, char columns[COLUMNS_MAX][FACT_BYTES], int *column_count)
{
    char *rest = NULL, *word = strtok_r(line, " \n", &rest);
    if (word == NULL || word[0] == '#') {
        return;
    }
    if (word[0] == '[') {
        (void) snprintf(section, FACT_BYTES, "%.*s", (int) strlen(word) - 2, word + 1);
        for (*column_count = 0; (word = strtok_r(NULL, " \n", &rest)) != NULL; (*column_count)++) {
            ck_assert_int_lt(*column_count, COLUMNS_MAX);
            (void) snprintf(columns[*column_count], FACT_BYTES, "%s", word);
        }
        return;
    }
    char *bar = strtok_r(NULL, " \n", &rest);
    ck_assert_msg(bar != NULL && strcmp(bar, "|") == 0, "life.txt: no | behind %s", word);
    for (int i = 0; i < *column_count; i++) {
        char *value = strtok_r(NULL, " \n", &rest);
        ck_assert_msg(value != NULL, "life.txt: %s has no value for %s", word, columns[i]);
        fact_add(&written, section, word, columns[i], value);
    }
    ck_assert_msg(strtok_r(NULL, " \n", &rest) == NULL, "life.txt: %s has a value too many", word);
}

static void read_file(void)
{
    char line[LINE_BYTES], section[FACT_BYTES] = "", columns[COLUMNS_MAX][FACT_BYTES];
    int column_count = 0;
    FILE *file = fopen("tests/proof/model/life.txt", "r");
    ck_assert_msg(file != NULL, "tests/proof/model/life.txt is not there");
    written.count = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        read_line(line, section, columns, &column_count);
    }
    fclose(file);
    facts_close(&written);
}

/* --- the code --- */

static const char *row_name(int row)
{
    return row == LIFE_NO ? "-" : situation_name(life.rows[row].situation);
}

static const char *kind_name(int kind)
{
    static const char *const names[LIFE_KINDS] = { "completed", "not-executed", "unknown" };
    return names[kind];
}

/* Of one caller and one payload who ask. */
static void tell_asker(const struct life_row *row, int payload, int caller)
{
    const char *name = situation_name(row->situation);
    bool same_payload = row->payload == 0 || row->payload == payload;
    bool other_payload = row->payload == 0 || row->payload != payload;
    bool same_caller = row->caller == 0 || row->caller == caller, other_caller = row->caller == 0 || !same_caller;
    const enum verdict *verdict = row->verdict[payload - 1][caller - 1];
    const char *claimed = row_name(row->moves.claim[payload - 1][caller - 1]);
    if (same_payload) {
        fact_add(&coded, "record", name, "claim", claimed);
    }
    if (other_payload) {
        fact_add(&coded, "record", name, "claim-other", claimed);
    }
    if (same_payload && same_caller) {
        fact_add(&coded, "decision", name, "same", verdict_name(verdict[0]));
        fact_add(&coded, "decision", name, "may-wait", verdict_name(verdict[1]));
    }
    for (int wait = 0; wait < 2; wait++) {
        if (other_payload && same_caller && (!same_payload || wait == 0 || verdict[0] == verdict[1])) {
            fact_add(&coded, "decision", name, "other-payload", verdict_name(verdict[wait]));
        }
        if (other_caller && same_payload && (!same_caller || wait == 0 || verdict[0] == verdict[1])) {
            fact_add(&coded, "decision", name, "other-caller", verdict_name(verdict[wait]));
        }
    }
}

static void tell_row(const struct life_row *row)
{
    const char *name = situation_name(row->situation);
    fact_add(&coded, "record", name, "counts-as", record_state_name(row->state));
    fact_add(&coded, "record", name, "executed", executed_name(row->executed));
    for (int payload = 1; payload <= LIFE_PAYLOADS; payload++) {
        for (int caller = 1; caller <= LIFE_CALLERS; caller++) {
            tell_asker(row, payload, caller);
        }
    }
    for (int kind = 0; kind < LIFE_KINDS; kind++) {
        fact_add(&coded, "record", name, kind_name(kind), row_name(row->moves.finish[kind]));
        fact_add(&coded, "record", name, "other-execution", row_name(row->moves.finish_other[kind]));
    }
    for (int caller = 0; caller < LIFE_CALLERS; caller++) {
        fact_add(&coded, "record", name, "void", row_name(row->moves.cancel[caller]));
    }
    fact_add(&coded, "record", name, "time", row_name(row->moves.tick));
    fact_add(&coded, "record", name, "sweep", row_name(row->moves.sweep));
    fact_add(&coded, "record", name, "recover", row_name(row->moves.recover));
}

static void tell_exchange(void)
{
    for (int cell = 0; cell < PHASE_COUNT * EVENT_COUNT; cell++) {
        enum phase phase = (enum phase)(cell / EVENT_COUNT);
        enum event event = (enum event)(cell % EVENT_COUNT);
        struct step step = exchange_next(phase, event);
        if (step.deed != DEED_IMPOSSIBLE) {
            char subject[FACT_BYTES];
            (void) snprintf(subject, sizeof subject, "%s/%s", phase_name(phase), event_name(event));
            fact_add(&coded, "exchange", subject, "next", phase_name(step.next));
            fact_add(&coded, "exchange", subject, "deed", deed_name(step.deed));
        }
    }
}

static void ask_code(void)
{
    coded.count = 0;
    ck_assert_msg(life_draw(&life), "%s", life.fault);
    for (int i = 0; i < life.count; i++) {
        tell_row(&life.rows[i]);
    }
    tell_exchange();
    for (int way = 0; way < WAY_COUNT; way++) {
        for (int kind = 0; kind < LIFE_KINDS; kind++) {
            if ((way_outcomes((enum way) way) >> kind & 1) == 1) {
                fact_add(&coded, "outcome", way_name((enum way) way), "kind", kind_name(kind));
            }
        }
    }
    facts_close(&coded);
}

/* --- both --- */

static bool is_of(const char *fact, const char *section)
{
    size_t length = strlen(section);
    return strncmp(fact, section, length) == 0 && fact[length] == ':';
}

/* What one has and the other has not, of a section; prints each. */
static unsigned missing(const char *who, const struct facts *in, const struct facts *from, const char *section)
{
    unsigned count = 0;
    for (size_t i = 0; i < from->count; i++) {
        if (is_of(from->text[i], section) && bsearch(from->text[i], in->text, in->count, FACT_BYTES, compare) == NULL) {
            printf("%s: %s\n", who, from->text[i]);
            count++;
        }
    }
    return count;
}

START_TEST(the_code_moves_a_record_and_a_request_as_it_is_written_down)
{
    read_file();
    ask_code();
    unsigned facts = 0;
    for (size_t i = 0; i < written.count; i++) {
        facts += is_of(written.text[i], sections[_i]);
    }
    unsigned only_written = missing("only tests/proof/model/life.txt says", &coded, &written, sections[_i]);
    unsigned only_coded = missing("only the code does", &written, &coded, sections[_i]);
    fflush(stdout);
    ck_assert_msg(only_written + only_coded == 0, "%s: %u facts are only written, %u are only in the code",
                  sections[_i], only_written, only_coded);
    FIGURE("life %s: %u facts, as written", sections[_i], facts);
    ck_assert_uint_gt(facts, 0);
}
END_TEST

START_TEST(every_situation_of_a_record_is_reached_and_nothing_in_its_past_matters)
{
    bool seen[SITUATION_COUNT] = { false };
    ck_assert_msg(life_draw(&life), "%s", life.fault);
    for (int i = 0; i < life.count; i++) {
        seen[life.rows[i].situation] = true;
    }
    for (int i = 0; i < SITUATION_COUNT; i++) {
        ck_assert_msg(seen[i], "%s is never reached", situation_name((enum situation) i));
    }
    /* 19 situations, by the payload and the caller that they hold: absent; 12 that hold both; 2 released, payload alone; 2 voided unseen, caller alone;
     * 2 voided, both. */
    ck_assert_int_eq(life.count, 1 + 12 * 4 + 2 * 2 + 2 * 2 + 2 * 4);
}
END_TEST

START_TEST(a_difference_between_what_is_written_and_the_code_is_noticed)
{
    read_file();
    ask_code();
    static const char right[] = "decision: unknown, same: outcome-unknown",
                      wrong[] = "decision: unknown, same: forward";
    char *fact = bsearch(right, coded.text, coded.count, FACT_BYTES, compare);
    ck_assert_ptr_nonnull(fact);
    (void) snprintf(fact, FACT_BYTES, "%s", wrong);
    facts_close(&coded);
    ck_assert_uint_eq(missing("planted, written", &coded, &written, "decision"), 1);
    ck_assert_uint_eq(missing("planted, code", &written, &coded, "decision"), 1);
    ck_assert_uint_eq(missing("planted, code", &written, &coded, "record"), 0);
    fflush(stdout);
}
END_TEST

SUITE(life)
{
    Suite *suite = suite_create("model/life");
    CASE_LOOP(suite, the_code_moves_a_record_and_a_request_as_it_is_written_down,
              sizeof(sections) / sizeof(sections[0]));
    CASE(suite, every_situation_of_a_record_is_reached_and_nothing_in_its_past_matters);
    CASE(suite, a_difference_between_what_is_written_and_the_code_is_noticed);
    return suite;
}
