/* Which name is offered for a misspelt one. */
#include "server/config/settings.h"
#include "tests/support/suite.h"

static const char *const names[] = { "listen",       "ttl", "tombstone_ttl", "body_max", "connect_timeout",
                                     "hard_timeout", NULL };

static const struct {
    const char *word, *nearest;
} rows[] = {
    { "listen", "listen" },
    { "lisen", "listen" },      /* one missing */
    { "lissten", "listen" },    /* one too many */
    { "lister", "listen" },     /* two of six wrong: just near */
    { "lisetn", "listen" },     /* neighbours swapped: one slip */
    { "Listen", "listen" },     /* case is free */
    { "body-max", "body_max" }, /* so is the dash */
    { "BODY-MX", "body_max" },
    { "tll", "ttl" },
    { "conect_timeout", "connect_timeout" },
    { "hart_timeout", "hard_timeout" },
    { "tombstonettl", "tombstone_ttl" },
    { "xyz", NULL },
    { "port", NULL },
    { "tx", NULL }, /* two of three wrong */
    { "", NULL },
    { "a", NULL },
    { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL },
};

START_TEST(the_nearest_name_is_offered_only_when_it_is_near)
{
    const char *got = nearest_name(view_of(rows[_i].word), names);
    if (rows[_i].nearest == NULL) {
        ck_assert_msg(got == NULL, "%s: %s", rows[_i].word, got);
    } else {
        ck_assert_msg(got != NULL, "%s: none", rows[_i].word);
        ck_assert_str_eq(got, rows[_i].nearest);
    }
}
END_TEST

START_TEST(of_two_near_names_the_nearer_wins)
{
    const char *const close[] = { "running_mix", "running_max", "running_may", NULL };
    ck_assert_str_eq(nearest_name(VIEW("runing_max"), close), "running_max");
}
END_TEST

START_TEST(no_names_give_none)
{
    const char *const none[] = { NULL };
    ck_assert_ptr_eq(nearest_name(VIEW("listen"), none), NULL);
}
END_TEST

SUITE(nearest)
{
    Suite *suite = suite_create("config/nearest");
    CASE_LOOP(suite, the_nearest_name_is_offered_only_when_it_is_near, sizeof(rows) / sizeof(rows[0]));
    CASE(suite, of_two_near_names_the_nearer_wins);
    CASE(suite, no_names_give_none);
    return suite;
}
