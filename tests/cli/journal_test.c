/* journal_test.c - what outlives the process: `nonbis journal` and `nonbis resume` after kill -9, against a scripted server that
 * deduplicates. */
#include "client-sdk/cli/shell.h"
#include "client-sdk/include/nonbis.h"
#include "tests/cli/program.h"
#include "tests/cli/scene.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct peer_step hang[] = { { PEER_BODY, NULL, 0 }, { PEER_WAIT_END, NULL, 0 }, PEER_END };
SCENE_ANSWER(fine, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
SCENE_ANSWER(bad, "HTTP/1.1 400 Bad\r\nContent-Length: 3\r\n\r\nbad");
SCENE_ANSWER(refused,
             "HTTP/1.1 413 No\r\nContent-Type: application/problem+json\r\nIdempotency-Status: refused\r\n"
             "Content-Length: 68\r\n\r\n{\"type\":\"urn:nonbis:problem:body-too-large\",\"retryable\":false,\"d\":0}");

#define HUNG "--server", "keyed", "--attempt-timeout", "1h", "--deadline", "5h"

/* A post whose request has arrived, and whose answer never comes. */
static void begin_hung(struct program *run, struct peer *peer, const char *key, const char *body, unsigned nth)
{
    peer_script_for_request(peer, nth, hang);
    program_begin(run, NULL,
                  (const char *[]){ "post", peer_url(peer), "-k", key, "-d", body, "-H", "X-Plain: yes", "-H",
                                    "X-Api-Token: hidden", "-H", "Content-Type: text/plain", HUNG, NULL });
    ck_assert(peer_wait_whole(peer, nth));
}

static void kill_it(struct program *run)
{
    kill(run->pid, SIGKILL);
    program_end(run);
    ck_assert_int_eq(run->exit_code, -SIGKILL);
    program_free(run);
}

static void expect_run(const char *const *arguments, int code, const char *out, const char *err)
{
    struct program run = program_run(arguments);
    PROGRAM_EXPECT(run, arguments[0], code);
    program_expect_words(arguments[0], run.out, out);
    program_expect_words(arguments[0], run.err, err);
    program_free(&run);
}
#define EXPECT(code, out, err, ...) expect_run((const char *const[]){ __VA_ARGS__, NULL }, (code), (out), (err))

START_TEST(a_killed_post_is_resumed_with_the_same_key_and_body)
{
    struct peer *peer = peer_new();
    struct program run;
    begin_hung(&run, peer, "k-1", "amount=17", 1);
    kill_it(&run);
    EXPECT(0, "sent |- |k-1 POST http://127.0.0.1", "", "journal", "ls");
    EXPECT(0, "key       k-1\n|state     sent\n|body      9 bytes", "", "journal", "show", "k-1");
    EXPECT(2, "",
           "nothing was sent: it was made with X-Api-Token, which the journal does not keep|nonbis resume 'k-1' -H",
           "resume", "k-1", "--server", "keyed");
    ck_assert_uint_eq(peer_count_requests(peer), 1);
    EXPECT(0, "ok", "", "resume", "k-1", "--server", "keyed", "-H", "x-api-token: hidden");
    ck_assert_uint_eq(peer_count_requests(peer), 2);
    ck_assert_str_eq(scene_field(peer, 2, "Idempotency-Key"), "k-1");
    ck_assert_str_eq(scene_field(peer, 2, "Content-Type"), "text/plain");
    ck_assert_str_eq(scene_field(peer, 2, "X-Plain"), "yes");
    ck_assert_str_eq(scene_field(peer, 2, "x-api-token"), "hidden");
    ck_assert_str_eq(scene_body(peer, 2), "amount=17");
    EXPECT(0, "done |completed |200 k-1", "", "journal", "ls");
    EXPECT(0, "", "", "resume");
    ck_assert_uint_eq(peer_count_requests(peer), 2);
    peer_free(peer);
}
END_TEST

/* No file below the folder holds the text. */
static void expect_nowhere(const char *folder, const char *text)
{
    DIR *dir = opendir(folder);
    ck_assert_msg(dir != NULL, "%s is not there", folder);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char path[1400];
        (void) snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            expect_nowhere(path, text);
        } else if (entry->d_type == DT_REG) {
            char content[65536] = "";
            FILE *file = fopen(path, "re");
            size_t len = fread(content, 1, sizeof content, file);
            fclose(file);
            ck_assert_msg(memmem(content, len, text, strlen(text)) == NULL, "%s holds %s", path, text);
        }
    }
    closedir(dir);
}

