/* Operations over a real journal: what of them is on the disk, what is sent when it cannot be written, and what a later process
 * finds after a death. */
#include "tests/client/journal_lab.h"
#include "tests/client/lab.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

static void lab_with_directory(struct lab *lab, const struct journal_lab *place, const struct journal_calls *calls)
{
    char message[512] = "";
    const struct nonbis_policy policy = lab_policy("standard", NONBIS_SERVER, NONBIS_SERVER_KEYED, 0);
    lab_open(lab, 7, &policy);
    lab->client->parts.journal = journal_directory_open_with(calls, place->path, message, sizeof(message));
    ck_assert_msg(lab->client->parts.journal != NULL, "%s", message);
    lab_step(lab, (struct lab_step){ .status = 201 });
}

/* ---- secrets ------------------------------------------------------------------------------------------------------ */

/* Whether a text is in the bytes of a file. */
static bool file_holds(const char *path, const char *text)
{
    static char bytes[65536];
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    size_t len = fread(bytes, 1, sizeof(bytes), file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_uint_lt(len, sizeof(bytes));
    return memmem(bytes, len, text, strlen(text)) != NULL;
}

struct secrets {
    struct journal_lab *place;
    unsigned looked;
};

/* At every event of the run: the entry is somewhere, with what it needs and without the secrets. */
static int look_for_secrets(const struct nonbis_event *event, void *arg)
{
    struct secrets *secrets = arg;
    const char *key = nonbis_op_key(event->op), *where = journal_lab_where(secrets->place, key);
    char path[512];
    ck_assert_str_ne(where, "");
    (void) snprintf(path, sizeof(path), "%s/%s/%s", secrets->place->path, where, key);
    ck_assert(!file_holds(path, "hunter2"));
    ck_assert(file_holds(path, "unstored 13:Authorization\n")); /* its name, so that a resume can ask for it */
    ck_assert(file_holds(path, "field 12:Content-Type 10:text/plain\n"));
    ck_assert(file_holds(path, "field 7:X-Shown 5:shown\n"));
    ck_assert(file_holds(path, "body 11:the payload\n"));
    secrets->looked++;
    return 0;
}

START_TEST(secrets_are_never_written)
{
    struct journal_lab place;
    struct lab lab;
    struct nonbis_op *op = NULL;
    journal_lab_parent(&place);
    lab_with_directory(&lab, &place, &journal_calls_system);
    struct secrets secrets = { .place = &place };
    nonbis_client_on_event(lab.client, look_for_secrets, &secrets);
    ck_assert_int_eq(nonbis_op_new(&op, lab.client, "http://peer/orders", "the payload", 11), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_set_header(op, "Authorization", "Bearer hunter2", 0), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_set_header(op, "X-Api-Key", "hunter2", 0), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_set_header(op, "Content-Type", "text/plain", 0), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_set_header(op, "X-Shown", "shown", NONBIS_HEADER_STORED), NONBIS_OK);
    ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
    ck_assert_int_eq((int) nonbis_op_outcome(op), NONBIS_COMPLETED);
    ck_assert_str_eq(lab.log[0].authorization, "Bearer hunter2");
    ck_assert_uint_gt(secrets.looked, 3);
    ck_assert_str_eq(journal_lab_where(&place, nonbis_op_key(op)), "done");
    nonbis_op_free(op);
    lab_close(&lab);
    journal_lab_close(&place);
}
END_TEST

/* ---- what cannot be written is not sent --------------------------------------------------------------------------- */

START_TEST(nothing_is_sent_when_the_journal_cannot_be_written)
{
    unsigned at = 1, refused = 0, held_back = 0;
    for (bool sent = false; !sent; at++) {
        struct journal_lab place;
        struct lab lab;
        journal_lab_parent(&place);
        spy_reset();
        lab_with_directory(&lab, &place, &spy_calls);
        struct nonbis_op *op = lab_post(&lab);
        spy_reset();
        spy.fail_at = at;
        spy.fail_on = true;
        spy.error = ENOSPC;
        int result = nonbis_op_run(op);
        sent = lab.attempts > 0;
        if (result == NONBIS_ERROR_JOURNAL) {
            const char *message = nonbis_op_message(op);
            ck_assert_msg(strstr(message, "nothing was sent: ") == message, "%s", message);
            ck_assert_msg(strstr(message, "No space left on device") != NULL, "%s", message);
            ck_assert(!sent);
            refused++;
        } else if (!sent) {
            ck_assert_int_eq(result, NONBIS_OK);
            ck_assert_int_eq((int) nonbis_op_outcome(op), NONBIS_NOT_SENT);
            ck_assert_int_eq((int) nonbis_op_stop(op), NONBIS_STOP_LOCAL);
            ck_assert_int_eq(nonbis_op_local_error(op), NONBIS_ERROR_JOURNAL);
            held_back++;
        }
        nonbis_op_free(op);
        lab_close(&lab);
        journal_lab_close(&place);
    }
    ck_assert_uint_gt(refused, 8);
    ck_assert_uint_eq(held_back, 3); /* a rename and two syncs inside the hook */
}
END_TEST

/* ---- dying between the states ------------------------------------------------------------------------------------- */

static const struct death_row {
    enum nonbis_event_kind at;
    const char *where;
    unsigned resumed; /* operations that a resume gives */
} death_rows[] = {
    { NONBIS_EVENT_ATTEMPT, "new", 1 },
    { NONBIS_EVENT_SENT, "sent", 1 },
    { NONBIS_EVENT_ANSWER, "sent", 1 },
    { NONBIS_EVENT_OUTCOME, "done", 0 },
};

static int die_at(const struct nonbis_event *event, void *arg)
{
    if (event->kind == *(const enum nonbis_event_kind *) arg) {
        _exit(SPY_DIED);
    }
    return 0;
}

START_TEST(a_command_whose_process_died_goes_on_with_its_key)
{
    const struct death_row *row = &death_rows[_i];
    struct journal_lab place;
    struct lab lab;
    struct nonbis_op *op = NULL;
    int status = 0;
    unsigned resumed = 0;
    journal_lab_parent(&place);
    pid_t child = fork();
    if (child == 0) {
        enum nonbis_event_kind kind = row->at;
        lab_with_directory(&lab, &place, &journal_calls_system);
        nonbis_client_on_event(lab.client, die_at, &kind);
        op = lab_post(&lab);
        _exit(nonbis_op_set_key(op, JOURNAL_LAB_KEY) == NONBIS_OK && nonbis_op_run(op) == NONBIS_OK ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == SPY_DIED);
    ck_assert_str_eq(journal_lab_where(&place, JOURNAL_LAB_KEY), row->where);
    lab_with_directory(&lab, &place, &journal_calls_system);
    while (nonbis_client_resume(lab.client, &op) == NONBIS_OK) {
        ck_assert_str_eq(nonbis_op_key(op), JOURNAL_LAB_KEY);
        ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
        ck_assert_int_eq((int) nonbis_op_outcome(op), NONBIS_COMPLETED);
        nonbis_op_free(op);
        resumed++;
    }
    ck_assert_uint_eq(resumed, row->resumed);
    ck_assert_uint_eq(lab.attempts, row->resumed);
    if (resumed > 0) {
        ck_assert_ptr_nonnull(strstr(lab.log[lab.log_count - 1].key, JOURNAL_LAB_KEY));
        ck_assert_str_eq(lab.log[lab.log_count - 1].body, "{}");
    }
    ck_assert_str_eq(journal_lab_where(&place, JOURNAL_LAB_KEY), "done");
    lab_close(&lab);
    journal_lab_close(&place);
}
END_TEST

/* ---- keys --------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *given, *kept, *sent;
} quoted[] = {
    { "\"\\\"a\\\"\"", "\"a\"", "\"\\\"a\\\"\"" }, /* read once more it would be the key `a` */
    { "\"a\\\"b\"", "a\"b", "\"a\\\"b\"" },
    { "\"\\\"ab\"", "\"ab", "\"\\\"ab\"" },
    { "a\\b", "a\\b", "a\\b" },
};

START_TEST(a_key_with_quotes_in_it_comes_out_of_the_journal_as_it_went_in)
{
    for (int by_name = 0; by_name < 2; by_name++) {
        struct journal_lab place;
        struct lab lab;
        struct nonbis_op *op = NULL;
        journal_lab_parent(&place);
        lab_with_directory(&lab, &place, &journal_calls_system);
        lab.steps[0] = (struct lab_step){ .code = 52 };
        op = lab_post(&lab);
        ck_assert_int_eq(nonbis_op_set_key(op, quoted[_i].given), NONBIS_OK);
        ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
        ck_assert_int_eq((int) nonbis_op_outcome(op), NONBIS_UNKNOWN);
        nonbis_op_free(op);
        lab.steps[0] = (struct lab_step){ .status = 201 };
        lab.log_count = 0;
        op = NULL;
        ck_assert_int_eq(by_name == 0 ? nonbis_client_resume(lab.client, &op)
                                      : nonbis_op_open(&op, lab.client, quoted[_i].kept),
                         NONBIS_OK);
        ck_assert_str_eq(nonbis_op_key(op), quoted[_i].kept);
        ck_assert_int_eq(nonbis_op_run(op), NONBIS_OK);
        ck_assert_uint_eq(lab.log_count, 1);
        ck_assert_str_eq(lab.log[0].key, quoted[_i].sent);
        ck_assert_int_eq((int) nonbis_op_outcome(op), NONBIS_COMPLETED);
        ck_assert_ptr_null(strstr(nonbis_op_message(op), "could not keep"));
        nonbis_op_free(op);
        ck_assert_uint_eq(journal_lab_count(&place, "done"), 1);
        lab_close(&lab);
        journal_lab_close(&place);
    }
}
END_TEST

/* ---- threads ------------------------------------------------------------------------------------------------------ */

/* Another thread's call, at the worst moment of this one's: the name is chosen, and its entry not yet open. */
static struct between {
    struct nonbis_client *client; /* NULL: not now */
    struct nonbis_op *op;
    int result;
} between;

static int between_openat(int dir, const char *name, int flags, mode_t mode)
{
    struct nonbis_client *client = between.client;
    if (client != NULL && strcmp(name, "lock") == 0) {
        between.client = NULL;
        between.result = nonbis_client_resume(client, &between.op);
    }
    return journal_calls_system.openat(dir, name, flags, mode);
}

/* The first entry cannot be read: it is told of behind the others, and not another one in its place. */
START_TEST(two_that_resume_at_once_are_told_of_every_entry)
{
    static const char *const keys[] = { "k-1", "k-2", "k-3" };
    struct journal_calls calls = journal_calls_system;
    struct nonbis_op *first = NULL, *none = NULL;
    struct journal_lab place;
    struct lab lab;
    calls.openat = between_openat;
    journal_lab_open(&place, NULL);
    for (size_t i = 0; i < 3; i++) {
        journal_lab_put(&place, keys[i], JOURNAL_NEW);
    }
    journal_lab_write_file(&place, "new", "k-1", "damaged", 7);
    lab_with_directory(&lab, &place, &calls);
    between = (struct between){ .client = lab.client };
    ck_assert_int_eq(nonbis_client_resume(lab.client, &first), NONBIS_OK);
    ck_assert_int_eq(between.result, NONBIS_OK);
    ck_assert_str_eq(nonbis_op_key(first), "k-3");
    ck_assert_str_eq(nonbis_op_key(between.op), "k-2");
    ck_assert_int_eq(nonbis_client_resume(lab.client, &none), NONBIS_ERROR_JOURNAL);
    ck_assert_ptr_nonnull(strstr(nonbis_client_message(lab.client), "/new/k-1 cannot be used"));
    ck_assert_int_eq(nonbis_client_resume(lab.client, &none), NONBIS_END);
    nonbis_op_free(first);
    nonbis_op_free(between.op);
    lab_close(&lab);
    journal_lab_close(&place);
}
END_TEST

SUITE(journal_op)
{
    Suite *suite = suite_create("client/journal_op");
    CASE(suite, secrets_are_never_written);
    CASE(suite, nothing_is_sent_when_the_journal_cannot_be_written);
    CASE_LOOP(suite, a_command_whose_process_died_goes_on_with_its_key, sizeof(death_rows) / sizeof(death_rows[0]));
    CASE_LOOP(suite, a_key_with_quotes_in_it_comes_out_of_the_journal_as_it_went_in,
              sizeof(quoted) / sizeof(quoted[0]));
    CASE(suite, two_that_resume_at_once_are_told_of_every_entry);
    return suite;
}
