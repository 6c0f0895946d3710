/* house.c - see house.h. */
#include "tests/cli/house.h"

#include "tests/support/http_client.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TRIES = 100000 };

static void nonbis_start(struct house *house, const char *const *more)
{
    char upstream[128];
    const char *arguments[32] = { "--listen", house->listen, "--admin",   "127.0.0.1:0",
                                  "--store",  house->store,  "--upstream" };
    int argc = 7, exit_code = 0;
    (void) snprintf(upstream, sizeof upstream, "http://%s", house->handler.listen);
    arguments[argc++] = upstream;
    for (size_t i = 0; more != NULL && more[i] != NULL; i++) {
        arguments[argc++] = more[i];
    }
    ck_assert_msg(daemon_try(&house->nonbis, "nonbisd", arguments, &exit_code), "nonbisd did not start: %d, see %s",
                  exit_code, house->nonbis.log_path);
}

/* A socket that never listens, on a port of the kernel's choice: while nonbisd is down nobody else gets it. */
static void keep_port(struct house *house)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int on = 1;
    house->keeper = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(setsockopt(house->keeper, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0); /* as nonbisd has it */
    ck_assert_int_eq(bind(house->keeper, (struct sockaddr *) &address, len), 0);
    ck_assert_int_eq(getsockname(house->keeper, (struct sockaddr *) &address, &len), 0);
    (void) snprintf(house->listen, sizeof house->listen, "127.0.0.1:%u", (unsigned) ntohs(address.sin_port));
}

void house_begin(struct house *house, const char *const *more)
{
    char db[600];
    (void) snprintf(db, sizeof db, "%s/orders.db", daemon_folder());
    (void) snprintf(house->store, sizeof house->store, "%s/nonbis.db", daemon_folder());
    daemon_start_handler(&house->handler, db, NULL);
    keep_port(house);
    nonbis_start(house, more);
    (void) snprintf(house->url, sizeof house->url, "http://%s/orders", house->listen);
}

void house_start_nonbis(struct house *house, const char *const *more)
{
    nonbis_start(house, more);
}

void house_end(struct house *house)
{
    if (house->nonbis.pid > 0) {
        ck_assert_int_eq(daemon_stop(&house->nonbis), 0);
    }
    if (house->handler.pid > 0) {
        ck_assert_int_eq(daemon_stop(&house->handler), 0);
    }
    (void) close(house->keeper);
}

void house_wait_memory(const struct house *house)
{
    char first[64] = "", date[64] = "";
    for (int changes = 0, tries = 0; changes < 2; tries++) {
        struct http_answer answer = http_request(house->listen, "GET", "/_nonbis/v1", NULL, NULL);
        ck_assert(answer.status == 200 && http_field(&answer, "Date", date, sizeof date) && tries < TRIES);
        changes += first[0] != '\0' && strcmp(first, date) != 0 ? 1 : 0;
        memcpy(first, date, sizeof first);
        http_answer_free(&answer);
    }
}

static int number_behind(const char *text, const char *name)
{
    const char *found = strstr(text, name);
    ck_assert_msg(found != NULL, "%s is not in %s", name, text);
    return (int) strtol(found + strlen(name), NULL, 10);
}

void house_count(const struct house *house, const char *key, int *arrivals, int *executions)
{
    char target[128];
    (void) snprintf(target, sizeof target, key != NULL ? "/effects?key=%s" : "/effects", key);
    struct http_answer answer = http_request(house->handler.listen, "GET", target, NULL, NULL);
    ck_assert_int_eq(answer.status, 200);
    *arrivals = number_behind(answer.body, "\"arrivals\":");
    *executions = number_behind(answer.body, "\"executions\":");
    http_answer_free(&answer);
}

int house_executions(const struct house *house, const char *key)
{
    int arrivals = 0, executions = 0;
    house_count(house, key, &arrivals, &executions);
    return executions;
}

void house_wait_arrival(const struct house *house, const char *key)
{
    int arrivals = 0, executions = 0;
    for (int tries = 0; arrivals == 0 && tries < TRIES; tries++) {
        house_count(house, key, &arrivals, &executions);
    }
    ck_assert_int_gt(arrivals, 0);
}
