/* injection_test.c - a value that somebody else chose stays a value: wherever it is stored, forwarded, told or logged, CR, LF, NUL and quotes in
 * it make no field, no member of a JSON body, no field of a log line and no line of the log. What would be forged is always called `evil`.
 * The same for bytes that come with their framing: hostile_test.c. The escapes of log lines and JSON one by one: unit base/log, api. */
#include "tests/support/rig.h"

#include <cjson/cJSON.h>
#include <strings.h>
#include <unistd.h>

enum { BYTES_MAX = 4096 };

#define CR "a\rEvil: 1"
#define LF "a\nEvil: 1"
#define NUL "a\0Evil: 1"
#define QUOTE "a\",\"evil\":\"1"
#define ESCAPE "a\\\",\"evil\":\"1\\"
#define WORD "a\" evil=1 b=\"c"
#define BLANK "a evil=1"
#define ENCODED "a%0d%0aEvil:%201"

/* A request whose parts are these, but for one that is the row's. */
enum place {
    AT_METHOD,
    AT_PATH,
    AT_QUERY,
    AT_HOST,
    AT_KEY,
    AT_QUOTED_KEY,
    AT_TENANT,
    AT_CREDENTIAL,
    AT_API_KEY,
    AT_TYPE,
    AT_VIA,
    AT_OTHER,
    PLACES
};

static const char *const usual_parts[PLACES] = { "POST", "/orders/1", "q", "test.example", NULL,    "k",
                                                 "t",    "Bearer c",  "k", "text/plain",   "1.0 x", "x" };

#define VALUE(text) (text), sizeof(text) - 1

