/* front_test.c - the table of hostile requests through a front proxy: HAProxy or nginx of Debian, plainly configured, once with kept
 * connections to nonbisd that its clients share, once with one for each request. Between them every byte is kept (tap.h). What the front proxy sent is what it took for a request; what
 * counts is that the scripted handler saw just that, no request more, and none that reads otherwise:
 *
 *   - the canary runs only where the front proxy itself sent it as a request of its own;
 *   - what reached the handler has the method, the target, the key and the body that the front proxy sent;
 *   - the front proxy's own log has as many requests as its bytes;
 *   - every answer goes to the client that asked: behind each row an honest stranger, the witness, gets its own. */
#include "tests/integration/hostile_rows.h"
#include "tests/proof/front/front.h"
#include "tests/proof/front/strict.h"
#include "tests/proof/front/tap.h"
#include "tests/support/rig.h"

#include <unistd.h>

enum { SENT_MAX = 4096, REPORT_MAX = 64 * 1024, ROW_ANSWERS_MAX = 8 };

static const char *const only_orders[] = { "--store", "memory", "--route", "POST /orders*", NULL };
static const struct peer_step echo[] = { { PEER_BODY, NULL, 0 }, { PEER_ECHO, NULL, 0 }, PEER_END };

/* Whose request it is. */
enum kind { KIND_ROW, KIND_CANARY, KIND_WITNESS, KINDS };
static const char *const kind_words[KINDS] = { "row", "canary", "witness" };

/* A request between the front proxy and nonbisd, or between nonbisd and the handler. */
struct sent {
    struct strict request;
    enum strict_result result;
    enum kind kind;
    int row;
    bool met; /* it was found at the handler */
};

struct tally {
    unsigned sent[KINDS], seen[KINDS]; /* by the front proxy; at the handler, whole or not */
    unsigned whole_seen;               /* of the row */
    bool odd;                          /* the front proxy sent something that is no request to the letter */
};

static struct scene {
    struct peer *peer;
    struct daemon nonbis;
    struct tap tap;
    struct front front;
    bool open; /* the rows go to a route that passes through */
    bool kept; /* the front proxy keeps its connections to nonbisd */
    struct sent sent[SENT_MAX];
    int sent_count;
    struct tally tallies[HOSTILE_COUNT];
    int statuses[HOSTILE_COUNT]; /* of the first answer to the client; 0: none */
    struct buf report;
} scene;

#define WRONG(row, ...)                                                                                                \
    do {                                                                                                               \
        buf_printf(&scene.report, "%s: ", hostiles[row].name);                                                         \
        buf_printf(&scene.report, __VA_ARGS__);                                                                        \
        buf_printf(&scene.report, "\n");                                                                               \
    } while (0)

static const char *name_key(enum kind kind, int row)
{
    static char key[32];
    (void) snprintf(key, sizeof key, "%s-%03d", kind_words[kind], row);
    return key;
}

/* --- sending --- */

/* An answer of the handler holds the request that it answers: that must be one of this client. */
static void check_echo(int row, const struct http_answer *answer)
{
    if (answer->status != 200 || !http_field_is(answer, "Idempotency-Status", "executed")) {
        return;
    }
    if (strstr(answer->body, name_key(KIND_ROW, row)) == NULL &&
        strstr(answer->body, name_key(KIND_CANARY, row)) == NULL) {
        WRONG(row, "its client was given the answer to: %.100s", answer->body);
    }
}

static void send_row(int row)
{
    static char bytes[HOSTILE_BYTES_MAX];
    atomic_store(&scene.tap.row, row);
    int fd = http_connect(scene.front.address);
    ck_assert_int_ge(fd, 0);
    /* The canary is the last one, so that a front proxy that took everything ends the connection behind it. */
    (void) http_send(fd, bytes, hostile_write(bytes, (size_t) row, scene.open, "Connection: close\r\n"));
    for (int i = 0; i < ROW_ANSWERS_MAX; i++) {
        struct http_answer answer = http_receive(fd, false, NULL);
        bool last = answer.head == NULL || answer.closed;
        if (i == 0) {
            scene.statuses[row] = answer.status;
        }
        if (answer.head != NULL) {
            check_echo(row, &answer);
        }
        http_answer_free(&answer);
        if (last) {
            break;
        }
    }
    close(fd);
}

