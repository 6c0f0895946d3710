/* From defaults, environment and flags to settings: precedence, places, routes. What is said of mistakes: mistakes_test.c. */
#include "tests/unit/config/reading.h"

START_TEST(an_upstream_alone_is_enough_to_run)
{
    ck_assert_msg(read_all(HOME_ONLY, LIST("--upstream", "http://127.0.0.1:3000")) == 0, "%s", errors);
    ck_assert_str_eq(errors, "");
    ck_assert_int_eq(action, ACTION_RUN);
    ck_assert_str_eq(settings.listen, "127.0.0.1:8620");
    ck_assert_str_eq(settings.admin, "127.0.0.1:8621");
    ck_assert_str_eq(settings.upstream, "http://127.0.0.1:3000");
    ck_assert_str_eq(settings.store, "/home/ada/.local/state/nonbis/nonbis.db");
    ck_assert_int_eq(settings.log_level, LOG_INFO);
    ck_assert_int_eq(settings.log_format, LOG_TEXT);
    ck_assert_int_eq(settings.body_max, 1048576);
    ck_assert_int_eq(settings.response_keep_max, 1048576);
    ck_assert_int_eq(settings.request_header_max, 8192);
    ck_assert_int_eq(settings.response_header_max, 6144);
    ck_assert_int_eq(settings.connect_timeout_ms, 2000);
    ck_assert_int_eq(settings.answer_timeout_ms, 30000);
    ck_assert_int_eq(settings.hard_timeout_ms, 120000);
    ck_assert_int_eq(settings.passthrough_timeout_ms, 60000);
    ck_assert_int_eq(settings.client_idle_ms, 75000);
    ck_assert_int_eq(settings.upstream_idle_ms, 1000);
    ck_assert_int_eq(settings.drain_timeout_ms, 30000);
    ck_assert_int_eq(settings.ttl_ms, 86400000);
    ck_assert_int_eq(settings.tombstone_ttl_ms, INT64_C(2592000000));
    ck_assert_int_eq(settings.max_downtime_ms, 86400000);
    ck_assert_int_eq(settings.connections_max, 4096);
    ck_assert_int_eq(settings.running_max, 1024);
    ck_assert_int_eq(settings.store_queue_max, 4096);
    ck_assert_int_eq(settings.store_reserve, 16 * 1024 * 1024);
    ck_assert_int_eq(settings.sweep_batch, 100);
    ck_assert_str_eq(settings.tenant, "none");
    ck_assert_uint_eq(settings.tenant_field.len, 0);
    ck_assert_uint_eq(settings.guard.count, 2);
    ck_assert(view_equal(settings.guard.items[0], VIEW("Authorization")));
    ck_assert(view_equal(settings.guard.items[1], VIEW("X-API-Key")));
    ck_assert(!settings.allow_close_delimited);
    ck_assert_str_eq(settings.problem_prefix, "urn:nonbis:problem:");
    settings_fini(&settings);
}
END_TEST

START_TEST(without_routes_every_post_and_patch_is_protected_and_needs_a_key)
{
    ck_assert_int_eq(read_all(HOME_ONLY, LIST(UPSTREAM)), 0);
    ck_assert(settings.routes_default);
    ck_assert_uint_eq(settings.routes.count, 2);
    const struct route *post = route_find(&settings.routes, VIEW("POST"), VIEW("/a/b"));
    const struct route *patch = route_find(&settings.routes, VIEW("PATCH"), VIEW("/"));
    ck_assert(post != NULL && patch != NULL);
    ck_assert(post->key_required && patch->key_required);
    ck_assert_uint_eq(post->index, 0);
    ck_assert_uint_eq(patch->index, 1);
    ck_assert_int_eq(post->hard_timeout_ms, 120000);
    ck_assert_ptr_eq(route_find(&settings.routes, VIEW("GET"), VIEW("/a")), NULL);
    ck_assert_ptr_eq(route_find(&settings.routes, VIEW("PUT"), VIEW("/a")), NULL);
    settings_fini(&settings);
}
END_TEST

