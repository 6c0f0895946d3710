/* sim.c - `nonbis sim`: the table of what jitter does to a thundering herd. */
#include "client-sdk/cli/command.h"
#include "client-sdk/cli/complain.h"
#include "client-sdk/cli/explain.h"
#include "client-sdk/cli/nearest.h"
#include "client-sdk/cli/options.h"
#include "client-sdk/cli/output_json.h"
#include "client-sdk/cli/sim_plot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { WAVES_MAX = 8, CLIENTS_MAX = 1000000, RETRIES_MAX = 20, DELAY_MAX_MS = 3600000 };

/* ---- settings ----------------------------------------------------------------------------------------------------- */

static bool delay_read(const struct options *options, enum nonbis_option option, int64_t *ms)
{
    struct nonbis_policy *policy = NULL;
    const char *name = nonbis_option_name(option), *text = options->policy[option];
    if (text == NULL) {
        return true;
    }
    if (nonbis_policy_new(&policy, NULL) != NONBIS_OK) {
        complain("out of memory");
        return false;
    }
    bool good = nonbis_policy_set_text(policy, name, text) == NONBIS_OK;
    *ms = nonbis_policy_get(policy, option);
    nonbis_policy_free(policy);
    if (!good || *ms > DELAY_MAX_MS) {
        complain("--%s \"%s\" is not possible here: 0 to 1h", name, text);
        return false;
    }
    return true;
}

static bool setting_read(const struct options *options, struct sim_setting *setting)
{
    uint32_t chance = 0;
    if (getrandom(&chance, sizeof chance, 0) != (ssize_t) sizeof chance) {
        chance = 1; /* any seed does; it is printed */
    }
    *setting = (struct sim_setting){ .clients = 1000, .retries = 4, .base_ms = 1000, .cap_ms = 30000, .seed = chance };
    if (!option_number(options, OPTION_CLIENTS, 1, CLIENTS_MAX, &setting->clients) ||
        !option_number(options, OPTION_RETRIES, 1, RETRIES_MAX, &setting->retries) ||
        !option_number(options, OPTION_SEED, 0, UINT64_MAX, &setting->seed) ||
        !delay_read(options, NONBIS_BASE_MS, &setting->base_ms) ||
        !delay_read(options, NONBIS_CAP_MS, &setting->cap_ms)) {
        return false;
    }
    if (setting->base_ms > setting->cap_ms) {
        complain("--base-delay is longer than --max-delay; change one of them, or both");
        return false;
    }
    return true;
}

/* Which strategy is meant; `*all` when none is named. */
static bool strategy_read(const struct options *options, size_t *index, bool *all)
{
    const char *wanted = options->values[OPTION_STRATEGY];
    struct nearest nearest;
    *all = wanted == NULL;
    if (wanted == NULL) {
        return true;
    }
    nearest_begin(&nearest, wanted);
    for (*index = 0; sim_strategy_name(*index) != NULL; (*index)++) {
        if (strcmp(sim_strategy_name(*index), wanted) == 0) {
            return true;
        }
        nearest_offer(&nearest, sim_strategy_name(*index));
    }
    complain("there is no strategy \"%s\"%s%s; %s", wanted, nearest.best != NULL ? "; did you mean " : "",
             nearest.best != NULL ? nearest.best : "", option_at(OPTION_STRATEGY)->help);
    return false;
}

/* ---- telling ------------------------------------------------------------------------------------------------------ */

static void print_table(const struct sim_setting *setting, const struct sim_wave *waves, size_t count)
{
    char base[EXPLAIN_TIME], cap[EXPLAIN_TIME];
    explain_ms(setting->base_ms, base);
    explain_ms(setting->cap_ms, cap);
    printf("%llu clients fail at 0 s; %llu retries each, base %s, cap %s; buckets of %d ms; seed %llu\n\n",
           (unsigned long long) setting->clients, (unsigned long long) setting->retries, base, cap, SIM_BUCKET_MS,
           (unsigned long long) setting->seed);
    printf("%-12s %7s %8s %8s\n", "strategy", "peak", "buckets", "last");
    for (size_t i = 0; i < count; i++) {
        printf("%-12s %7llu %8llu %6lld.%lld s\n", waves[i].name, (unsigned long long) waves[i].peak,
               (unsigned long long) waves[i].buckets, (long long) (waves[i].last_ms / 1000),
               (long long) (waves[i].last_ms % 1000 / 100));
    }
}

static bool print_json(const struct sim_setting *setting, const struct sim_wave *waves, size_t count)
{
    char seed[24];
    (void) snprintf(seed, sizeof seed, "%llu", (unsigned long long) setting->seed);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "clients", (double) setting->clients);
    cJSON_AddNumberToObject(object, "retries", (double) setting->retries);
    cJSON_AddNumberToObject(object, "base_ms", (double) setting->base_ms);
    cJSON_AddNumberToObject(object, "cap_ms", (double) setting->cap_ms);
    cJSON_AddNumberToObject(object, "bucket_ms", SIM_BUCKET_MS);
    cJSON_AddStringToObject(object, "seed", seed); /* 64 bits are more than a number of JSON holds */
    cJSON *list = cJSON_AddArrayToObject(object, "strategies");
    for (size_t i = 0; i < count; i++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "strategy", waves[i].name);
        cJSON_AddNumberToObject(one, "peak", (double) waves[i].peak);
        cJSON_AddNumberToObject(one, "buckets", (double) waves[i].buckets);
        cJSON_AddNumberToObject(one, "last_ms", (double) waves[i].last_ms);
        cJSON_AddItemToArray(list, one);
    }
    return output_json_print(object);
}

static bool tell(const struct options *options, const struct sim_setting *setting, const struct sim_wave *waves,
                 size_t count)
{
    if (option_is_given(options, OPTION_JSON)) {
        bool printed = print_json(setting, waves, count);
        if (!printed && errno != EPIPE) {
            complain("the object of --json could not be written to stdout: %s", strerror(errno));
        }
        return printed;
    }
    print_table(setting, waves, count);
    if (!option_is_given(options, OPTION_NO_PLOT)) {
        sim_plot_print(waves, count, setting->clients);
    }
    return fflush(stdout) == 0;
}

enum exit_code sim_run(const struct options *options)
{
    struct sim_setting setting;
    struct sim_wave waves[WAVES_MAX];
    size_t index = 0, count = 0;
    bool all = false, good = true;
    if (!setting_read(options, &setting) || !strategy_read(options, &index, &all)) {
        return EXIT_CODE_USAGE;
    }
    while (good && count < WAVES_MAX && sim_strategy_name(index + count) != NULL && (all || count == 0)) {
        good = sim_wave_run(&waves[count], index + count, &setting);
        count++;
    }
    if (!good) {
        complain("out of memory: %llu retries of up to %lld ms are too many buckets",
                 (unsigned long long) setting.retries, (long long) setting.cap_ms);
    }
    good = good && tell(options, &setting, waves, count);
    for (size_t i = 0; i < count; i++) {
        sim_wave_fini(&waves[i]);
    }
    return good ? EXIT_CODE_DONE : EXIT_CODE_INTERNAL;
}