static void send_witness(int row)
{
    char fields[128];
    (void) snprintf(fields, sizeof fields, "Connection: close\r\nIdempotency-Key: %s\r\n", name_key(KIND_WITNESS, row));
    struct http_answer answer = http_request(scene.front.address, "POST", "/orders", fields, "w");
    if (answer.status != 200 || strstr(answer.body, name_key(KIND_WITNESS, row)) == NULL) {
        WRONG(row, "the witness behind it got %d: %.100s", answer.status, answer.body != NULL ? answer.body : "");
    }
    http_answer_free(&answer);
}

/* --- what the front proxy sent, and what the handler saw --- */

/* By its key; without one of ours it is the row's that was under way. */
static void attribute(struct sent *sent, int row_by_time)
{
    sent->kind = KIND_ROW;
    sent->row = row_by_time;
    for (int kind = 0; kind < KINDS; kind++) {
        struct view word = view_of(kind_words[kind]);
        struct view key = sent->request.key;
        if (key.len >= word.len + 4 && view_starts_with(key, word) && key.ptr[word.len] == '-') {
            uint64_t number = HOSTILE_COUNT;
            (void) view_to_uint64(view_make(key.ptr + word.len + 1, 3), &number);
            ck_assert_uint_lt(number, HOSTILE_COUNT);
            sent->kind = (enum kind) kind;
            sent->row = (int) number;
        }
    }
}

/* For the person who reads a failure: what the front proxy sent on this connection. */
static void leave_bytes(const struct tap_link *link, int number)
{
    char path[700];
    (void) snprintf(path, sizeof path, "%s/sent-%03d.bytes", daemon_folder(), number);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void) fwrite(link->sent.ptr, 1, link->sent.len, file);
    (void) fclose(file);
}

static void read_link(const struct tap_link *link)
{
    struct view rest = buf_view(&link->sent);
    for (;;) {
        size_t offset = link->sent.len - rest.len;
        ck_assert_int_lt(scene.sent_count, SENT_MAX);
        struct sent *sent = &scene.sent[scene.sent_count];
        memset(sent, 0, sizeof *sent);
        sent->result = strict_next(&rest, &sent->request);
        if (sent->result == STRICT_NONE) {
            return;
        }
        scene.sent_count++;
        attribute(sent, tap_row_at(link, offset));
        struct tally *tally = &scene.tallies[sent->row];
        tally->sent[sent->kind]++;
        tally->odd = tally->odd || sent->result == STRICT_ODD;
        if (sent->result != STRICT_WHOLE) {
            return;
        }
    }
}

static bool reads_the_same(const struct sent *front, const struct sent *handler)
{
    const struct strict *a = &front->request, *b = &handler->request;
    if (!view_equal(a->method, b->method) || !view_equal(a->target, b->target) || !view_equal(a->key, b->key)) {
        return false;
    }
    struct view body = buf_view(&b->body);
    return handler->result == STRICT_WHOLE ? front->result == STRICT_WHOLE && view_equal(buf_view(&a->body), body)
                                           : true;
}

/* A request at the handler is one that the front proxy sent, to the letter, and that nothing else at the handler is. Without a key of ours it
 * has the row of that one. */
static void check_seen(struct sent *seen)
{
    for (int i = 0; i < scene.sent_count; i++) {
        struct sent *sent = &scene.sent[i];
        bool its = seen->row < 0 || (sent->row == seen->row && sent->kind == seen->kind);
        if (!sent->met && its && reads_the_same(sent, seen)) {
            sent->met = true;
            seen->row = sent->row;
            return;
        }
    }
    ck_assert_msg(seen->row >= 0,
                  "the handler saw a request that the front proxy did not send so: %.*s %.*s, key '%.*s'",
                  VIEW_ARGS(seen->request.method), VIEW_ARGS(seen->request.target), VIEW_ARGS(seen->request.key));
    WRONG(seen->row, "the handler saw a %s that the front proxy did not send so: %.*s %.*s", kind_words[seen->kind],
          VIEW_ARGS(seen->request.method), VIEW_ARGS(seen->request.target));
}

static void read_handler(void)
{
    for (unsigned n = 1; n <= peer_count_requests(scene.peer); n++) {
        struct buf bytes;
        struct sent seen = { 0 };
        buf_init(&bytes, HOSTILE_BYTES_MAX);
        ck_assert(peer_request(scene.peer, n, &bytes));
        struct view rest = buf_view(&bytes);
        seen.result = strict_next(&rest, &seen.request);
        ck_assert_msg(seen.result != STRICT_ODD && seen.request.headed && rest.len == 0,
                      "nonbisd sent a request that is none to the letter: %.*s", VIEW_ARGS(buf_view(&bytes)));
        attribute(&seen, -1);
        check_seen(&seen);
        struct tally *tally = &scene.tallies[seen.row];
        tally->seen[seen.kind]++;
        tally->whole_seen += seen.kind == KIND_ROW && seen.result == STRICT_WHOLE ? 1 : 0;
        strict_fini(&seen.request);
        buf_fini(&bytes);
    }
}