/* ---- a key that the journal has already --------------------------------------------------------------------------- */

START_TEST(a_post_with_the_key_of_an_undecided_one_goes_on_with_it_if_it_is_the_same)
{
    static const struct {
        const char *words;
        const char *arguments[8];
    } others[] = {
        { "the body is another one", { "-d", "amount=18", "-H", "Content-Type: text/plain" } },
        { "the Content-Type is another one", { "-d", "amount=17", "-H", "Content-Type: text/csv" } },
        { "the Content-Encoding is another",
          { "-d", "amount=17", "-H", "Content-Type: text/plain", "-H", "Content-Encoding: gzip" } },
        { "the method is another one", { "-d", "amount=17", "-H", "Content-Type: text/plain", "-X", "PUT" } },
    };
    struct peer *peer = peer_new();
    struct program run;
    char url[128];
    (void) snprintf(url, sizeof url, "%s/elsewhere", peer_url(peer));
    begin_hung(&run, peer, "k-1", "amount=17", 1);
    kill_it(&run);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const char *arguments[24] = { "post", peer_url(peer), "-k", "k-1", "--server", "keyed" };
        memcpy(arguments + 6, others[i].arguments, sizeof others[i].arguments);
        expect_run(arguments, 13, "", "the journal has the key k-1 for another request|nothing was sent");
        expect_run(arguments, 13, "", others[i].words);
    }
    EXPECT(13, "\"exit_code\":13", "the URL is another one", "post", url, "-k", "k-1", "-d", "amount=17", "-H",
           "Content-Type: text/plain", "--json");
    EXPECT(2, "", "made with X-Api-Token", "post", peer_url(peer), "-k", "k-1", "-d", "amount=17", "-H",
           "Content-Type: text/plain", "--server", "keyed");
    ck_assert_uint_eq(peer_count_requests(peer), 1);
    EXPECT(0, "ok", "the journal has this request already (begun); going on with it", "post", peer_url(peer), "-k",
           "k-1", "-d", "amount=17", "-H", "Content-Type: text/plain", "-H", "X-Api-Token: hidden", "--server",
           "keyed");
    ck_assert_uint_eq(peer_count_requests(peer), 2);
    ck_assert_str_eq(scene_field(peer, 2, "X-Plain"), "yes"); /* as it was stored */
    EXPECT(0, "done |completed |200 k-1", "", "journal", "ls");
    peer_free(peer);
}
END_TEST

static void shell_run(const char *command)
{
    int status = 0;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *) NULL);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %d", command, status);
}

/* What a person is told to enter is entered as a shell reads it. */
static const struct {
    const char *key, *sent, *with_journal, *without;
} odd_keys[] = {
    { "-it's", "-it's", "nonbis resume -- '-it'\\''s'", "the same command with -k '-it'\\''s'" },
    { "\"\\\"a\\\"\"", "\"\\\"a\\\"\"", "nonbis resume '\"a\"'", "the same command with -k '\"\\\"a\\\"\"'" },
};

