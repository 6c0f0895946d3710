/* waited_hunt_test.c - the hunt for a lost wake-up: two loops in threads of their own, on each of them a few actors who all want the same key, one after
 * the other. One of them executes, the others wait, until the key is done for good; then all go on to the next.
 *
 *       .--- released, woken ---.             claimed: a few look-ups of nothing, so that time passes, then its outcome
 *       v                       |
 *     CLAIM --- in progress --> WAIT --- woken --> LOOK_UP or CLAIM
 *       `------ answered -----> next key
 *
 * Held against it at every step: who waits is woken once, by the end of that very execution, not before its outcome was handed in; and no loop is
 * told of an end that nobody on it waits for. A wake-up that is lost leaves the test hanging. */
#include "server/store/worker.h"
#include "tests/store/store_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

enum { LOOPS = 2, ACTORS = 6, ROUNDS = 300, KEY_BYTES = 16, ANSWER_BYTES = 32 };

enum doing { CLAIMING, LOOKING, DAWDLING, FINISHING };

struct player {
    pthread_t thread;
    struct loop *loop;
    struct store_desk *desk;
    struct suite_random random;
    struct list waiting; /* struct actor */
    unsigned playing;
    unsigned long waits, wakes, told, executions, released;
};

struct actor {
    struct store_task task;
    struct list_node node;
    struct player *player;
    enum doing doing;
    unsigned round, dawdle;
    uint32_t execution; /* waits for the end of it */
    struct store_finish finish;
    char key[KEY_BYTES], answer[ANSWER_BYTES];
};

static struct player players[LOOPS];
static struct actor actors[LOOPS][ACTORS];
static atomic_uint handed_in[ROUNDS]; /* the newest execution of the key whose outcome was handed in */

static void must(bool held, const char *rule, const struct actor *actor)
{
    if (!held) {
        FIGURE("store: hunt, broken: %s; key %s, execution %u", rule, actor != NULL ? actor->key : "?",
               actor != NULL ? (unsigned) actor->execution : 0);
        abort();
    }
}

static void actor_submit(struct actor *actor, enum doing doing, enum store_task_kind kind, const char *key)
{
    struct store_task *task = &actor->task;
    void (*done)(struct store_task *) = task->done;
    fixture_found_free(&task->found);
    *task = (struct store_task){ .kind = kind, .home = actor->player->loop, .done = done };
    task->claim = fixture_claim(key, 1, 0);
    task->claim.may_wait = doing != DAWDLING;
    actor->doing = doing;
    if (doing == FINISHING) {
        task->finish = actor->finish;
        task->answer = (struct store_answer){ 503, VIEW("X: y\r\n"), view_of(actor->answer), true };
        atomic_store(&handed_in[actor->round], actor->finish.execution);
    }
    must(store_desk_submit(actor->player->desk, task), "a task was refused", actor);
}

static void actor_claim(struct actor *actor)
{
    (void) snprintf(actor->key, sizeof actor->key, "key-%u", actor->round);
    actor_submit(actor, CLAIMING, STORE_TASK_CLAIM, actor->key);
}

static void actor_next(struct actor *actor)
{
    if (++actor->round < ROUNDS) {
        actor_claim(actor);
        return;
    }
    fixture_found_free(&actor->task.found);
    if (--actor->player->playing == 0) {
        loop_stop(actor->player->loop);
    }
}

static void actor_wait(struct actor *actor)
{
    must(actor->task.waited, "in progress, and nobody will tell", actor);
    actor->execution = actor->task.found.record.execution;
    actor->player->waits++;
    list_append(&actor->player->waiting, &actor->node);
}

static void actor_execute(struct actor *actor)
{
    struct player *player = actor->player;
    unsigned chance = suite_random_below(&player->random, 8);
    enum outcome_kind kind = chance < 5 ? OUTCOME_NOT_EXECUTED : chance < 7 ? OUTCOME_COMPLETED : OUTCOME_UNKNOWN;
    player->executions++;
    player->released += kind == OUTCOME_NOT_EXECUTED ? 1 : 0;
    actor->execution = actor->task.found.record.execution;
    actor->finish = fixture_finish(actor->key, &actor->task.found, kind);
    (void) snprintf(actor->answer, sizeof actor->answer, "%s/%u", actor->key, (unsigned) actor->execution);
    actor->dawdle = suite_random_below(&player->random, 4);
    if (actor->dawdle > 0) {
        actor_submit(actor, DAWDLING, STORE_TASK_LOOK_UP, "nothing");
    } else {
        actor_submit(actor, FINISHING, STORE_TASK_FINISH, actor->key);
    }
}

static void actor_found(struct actor *actor)
{
    const struct store_found *found = &actor->task.found;
    switch (record_state_at(&found->record, found->now_ms)) {
    case RECORD_IN_PROGRESS:
        if (found->claimed) {
            actor_execute(actor);
        } else {
            actor_wait(actor);
        }
        return;
    case RECORD_RELEASED:
        must(actor->doing == LOOKING, "a released command was not claimed", actor);
        actor_claim(actor);
        return;
    default:
        actor_next(actor);
    }
}

