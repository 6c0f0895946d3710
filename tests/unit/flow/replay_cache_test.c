/* replay_cache_test.c - answers in memory never differ from the store's (server/flow/replay_cache.h): by cases, and by a random life beside a store. */
#include "server/flow/replay_cache.h"
#include "tests/store/store_fixture.h"

static struct store *store;

static void start(void)
{
    struct store_options options = fixture_options("memory");
    store = store_open_memory(&options);
}

/* What the store says to `claim` now; the caller frees it. */
static struct store_found ask(const struct store_claim *claim)
{
    struct store_found found = { .row = 0 };
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_claim_key(store, claim, &found), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    return found;
}

static void finish(const struct store_finish *outcome)
{
    struct record after;
    ck_assert_int_eq(store_begin(store), STORE_OK);
    (void) store_finish_command(store, outcome, &after);
    ck_assert_int_eq(store_commit(store), STORE_OK);
}

static void void_key(const struct store_claim *claim)
{
    struct store_found found = { .row = 0 };
    ck_assert_int_eq(store_begin(store), STORE_OK);
    ck_assert_int_eq(store_void_key(store, claim, &fixture_retention, &found), STORE_OK);
    ck_assert_int_eq(store_commit(store), STORE_OK);
    fixture_found_free(&found);
}

/* A key with payload 1 of caller 1, completed with `body`, and kept after one repeat. */
static void keep_completed(struct replay_cache *cache, const char *key, struct view body)
{
    struct store_claim claim = fixture_claim(key, 1, 1);
    struct store_found found = ask(&claim);
    struct store_finish outcome = fixture_finish(key, &found, OUTCOME_COMPLETED);
    outcome.body = body;
    outcome.outcome.response_bytes = body.len;
    fixture_found_free(&found);
    finish(&outcome);
    found = ask(&claim);
    ck_assert_int_eq(found.decision.verdict, VERDICT_REPLAY);
    replay_cache_keep(cache, &claim, &found);
    fixture_found_free(&found);
}

static bool has(struct replay_cache *cache, const char *key)
{
    struct store_claim claim = fixture_claim(key, 1, 1);
    struct store_found found = { .row = 0 };
    bool there = replay_cache_find(cache, &claim, store_now(store), &found);
    fixture_found_free(&found);
    return there;
}

START_TEST(what_was_kept_is_replayed_to_the_same_caller_with_the_same_payload)
{
    start();
    struct replay_cache *cache = replay_cache_new(1 << 20);
    keep_completed(cache, "k", VIEW("the body"));
    struct store_claim claim = fixture_claim("k", 1, 1);
    struct store_found found = { .row = 0 };
    ck_assert(replay_cache_find(cache, &claim, store_now(store), &found));
    ck_assert_int_eq(found.decision.verdict, VERDICT_REPLAY);
    ck_assert(!found.claimed);
    ck_assert_int_eq(found.response->status, 201);
    ck_assert(view_equal(found.response->body, VIEW("the body")));
    ck_assert(view_equal(found.response->fields, VIEW("Content-Type: text/plain\r\n")));
    fixture_found_free(&found);
    replay_cache_free(cache);
    store_close(store);
}
END_TEST

START_TEST(another_payload_and_another_caller_are_refused_and_see_no_response)
{
    static const struct {
        unsigned payload, who, differs;
    } rows[] = { { 2, 1, 1U << FINGERPRINT_BODY }, { 1, 2, DIFFERS_CREDENTIALS }, { 2, 2, DIFFERS_CREDENTIALS } };
    start();
    struct replay_cache *cache = replay_cache_new(1 << 20);
    keep_completed(cache, "k", VIEW("secret"));
    struct store_claim claim = fixture_claim("k", rows[_i].payload, rows[_i].who);
    struct store_found found = { .row = 0 };
    ck_assert(replay_cache_find(cache, &claim, store_now(store), &found));
    ck_assert_int_eq(found.decision.verdict, VERDICT_KEY_REUSED);
    ck_assert_uint_eq(found.decision.differs, rows[_i].differs);
    ck_assert_ptr_null(found.response);
    replay_cache_free(cache);
    store_close(store);
}
END_TEST

START_TEST(another_tenant_or_key_is_not_found)
{
    static const struct {
        const char *tenant, *key;
    } rows[] = { { "u", "k" }, { "", "tk" }, { "tk", "" }, { "t", "K" }, { "t", "k " } };
    start();
    struct replay_cache *cache = replay_cache_new(1 << 20);
    keep_completed(cache, "k", VIEW("secret"));
    struct store_claim claim = fixture_claim(rows[_i].key, 1, 1);
    claim.tenant = view_of(rows[_i].tenant);
    struct store_found found = { .row = 7 };
    ck_assert(!replay_cache_find(cache, &claim, store_now(store), &found));
    ck_assert_int_eq(found.row, 7);
    replay_cache_free(cache);
    store_close(store);
}
END_TEST

