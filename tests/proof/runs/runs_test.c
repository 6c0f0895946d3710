/* runs_test.c - the runs in their full length: the program proof-runs (`make proof-runs`). Their short forms are in the group integration. */
#include "tests/proof/runs/runs.h"
#include "tests/support/suite.h"

/* SOAK_MINUTES lengthens one test (soak.c). */
static int soak_timeout_s(void)
{
    const char *minutes = getenv("SOAK_MINUTES");
    return 300 + (minutes != NULL ? 60 * (int) strtoul(minutes, NULL, 10) : 0);
}

START_TEST(nothing_is_lost_or_done_twice_over_200_kills)
{
    run_kill9(200);
}
END_TEST

START_TEST(each_crash_point_leaves_what_it_must_20_times)
{
    run_crash_points(20);
}
END_TEST

START_TEST(a_handler_killed_in_its_answer_is_unknown_for_ever)
{
    run_killed_handler(40);
}
END_TEST

START_TEST(a_client_that_leaves_and_comes_back_finds_its_command_done_once)
{
    run_client_gone(25);
}
END_TEST

START_TEST(a_handler_slower_than_the_deadline_is_unknown_and_not_asked_again)
{
    run_slow_handler(20);
}
END_TEST

START_TEST(a_drain_finishes_100_executions_and_20_waiters)
{
    run_drain(100, 20);
}
END_TEST

START_TEST(overload_is_refused_at_once_and_work_goes_on)
{
    run_overload(5);
}
END_TEST

START_TEST(a_tenant_that_floods_with_keys_gets_its_quota_and_the_others_hardly_notice)
{
    run_flood(72, true);
}
END_TEST

START_TEST(a_server_that_stood_still_beyond_a_deadline_does_nothing_twice)
{
    run_paused_server(40, 6000);
}
END_TEST

START_TEST(a_slow_crowd_is_closed_in_time_and_everybody_else_is_served)
{
    run_slow_peers(400, 8, 24);
}
END_TEST

START_TEST(a_copy_made_under_load_is_whole_and_is_refused_where_newer_keys_are_remembered)
{
    run_backup(8);
}
END_TEST

START_TEST(mixed_faults_life_after_life_lose_nothing_and_nothing_grows)
{
    run_soak(4, 30, true);
}
END_TEST

/* What measures no time stands still for most of its own, and may run beside other work. */
SUITE(lives)
{
    Suite *suite = suite_create("proof/lives");
    CASE_TIMEOUT(suite, nothing_is_lost_or_done_twice_over_200_kills, 300);
    CASE_TIMEOUT(suite, each_crash_point_leaves_what_it_must_20_times, 300);
    CASE(suite, a_handler_killed_in_its_answer_is_unknown_for_ever);
    CASE(suite, a_client_that_leaves_and_comes_back_finds_its_command_done_once);
    CASE(suite, a_handler_slower_than_the_deadline_is_unknown_and_not_asked_again);
    CASE(suite, a_drain_finishes_100_executions_and_20_waiters);
    CASE(suite, a_server_that_stood_still_beyond_a_deadline_does_nothing_twice);
    CASE(suite, a_copy_made_under_load_is_whole_and_is_refused_where_newer_keys_are_remembered);
    suite_add_case(suite, mixed_faults_life_after_life_lose_nothing_and_nothing_grows,
                   "mixed_faults_life_after_life_lose_nothing_and_nothing_grows", 0, 1, soak_timeout_s());
    return suite;
}

/* What measures times has the machine for itself: the part `loads` of tools/run-proof. */
SUITE(loads)
{
    Suite *suite = suite_create("proof/loads");
    CASE_TIMEOUT(suite, overload_is_refused_at_once_and_work_goes_on, 120);
    CASE_TIMEOUT(suite, a_tenant_that_floods_with_keys_gets_its_quota_and_the_others_hardly_notice, 120);
    CASE(suite, a_slow_crowd_is_closed_in_time_and_everybody_else_is_served);
    return suite;
}