START_TEST(routes_given_replace_the_default_ones_and_keep_their_order)
{
    const char *const *flags =
        LIST(UPSTREAM, "--route", "POST /orders/express key=optional", "--route=POST /orders/* ttl=2h", "--set",
             "hard_timeout=5m"); /* a later flag still counts for the routes */
    ck_assert_msg(read_all(HOME_ONLY, flags) == 0, "%s", errors);
    ck_assert(!settings.routes_default);
    ck_assert_uint_eq(settings.routes.count, 2);
    const struct route *express = route_find(&settings.routes, VIEW("POST"), VIEW("/orders/express"));
    const struct route *orders = route_find(&settings.routes, VIEW("POST"), VIEW("/orders/1"));
    ck_assert(express != NULL && !express->key_required && express->index == 0);
    ck_assert(orders != NULL && orders->key_required && orders->index == 1);
    ck_assert_int_eq(orders->retention.ttl_ms, 7200000);
    ck_assert_int_eq(orders->hard_timeout_ms, 300000);
    ck_assert_ptr_eq(route_find(&settings.routes, VIEW("POST"), VIEW("/other")), NULL);
    settings_fini(&settings);
}
END_TEST

START_TEST(flags_win_over_the_environment_and_that_over_defaults)
{
    const char *const environment[] = { "HOME=/h", "NONBIS_BODY_MAX=2KiB", "NONBIS_TTL=2h", "NONBIS_LISTEN=127.0.0.1:1",
                                        NULL };
    ck_assert_int_eq(read_all(environment, LIST(UPSTREAM, "--set", "body_max=3KiB", "--listen", "[::1]:0")), 0);
    ck_assert_int_eq(settings.body_max, 3072);
    ck_assert_int_eq(settings.ttl_ms, 7200000);
    ck_assert_str_eq(settings.listen, "[::1]:0");
    ck_assert_int_eq(settings.client_idle_ms, 75000);
    for (size_t i = 0; i < setting_table_count; i++) {
        const char *name = setting_table[i].name;
        enum setting_source source = strcmp(name, "body_max") == 0                                  ? SOURCE_SET
                                     : strcmp(name, "ttl") == 0                                     ? SOURCE_ENVIRONMENT
                                     : strcmp(name, "listen") == 0 || strcmp(name, "upstream") == 0 ? SOURCE_FLAG
                                                                                                    : SOURCE_DEFAULT;
        ck_assert_msg(settings.sources[i] == source, "%s: %d", name, (int) settings.sources[i]);
    }
    settings_fini(&settings);
}
END_TEST

START_TEST(of_two_flags_for_one_setting_the_later_wins)
{
    ck_assert_int_eq(read_all(HOME_ONLY, LIST(UPSTREAM, "--set", "listen=127.0.0.1:1", "--listen", "127.0.0.1:2")), 0);
    ck_assert_str_eq(settings.listen, "127.0.0.1:2");
    settings_fini(&settings);
    ck_assert_int_eq(read_all(HOME_ONLY, LIST(UPSTREAM, "--listen", "127.0.0.1:2", "--set", "listen=127.0.0.1:1")), 0);
    ck_assert_str_eq(settings.listen, "127.0.0.1:1");
    settings_fini(&settings);
}
END_TEST

