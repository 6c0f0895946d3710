/* waited_test.c - who waits for a running command and who is told when it ends (server/store/worker.h, waited.h). What comes to
 * the loops, and in which order, is what the tests are about. */
#include "tests/store/store_fixture.h"
#include "tests/store/waited_sides.h"

/* --- who waits --- */

START_TEST(whoever_finds_a_command_in_progress_waits_and_each_loop_is_told_of_its_end_once)
{
    sides_start_running();
    sides_gather();
    side_submit(side_make(1, A, STORE_TASK_CLAIM, "k"));
    side_submit(side_make(2, A, STORE_TASK_CLAIM, "k"));
    side_submit(side_make(3, B, STORE_TASK_LOOK_UP, "k"));
    struct store_task *by_id = side_make(4, B, STORE_TASK_LOOK_UP, "");
    by_id->look_up_id = true;
    side_submit(by_id);
    struct store_task *other = side_make(5, A, STORE_TASK_CLAIM, "other"),
                      *other_repeat = side_make(6, B, STORE_TASK_CLAIM, "other");
    memset(other->claim.command_id, 0xB0, COMMAND_ID_BYTES);
    side_submit(other);
    side_submit(other_repeat);
    sides_run();
    sides_check("A:done(1) A:done(2) A:done(5) B:done(6) B:done(3) B:done(4) ");
    for (int i = 1; i < 5; i++) {
        ck_assert(side_tasks[i].task.waited);
        ck_assert(side_tasks[i].task.key_hash == side_tasks[1].task.key_hash);
        ck_assert_uint_eq(side_tasks[i].task.found.record.execution, 1);
    }
    ck_assert_int_eq(side_tasks[1].task.found.decision.verdict, VERDICT_WAIT);
    ck_assert(other->found.claimed && !other->waited);
    ck_assert(other_repeat->waited); /* for what the same batch has begun */
    ck_assert(other_repeat->key_hash != side_tasks[1].task.key_hash);
    side_submit_finish(7, A, 0, OUTCOME_COMPLETED);
    sides_run();
    sides_check("A:ended(1,completed) A:done(7) B:ended(1,completed) ");
    ck_assert(sides_last_ended.key_hash == side_tasks[1].task.key_hash);
    side_submit_finish(8, B, 0, OUTCOME_COMPLETED); /* stale */
    side_submit_finish(9, A, 5, OUTCOME_UNKNOWN);
    sides_run();
    sides_check("A:done(9) B:ended(1,unknown) B:done(8) ");
    ck_assert(sides_last_ended.key_hash == other_repeat->key_hash);
    sides_stop();
}
END_TEST

enum way { BY_DESK, PAST_DESK, BY_DEAF_DESK };

static const struct rest_row {
    const char *what;
    enum store_task_kind kind;
    const char *key;
    bool may_wait;
    unsigned payload, who;
    int64_t later_ms;
    enum way way;
} rest_rows[] = {
    { "a claim that may not wait", STORE_TASK_CLAIM, "k", false, 1, 1, 0, BY_DESK },
    { "a claim with another payload", STORE_TASK_CLAIM, "k", true, 2, 1, 0, BY_DESK },
    { "a claim with another credential", STORE_TASK_CLAIM, "k", true, 1, 2, 0, BY_DESK },
    { "a claim of a new key", STORE_TASK_CLAIM, "new", true, 1, 1, 0, BY_DESK },
    { "a claim past the deadline", STORE_TASK_CLAIM, "k", true, 1, 1, FIXTURE_RUN_MS, BY_DESK },
    { "a claim that no desk collected", STORE_TASK_CLAIM, "k", true, 1, 1, 0, PAST_DESK },
    { "a claim by a desk that does not listen", STORE_TASK_CLAIM, "k", true, 1, 1, 0, BY_DEAF_DESK },
    { "a look-up that may not wait", STORE_TASK_LOOK_UP, "k", false, 1, 1, 0, BY_DESK },
    { "a look-up of a new key", STORE_TASK_LOOK_UP, "new", true, 1, 1, 0, BY_DESK },
    { "a look-up past the deadline", STORE_TASK_LOOK_UP, "k", true, 1, 1, FIXTURE_RUN_MS, BY_DESK },
    { "a look-up that no desk collected", STORE_TASK_LOOK_UP, "k", true, 1, 1, 0, PAST_DESK },
    { "a void", STORE_TASK_VOID, "k", true, 1, 1, 0, BY_DESK },
};
enum { REST_ROWS = sizeof rest_rows / sizeof rest_rows[0] };

