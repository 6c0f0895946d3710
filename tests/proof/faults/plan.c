/* plan.c - see plan.h. */
#include "tests/proof/faults/plan.h"

#include "tests/support/daemon.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct plan *plan_make(void)
{
    char path[700];
    (void) snprintf(path, sizeof path, "%s/plan", daemon_folder());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, sizeof(struct plan)), 0);
    struct plan *plan = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert(plan != MAP_FAILED);
    close(fd);
    setenv(PLAN_FILE, path, 1);
    return plan;
}

void plan_store(const char *folder)
{
    setenv(PLAN_STORE, folder, 1);
}

void plan_arm(struct plan *plan, enum plan_operation operation, unsigned nth, int code, int lasting, int half)
{
    plan_disarm(plan);
    plan->nth = nth;
    plan->code = code;
    plan->lasting = lasting != 0;
    plan->half = half != 0;
    plan->count = plan->hits = 0;
    __atomic_store_n(&plan->operation, operation, __ATOMIC_RELEASE);
}

void plan_disarm(struct plan *plan)
{
    __atomic_store_n(&plan->operation, PLAN_NONE, __ATOMIC_RELEASE);
}

void plan_end(void)
{
    unsetenv(PLAN_FILE);
    unsetenv(PLAN_STORE);
}