START_TEST(every_setting_can_be_given_by_set_and_by_environment)
{
    const char *const flags[] = { UPSTREAM,
                                  "--set=listen=1.2.3.4:5",
                                  "--set=admin=off",
                                  "--set=store=memory",
                                  "--set=log_level=debug",
                                  "--set=log-format=json",
                                  "--set=tenant=header:X-Org",
                                  "--set=guard=Cookie",
                                  "--set=ttl=1h",
                                  "--set=tombstone-ttl=2h",
                                  "--set=max_downtime=3h",
                                  "--set=connect_timeout=3s",
                                  "--set=answer_timeout=4s",
                                  "--set=hard_timeout=5s",
                                  "--set=passthrough_timeout=6s",
                                  "--set=header_deadline=15s",
                                  "--set=body_deadline=16s",
                                  "--set=client_idle=7s",
                                  "--set=upstream_idle=8s",
                                  "--set=drain_timeout=9s",
                                  "--set=body_max=2KiB",
                                  "--set=response_keep_max=3KiB",
                                  "--set=request_header_max=4KiB",
                                  "--set=response_header_max=5KiB",
                                  "--set=connections_max=11",
                                  "--set=running_max=12",
                                  "--set=store_queue_max=13",
                                  "--set=store_reserve=15",
                                  "--set=sweep_batch=14",
                                  "--set=server.loops=15",
                                  "--set=wait_max=17s",
                                  "--set=waiters_per_key=18",
                                  "--set=waiters_per_tenant=19",
                                  "--set=waiters_max=20",
                                  "--set=tenant_rate=22/m",
                                  "--set=tenant_burst=23",
                                  "--set=tenant_in_flight=24",
                                  "--set=replay_cache=21KiB",
                                  "--set=allow_close_delimited=on",
                                  "--set=problem_prefix=https://problems.example/",
                                  NULL };
    const char *const variables[] = { "NONBIS_UPSTREAM=unix:/run/app",
                                      "NONBIS_LISTEN=1.2.3.4:5",
                                      "NONBIS_ADMIN=off",
                                      "NONBIS_STORE=memory",
                                      "NONBIS_LOG_LEVEL=debug",
                                      "NONBIS_LOG_FORMAT=json",
                                      "NONBIS_TENANT=header:X-Org",
                                      "NONBIS_GUARD=Cookie",
                                      "NONBIS_TTL=1h",
                                      "NONBIS_TOMBSTONE_TTL=2h",
                                      "NONBIS_MAX_DOWNTIME=3h",
                                      "NONBIS_CONNECT_TIMEOUT=3s",
                                      "NONBIS_ANSWER_TIMEOUT=4s",
                                      "NONBIS_HARD_TIMEOUT=5s",
                                      "NONBIS_PASSTHROUGH_TIMEOUT=6s",
                                      "NONBIS_HEADER_DEADLINE=15s",
                                      "NONBIS_BODY_DEADLINE=16s",
                                      "NONBIS_CLIENT_IDLE=7s",
                                      "NONBIS_UPSTREAM_IDLE=8s",
                                      "NONBIS_DRAIN_TIMEOUT=9s",
                                      "NONBIS_BODY_MAX=2KiB",
                                      "NONBIS_RESPONSE_KEEP_MAX=3KiB",
                                      "NONBIS_REQUEST_HEADER_MAX=4KiB",
                                      "NONBIS_RESPONSE_HEADER_MAX=5KiB",
                                      "NONBIS_CONNECTIONS_MAX=11",
                                      "NONBIS_RUNNING_MAX=12",
                                      "NONBIS_STORE_QUEUE_MAX=13",
                                      "NONBIS_STORE_RESERVE=15",
                                      "NONBIS_SWEEP_BATCH=14",
                                      "NONBIS_SERVER_LOOPS=15",
                                      "NONBIS_WAIT_MAX=17s",
                                      "NONBIS_WAITERS_PER_KEY=18",
                                      "NONBIS_WAITERS_PER_TENANT=19",
                                      "NONBIS_WAITERS_MAX=20",
                                      "NONBIS_TENANT_RATE=22/m",
                                      "NONBIS_TENANT_BURST=23",
                                      "NONBIS_TENANT_IN_FLIGHT=24",
                                      "NONBIS_REPLAY_CACHE=21KiB",
                                      "NONBIS_ALLOW_CLOSE_DELIMITED=on",
                                      "NONBIS_PROBLEM_PREFIX=https://problems.example/",
                                      NULL };
    static const char *const none[] = { NULL };
    ck_assert_uint_eq(COUNT(flags) - 1, setting_table_count);
    ck_assert_uint_eq(COUNT(variables) - 1, setting_table_count);
    int code = _i == 0 ? read_all(none, flags) : read_all(variables, none);
    ck_assert_msg(code == 0, "%s", errors);
    for (size_t i = 0; i < setting_table_count; i++) {
        ck_assert_msg(settings.sources[i] != SOURCE_DEFAULT, "%s", setting_table[i].name);
    }
    ck_assert_str_eq(settings.listen, "1.2.3.4:5");
    ck_assert_str_eq(settings.admin, "off");
    ck_assert_str_eq(settings.upstream, _i == 0 ? "http://127.0.0.1:3000" : "unix:/run/app");
    ck_assert_str_eq(settings.store, "memory");
    ck_assert_int_eq(settings.log_level, LOG_DEBUG);
    ck_assert_int_eq(settings.log_format, LOG_JSON);
    ck_assert_str_eq(settings.tenant, "header:X-Org");
    ck_assert(view_equal(settings.tenant_field, VIEW("X-Org")));
    ck_assert_uint_eq(settings.guard.count, 1);
    ck_assert(view_equal(settings.guard.items[0], VIEW("Cookie")));
    ck_assert_int_eq(settings.ttl_ms, 3600000);
    ck_assert_int_eq(settings.tombstone_ttl_ms, 7200000);
    ck_assert_int_eq(settings.max_downtime_ms, 10800000);
    ck_assert_int_eq(settings.connect_timeout_ms, 3000);
    ck_assert_int_eq(settings.answer_timeout_ms, 4000);
    ck_assert_int_eq(settings.hard_timeout_ms, 5000);
    ck_assert_int_eq(settings.passthrough_timeout_ms, 6000);
    ck_assert_int_eq(settings.header_deadline_ms, 15000);
    ck_assert_int_eq(settings.body_deadline_ms, 16000);
    ck_assert_int_eq(settings.client_idle_ms, 7000);
    ck_assert_int_eq(settings.upstream_idle_ms, 8000);
    ck_assert_int_eq(settings.drain_timeout_ms, 9000);
    ck_assert_int_eq(settings.body_max, 2048);
    ck_assert_int_eq(settings.response_keep_max, 3072);
    ck_assert_int_eq(settings.request_header_max, 4096);
    ck_assert_int_eq(settings.response_header_max, 5120);
    ck_assert_int_eq(settings.connections_max, 11);
    ck_assert_int_eq(settings.running_max, 12);
    ck_assert_int_eq(settings.store_queue_max, 13);
    ck_assert_int_eq(settings.store_reserve, 15);
    ck_assert_int_eq(settings.sweep_batch, 14);
    ck_assert_int_eq(settings.loops, 15);
    ck_assert_int_eq(settings.wait_max_ms, 17000);
    ck_assert_int_eq(settings.waiters_per_key, 18);
    ck_assert_int_eq(settings.waiters_per_tenant, 19);
    ck_assert_int_eq(settings.waiters_max, 20);
    ck_assert_int_eq(settings.tenant_rate, 1320);
    ck_assert_int_eq(settings.tenant_burst, 23);
    ck_assert_int_eq(settings.tenant_in_flight, 24);
    ck_assert_int_eq(settings.replay_cache, 21504);
    ck_assert(settings.allow_close_delimited);
    ck_assert_str_eq(settings.problem_prefix, "https://problems.example/");
    settings_fini(&settings);
}
END_TEST

