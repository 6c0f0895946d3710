/* scene.h - what the cases of docs/contract.md share: who is talked to, how, and what an answer must be.
 *
 * A case is named after its rule (`rule_3_4_under_another_credential_...`), or after a section where the sentence has no number
 * (`section_4_...`); tools/check-contract holds the names against the page. It looks from outside only: requests, answers, what the
 * handler got, exit codes, the log.
 *
 *   RULE(suite, house_plain, rule_2_1_...)        in a nonbisd that many cases share (below)
 *   RULE_ROWS(suite, house_plain, rule_..., rows) once for each row of an array, by _i
 *   RULE_ALONE(suite, rule_...)                   it starts a nonbisd of its own: scene_start ... scene_end
 *
 * In a house every case has a handler of its own (it counts from 1), but keys are everybody's: each case names its own. Cases run in
 * processes of their own, one after the other; a house lives in the process above them and ends when the next one is entered. */
#ifndef NONBIS_TESTS_CONTRACT_SCENE_H
#define NONBIS_TESTS_CONTRACT_SCENE_H

#include "tests/support/caller.h"
#include "tests/support/rig.h"

#include <stdint.h>

extern struct rig scene; /* of this case: the handler, nonbisd, its address */

#define RULE(suite, house, test) scene_add_case((suite), (test), #test, (house), 1)
#define RULE_ROWS(suite, house, test, rows)                                                                            \
    scene_add_case((suite), (test), #test, (house), (int) (sizeof(rows) / sizeof((rows)[0])))
#define RULE_ALONE(suite, test) scene_add_case((suite), (test), #test, NULL, 1)
#define RULE_ALONE_ROWS(suite, test, rows) RULE_ROWS(suite, NULL, test, rows)
void scene_add_case(Suite *suite, const TTest *test, const char *name, SFun house, int rows);

/* --- houses: settings that many cases want --- */
void house_plain(void);   /* the defaults: every POST and PATCH needs a key */
void house_routes(void);  /* the routes that s01_routes_test.c names */
void house_tenants(void); /* tenant=header:X-Tenant */
void house_hasty(void);   /* answer_timeout, hard_timeout and passthrough_timeout of 250 ms */

/* --- a nonbisd of this case alone --- */
void scene_start(const char *const *more);
#define SCENE_START(...) scene_start((const char *const[]){ __VA_ARGS__, NULL })
void scene_restart(const char *const *more); /* after daemon_stop or daemon_kill: the same store and handler */
#define SCENE_RESTART(...) scene_restart((const char *const[]){ __VA_ARGS__, NULL })
void scene_end(void);
/* Ends nonbisd, unless it has ended, and starts it again as if it had been off for so long by the wall clock of the machine. No test can
 * set that clock, so what the store wrote down of it at its end is moved instead. */
void scene_pass_time(int64_t span_ms, const char *const *more);
#define HOUR_MS (INT64_C(3600) * 1000)
#define DAY_MS (24 * HOUR_MS)
/* Starts nonbisd with `more` on the scene's store, and expects that it refuses: its exit code; what it said. */
int scene_refusal(const char *const *more, const char **said);

/* --- asking; what comes back is freed behind the case --- */
const struct http_answer *ask(const char *method, const char *target, const char *fields, const char *body);
const struct http_answer *ask_raw(const char *bytes, size_t len); /* on a connection of its own, which then ends */
#define ASK_RAW(text) ask_raw((text), sizeof(text) - 1)
/* POST /orders. `post` says Content-Type: application/json, `post_with` only what `fields` say. */
const struct http_answer *post(const char *key, const char *body);
const struct http_answer *post_with(const char *key, const char *fields, const char *body);
const struct http_answer *get_status(const char *key, const char *fields);
const struct http_answer *get_response(const char *key);
const struct http_answer *void_key(const char *key, const char *fields);
/* A caller that waits: `post(key, "x")` in a thread; returns once the handler holds it (at PEER_WAIT). */
void hold(struct caller *caller, const char *key);
const struct http_answer *join(struct caller *caller);
const struct http_answer *keep_answer(struct http_answer answer);
/* A text that is this case's own: printf's. */
__attribute__((format(printf, 1, 2))) const char *text(const char *format, ...);

/* --- the handler --- */
void handler_answers(const char *bytes);                     /* to every request, once it has the whole of it */
void handler_holds(const char *bytes);                       /* the same, after peer_release */
const char *handler_saw(unsigned n);                         /* the n-th request as it came, NUL-terminated */
const char *handler_saw_line(unsigned n);                    /* its request line */
const char *handler_saw_field(unsigned n, const char *name); /* NULL: not there */
#define EXPECT_RUNS(key, count) expect_runs(__LINE__, (key), (count))
void expect_runs(int line, const char *key, unsigned count); /* requests with this key, counted at the handler */

/* --- what an answer must be --- */
#define EXPECT(answer, status, word) expect_answer(__LINE__, (answer), (status), (word))
#define EXPECT_PROBLEM(answer, status, word, name) expect_problem(__LINE__, (answer), (status), (word), (name))
#define EXPECT_HOLDS(answer, words) expect_holds(__LINE__, (answer), (words), true)
#define EXPECT_LACKS(answer, words) expect_holds(__LINE__, (answer), (words), false)
#define EXPECT_FIELD(answer, name, value) expect_field(__LINE__, (answer), (name), (value))
#define EXPECT_NO_FIELD(answer, name) expect_field(__LINE__, (answer), (name), NULL)
void expect_answer(int line, const struct http_answer *answer, int status,
                   const char *word); /* word "": no Idempotency-Status */
void expect_problem(int line, const struct http_answer *answer, int status, const char *word, const char *name);
void expect_holds(int line, const struct http_answer *answer, const char *words, bool holds);
void expect_field(int line, const struct http_answer *answer, const char *name,
                  const char *value); /* once; NULL: never */

const char *field_of(const struct http_answer *answer, const char *name); /* NULL: not there */
const char *member_of(const struct http_answer *answer,
                      const char *name); /* of a JSON body, as it is written there; fails without it */
const char *command_path_of(const struct http_answer *answer); /* that Link names */

#endif
