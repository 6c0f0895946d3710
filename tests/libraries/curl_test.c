/* curl_test.c - what libcurl does that the upstream leg was built around (docs/facts.md 1 to 4, 6c, 33, 60). */
#include "tests/support/daemon.h"
#include "tests/support/suite.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

/* A server that answers the first `good` requests of the run with `answer` and closes at the next ones; an empty `answer` echoes. */
struct server {
    int listener;
    unsigned port;
    pthread_t thread;
    unsigned good;
    const char *answer;
    bool close_after_answer;
    pthread_mutex_t lock;
    unsigned requests;
    char text[8192]; /* everything received */
};

static bool server_handle(struct server *server, int fd)
{
    char got[4096];
    ssize_t len = recv(fd, got, sizeof got - 1, 0);
    if (len <= 0) {
        return false;
    }
    got[len] = '\0';
    pthread_mutex_lock(&server->lock);
    unsigned number = ++server->requests;
    size_t used = strlen(server->text);
    (void) snprintf(server->text + used, sizeof server->text - used, "%s", got);
    pthread_mutex_unlock(&server->lock);
    if (number > server->good) {
        return false;
    }
    const char *answer = server->answer[0] != '\0' ? server->answer : got;
    (void) send(fd, answer, strlen(answer), MSG_NOSIGNAL);
    return !server->close_after_answer;
}

static void *server_main(void *context)
{
    struct server *server = context;
    int fd;
    while ((fd = accept(server->listener, NULL, NULL)) >= 0) {
        while (server_handle(server, fd)) {
        }
        (void) close(fd);
    }
    return NULL;
}

static void server_start(struct server *server, unsigned good, const char *answer)
{
    *server = (struct server){ .good = good, .answer = answer };
    pthread_mutex_init(&server->lock, NULL);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(server->listener, (struct sockaddr *) &address, len), 0);
    ck_assert_int_eq(listen(server->listener, 16), 0);
    ck_assert_int_eq(getsockname(server->listener, (struct sockaddr *) &address, &len), 0);
    server->port = ntohs(address.sin_port);
    ck_assert_int_eq(pthread_create(&server->thread, NULL, server_main, server), 0);
    ck_assert_int_eq(curl_global_init(CURL_GLOBAL_DEFAULT), CURLE_OK);
}

static void server_stop(struct server *server)
{
    (void) shutdown(server->listener, SHUT_RDWR);
    ck_assert_int_eq(pthread_join(server->thread, NULL), 0);
    (void) close(server->listener);
    curl_global_cleanup();
}

static unsigned server_requests(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    unsigned requests = server->requests;
    pthread_mutex_unlock(&server->lock);
    return requests;
}

static size_t ignore_body(char *bytes, size_t size, size_t count, void *context)
{
    (void) bytes;
    (void) context;
    return size * count;
}

static CURL *post_to(unsigned port)
{
    char url[64];
    (void) snprintf(url, sizeof url, "http://127.0.0.1:%u/orders", port);
    CURL *easy = curl_easy_init();
    ck_assert_ptr_nonnull(easy);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "x");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore_body);
    return easy;
}

static int one_send(void *context, char *address, char *local, int port, int local_port)
{
    (void) address;
    (void) local;
    (void) port;
    (void) local_port;
    unsigned *sends = context;
    return ++*sends == 1 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static const char *const kept = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

START_TEST(fact_1_curl_sends_a_post_again_by_itself_on_a_reused_connection_that_dies)
{
    struct server server;
    server_start(&server, 1, kept);
    CURL *easy = post_to(server.port);
    ck_assert_int_eq(curl_easy_perform(easy), CURLE_OK);
    ck_assert_int_ne(curl_easy_perform(easy), CURLE_OK);
    ck_assert_uint_ge(server_requests(&server), 3); /* two were asked for */
    curl_easy_cleanup(easy);
    server_stop(&server);
}
END_TEST

START_TEST(fact_1_the_prereq_hook_stops_the_second_sending)
{
    struct server server;
    unsigned sends = 0;
    server_start(&server, 1, kept);
    CURL *easy = post_to(server.port);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, one_send);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, &sends);
    ck_assert_int_eq(curl_easy_perform(easy), CURLE_OK);
    sends = 0;
    ck_assert_int_eq(curl_easy_perform(easy), CURLE_ABORTED_BY_CALLBACK);
    ck_assert_uint_eq(server_requests(&server), 2);
    curl_easy_cleanup(easy);
    server_stop(&server);
}
END_TEST