static const struct row {
    enum place place;
    const char *value;
    size_t len;
    int status; /* 200: it is forwarded, as it is */
} rows[] = {
#define CONTROLS(place)                                                                                                \
    { place, VALUE(CR), 400 }, { place, VALUE(LF), 400 },                                                              \
    {                                                                                                                  \
        place, VALUE(NUL), 400                                                                                         \
    }
#define QUOTES(place, status)                                                                                          \
    { place, VALUE(QUOTE), status }, { place, VALUE(ESCAPE), status },                                                 \
    {                                                                                                                  \
        place, VALUE(WORD), status                                                                                     \
    }
    CONTROLS(AT_PATH),
    { AT_PATH, VALUE("/orders/" QUOTE), 200 },
    { AT_PATH, VALUE("/orders/" ESCAPE), 200 },
    { AT_PATH, VALUE("/orders/" WORD), 400 },
    { AT_PATH, VALUE("/orders/" ENCODED), 200 },
    CONTROLS(AT_QUERY),
    { AT_QUERY, VALUE(QUOTE), 200 },
    { AT_QUERY, VALUE(ESCAPE), 200 },
    { AT_QUERY, VALUE(WORD), 400 },
    { AT_QUERY, VALUE(ENCODED), 200 },
    CONTROLS(AT_HOST),
    QUOTES(AT_HOST, 400),
    CONTROLS(AT_KEY),
    QUOTES(AT_KEY, 400),
    { AT_KEY, VALUE(BLANK), 400 },
    CONTROLS(AT_QUOTED_KEY),
    QUOTES(AT_QUOTED_KEY, 400),
    { AT_QUOTED_KEY, VALUE("a\\\",\\\"evil\\\":\\\"1"), 200 },
    { AT_QUOTED_KEY, VALUE("a\\\\\\\",\\\"evil\\\":\\\"1\\\\"), 200 },
    CONTROLS(AT_TENANT),
    QUOTES(AT_TENANT, 200),
    { AT_TENANT, VALUE(BLANK), 200 },
    CONTROLS(AT_CREDENTIAL),
    QUOTES(AT_CREDENTIAL, 200),
    CONTROLS(AT_API_KEY),
    QUOTES(AT_API_KEY, 200),
    CONTROLS(AT_TYPE),
    QUOTES(AT_TYPE, 200),
    CONTROLS(AT_VIA),
    QUOTES(AT_VIA, 200),
    CONTROLS(AT_OTHER),
    QUOTES(AT_OTHER, 200),
    { AT_METHOD, VALUE("P\"evil\":1"), 501 },
    { AT_METHOD, VALUE("P\\\"evil"), 501 },
#undef CONTROLS
#undef QUOTES
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static struct rig rig;

/* --- what nobody may find --- */

static void expect_no_field(const char *head, size_t len, const char *what, int row)
{
    for (size_t i = 0; i + 6 <= len; i++) {
        bool begins = i == 0 || head[i - 1] == '\n' || head[i - 1] == '\r' || head[i - 1] == '\0';
        ck_assert_msg(!begins || strncasecmp(head + i, "evil:", 5) != 0, "row %d: a field was forged in %s: %.*s", row,
                      what, (int) len, head);
    }
}

static void expect_no_member(const cJSON *object, const char *text)
{
    for (const cJSON *member = object->child; member != NULL; member = member->next) {
        ck_assert_msg(member->string == NULL || strstr(member->string, "evil") == NULL, "a member was forged: %s",
                      text);
        expect_no_member(member, text);
    }
}

static void expect_json(const char *text)
{
    const char *end = NULL;
    cJSON *object = cJSON_ParseWithOpts(text, &end, 0);
    ck_assert_msg(object != NULL && end[strspn(end, "\n")] == '\0', "not one JSON value: %s", text);
    expect_no_member(object, text);
    cJSON_Delete(object);
}

/* "TIME level event name=value name="value" ...": names outside of quotes. */
static void expect_text_line(const char *line)
{
    ck_assert_msg(strlen(line) > 32 && line[4] == '-' && line[10] == 'T' && line[23] == 'Z' && line[24] == ' ',
                  "not a line of ours: %s", line);
    bool quoted = false;
    for (const char *c = line; *c != '\0'; c++) {
        if (quoted && *c == '\\') {
            c++;
        } else if (*c == '"') {
            quoted = !quoted;
        } else if (!quoted) {
            ck_assert_msg(strncmp(c, "evil", 4) != 0, "a field was forged: %s", line);
        }
    }
    ck_assert_msg(!quoted, "a quote is not closed: %s", line);
}

static void expect_honest_log(bool json)
{
    char line[BYTES_MAX];
    FILE *log = fopen(rig.nonbis.log_path, "r");
    ck_assert_ptr_nonnull(log);
    int count = 0;
    for (; fgets(line, sizeof line, log) != NULL; count++) {
        if (json) {
            expect_json(line);
        } else {
            expect_text_line(line);
        }
    }
    (void) fclose(log);
    ck_assert_int_gt(count, ROWS);
}

static void expect_honest_answer(const struct http_answer *answer, int row)
{
    ck_assert_ptr_nonnull(answer->head);
    expect_no_field(answer->head, strlen(answer->head), "the answer", row);
    char type[64] = "";
    (void) http_field(answer, "Content-Type", type, sizeof type);
    if (strstr(type, "json") != NULL) {
        expect_json(answer->body);
    }
}

/* --- values of clients --- */

static size_t write_part(char *out, size_t at, const char *text, size_t len)
{
    memcpy(out + at, text, len);
    return at + len;
}

static size_t write_text(char *out, size_t at, const char *text)
{
    return write_part(out, at, text, strlen(text));
}

/* `method`, `target` NULL: those of the row. */
static size_t write_request(char *out, int number, const char *method, const char *target)
{
    static const struct {
        const char *before;
        enum place place;
    } parts[] = { { "", AT_METHOD },
                  { " ", AT_PATH },
                  { "?", AT_QUERY },
                  { " HTTP/1.1\r\nHost: ", AT_HOST },
                  { "\r\nIdempotency-Key: ", AT_KEY },
                  { "\r\nX-Tenant: ", AT_TENANT },
                  { "\r\nAuthorization: ", AT_CREDENTIAL },
                  { "\r\nX-API-Key: ", AT_API_KEY },
                  { "\r\nContent-Type: ", AT_TYPE },
                  { "\r\nVia: ", AT_VIA },
                  { "\r\nX-Other: ", AT_OTHER } };
    const struct row *row = &rows[number];
    char key[32];
    size_t at = 0;
    (void) snprintf(key, sizeof key, "\"key-%d", number);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        enum place place = parts[i].place;
        at = write_text(out, at, parts[i].before);
        if (place == AT_METHOD && method != NULL) {
            at = write_text(out, at, method);
        } else if (place == AT_PATH && target != NULL) {
            at = write_text(out, at, target);
        } else if (place == AT_KEY && row->place != AT_KEY) {
            at = write_text(out, at, key);
            at = row->place == AT_QUOTED_KEY ? write_part(out, at, row->value, row->len) : at;
            at = write_text(out, at, "\"");
        } else if (place == row->place) {
            at = write_part(out, at, row->value, row->len);
        } else {
            at = write_text(out, at, usual_parts[place]);
        }
    }
    at = write_text(out, at, "\r\nContent-Length: 1\r\n\r\nx");
    return at;
}

