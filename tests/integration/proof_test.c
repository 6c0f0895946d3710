/* proof_test.c - the short forms of the runs in tests/proof/runs. */
#include "tests/proof/runs/runs.h"
#include "tests/support/suite.h"

START_TEST(nothing_is_lost_or_done_twice_over_10_kills)
{
    run_kill9(10);
}
END_TEST

START_TEST(each_crash_point_leaves_what_it_must)
{
    run_crash_points(1);
}
END_TEST

START_TEST(what_a_stopped_killed_or_left_side_had_begun_is_done_once)
{
    run_killed_handler(4);
    run_client_gone(2);
    run_paused_server(4, 500);
}
END_TEST

START_TEST(a_tenant_that_floods_with_keys_gets_its_quota_and_the_others_are_never_refused)
{
    run_flood(4, false);
}
END_TEST

START_TEST(a_slow_crowd_is_closed_in_time_and_everybody_else_is_served)
{
    run_slow_peers(40, 2, 4);
}
END_TEST

START_TEST(a_copy_made_under_load_is_whole_and_is_refused_where_newer_keys_are_remembered)
{
    run_backup(2);
}
END_TEST

START_TEST(mixed_faults_life_after_life_lose_nothing)
{
    run_soak(1, 4, false);
}
END_TEST

SUITE(proof)
{
    Suite *suite = suite_create("integration/proof");
    CASE(suite, nothing_is_lost_or_done_twice_over_10_kills);
    CASE(suite, each_crash_point_leaves_what_it_must);
    CASE(suite, what_a_stopped_killed_or_left_side_had_begun_is_done_once);
    CASE(suite, a_tenant_that_floods_with_keys_gets_its_quota_and_the_others_are_never_refused);
    CASE(suite, a_slow_crowd_is_closed_in_time_and_everybody_else_is_served);
    CASE(suite, a_copy_made_under_load_is_whole_and_is_refused_where_newer_keys_are_remembered);
    CASE(suite, mixed_faults_life_after_life_lose_nothing);
    return suite;
}