/* --- judging --- */

enum verdict { BY_FRONT, BY_NONBIS, CUT, WHOLE, VERDICTS };
static const char *const verdict_words[VERDICTS] = { "refused by the front proxy", "refused by nonbisd",
                                                     "begun at the handler and cut", "forwarded" };

/* What the two make of the bytes that nonbisd cannot tell from honest ones when a client sends them to it directly. */
static const struct {
    const char *row;
    enum verdict behind[FRONT_KINDS];
} residuals[] = {
    /* Chunks are read and framed anew: what arrives is clean. */
    { "residual: LF behind a chunk size", { WHOLE, WHOLE } },
    { "residual: LF behind a chunk", { WHOLE, WHOLE } },
    { "residual: LF inside a chunk extension", { WHOLE, WHOLE } },
    { "residual: a chunk that is shorter than it says, by a CR", { WHOLE, WHOLE } },
    { "residual: LF behind the last chunk", { WHOLE, WHOLE } },
    { "residual: an empty name behind a trailer", { BY_FRONT, WHOLE } },
    /* HAProxy takes the LF for the end of the line, keeps the NUL and writes CR LF behind it: so it can be told. */
    { "residual: NUL LF for CR LF", { BY_NONBIS, BY_FRONT } },
    { "residual: a colon and LF for the empty line", { BY_FRONT, BY_FRONT } },
    { "residual: LF, a colon and CR LF for the end of the head", { BY_FRONT, BY_FRONT } },
    { "residual: LF, NUL and CR LF for the end of the head", { BY_FRONT, BY_FRONT } },
    { "residual: NUL, CR LF and LF for the end of the head", { BY_FRONT, BY_FRONT } },
    { "residual: NUL LF for the empty line", { BY_FRONT, BY_FRONT } },
    { "residual: a line before the request that begins with NUL", { BY_FRONT, BY_FRONT } },
    { "residual: LF before the request", { WHOLE, WHOLE } },
};

static enum verdict verdict_of(const struct tally *tally)
{
    if (tally->sent[KIND_ROW] == 0) {
        return BY_FRONT;
    }
    if (tally->seen[KIND_ROW] == 0) {
        return BY_NONBIS;
    }
    return tally->whole_seen > 0 ? WHOLE : CUT;
}

static void check_row(int row)
{
    const struct tally *tally = &scene.tallies[row];
    for (int kind = 0; kind < KINDS; kind++) {
        unsigned logged = front_logged(&scene.front, name_key((enum kind) kind, row));
        if (tally->seen[kind] > tally->sent[kind]) {
            WRONG(row, "%s: sent %u times by the front proxy, seen %u times", kind_words[kind], tally->sent[kind],
                  tally->seen[kind]);
        }
        /* A row whose key no reader can find is counted by the bytes alone. */
        if (logged != tally->sent[kind] && (kind != KIND_ROW || logged > 0)) {
            WRONG(row, "%s: %u times in the front proxy's log, %u times in its bytes", kind_words[kind], logged,
                  tally->sent[kind]);
        }
    }
    if (tally->odd && verdict_of(tally) >= CUT) {
        WRONG(row, "the front proxy sent bytes that are no request to the letter, and they were forwarded");
    }
}

static void check_residuals(void)
{
    unsigned found = 0, residual = 0;
    for (int row = 0; row < HOSTILE_COUNT; row++) {
        residual += strncmp(hostiles[row].name, "residual: ", 10) == 0 ? 1 : 0;
        for (size_t i = 0; i < sizeof residuals / sizeof residuals[0]; i++) {
            if (strcmp(hostiles[row].name, residuals[i].row) != 0) {
                continue;
            }
            enum verdict expected = residuals[i].behind[scene.front.kind], seen = verdict_of(&scene.tallies[row]);
            found++;
            if (seen != expected) {
                WRONG(row, "expected '%s', it was %s", verdict_words[expected], verdict_words[seen]);
            }
        }
    }
    ck_assert_uint_eq(found, residual);
    ck_assert_uint_eq(found, sizeof residuals / sizeof residuals[0]);
}

