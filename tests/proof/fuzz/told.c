/* told.c - fuzzes client-sdk/src/told.c, which reads a server's JSON. The first line of the input is the Content-Type, what is behind it the body.
 *
 * Every text ends within its place, numbers and times are those that may come, and a body that is not ours is told as such. */
#include "client-sdk/src/told.h"

#include "tests/proof/fuzz/fuzz.h"

#include <cjson/cJSON.h>

#define LAST_MS INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */
#define NUMBER_MAX INT64_C(9000000000000000)

#define MUST_END(text) MUST(memchr((text), '\0', sizeof(text)) != NULL)

/* The whole text behind the last of ":/#" of its type. */
static bool is_name_of(const char *name, struct view body)
{
    cJSON *json = cJSON_ParseWithLength(body.ptr, body.len);
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(json, "type");
    const char *text = cJSON_IsString(type) ? type->valuestring : "";
    size_t before = strlen(text) >= strlen(name) ? strlen(text) - strlen(name) : 0;
    bool is = strcmp(text + before, name) == 0 && (before == 0 || strchr(":/#", text[before - 1]) != NULL);
    cJSON_Delete(json);
    return is;
}

static bool problem_must_hold(const struct answer *answer)
{
    struct told_problem problem;
    memset(&problem, 0x5A, sizeof(problem));
    bool read = told_problem_read(answer, &problem);
    MUST_END(problem.name);
    MUST_END(problem.detail);
    MUST_END(problem.state);
    MUST(read == (problem.name[0] != '\0'));
    MUST(strpbrk(problem.name, ":/#") == NULL);
    MUST(!read || is_name_of(problem.name, buf_view(&answer->body)));
    MUST(problem.executed <= TOLD_EXECUTED_UNKNOWN);
    MUST(problem.window_start_ms >= -LAST_MS && problem.window_start_ms <= LAST_MS);
    MUST(read || (!problem.retryable && !problem.certain && problem.executed == TOLD_EXECUTED_NOT_SAID));
    return read;
}

static bool status_must_hold(const struct answer *answer)
{
    static struct told_status status;
    memset(&status, 0x5A, sizeof(status));
    bool read = told_status_read(answer, &status);
    MUST_END(status.state);
    MUST_END(status.executed);
    MUST_END(status.cause);
    MUST_END(status.id);
    MUST_END(status.request_method);
    MUST_END(status.request_target);
    MUST(read == (status.state[0] != '\0'));
    MUST(status.response_status == 0 || (status.response_status >= 100 && status.response_status <= 999));
    const int64_t numbers[] = { status.executions, status.replays,      status.response_length,
                                status.created_ms, status.completed_ms, status.expires_ms };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        MUST(numbers[i] >= -NUMBER_MAX && numbers[i] <= NUMBER_MAX);
    }
    return read;
}

FUZZ_TARGET(told)
{
    struct view body = input;
    struct view type = fuzz_line(&body);
    struct answer answer;
    answer_init(&answer, input.len);
    answer_add_field(&answer, VIEW("Content-Type"), type);
    if (body.len > 0) {
        answer_add_body(&answer, body.ptr, body.len);
    }
    bool read = problem_must_hold(&answer);
    read = status_must_hold(&answer) || read;
    answer_fini(&answer);
    return read;
}