START_TEST(fact_2_the_prereq_hook_is_not_called_when_nothing_was_sent)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    unsigned sends = 0;
    int silent =
        socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* has the port and does not listen: nobody else does */
    ck_assert_int_eq(bind(silent, (struct sockaddr *) &address, len), 0);
    ck_assert_int_eq(getsockname(silent, (struct sockaddr *) &address, &len), 0);
    ck_assert_int_eq(curl_global_init(CURL_GLOBAL_DEFAULT), CURLE_OK);
    CURL *easy = post_to(ntohs(address.sin_port));
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, one_send);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, &sends);
    ck_assert_int_eq(curl_easy_perform(easy), CURLE_COULDNT_CONNECT);
    ck_assert_uint_eq(sends, 0);
    curl_easy_cleanup(easy);
    curl_global_cleanup();
    (void) close(silent);
}
END_TEST

static const char *const cut_answers[] = { "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Le",
                                           "HTTP/1.1 200 OK\r\n\r\nhalf a bo" };

START_TEST(fact_3_curl_calls_a_cut_answer_a_success)
{
    struct server server;
    server_start(&server, 1, cut_answers[_i]);
    server.close_after_answer = true;
    CURL *easy = post_to(server.port);
    ck_assert_int_eq(curl_easy_perform(easy), CURLE_OK);
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    ck_assert_int_eq(status, 200);
    curl_easy_cleanup(easy);
    server_stop(&server);
}
END_TEST

START_TEST(fact_4_curl_sends_a_value_with_crlf_as_two_lines_and_fields_nobody_asked_for)
{
    struct server server;
    server_start(&server, 1, kept);
    CURL *easy = post_to(server.port);
    struct curl_slist *fields = curl_slist_append(NULL, "X-A: v\r\nInjected: yes");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields);
    ck_assert_int_eq(curl_easy_perform(easy), CURLE_OK);
    ck_assert_ptr_nonnull(strstr(server.text, "X-A: v\r\nInjected: yes\r\n"));
    ck_assert_ptr_nonnull(strstr(server.text, "Accept: */*\r\n"));
    ck_assert_ptr_nonnull(strstr(server.text, "Content-Type: application/x-www-form-urlencoded\r\n"));
    curl_slist_free_all(fields);
    curl_easy_cleanup(easy);
    server_stop(&server);
}
END_TEST

static void multi_finish(CURLM *multi)
{
    int running = 1;
    while (running > 0) {
        ck_assert_int_eq(curl_multi_perform(multi, &running), CURLM_OK);
        if (running > 0) {
            ck_assert_int_eq(curl_multi_poll(multi, NULL, 0, 1000, NULL), CURLM_OK);
        }
    }
}

static void echo_once(CURL *easy, const char *text)
{
    size_t sent = 0, got = 0;
    char back[64];
    ck_assert_int_eq(curl_easy_send(easy, text, strlen(text), &sent), CURLE_OK);
    ck_assert_uint_eq(sent, strlen(text));
    curl_socket_t fd;
    ck_assert_int_eq(curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &fd), CURLE_OK);
    CURLcode code;
    while ((code = curl_easy_recv(easy, back, sizeof back, &got)) == CURLE_AGAIN) {
        struct pollfd ready = { .fd = fd, .events = POLLIN };
        ck_assert_int_eq(poll(&ready, 1, 5000), 1);
    }
    ck_assert_int_eq(code, CURLE_OK);
    ck_assert_uint_eq(got, strlen(text));
    ck_assert_int_eq(memcmp(back, text, got), 0);
}

START_TEST(fact_6c_connect_only_carries_exchanges_while_the_handle_stays_in_its_multi)
{
    struct server server;
    server_start(&server, 100, "");
    CURL *easy = post_to(server.port);
    CURLM *multi = curl_multi_init();
    curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
    ck_assert_int_eq(curl_multi_add_handle(multi, easy), CURLM_OK);
    multi_finish(multi);
    echo_once(easy, "one");
    echo_once(easy, "two");
    echo_once(easy, "three");
    ck_assert_int_eq(curl_multi_remove_handle(multi, easy), CURLM_OK);
    size_t sent = 0;
    ck_assert_int_ne(curl_easy_send(easy, "four", 4, &sent), CURLE_OK);
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
    server_stop(&server);
}
END_TEST