static void tell_figures(void)
{
    char version[128];
    unsigned verdicts[VERDICTS] = { 0 }, canaries_sent = 0, canaries_seen = 0, odd = 0, witnesses = 0;
    for (int row = 0; row < HOSTILE_COUNT; row++) {
        const struct tally *tally = &scene.tallies[row];
        verdicts[verdict_of(tally)]++;
        canaries_sent += tally->sent[KIND_CANARY];
        canaries_seen += tally->seen[KIND_CANARY];
        witnesses += tally->seen[KIND_WITNESS];
        odd += tally->odd ? 1 : 0;
        if (getenv("VERBOSE") != NULL ||
            (scene.kept && !scene.open && strncmp(hostiles[row].name, "residual: ", 10) == 0)) {
            FIGURE("  %s, %s: %s, first status %d, canaries %u of %u", front_name(scene.front.kind), hostiles[row].name,
                   verdict_words[verdict_of(tally)], scene.statuses[row], tally->seen[KIND_CANARY],
                   tally->sent[KIND_CANARY]);
        }
    }
    front_version(scene.front.kind, version, sizeof version);
    FIGURE("%s", version);
    FIGURE("T18 smuggle behind %s, %s route, connections %s: rows=%d refused-by-front=%u refused-by-nonbisd=%u cut=%u "
           "forwarded-whole=%u "
           "odd-bytes=%u "
           "canaries sent-by-front=%u run=%u witnesses=%u connections-to-nonbisd=%d",
           front_name(scene.front.kind), scene.open ? "open" : "protected", scene.kept ? "kept" : "closed",
           (int) HOSTILE_COUNT, verdicts[BY_FRONT], verdicts[BY_NONBIS], verdicts[CUT], verdicts[WHOLE], odd,
           canaries_sent, canaries_seen, witnesses, scene.tap.link_count);
    /* It did share connections, or did not. */
    ck_assert(scene.kept ? scene.tap.link_count < scene.sent_count / 2 : scene.tap.link_count == scene.sent_count);
    ck_assert_uint_eq(witnesses, HOSTILE_COUNT);
    ck_assert_uint_ge(verdicts[WHOLE], 8); /* the controls: a front proxy that refuses everything would prove nothing */
}

START_TEST(behind_a_front_proxy_nothing_runs_but_what_it_sent_as_a_request)
{
    char version[128];
    scene.open = (_i / FRONT_KINDS) % 2 == 1;
    scene.kept = _i < 2 * FRONT_KINDS;
    buf_init(&scene.report, REPORT_MAX);
    front_version((enum front_kind)(_i % FRONT_KINDS), version, sizeof version);
    scene.peer = peer_new();
    peer_script_default(scene.peer, echo);
    daemon_start(&scene.nonbis, peer_url(scene.peer), "memory", only_orders);
    tap_start(&scene.tap, scene.nonbis.listen);
    front_start(&scene.front, (enum front_kind)(_i % FRONT_KINDS), scene.kept, scene.tap.address);
    for (int row = 0; row < HOSTILE_COUNT; row++) {
        send_row(row);
        send_witness(row);
    }
    front_end(&scene.front);
    ck_assert_int_eq(daemon_stop(&scene.nonbis), 0);
    tap_end(&scene.tap);
    for (int i = 0; i < scene.tap.link_count; i++) {
        leave_bytes(scene.tap.links[i], i);
        read_link(scene.tap.links[i]);
    }
    read_handler();
    for (int row = 0; row < HOSTILE_COUNT; row++) {
        check_row(row);
    }
    check_residuals();
    tell_figures();
    if (scene.report.len > 0) {
        FIGURE("wrong behind %s:\n%.*s", front_name(scene.front.kind), VIEW_ARGS(buf_view(&scene.report)));
    }
    ck_assert_msg(scene.report.len == 0, "something is wrong behind %s, see above and %s", front_name(scene.front.kind),
                  daemon_folder());
    ck_assert_msg(!daemon_logged(&scene.nonbis, "Z error "), "an error was logged, see %s", scene.nonbis.log_path);
    for (int i = 0; i < scene.sent_count; i++) {
        strict_fini(&scene.sent[i].request);
    }
    tap_free(&scene.tap);
    peer_free(scene.peer);
    buf_fini(&scene.report);
}
END_TEST

SUITE(proof_front)
{
    Suite *suite = suite_create("proof/front");
    CASE_LOOP(suite, behind_a_front_proxy_nothing_runs_but_what_it_sent_as_a_request, 4 * FRONT_KINDS);
    return suite;
}
