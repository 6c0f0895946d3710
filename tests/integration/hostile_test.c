/* hostile_test.c - requests that smuggle, confuse or overflow (docs/contract.md section 4, check 1), each on a connection of its own with an honest
 * request, the canary, right behind it in the same packet. What counts is what the scripted handler saw: no canary, and nothing of the
 * hostile request unless its row says so. */
#include "tests/integration/hostile_rows.h"
#include "tests/support/rig.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HANGS_MS = 2000, /* an answer takes a thousandth of that; only a failing row waits so long */
    SEEN_MAX = 128,
    GROUPS = 8, /* rows share a nonbisd, every eighth row the same one, so that their faults meet other neighbours */
    REPORT_MAX = 64 * 1024,
};

static const char *const only_orders[] = { "--store", "memory", "--route", "POST /orders*", NULL };

/* What one row did, and what its group adds up to. */
struct group {
    struct rig rig;
    bool open; /* the requests go to a route that passes through */
    struct buf report;
    unsigned forwarded, begun, canaries; /* expected of all rows together */
};

/* What was seen of all rows on both routes, in memory that the processes of the tests share. */
static struct seen {
    unsigned rows, refused, canaries, unsafe;
} * all_seen;

__attribute__((constructor)) static void seen_share(void)
{
    all_seen = mmap(NULL, sizeof *all_seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static const char *row_answers(const struct group *group, const struct hostile *row)
{
    return group->open && row->open_answers[0] != '\0' ? row->open_answers : row->answers;
}

static unsigned row_forwarded(const struct group *group, const struct hostile *row)
{
    return group->open && row->open_answers[0] != '\0' ? row->open_forwarded : row->forwarded;
}

static unsigned row_canaries(const struct group *group, const struct hostile *row)
{
    return strstr(row_answers(group, row), "close") == NULL ? 1 : 0;
}

static void append(char *seen, const char *word)
{
    size_t len = strlen(seen);
    (void) snprintf(seen + len, SEEN_MAX - len, "%s%s", len > 0 ? " " : "", word);
}

/* Status codes until the connection ends. Once so many answers came as are expected, an open connection is closed from our side. */
static void collect_answers(int fd, const char *expected, char *seen)
{
    bool closes = strstr(expected, "close") != NULL;
    int left = 0;
    for (const char *c = expected; *c != '\0'; c++) {
        left += *c >= '0' && *c <= '9' && (c == expected || c[-1] == ' ') ? 1 : 0;
    }
    bool ours = false;
    seen[0] = '\0';
    for (;;) {
        if (left == 0 && !closes && !ours) {
            ours = true;
            shutdown(fd, SHUT_WR);
        }
        struct pollfd polled = { .fd = fd, .events = POLLIN };
        if (poll(&polled, 1, HANGS_MS) != 1) {
            append(seen, "hangs");
            return;
        }
        struct http_answer answer = http_receive(fd, false, NULL);
        if (answer.head == NULL) {
            if (!ours) {
                append(seen, "close");
            }
            http_answer_free(&answer);
            return;
        }
        char status[16];
        (void) snprintf(status, sizeof status, "%d", answer.status);
        append(seen, status);
        left--;
        http_answer_free(&answer);
    }
}

static void run_row(struct group *group, size_t number)
{
    static char bytes[HOSTILE_BYTES_MAX];
    const struct hostile *row = &hostiles[number];
    char seen[SEEN_MAX];
    int fd = http_connect(group->rig.address);
    ck_assert(http_send(fd, bytes, hostile_write(bytes, number, group->open, "")));
    collect_answers(fd, row_answers(group, row), seen);
    close(fd);
    if (strcmp(seen, row_answers(group, row)) != 0) {
        buf_printf(&group->report, "%s: answers expected '%s', got '%s'\n", row->name, row_answers(group, row), seen);
    }
    if (row_forwarded(group, row) == BEGUN) {
        group->begun++;
    } else {
        group->forwarded += row_forwarded(group, row);
    }
    group->canaries += row_canaries(group, row);
}

static void check_row(struct group *group, size_t number)
{
    const struct hostile *row = &hostiles[number];
    char key[16];
    (void) snprintf(key, sizeof key, "row-%03zu", number);
    unsigned seen = peer_count_key(group->rig.peer, key);
    unsigned expected = row_forwarded(group, row);
    all_seen->rows++;
    all_seen->refused += seen == 0 ? 1 : 0;
    all_seen->unsafe += expected == 0 ? seen : 0;
    if (expected == BEGUN ? seen > 1 : seen != expected) {
        buf_printf(&group->report, "%s: forwarded expected %u, got %u\n", row->name, expected, seen);
    }
    (void) snprintf(key, sizeof key, "canary-%03zu", number);
    seen = peer_count_key(group->rig.peer, key);
    all_seen->canaries += row_canaries(group, row) == 0 ? seen : 0; /* that must not run */
    if (seen != row_canaries(group, row)) {
        buf_printf(&group->report, "%s: canaries expected %u, got %u\n", row->name, row_canaries(group, row), seen);
    }
}

START_TEST(a_hostile_request_reaches_nobody_and_nothing_behind_it_runs)
{
    static struct group group;
    group.open = _i >= GROUPS;
    buf_init(&group.report, REPORT_MAX);
    rig_start(&group.rig, only_orders);
    for (size_t i = (size_t) (_i % GROUPS); i < HOSTILE_COUNT; i += GROUPS) {
        run_row(&group, i);
    }
    ck_assert_int_eq(daemon_stop(&group.rig.nonbis), 0); /* it ends when nothing is under way any more */
    for (size_t i = (size_t) (_i % GROUPS); i < HOSTILE_COUNT; i += GROUPS) {
        check_row(&group, i);
    }
    buf_append_bytes(&group.report, "", 1);
    ck_assert_msg(group.report.len == 1, "on the %s route, see %s\n%s", group.open ? "open" : "protected",
                  group.rig.nonbis.log_path, group.report.ptr);
    /* Nor did anything without a key of ours arrive; and what was cut at the handler is nobody's command. */
    unsigned least = group.forwarded + group.canaries;
    unsigned requests = peer_count_requests(group.rig.peer);
    ck_assert_msg(requests >= least && requests <= least + group.begun, "%u requests came, expected %u to %u", requests,
                  least, least + group.begun);
    ck_assert_uint_eq(peer_count_whole(group.rig.peer), least);
    ck_assert_msg(!daemon_logged(&group.rig.nonbis, "Z error "), "an error was logged, see %s",
                  group.rig.nonbis.log_path);
    buf_fini(&group.report);
    peer_free(group.rig.peer);
}
END_TEST

/* --- honest requests: what accounts for every byte of a head must not refuse one --- */

/* In a Cookie without quotes: libmicrohttpd answers 431 when one is not closed (docs/facts.md 56). */
static void honest_value(struct suite_random *random, bool cookie, struct buf *out)
{
    static const char all[] = "\"abcXYZ019 \t,;:=\\()<>@[]{}?/%&+~\xc3\xa9";
    const char *bytes = all + (cookie ? 1 : 0);
    unsigned count = (unsigned) sizeof all - 1 - (cookie ? 1 : 0);
    for (unsigned left = suite_random_below(random, 300); left > 0; left--) {
        buf_append_bytes(out, &bytes[suite_random_below(random, count)], 1);
    }
}

/* A GET with up to 12 fields of up to 300 bytes, one Cookie among them at most, with blanks in every legal place: libmicrohttpd needs room of the
 * connection's pool for every field and every cookie (docs/facts.md 27), and over it 431 would be the honest answer. */
static void honest_request(struct suite_random *random, struct buf *out)
{
    static const char *const blanks[] = { "", " ", "\t", "   ", " \t " };
    static const char *const names[] = { "X-A", "Cookie", "accept", "x~!#$%&'*+-.^_`|", "Referer" };
    static const char *const targets[] = {
        "/", "/x", "/x/a%2Fb/c.?", "/x?a=%20b&c&&d=+", "/%7Ex//?e%00f=g;h&%", "/x?=&=?=%zz", "/\xc3\xa9"
    };
    buf_printf(out, "%sGET %s HTTP/1.1\r\nHost:%stest.example%s\r\n", suite_random_below(random, 4) == 0 ? "\r\n" : "",
               targets[suite_random_below(random, 7)], blanks[suite_random_below(random, 5)],
               blanks[suite_random_below(random, 5)]);
    unsigned cookies = 0;
    for (unsigned left = suite_random_below(random, 13); left > 0; left--) {
        unsigned name = suite_random_below(random, 5);
        name = name == 1 && cookies++ > 0 ? 0 : name;
        buf_printf(out, "%s:%s", names[name], blanks[suite_random_below(random, 5)]);
        honest_value(random, name == 1, out);
        buf_printf(out, "%s\r\n", blanks[suite_random_below(random, 5)]);
    }
    buf_printf(out, "\r\n");
}

START_TEST(an_honest_request_is_taken_however_it_is_written_and_however_it_arrives)
{
    enum { CONNECTIONS = 50, PER_CONNECTION = 8 };
    struct suite_random random;
    unsigned seed = suite_seed();
    FIGURE("honest requests seed=%u", seed);
    suite_random_start(&random, seed);
    struct rig rig;
    rig_start(&rig, only_orders);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        int fd = http_connect(rig.address);
        for (unsigned j = 0; j < PER_CONNECTION;
             j++) { /* one after the other: what is read ahead takes room of the pool */
            struct buf bytes;
            buf_init(&bytes, 1 << 20);
            honest_request(&random, &bytes);
            for (size_t at = 0; at < bytes.len;) { /* in pieces that know nothing of lines */
                size_t part = 1 + suite_random_below(&random, 1500);
                part = part < bytes.len - at ? part : bytes.len - at;
                ck_assert(http_send(fd, bytes.ptr + at, part));
                at += part;
            }
            struct http_answer answer = http_receive(fd, false, NULL);
            if (answer.status != 200) {
                FIGURE("refused, %zu bytes: %.*s", bytes.len, VIEW_ARGS(buf_view(&bytes)));
            }
            buf_fini(&bytes);
            ck_assert_msg(answer.status == 200, "request %u of connection %u: %d %s", j, i, answer.status,
                          answer.body != NULL ? answer.body : "");
            http_answer_free(&answer);
        }
        close(fd);
    }
    ck_assert_uint_eq(peer_count_requests(rig.peer), CONNECTIONS * PER_CONNECTION);
    rig_end(&rig);
}
END_TEST

START_TEST(every_row_of_the_table_was_sent_on_both_routes_and_no_canary_ran)
{
    size_t residual = 0;
    for (size_t i = 0; i < HOSTILE_COUNT; i++) {
        residual += strncmp(hostiles[i].name, "residual: ", 10) == 0 ? 1 : 0;
    }
    if (all_seen->rows == 0) { /* it runs alone */
        return;
    }
    FIGURE("T18 smuggle direct cases=%u refused=%u canary_seen=%u accepted_unsafe=%u; rows=%d, each on a protected and "
           "on an open "
           "route, residual=%zu",
           all_seen->rows, all_seen->refused, all_seen->canaries, all_seen->unsafe, (int) HOSTILE_COUNT, residual);
    ck_assert_uint_eq(all_seen->rows, 2 * HOSTILE_COUNT);
    ck_assert_uint_eq(all_seen->canaries + all_seen->unsafe, 0);
    ck_assert_uint_ge(all_seen->refused, 200);
}
END_TEST

SUITE(hostile)
{
    Suite *suite = suite_create("integration/hostile");
    CASE_LOOP(suite, a_hostile_request_reaches_nobody_and_nothing_behind_it_runs, 2 * GROUPS);
    CASE(suite, an_honest_request_is_taken_however_it_is_written_and_however_it_arrives);
    CASE(suite, every_row_of_the_table_was_sent_on_both_routes_and_no_canary_ran); /* behind the others */
    return suite;
}
