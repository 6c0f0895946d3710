/* Several at once: processes and threads that want the same key, holders that are killed, and a walk in the midst of it. */
#include "tests/client/journal_lab.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONTENDERS = 3, ROUNDS = 400 };

/* Seen by all processes. */
struct shared {
    atomic_int holders, ready;
    atomic_uint held, locked, created, existed, walked, overlaps, wrong;
};

static struct shared *shared_new(void)
{
    void *memory = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    return memory;
}

static struct journal *open_own(const char *path)
{
    char message[512];
    struct journal *journal = journal_directory_open(path, message, sizeof(message));
    if (journal == NULL) {
        (void) fprintf(stderr, "%s\n", message);
        abort();
    }
    return journal;
}

/* While it holds the entry: nobody else may. Moves it on by one state, so that files are replaced and moved all the time. */
static void hold(struct shared *shared, struct journal *journal, struct journal_entry *entry, unsigned round)
{
    struct journal_record ended = journal_lab_ended("k");
    ended.outcome = NONBIS_NOT_SENT;
    if (atomic_fetch_add(&shared->holders, 1) != 0) {
        atomic_fetch_add(&shared->overlaps, 1);
    }
    atomic_fetch_add(&shared->held, 1);
    int result = round % 3 == 0   ? journal->mark_sent(journal, entry)
                 : round % 3 == 1 ? journal->mark_ended(journal, entry, &ended, false)
                                  : journal->mark_ended(journal, entry, &ended, true);
    if (result != NONBIS_OK) {
        atomic_fetch_add(&shared->wrong, 1);
    }
    atomic_fetch_sub(&shared->holders, 1);
    journal->close(journal, entry);
}

static void contend(struct shared *shared, struct journal *journal, unsigned round)
{
    struct journal_record made = journal_lab_record("k");
    struct journal_entry *entry = NULL;
    const struct journal_record *record = NULL;
    enum journal_state state = JOURNAL_NEW;
    int result = journal->create(journal, &made, &entry);
    if (result == NONBIS_OK) {
        atomic_fetch_add(&shared->created, 1);
        hold(shared, journal, entry, round);
        return;
    }
    if (result == NONBIS_ERROR_EXISTS) {
        atomic_fetch_add(&shared->existed, 1);
        result = journal->open(journal, "k", &entry, &record, &state);
    }
    if (result == NONBIS_OK) {
        hold(shared, journal, entry, round);
    } else if (result == NONBIS_ERROR_LOCKED) {
        atomic_fetch_add(&shared->locked, 1);
    } else {
        (void) fprintf(stderr, "%s\n", journal->message(journal));
        atomic_fetch_add(&shared->wrong, 1);
    }
}

START_TEST(processes_that_want_one_key_hold_it_one_at_a_time)
{
    struct journal_lab lab;
    struct shared *shared = shared_new();
    pid_t children[CONTENDERS];
    journal_lab_parent(&lab);
    for (int i = 0; i < CONTENDERS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            atomic_fetch_add(&shared->ready, 1);
            while (atomic_load(&shared->ready) < CONTENDERS) {
            }
            struct journal *journal = open_own(lab.path); /* making the directory is contended too */
            for (unsigned round = 0; round < ROUNDS; round++) {
                contend(shared, journal, round + (unsigned) i);
            }
            journal->free(journal);
            _exit(0);
        }
    }
    for (int i = 0; i < CONTENDERS; i++) {
        int status = 0;
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    FIGURE("journal: %d processes, %u times held, %u locked, %u created, %u existed", CONTENDERS, shared->held,
           shared->locked, shared->created, shared->existed);
    ck_assert_uint_eq(shared->overlaps, 0);
    ck_assert_uint_eq(shared->wrong, 0);
    ck_assert_uint_eq(shared->held + shared->locked, CONTENDERS * ROUNDS);
    ck_assert_uint_gt(shared->locked, 0);
    ck_assert_uint_gt(shared->created, 0);
    ck_assert_uint_gt(shared->existed, 0);
    ck_assert_uint_eq(journal_lab_count(&lab, "tmp"), 0);
    ck_assert_uint_eq(
        journal_lab_count(&lab, "new") + journal_lab_count(&lab, "sent") + journal_lab_count(&lab, "done"), 1);
    journal_lab_close(&lab);
    ck_assert_int_eq(munmap(shared, sizeof(*shared)), 0);
}
END_TEST

