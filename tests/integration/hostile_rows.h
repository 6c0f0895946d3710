/* hostile_rows.h - requests that two parsers could read in two ways, or that no honest client sends, as raw bytes, with what nonbis must do.
 *
 * `answers` are the status codes that come back on the connection, in order, the answer to the canary behind the request included;
 * " close" behind them: nonbis ends the connection by itself. `forwarded` is how many requests, the canary apart, reach the handler.
 * `open_*` is the same when the request goes to a route that passes through; an empty `open_answers` means that nothing differs.
 * In the rows called residual the bytes cannot be told from honest ones through the HTTP library; what is seen is written down.
 *
 * Used by hostile_test.c, which sends them to nonbisd itself, and by tests/proof/front, which sends them through a front proxy. */
#ifndef NONBIS_TESTS_HOSTILE_ROWS_H
#define NONBIS_TESTS_HOSTILE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct hostile {
    const char *name;
    const char *bytes;
    size_t len;
    const char *answers;
    unsigned forwarded;
    const char *open_answers;
    unsigned open_forwarded;
    size_t padding; /* so many 'x' stand where the '~' is */
};

enum {
    BEGUN = 1000
}; /* the head may have been forwarded before the fault came; then the handler sees the request cut */

#define RAW(text) (text), sizeof(text) - 1
#define FIELDS "Host: test.example\r\nIdempotency-Key: hostile\r\nContent-Type: text/plain\r\n"
#define POST "POST /orders HTTP/1.1\r\n" FIELDS
#define LEN3 "Content-Length: 3\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define END3 "\r\nabc"
#define END_CHUNKED "\r\n3\r\nabc\r\n0\r\n\r\n"
#define TEN(field) field field field field field field field field field field

/* Refused on both kinds of route; the canary behind it never runs. */
#define REFUSED(status) status " close", 0, "", 0, 0
#define CLOSED "close", 0, "", 0, 0
#define TOO_LONG(status, padding) status " close", 0, "", 0, padding
/* As good as any: it is forwarded, and the canary too. */
#define GOOD "200 200", 1, "", 0, 0
/* It is forwarded, and nothing that follows is believed: chunks hide from us where they end. */
#define GOOD_LAST "200 close", 1, "", 0, 0

