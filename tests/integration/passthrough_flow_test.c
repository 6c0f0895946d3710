/* passthrough_flow_test.c - what passes through when it is large or slow (docs/contract.md section 1): flat memory, and back-pressure both
 * ways. */
#include "tests/support/process_memory.h"
#include "tests/support/rig.h"
#include "tests/support/stream_client.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define HOST "Host: test.example\r\n"

enum {
    MIB = 1024 * 1024,
    BIG_MIB = 512,
    STALL_MIB = 64,
    GROWTH_MAX_KB = 8 * 1024,
    STILL_MS = 100, /* so long nothing moves: then the buffers on the way are full */
    BLOCK = 64 * 1024,
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MEMORY_IS_MEASURED = 0 }; /* a sanitizer keeps freed memory */
#else
enum { MEMORY_IS_MEASURED = 1 };
#endif

static const char *const only_orders[] = { "--store", "memory", "--route", "POST /orders*", NULL };

/* --- memory --- */

struct memory {
    pid_t pid;
    long before_kb;
};

static struct memory memory_watch(const struct rig *rig)
{
    process_memory_reset_peak(rig->nonbis.pid);
    return (struct memory){ rig->nonbis.pid, process_memory_peak_kb(rig->nonbis.pid) };
}

static void memory_expect_flat(const struct memory *memory, const char *what)
{
    long peak_kb = process_memory_peak_kb(memory->pid);
    FIGURE("%s: nonbisd resident before=%ld kB peak=%ld kB growth=%ld kB pss=%ld kB", what, memory->before_kb, peak_kb,
           peak_kb - memory->before_kb, process_memory_now_kb(memory->pid));
    if (MEMORY_IS_MEASURED) {
        ck_assert_int_lt(peak_kb - memory->before_kb, GROWTH_MAX_KB);
    }
}

/* --- stalling --- */

/* As much of it as goes without waiting for longer than STILL_MS. Returns how much that was. */
static uint64_t send_pattern_until_stalled(int fd, uint64_t until)
{
    static char block[BLOCK];
    uint64_t at = 0;
    struct pollfd polled = { .fd = fd, .events = POLLOUT };
    while (at < until && poll(&polled, 1, STILL_MS) == 1) {
        size_t part = until - at < BLOCK ? (size_t) (until - at) : BLOCK;
        peer_pattern_write(block, part, at);
        ssize_t went = send(fd, block, part, MSG_NOSIGNAL | MSG_DONTWAIT);
        ck_assert_int_gt(went, 0);
        at += (uint64_t) went;
    }
    return at;
}

/* Until no more bytes come to those that wait for us: then everything on the way is full. */
static void wait_until_still(int fd)
{
    struct pollfd polled = { .fd = fd, .events = POLLIN };
    int before = -1, waiting = 0, one = 1;
    while (waiting != before) {
        before = waiting;
        int more = waiting + 1;
        ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &more, sizeof more), 0);
        (void) poll(&polled, 1, STILL_MS);
        ck_assert_int_eq(ioctl(fd, FIONREAD, &waiting), 0);
    }
    ck_assert_int_gt(waiting, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one), 0);
}

/* --- size --- */