START_TEST(at_the_end_of_its_time_it_is_gone_to_the_millisecond)
{
    start();
    struct replay_cache *cache = replay_cache_new(1 << 20);
    keep_completed(cache, "k", VIEW("x"));
    fixture_advance(FIXTURE_TTL_MS - 1);
    ck_assert(has(cache, "k"));
    fixture_advance(1);
    ck_assert(!has(cache, "k"));
    ck_assert_uint_eq(replay_cache_bytes(cache), 0);
    replay_cache_free(cache);
    store_close(store);
}
END_TEST

START_TEST(only_replays_are_kept)
{
    start();
    struct replay_cache *cache = replay_cache_new(1 << 20);
    struct store_claim claim = fixture_claim("k", 1, 1);
    struct store_found claimed = ask(&claim);
    replay_cache_keep(cache, &claim, &claimed);
    struct store_found running = ask(&claim);
    replay_cache_keep(cache, &claim, &running);
    struct store_finish outcome = fixture_finish("k", &claimed, OUTCOME_UNKNOWN);
    finish(&outcome);
    struct store_found unknown = ask(&claim);
    ck_assert_int_eq(unknown.decision.verdict, VERDICT_OUTCOME_UNKNOWN);
    replay_cache_keep(cache, &claim, &unknown);
    ck_assert_uint_eq(replay_cache_bytes(cache), 0);
    ck_assert(!has(cache, "k"));
    replay_cache_free(cache);
    store_close(store);
}
END_TEST

/* 64 KiB, and answers of 4,000 bytes: 8 KiB are the most for one, and about 15 have room. */
START_TEST(the_least_recently_used_answer_makes_room_and_the_bound_holds)
{
    enum { BOUND = 64 * 1024, ANSWERS = 40 };
    static char body[4000], large[9000];
    char key[16];
    start();
    struct replay_cache *cache = replay_cache_new(BOUND);
    for (int i = 0; i < ANSWERS; i++) {
        (void) snprintf(key, sizeof key, "k%d", i);
        keep_completed(cache, key, view_make(body, sizeof body));
        ck_assert_uint_le(replay_cache_bytes(cache), BOUND);
        ck_assert(has(cache, "k0")); /* is used, and stays */
    }
    ck_assert_uint_gt(replay_cache_bytes(cache), BOUND - 8000);
    ck_assert(!has(cache, "k1"));
    ck_assert(!has(cache, "k20"));
    ck_assert(has(cache, "k39"));
    ck_assert(has(cache, "k30"));
    keep_completed(cache, "large", view_make(large, sizeof large));
    ck_assert(!has(cache, "large"));
    ck_assert(has(cache, "k39"));
    replay_cache_free(cache);
    store_close(store);
}
END_TEST

START_TEST(without_bytes_there_is_no_cache)
{
    start();
    ck_assert_ptr_null(replay_cache_new(0));
    keep_completed(NULL, "k", VIEW("x"));
    ck_assert(!has(NULL, "k"));
    ck_assert_uint_eq(replay_cache_bytes(NULL), 0);
    replay_cache_free(NULL);
    store_close(store);
}
END_TEST

/* --- a random life --- */

enum { STEPS = 40000, KEYS = 12 };

static struct {
    struct store_found claimed; /* of its newest execution; its views are not used */
    bool running;
} lives[KEYS];
static unsigned agreed_replay, agreed_refusal, reborn, expired;

static bool same_found(const struct store_found *cached, const struct store_found *stored)
{
    bool same = cached->decision.verdict == stored->decision.verdict &&
                cached->decision.state == stored->decision.state &&
                cached->decision.differs == stored->decision.differs && cached->claimed == stored->claimed &&
                memcmp(cached->record.command_id, stored->record.command_id, COMMAND_ID_BYTES) == 0 &&
                cached->record.execution == stored->record.execution &&
                cached->record.expires_ms == stored->record.expires_ms &&
                (cached->response == NULL) == (stored->response == NULL);
    return same && (cached->response == NULL || (cached->response->status == stored->response->status &&
                                                 view_equal(cached->response->body, stored->response->body) &&
                                                 view_equal(cached->response->fields, stored->response->fields)));
}