/* Of those who create one key at the same moment, one gets it. */
START_TEST(one_of_two_creators_wins)
{
    struct journal_lab lab;
    struct shared *shared = shared_new();
    journal_lab_open(&lab, NULL);
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            struct journal *journal = open_own(lab.path);
            for (int round = 0; round < ROUNDS; round++) {
                char key[32];
                struct journal_entry *entry = NULL;
                (void) snprintf(key, sizeof(key), "order/%d", round);
                struct journal_record made = journal_lab_record(key);
                atomic_fetch_add(&shared->ready, 1);
                while (atomic_load(&shared->ready) < 2 * (round + 1)) {
                }
                int result = journal->create(journal, &made, &entry);
                atomic_uint *count = result == NONBIS_OK             ? &shared->created
                                     : result == NONBIS_ERROR_EXISTS ? &shared->existed
                                     : result == NONBIS_ERROR_LOCKED ? &shared->locked
                                                                     : &shared->wrong;
                atomic_fetch_add(count, 1);
                journal->close(journal, entry);
            }
            journal->free(journal);
            _exit(0);
        }
    }
    for (int i = 0; i < 2; i++) {
        int status = 0;
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    FIGURE("journal: %d keys, created %u, existed %u, locked %u", ROUNDS, shared->created, shared->existed,
           shared->locked);
    ck_assert_uint_eq(shared->wrong, 0);
    ck_assert_uint_eq(shared->created, ROUNDS);
    ck_assert_uint_eq(shared->existed + shared->locked, ROUNDS);
    ck_assert_uint_eq(journal_lab_count(&lab, "new"), ROUNDS);
    journal_lab_close(&lab);
    ck_assert_int_eq(munmap(shared, sizeof(*shared)), 0);
}
END_TEST

START_TEST(a_lock_falls_with_its_process)
{
    struct journal_lab lab;
    struct journal_entry *entry = NULL;
    const struct journal_record *record = NULL;
    enum journal_state state = JOURNAL_NEW;
    int ready[2], status = 0;
    char byte = 0;
    journal_lab_open(&lab, NULL);
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct journal *journal = open_own(lab.path);
        struct journal_record made = journal_lab_record("k");
        if (journal->create(journal, &made, &entry) == NONBIS_OK && journal->mark_sent(journal, entry) == NONBIS_OK &&
            write(ready[1], "r", 1) == 1) {
            for (;;) {
                (void) pause();
            }
        }
        _exit(1);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(lab.journal->open(lab.journal, "k", &entry, &record, &state), NONBIS_ERROR_LOCKED);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(lab.journal->open(lab.journal, "k", &entry, &record, &state), NONBIS_OK);
    ck_assert_int_eq((int) state, JOURNAL_SENT);
    journal_lab_check(record, "k", false);
    lab.journal->close(lab.journal, entry);
    journal_lab_close(&lab);
}
END_TEST