static struct http_answer send_row(int number, const char *method, const char *target)
{
    char bytes[BYTES_MAX];
    int fd = http_connect(rig.address);
    ck_assert(fd >= 0 && http_send(fd, bytes, write_request(bytes, number, method, target)));
    struct http_answer answer = http_receive(fd, false, NULL);
    close(fd);
    return answer;
}

static void run_row(int number, unsigned *forwarded)
{
    const struct row *row = &rows[number];
    for (int attempt = 0; attempt < 2; attempt++) { /* executed, and replayed from what was stored */
        struct http_answer answer = send_row(number, NULL, NULL);
        ck_assert_msg(answer.status == row->status, "row %d: expected %d, got %d: %s", number, row->status,
                      answer.status, answer.body != NULL ? answer.body : "");
        expect_honest_answer(&answer, number);
        http_answer_free(&answer);
    }
    if (row->status == 200) {
        struct buf seen;
        buf_init(&seen, BYTES_MAX);
        ck_assert(peer_request(rig.peer, ++*forwarded, &seen));
        expect_no_field(seen.ptr, seen.len, "the request to the handler", number);
        ck_assert_msg(memmem(seen.ptr, seen.len, row->value, row->len) != NULL,
                      "row %d did not reach the handler as it is: %.*s", number, VIEW_ARGS(buf_view(&seen)));
        buf_fini(&seen);
        struct http_answer status = send_row(number, "GET", "/_nonbis/v1/command");
        ck_assert_msg(status.status == 200, "row %d: status %d %s", number, status.status, status.body);
        expect_honest_answer(&status, number);
        http_answer_free(&status);
    }
    ck_assert_msg(peer_count_requests(rig.peer) == *forwarded, "row %d was forwarded", number);
}

START_TEST(no_value_of_a_client_forges_a_field_a_member_or_a_log_line)
{
    const char *const more[] = { "--set",        "tenant=header:X-Tenant",  "--log-level", "debug",
                                 "--log-format", _i == 0 ? "text" : "json", NULL };
    rig_start(&rig, more);
    unsigned forwarded = 0;
    for (int row = 0; row < ROWS; row++) {
        run_row(row, &forwarded);
    }
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    expect_honest_log(_i == 1);
    FIGURE("injection by clients, log as %s: rows=%d forwarded=%u", _i == 0 ? "text" : "json", (int) ROWS, forwarded);
    peer_free(rig.peer);
}
END_TEST

/* --- values of handlers --- */

#define OK(fields) "HTTP/1.1 200 OK\r\n" fields "\r\nContent-Length: 2\r\n\r\nok"
#define RESPONSE(text, status, open_status)                                                                            \
    {                                                                                                                  \
        (text), sizeof(text) - 1, status, open_status                                                                  \
    }

/* A control byte makes the answer garbage (docs/contract.md 6.7): unknown, or for a request that passes 502. */
static const struct {
    const char *bytes;
    size_t len;
    int status, open_status;
} responses[] = {
    RESPONSE(OK("X-Other: " CR), 504, 502),
    RESPONSE(OK("X-Other: " NUL), 504, 502),
    RESPONSE(OK("X-Other: a\0\nEvil: 1"), 504, 502),
    RESPONSE(OK("Location: " CR), 504, 502),
    RESPONSE(OK("Location: " NUL), 504, 502),
    RESPONSE(OK("Content-Type: " CR), 504, 502),
    RESPONSE(OK("X\rEvil: 1"), 504, 502),
    RESPONSE(OK("X\0Evil: 1"), 504, 502),
    RESPONSE(OK("Nonbis-Outcome: " CR), 504, 502),
    RESPONSE(OK("Nonbis-Outcome: " NUL), 504, 502),
    RESPONSE("HTTP/1.1 200 " CR "\r\nContent-Length: 2\r\n\r\nok", 504, 502),
    RESPONSE("HTTP/1.1 200 " NUL "\r\nContent-Length: 2\r\n\r\nok", 504, 502),
    RESPONSE(OK("X-Other: " QUOTE), 200, 200),
    RESPONSE(OK("X-Other: " ESCAPE), 200, 200),
    RESPONSE(OK("X-Other: " WORD), 200, 200),
    RESPONSE(OK("Location: /" QUOTE), 200, 200),
    RESPONSE(OK("Location: /" ENCODED), 200, 200),
    RESPONSE(OK("Content-Type: " QUOTE), 200, 200),
    RESPONSE(OK("Nonbis-Outcome: " QUOTE), 200, 200),
    RESPONSE(OK("Nonbis-Evil: 1"), 200, 200),
    RESPONSE("HTTP/1.1 200 " QUOTE "\r\nContent-Length: 2\r\n\r\nok", 200, 200),
};
enum { RESPONSES = sizeof responses / sizeof responses[0] };

