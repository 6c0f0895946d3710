/* suite.c - the main() of every test program. */
#include "tests/support/suite.h"

#include <time.h>
#include <unistd.h>

enum { SUITES_MAX = 256 };

static Suite *(*makers[SUITES_MAX])(void);
static int maker_count;

void suite_register(Suite *(*make)(void) )
{
    if (maker_count == SUITES_MAX) {
        abort();
    }
    makers[maker_count++] = make;
}

void suite_add_case(Suite *suite, const TTest *test, const char *name, int start, int end, int timeout_s)
{
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, timeout_s);
    _tcase_add_test(tcase, test, 0, 0, start, end);
    suite_add_tcase(suite, tcase);
}

unsigned suite_seed(void)
{
    const char *given = getenv("TEST_SEED");
    if (given != NULL) {
        return (unsigned) strtoul(given, NULL, 10);
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned) (now.tv_nsec ^ (now.tv_sec << 10) ^ getpid());
}

void suite_random_start(struct suite_random *random, unsigned seed)
{
    random->state = 0x9E3779B97F4A7C15ULL ^ ((unsigned long long) seed << 1 | 1);
    for (int i = 0; i < 8; i++) {
        (void) suite_random_next(random);
    }
}

unsigned suite_random_next(struct suite_random *random)
{
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return (unsigned) (random->state >> 32);
}

unsigned suite_random_below(struct suite_random *random, unsigned bound)
{
    return suite_random_next(random) % bound;
}

const char *suite_out(void)
{
    const char *out = getenv("TEST_OUT");
    return out != NULL ? out : "build";
}

int main(void)
{
    SRunner *runner = srunner_create(NULL);
    for (int i = 0; i < maker_count; i++) {
        srunner_add_suite(runner, makers[i]());
    }
    srunner_run_all(runner, CK_NORMAL);
    int run = srunner_ntests_run(runner);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    fflush(stdout);
    printf("@count %d %d\n", run - failed, failed);
    fflush(stdout);
    return failed == 0 && run > 0 ? 0 : 1;
}