START_TEST(half_a_gigabyte_goes_up_and_down_in_flat_memory)
{
    static const struct peer_step script[] = { { PEER_BODY_PATTERN, NULL, 0 },
                                               { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 536870912\r\n\r\n", 0 },
                                               { PEER_SEND_PATTERN, NULL, 536870912 },
                                               PEER_END };
    char head[1024];
    struct rig rig;
    rig_start(&rig, only_orders);
    peer_script_for_request(rig.peer, 2, script);
    struct http_answer warm = http_request(rig.address, "GET", "/warm", NULL, NULL);
    RIG_EXPECT(warm, 200, "");
    struct memory memory = memory_watch(&rig);
    int64_t started_ms = suite_now_ms();
    int fd = http_connect(rig.address);
    ck_assert(stream_send_text(fd, "PUT /x HTTP/1.1\r\n" HOST "Content-Length: 536870912\r\n\r\n"));
    ck_assert(stream_send_pattern(fd, 0, (uint64_t) BIG_MIB * MIB));
    ck_assert(peer_wait_whole(rig.peer, 2)); /* every byte was compared */
    int64_t up_ms = suite_now_ms() - started_ms;
    stream_read_head(fd, head, sizeof head);
    ck_assert_ptr_nonnull(strstr(head, "Content-Length: 536870912\r\n"));
    ck_assert_uint_eq(stream_read_pattern(fd, 0, (uint64_t) BIG_MIB * MIB), (uint64_t) BIG_MIB * MIB);
    FIGURE("%d MiB up in %lld ms, down in %lld ms", BIG_MIB, (long long) up_ms,
           (long long) (suite_now_ms() - started_ms - up_ms));
    memory_expect_flat(&memory, "512 MiB up and down");
    close(fd);
    http_answer_free(&warm);
    rig_end(&rig);
}
END_TEST

START_TEST(chunked_megabytes_go_up_and_down_unchanged)
{
    static const struct peer_step script[] = { { PEER_BODY_PATTERN, NULL, 0 },
                                               { PEER_SEND,
                                                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n800000\r\n", 0 },
                                               { PEER_SEND_PATTERN, NULL, 8 * MIB },
                                               { PEER_SEND, "\r\n0\r\n\r\n", 0 },
                                               PEER_END };
    struct rig rig;
    rig_start(&rig, only_orders);
    peer_script_default(rig.peer, script);
    int fd = http_connect(rig.address);
    ck_assert(stream_send_text(fd, "PUT /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"));
    uint64_t at = 0;
    for (unsigned size = 1; at < 8 * MIB; size = size * 3 % 100003) {
        char line[16];
        (void) snprintf(line, sizeof line, "%x\r\n", size);
        ck_assert(stream_send_text(fd, line) && stream_send_pattern(fd, at, at + size) && stream_send_text(fd, "\r\n"));
        at += size;
    }
    ck_assert(stream_send_text(fd, "0\r\n\r\n"));
    struct http_answer answer = http_receive(fd, false, NULL);
    RIG_EXPECT(answer, 200, "");
    ck_assert_uint_eq(peer_count_whole(rig.peer), 1);
    ck_assert(answer.whole);
    ck_assert_uint_eq(answer.body_len, 8 * MIB);
    ck_assert(peer_pattern_matches(answer.body, answer.body_len, 0));
    http_answer_free(&answer);
    close(fd);
    rig_end(&rig);
}
END_TEST

/* --- slowness --- */

START_TEST(a_handler_that_does_not_read_holds_the_client_back_and_not_the_memory_of_nonbisd)
{
    static const struct peer_step script[] = { { PEER_WAIT, NULL, 0 },
                                               { PEER_BODY_PATTERN, NULL, 0 },
                                               { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0 },
                                               PEER_END };
    struct rig rig;
    rig_start(&rig, only_orders);
    peer_script_for_request(rig.peer, 2, script);
    struct http_answer warm = http_request(rig.address, "GET", "/warm", NULL, NULL);
    struct memory memory = memory_watch(&rig);
    int fd = http_connect(rig.address);
    ck_assert(stream_send_text(fd, "PUT /x HTTP/1.1\r\n" HOST "Content-Length: 67108864\r\n\r\n"));
    uint64_t at = send_pattern_until_stalled(fd, (uint64_t) STALL_MIB * MIB);
    ck_assert_uint_lt(at, (uint64_t) STALL_MIB * MIB);
    FIGURE("handler does not read: the client was held back after %llu KiB of %d MiB", (unsigned long long) at / 1024,
           STALL_MIB);
    memory_expect_flat(&memory, "stalled upload");
    peer_release(rig.peer, 1);
    ck_assert(stream_send_pattern(fd, at, (uint64_t) STALL_MIB * MIB));
    struct http_answer answer = http_receive(fd, false, NULL);
    RIG_EXPECT(answer, 200, "");
    ck_assert_uint_eq(peer_count_whole(rig.peer), 2);
    memory_expect_flat(&memory, "upload after the stall");
    http_answer_free(&warm);
    http_answer_free(&answer);
    close(fd);
    rig_end(&rig);
}
END_TEST

START_TEST(a_client_that_does_not_read_holds_the_handler_back_and_not_the_memory_of_nonbisd)
{
    static const struct peer_step script[] = { { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n", 0 },
                                               { PEER_SEND_PATTERN, NULL, STALL_MIB * MIB },
                                               { PEER_WAIT, NULL, 0 },
                                               PEER_END };
    char head[1024];
    struct rig rig;
    rig_start(&rig, only_orders);
    peer_script_for_request(rig.peer, 2, script);
    struct http_answer warm = http_request(rig.address, "GET", "/warm", NULL, NULL);
    struct memory memory = memory_watch(&rig);
    int fd = http_connect(rig.address);
    ck_assert(stream_send_text(fd, "GET /x HTTP/1.1\r\n" HOST "\r\n"));
    stream_read_head(fd, head, sizeof head);
    wait_until_still(fd);
    int waiting = 0;
    ck_assert_int_eq(ioctl(fd, FIONREAD, &waiting), 0);
    FIGURE("client does not read: the handler was held back with %d KiB before the client", waiting / 1024);
    memory_expect_flat(&memory, "stalled download");
    /* The others do not wait for it. */
    struct http_answer other = http_request(rig.address, "GET", "/other", NULL, NULL);
    RIG_EXPECT(other, 200, "");
    ck_assert_uint_eq(stream_read_pattern(fd, 0, (uint64_t) STALL_MIB * MIB), (uint64_t) STALL_MIB * MIB);
    ck_assert(peer_wait_stalled(rig.peer, 1));
    memory_expect_flat(&memory, "download after the stall");
    http_answer_free(&warm);
    http_answer_free(&other);
    close(fd);
    rig_end(&rig);
}
END_TEST

START_TEST(bytes_that_drip_arrive)
{
    static const struct peer_step script[] = {
        { PEER_BODY, NULL, 0 },
        { PEER_DRIP, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 0 },
        PEER_END
    };
    static const char request[] = "PUT /x HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nabcde";
    struct rig rig;
    rig_start(&rig, only_orders);
    peer_script_default(rig.peer, script);
    int fd = http_connect(rig.address);
    for (size_t i = 0; i < sizeof request - 1; i++) {
        ck_assert(http_send(fd, request + i, 1));
    }
    struct http_answer answer = http_receive(fd, false, NULL);
    RIG_EXPECT(answer, 200, "");
    ck_assert_str_eq(answer.body, "hello");
    ck_assert_uint_eq(peer_count_whole(rig.peer), 1);
    http_answer_free(&answer);
    close(fd);
    rig_end(&rig);
}
END_TEST

/* Answers reach the client as they come, not when they are whole. */
START_TEST(the_beginning_of_an_answer_does_not_wait_for_its_end)
{
    static const struct peer_step script[] = {
        { PEER_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nevent\r\n", 0 },
        { PEER_WAIT, NULL, 0 },
        { PEER_SEND, "0\r\n\r\n", 0 },
        PEER_END
    };
    char head[1024];
    char chunk[16] = "";
    struct rig rig;
    rig_start(&rig, only_orders);
    peer_script_default(rig.peer, script);
    int fd = http_connect(rig.address);
    ck_assert(stream_send_text(fd, "GET /events HTTP/1.1\r\n" HOST "\r\n"));
    stream_read_head(fd, head, sizeof head);
    ck_assert_int_eq(recv(fd, chunk, 10, MSG_WAITALL), 10);
    ck_assert_str_eq(chunk, "5\r\nevent\r\n");
    peer_release(rig.peer, 1);
    ck_assert_int_eq(recv(fd, chunk, 5, MSG_WAITALL), 5);
    ck_assert_mem_eq(chunk, "0\r\n\r\n", 5);
    close(fd);
    rig_end(&rig);
}
END_TEST

/* A handler of the test's own on a Unix socket, whose queue is small and the same each time. */
static int handler_listen(char *url, size_t size)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void) snprintf(address.sun_path, sizeof address.sun_path, "/tmp/nonbis-flow-%ld.sock", (long) getpid());
    (void) snprintf(url, size, "unix:%s", address.sun_path);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void) unlink(address.sun_path);
    ck_assert_int_eq(bind(listener, (const struct sockaddr *) &address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, 8), 0);
    return listener;
}

/* How many bytes wait for us, once it is so many for STILL_MS. */
static int waiting_when_still(int fd)
{
    int before = -1, waiting = 0;
    while (waiting == 0 || waiting != before) {
        struct pollfd never = { .fd = -1 };
        before = waiting;
        (void) poll(&never, 1, STILL_MS);
        ck_assert_int_eq(ioctl(fd, FIONREAD, &waiting), 0);
    }
    return waiting;
}

/* An upload of `len` bytes on a connection of its own; the handler has not read any of it yet. */
static int upload_begin(const struct rig *rig, int listener, size_t len, int *handler)
{
    static char body[1024 * 1024];
    char head[128];
    int fd = http_connect(rig->address);
    (void) snprintf(head, sizeof head, "PUT /x HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n", len);
    ck_assert(stream_send_text(fd, head) && http_send(fd, body, len));
    *handler = accept(listener, NULL, NULL);
    ck_assert_int_ge(*handler, 0);
    return fd;
}

/* The handler reads on and begins its answer while nonbisd looks away: it finds both at once. */
static void answer_while_the_end_of_the_upload_waits(const struct rig *rig, int client, int handler)
{
    static const char begin[] = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegin";
    static char sink[BLOCK];
    char head[1024];
    (void) waiting_when_still(handler);
    daemon_signal(&rig->nonbis, SIGSTOP);
    while (recv(handler, sink, sizeof sink, MSG_DONTWAIT) > 0) {
    }
    ck_assert(http_send(handler, begin, sizeof begin - 1));
    daemon_signal(&rig->nonbis, SIGCONT);
    /* Whatever of the upload nonbisd still has is read away; there is no end of the answer. */
    struct pollfd polled[] = { { .fd = client, .events = POLLIN }, { .fd = handler, .events = POLLIN } };
    while ((polled[0].revents & POLLIN) == 0) {
        ck_assert_msg(poll(polled, 2, PEER_DEADLINE_MS) > 0, "the client waits for the beginning of its answer");
        (void) recv(handler, sink, sizeof sink, MSG_DONTWAIT);
    }
    stream_read_head(client, head, sizeof head);
    ck_assert_ptr_nonnull(strstr(head, "Content-Length: 1000\r\n"));
}

/* Between what the handler's queue and nonbisd's own buffer hold lies the size at which the client has sent all, and the last piece still waits. */
START_TEST(an_answer_that_begins_while_the_end_of_the_upload_waits_is_not_held_back)
{
    enum { OWN_BUFFER = 64 * 1024, STEP = 8 * 1024, STEPS = 6 };
    char url[160];
    int listener = handler_listen(url, sizeof url), handler;
    const char *const more[] = { "--store", "memory", "--route", "POST /orders*", "--upstream", url, NULL };
    struct rig rig;
    rig_start(&rig, more);
    int client = upload_begin(&rig, listener, 1024 * 1024 - 1, &handler);
    size_t queue = (size_t) waiting_when_still(handler);
    close(handler);
    close(client);
    FIGURE("the handler's queue holds %zu bytes", queue);
    for (size_t step = 0; step < STEPS; step++) {
        client = upload_begin(&rig, listener, queue + OWN_BUFFER + step * STEP, &handler);
        answer_while_the_end_of_the_upload_waits(&rig, client, handler);
        close(client);
        close(handler);
    }
    (void) unlink(url + sizeof "unix:" - 1);
    close(listener);
    rig_end(&rig);
}
END_TEST

SUITE(passthrough_flow)
{
    Suite *suite = suite_create("integration/passthrough_flow");
    CASE(suite, half_a_gigabyte_goes_up_and_down_in_flat_memory);
    CASE(suite, chunked_megabytes_go_up_and_down_unchanged);
    CASE(suite, a_handler_that_does_not_read_holds_the_client_back_and_not_the_memory_of_nonbisd);
    CASE(suite, a_client_that_does_not_read_holds_the_handler_back_and_not_the_memory_of_nonbisd);
    CASE(suite, bytes_that_drip_arrive);
    CASE(suite, the_beginning_of_an_answer_does_not_wait_for_its_end);
    CASE(suite, an_answer_that_begins_while_the_end_of_the_upload_waits_is_not_held_back);
    return suite;
}