static const struct hostile hostiles[] = {
    /* --- controls: the canary does run behind an honest request --- */
    { "control: Content-Length", RAW(POST LEN3 END3), GOOD },
    { "control: chunked", RAW(POST CHUNKED END_CHUNKED), GOOD_LAST },
    { "control: leading zeros in Content-Length", RAW(POST "Content-Length: 0003\r\n" END3), GOOD },
    { "control: blanks around values", RAW(POST "X-A: \t a b \t\r\nX-B:\r\nX-C:   \r\nContent-Length:3\r\n" END3),
      GOOD },
    { "control: an empty line before the request", RAW("\r\n" POST LEN3 END3), GOOD },
    { "control: query and percent signs", RAW("POST /orders?a=%20&b&c=%00+d HTTP/1.1\r\n" FIELDS LEN3 END3), GOOD },
    { "control: chunked in capitals", RAW(POST "Transfer-Encoding: CHUNKED\r\n" END_CHUNKED), GOOD_LAST },
    { "control: cookies", RAW(POST "Cookie: a=b; c=\"d e\"; f\r\nCookie: g\r\n" LEN3 END3), GOOD },

    /* --- framing --- */
    { "Content-Length and chunked", RAW(POST LEN3 CHUNKED "\r\n0\r\n\r\n"), REFUSED("400") },
    { "chunked and Content-Length", RAW(POST CHUNKED LEN3 "\r\n0\r\n\r\n"), REFUSED("400") },
    { "two Content-Lengths that differ", RAW(POST LEN3 "Content-Length: 90\r\n" END3), REFUSED("400") },
    { "two Content-Lengths, the larger first", RAW(POST "Content-Length: 90\r\n" LEN3 END3), REFUSED("400") },
    { "two equal Content-Lengths", RAW(POST LEN3 LEN3 END3), REFUSED("400") },
    { "a list as Content-Length", RAW(POST "Content-Length: 3, 3\r\n" END3), REFUSED("400") },
    { "a sign before Content-Length", RAW(POST "Content-Length: +3\r\n" END3), REFUSED("400") },
    { "negative Content-Length", RAW(POST "Content-Length: -3\r\n" END3), REFUSED("400") },
    { "hexadecimal Content-Length", RAW(POST "Content-Length: 0x3\r\n" END3), REFUSED("400") },
    { "a blank inside Content-Length", RAW(POST "Content-Length: 3 0\r\n" END3), REFUSED("400") },
    { "a blank behind Content-Length", RAW(POST "Content-Length: 3 \r\n" END3), REFUSED("400") },
    { "empty Content-Length", RAW(POST "Content-Length:\r\n" END3), REFUSED("400") },
    { "Content-Length over 64 bits", RAW(POST "Content-Length: 18446744073709551619\r\n" END3), REFUSED("413") },
    { "blank before the colon of Content-Length", RAW(POST "Content-Length : 3\r\n" END3), REFUSED("400") },
    { "tab before the colon of Content-Length", RAW(POST "Content-Length\t: 3\r\n" END3), REFUSED("400") },
    { "xchunked", RAW(POST "Transfer-Encoding: xchunked\r\n" END_CHUNKED), REFUSED("501") },
    { "gzip, chunked", RAW(POST "Transfer-Encoding: gzip, chunked\r\n" END_CHUNKED), REFUSED("501") },
    { "chunked, identity", RAW(POST "Transfer-Encoding: chunked, identity\r\n" END_CHUNKED), REFUSED("501") },
    { "identity", RAW(POST "Transfer-Encoding: identity\r\n" LEN3 END3), REFUSED("400") },
    { "identity alone", RAW(POST "Transfer-Encoding: identity\r\n" END3), REFUSED("501") },
    { "empty Transfer-Encoding", RAW(POST "Transfer-Encoding:\r\n" END_CHUNKED), REFUSED("501") },
    { "quoted chunked", RAW(POST "Transfer-Encoding: \"chunked\"\r\n" END_CHUNKED), REFUSED("501") },
    { "chunked with a parameter", RAW(POST "Transfer-Encoding: chunked;q=1\r\n" END_CHUNKED), REFUSED("501") },
    { "chunked twice in a line", RAW(POST "Transfer-Encoding: chunked, chunked\r\n" END_CHUNKED), REFUSED("501") },
    { "chunked twice", RAW(POST CHUNKED CHUNKED END_CHUNKED), REFUSED("400") },
    { "chunked and another coding", RAW(POST CHUNKED "Transfer-Encoding: x\r\n" END_CHUNKED), REFUSED("400") },
    { "a blank behind chunked", RAW(POST "Transfer-Encoding: chunked \r\n" END_CHUNKED), REFUSED("400") },
    { "vertical tab before chunked", RAW(POST "Transfer-Encoding: \vchunked\r\n" END_CHUNKED), REFUSED("400") },
    { "blank before the colon of Transfer-Encoding", RAW(POST "Transfer-Encoding : chunked\r\n" END_CHUNKED),
      REFUSED("400") },
    { "chunked in HTTP/1.0", RAW("POST /orders HTTP/1.0\r\n" FIELDS CHUNKED END_CHUNKED), REFUSED("400") },
    { "a byte over 0x7f in a framing name", RAW(POST "Content-Length\xa0: 3\r\n" END3), REFUSED("400") },
    { "no framing", RAW(POST "\r\n"), "411 close", 0, "200 200", 1, 0 },

    /* --- field lines --- */
    { "a folded key", RAW("POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: hos\r\n tile\r\n" LEN3 END3),
      REFUSED("400") },
    { "a name built by folding",
      RAW("POST /orders HTTP/1.1\r\nHost: test.example\r\nIdem: hostile\r\n potency-Key\r\n" LEN3 END3),
      REFUSED("400") },
    { "a folded Content-Length", RAW(POST "Content-Length: 3\r\n 0\r\n" END3), REFUSED("400") },
    { "Content-Length built by folding", RAW(POST "Content: 3\r\n -Length\r\n" END3), REFUSED("400") },
    { "chunked hidden in a fold", RAW(POST "X: y\r\n Transfer-Encoding: chunked\r\n" LEN3 END3), REFUSED("400") },
    { "a fold of blanks alone", RAW(POST "X: y\r\n \r\n" LEN3 END3), REFUSED("400") },
    { "a fold by a tab", RAW(POST "X: y\r\n\tz\r\n" LEN3 END3), REFUSED("400") },
    { "a blank before the first field",
      RAW("POST /orders HTTP/1.1\r\n Host: test.example\r\nIdempotency-Key: hostile\r\n" LEN3 END3), REFUSED("400") },
    { "an empty name before Content-Length", RAW(POST ":\r\n" LEN3 END3), REFUSED("400") },
    { "an empty name after Content-Length",
      RAW(POST LEN3 ":\r\n"
                    "X-A: b\r\n" END3),
      REFUSED("400") },
    { "an empty name with a value after Content-Length", RAW(POST LEN3 ": x\r\n" END3), REFUSED("400") },
    { "an empty name at the end", RAW(POST LEN3 ":\r\n" END3), REFUSED("400") },
    { "a line without a colon", RAW(POST LEN3 "garbage\r\n" END3), REFUSED("400") },
    { "bare LF behind a field",
      RAW("POST /orders HTTP/1.1\r\nHost: test.example\nIdempotency-Key: hostile\r\n" LEN3 END3), REFUSED("400") },
    { "bare LF behind Content-Length", RAW(POST "Content-Length: 3\n" END3), REFUSED("400") },
    { "bare LF behind the request line", RAW("POST /orders HTTP/1.1\n" FIELDS LEN3 END3), REFUSED("400") },
    { "bare LF as the empty line", RAW(POST LEN3 "\nabc"), REFUSED("400") },
    { "bare LF everywhere",
      RAW("POST /orders HTTP/1.1\nHost: test.example\nIdempotency-Key: hostile\nContent-Length: 3\n\nabc"),
      REFUSED("400") },
    { "bare CR in a value", RAW(POST "X: a\rTransfer-Encoding: chunked\r\n" LEN3 END3), REFUSED("400") },
    { "bare CR in a name", RAW(POST "X\rY: a\r\n" LEN3 END3), REFUSED("400") },
    { "CR CR LF", RAW(POST "X: a\r\r\n" LEN3 END3), REFUSED("400") },
    { "NUL in a value",
      RAW("POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: hostile\0zz\r\n" LEN3 END3),
      REFUSED("400") },
    { "NUL at the end of a value",
      RAW("POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: hostile\0\r\n" LEN3 END3), REFUSED("400") },
    { "NUL in Content-Length",
      RAW(POST "Content-Length: 3\0"
               "0\r\n" END3),
      REFUSED("400") },
    { "NUL in Transfer-Encoding", RAW(POST "Transfer-Encoding: chunked\0x\r\n" END_CHUNKED), REFUSED("400") },
    { "NUL in a name", RAW(POST "X\0Y: a\r\n" LEN3 END3), REFUSED("400") },
    { "NUL before the colon", RAW(POST "Content-Length\0: 3\r\n" END3), REFUSED("400") },
    { "a line that begins with NUL", RAW(POST LEN3 "\0X: y\r\n" END3), REFUSED("400") },
    { "a control byte in a value",
      RAW(POST "X: a\x01"
               "b\r\n" LEN3 END3),
      REFUSED("400") },
    { "DEL in a value", RAW(POST "X: a\x7f\r\n" LEN3 END3), REFUSED("400") },
    { "parentheses in a name", RAW(POST "X(y): a\r\n" LEN3 END3), REFUSED("400") },

    /* --- fields that may not come twice, or may not be named --- */
    { "two keys", RAW(POST "Idempotency-Key: other\r\n" LEN3 END3), "400 close", 0, "200 200", 1, 0 },
    { "two Hosts", RAW(POST "Host: other.example\r\n" LEN3 END3), REFUSED("400") },
    { "two Content-Types", RAW(POST "Content-Type: text/html\r\n" LEN3 END3), REFUSED("400") },
    { "two Content-Encodings", RAW(POST "Content-Encoding: a\r\nContent-Encoding: b\r\n" LEN3 END3), REFUSED("400") },
    { "two Authorizations", RAW(POST "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n" LEN3 END3),
      REFUSED("400") },
    { "two X-API-Keys", RAW(POST "X-API-Key: a\r\nX-API-Key: b\r\n" LEN3 END3), GOOD },
    { "no Host", RAW("POST /orders HTTP/1.1\r\nIdempotency-Key: hostile\r\n" LEN3 END3), REFUSED("400") },
    { "empty Host", RAW("POST /orders HTTP/1.1\r\nHost:\r\nIdempotency-Key: hostile\r\n" LEN3 END3), REFUSED("400") },
    { "a path in Host", RAW("POST /orders HTTP/1.1\r\nHost: a/b\r\nIdempotency-Key: hostile\r\n" LEN3 END3),
      REFUSED("400") },
    { "a user name in Host", RAW("POST /orders HTTP/1.1\r\nHost: a@b\r\nIdempotency-Key: hostile\r\n" LEN3 END3),
      REFUSED("400") },
    { "Connection names the key", RAW(POST "Connection: Idempotency-Key\r\n" LEN3 END3), REFUSED("400") },
    { "Connection names Authorization", RAW(POST "Connection: close, authorization\r\n" LEN3 END3), REFUSED("400") },
    { "Connection names Content-Length", RAW(POST "Connection: Content-Length\r\n" LEN3 END3), REFUSED("400") },
    { "Connection names Host", RAW(POST "Connection: keep-alive\r\nConnection: x, Host\r\n" LEN3 END3),
      REFUSED("400") },
    { "another expectation", RAW(POST "Expect: 200-maybe\r\n" LEN3 END3), REFUSED("400") },

    /* --- request line --- */
    { "CONNECT", RAW("CONNECT test.example:443 HTTP/1.1\r\nHost: test.example:443\r\n\r\n"), REFUSED("501") },
    { "TRACE", RAW("TRACE /orders HTTP/1.1\r\nHost: test.example\r\n\r\n"), REFUSED("501") },
    { "method in small letters", RAW("post /orders HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("501") },
    { "a method that is no token", RAW("PO\"ST /orders HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("501") },
    { "HTTP/1.9", RAW("POST /orders HTTP/1.9\r\n" FIELDS LEN3 END3), GOOD },
    { "HTTP/2.0", RAW("POST /orders HTTP/2.0\r\n" FIELDS LEN3 END3), REFUSED("505") },
    { "HTTP/0.9", RAW("POST /orders HTTP/0.9\r\n" FIELDS LEN3 END3), REFUSED("505") },
    { "http/1.1", RAW("POST /orders http/1.1\r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "no version", RAW("POST /orders\r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "one word", RAW("POST\r\n" FIELDS LEN3 END3), CLOSED },
    { "two blanks before the target", RAW("POST  /orders HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "two blanks before the version", RAW("POST /orders  HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "a tab for a blank", RAW("POST\t/orders HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "a blank in the target", RAW("POST /orders x HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "a blank behind the version", RAW("POST /orders HTTP/1.1 \r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "NUL in the target", RAW("POST /orders\0x HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "NUL in the query", RAW("POST /orders?a\0x HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "a fragment", RAW("POST /orders#x HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "a control byte in the target", RAW("POST /orders\x7f HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "a target without a slash", RAW("POST orders HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "another authority", RAW("POST http://other.example/orders HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "a user name in the authority",
      RAW("POST http://test.example@other.example/orders HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "a bad percent sign", RAW("POST /orders/%zz HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "a TLS hello",
      RAW("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
          "0123456789\r\n\r\n"),
      CLOSED },
    { "an HTTP/2 preface", RAW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), REFUSED("505") },

    /* --- size --- */
    { "100 fields too many", RAW(POST TEN(TEN("X: y\r\n")) LEN3 END3), REFUSED("431") },
    { "a field of 8 KiB", RAW(POST "X: ~\r\n" LEN3 END3), TOO_LONG("431", 8192) },
    { "a field of 20 KB", RAW(POST "X: ~\r\n" LEN3 END3), TOO_LONG("431", 20000) },
    { "a target of 5000 bytes", RAW("POST /orders/~ HTTP/1.1\r\n" FIELDS LEN3 END3), TOO_LONG("414", 5000) },
    { "a target of 20 KB", RAW("POST /orders/~ HTTP/1.1\r\n" FIELDS LEN3 END3), TOO_LONG("414", 20000) },

    /* --- paths that a handler could read as another route --- */
    { "a dot segment", RAW("POST /orders/../orders HTTP/1.1\r\n" FIELDS LEN3 END3), "400 close", 0, "200 200", 1, 0 },
    { "an encoded dot segment", RAW("POST /orders/%2e%2e/orders HTTP/1.1\r\n" FIELDS LEN3 END3), "400 close", 0,
      "200 200", 1, 0 },
    { "an encoded slash", RAW("POST /orders%2f1 HTTP/1.1\r\n" FIELDS LEN3 END3), "400 close", 0, "200 200", 1, 0 },
    { "%00", RAW("POST /orders/%00 HTTP/1.1\r\n" FIELDS LEN3 END3), "400 close", 0, "200 200", 1, 0 },
    { "a dot segment from an open path to a protected one", RAW("POST /x/../order%73 HTTP/1.1\r\n" FIELDS LEN3 END3),
      REFUSED("400") },
    { "an encoded dot segment from an open path", RAW("POST /x/%2E./order%73 HTTP/1.1\r\n" FIELDS LEN3 END3),
      REFUSED("400") },
    { "a dot segment into our own paths", RAW("POST /x/../_nonbis/v1 HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("400") },
    { "an encoded letter in our own path", RAW("POST /%5Fnonbis/v1 HTTP/1.1\r\n" FIELDS LEN3 END3), REFUSED("405") },

/* --- chunks: of a protected request nothing is forwarded; a passing one has begun by then, and its handler sees it cut --- */
#define CHUNK(name, body, status)                                                                                      \
    {                                                                                                                  \
        name, RAW(POST CHUNKED "\r\n" body), status " close", 0, status " close", BEGUN, 0                             \
    }
    CHUNK("hexadecimal prefix in a chunk size", "0x3\r\nabc\r\n0\r\n\r\n", "400"),
    CHUNK("negative chunk size", "-3\r\nabc\r\n0\r\n\r\n", "400"),
    CHUNK("a sign before a chunk size", "+3\r\nabc\r\n0\r\n\r\n", "400"),
    CHUNK("a blank behind a chunk size", "3 \r\nabc\r\n0\r\n\r\n", "400"),
    CHUNK("a blank before a chunk size", " 3\r\nabc\r\n0\r\n\r\n", "400"),
    CHUNK("an empty chunk size", "\r\nabc\r\n0\r\n\r\n", "400"),
    CHUNK("a chunk size over 64 bits", "10000000000000003\r\nabc\r\n0\r\n\r\n", "413"),
    CHUNK("a chunk that is longer than it says", "3\r\nabcd\r\n0\r\n\r\n", "400"),
    CHUNK("a chunk ended by CR alone", "3\r\nabc\r0\r\n\r\n", "400"),
    CHUNK("an empty name as the first trailer", "3\r\nabc\r\n0\r\n:\r\n", "400"),
    CHUNK("no digits", "g\r\nabc\r\n0\r\n\r\n", "400"),
    { "a chunk extension", RAW(POST CHUNKED "\r\n3;a=\"b\"\r\nabc\r\n0;c\r\n\r\n"), GOOD_LAST },
    { "trailers", RAW(POST CHUNKED "\r\n3\r\nabc\r\n0\r\nIdempotency-Key: other\r\nContent-Length: 90\r\n\r\n"),
      GOOD_LAST },

    /* --- residual --- */
    { "residual: LF behind a chunk size", RAW(POST CHUNKED "\r\n3\nabc\r\n0\r\n\r\n"), GOOD_LAST },
    { "residual: LF behind a chunk", RAW(POST CHUNKED "\r\n3\r\nabc\n0\r\n\r\n"), GOOD_LAST },
    { "residual: LF inside a chunk extension", RAW(POST CHUNKED "\r\n3;a\nabc\r\n0\r\n\r\n"), GOOD_LAST },
    { "residual: a chunk that is shorter than it says, by a CR", RAW(POST CHUNKED "\r\n4\r\nabc\r\n0\r\n\r\n"),
      GOOD_LAST },
    { "residual: LF behind the last chunk", RAW(POST CHUNKED "\r\n3\r\nabc\r\n0\n\r\n"), GOOD_LAST },
    { "residual: an empty name behind a trailer", RAW(POST CHUNKED "\r\n3\r\nabc\r\n0\r\nX: y\r\n:\r\n"), GOOD_LAST },
    { "residual: NUL LF for CR LF",
      RAW("POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: hostile\0\n" LEN3 END3), GOOD },
    { "residual: a colon and LF for the empty line", RAW(POST LEN3 ":\nabc"), GOOD },
    { "residual: LF, a colon and CR LF for the end of the head",
      RAW("POST /orders HTTP/1.1\r\n" FIELDS "Content-Length: 3\n:" END3), GOOD },
    { "residual: LF, NUL and CR LF for the end of the head",
      RAW("POST /orders HTTP/1.1\r\n" FIELDS "Content-Length: 3\n\0" END3), GOOD },
    { "residual: NUL, CR LF and LF for the end of the head",
      RAW("POST /orders HTTP/1.1\r\n" FIELDS "Content-Length: 3\0\r\n\nabc"), GOOD },
    { "residual: NUL LF for the empty line", RAW(POST LEN3 "\0\nabc"), GOOD },
    { "residual: a line before the request that begins with NUL", RAW("\0GET /x HTTP/1.1\r\n" POST LEN3 END3), GOOD },
    { "residual: LF before the request", RAW("\n" POST LEN3 END3), GOOD },
};

enum {
    HOSTILE_COUNT = sizeof hostiles / sizeof hostiles[0],
    HOSTILE_BYTES_MAX = 64 * 1024,
};

/* The request and the canary behind it, each with a key of the row's own ("row-007", "canary-007"); on the open route "/orders" of the row is
 * "/public". `canary_fields`: whole lines, or "". `out` has room for HOSTILE_BYTES_MAX. */
static size_t hostile_write(char *out, size_t number, bool open, const char *canary_fields)
{
    const struct hostile *row = &hostiles[number];
    char key[16];
    (void) snprintf(key, sizeof key, "row-%03zu", number);
    size_t len = 0;
    for (size_t i = 0; i < row->len; i++) {
        if (row->padding > 0 && row->bytes[i] == '~') {
            memset(out + len, 'x', row->padding);
            len += row->padding;
            continue;
        }
        out[len++] = row->bytes[i];
        if (len < 7) {
            continue;
        }
        if (open && memcmp(out + len - 7, "/orders", 7) == 0) {
            memcpy(out + len - 7, "/public", 7);
        } else if (memcmp(out + len - 7, "hostile", 7) == 0) {
            memcpy(out + len - 7, key, 7);
        }
    }
    return len + (size_t) snprintf(out + len, HOSTILE_BYTES_MAX - len,
                                   "POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: canary-%03zu\r\n"
                                   "%sContent-Length: 1\r\n\r\nc",
                                   number, canary_fields);
}

#endif