START_TEST(a_key_is_told_as_it_can_be_given_again)
{
    static const struct peer_step lost[] = { { PEER_BODY, NULL, 0 }, { PEER_CLOSE, NULL, 0 }, PEER_END };
    const char *key = odd_keys[_i].key;
    char command[1600], *told = NULL;
    struct peer *peer = peer_new();
    peer_script_default(peer, lost);
#define ONCE "-d", "x", "--server", "keyed", "--attempts", "1"
    EXPECT(11, "", odd_keys[_i].without, "post", peer_url(peer), "-k", key, ONCE, "--journal", "none");
    struct program run = program_run((const char *[]){ "post", peer_url(peer), "-k", key, ONCE, NULL });
    PROGRAM_EXPECT(run, key, 11);
    program_expect_words(key, run.err, odd_keys[_i].with_journal);
    ck_assert_str_eq(scene_field(peer, 2, "Idempotency-Key"), odd_keys[_i].sent);
    told = strstr(run.err, "nonbis resume ") + strlen("nonbis ");
    told[strcspn(told, "\n")] = '\0';
    (void) snprintf(command, sizeof command, "NONBIS_JOURNAL='%s' %s/nonbis resume -q --server keyed%s >/dev/null",
                    program_journal(), suite_out(), told + strlen("resume"));
    peer_script_default(peer, fine);
    shell_run(command);
    ck_assert_uint_eq(peer_count_requests(peer), 3);
    ck_assert_str_eq(scene_field(peer, 3, "Idempotency-Key"), odd_keys[_i].sent);
    program_free(&run);
    peer_free(peer);
}
END_TEST

START_TEST(the_longest_key_of_quotes_is_spelled_whole)
{
    char key[256], spelled[KEY_SPELLED];
    memset(key, '"', 255);
    key[255] = '\0';
    ck_assert_ptr_eq(key_spelled(spelled, key), spelled);
    ck_assert_uint_eq(strlen(spelled), 512);
    ck_assert_int_eq(nonbis_key_check(spelled, NULL), NONBIS_OK);
}
END_TEST

/* What the journal has under a key is asked for, and voided, under that very key, though it looks like another one in quotes. */
START_TEST(a_decided_key_with_quotes_is_asked_for_as_it_is)
{
    struct peer *peer = peer_new();
    EXPECT(0, "ok", "", "post", peer_url(peer), "-k", "\"\\\"a\\\"\"", "-d", "x");
    struct program run = program_run((const char *[]){ "status", "\"a\"", NULL });
    ck_assert_uint_eq(peer_count_requests(peer), 2);
    ck_assert_str_eq(scene_field(peer, 2, "Idempotency-Key"), "\"\\\"a\\\"\"");
    program_free(&run);
    peer_free(peer);
}
END_TEST

START_TEST(a_refused_reuse_of_a_key_leaves_what_was_completed)
{
    struct peer *peer = peer_new();
    EXPECT(0, "ok", "", "post", peer_url(peer), "-k", "k-1", "-d", "one", "--server", "keyed");
    EXPECT(13, "", "the body is another one", "post", peer_url(peer), "-k", "k-1", "-d", "two", "--server", "keyed");
    ck_assert_uint_eq(peer_count_requests(peer), 1);
    EXPECT(0, "done |completed |200 k-1", "", "journal", "ls");
    EXPECT(0, "body      3 bytes", "", "journal", "show", "k-1");
    /* The same request again is a question for its answer; what it meets is not the end of the command. */
    peer_script_for_request(peer, 2, bad);
    peer_refuse(peer);
    EXPECT(12, "", "completed|(completed); going on with it", "post", peer_url(peer), "-k", "k-1", "-d", "one",
           "--server", "keyed", "--attempts", "1");
    EXPECT(0, "done |completed |200 k-1", "", "journal", "ls");
    /* A server that has shown nothing might execute it again: it is not sent. */
    peer_accept_again(peer);
    unsigned before = scene_count(peer, "POST", "/");
    EXPECT(12, "", "completed", "post", peer_url(peer), "-k", "k-1", "-d", "one");
    ck_assert_uint_eq(scene_count(peer, "POST", "/"), before);
    peer_free(peer);
}
END_TEST

START_TEST(secrets_are_never_in_the_journal_and_are_given_again)
{
    struct peer *peer = peer_new();
    struct program run;
    begin_hung(&run, peer, "k-1", "x", 1);
    ck_assert_str_eq(scene_field(peer, 1, "X-Api-Token"), "hidden");
    kill_it(&run);
    expect_nowhere(program_journal(), "hidden");
    EXPECT(0, "ok", "", "resume", "k-1", "--server", "keyed", "-H", "X-Api-Token: hidden");
    ck_assert_str_eq(scene_field(peer, 2, "X-Api-Token"), "hidden");
    expect_nowhere(program_journal(), "hidden");
    peer_free(peer);
}
END_TEST

