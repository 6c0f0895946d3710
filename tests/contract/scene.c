/* scene.c - see scene.h. */
#include "tests/contract/scene.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

struct rig scene;

/* Most of a case is waiting: for a start, for the disk, for a timeout. */
__attribute__((constructor)) static void run_in_two(void)
{
    suite_run_in(2);
}

/* --- houses --- */

enum { HOUSE_ARGUMENTS_MAX = 24 };

struct house {
    const char *name;
    const char *more[HOUSE_ARGUMENTS_MAX];
};

static const struct house plain = { "plain", { NULL } };
static const struct house routes = { "routes",
                                     { "--route", "POST /pay", "--route", "POST /maybe key=optional", "--route",
                                       "POST /first/open key=optional", "--route", "POST /first/*", "--route",
                                       "* /any/*", "--route", "PUT /Case", "--route",
                                       "POST /drop replay_drop=X-Secret,X-Other", NULL } };
static const struct house tenants = { "tenants", { "--set", "tenant=header:X-Tenant", NULL } };
static char hasty_texts[3][32];
static const struct house hasty = {
    "hasty", { "--set", hasty_texts[0], "--set", hasty_texts[1], "--set", hasty_texts[2], NULL }
};

/* Of the process that all cases are children of. */
static const struct house *entered;
static struct rig entered_rig;
static char entered_socket[108];
static pid_t entered_by;
static bool a_house_fell;

/* A fault here belongs to no case: it is told, and makes the program's exit code. */
static void house_leave(void)
{
    if (entered == NULL) {
        return;
    }
    int status = -1;
    daemon_signal(&entered_rig.nonbis, SIGTERM);
    bool ended = waitpid(entered_rig.nonbis.pid, &status, 0) == entered_rig.nonbis.pid; /* Check asserts nothing here */
    if (!ended || status != 0 || daemon_logged(&entered_rig.nonbis, "Z error ")) {
        printf("the nonbisd of house %s ended with wait status %d or logged an error, see %s\n", entered->name, status,
               entered_rig.nonbis.log_path);
        a_house_fell = true;
    }
    entered = NULL;
}

static void house_at_exit(void)
{
    if (getpid() != entered_by) {
        return;
    }
    house_leave();
    if (a_house_fell) {
        (void) fflush(stdout);
        _exit(1);
    }
}

static void house_enter(const struct house *house)
{
    static int count;
    if (entered == house) {
        return;
    }
    house_leave();
    if (entered_by == 0) {
        entered_by = getpid();
        ck_assert_int_eq(atexit(house_at_exit), 0);
    }
    count++;
    (void) snprintf(entered_rig.store, sizeof entered_rig.store, "%s/house-%d.db", daemon_folder(), count);
    int len = snprintf(entered_socket, sizeof entered_socket, "%s/handler", daemon_folder());
    ck_assert_msg(len < (int) sizeof entered_socket, "the build folder's path is too long for a Unix socket: %s",
                  daemon_folder());
    daemon_start(&entered_rig.nonbis, text("unix:%s", entered_socket), entered_rig.store, house->more);
    entered = house;
}

void house_plain(void)
{
    house_enter(&plain);
}

void house_routes(void)
{
    house_enter(&routes);
}

void house_tenants(void)
{
    house_enter(&tenants);
}

void house_hasty(void)
{
    static const char *const names[] = { "answer_timeout", "hard_timeout", "passthrough_timeout" };
    for (int i = 0; i < 3; i++) {
        (void) snprintf(hasty_texts[i], sizeof hasty_texts[i], "%s=%dms", names[i], 250 * suite_slowness());
    }
    house_enter(&hasty);
}

/* --- what is freed behind a case --- */

enum { KEPT_MAX = 1024, TEXT_BYTES = 8192 };

static struct http_answer *kept_answers[KEPT_MAX];
static char *kept_texts[KEPT_MAX];
static int kept_answer_count, kept_text_count;

const struct http_answer *keep_answer(struct http_answer answer)
{
    ck_assert_int_lt(kept_answer_count, KEPT_MAX);
    struct http_answer *kept = malloc(sizeof *kept);
    *kept = answer;
    kept_answers[kept_answer_count++] = kept;
    return kept;
}

static char *keep_text(size_t size)
{
    ck_assert_int_lt(kept_text_count, KEPT_MAX);
    return kept_texts[kept_text_count++] = calloc(1, size);
}

const char *text(const char *format, ...)
{
    char *out = keep_text(TEXT_BYTES);
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(out, TEXT_BYTES, format, arguments);
    va_end(arguments);
    ck_assert_int_lt(len, TEXT_BYTES);
    return out;
}

static void free_kept(void)
{
    for (; kept_answer_count > 0; kept_answer_count--) {
        http_answer_free(kept_answers[kept_answer_count - 1]);
        free(kept_answers[kept_answer_count - 1]);
    }
    for (; kept_text_count > 0; kept_text_count--) {
        free(kept_texts[kept_text_count - 1]);
    }
}