static const struct {
    const char *flags[4];
    enum settings_action action;
} actions[] = {
    { { "--check", UPSTREAM }, ACTION_CHECK },
    { { "--print-config" }, ACTION_PRINT_CONFIG },
    { { "--print_config" }, ACTION_PRINT_CONFIG },
    { { "--bench-store", "250ms" }, ACTION_BENCH_STORE },
    { { "--bench-store=1s", "--print-config" }, ACTION_BENCH_STORE },
    { { "--bench-store=1s", "--version" }, ACTION_VERSION },
    { { "--check-store", "/n.db" }, ACTION_CHECK_STORE },
    { { "--check_store=/n.db", "--print-config" }, ACTION_CHECK_STORE },
    { { "--check-store", "/n.db", "--help" }, ACTION_HELP },
    { { "--check", "--print-config", UPSTREAM }, ACTION_PRINT_CONFIG },
    { { "--version" }, ACTION_VERSION },
    { { "-V" }, ACTION_VERSION },
    { { "--help" }, ACTION_HELP },
    { { "-h" }, ACTION_HELP },
    { { "--store", "-h" }, ACTION_HELP },
    { { "--version", "--help" }, ACTION_HELP },
    { { "--bogus", "--help" }, ACTION_HELP }, /* obeyed whatever else is wrong */
    { { "--set", "--version" }, ACTION_VERSION },
};

