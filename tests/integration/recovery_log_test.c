/* recovery_log_test.c - a command that ran when the process was killed has no line in the log of that life: the next start writes one for each of
 * them (docs/contract.md 9.2), by the names under which clients, handler and other lines know it. */
#include "tests/support/rig.h"

#include <ctype.h>
#include <pthread.h>

enum { RUNNING = 3 };

static const struct peer_step held[] = { { PEER_BODY, NULL, 0 }, { PEER_WAIT, NULL, 0 }, PEER_END };

struct caller {
    pthread_t thread;
    const char *address;
    char key[16];
};

static void *caller_run(void *context)
{
    struct caller *caller = context;
    char fields[128];
    (void) snprintf(fields, sizeof fields, "X-Tenant: acme\r\nIdempotency-Key: %s\r\n", caller->key);
    struct http_answer answer = http_request(caller->address, "POST", "/orders/7?token=secret", fields, "x");
    ck_assert_int_eq(answer.status, 0); /* nobody answered: it was killed */
    http_answer_free(&answer);
    return NULL;
}

/* The log of this life so far. */
static char *log_read(const struct rig *rig)
{
    static char text[16 * 1024];
    FILE *file = fopen(rig->nonbis.log_path, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void) fclose(file);
    return text;
}

/* The word behind " NAME=" in the first line that holds `what`; "" when there is none. */
static const char *word_in(char *log, const char *what, const char *name)
{
    static char word[64];
    char before[32];
    word[0] = '\0';
    const char *line = strstr(log, what);
    (void) snprintf(before, sizeof before, " %s=", name);
    const char *at = line != NULL ? strstr(line, before) : NULL;
    if (at != NULL && at < line + strcspn(line, "\n")) {
        at += strlen(before);
        (void) snprintf(word, sizeof word, "%.*s", (int) strcspn(at, " \n"), at);
    }
    return word;
}

START_TEST(a_start_names_each_command_that_ran_when_the_process_was_killed)
{
    static const char *const more[] = { "--set", "tenant=header:X-Tenant", "--log-level", "info", NULL };
    struct caller callers[RUNNING];
    struct rig rig;
    char command[64], name[64];
    rig_start(&rig, more);
    struct http_answer done =
        http_request(rig.address, "POST", "/orders/7", "X-Tenant: acme\r\nIdempotency-Key: done\r\n", "x");
    RIG_EXPECT(done, 200, "executed");
    http_answer_free(&done);
    peer_script_default(rig.peer, held);
    for (int i = 0; i < RUNNING; i++) {
        callers[i] = (struct caller){ .address = rig.address };
        (void) snprintf(callers[i].key, sizeof callers[i].key, "k-%d", i);
        pthread_create(&callers[i].thread, NULL, caller_run, &callers[i]);
    }
    ck_assert(peer_wait_stalled(rig.peer, RUNNING));
    daemon_kill(&rig.nonbis);
    for (int i = 0; i < RUNNING; i++) {
        pthread_join(callers[i].thread, NULL);
    }
    peer_release(rig.peer, RUNNING);
    rig_restart(&rig, more);
    ck_assert_int_eq(daemon_count_logged(&rig.nonbis, " warn  recovery result=unknown cause=crash method=POST key="),
                     RUNNING);
    ck_assert_int_eq(daemon_count_logged(&rig.nonbis, " execution=1 created=20"), RUNNING);
    ck_assert_int_eq(daemon_count_logged(&rig.nonbis, "Z path=/orders/7\n"), RUNNING); /* without its query */
    ck_assert(!daemon_logged(&rig.nonbis, "secret"));
    ck_assert(!daemon_logged(&rig.nonbis, "k-0"));
    (void) snprintf(command, sizeof command, "%s", word_in(log_read(&rig), "recovery result", "command"));
    (void) snprintf(name, sizeof name, "%s", word_in(log_read(&rig), "recovery result", "key"));
    ck_assert_uint_eq(strlen(command), 32);
    ck_assert_uint_eq(strlen(name), 12);

    /* The id leads to the command, and the line of that question has the same name for its key. */
    char target[128];
    (void) snprintf(target, sizeof target, "/_nonbis/v1/commands/%s", command);
    struct http_answer status = http_request(rig.address, "GET", target, "X-Tenant: acme\r\n", NULL);
    ck_assert_int_eq(status.status, 200);
    ck_assert_ptr_nonnull(strstr(status.body, "\"state\":\"unknown\""));
    ck_assert_ptr_nonnull(strstr(status.body, "\"cause\":\"crash\""));
    ck_assert_ptr_nonnull(strstr(status.body, "\"key\":\"k-"));
    char created[64], *at = strstr(status.body, "\"created_at\":\"");
    ck_assert_ptr_nonnull(at);
    at += strlen("\"created_at\":\"");
    (void) snprintf(created, sizeof created, "%.*s", (int) strcspn(at, "\""), at);
    ck_assert_str_eq(word_in(log_read(&rig), "recovery result", "created"), created);
    char fields[128], *key = strstr(status.body, "\"key\":\"") + strlen("\"key\":\"");
    (void) snprintf(fields, sizeof fields, "X-Tenant: acme\r\nIdempotency-Key: %.*s\r\n", (int) strcspn(key, "\""),
                    key);
    struct http_answer asked = http_request(rig.address, "GET", "/_nonbis/v1/command", fields, NULL);
    ck_assert_int_eq(asked.status, 200);
    ck_assert(daemon_wait_logged(&rig.nonbis, "path=/_nonbis/v1/command key="));
    ck_assert_str_eq(word_in(log_read(&rig), "query result=unknown", "command"), command);
    ck_assert_str_eq(word_in(log_read(&rig), "path=/_nonbis/v1/command key=", "key"), name);
    http_answer_free(&asked);
    http_answer_free(&status);

    /* It is told once. */
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    rig_restart(&rig, more);
    ck_assert_int_eq(daemon_count_logged(&rig.nonbis, " recovery "), 0);
    rig_end(&rig);
}
END_TEST

SUITE(recovery_log)
{
    Suite *suite = suite_create("integration/recovery_log");
    CASE(suite, a_start_names_each_command_that_ran_when_the_process_was_killed);
    return suite;
}
