/* codings_test.c - bodies that are compressed are bytes like any other: nonbisd decompresses none, in neither direction (docs/threat-model.md 1; docs/contract.md
 * 1.5, 3.7, 10.6). What came is what the handler gets, what it answers is what the client and every repeat get, and the fingerprint is over the bytes. */
#include "tests/support/rig.h"

#include <unistd.h>

/* {"item":"tea"} and 20,000 blanks, packed as well as gzip can and as fast as it can: the same once unpacked. */
#define GZIP_SMALL                                                                                                     \
    "\037\213\010\000\000\000\000\000\002\377\355\301\041\021\000\040\024\005\260\052\334\213\101\033\004\002\201"     \
    "\373\216\243\073\065\020\333\116\126\315\235\236\232\043\267\001\000\000\000\000\000\000\000\000\000\000\000"     \
    "\000\000\000\000\000\000\000\000\000\360\205\007\310\370\273\377\056\116\000\000"
#define GZIP_LARGE                                                                                                     \
    "\037\213\010\000\000\000\000\000\004\377\355\320\041\021\000\040\024\005\260\052\334\213\101\033\004\002\201"     \
    "\373\216\243\073\065\020\133\204\235\254\232\073\075\065\107\156\303\200\001\003\006\014\030\060\140\300\200"     \
    "\001\003\006\014\030\060\140\300\200\001\003\006\014\030\060\140\300\200\001\003\006\014\030\060\140\300\200"     \
    "\001\003\006\014\030\060\140\300\200\001\003\006\014\030\060\140\300\200\001\003\006\014\030\060\140\300\200"     \
    "\001\003\006\014\030\060\140\300\200\001\003\006\014\030\060\140\300\200\001\003\006\276\030\170\310\370\273"     \
    "\377\056\116\000\000"
enum { SMALL = 72, LARGE = 140, REQUEST_MAX = 1024 };

static const struct peer_step packed[] = {
    { PEER_BODY, NULL, 0 },
    { PEER_SEND, "HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nContent-Length: 140\r\n\r\n", 0 },
    { PEER_SEND_BYTES, GZIP_LARGE, LARGE },
    PEER_END
};

static struct http_answer post(const struct rig *rig, const char *coding, const char *body, size_t len)
{
    static char request[REQUEST_MAX];
    int head =
        snprintf(request, sizeof request,
                 "POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: k\r\nAccept-Encoding: gzip, br\r\n"
                 "%sContent-Length: %zu\r\n\r\n",
                 coding, len);
    memcpy(request + head, body, len);
    int fd = http_connect(rig->address);
    ck_assert(http_send(fd, request, (size_t) head + len));
    struct http_answer answer = http_receive(fd, false, NULL);
    close(fd);
    return answer;
}

static void expect_packed(const struct http_answer *answer)
{
    ck_assert(answer->whole);
    ck_assert(http_field_is(answer, "Content-Encoding", "gzip"));
    ck_assert(http_field_is(answer, "Content-Length", "140"));
    ck_assert_uint_eq(answer->body_len, LARGE);
    ck_assert_mem_eq(answer->body, GZIP_LARGE, LARGE);
}

START_TEST(compressed_bodies_pass_and_are_compared_and_replayed_as_the_bytes_they_are)
{
    static const char gzip[] = "Content-Encoding: gzip\r\n";
    struct rig rig;
    struct buf seen;
    rig_start(&rig, NULL);
    peer_script_default(rig.peer, packed);
    struct http_answer first = post(&rig, gzip, GZIP_SMALL, SMALL);
    RIG_EXPECT(first, 201, "executed");
    expect_packed(&first);
    struct http_answer again = post(&rig, gzip, GZIP_SMALL, SMALL);
    RIG_EXPECT(again, 201, "replayed");
    expect_packed(&again);
    /* What unpacks to the same is another payload. */
    struct http_answer other = post(&rig, gzip, GZIP_LARGE, LARGE);
    RIG_EXPECT(other, 422, "refused");
    ck_assert_ptr_nonnull(strstr(other.body, "\"differs\":[\"body\"]"));
    ck_assert_uint_eq(peer_count_requests(rig.peer), 1);
    buf_init(&seen, REQUEST_MAX * 4);
    ck_assert(peer_request(rig.peer, 1, &seen));
    ck_assert_uint_gt(seen.len, SMALL);
    ck_assert_mem_eq(seen.ptr + seen.len - SMALL, GZIP_SMALL, SMALL);
    ck_assert_ptr_nonnull(memmem(seen.ptr, seen.len, "\r\nContent-Length: 72\r\n", 22));
    ck_assert_ptr_nonnull(memmem(seen.ptr, seen.len, "\r\nContent-Encoding: gzip\r\n", 26));
    ck_assert_ptr_nonnull(memmem(seen.ptr, seen.len, "\r\nAccept-Encoding: gzip, br\r\n", 29)); /* the client's own */
    buf_fini(&seen);
    http_answer_free(&first);
    http_answer_free(&again);
    http_answer_free(&other);
    rig_end(&rig);
}
END_TEST

SUITE(codings)
{
    Suite *suite = suite_create("integration/codings");
    CASE(suite, compressed_bodies_pass_and_are_compared_and_replayed_as_the_bytes_they_are);
    return suite;
}