START_TEST(what_to_do_beside_running_is_a_flag)
{
    const char *const environment[] = { "HOME=/h", actions[_i].action >= ACTION_VERSION ? "NONBIS_NONSENSE=1" : NULL,
                                        NULL };
    ck_assert_msg(read_all(environment, actions[_i].flags) == 0, "%s", errors);
    ck_assert_str_eq(errors, "");
    ck_assert_int_eq(action, actions[_i].action);
    settings_fini(&settings);
}
END_TEST

static const struct {
    const char *environment[4], *store; /* store: NULL: none is found */
} stores[] = {
    { { "STATE_DIRECTORY=/var/lib/nonbis", "XDG_STATE_HOME=/x", "HOME=/h" }, "/var/lib/nonbis/nonbis.db" },
    { { "STATE_DIRECTORY=/var/lib/a:/var/lib/b", "HOME=/h" }, "/var/lib/a/nonbis.db" },
    { { "HOME=/h", "XDG_STATE_HOME=/x/" }, "/x/nonbis/nonbis.db" },
    { { "XDG_STATE_HOME=relative", "HOME=/h" }, "/h/.local/state/nonbis/nonbis.db" },
    { { "XDG_STATE_HOME=", "STATE_DIRECTORY=", "HOME=/h" }, "/h/.local/state/nonbis/nonbis.db" },
    { { "HOME=/" }, "/.local/state/nonbis/nonbis.db" },
    { { "HOMER=/h" }, NULL },
    { { "HOME=" }, NULL },
    { { "HOME=h" }, NULL },
    { { "NONBIS_STORE=/data/keys.db" }, "/data/keys.db" },
};

START_TEST(the_store_has_a_place_of_its_own_by_default)
{
    int code = read_all(stores[_i].environment, LIST(UPSTREAM));
    if (stores[_i].store == NULL) {
        ck_assert_int_eq(code, 78);
        ck_assert_ptr_ne(strstr(errors, "store: no place is known for it"), NULL);
        ck_assert_ptr_ne(strstr(errors, "--store memory"), NULL);
    } else {
        ck_assert_msg(code == 0, "%s", errors);
        ck_assert_str_eq(settings.store, stores[_i].store);
    }
    settings_fini(&settings);
}
END_TEST

START_TEST(an_upstream_is_needed_to_run_and_to_pass_the_check_but_not_to_print)
{
    static const char *const none[] = { NULL };
    ck_assert_int_eq(read_all(HOME_ONLY, none), 78);
    ck_assert_str_eq(errors, "upstream: expected a handler to forward to, such as --upstream http://127.0.0.1:3000\n");
    settings_fini(&settings);
    ck_assert_int_eq(read_all(HOME_ONLY, LIST("--check")), 78);
    settings_fini(&settings);
    ck_assert_int_eq(read_all(HOME_ONLY, LIST("--print-config")), 0);
    settings_fini(&settings);
}
END_TEST

START_TEST(variables_of_a_container_platform_are_not_taken_for_settings)
{
    const char *const environment[] = { "HOME=/h",
                                        "NONBIS_SERVICE_HOST=10.0.0.1",
                                        "NONBIS_SERVICE_PORT=8620",
                                        "NONBIS_SERVICE_PORT_HTTP=8620",
                                        "NONBIS_PORT=tcp://10.0.0.1:8620",
                                        "NONBIS_PORT_8620_TCP=tcp://10.0.0.1:8620",
                                        "NONBIS_PORT_8620_TCP_ADDR=10.0.0.1",
                                        "NONBIS_URL=http://127.0.0.1:8620", /* the client's */
                                        "NONBIS_JOURNAL=/tmp/j",
                                        "NONBISX=1",
                                        "NONBIS_TTL", /* no value: not a variable */
                                        NULL };
    ck_assert_msg(read_all(environment, LIST(UPSTREAM)) == 0, "%s", errors);
    settings_fini(&settings);
}
END_TEST