START_TEST(nobody_else_waits_or_is_told)
{
    const struct rest_row *row = &rest_rows[_i];
    sides_start_running();
    struct store_desk *deaf = store_desk_open(sides_worker, sides[B].loop, NULL, NULL);
    sides_advance(row->later_ms);
    struct store_task *task = side_make(1, B, row->kind, row->key);
    struct store_claim claim = fixture_claim(side_tasks[1].key, row->payload, row->who);
    claim.may_wait = row->may_wait;
    task->claim = claim;
    if (row->way == BY_DESK) {
        side_submit(task);
    } else {
        sides[B].submitted++;
        ck_assert(row->way == PAST_DESK ? store_worker_submit(sides_worker, task) : store_desk_submit(deaf, task));
    }
    sides_run();
    sides_check("B:done(1) ");
    ck_assert_int_eq(task->result, STORE_OK);
    ck_assert_msg(!task->waited && task->key_hash == 0, "%s waits", row->what);
    side_submit_finish(2, A, 0, OUTCOME_COMPLETED);
    sides_run();
    sides_check("A:done(2) ");
    ck_assert_int_eq(side_tasks[2].task.result, STORE_OK);
    sides_stop();
    store_desk_close(deaf);
}
END_TEST

START_TEST(a_task_that_is_submitted_again_waits_no_more_when_the_command_has_ended)
{
    sides_start_running();
    struct store_task *task = side_make(1, B, STORE_TASK_LOOK_UP, "k");
    side_submit(task);
    sides_run();
    ck_assert(task->waited);
    side_submit_finish(2, A, 0, OUTCOME_COMPLETED);
    sides_run();
    side_submit(task);
    sides_run();
    sides_check("B:done(1) A:done(2) B:ended(1,completed) B:done(1) ");
    ck_assert(!task->waited);
    ck_assert(task->key_hash == 0);
    sides_stop();
}
END_TEST

/* --- what ends --- */

START_TEST(within_a_batch_the_end_is_told_first_and_a_wait_in_it_is_for_the_next_execution)
{
    sides_start_running();
    side_submit(side_make(1, B, STORE_TASK_CLAIM, "k"));
    sides_run();
    ck_assert(side_tasks[1].task.waited);
    sides_check("B:done(1) ");
    sides_gather();
    side_submit(side_make(2, B, STORE_TASK_LOOK_UP, "k"));
    side_submit(side_make(3, B, STORE_TASK_CLAIM, "k"));
    side_submit(side_make(4, A, STORE_TASK_CLAIM, "k"));
    side_submit_finish(5, B, 0, OUTCOME_NOT_EXECUTED);
    sides_run();
    sides_check("A:done(4) B:ended(1,released) B:done(5) B:done(3) B:done(2) ");
    ck_assert(side_tasks[4].task.found.claimed);
    ck_assert(side_tasks[3].task.waited);
    ck_assert(side_tasks[2].task.waited);
    ck_assert_uint_eq(side_tasks[2].task.found.record.execution, 2);
    side_submit_finish(6, A, 4, OUTCOME_COMPLETED);
    sides_run();
    sides_check("A:done(6) B:ended(2,completed) ");
    sides_stop();
}
END_TEST

