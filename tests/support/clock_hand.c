/* clock_hand.c - see clock_hand.h. */
#include "tests/support/clock_hand.h"

#include "tests/support/daemon.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

void clock_hand_make(struct clock_hand *hand, const char *wall)
{
    static int count;
    (void) snprintf(hand->path, sizeof hand->path, "%s/clock-%d", daemon_folder(), ++count);
    int fd = open(hand->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, sizeof *hand->clock), 0);
    hand->clock = mmap(NULL, sizeof *hand->clock, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(hand->clock, MAP_FAILED);
    (void) close(fd);
    clock_hand_set_wall(hand, wall);
    clock_hand_set_monotonic(hand, MOVED_HOUR);
}

void clock_hand_set_wall(struct clock_hand *hand, const char *wall)
{
    struct tm tm = { 0 };
    const char *rest = strptime(wall, "%Y-%m-%dT%H:%M:%SZ", &tm);
    ck_assert_msg(rest != NULL && *rest == '\0', "%s is no time of the form 2030-01-01T00:00:00Z", wall);
    __atomic_store_n(&hand->clock->wall_ms, (int64_t) timegm(&tm) * 1000, __ATOMIC_RELEASE);
}

void clock_hand_set_monotonic(struct clock_hand *hand, int64_t monotonic_ms)
{
    __atomic_store_n(&hand->clock->monotonic_ms, monotonic_ms, __ATOMIC_RELEASE);
}

void clock_hand_step_wall(struct clock_hand *hand, int64_t ms)
{
    (void) __atomic_add_fetch(&hand->clock->wall_ms, ms, __ATOMIC_ACQ_REL);
}

void clock_hand_pass(struct clock_hand *hand, int64_t ms)
{
    clock_hand_step_wall(hand, ms);
    (void) __atomic_add_fetch(&hand->clock->monotonic_ms, ms, __ATOMIC_ACQ_REL);
}
