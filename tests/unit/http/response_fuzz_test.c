/* response_fuzz_test.c - server/http/response_reader.c against damaged responses: it never crashes, never depends on how
 * the bytes were cut, and never calls complete what lacks a byte of its framing. */
#include "tests/support/suite.h"
#include "tests/unit/http/response_feed.h"

#define TEXT(literal)                                                                                                  \
    {                                                                                                                  \
        (literal), sizeof(literal) - 1                                                                                 \
    }
#define OK11 "HTTP/1.1 200 OK\r\n"

static const struct view samples[] = {
    TEXT(OK11 "Content-Length: 5\r\nX-A:  b \r\n\r\nhello"),
    TEXT(OK11 "Content-Length: 0\r\nConnection: close\r\n\r\n"),
    TEXT("HTTP/1.0 200 OK\r\nContent-Length: 12\r\nKeep-Alive: timeout=5\r\n\r\nhello\r\nworld"),
    TEXT(OK11 "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=\"y\"\r\n\r\nwrld\r\n0\r\n\r\n"),
    TEXT(OK11 "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0;e\r\nX-Trailer: t\r\nContent-Length: 9\r\n\r\n"),
    TEXT("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"),
    TEXT("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"),
    TEXT("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nLink: </a>\r\n\r\n" OK11 "Content-Length: 1\r\n\r\nx"),
    TEXT("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
    TEXT(OK11 "\r\nuntil the close"),
    TEXT(OK11 "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
};

/* Writes a damaged copy of a sample and returns its length. */
static size_t mutate(struct suite_random *random, struct view sample, char *out, size_t room)
{
    static const char marks[] = "\r\n\r\n :;,0159afF\t\0HTTPchunked";
    size_t len = sample.len;
    memcpy(out, sample.ptr, len);
    for (unsigned changes = 1 + suite_random_below(random, 4); changes > 0 && len > 1; changes--) {
        size_t at = suite_random_below(random, (unsigned) len);
        char byte = suite_random_below(random, 3) == 0 ? (char) suite_random_below(random, 256)
                                                       : marks[suite_random_below(random, sizeof(marks) - 1)];
        switch (suite_random_below(random, 5)) {
        case 0:
            out[at] = byte;
            break;
        case 1:
            if (len < room) {
                memmove(out + at + 1, out + at, len - at);
                out[at] = byte;
                len++;
            }
            break;
        case 2:
            memmove(out + at, out + at + 1, len - at - 1);
            len--;
            break;
        case 3: { /* a piece twice */
            size_t copied = suite_random_below(random, (unsigned) (len - at)) + 1;
            if (len + copied <= room) {
                memmove(out + at + copied, out + at, len - at);
                len += copied;
            }
            break;
        }
        default:
            len = at + 1;
            break;
        }
    }
    return len;
}

START_TEST(damaged_responses_are_judged_alike_however_they_are_cut)
{
    enum { ROUNDS = 20000 };
    unsigned seed = suite_seed(), ends = 0, faults = 0;
    struct suite_random random;
    suite_random_start(&random, seed);
    for (int round = 0; round < ROUNDS; round++) {
        char bytes[1600];
        struct view sample = samples[suite_random_below(&random, sizeof(samples) / sizeof(samples[0]))];
        int flags = (int) suite_random_below(&random, 4);
        struct view damaged = view_make(bytes, mutate(&random, sample, bytes, sizeof(bytes)));
        struct response_seen whole = response_feed(damaged, flags, feed_whole, NULL);
        struct response_seen pieces = response_feed(damaged, flags, feed_random, &random);
        bool ended = whole.last == RESPONSE_END;
        ck_assert_msg(whole.last == pieces.last && whole.close == pieces.close && whole.fault == pieces.fault &&
                          whole.head == pieces.head && whole.body_len == pieces.body_len &&
                          (!ended || whole.taken == pieces.taken),
                      "seed=%u round=%d: %d/%d, fault %d/%d", seed, round, (int) whole.last, (int) pieces.last,
                      (int) whole.fault, (int) pieces.fault);
        ck_assert_mem_eq(whole.body, pieces.body, whole.body_len);
        if (ended) {
            ck_assert(whole.head && whole.status >= 200 && whole.framing != RESPONSE_FRAMING_CLOSE);
            ck_assert(whole.framing != RESPONSE_FRAMING_LENGTH || whole.body_len == whole.length);
            /* One byte less, and the same response is not complete. */
            struct response_seen cut = response_feed(view_make(bytes, whole.taken - 1), flags, feed_whole, NULL);
            ck_assert_msg(cut.last == RESPONSE_MORE && cut.close == RESPONSE_BAD, "seed=%u round=%d", seed, round);
        }
        ends += ended;
        faults += whole.last == RESPONSE_BAD;
    }
    FIGURE("response mutations seed=%u rounds=%d ends=%u faults=%u", seed, ROUNDS, ends, faults);
}
END_TEST

SUITE(response_fuzz)
{
    Suite *suite = suite_create("http/response_fuzz");
    CASE(suite, damaged_responses_are_judged_alike_however_they_are_cut);
    return suite;
}
