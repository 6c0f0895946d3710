/* acceptor_test.c - listening addresses, and running out of descriptors. */
#include "tests/edge/stage.h"
#include "tests/support/suite.h"

#include <sys/resource.h>
#include <unistd.h>

static const struct {
    const char *address;
    const char *error; /* NULL: good */
} addresses[] = {
    { "127.0.0.1:8620", NULL },
    { "0.0.0.0:0", NULL },
    { "[::1]:8620", NULL },
    { "[::]:65535", NULL },
    { "127.0.0.1",
      "\"127.0.0.1\" is no address: write 127.0.0.1:8620 or [::1]:8620 (a port of 0 lets the system choose)" },
    { ":8620", "\":8620\" is no address: write 127.0.0.1:8620 or [::1]:8620 (a port of 0 lets the system choose)" },
    { "", "\"\" is no address: write 127.0.0.1:8620 or [::1]:8620 (a port of 0 lets the system choose)" },
    { "[::1]", "\"[::1]\" is no address: write 127.0.0.1:8620 or [::1]:8620 (a port of 0 lets the system choose)" },
    { "[::1:80", "\"[::1:80\" is no address: write 127.0.0.1:8620 or [::1]:8620 (a port of 0 lets the system choose)" },
    { "::1:80", "\"::1:80\": \"::1\" is no numeric IPv4 address (host names are not looked up)" },
    { "localhost:80", "\"localhost:80\": \"localhost\" is no numeric IPv4 address (host names are not looked up)" },
    { "[::g]:80", "\"[::g]:80\": \"::g\" is no numeric IPv6 address (host names are not looked up)" },
    { "127.0.0.1:", "\"127.0.0.1:\": the port must be a number from 0 to 65535" },
    { "127.0.0.1:65536", "\"127.0.0.1:65536\": the port must be a number from 0 to 65535" },
    { "127.0.0.1:-1", "\"127.0.0.1:-1\": the port must be a number from 0 to 65535" },
    { "127.0.0.1:80x", "\"127.0.0.1:80x\": the port must be a number from 0 to 65535" },
};

START_TEST(an_address_is_taken_or_refused_with_a_sentence)
{
    struct buf error;
    buf_init(&error, 1000);
    bool good = acceptor_check_address(addresses[_i].address, &error);
    ck_assert_int_eq(good, addresses[_i].error == NULL);
    struct view wanted = view_of(addresses[_i].error);
    ck_assert_msg(view_equal(buf_view(&error), wanted), "said: %.*s", VIEW_ARGS(buf_view(&error)));
    buf_fini(&error);
}
END_TEST

START_TEST(an_address_in_use_is_an_error_that_names_it)
{
    struct stage stage;
    stage_start(&stage);
    struct loop *loop = loop_new();
    struct buf error;
    buf_init(&error, 1000);
    ck_assert_ptr_null(acceptor_open(loop, acceptor_address(stage.acceptor), NULL, NULL, &error));
    char wanted[256];
    (void) snprintf(wanted, sizeof wanted,
                    "cannot listen on 127.0.0.1:%u: Address already in use. Another process has this port (ss -ltnp "
                    "tells which): stop it, or name another port",
                    stage.port);
    ck_assert_msg(view_equal(buf_view(&error), view_of(wanted)), "said: %.*s", VIEW_ARGS(buf_view(&error)));
    buf_fini(&error);
    loop_free(loop);
    stage_stop(&stage);
}
END_TEST

START_TEST(an_address_of_another_machine_is_an_error_that_tells_what_to_do)
{
    struct loop *loop = loop_new();
    struct buf error;
    buf_init(&error, 1000);
    ck_assert_ptr_null(acceptor_open(loop, "203.0.113.1:0", NULL, NULL, &error)); /* of documents (RFC 5737) */
    ck_assert_msg(view_equal(buf_view(&error),
                             VIEW("cannot listen on 203.0.113.1:0: Cannot assign requested address. This machine has "
                                  "no such address (ip address tells which it has): name one of its own")),
                  "said: %.*s", VIEW_ARGS(buf_view(&error)));
    buf_fini(&error);
    loop_free(loop);
}
END_TEST

START_TEST(without_descriptors_connections_wait_and_are_served_when_some_are_free_again)
{
    struct stage stage;
    struct client client;
    stage_start(&stage);
    client_connect(&client, &stage);
    client_ask(&client, "GET /whole HTTP/1.1\r\nHost: h\r\n\r\n", "GET", 200, "");
    client_close(&client);
    /* Take every descriptor but the one that the next client needs. */
    struct rlimit limit = { .rlim_cur = 64, .rlim_max = 64 };
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int taken[64], count = 0;
    while ((taken[count] = dup(2)) >= 0) {
        count++;
    }
    ck_assert_int_gt(count, 1);
    (void) close(taken[--count]);
    client_connect(&client, &stage); /* in the backlog */
    client_send(&client, "GET /whole?waited HTTP/1.1\r\nHost: h\r\n\r\n");
    ck_assert_uint_eq(stage_count(&stage, "head /whole?waited"), 0);
    while (count > 0) {
        (void) close(taken[--count]);
    }
    client_ask(&client, "", "GET", 200, "");
    client_close(&client);
    stage_stop(&stage);
}
END_TEST

SUITE(edge_acceptor)
{
    Suite *suite = suite_create("edge/acceptor");
    CASE_LOOP(suite, an_address_is_taken_or_refused_with_a_sentence, sizeof addresses / sizeof addresses[0]);
    CASE(suite, an_address_in_use_is_an_error_that_names_it);
    CASE(suite, an_address_of_another_machine_is_an_error_that_tells_what_to_do);
    CASE(suite, without_descriptors_connections_wait_and_are_served_when_some_are_free_again);
    return suite;
}