START_TEST(an_empty_guard_is_a_guard_turned_off)
{
    static const char *const texts[] = { "--set=guard=", "--set=guard=\"\"" };
    ck_assert_msg(read_all(HOME_ONLY, LIST(UPSTREAM, texts[_i])) == 0, "%s", errors);
    ck_assert_uint_eq(settings.guard.count, 0);
    settings_fini(&settings);
}
END_TEST

static const struct {
    const char *first, *second;
    bool reached;
} pairs[] = {
    { "POST /orders", "POST /orders", false },
    { "POST /orders", "POST /orders/ key=optional", false }, /* one normal form */
    { "POST /*", "POST /orders/*", false },
    { "POST /orders/*", "POST /orders", false },
    { "POST /orders*", "POST /orders/*", false },
    { "* /*", "POST /orders", false },
    { "POST /orders/*", "POST /*", true },
    { "POST /orders", "POST /orders/*", true },
    { "POST /orders/*", "POST /orders*", true },
    { "POST /orders", "PATCH /orders", true },
    { "POST /*", "* /*", true },
};

START_TEST(a_route_behind_one_that_takes_all_its_requests_is_refused)
{
    int code = read_all(HOME_ONLY, LIST(UPSTREAM, "--route", pairs[_i].first, "--route", pairs[_i].second));
    ck_assert_msg(code == (pairs[_i].reached ? 0 : 78), "%s", errors);
    ck_assert(pairs[_i].reached || strstr(errors, "never reached") != NULL);
    settings_fini(&settings);
}
END_TEST

START_TEST(more_than_256_routes_are_refused)
{
    static char texts[257][32];
    const char *flags[259] = { UPSTREAM };
    for (int i = 0; i < 257; i++) {
        snprintf(texts[i], sizeof(texts[i]), "--route=POST /%d", i);
        flags[i + 1] = texts[i];
    }
    ck_assert_int_eq(read_all(HOME_ONLY, flags), 78);
    ck_assert_str_eq(errors, "--route: expected at most 256 routes\n");
    settings_fini(&settings);
    flags[257] = NULL;
    ck_assert_msg(read_all(HOME_ONLY, flags) == 0, "%s", errors);
    ck_assert_uint_eq(settings.routes.count, 256);
    settings_fini(&settings);
}
END_TEST

SUITE(settings_read)
{
    Suite *suite = suite_create("config/read");
    CASE(suite, an_upstream_alone_is_enough_to_run);
    CASE(suite, without_routes_every_post_and_patch_is_protected_and_needs_a_key);
    CASE(suite, routes_given_replace_the_default_ones_and_keep_their_order);
    CASE(suite, flags_win_over_the_environment_and_that_over_defaults);
    CASE(suite, of_two_flags_for_one_setting_the_later_wins);
    CASE_LOOP(suite, every_setting_can_be_given_by_set_and_by_environment, 2);
    CASE_LOOP(suite, what_to_do_beside_running_is_a_flag, COUNT(actions));
    CASE_LOOP(suite, the_store_has_a_place_of_its_own_by_default, COUNT(stores));
    CASE(suite, an_upstream_is_needed_to_run_and_to_pass_the_check_but_not_to_print);
    CASE(suite, variables_of_a_container_platform_are_not_taken_for_settings);
    CASE_LOOP(suite, an_empty_guard_is_a_guard_turned_off, 2);
    CASE_LOOP(suite, a_route_behind_one_that_takes_all_its_requests_is_refused, COUNT(pairs));
    CASE(suite, more_than_256_routes_are_refused);
    return suite;
}