START_TEST(a_void_and_a_stale_outcome_end_nothing)
{
    sides_start_running();
    side_submit(side_make(1, B, STORE_TASK_CLAIM, "k"));
    sides_run();
    side_submit(side_make(2, A, STORE_TASK_VOID, "k"));
    struct store_task *stale = side_make(3, A, STORE_TASK_FINISH, "k");
    stale->finish = fixture_finish(side_tasks[3].key, &side_tasks[0].task.found, OUTCOME_COMPLETED);
    stale->finish.execution = 2;
    side_submit(stale);
    sides_run();
    sides_check("B:done(1) A:done(3) A:done(2) ");
    ck_assert_int_eq(stale->result, STORE_STALE);
    ck_assert(!side_tasks[2].task.found.claimed);
    side_submit_finish(4, A, 0, OUTCOME_COMPLETED);
    sides_run();
    sides_check("A:done(4) B:ended(1,completed) ");
    sides_stop();
}
END_TEST

static const struct {
    enum outcome_kind kind;
    enum record_state after;
    const char *told;
} late_rows[] = {
    { OUTCOME_COMPLETED, RECORD_COMPLETED, "B:done(1) A:done(2) B:ended(1,completed) " },
    { OUTCOME_NOT_EXECUTED, RECORD_UNKNOWN,
      "B:done(1) A:done(2) B:ended(1,unknown) " }, /* and no answer that released it */
    { OUTCOME_UNKNOWN, RECORD_UNKNOWN, "B:done(1) A:done(2) B:ended(1,unknown) " },
};

START_TEST(an_outcome_after_the_deadline_wakes_who_began_to_wait_before)
{
    sides_start_running();
    side_submit(side_make(1, B, STORE_TASK_CLAIM, "k"));
    sides_run();
    sides_advance(FIXTURE_RUN_MS);
    struct store_task *task = side_make(2, A, STORE_TASK_FINISH, "k");
    task->finish = fixture_finish(side_tasks[2].key, &side_tasks[0].task.found, late_rows[_i].kind);
    task->answer = (struct store_answer){ .status = 503, .body = VIEW("busy") };
    side_submit(task);
    sides_run();
    ck_assert_int_eq(task->result, STORE_OK);
    ck_assert_int_eq(task->after.state, late_rows[_i].after);
    sides_check(late_rows[_i].told);
    ck_assert_int_eq(sides_last_ended.answer.status, 0);
    sides_stop();
}
END_TEST

/* --- what the waiters of a released command are told --- */

START_TEST(every_loop_gets_its_own_whole_copy_of_the_answer_of_a_released_command)
{
    sides_start_running();
    side_submit(side_make(1, A, STORE_TASK_CLAIM, "k"));
    side_submit(side_make(2, B, STORE_TASK_CLAIM, "k"));
    sides_run();
    sides_check("A:done(1) B:done(2) ");
    char fields[] = "Retry-After: 7\r\n", body[] = "busy";
    struct store_task *task = side_make(3, A, STORE_TASK_FINISH, "k");
    task->finish = fixture_finish(side_tasks[3].key, &side_tasks[0].task.found, OUTCOME_NOT_EXECUTED);
    task->answer = (struct store_answer){ 503, view_of(fields), view_of(body), true };
    side_submit(task);
    while (sides[A].done < sides[A].submitted) {
        (void) loop_run_once(sides[A].loop, true);
    }
    memset(fields, '-', sizeof fields - 1); /* done: its owner may do so, while B has not heard of it yet */
    memset(body, '-', sizeof body - 1);
    sides_run();
    sides_check("A:ended(1,released) [503 Retry-After: 7\r\nbusy kept=1] A:done(3) "
                "B:ended(1,released) [503 Retry-After: 7\r\nbusy kept=1] ");
    sides_stop();
}
END_TEST

static const struct {
    enum outcome_kind kind;
    const char *told;
} outcome_rows[] = {
    { OUTCOME_COMPLETED, "A:done(2) B:ended(1,completed) " },
    { OUTCOME_NOT_EXECUTED, "A:done(2) B:ended(1,released) [502  kept=0] " }, /* an answer without fields and body */
    { OUTCOME_UNKNOWN, "A:done(2) B:ended(1,unknown) " },
};

