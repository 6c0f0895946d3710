/* told.c - see told.h. Text that does not fit its place is cut, except names, which then are no names. */
#include "client-sdk/src/told.h"

#include "common/http_time.h"
#include "schema/wire.h"

#include <cjson/cJSON.h>
#include <string.h>

static void copy_cut(char *to, size_t size, const char *from)
{
    size_t len = strlen(from);
    if (len >= size) {
        len = size - 1;
    }
    memcpy(to, from, len);
    to[len] = '\0';
}

/* No document of the contract is longer, and a longer one could take many times its length of memory. */
enum { DOCUMENT_MAX = 128 * 1024 };

static cJSON *body_parse(const struct answer *answer)
{
    if (answer->body.len == 0 || answer->body.len > DOCUMENT_MAX) {
        return NULL;
    }
    cJSON *json = cJSON_ParseWithLength(answer->body.ptr, answer->body.len);
    if (json != NULL && !cJSON_IsObject(json)) {
        cJSON_Delete(json);
        json = NULL;
    }
    return json;
}

/* The text of a member; "" when it has none. */
static const char *member_text(const cJSON *json, const char *name)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(json, name);
    return cJSON_IsString(member) ? member->valuestring : "";
}

/* Numbers are doubles (docs/facts.md 25): beyond 2^53 they are not exact, and nothing here gets there. */
static int64_t member_number(const cJSON *json, const char *name)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(json, name);
    if (!cJSON_IsNumber(member) || !(member->valuedouble > -9e15 && member->valuedouble < 9e15)) {
        return 0;
    }
    return (int64_t) member->valuedouble;
}

static int64_t member_time(const cJSON *json, const char *name)
{
    int64_t unix_ms = 0;
    return rfc3339_read(view_of(member_text(json, name)), &unix_ms) ? unix_ms : 0;
}

static bool member_true(const cJSON *json, const char *name)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, name));
}

static enum told_executed executed_of(const char *word)
{
    return strcmp(word, "no") == 0        ? TOLD_EXECUTED_NO
           : strcmp(word, "yes") == 0     ? TOLD_EXECUTED_YES
           : strcmp(word, "unknown") == 0 ? TOLD_EXECUTED_UNKNOWN
                                          : TOLD_EXECUTED_NOT_SAID;
}

/* What stands behind the last of ":/#": the prefix is a setting of the server (problem_prefix). */
static const char *type_name(const char *type)
{
    const char *name = type;
    for (const char *at = type; *at != '\0'; at++) {
        if (*at == ':' || *at == '/' || *at == '#') {
            name = at + 1;
        }
    }
    return name;
}

static bool is_problem_type(const char *content_type)
{
    const struct view wanted = VIEW(WIRE_PROBLEM_CONTENT_TYPE);
    struct view type = content_type != NULL ? view_of(content_type) : view_make(NULL, 0);
    return view_starts_with_nocase(type, wanted) &&
           (type.len == wanted.len || strchr("; \t", type.ptr[wanted.len]) != NULL);
}

bool told_problem_read(const struct answer *answer, struct told_problem *problem)
{
    memset(problem, 0, sizeof(*problem));
    cJSON *json = is_problem_type(answer_field(answer, "Content-Type")) ? body_parse(answer) : NULL;
    if (json == NULL) {
        return false;
    }
    const char *type = member_text(json, "type");
    const char *name = type_name(type);
    bool ours = name[0] != '\0' && strlen(name) < sizeof(problem->name) &&
                cJSON_IsBool(cJSON_GetObjectItemCaseSensitive(json, "retryable"));
    if (ours) {
        copy_cut(problem->name, sizeof(problem->name), name);
        copy_cut(problem->detail, sizeof(problem->detail), member_text(json, "detail"));
        copy_cut(problem->state, sizeof(problem->state), member_text(json, "state"));
        problem->certain = view_starts_with(view_of(type), VIEW(WIRE_PROBLEM_PREFIX));
        problem->retryable = member_true(json, "retryable");
        problem->executed = executed_of(member_text(json, "executed"));
        problem->window_start_ms = member_time(json, "window_start");
        const cJSON *part = NULL;
        cJSON_ArrayForEach(part, cJSON_GetObjectItemCaseSensitive(json, "differs"))
        {
            if (cJSON_IsString(part) && strcmp(part->valuestring, "credentials") == 0) {
                problem->differs_credentials = true;
            }
        }
    }
    cJSON_Delete(json);
    return ours;
}

bool told_route_read(const struct answer *answer, bool *is_protected)
{
    cJSON *json = body_parse(answer);
    const cJSON *word = cJSON_GetObjectItemCaseSensitive(json, "protected");
    /* Version and window stand in every document of the contract; a handler that has a "protected" of its own has not both. */
    bool ours = cJSON_IsBool(word) && member_number(json, "version") >= 1 && member_time(json, "window_start") != 0;
    *is_protected = ours && cJSON_IsTrue(word);
    cJSON_Delete(json);
    return ours;
}

static void status_copy(const cJSON *json, struct told_status *status)
{
    copy_cut(status->state, sizeof(status->state), member_text(json, "state"));
    copy_cut(status->executed, sizeof(status->executed), member_text(json, "executed"));
    copy_cut(status->cause, sizeof(status->cause), member_text(json, "cause"));
    copy_cut(status->id, sizeof(status->id), member_text(json, "id"));
    status->executions = member_number(json, "executions");
    status->replays = member_number(json, "replays");
    status->created_ms = member_time(json, "created_at");
    status->completed_ms = member_time(json, "completed_at");
    status->expires_ms = member_time(json, "expires_at");
    status->resolved = member_true(json, "resolved");
    const cJSON *request = cJSON_GetObjectItemCaseSensitive(json, "request");
    copy_cut(status->request_method, sizeof(status->request_method), member_text(request, "method"));
    copy_cut(status->request_target, sizeof(status->request_target), member_text(request, "target"));
    const cJSON *response = cJSON_GetObjectItemCaseSensitive(json, "response");
    int64_t number = member_number(response, "status");
    status->response_status = number >= 100 && number <= 999 ? (int) number : 0;
    status->response_length = member_number(response, "length");
    status->response_kept = member_true(response, "kept");
}

bool told_status_read(const struct answer *answer, struct told_status *status)
{
    memset(status, 0, sizeof(*status));
    cJSON *json = body_parse(answer);
    if (json == NULL) {
        return false;
    }
    status_copy(json, status);
    cJSON_Delete(json);
    return status->state[0] != '\0';
}
