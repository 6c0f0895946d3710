/* hostile_test.c - requests that smuggle, confuse or overflow (docs/contract.md section 4, check 1), each on a connection of its own with an honest
 * request, the canary, right behind it in the same packet. What counts is what the scripted handler saw: no canary, and nothing of the
 * hostile request unless its row says so. */
#include "tests/integration/hostile_rows.h"
#include "tests/support/rig.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HOSTILE_COUNT = sizeof hostiles / sizeof hostiles[0], HANGS_MS = 2000, SEEN_MAX = 128 };

static const char *const only_orders[] = { "--store", "memory", "--route", "POST /orders*", NULL };

/* The request and the canary behind it; on the open route every "/orders" of the first line is "/public". */
static size_t write_bytes(char *out, const struct hostile *row, bool open)
{
    static const char canary[] = "POST /orders HTTP/1.1\r\nHost: test.example\r\nIdempotency-Key: canary\r\nContent-Length: 1\r\n\r\nc";
    size_t line = strcspn(row->bytes[0] == '\r' ? row->bytes + 2 : row->bytes, "\r\n") + 2;
    size_t len = 0;
    for (size_t i = 0; i < row->len; i++) {
        if (row->padding > 0 && row->bytes[i] == '~') {
            memset(out + len, 'x', row->padding);
            len += row->padding;
            continue;
        }
        out[len++] = row->bytes[i];
        if (open && i < line && len >= 7 && memcmp(out + len - 7, "/orders", 7) == 0) {
            memcpy(out + len - 7, "/public", 7);
        }
    }
    memcpy(out + len, canary, sizeof canary - 1);
    return len + sizeof canary - 1;
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

START_TEST(a_hostile_request_reaches_nobody_and_nothing_behind_it_runs)
{
    const struct hostile *row = &hostiles[_i % HOSTILE_COUNT];
    bool open = _i >= HOSTILE_COUNT;
    bool differs = open && row->open_answers[0] != '\0';
    const char *answers = differs ? row->open_answers : row->answers;
    unsigned forwarded = differs ? row->open_forwarded : row->forwarded;
    unsigned canaries = strstr(answers, "close") == NULL ? 1 : 0;
    char seen[SEEN_MAX];
    static char bytes[64 * 1024];
    struct rig rig;
    rig_start(&rig, only_orders);
    int fd = http_connect(rig.address);
    ck_assert(http_send(fd, bytes, write_bytes(bytes, row, open)));
    collect_answers(fd, answers, seen);
    close(fd);
    ck_assert_int_eq(daemon_stop(&rig.nonbis), 0);
    unsigned canary = peer_count_key(rig.peer, "canary");
    unsigned others = peer_count_requests(rig.peer) - canary;
    /* A request that was cut at the handler is nobody's command. */
    bool good = forwarded == BEGUN ? others <= 1 && peer_count_whole(rig.peer) == canary : others == forwarded;
    ck_assert_msg(strcmp(seen, answers) == 0 && canary == canaries && good,
                  "%s (%s): expected '%s' and %u forwarded, got '%s', %u forwarded and %u canaries, see %s", row->name,
                  open ? "open" : "protected", answers, forwarded, seen, others, canary, rig.nonbis.log_path);
    ck_assert_msg(!daemon_logged(&rig.nonbis, "Z error "), "%s: an error was logged, see %s", row->name, rig.nonbis.log_path);
    peer_free(rig.peer);
}
END_TEST

SUITE(hostile)
{
    Suite *suite = suite_create("integration/hostile");
    CASE_LOOP(suite, a_hostile_request_reaches_nobody_and_nothing_behind_it_runs, 2 * HOSTILE_COUNT);
    return suite;
}