START_TEST(what_another_process_works_on_is_left_to_it)
{
    struct peer *peer = peer_new();
    struct program run;
    begin_hung(&run, peer, "k-1", "x", 1);
    EXPECT(12, "", "k-1", "resume", "k-1", "--server", "keyed");
    EXPECT(0, "", "", "resume", "--server", "keyed");
    EXPECT(0, "\"locked\":true", "", "journal", "ls", "--json");
    EXPECT(0, "(at work)", "", "journal", "ls");
    ck_assert_uint_eq(peer_count_requests(peer), 1);
    kill_it(&run);
    EXPECT(0, "\"locked\":false", "", "journal", "show", "k-1", "--json");
    peer_free(peer);
}
END_TEST

START_TEST(several_are_resumed_a_line_each_and_the_worst_code_counts)
{
    struct peer *peer = peer_new();
    struct program runs[3];
    begin_hung(&runs[0], peer, "k-1", "one", 1);
    begin_hung(&runs[1], peer, "k-2", "two", 2);
    begin_hung(&runs[2], peer, "k-3", "three", 3);
    for (size_t i = 0; i < 3; i++) {
        kill_it(&runs[i]);
    }
    peer_script_for_request(peer, 5, bad);
    EXPECT(2, "", "nothing was sent|nonbis resume 'k-3' -H 'X-Api-Token: VALUE'", "resume", "--server", "keyed");
    EXPECT(4, "k-1 completed done 200 POST http|\nk-2 completed done 400 POST|\nk-3 completed done 200 POST",
           "last answer 400", "resume", "--server", "keyed", "-H", "X-Api-Token: hidden", "-H", "X-Other: yes");
    ck_assert_str_eq(scene_field(peer, 4, "X-Api-Token"), "hidden");
    ck_assert_str_eq(scene_field(peer, 4, "X-Other"), ""); /* several get what they lack, and nothing else */
    static const char *const bodies[] = { "one", "two", "three" };
    for (unsigned n = 4; n <= 6; n++) {
        ck_assert_str_eq(scene_body(peer, n), bodies[n - 4]);
    }
    ck_assert_uint_eq(peer_count_requests(peer), 6);
    peer_free(peer);
}
END_TEST

static void write_entry(const char *place, const char *name, const char *text)
{
    char path[1400];
    (void) snprintf(path, sizeof path, "%s/%s/%s", program_journal(), place, name);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(entries_that_cannot_be_read_are_told_and_do_not_keep_the_others)
{
    struct peer *peer = peer_new();
    struct program run;
    begin_hung(&run, peer, "k-2", "two", 1);
    kill_it(&run);
    write_entry("sent", "k-1", "torn");
    write_entry("sent", "k-3", "torn");
    write_entry("done", "k-4", "torn");
    EXPECT(73, "k-2 completed done 200 POST http", "sent/k-1 |sent/k-3 ", "resume", "--server", "keyed", "-H",
           "X-Api-Token: hidden");
    ck_assert_uint_eq(peer_count_requests(peer), 2);
    EXPECT(73, "", "k-1: |sent/k-1", "resume", "k-1");
    EXPECT(73, "", "k-4: |done/k-4", "resume", "k-4");
    static const char *const commands[] = { "status", "wait", "void" };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        EXPECT(73, "", "the journal's entry of this key cannot be read|--url|sent/k-1", commands[i], "k-1");
    }
    EXPECT(0, "sent |unreadable |/sent/k-1", "", "journal", "ls");
    EXPECT(0, "key       k-1|fault ", "", "journal", "show", "k-1");
    EXPECT(0, "\"fault\":\"", "", "journal", "show", "k-1", "--json");
    EXPECT(73, "", "sent/k-1", "post", peer_url(peer), "-k", "k-1", "-d", "x"); /* its key may have been used */
    ck_assert_uint_eq(peer_count_requests(peer), 2);
    peer_free(peer);
}
END_TEST