/* As a loop does it: the cache first, else the store, whose replay is kept. What the cache says must be what the store would have said. */
static void repeat(struct replay_cache *cache, unsigned index, const struct store_claim *claim)
{
    struct store_found cached = { .row = 0 };
    bool hit = replay_cache_find(cache, claim, store_now(store), &cached);
    struct store_found stored = ask(claim);
    if (hit) {
        ck_assert_msg(same_found(&cached, &stored), "key %u: the cache says %s, the store %s", index,
                      verdict_name(cached.decision.verdict), verdict_name(stored.decision.verdict));
        agreed_replay += cached.decision.verdict == VERDICT_REPLAY ? 1 : 0;
        agreed_refusal += cached.decision.verdict == VERDICT_KEY_REUSED ? 1 : 0;
    }
    replay_cache_keep(cache, claim, &stored);
    expired += stored.decision.verdict == VERDICT_KEY_EXPIRED ? 1 : 0;
    if (stored.claimed) {
        reborn += stored.record.execution == 1 && lives[index].claimed.record.execution > 0 ? 1 : 0;
        lives[index].claimed = stored;
        lives[index].running = true;
    }
    fixture_found_free(&cached);
    fixture_found_free(&stored);
}

static void life_step(struct replay_cache *cache, struct suite_random *random)
{
    char key[16], body[64];
    unsigned index = suite_random_below(random, KEYS);
    (void) snprintf(key, sizeof key, "k%u", index);
    unsigned deed = suite_random_below(random, 100);
    struct store_claim claim =
        fixture_claim(key, 1 + (suite_random_below(random, 6) == 0), 1 + (suite_random_below(random, 6) == 0));
    claim.may_claim = suite_random_below(random, 8) != 0;
    for (int i = 0; i < COMMAND_ID_BYTES; i++) {
        claim.command_id[i] = (uint8_t) suite_random_next(random);
    }
    if (deed < 60) {
        repeat(cache, index, &claim);
    } else if (deed < 85) {
        struct store_finish outcome =
            fixture_finish(key, &lives[index].claimed, (enum outcome_kind) suite_random_below(random, 6) % 3);
        if (lives[index].running) {
            (void) snprintf(body, sizeof body, "answer %u", suite_random_next(random));
            outcome.body = outcome.outcome.kind == OUTCOME_COMPLETED ? view_of(body) : VIEW("");
            outcome.outcome.response_bytes = outcome.body.len;
            finish(&outcome);
        }
    } else if (deed < 90) {
        void_key(&claim);
    } else if (deed < 97) {
        fixture_advance(suite_random_below(random, 2 * FIXTURE_TTL_MS / 10));
    } else {
        struct store_sweep sweep = { .limit = 4 };
        ck_assert_int_eq(store_begin(store), STORE_OK);
        ck_assert_int_eq(store_sweep_some(store, &sweep), STORE_OK);
        ck_assert_int_eq(store_commit(store), STORE_OK);
        fixture_advance(suite_random_below(random, 20) == 0 ? FIXTURE_TOMBSTONE_MS : 1);
    }
}

START_TEST(in_a_random_life_the_cache_never_says_what_the_store_would_not)
{
    struct suite_random random;
    unsigned seed = suite_seed();
    start();
    suite_random_start(&random, seed);
    struct replay_cache *cache = replay_cache_new(8 * 1024);
    for (int step = 0; step < STEPS; step++) {
        life_step(cache, &random);
    }
    FIGURE("replay cache beside a store: seed=%u steps=%d replays=%u refusals=%u key_expired=%u reborn=%u", seed, STEPS,
           agreed_replay, agreed_refusal, expired, reborn);
    ck_assert_uint_gt(agreed_replay, 100);
    ck_assert_uint_gt(agreed_refusal, 100);
    ck_assert_uint_gt(expired, 20);
    ck_assert_uint_gt(reborn, 20);
    replay_cache_free(cache);
    store_close(store);
}
END_TEST

SUITE(replay_cache)
{
    Suite *suite = suite_create("flow/replay_cache");
    CASE(suite, what_was_kept_is_replayed_to_the_same_caller_with_the_same_payload);
    CASE_LOOP(suite, another_payload_and_another_caller_are_refused_and_see_no_response, 3);
    CASE_LOOP(suite, another_tenant_or_key_is_not_found, 5);
    CASE(suite, at_the_end_of_its_time_it_is_gone_to_the_millisecond);
    CASE(suite, only_replays_are_kept);
    CASE(suite, the_least_recently_used_answer_makes_room_and_the_bound_holds);
    CASE(suite, without_bytes_there_is_no_cache);
    CASE(suite, in_a_random_life_the_cache_never_says_what_the_store_would_not);
    return suite;
}