/* What a program that we start inherits. */
START_TEST(a_lock_does_not_outlive_its_entry_in_a_program_that_was_started_meanwhile)
{
    struct journal_lab lab;
    struct journal_entry *entry = NULL;
    struct journal_record made = journal_lab_record("k");
    int hold_open[2], status = 0;
    journal_lab_open(&lab, NULL);
    ck_assert_int_eq(lab.journal->create(lab.journal, &made, &entry), NONBIS_OK);
    ck_assert_int_eq(pipe(hold_open), 0);
    int started[2];
    ck_assert_int_eq(pipe2(started, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        (void) dup2(hold_open[0], STDIN_FILENO);
        (void) close(hold_open[0]);
        (void) close(hold_open[1]);
        (void) execlp("cat", "cat", (char *) NULL);
        _exit(1);
    }
    char byte = 0;
    ck_assert_int_eq(close(started[1]), 0);
    ck_assert_int_eq(read(started[0], &byte, 1), 0); /* closed by exec */
    lab.journal->close(lab.journal, entry);
    ck_assert_int_eq(lab.journal->create(lab.journal, &made, &entry), NONBIS_ERROR_EXISTS);
    ck_assert_int_eq(close(hold_open[1]), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    journal_lab_close(&lab);
}
END_TEST

/* ---- threads ------------------------------------------------------------------------------------------------------ */

enum { THREADS = 4, THREAD_ROUNDS = 100 };

struct worker {
    struct journal *journal;
    struct shared *shared;
    unsigned number;
};

static int count_one(const struct nonbis_journal_entry *entry, void *arg)
{
    *(unsigned *) arg += entry->key[0] != '\0' ? 1 : 0;
    return 0;
}

/* One of its own, the common one, a look at all, a walk. */
static void *work(void *arg)
{
    const struct worker *worker = arg;
    struct journal *journal = worker->journal;
    for (unsigned round = 0; round < THREAD_ROUNDS; round++) {
        char key[32], missing[32], after[NONBIS_JOURNAL_NAME] = "";
        struct journal_entry *entry = NULL;
        const struct journal_record *record = NULL;
        enum journal_state state = JOURNAL_NEW;
        unsigned seen = 0;
        (void) snprintf(missing, sizeof(missing), "missing-%u", worker->number);
        (void) snprintf(key, sizeof(key), "own-%u-%u", worker->number, round % 8);
        struct journal_record made = journal_lab_record(key), ended = journal_lab_ended(key);
        ended.outcome = NONBIS_NOT_SENT; /* so that the next round may use the key again */
        if (journal->open(journal, missing, &entry, &record, &state) != NONBIS_ERROR_NOT_FOUND ||
            strstr(journal->message(journal), missing) == NULL) {
            atomic_fetch_add(&worker->shared->wrong, 1); /* the message is this thread's */
        }
        if (journal->create(journal, &made, &entry) != NONBIS_OK || journal->mark_sent(journal, entry) != NONBIS_OK ||
            journal->mark_ended(journal, entry, &ended, true) != NONBIS_OK) {
            /* A walk of another thread may hold it for a moment. */
            if (strstr(journal->message(journal), "works on") == NULL) {
                atomic_fetch_add(&worker->shared->wrong, 1);
            }
        }
        journal->close(journal, entry);
        contend(worker->shared, journal, round);
        if (round % 16 == worker->number && journal->each(journal, count_one, &seen) < 0) {
            atomic_fetch_add(&worker->shared->wrong, 1);
        }
        while (round % 16 == 8 + worker->number &&
               journal->open_next(journal, after, &entry, &record, &state) == NONBIS_OK) {
            atomic_fetch_add(&worker->shared->walked, 1);
            journal->close(journal, entry);
        }
    }
    return NULL;
}

START_TEST(threads_share_a_journal)
{
    struct journal_lab lab;
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    struct shared *shared = shared_new();
    journal_lab_open(&lab, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){ lab.journal, shared, i };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }
    FIGURE("journal: %d threads, %u times held, %u locked, %u walked", THREADS, shared->held, shared->locked,
           shared->walked);
    ck_assert_uint_eq(shared->wrong, 0);
    ck_assert_uint_eq(shared->overlaps, 0);
    ck_assert_uint_gt(shared->held, 0);
    ck_assert_uint_eq(journal_lab_count(&lab, "tmp"), 0);
    journal_lab_close(&lab);
    ck_assert_int_eq(munmap(shared, sizeof(*shared)), 0);
}
END_TEST

SUITE(journal_process)
{
    Suite *suite = suite_create("client/journal_process");
    CASE(suite, processes_that_want_one_key_hold_it_one_at_a_time);
    CASE(suite, one_of_two_creators_wins);
    CASE(suite, a_lock_falls_with_its_process);
    CASE(suite, a_lock_does_not_outlive_its_entry_in_a_program_that_was_started_meanwhile);
    CASE(suite, threads_share_a_journal);
    return suite;
}
