/* tls_test.c - a handler that is reached by https: `openssl s_server` plays it, and the test is its keyboard. Its certificate vouches for
 * itself and is for "localhost". Without that program nothing is tried. */
#include "tests/support/daemon.h"
#include "tests/upstream/probe.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of nobody: made for this test, and valid from 2000 to 2126, so that a machine whose clock is behind can run it. */
static const char certificate[] = "-----BEGIN CERTIFICATE-----\n"
                                  "MIIBajCCARCgAwIBAgIQdyVYRhErmpYsuUiO7OB6xTAKBggqhkjOPQQDAjARMQ8w\n"
                                  "DQYDVQQDDAZhIHRlc3QwIBcNMDAwMTAxMDAwMDAwWhgPMjEyNjAxMDEwMDAwMDBa\n"
                                  "MBExDzANBgNVBAMMBmEgdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABNSl\n"
                                  "eQTP128j4btC7gwrPZR8chQadlMvsnI3a1qGzTu441pI8pdUljw9kp0/UQ0D+17n\n"
                                  "PUrVwVdTkovsYPICOi2jSDBGMB0GA1UdDgQWBBQ7X1Wh8uIGTIHfrRB8ZqY4ipN1\n"
                                  "gTAPBgNVHRMBAf8EBTADAQH/MBQGA1UdEQQNMAuCCWxvY2FsaG9zdDAKBggqhkjO\n"
                                  "PQQDAgNIADBFAiA7kOBxUAACn2a/52THFJquMgzVThpUWHTDUPM1BoiZEgIhAMKe\n"
                                  "f29TN/YOD8goMfVgj5H1Fu6cZdAXyJ8r4SjwyPgI\n"
                                  "-----END CERTIFICATE-----\n";
static const char private_key[] = "-----BEGIN PRIVATE KEY-----\n"
                                  "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgQ/7gGRuXINdVWMLg\n"
                                  "tq+rTSfgn5ZRugTlSWl8aKtDfnChRANCAATUpXkEz9dvI+G7Qu4MKz2UfHIUGnZT\n"
                                  "L7JyN2tahs07uONaSPKXVJY8PZKdP1ENA/te5z1K1cFXU5KL7GDyAjot\n"
                                  "-----END PRIVATE KEY-----\n";

enum { HEARD_MAX = 64 * 1024, BODY_BYTES = 100 * 1000 };

struct handler {
    pid_t pid;
    int keyboard, screen;
    unsigned port;
    char heard[HEARD_MAX]; /* all that it has printed */
    size_t heard_len;
    char ca_file[600];
};

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* Until the text was printed so many times. */
static void handler_hear(struct handler *handler, const char *text, int times)
{
    for (;;) {
        int seen = 0;
        for (const char *at = handler->heard; (at = strstr(at, text)) != NULL; at++) {
            seen++;
        }
        if (seen >= times) {
            return;
        }
        ssize_t got = read(handler->screen, handler->heard + handler->heard_len, HEARD_MAX - 1 - handler->heard_len);
        ck_assert_msg(got > 0, "it ended, or said too much: %s", handler->heard);
        handler->heard_len += (size_t) got;
        handler->heard[handler->heard_len] = '\0';
    }
}

static void handler_say(const struct handler *handler, const char *text)
{
    ck_assert_int_eq(write(handler->keyboard, text, strlen(text)), (ssize_t) strlen(text));
}

/* False: there is no such program here. `mode`: what it shall do beside, or NULL. */
static bool handler_start(struct handler *handler, char *mode)
{
    char key[600];
    int in[2], out[2];
    memset(handler, 0, sizeof *handler);
    (void) snprintf(handler->ca_file, sizeof handler->ca_file, "%s/c.pem", daemon_folder());
    (void) snprintf(key, sizeof key, "%s/k.pem", daemon_folder());
    write_file(handler->ca_file, certificate);
    write_file(key, private_key);
    ck_assert_int_eq(pipe(in), 0);
    ck_assert_int_eq(pipe(out), 0);
    handler->pid = fork();
    ck_assert_int_ge(handler->pid, 0);
    if (handler->pid == 0) {
        (void) dup2(in[0], STDIN_FILENO);
        (void) dup2(out[1], STDOUT_FILENO);
        (void) dup2(out[1], STDERR_FILENO);
        (void) close(in[1]);
        (void) close(out[0]);
        (void) execlp("openssl", "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", handler->ca_file, "-key",
                      key, mode, (char *) NULL);
        _exit(127);
    }
    (void) close(in[0]);
    (void) close(out[1]);
    handler->keyboard = in[1];
    handler->screen = out[0];
    char first;
    if (read(handler->screen, &first, 1) != 1) {
        (void) waitpid(handler->pid, NULL, 0);
        FIGURE("there is no openssl here: https was not tried");
        return false;
    }
    handler->heard[handler->heard_len++] = first;
    handler_hear(handler, "ACCEPT 127.0.0.1:", 1);
    handler_hear(handler, "\n", 1);
    const char *address = strstr(handler->heard, "ACCEPT 127.0.0.1:");
    handler->port = (unsigned) strtoul(address + strlen("ACCEPT 127.0.0.1:"), NULL, 10);
    return true;
}

static void handler_end(struct handler *handler)
{
    (void) kill(handler->pid, SIGKILL);
    (void) waitpid(handler->pid, NULL, 0);
    (void) close(handler->keyboard);
    (void) close(handler->screen);
}