START_TEST(what_is_decided_is_not_sent_again)
{
    struct peer *peer = peer_new();
    peer_script_for_request(peer, 1, refused);
    EXPECT(14, "body-too-large", "", "post", peer_url(peer), "-k", "k-1");
    EXPECT(14, "", "decided: rejected", "resume", "k-1");
    peer_refuse(peer);
    EXPECT(10, "", "nothing was sent", "post", peer_url(peer), "-k", "k-2", "--attempts", "1");
    peer_accept_again(peer);
    EXPECT(10, "", "decided: not-sent|nonbis post", "resume", "k-2");
    EXPECT(0, "", "", "resume");
    ck_assert_uint_eq(peer_count_requests(peer), 1);
    peer_free(peer);
}
END_TEST

START_TEST(prune_takes_what_is_decided_and_leaves_the_rest)
{
    struct peer *peer = peer_new();
    struct program run;
    EXPECT(0, "ok", "", "post", peer_url(peer), "-k", "k-1");
    begin_hung(&run, peer, "k-2", "x", 2);
    kill_it(&run);
    EXPECT(0, "0 removed", "", "journal", "prune");
    EXPECT(0, "\"removed\":1", "", "journal", "prune", "--older-than", "0ms", "--json");
    EXPECT(0, "k-2", "", "journal", "ls");
    EXPECT(2, "", "no key \"k-1\"", "journal", "show", "k-1");
    EXPECT(0, "1 removed", "", "journal", "prune", "--older-than", "0ms", "--undecided");
    EXPECT(0, "", "", "journal", "ls");
    peer_free(peer);
}
END_TEST

START_TEST(ls_as_json_is_a_line_for_each_entry)
{
    struct peer *peer = peer_new();
    EXPECT(0, "ok", "", "post", peer_url(peer), "-k", "k-1", "-d", "abc");
    struct program list = program_run((const char *[]){ "journal", "ls", "--json", NULL });
    PROGRAM_EXPECT(list, "ls", 0);
    cJSON *object = cJSON_Parse(list.out);
    ck_assert_ptr_nonnull(object);
    ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(object, "state")), "done");
    ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(object, "key")), "k-1");
    ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(object, "outcome")), "completed");
    ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(object, "url")), peer_url(peer));
    ck_assert_int_eq(cJSON_GetObjectItem(object, "status")->valueint, 200);
    ck_assert_int_eq(cJSON_GetObjectItem(object, "body_length")->valueint, 3);
    cJSON_Delete(object);
    program_free(&list);
    peer_free(peer);
}
END_TEST

SUITE(journal)
{
    Suite *suite = suite_create("cli/journal");
    CASE(suite, a_killed_post_is_resumed_with_the_same_key_and_body);
    CASE(suite, a_post_with_the_key_of_an_undecided_one_goes_on_with_it_if_it_is_the_same);
    CASE_LOOP(suite, a_key_is_told_as_it_can_be_given_again, sizeof odd_keys / sizeof odd_keys[0]);
    CASE(suite, the_longest_key_of_quotes_is_spelled_whole);
    CASE(suite, a_decided_key_with_quotes_is_asked_for_as_it_is);
    CASE(suite, a_refused_reuse_of_a_key_leaves_what_was_completed);
    CASE(suite, secrets_are_never_in_the_journal_and_are_given_again);
    CASE(suite, what_another_process_works_on_is_left_to_it);
    CASE(suite, several_are_resumed_a_line_each_and_the_worst_code_counts);
    CASE(suite, entries_that_cannot_be_read_are_told_and_do_not_keep_the_others);
    CASE(suite, what_is_decided_is_not_sent_again);
    CASE(suite, prune_takes_what_is_decided_and_leaves_the_rest);
    CASE(suite, ls_as_json_is_a_line_for_each_entry);
    return suite;
}