START_TEST(fact_33_curl_obeys_proxy_variables_unless_told_otherwise)
{
    struct server server;
    server_start(&server, 1, kept);
    ck_assert_int_eq(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
    (void) unsetenv("no_proxy");
    (void) unsetenv("NO_PROXY");
    CURL *easy = post_to(server.port);
    curl_easy_setopt(easy, CURLOPT_PROXY, NULL);
    ck_assert_int_eq(curl_easy_perform(easy), CURLE_COULDNT_CONNECT);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    ck_assert_int_eq(curl_easy_perform(easy), CURLE_OK);
    curl_easy_cleanup(easy);
    server_stop(&server);
}
END_TEST

/* A certificate to trust; nobody has its key. */
static const char certificate[] = "-----BEGIN CERTIFICATE-----\n"
                                  "MIIBeTCCAR+gAwIBAgIUaFF+C/V6ZaH1ig64byPcAvkzszMwCgYIKoZIzj0EAwIw\n"
                                  "ETEPMA0GA1UEAwwGYSB0ZXN0MCAXDTI2MTEzMDA0MTQyN1oYDzIxMjYxMTA2MDQx\n"
                                  "NDI3WjARMQ8wDQYDVQQDDAZhIHRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n"
                                  "AASloyZqq7azXlXUep5BLhAC9NkmDjGWOFZ76AGQeUz10L+JpJtg4M0E0O2mL0sk\n"
                                  "ft5FThVmoR2LjdRlQBGMI3IPo1MwUTAdBgNVHQ4EFgQUrJXteWqiL5cPIK0roEFb\n"
                                  "/wmv3dYwHwYDVR0jBBgwFoAUrJXteWqiL5cPIK0roEFb/wmv3dYwDwYDVR0TAQH/\n"
                                  "BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEA5AbyIYgOUjEmIIiioJf3rDPLpXtD\n"
                                  "inTkTMPLtx2G9KQCIH+HqsYJ8FhaOFqMORQQxYpLXE7m7zPirpjsSSxRFi4b\n"
                                  "-----END CERTIFICATE-----\n";

/* Whether a file was opened since the last look. */
static bool was_opened(int watch)
{
    char events[4096];
    return read(watch, events, sizeof events) > 0;
}

/* How many of three TLS connections in one multi handle open the file; their handshakes fail, which comes later. */
static unsigned opens_of_three(unsigned port, const char *ca_file, bool with_directory)
{
    CURLM *multi = curl_multi_init();
    char url[64];
    unsigned opens = 0;
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    ck_assert_int_ge(inotify_add_watch(watch, ca_file, IN_OPEN), 0);
    (void) snprintf(url, sizeof url, "https://127.0.0.1:%u/", port);
    for (int i = 0; i < 3; i++) {
        CURL *easy = post_to(port);
        curl_easy_setopt(easy, CURLOPT_URL, url);
        curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file);
        if (!with_directory) {
            curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        }
        ck_assert_int_eq(curl_multi_add_handle(multi, easy), CURLM_OK);
        multi_finish(multi);
        ck_assert_int_eq(curl_multi_remove_handle(multi, easy), CURLM_OK);
        curl_easy_cleanup(easy);
        opens += was_opened(watch) ? 1 : 0;
    }
    close(watch);
    curl_multi_cleanup(multi);
    return opens;
}

START_TEST(fact_60_curl_reads_its_certificates_for_every_connection_while_it_has_a_directory_of_them)
{
    struct server server;
    char path[600];
    server_start(&server, 0, kept);
    (void) snprintf(path, sizeof path, "%s/ca.pem", daemon_folder());
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(certificate, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_ptr_nonnull(curl_version_info(CURLVERSION_NOW)->capath); /* by default, whatever CAINFO says */
    ck_assert_uint_eq(opens_of_three(server.port, path, true), 3);
    ck_assert_uint_eq(opens_of_three(server.port, path, false), 1);
    server_stop(&server);
}
END_TEST

SUITE(curl)
{
    Suite *suite = suite_create("libraries/curl");
    CASE(suite, fact_1_curl_sends_a_post_again_by_itself_on_a_reused_connection_that_dies);
    CASE(suite, fact_1_the_prereq_hook_stops_the_second_sending);
    CASE(suite, fact_2_the_prereq_hook_is_not_called_when_nothing_was_sent);
    CASE_LOOP(suite, fact_3_curl_calls_a_cut_answer_a_success, sizeof cut_answers / sizeof cut_answers[0]);
    CASE(suite, fact_4_curl_sends_a_value_with_crlf_as_two_lines_and_fields_nobody_asked_for);
    CASE(suite, fact_6c_connect_only_carries_exchanges_while_the_handle_stays_in_its_multi);
    CASE(suite, fact_60_curl_reads_its_certificates_for_every_connection_while_it_has_a_directory_of_them);
    CASE(suite, fact_33_curl_obeys_proxy_variables_unless_told_otherwise);
    return suite;
}
