/* microhttpd_test.c - what libmicrohttpd does that the edge was built around (docs/facts.md 7 to 13, 26 to 32). A test that fails
 * here says that the library behaves otherwise than it did: read its fact, then the edge. */
#include "tests/libraries/lab.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CANARY "GET /canary HTTP/1.1\r\nHost: h\r\n\r\n"

/* --- 7: framing that smuggles --- */

static const struct {
    const char *name, *request, *body;
} smuggles[] = {
    { "content length beside a transfer coding: the coding wins",
      "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 400\r\nTransfer-Encoding: "
      "chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" CANARY,
      "a" },
    { "two lengths: the first wins",
      "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 400\r\n\r\nabc" CANARY, "abc" },
    { "a blank before the colon: the length is not seen",
      "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length : 36\r\n\r\n" CANARY, "" },
    { "an empty name ends the header block", "POST /x HTTP/1.1\r\nHost: h\r\n:\r\n" CANARY, "" },
};

START_TEST(fact_7_mhd_accepts_framing_by_which_a_second_request_is_smuggled)
{
    struct lab lab;
    lab_start(&lab, 16384);
    lab_send(&lab, smuggles[_i].request);
    ck_assert_msg(lab_wait_log(&lab, "head GET /canary"), "%s: %s", smuggles[_i].name, lab.log);
    ck_assert_str_eq(lab.first_body, smuggles[_i].body);
    lab_stop(&lab);
}
END_TEST