/* --- cases --- */

static void enter_case(void)
{
    scene = entered_rig;
    scene.address = scene.nonbis.listen;
    scene.peer = peer_new_unix(entered_socket);
}

static void leave_case(void)
{
    peer_free(scene.peer);
    free_kept();
}

void scene_add_case(Suite *suite, const TTest *test, const char *name, SFun house, int rows)
{
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 60);
    if (house != NULL) {
        tcase_add_unchecked_fixture(tcase, house, NULL);
        tcase_add_checked_fixture(tcase, enter_case, leave_case);
    } else {
        tcase_add_checked_fixture(tcase, NULL, free_kept);
    }
    _tcase_add_test(tcase, test, 0, 0, 0, rows);
    suite_add_tcase(suite, tcase);
}

/* --- a nonbisd of this case alone --- */

void scene_start(const char *const *more)
{
    rig_start(&scene, more);
}

void scene_restart(const char *const *more)
{
    rig_restart(&scene, more);
}

void scene_end(void)
{
    rig_end(&scene);
}

/* In the way in which nonbisd itself opens it, so that no file of the store comes or goes by this. */
static void move_recorded_clock(int64_t span_ms)
{
    sqlite3 *db = NULL;
    ck_assert_int_eq(sqlite3_open(scene.store, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    const char *sql = text("UPDATE meta SET value = value - %lld WHERE name IN ('last_wall_ms', 'wall_ahead_ms')",
                           (long long) span_ms);
    char *error = NULL;
    (void) sqlite3_exec(db, sql, NULL, NULL, &error);
    ck_assert_msg(error == NULL, "%s: %s", sql, error);
    ck_assert_int_eq(sqlite3_changes(db), 2);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

void scene_pass_time(int64_t span_ms, const char *const *more)
{
    if (scene.nonbis.pid > 0) {
        ck_assert_int_eq(daemon_stop(&scene.nonbis), 0);
    }
    move_recorded_clock(span_ms);
    rig_restart(&scene, more);
}

int scene_refusal(const char *const *more, const char **said)
{
    enum { ARGUMENTS_MAX = 32, SAID_MAX = 64 * 1024 };
    const char *arguments[ARGUMENTS_MAX] = { "--listen",   "127.0.0.1:0",        "--admin", "off",
                                             "--upstream", "http://127.0.0.1:1", "--store", scene.store };
    int count = 8;
    for (; more != NULL && *more != NULL; more++) {
        arguments[count++] = *more;
    }
    char *out = keep_text(SAID_MAX);
    *said = out;
    return daemon_run("nonbisd", arguments, out, SAID_MAX);
}

/* --- asking --- */

const struct http_answer *ask(const char *method, const char *target, const char *fields, const char *body)
{
    return keep_answer(http_request(scene.address, method, target, fields, body));
}

const struct http_answer *ask_raw(const char *bytes, size_t len)
{
    int fd = http_connect(scene.address);
    ck_assert_int_ge(fd, 0);
    (void) http_send(fd, bytes, len); /* a refusal may come before the end of it */
    const struct http_answer *answer = keep_answer(http_receive(fd, false, NULL));
    close(fd);
    return answer;
}

const struct http_answer *post(const char *key, const char *body)
{
    return keep_answer(http_post(scene.address, "/orders", key, body));
}

const struct http_answer *post_with(const char *key, const char *fields, const char *body)
{
    return ask("POST", "/orders", text("Idempotency-Key: %s\r\n%s", key, fields), body);
}

const struct http_answer *get_status(const char *key, const char *fields)
{
    return ask("GET", "/_nonbis/v1/command", text("Idempotency-Key: %s\r\n%s", key, fields), NULL);
}

const struct http_answer *get_response(const char *key)
{
    return ask("GET", "/_nonbis/v1/command/response", text("Idempotency-Key: %s\r\n", key), NULL);
}

const struct http_answer *void_key(const char *key, const char *fields)
{
    return ask("POST", "/_nonbis/v1/command/void", text("Idempotency-Key: %s\r\n%s", key, fields), NULL);
}

void hold(struct caller *caller, const char *key)
{
    caller_start(caller, scene.address, key);
    ck_assert(peer_wait_stalled(scene.peer, 1));
}

const struct http_answer *join(struct caller *caller)
{
    caller_join(caller);
    return keep_answer(caller->answer);
}

/* --- the handler --- */

enum { SCRIPTS_MAX = 32 };

static struct peer_step *next_script(void)
{
    static struct peer_step scripts[SCRIPTS_MAX][4];
    static int count;
    ck_assert_int_lt(count, SCRIPTS_MAX);
    return scripts[count++];
}

void handler_answers(const char *bytes)
{
    struct peer_step *steps = next_script();
    steps[0] = (struct peer_step){ PEER_BODY, NULL, 0 };
    steps[1] = (struct peer_step){ PEER_SEND, bytes, 0 };
    steps[2] = (struct peer_step) PEER_END;
    peer_script_default(scene.peer, steps);
}

void handler_holds(const char *bytes)
{
    struct peer_step *steps = next_script();
    steps[0] = (struct peer_step){ PEER_BODY, NULL, 0 };
    steps[1] = (struct peer_step){ PEER_WAIT, NULL, 0 };
    steps[2] = (struct peer_step){ PEER_SEND, bytes, 0 };
    steps[3] = (struct peer_step) PEER_END;
    peer_script_default(scene.peer, steps);
}

const char *handler_saw(unsigned n)
{
    struct buf request;
    buf_init(&request, 1 << 26);
    ck_assert_msg(peer_request(scene.peer, n, &request), "the handler saw %u requests, not %u",
                  peer_count_requests(scene.peer), n);
    buf_append_bytes(&request, "", 1);
    char *out = keep_text(request.len);
    memcpy(out, request.ptr, request.len);
    buf_fini(&request);
    return out;
}

const char *handler_saw_line(unsigned n)
{
    const char *saw = handler_saw(n);
    return text("%.*s", (int) strcspn(saw, "\r"), saw);
}

const char *handler_saw_field(unsigned n, const char *name)
{
    const char *saw = handler_saw(n);
    char *request = keep_text(strlen(saw) + 1);
    memcpy(request, saw, strlen(saw));
    char *end = strstr(request, "\r\n\r\n");
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    const struct http_answer as_answer = { .head = request };
    return field_of(&as_answer, name);
}

void expect_runs(int line, const char *key, unsigned count)
{
    unsigned seen = peer_count_key(scene.peer, key);
    ck_assert_msg(seen == count, "line %d: %s reached the handler %u times, not %u", line, key, seen, count);
}

/* --- what an answer must be --- */

static const char *body_of(const struct http_answer *answer)
{
    return answer->body != NULL ? answer->body : "(no answer)";
}

void expect_answer(int line, const struct http_answer *answer, int status, const char *word)
{
    const char *seen = field_of(answer, "Idempotency-Status");
    seen = seen != NULL ? seen : "";
    ck_assert_msg(answer->status == status && strcmp(seen, word) == 0,
                  "line %d: expected %d with Idempotency-Status '%s', got %d with '%s': %.600s", line, status, word,
                  answer->status, seen, body_of(answer));
    ck_assert_int_le(http_field_count(answer, "Idempotency-Status"), 1);
}

void expect_problem(int line, const struct http_answer *answer, int status, const char *word, const char *name)
{
    expect_answer(line, answer, status, word);
    expect_field(line, answer, "Content-Type", "application/problem+json");
    expect_field(line, answer, "Cache-Control", "no-store");
    expect_holds(line, answer, text("\"type\":\"urn:nonbis:problem:%s\"", name), true);
    expect_holds(line, answer, text("\"status\":%d", status), true);
}

void expect_holds(int line, const struct http_answer *answer, const char *words, bool holds)
{
    bool found = answer->body != NULL && strstr(answer->body, words) != NULL;
    ck_assert_msg(found == holds, "line %d: '%s' is %s in %.900s", line, words, holds ? "not" : "there",
                  body_of(answer));
}

void expect_field(int line, const struct http_answer *answer, const char *name, const char *value)
{
    const char *seen = field_of(answer, name);
    int count = http_field_count(answer, name);
    ck_assert_msg(answer->status != 0, "line %d: there is no answer", line);
    if (value == NULL) {
        ck_assert_msg(count == 0, "line %d: there is %s: %s", line, name, seen);
        return;
    }
    ck_assert_msg(count == 1 && strcmp(seen, value) == 0, "line %d: expected one %s: %s, got %d of them, '%s'", line,
                  name, value, count, seen != NULL ? seen : "");
}

const char *field_of(const struct http_answer *answer, const char *name)
{
    char *value = keep_text(TEXT_BYTES);
    return http_field(answer, name, value, TEXT_BYTES) ? value : NULL;
}

const char *member_of(const struct http_answer *answer, const char *name)
{
    const char *label = text("\"%s\":", name);
    const char *from = strstr(body_of(answer), label);
    ck_assert_msg(from != NULL, "there is no member %s in %.900s", name, body_of(answer));
    from += strlen(label);
    size_t len = *from == '"'   ? strcspn(from + 1, "\"") + 2
                 : *from == '[' ? strcspn(from, "]") + 1
                                : strcspn(from, ",}");
    return text("%.*s", (int) len, from);
}

const char *command_path_of(const struct http_answer *answer)
{
    const char *link = field_of(answer, "Link");
    ck_assert_msg(link != NULL, "there is no Link with status %d", answer->status);
    size_t len = strcspn(link, ">");
    ck_assert_msg(link[0] == '<' && strcmp(link + len, ">; rel=\"status\"") == 0, "Link: %s", link);
    return text("%.*s", (int) len - 1, link + 1);
}
