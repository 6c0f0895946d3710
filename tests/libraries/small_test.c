/* small_test.c - one or two facts each about libsodium, cJSON, libuv and Check (docs/facts.md 25, 38, 40, 41, 59). */
#include "tests/support/suite.h"

#include <cjson/cJSON.h>
#include <netinet/in.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

START_TEST(fact_25_cjson_keeps_numbers_as_doubles_and_duplicate_members)
{
    cJSON *one = cJSON_Parse("9007199254740993"), *two = cJSON_Parse("9007199254740992");
    ck_assert(cJSON_Compare(one, two, 1));
    cJSON_Delete(one);
    cJSON_Delete(two);
    cJSON *object = cJSON_Parse("{\"a\":1,\"a\":2}");
    ck_assert_int_eq(cJSON_GetArraySize(object), 2);
    ck_assert_int_eq(cJSON_GetObjectItem(object, "a")->valueint, 1);
    cJSON_Delete(object);
}
END_TEST

START_TEST(fact_40_the_state_of_generichash_needs_64_byte_alignment)
{
    ck_assert_int_ge(sodium_init(), 0);
    ck_assert_uint_eq(_Alignof(crypto_generichash_state), 64);
    ck_assert_uint_eq(sizeof(crypto_generichash_state) % 64, 0);
}
END_TEST

/* RFC 7693 appendix A, cut to what libsodium offers: BLAKE2b-512 of "abc". */
START_TEST(generichash_is_blake2b)
{
    unsigned char hash[64];
    static const unsigned char wanted[8] = { 0xba, 0x80, 0xa5, 0x3f, 0x98, 0x1c, 0x4d, 0x0d };
    ck_assert_int_ge(sodium_init(), 0);
    ck_assert_int_eq(crypto_generichash(hash, sizeof hash, (const unsigned char *) "abc", 3, NULL, 0), 0);
    ck_assert_int_eq(memcmp(hash, wanted, sizeof wanted), 0);
}
END_TEST

static int wakes;

static void on_wake(uv_async_t *wake)
{
    (void) wake;
    wakes++;
}

START_TEST(fact_38_several_wake_ups_of_a_loop_are_one_call)
{
    uv_loop_t loop;
    uv_async_t wake;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(uv_async_init(&loop, &wake, on_wake), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(uv_async_send(&wake), 0);
    }
    (void) uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(wakes, 1);
    uv_close((uv_handle_t *) &wake, NULL);
    (void) uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

static struct {
    int calls, status, events;
} polled;

static void on_poll(uv_poll_t *handle, int status, int events)
{
    (void) handle;
    polled.calls++;
    polled.status = status;
    polled.events = events;
}

/* A TCP connection; [0] is watched. */
static void connection_make(int ends[2])
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    ck_assert_int_eq(bind(listener, (struct sockaddr *) &address, len), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *) &address, &len), 0);
    ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(ends[1], (struct sockaddr *) &address, len), 0);
    ends[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(ends[0], 0);
    (void) close(listener);
}

START_TEST(fact_59_libuv_tells_of_an_end_behind_unread_bytes_and_of_a_reset_as_ebadf)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };
    int ends[2];
    uv_loop_t loop;
    uv_poll_t poll;
    connection_make(ends);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(uv_poll_init(&loop, &poll, ends[0]), 0);
    ck_assert_int_eq(uv_poll_start(&poll, UV_DISCONNECT, on_poll), 0);
    ck_assert_int_eq(send(ends[1], "x", 1, MSG_NOSIGNAL), 1);
    (void) uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(polled.calls, 0);
    ck_assert_int_eq(shutdown(ends[1], SHUT_WR), 0);
    (void) uv_run(&loop, UV_RUN_NOWAIT);
    (void) uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(polled.calls, 2);
    ck_assert_int_eq(polled.status, 0);
    ck_assert_int_eq(polled.events, UV_DISCONNECT);
    ck_assert_int_eq(setsockopt(ends[1], SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    (void) close(ends[1]);
    (void) uv_run(&loop, UV_RUN_NOWAIT);
    (void) uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(polled.calls, 3);
    ck_assert_int_eq(polled.status, UV_EBADF);
    ck_assert_int_eq(polled.events, 0);
    ck_assert(!uv_is_active((uv_handle_t *) &poll));
    uv_close((uv_handle_t *) &poll, NULL);
    (void) uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    (void) close(ends[0]);
}
END_TEST

START_TEST(fact_41_check_finds_nothing_wrong_with_no_tests_at_all)
{
    SRunner *runner = srunner_create(suite_create("empty"));
    srunner_run_all(runner, CK_SILENT);
    ck_assert_int_eq(srunner_ntests_run(runner), 0);
    ck_assert_int_eq(srunner_ntests_failed(runner), 0);
    srunner_free(runner);
}
END_TEST

SUITE(small)
{
    Suite *suite = suite_create("libraries/small");
    CASE(suite, fact_25_cjson_keeps_numbers_as_doubles_and_duplicate_members);
    CASE(suite, fact_40_the_state_of_generichash_needs_64_byte_alignment);
    CASE(suite, generichash_is_blake2b);
    CASE(suite, fact_38_several_wake_ups_of_a_loop_are_one_call);
    CASE(suite, fact_59_libuv_tells_of_an_end_behind_unread_bytes_and_of_a_reset_as_ebadf);
    CASE(suite, fact_41_check_finds_nothing_wrong_with_no_tests_at_all);
    return suite;
}