START_TEST(fact_7_mhd_stops_reading_when_answered_in_the_first_call)
{
    struct lab lab;
    lab_start(&lab, 16384);
    lab.answer_at_head = true;
    lab_send(&lab, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc" CANARY);
    ck_assert(lab_wait_end(&lab));
    ck_assert_ptr_nonnull(strstr(lab.answer, "Connection: close\r\n"));
    ck_assert_ptr_null(strstr(lab.log, "canary"));
    ck_assert_str_eq(lab.first_body, "");
    lab_stop(&lab);
}
END_TEST

/* --- 8: header lines --- */

static const struct {
    const char *lines, *wanted; /* in the log of the first call */
} headers[] = {
    { "A: 1\r\nA: 2\r\n", "[A=1][A=2]" },
    { "A:  \t 1 \t\r\n", "[A=1 \t]" },                          /* blanks at the end stay */
    { "Key: k1\r\n folded\r\n", "[Keyfolded=k1]" },             /* a folded line is glued to the name */
    { "Idem: k9\r\n potency-Key\r\n", "[Idempotency-Key=k9]" }, /* so a client can build one */
    { "A: x\rY\r\n", "[A=x\rY]" },                              /* a bare CR stays in the value */
};

START_TEST(fact_8_mhd_shows_header_lines_as_it_does)
{
    struct lab lab;
    char request[512];
    lab_start(&lab, 16384);
    (void) snprintf(request, sizeof request, "GET /x HTTP/1.1\r\nHost: h\r\n%s\r\n", headers[_i].lines);
    lab_send(&lab, request);
    ck_assert(lab_wait_answer(&lab, "ok"));
    ck_assert_msg(strstr(lab.log, headers[_i].wanted) != NULL, "%s", lab.log);
    lab_stop(&lab);
}
END_TEST

START_TEST(fact_8_mhd_looks_up_only_the_first_of_two_lines)
{
    struct lab lab;
    lab_start(&lab, 16384);
    lab_send(&lab, "GET /x HTTP/1.1\r\nHost: h\r\nLook-Up: 1\r\nLook-Up: 2\r\n\r\n");
    ck_assert(lab_wait_answer(&lab, "ok"));
    ck_assert_ptr_nonnull(strstr(lab.log, "look-up=1\n"));
    lab_stop(&lab);
}
END_TEST

START_TEST(fact_8_mhd_cuts_a_value_at_a_nul)
{
    struct lab lab;
    lab_start(&lab, 16384);
    static const char request[] = "GET /x HTTP/1.1\r\nHost: h\r\nA: k1\0zz\r\n\r\n";
    lab_send_bytes(&lab, request, sizeof request - 1);
    ck_assert(lab_wait_answer(&lab, "ok"));
    ck_assert_ptr_nonnull(strstr(lab.log, "[A=k1]"));
    lab_stop(&lab);
}
END_TEST

/* --- 9: targets --- */

START_TEST(fact_9_mhd_gives_the_raw_target_only_to_the_uri_log_callback)
{
    struct lab lab;
    lab_start(&lab, 16384);
    lab_send(&lab, "GET /%41/b%00c?q=%42 HTTP/1.1\r\nHost: h\r\n\r\n");
    ck_assert(lab_wait_answer(&lab, "ok"));
    ck_assert_ptr_nonnull(strstr(lab.log, "uri /%41/b%00c?q=%42\n"));
    ck_assert_ptr_nonnull(strstr(lab.log, "head GET /A/b ["));
    lab_stop(&lab);
}
END_TEST

START_TEST(mhd_calls_the_uri_log_callback_with_no_target_at_all)
{
    struct lab lab;
    lab_start(&lab, 16384);
    lab_send(&lab, "GET \r\n\r\n");
    (void) lab_wait_end(&lab);
    ck_assert_ptr_null(strstr(lab.log, "head "));
    lab_stop(&lab);
}
END_TEST

/* --- 10: stopping and suspending --- */

START_TEST(fact_10_mhd_aborts_the_process_when_stopped_with_a_suspended_connection)
{
    pid_t child = fork();
    if (child == 0) {
        struct lab lab;
        (void) dup2(open("/dev/null", O_WRONLY), 2);
        lab_start(&lab, 16384);
        lab.suspend_at_end = true;
        lab_send(&lab, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        (void) lab_wait_log(&lab, "suspended");
        MHD_stop_daemon(lab.daemon);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGABRT);
}
END_TEST

START_TEST(fact_10_mhd_does_not_see_a_client_leave_while_suspended)
{
    struct lab lab;
    lab_start(&lab, 16384);
    lab.suspend_at_end = true;
    lab_send(&lab, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    ck_assert(lab_wait_log(&lab, "suspended"));
    struct linger now = { .l_onoff = 1 };
    ck_assert_int_eq(setsockopt(lab.client, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    lab_close_client(&lab);
    lab_turn(&lab, 5);
    ck_assert_ptr_null(strstr(lab.log, "completed"));
    lab.suspend_at_end = false;
    MHD_resume_connection(lab.connection);
    ck_assert(lab_wait_log(&lab, "completed"));
    lab_stop(&lab);
}
END_TEST

/* --- 11, 32: answers --- */

static const struct {
    const char *name, *value;
} refused[] = { { "A", "" },
                { "A", "b\rc" },
                { "A", "b\nc" },
                { "A b", "c" },
                { "", "c" },
                { "Content-Length", "3" },
                { "Transfer-Encoding", "gzip" } };

START_TEST(fact_11_mhd_refuses_a_response_header)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    ck_assert_int_eq(MHD_add_response_header(response, refused[_i].name, refused[_i].value), MHD_NO);
    MHD_destroy_response(response);
}
END_TEST

/* With Connection set behind Date it forgets that there is one, and writes its own as well. */
static const struct {
    const char *first[2], *second[2];
    int dates;
} dated[] = { { { "Date", "Sun, 06 Nov 1994 08:49:37 GMT" }, { "Connection", "close" }, 2 },
              { { "Connection", "close" }, { "Date", "Sun, 06 Nov 1994 08:49:37 GMT" }, 1 } };

START_TEST(fact_11_mhd_writes_a_second_date_when_connection_is_set_behind_the_first)
{
    struct lab lab;
    lab_start(&lab, 16384);
    lab.fields[0] = dated[_i].first;
    lab.fields[1] = dated[_i].second;
    lab_send(&lab, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    ck_assert(lab_wait_end(&lab));
    int dates = 0;
    for (const char *at = strstr(lab.answer, "\r\nDate: "); at != NULL; at = strstr(at + 1, "\r\nDate: ")) {
        dates++;
    }
    ck_assert_msg(dates == dated[_i].dates, "%s", lab.answer);
    lab_stop(&lab);
}
END_TEST

START_TEST(fact_32_mhd_writes_date_and_reason_by_itself)
{
    struct lab lab;
    lab_start(&lab, 16384);
    lab_send(&lab, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    ck_assert(lab_wait_answer(&lab, "ok"));
    ck_assert_int_eq(strncmp(lab.answer, "HTTP/1.1 200 OK\r\nDate: ", 23), 0);
    lab_stop(&lab);
}
END_TEST

START_TEST(fact_32_mhd_reports_completion_for_a_request_whose_handler_never_ran)
{
    struct lab lab;
    lab_start(&lab, 16384);
    lab_send(&lab, "GET /x HTTP/1.1\r\nno colon here\r\n\r\n");
    ck_assert(lab_wait_end(&lab));
    ck_assert(lab_wait_log(&lab, "completed"));
    ck_assert_ptr_nonnull(strstr(lab.log, "uri /x\n"));
    ck_assert_ptr_null(strstr(lab.log, "head "));
    lab_stop(&lab);
}
END_TEST

/* --- 12: closing --- */

START_TEST(fact_12_mhd_closes_with_fin_in_spite_of_so_linger_and_disconnecting_gives_a_reset)
{
    struct lab lab;
    char byte;
    lab_start(&lab, 16384);
    lab.answer_at_head = true;
    struct linger now = { .l_onoff = 1 };
    ck_assert_int_eq(setsockopt(lab.server_fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    lab_send(&lab, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    ck_assert(lab_wait_end(&lab));
    ck_assert(!lab.reset);
    lab_stop(&lab);

    int pair[2];
    lab_pair(pair);
    struct sockaddr nobody = { .sa_family = AF_UNSPEC };
    ck_assert_int_eq(connect(pair[1], &nobody, sizeof nobody), 0);
    ck_assert_int_eq(recv(pair[0], &byte, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    (void) close(pair[0]);
    (void) close(pair[1]);
}
END_TEST

/* --- 26: resuming --- */

START_TEST(fact_26_mhd_wakes_nobody_for_a_resumed_connection)
{
    struct lab lab;
    lab_start(&lab, 16384);
    lab.suspend_at_end = true;
    lab_send(&lab, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    ck_assert(lab_wait_log(&lab, "suspended"));
    lab.suspend_at_end = false;
    MHD_resume_connection(lab.connection);
    MHD_UNSIGNED_LONG_LONG after_ms = 1;
    ck_assert(MHD_get_timeout(lab.daemon, &after_ms) != MHD_YES || after_ms > 0);
    ck_assert(!lab_epoll_is_readable(&lab));
    ck_assert_int_eq(MHD_run(lab.daemon), MHD_YES);
    ck_assert(lab_wait_answer(&lab, "ok"));
    lab_stop(&lab);
}
END_TEST

START_TEST(fact_26b_mhd_calls_with_size_0_before_the_body_after_a_suspend_in_the_first_call)
{
    struct lab lab;
    lab_start(&lab, 16384);
    lab.suspend_at_head = true;
    lab_send(&lab, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
    ck_assert(lab_wait_log(&lab, "suspended"));
    MHD_resume_connection(lab.connection);
    ck_assert(lab_wait_log(&lab, "size 0"));
    ck_assert_str_eq(lab.first_body, "");
    lab_stop(&lab);
}
END_TEST

/* A connection that was resumed is read before it is asked; the one that was silent longest happens to be asked first, so a second
 * connection must be about. */
START_TEST(mhd_closes_a_half_closed_connection_at_its_resume_without_asking_for_the_answer)
{
    struct lab lab;
    int pair[2];
    lab_start(&lab, 16384);
    lab_pair(pair);
    struct sockaddr unspecified = { .sa_family = AF_UNIX };
    /* The lab's own connection came first and would be the silent one. */
    ck_assert_int_eq(MHD_add_connection(lab.daemon, pair[1], &unspecified, sizeof unspecified), MHD_YES);
    lab.suspend_at_end = true;
    ck_assert_int_eq(send(pair[0], "GET /x HTTP/1.1\r\nHost: h\r\n\r\n", 28, 0), 28);
    ck_assert_int_eq(shutdown(pair[0], SHUT_WR), 0);
    ck_assert(lab_wait_log(&lab, "suspended"));
    lab.suspend_at_end = false;
    MHD_resume_connection(lab.connection);
    ck_assert(lab_wait_log(&lab, "completed"));
    char byte;
    ck_assert_int_eq(recv(pair[0], &byte, 1, 0), 0); /* no answer */
    (void) close(pair[0]);
    lab_stop(&lab);
}
END_TEST

START_TEST(mhd_asks_a_half_closed_connection_first_when_it_has_a_timeout_of_its_own)
{
    struct lab lab;
    int pair[2];
    lab_start(&lab, 16384);
    lab_pair(pair);
    struct sockaddr unspecified = { .sa_family = AF_UNIX };
    ck_assert_int_eq(MHD_add_connection(lab.daemon, pair[1], &unspecified, sizeof unspecified), MHD_YES);
    lab.suspend_at_end = true;
    ck_assert_int_eq(send(pair[0], "GET /x HTTP/1.1\r\nHost: h\r\n\r\n", 28, 0), 28);
    ck_assert_int_eq(shutdown(pair[0], SHUT_WR), 0);
    ck_assert(lab_wait_log(&lab, "suspended"));
    lab.suspend_at_end = false;
    ck_assert_int_eq(MHD_set_connection_option(lab.connection, MHD_CONNECTION_OPTION_TIMEOUT, 61U), MHD_YES);
    MHD_resume_connection(lab.connection);
    ck_assert(lab_wait_log(&lab, "completed"));
    char answer[9];
    ck_assert_int_eq(recv(pair[0], answer, sizeof answer, MSG_WAITALL), 9);
    ck_assert_int_eq(memcmp(answer, "HTTP/1.1 ", 9), 0);
    (void) close(pair[0]);
    lab_stop(&lab);
}
END_TEST

/* Edge-triggered, and a short read counts as having read everything. */
START_TEST(mhd_does_not_notice_an_end_that_came_together_with_the_request)
{
    struct lab lab;
    lab_start(&lab, 16384);
    lab_send(&lab, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    ck_assert_int_eq(shutdown(lab.client, SHUT_WR), 0);
    ck_assert(lab_wait_answer(&lab, "ok"));
    lab_turn(&lab, 5);
    char byte;
    ck_assert_int_eq(recv(lab.client, &byte, 1, MSG_DONTWAIT), -1); /* still open */
    ck_assert_int_eq(errno, EAGAIN);
    lab_stop(&lab);
}
END_TEST

/* --- 27, 28, 29, 31: answers that go wrong --- */

START_TEST(fact_27_mhd_closes_without_an_answer_when_the_heads_do_not_fit_the_pool)
{
    struct lab lab;
    char request[4096];
    lab_start(&lab, 8192);
    lab.reply_header_bytes = 5000;
    (void) snprintf(request, sizeof request, "GET /x HTTP/1.1\r\nHost: h\r\nA: %03000d\r\n\r\n", 1);
    lab_send(&lab, request);
    ck_assert(lab_wait_end(&lab));
    ck_assert_ptr_nonnull(strstr(lab.log, "head GET /x"));
    ck_assert_str_eq(lab.answer, "");
    lab_stop(&lab);
}
END_TEST

START_TEST(fact_28_mhd_takes_no_answer_between_the_first_call_and_the_end_of_the_body)
{
    struct lab lab;
    lab_start(&lab, 16384);
    lab.answer_at_part = true;
    lab_send(&lab, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc");
    ck_assert(lab_wait_log(&lab, "queued 0"));
    lab_stop(&lab);
}
END_TEST

static const struct {
    const char *method;
    unsigned status;
    const char *sent; /* the end of what goes out for an answer of unknown size */
} unknowns[] = { { "HEAD", 200, "\r\n\r\n0\r\n\r\n" }, { "GET", 304, "\r\n\r\n0\r\n\r\n" } };

START_TEST(fact_29_mhd_sends_a_last_chunk_where_no_body_is_allowed)
{
    struct lab lab;
    char request[128];
    lab_start(&lab, 16384);
    lab.unknown_size = true;
    lab.status = unknowns[_i].status;
    (void) snprintf(request, sizeof request, "%s /x HTTP/1.1\r\nHost: h\r\n\r\n", unknowns[_i].method);
    lab_send(&lab, request);
    ck_assert_msg(lab_wait_answer(&lab, unknowns[_i].sent), "%s", lab.answer);
    lab_stop(&lab);
}
END_TEST

START_TEST(fact_31_mhd_spins_while_a_reader_returns_0_without_suspending)
{
    struct lab lab;
    lab_start(&lab, 16384);
    lab.unknown_size = lab.reader_waits = true;
    lab_send(&lab, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    ck_assert(lab_wait_log(&lab, "reader"));
    int before = lab.reader_calls;
    MHD_UNSIGNED_LONG_LONG after_ms = 1;
    ck_assert_int_eq(MHD_get_timeout(lab.daemon, &after_ms), MHD_YES);
    ck_assert_uint_eq(after_ms, 0);
    lab_turn(&lab, 5);
    ck_assert_int_ge(lab.reader_calls, before + 5);
    lab_stop(&lab);
}
END_TEST

START_TEST(fact_32_mhd_ends_a_dripping_request_when_its_socket_is_shut_down)
{
    struct lab lab;
    lab_start(&lab, 16384);
    lab_send(&lab, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc");
    ck_assert(lab_wait_log(&lab, "part"));
    ck_assert_int_eq(shutdown(lab.server_fd, SHUT_RDWR), 0);
    ck_assert(lab_wait_log(&lab, "completed"));
    lab_stop(&lab);
}
END_TEST

SUITE(microhttpd)
{
    Suite *suite = suite_create("libraries/microhttpd");
    CASE_LOOP(suite, fact_7_mhd_accepts_framing_by_which_a_second_request_is_smuggled,
              sizeof smuggles / sizeof smuggles[0]);
    CASE(suite, fact_7_mhd_stops_reading_when_answered_in_the_first_call);
    CASE_LOOP(suite, fact_8_mhd_shows_header_lines_as_it_does, sizeof headers / sizeof headers[0]);
    CASE(suite, fact_8_mhd_looks_up_only_the_first_of_two_lines);
    CASE(suite, fact_8_mhd_cuts_a_value_at_a_nul);
    CASE(suite, fact_9_mhd_gives_the_raw_target_only_to_the_uri_log_callback);
    CASE(suite, mhd_calls_the_uri_log_callback_with_no_target_at_all);
    CASE(suite, fact_10_mhd_aborts_the_process_when_stopped_with_a_suspended_connection);
    CASE(suite, fact_10_mhd_does_not_see_a_client_leave_while_suspended);
    CASE_LOOP(suite, fact_11_mhd_refuses_a_response_header, sizeof refused / sizeof refused[0]);
    CASE_LOOP(suite, fact_11_mhd_writes_a_second_date_when_connection_is_set_behind_the_first,
              sizeof dated / sizeof dated[0]);
    CASE(suite, fact_32_mhd_writes_date_and_reason_by_itself);
    CASE(suite, fact_32_mhd_reports_completion_for_a_request_whose_handler_never_ran);
    CASE(suite, fact_12_mhd_closes_with_fin_in_spite_of_so_linger_and_disconnecting_gives_a_reset);
    CASE(suite, fact_26_mhd_wakes_nobody_for_a_resumed_connection);
    CASE(suite, fact_26b_mhd_calls_with_size_0_before_the_body_after_a_suspend_in_the_first_call);
    CASE(suite, mhd_closes_a_half_closed_connection_at_its_resume_without_asking_for_the_answer);
    CASE(suite, mhd_asks_a_half_closed_connection_first_when_it_has_a_timeout_of_its_own);
    CASE(suite, mhd_does_not_notice_an_end_that_came_together_with_the_request);
    CASE(suite, fact_27_mhd_closes_without_an_answer_when_the_heads_do_not_fit_the_pool);
    CASE(suite, fact_28_mhd_takes_no_answer_between_the_first_call_and_the_end_of_the_body);
    CASE_LOOP(suite, fact_29_mhd_sends_a_last_chunk_where_no_body_is_allowed, sizeof unknowns / sizeof unknowns[0]);
    CASE(suite, fact_31_mhd_spins_while_a_reader_returns_0_without_suspending);
    CASE(suite, fact_32_mhd_ends_a_dripping_request_when_its_socket_is_shut_down);
    return suite;
}
