/* sync_hand.c - see sync_hand.h. */
#include "tests/support/sync_hand.h"

#include "tests/support/daemon.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SYNC_DEADLINE_S = 20 };

void sync_hand_make(struct sync_hand *hand)
{
    static int count;
    (void) snprintf(hand->path, sizeof hand->path, "%s/syncs-%d", daemon_folder(), ++count);
    int fd = open(hand->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, sizeof *hand->syncs), 0);
    hand->syncs = mmap(NULL, sizeof *hand->syncs, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(hand->syncs, MAP_FAILED);
    (void) close(fd);
    sync_hand_let_all(hand);
}

static void allow(struct sync_hand *hand, uint32_t number)
{
    __atomic_store_n(&hand->syncs->allowed, number, __ATOMIC_RELEASE);
    (void) syscall(SYS_futex, &hand->syncs->allowed, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void sync_hand_hold(struct sync_hand *hand)
{
    allow(hand, __atomic_load_n(&hand->syncs->arrived, __ATOMIC_ACQUIRE));
}

void sync_hand_let_one(struct sync_hand *hand)
{
    allow(hand, __atomic_load_n(&hand->syncs->allowed, __ATOMIC_ACQUIRE) + 1);
}

void sync_hand_let_all(struct sync_hand *hand)
{
    allow(hand, HELD_SYNC_ALL);
}

void sync_hand_expect(struct sync_hand *hand)
{
    uint32_t allowed = __atomic_load_n(&hand->syncs->allowed, __ATOMIC_ACQUIRE);
    const struct timespec deadline = { .tv_sec = (time_t) SYNC_DEADLINE_S * suite_slowness() };
    for (uint32_t arrived; (arrived = __atomic_load_n(&hand->syncs->arrived, __ATOMIC_ACQUIRE)) <= allowed;) {
        long code = syscall(SYS_futex, &hand->syncs->arrived, FUTEX_WAIT, arrived, &deadline, NULL, 0);
        ck_assert_msg(code == 0 || errno != ETIMEDOUT, "no sync began within %d s", SYNC_DEADLINE_S);
    }
}