START_TEST(only_a_released_command_has_an_answer_to_tell)
{
    sides_start_running();
    side_submit(side_make(1, B, STORE_TASK_CLAIM, "k"));
    sides_run();
    struct store_task *task = side_make(2, A, STORE_TASK_FINISH, "k");
    task->finish = fixture_finish(side_tasks[2].key, &side_tasks[0].task.found, outcome_rows[_i].kind);
    bool released = outcome_rows[_i].kind == OUTCOME_NOT_EXECUTED;
    task->answer = (struct store_answer){ .status = 502, .body = released ? VIEW("") : VIEW("not for them") };
    side_submit(task);
    buf_clear(&sides_story);
    sides_run();
    sides_check(outcome_rows[_i].told);
    ck_assert_int_eq(sides_last_ended.answer.status, released ? 502 : 0);
    ck_assert_uint_eq(sides_last_ended.answer.body.len, 0);
    sides_stop();
}
END_TEST

/* For the address sanitizer: what no loop fetched any more is freed with its desk. */
START_TEST(what_was_told_to_a_loop_that_has_ended_is_freed)
{
    sides_start_running();
    side_submit(side_make(1, A, STORE_TASK_CLAIM, "k"));
    side_submit(side_make(2, B, STORE_TASK_CLAIM, "k"));
    sides_run();
    struct store_task *task = side_make(3, A, STORE_TASK_FINISH, "k");
    task->finish = fixture_finish(side_tasks[3].key, &side_tasks[0].task.found, OUTCOME_NOT_EXECUTED);
    task->answer = (struct store_answer){ 503, VIEW("X-A: b\r\n"), VIEW("body"), true };
    buf_clear(&sides_story);
    ck_assert(store_worker_submit(sides_worker, task));
    sides_stop();
    ck_assert_int_eq(task->result, STORE_OK);
}
END_TEST

/* --- batches that fail --- */

static const struct failure_row {
    const char *what;
    enum store_fault_point first, second; /* the second one: STORE_FULL at that commit, or STORE_FAULT_COUNT */
    enum store_result fault, look_up;
    bool with_outcome;
    const char *told; /* at the end of the command afterwards */
} failure_rows[] = {
    { "commit fails", STORE_FAULT_COMMIT, STORE_FAULT_COUNT, STORE_FAILED, STORE_FAILED, false, "A:done(5) " },
    { "a claim fails, the outcome is saved", STORE_FAULT_CLAIM, STORE_FAULT_COUNT, STORE_FAILED, STORE_FAILED, true,
      "A:done(5) " },
    { "commit finds no room, then some", STORE_FAULT_COMMIT, STORE_FAULT_COUNT, STORE_FULL, STORE_OK, true,
      "A:done(5) B:ended(1,completed) " },
    { "a claim finds no room, nor does the commit: only reads", STORE_FAULT_CLAIM, STORE_FAULT_COMMIT, STORE_FULL,
      STORE_OK, true, "A:done(5) B:ended(1,completed) " },
    { "commit is uncertain", STORE_FAULT_COMMIT, STORE_FAULT_COUNT, STORE_UNCERTAIN, STORE_UNCERTAIN, false,
      "A:done(5) " },
};

START_TEST(a_batch_that_failed_takes_nobody_down_and_one_that_was_repeated_does_so_once)
{
    const struct failure_row *row = &failure_rows[_i];
    sides_start_running();
    struct store_task *other = side_make(1, A, STORE_TASK_CLAIM, "other");
    side_submit(other);
    sides_run();
    sides_gather();
    side_submit(side_make(2, B, STORE_TASK_LOOK_UP, "k"));
    side_submit(side_make(3, A, STORE_TASK_CLAIM, "new"));
    if (row->with_outcome) {
        side_submit_finish(4, A, 1, OUTCOME_COMPLETED);
    }
    /* The commit of the plug comes first. */
    store_fault_plant(sides_store, row->first, row->first == STORE_FAULT_COMMIT ? 2 : 1, row->fault, false);
    if (row->second != STORE_FAULT_COUNT) {
        store_fault_plant(sides_store, row->second, 2, STORE_FULL, false);
    }
    sides_run();
    ck_assert_msg(side_tasks[2].task.result == row->look_up, "%s: look-up %s", row->what,
                  store_result_name(side_tasks[2].task.result));
    ck_assert_msg(side_tasks[2].task.waited == (row->look_up == STORE_OK), "%s", row->what);
    buf_clear(&sides_story);
    side_submit_finish(5, A, 0, OUTCOME_COMPLETED);
    sides_run();
    sides_check(row->told);
    sides_stop();
}
END_TEST