static void actor_done(struct store_task *task)
{
    struct actor *actor = (struct actor *) (void *) ((char *) task - offsetof(struct actor, task));
    must(task->result == STORE_OK, store_result_name(task->result), actor);
    switch (actor->doing) {
    case CLAIMING:
    case LOOKING:
        actor_found(actor);
        return;
    case DAWDLING:
        if (--actor->dawdle > 0) {
            actor_submit(actor, DAWDLING, STORE_TASK_LOOK_UP, "nothing");
        } else {
            actor_submit(actor, FINISHING, STORE_TASK_FINISH, actor->key);
        }
        return;
    case FINISHING:
        if (actor->finish.outcome.kind == OUTCOME_NOT_EXECUTED) {
            actor_claim(actor);
        } else {
            actor_next(actor);
        }
        return;
    }
}

static void actor_wake(struct actor *actor, const struct store_ended *ended)
{
    char answer[ANSWER_BYTES];
    must(ended->execution == actor->execution, "woken by another execution", actor);
    must(atomic_load(&handed_in[actor->round]) >= actor->execution, "woken before the end", actor);
    (void) snprintf(answer, sizeof answer, "%s/%u", actor->key, (unsigned) actor->execution);
    must(ended->outcome != OUTCOME_NOT_EXECUTED || view_equal(ended->answer.body, view_of(answer)),
         "the answer of another execution", actor);
    actor->player->wakes++;
    if (suite_random_below(&actor->player->random, 2) == 0) {
        actor_submit(actor, LOOKING, STORE_TASK_LOOK_UP, actor->key);
    } else {
        actor_claim(actor);
    }
}

static void player_ended(void *context, const struct store_ended *ended)
{
    struct player *player = context;
    struct list woken;
    list_init(&woken);
    for (struct list_node *node = player->waiting.head.next, *next; node != &player->waiting.head; node = next) {
        next = node->next;
        if (LIST_ITEM(node, struct actor, node)->task.key_hash == ended->key_hash) {
            list_remove(&player->waiting, node);
            list_append(&woken, node);
        }
    }
    player->told++;
    must(woken.count > 0, "told of an end that nobody waits for", NULL);
    for (struct list_node *node; (node = list_take_first(&woken)) != NULL;) {
        actor_wake(LIST_ITEM(node, struct actor, node), ended);
    }
}

static void *player_main(void *context)
{
    struct player *player = context;
    for (int i = 0; i < ACTORS; i++) {
        actor_claim(&actors[player - players][i]);
    }
    loop_run(player->loop);
    return NULL;
}

static void hunt(struct store *store)
{
    struct store_worker_options options = {
        .claims_max = 1000, .reads_max = 1000, .sweep_batch = 10, .sweep_every_ms = 3600000
    };
    struct store_worker *worker = store_worker_start(store, &options);
    unsigned seed = suite_seed();
    unsigned long waits = 0, wakes = 0, told = 0, executions = 0, released = 0;
    FIGURE("store: hunt for a lost wake-up, seed=%u", seed);
    for (unsigned i = 0; i < LOOPS; i++) {
        players[i] = (struct player){ .loop = loop_new(), .playing = ACTORS };
        players[i].desk = store_desk_open(worker, players[i].loop, player_ended, &players[i]);
        list_init(&players[i].waiting);
        suite_random_start(&players[i].random, seed + i);
        for (int n = 0; n < ACTORS; n++) {
            actors[i][n] = (struct actor){ .player = &players[i], .task = { .done = actor_done } };
        }
    }
    for (int i = 0; i < LOOPS; i++) {
        ck_assert_int_eq(pthread_create(&players[i].thread, NULL, player_main, &players[i]), 0);
    }
    for (int i = 0; i < LOOPS; i++) {
        ck_assert_int_eq(pthread_join(players[i].thread, NULL), 0);
    }
    store_worker_stop(worker);
    for (int i = 0; i < LOOPS; i++) {
        loop_free(players[i].loop);
        store_desk_close(players[i].desk);
        waits += players[i].waits;
        wakes += players[i].wakes;
        told += players[i].told;
        executions += players[i].executions;
        released += players[i].released;
    }
    FIGURE("store: hunt, %d keys, %lu executions (%lu released), %lu waits, %lu wake-ups by %lu messages", ROUNDS,
           executions, released, waits, wakes, told);
    ck_assert_uint_eq(waits, wakes);
    ck_assert_uint_eq(executions - released, ROUNDS);
    ck_assert_uint_gt(waits, ROUNDS);
}

START_TEST(every_waiter_is_woken_once_and_by_the_end_of_the_execution_it_waits_for)
{
    struct store_options options = fixture_options("memory");
    hunt(store_open_memory(&options));
}
END_TEST

START_TEST(so_it_is_when_every_batch_takes_the_time_of_a_database)
{
    char directory[64], path[80];
    fixture_directory(directory);
    (void) snprintf(path, sizeof path, "%s/store.db", directory);
    struct store_options options = fixture_options(path);
    hunt(fixture_open(&options));
    fixture_remove(directory);
}
END_TEST

SUITE(store_waited_hunt)
{
    Suite *suite = suite_create("store/waited_hunt");
    CASE(suite, every_waiter_is_woken_once_and_by_the_end_of_the_execution_it_waits_for);
    CASE(suite, so_it_is_when_every_batch_takes_the_time_of_a_database);
    return suite;
}
