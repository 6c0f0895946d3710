/* exposition_test.c - the reader that the tests of /metrics rely on, on pages that are wrong. */
#include "tests/support/exposition.h"
#include "tests/support/suite.h"

#define A "# HELP a A.\n# TYPE a gauge\n"
#define T "# HELP t T.\n# TYPE t histogram\n"
#define T_END "t_sum 3\nt_count 2\n"
static const struct {
    const char *page, *fault; /* how it begins; NULL: valid */
} pages[] = {
    { A "a 1\n", NULL },
    { A "a{x=\"\\\\ \\\" \\n\",y=\"\"} 0.5\na{x=\"\"} 1\n", NULL },
    { T "t_bucket{le=\"0.5\"} 1\nt_bucket{le=\"+Inf\"} 2\n" T_END, NULL },
    { A "a 1", "a line that does not end" },
    { A "\na 1\n", "a line that does not end" },
    { "a 1\n", "a sample without HELP and TYPE" },
    { "# HELP a A.\na 1\n", "a sample without HELP and TYPE" },
    { A "b 1\n", "a sample without HELP and TYPE" },
    { A "ab 1\n", "a sample of another family" },
    { A "a 1\n" A, "a family that comes twice" },
    { A "a 1\na 2\n", "a series that comes twice" },
    { A "a{x=\"1\"} 1\na{x=\"1\"} 1\n", "a series that comes twice" },
    { A "a{x=\"1\" 1\n", "labels that are not well-formed" },
    { A "a{x=\"\"\"} 1\n", "labels that are not well-formed" },
    { A "a{x=\"\\x\"} 1\n", "labels that are not well-formed" },
    { A "a x\n", "a value that is no number" },
    { A "a 1 2 3\n", "a value that is no number" },
    { "# HELP a A.\n# TYPE a counter\n", "counters, and they alone" },
    { "# HELP a_total A.\n# TYPE a_total gauge\n", "counters, and they alone" },
    { "# TYPE a gauge\n", "a TYPE that does not follow" },
    { "# a\n", "a comment that is neither" },
    { T "t_bucket{le=\"1\"} 2\nt_bucket{le=\"0.5\"} 2\n", "buckets that do not ascend" },
    { T "t_bucket{le=\"1\"} 2\nt_bucket{le=\"+Inf\"} 1\n", "buckets that do not ascend" },
    { T "t_bucket{le=\"+Inf\"} 3\n" T_END, "a count that is not that of the buckets" },
    { T "t_bucket{le=\"1\"} 2\n" T_END, "a histogram that is not whole" },
    { T "t_bucket{le=\"+Inf\"} 2\nt_count 2\n", "a histogram that is not whole" },
};

START_TEST(the_reader_of_these_tests_finds_what_is_wrong_with_a_page)
{
    const char *fault = exposition_fault(pages[_i].page);
    if (pages[_i].fault == NULL) {
        ck_assert_msg(fault == NULL, "%s", fault);
    } else {
        ck_assert_msg(fault != NULL && strncmp(fault, pages[_i].fault, strlen(pages[_i].fault)) == 0,
                      "found '%s', not '%s', in\n%s", fault != NULL ? fault : "nothing", pages[_i].fault,
                      pages[_i].page);
    }
}
END_TEST

SUITE(exposition)
{
    Suite *suite = suite_create("integration/exposition");
    CASE_LOOP(suite, the_reader_of_these_tests_finds_what_is_wrong_with_a_page, sizeof pages / sizeof pages[0]);
    return suite;
}
