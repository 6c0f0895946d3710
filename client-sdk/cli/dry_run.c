/* dry_run.c - see dry_run.h. The windows are computed here once more from the policy's numbers, as the manual tells them; with
 * --seed a schedule is drawn as the library would draw it. */
#include "client-sdk/cli/dry_run.h"

#include "client-sdk/cli/body.h"
#include "client-sdk/cli/chance.h"
#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/explain.h"
#include "client-sdk/cli/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PRINTED_MAX = 1 << 30 };

static bool print_field(void *arg, const char *name, const char *value, bool secret)
{
    buf_printf(arg, "%s: %s\n", name, secret ? "(secret)" : value);
    return true;
}

/* "http://host:1/a?b" -> "host:1" and "/a?b". */
static void print_head(struct buf *out, const struct nonbis_op *op)
{
    const char *authority = strstr(nonbis_op_url(op), "://") + 3;
    size_t len = strcspn(authority, "/?#");
    const char *target = authority + len;
    int target_len = (int) strcspn(target, "#");
    buf_printf(out, "%s %s%.*s HTTP/1.1\n", nonbis_op_method(op), *target == '/' ? "" : "/", target_len, target);
    buf_printf(out, "Host: %.*s\n", (int) len, authority);
    if (nonbis_op_key(op)[0] != '\0') {
        buf_printf(out, "Idempotency-Key: %s\n", nonbis_op_key(op));
    }
}

static int64_t smaller_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* From when to when a wait may last; `previous_most_ms` is the longest that the one before may have lasted. */
static void wait_bounds(const struct nonbis_policy *policy, int64_t window_ms, int64_t previous_most_ms,
                        int64_t *least_ms, int64_t *most_ms)
{
    int64_t base_ms = nonbis_policy_get(policy, NONBIS_BASE_MS), cap_ms = nonbis_policy_get(policy, NONBIS_CAP_MS);
    *least_ms = 0;
    *most_ms = window_ms;
    switch (nonbis_policy_get(policy, NONBIS_JITTER)) {
    case NONBIS_JITTER_EQUAL:
        *least_ms = window_ms / 2;
        break;
    case NONBIS_JITTER_DECORRELATED:
        *least_ms = smaller_of(base_ms, cap_ms);
        *most_ms = smaller_of(previous_most_ms * 3, cap_ms);
        break;
    default:
        break;
    }
}

static void print_schedule(struct buf *out, const struct session *session, struct chance *chance)
{
    const struct nonbis_policy *policy = session->policy;
    char least[EXPLAIN_TIME], most[EXPLAIN_TIME], drawn[EXPLAIN_TIME];
    int64_t base_ms = nonbis_policy_get(policy, NONBIS_BASE_MS), cap_ms = nonbis_policy_get(policy, NONBIS_CAP_MS);
    int64_t window_ms = smaller_of(base_ms, cap_ms), most_ms = base_ms, least_ms = 0, drawn_ms = 0;
    for (int64_t attempt = 2; attempt <= nonbis_policy_get(policy, NONBIS_ATTEMPTS); attempt++) {
        wait_bounds(policy, window_ms, most_ms, &least_ms, &most_ms);
        explain_ms(least_ms, least);
        explain_ms(most_ms, most);
        buf_printf(out, "# attempt %lld  after %s to %s", (long long) attempt, least, most);
        if (chance != NULL) {
            drawn_ms = chance_delay_ms(chance, (enum nonbis_jitter) nonbis_policy_get(policy, NONBIS_JITTER), base_ms,
                                       cap_ms, (unsigned) (attempt - 2), drawn_ms);
            explain_ms(drawn_ms, drawn);
            buf_printf(out, ", by this seed %s", drawn);
        }
        buf_append_text(out, "\n");
        window_ms = smaller_of(window_ms > cap_ms / 2 ? cap_ms : window_ms * 2, cap_ms);
    }
}

static void print_limits(struct buf *out, const struct nonbis_policy *policy)
{
    static const enum nonbis_option times[] = { NONBIS_ATTEMPT_MS, NONBIS_CONNECT_MS, NONBIS_DEADLINE_MS,
                                                NONBIS_SERVER_WAIT_MS };
    char text[EXPLAIN_TIME];
    buf_append_text(out, "#");
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        explain_ms(nonbis_policy_get(policy, times[i]), text);
        buf_printf(out, " %s %s", nonbis_option_name(times[i]), text);
    }
    buf_append_text(out, "\n# nothing was sent\n");
}

enum exit_code dry_run_print(const struct session *session, const struct nonbis_op *op, const struct buf *body)
{
    struct chance chance;
    struct buf out;
    int64_t seed = nonbis_policy_get(session->policy, NONBIS_SEED);
    chance_begin(&chance, (uint64_t) seed);
    buf_init(&out, PRINTED_MAX);
    print_head(&out, op);
    (void) fields_each(&session->fields, body->len > 0, print_field, &out);
    if (body_goes_with(nonbis_op_method(op))) {
        buf_printf(&out, "Content-Length: %zu\n", body->len);
    }
    buf_append_text(&out, "\n");
    buf_append(&out, buf_view(body));
    buf_append_text(&out, body->len > 0 && body->ptr[body->len - 1] == '\n' ? "\n" : "\n\n");
    buf_append_text(&out, "# attempt 1  at once\n");
    print_schedule(&out, session, seed != 0 ? &chance : NULL);
    print_limits(&out, session->policy);
    errno = ENOMEM;
    bool good = !out.failed && file_write(STDOUT_FILENO, out.ptr, out.len);
    if (!good && errno != EPIPE) {
        complain("the request could not be written to stdout: %s", strerror(errno));
    }
    buf_fini(&out);
    return good ? EXIT_CODE_DONE : EXIT_CODE_INTERNAL;
}