static void open_at(struct probe *probe, const struct handler *handler, const char *host, const char *ca_file)
{
    char url[64];
    struct upstream_options options = probe_options();
    options.ca_file = ca_file;
    *probe = (struct probe){ .peer = NULL };
    (void) snprintf(url, sizeof url, "https://%s:%u", host, handler->port);
    probe_open_at(probe, options, url);
}

/* Two exchanges on one connection; the second answer is longer than anything that is read at once. */
START_TEST(exchanges_by_https_share_a_connection)
{
    static char body[BODY_BYTES + 1];
    struct handler handler;
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    if (!handler_start(&handler, NULL)) {
        return;
    }
    open_at(&probe, &handler, "localhost", handler.ca_file);
    probe_start(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("6", "first!"));
    while (probe_figures(&probe).sent == 0) {
        probe_turn(&probe);
    }
    handler_hear(&handler, "Content-Length: 6\r\n\r\nfirst!", 1);
    handler_say(&handler, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok");
    probe_wait(&call);
    ck_assert_msg(call.end == ATTEMPT_COMPLETE, "%s", call.reason);
    ck_assert_int_eq(call.status, 201);
    probe_expect_body(&call, "ok");
    probe_done(&call);
    probe_start(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("7", "second!"));
    handler_hear(&handler, "Content-Length: 7\r\n\r\nsecond!", 1);
    memset(body, 'x', BODY_BYTES);
    handler_say(&handler, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    for (int i = 0; i < BODY_BYTES; i += 1000) {
        char part[1001] = "";
        memcpy(part, body + i, 1000);
        handler_say(&handler, part);
        probe_turn(&probe); /* else its screen and its keyboard could both be full */
    }
    probe_wait(&call);
    ck_assert_msg(call.end == ATTEMPT_COMPLETE, "%s", call.reason);
    probe_expect_body(&call, body);
    probe_done(&call);
    ck_assert_uint_eq(probe_figures(&probe).connects, 1);
    ck_assert_uint_eq(probe_figures(&probe).reuses, 1);
    probe_close(&probe);
    handler_end(&handler);
}
END_TEST

/* Index 0: nobody vouches for it; 1: it is another's. */
START_TEST(a_false_certificate_is_refused_and_nothing_is_sent)
{
    struct handler handler;
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    if (!handler_start(&handler, NULL)) {
        return;
    }
    open_at(&probe, &handler, _i == 0 ? "localhost" : "127.0.0.1", _i == 0 ? NULL : handler.ca_file);
    probe_exchange(&probe, &call, UPSTREAM_PROTECTED, PROBE_POST("6", "first!"));
    ck_assert_int_eq(call.end, ATTEMPT_NOT_SENT);
    ck_assert_msg(strstr(call.reason, _i == 0
                                          ? "SSL certificate problem: self-signed certificate"
                                          : "SSL: no alternative certificate subject name matches target host") != NULL,
                  "it says \"%s\"", call.reason);
    ck_assert_uint_eq(probe_figures(&probe).sent, 0);
    probe_done(&call);
    probe_close(&probe);
    handler_end(&handler);
}
END_TEST

/* A body that only the end of the connection ends is whole when the handler says so within TLS (index 0: its own page about itself). An end of TCP
 * alone (1) proves nothing: whoever stands between could make it. */
START_TEST(a_body_is_ended_by_the_end_of_tls_and_not_by_that_of_tcp)
{
    static char page[] = "-www";
    struct handler handler;
    struct probe probe;
    struct probe_call call = { .deed = PROBE_NOTHING };
    if (!handler_start(&handler, _i == 0 ? page : NULL)) {
        return;
    }
    open_at(&probe, &handler, "localhost", handler.ca_file);
    probe_start(&probe, &call, UPSTREAM_PASSTHROUGH, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    if (_i == 1) {
        while (probe_figures(&probe).sent == 0) {
            probe_turn(&probe);
        }
        handler_hear(&handler, "GET / HTTP/1.1", 1);
        handler_say(&handler, "HTTP/1.1 200 OK\r\n\r\nall of it");
        while (call.body.len < strlen("all of it")) {
            probe_turn(&probe);
        }
        (void) kill(handler.pid, SIGKILL);
    }
    probe_wait(&call);
    ck_assert_int_eq(call.status, 200);
    ck_assert(!call.has_length);
    ck_assert_uint_gt(call.body.len, 0);
    ck_assert_msg(call.end == (_i == 0 ? ATTEMPT_COMPLETE : ATTEMPT_CUT), "ended %s: %s", attempt_end_name(call.end),
                  call.reason);
    if (_i == 1) {
        ck_assert_ptr_nonnull(strstr(call.reason, "the end of TCP came before that of TLS"));
    }
    probe_done(&call);
    probe_close(&probe);
    handler_end(&handler);
}
END_TEST

SUITE(upstream_tls)
{
    Suite *suite = suite_create("upstream/tls");
    CASE(suite, exchanges_by_https_share_a_connection);
    CASE_LOOP(suite, a_false_certificate_is_refused_and_nothing_is_sent, 2);
    CASE_LOOP(suite, a_body_is_ended_by_the_end_of_tls_and_not_by_that_of_tcp, 2);
    return suite;
}
