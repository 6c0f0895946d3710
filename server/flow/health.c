/* health.c - see health.h. */
#include "server/flow/health.h"

#include "server/base/memory.h"
#include "server/flow/metrics_page.h"

#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

enum {
    HEALTH_PROBE_MS = 2000,
    HEALTH_COMMIT_AGE_MAX_MS = 6000,
    HEALTH_ROOM_MIN_BYTES = 16 * 1024 * 1024,
    HEALTH_PAGE_MAX = 16 * 1024 * 1024
};

/* "off: disk-nearly-full, no-commit-lately", or "on". */
static void health_tell_change(struct health *health)
{
    struct buf why;
    buf_init(&why, 256);
    bool unready = !health_is_ready(health, &why);
    if (unready != health->unready && !health->flow->draining) {
        health->unready = unready;
        char words[256] = "";
        size_t len = 0;
        for (size_t i = 0; i + 1 < why.len && len + 2 < sizeof words; i++) { /* without the last end of line */
            words[len++] = why.ptr[i] == '\n' ? ',' : why.ptr[i];
            if (why.ptr[i] == '\n') {
                words[len++] = ' ';
            }
        }
        log_message(unready ? LOG_WARN : LOG_INFO, "readiness", "%s%s", unready ? "off: " : "on", unready ? words : "");
    }
    buf_fini(&why);
}

static void health_on_probe(void *context)
{
    struct health *health = context;
    struct store_worker_figures figures;
    health_tell_change(health);
    store_worker_figures(health->flow->commons->worker, &figures);
    if (figures.last_commit_age_ms >= HEALTH_PROBE_MS) {
        store_worker_probe(health->flow->commons->worker);
    }
    loop_timer_start(&health->probe, HEALTH_PROBE_MS);
}

void health_init(struct health *health, const struct shards *shards, const char *store_path, int64_t started_wall_ms)
{
    struct flow *flow = &shards->items[0].flow;
    *health =
        (struct health){ .shards = shards, .flow = flow, .store_path = store_path, .started_wall_ms = started_wall_ms };
    loop_timer_init(&health->probe, flow->loop, health_on_probe, health);
    store_worker_probe(flow->commons->worker);
    loop_timer_start(&health->probe, HEALTH_PROBE_MS);
}

void health_fini(struct health *health)
{
    loop_timer_stop(&health->probe);
}

static bool health_has_room(const struct health *health)
{
    if (strcmp(health->store_path, "memory") == 0) {
        return true;
    }
    /* The folder is asked, not the file: nothing but SQLite may open that. */
    char *folder = memory_text(view_of(health->store_path));
    char *slash = strrchr(folder, '/');
    const char *where = slash == NULL ? "." : folder;
    if (slash != NULL) {
        slash[slash == folder ? 1 : 0] = '\0';
    }
    struct statvfs room;
    bool enough =
        statvfs(where, &room) != 0 || (uint64_t) room.f_bavail * room.f_frsize >= (uint64_t) HEALTH_ROOM_MIN_BYTES;
    free(folder);
    return enough;
}

bool health_is_ready(const struct health *health, struct buf *why)
{
    struct store_worker_figures figures;
    store_worker_figures(health->flow->commons->worker, &figures);
    bool ready = true;
    if (health->flow->draining) {
        buf_append_text(why, "draining\n");
        ready = false;
    }
    if (figures.down) {
        buf_append_text(why, "store-failed\n");
        ready = false;
    } else if (figures.last_commit_age_ms > HEALTH_COMMIT_AGE_MAX_MS) {
        buf_append_text(why, "no-commit-lately\n");
        ready = false;
    }
    if (figures.no_room) {
        buf_append_text(why, "no-reserve\n");
        ready = false;
    }
    if (!health_has_room(health)) {
        buf_append_text(why, "disk-nearly-full\n");
        ready = false;
    }
    if (ready) {
        buf_append_text(why, "ok\n");
    }
    return ready;
}

/* Answered once the request is whole, so that a poller's connection stays open. */
static enum edge_take health_head(void *context, struct edge_request *request, const struct edge_head *head)
{
    (void) context;
    edge_set_user(request, (void *) (uintptr_t) head); /* valid until gone */
    return EDGE_COLLECT;
}

static void health_write_metrics(const struct health *health, struct buf *body)
{
    struct buf why;
    buf_init(&why, 256);
    const struct metrics_facts facts = { .shards = health->shards,
                                         .ready = health_is_ready(health, &why),
                                         .started_wall_ms = health->started_wall_ms };
    metrics_page_write(&facts, body);
    buf_fini(&why);
}

static void health_whole(void *context, struct edge_request *request, struct view request_body)
{
    const struct health *health = context;
    const struct edge_head *head = edge_user(request);
    struct view fields = VIEW("Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n");
    (void) request_body;
    struct buf body;
    buf_init(&body, HEALTH_PAGE_MAX);
    int status = 200;
    if (!view_equal(head->method, VIEW("GET")) && !view_equal(head->method, VIEW("HEAD"))) {
        status = 405;
        buf_append_text(&body, "only GET\n");
    } else if (view_equal(head->target, VIEW("/livez"))) {
        buf_append_text(&body, "ok\n"); /* the loop answers: that is all it says */
    } else if (view_equal(head->target, VIEW("/readyz"))) {
        status = health_is_ready(health, &body) ? 200 : 503;
    } else if (view_equal(head->target, VIEW("/metrics"))) {
        fields = VIEW("Content-Type: " METRICS_CONTENT_TYPE "\r\nCache-Control: no-store\r\n");
        health_write_metrics(health, &body);
    } else {
        status = 404;
        buf_append_text(&body, "there is /livez, /readyz and /metrics\n");
    }
    if (body.failed) { /* of more routes and words than fit: half a page would be a wrong one */
        buf_clear(&body);
        status = 500;
    }
    const struct edge_reply reply = {
        .status = status,
        .fields = fields,
        .body = buf_view(&body),
    };
    (void) edge_reply(request, &reply);
    buf_fini(&body);
}

static void health_too_large(void *context, struct edge_request *request)
{
    (void) context;
    const struct edge_reply reply = { .status = 413, .close = true };
    (void) edge_reply(request, &reply);
}

static void health_gone(void *context, struct edge_request *request, bool delivered)
{
    (void) context;
    (void) request;
    (void) delivered;
}

const struct edge_handler health_handler = {
    .head = health_head, .whole = health_whole, .too_large = health_too_large, .gone = health_gone
};