static const struct {
    enum store_result fault, again;
    const char *told;
} lost_rows[] = {
    { STORE_FAILED, STORE_OK, "A:done(3) B:ended(1,completed) " },
    { STORE_UNCERTAIN, STORE_DOWN, "A:done(3) " },
};

START_TEST(an_outcome_that_was_not_recorded_wakes_nobody_until_it_is)
{
    sides_start_running();
    side_submit(side_make(1, B, STORE_TASK_CLAIM, "k"));
    sides_run();
    sides_check("B:done(1) ");
    sides_gather();
    side_submit_finish(2, A, 0, OUTCOME_COMPLETED);
    store_fault_plant(sides_store, STORE_FAULT_COMMIT, 2, lost_rows[_i].fault, true);
    sides_run();
    sides_check("A:done(2) ");
    ck_assert_int_eq(side_tasks[2].task.result, lost_rows[_i].fault);
    side_submit_finish(3, A, 0, OUTCOME_COMPLETED);
    sides_run();
    ck_assert_int_eq(side_tasks[3].task.result, lost_rows[_i].again);
    sides_check(lost_rows[_i].told);
    sides_stop();
}
END_TEST

START_TEST(a_key_that_never_ends_is_forgotten_when_nobody_can_wait_any_more)
{
    sides_start(1, 1); /* with a sweep each millisecond, so that the store thread turns */
    side_submit(side_make(0, A, STORE_TASK_CLAIM, "k"));
    side_submit(side_make(1, B, STORE_TASK_CLAIM, "k"));
    sides_run();
    struct store_worker_figures figures = { .waited_keys = 1 }; /* and since before the result came */
    while (figures.waited_keys != 0) {                          /* the case's time limit is the guard */
        store_worker_figures(sides_worker, &figures);
    }
    ck_assert(side_tasks[1].task.waited);
    side_submit_finish(2, A, 0, OUTCOME_COMPLETED);
    sides_run();
    sides_check("A:done(0) B:done(1) A:done(2) ");
    sides_stop();
}
END_TEST

SUITE(store_waited)
{
    Suite *suite = suite_create("store/waited");
    CASE(suite, whoever_finds_a_command_in_progress_waits_and_each_loop_is_told_of_its_end_once);
    CASE_LOOP(suite, nobody_else_waits_or_is_told, REST_ROWS);
    CASE(suite, a_task_that_is_submitted_again_waits_no_more_when_the_command_has_ended);
    CASE(suite, within_a_batch_the_end_is_told_first_and_a_wait_in_it_is_for_the_next_execution);
    CASE(suite, a_void_and_a_stale_outcome_end_nothing);
    CASE_LOOP(suite, an_outcome_after_the_deadline_wakes_who_began_to_wait_before,
              sizeof late_rows / sizeof late_rows[0]);
    CASE(suite, every_loop_gets_its_own_whole_copy_of_the_answer_of_a_released_command);
    CASE_LOOP(suite, only_a_released_command_has_an_answer_to_tell, sizeof outcome_rows / sizeof outcome_rows[0]);
    CASE(suite, what_was_told_to_a_loop_that_has_ended_is_freed);
    CASE_LOOP(suite, a_batch_that_failed_takes_nobody_down_and_one_that_was_repeated_does_so_once,
              sizeof failure_rows / sizeof failure_rows[0]);
    CASE_LOOP(suite, an_outcome_that_was_not_recorded_wakes_nobody_until_it_is, sizeof lost_rows / sizeof lost_rows[0]);
    CASE(suite, a_key_that_never_ends_is_forgotten_when_nobody_can_wait_any_more);
    return suite;
}