static void run_response(int number, struct peer_step *script)
{
    char fields[64];
    script[1].text = responses[number].bytes;
    script[1].count = responses[number].len;
    peer_script_default(rig.peer, script);
    (void) snprintf(fields, sizeof fields, "Idempotency-Key: response-%d\r\n", number);
    for (int attempt = 0; attempt < 4; attempt++) { /* executed, replayed, told, passed */
        const char *target = attempt == 2 ? "/_nonbis/v1/command" : "/orders";
        int expected = attempt == 2 ? 200 : attempt == 3 ? responses[number].open_status : responses[number].status;
        struct http_answer answer =
            http_request(rig.address, attempt < 2 ? "POST" : "GET", target, fields, attempt < 2 ? "x" : NULL);
        ck_assert_msg(answer.status == expected, "response %d, attempt %d: expected %d, got %d: %s", number, attempt,
                      expected, answer.status, answer.body != NULL ? answer.body : "");
        ck_assert_int_eq(http_field_count(&answer, "Nonbis-Evil"), 0);
        expect_honest_answer(&answer, number);
        http_answer_free(&answer);
    }
}

START_TEST(no_value_of_a_handler_forges_a_field_a_member_or_a_log_line)
{
    const char *const more[] = { "--log-level", "debug", "--log-format", _i == 0 ? "text" : "json", NULL };
    struct peer_step script[] = {
        { PEER_BODY, NULL, 0 }, { PEER_SEND_BYTES, "", 0 }, { PEER_CLOSE, NULL, 0 }, PEER_END
    };
    rig_start(&rig, more);
    for (int number = 0; number < RESPONSES; number++) {
        run_response(number, script);
    }
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    ck_assert_uint_eq(peer_count_requests(rig.peer), 2 * RESPONSES);
    expect_honest_log(_i == 1);
    FIGURE("injection by handlers, log as %s: rows=%d", _i == 0 ? "text" : "json", (int) RESPONSES);
    peer_free(rig.peer);
}
END_TEST

/* --- values of the operator --- */

static const char *const prefixes[] = { "problem_prefix=urn:\"",
                                        "problem_prefix=urn:\\",
                                        "problem_prefix=urn:\rEvil: 1",
                                        "problem_prefix=urn:\nEvil: 1",
                                        "problem_prefix=urn:\",\"evil\":\"1",
                                        "tenant=header:X\r\nEvil",
                                        "guard=X\nEvil",
                                        "guard=X\"evil" };

START_TEST(no_setting_that_is_told_or_forwarded_takes_a_control_byte_or_a_quote)
{
    struct daemon daemon;
    const char *const arguments[] = { "--listen",   "127.0.0.1:0",        "--admin", "127.0.0.1:0",
                                      "--upstream", "http://127.0.0.1:1", "--store", "memory",
                                      "--set",      prefixes[_i],         NULL };
    int exit_code = 0;
    ck_assert(!daemon_try(&daemon, "nonbisd", arguments, &exit_code));
    ck_assert_int_eq(exit_code, 78);
}
END_TEST

SUITE(injection)
{
    Suite *suite = suite_create("integration/injection");
    CASE_LOOP(suite, no_value_of_a_client_forges_a_field_a_member_or_a_log_line, 2);
    CASE_LOOP(suite, no_value_of_a_handler_forges_a_field_a_member_or_a_log_line, 2);
    CASE_LOOP(suite, no_setting_that_is_told_or_forwarded_takes_a_control_byte_or_a_quote,
              sizeof prefixes / sizeof prefixes[0]);
    return suite;
}
