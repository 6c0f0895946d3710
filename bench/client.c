/* client.c - what libnonbis costs: the same keyed POST through it and through plain libcurl, side by side in one process, one
 * thread, one kept connection each. `bench/client URL ROUNDS POSTS JOURNAL`; bench/client.sh starts the handler.
 *
 * Within a round the two kinds take turns, POST by POST, and the round counts by its median POST of each kind, so that neither
 * the scheduler nor a busy machine favours one; of the rounds' ratios and differences the median counts again. Processor time
 * is that of this thread, in the mean. The journal's lane counts what its fsync calls cost: fsync is defined here, in the
 * program, which the library's reference then means. A goal that is missed is shown and is no error. */
#include <curl/curl.h>
#include <nonbis.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUNDS_MAX = 1000,
    POSTS_MAX = 10000,
    PHASES = 4,
    JOURNAL_PART = 10 /* so many times fewer POSTs with the journal */
};

static const char body[] = "{\"item\":\"tea\",\"amount\":1250}";

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec * 1e6 + (double) now.tv_nsec / 1e3;
}

/* Of this thread: what a busy machine disturbs least. */
static double cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double) now.tv_sec * 1e6 + (double) now.tv_nsec / 1e3;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench/client: %s: %s\n", what, why);
    exit(1);
}

/* ---- plain libcurl ------------------------------------------------------------------------------------------------ */

struct plain {
    CURL *easy;
    const char *url;
    char received[4096];
    size_t len;
};

static size_t plain_on_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct plain *plain = arg;
    size_t len = size * count;
    if (len > sizeof plain->received - plain->len) {
        return 0;
    }
    memcpy(plain->received + plain->len, bytes, len);
    plain->len += len;
    return len;
}

static size_t plain_on_header(char *bytes, size_t size, size_t count, void *arg)
{
    (void) bytes;
    (void) arg;
    return size * count;
}

/* The options that change the work per request; set once, as one would. */
static void plain_open(struct plain *plain, const char *url)
{
    plain->easy = curl_easy_init();
    if (plain->easy == NULL) {
        die("plain libcurl", "no handle");
    }
    plain->url = url;
    curl_easy_setopt(plain->easy, CURLOPT_URL, url);
    curl_easy_setopt(plain->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(plain->easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(plain->easy, CURLOPT_PROXY, "");
    curl_easy_setopt(plain->easy, CURLOPT_USERAGENT, "plain/1");
    curl_easy_setopt(plain->easy, CURLOPT_TIMEOUT_MS, 10000L);
    curl_easy_setopt(plain->easy, CURLOPT_CONNECTTIMEOUT_MS, 3000L);
    curl_easy_setopt(plain->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(plain->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(plain->easy, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(plain->easy, CURLOPT_POSTFIELDSIZE, (long) (sizeof body - 1));
    curl_easy_setopt(plain->easy, CURLOPT_WRITEFUNCTION, plain_on_body);
    curl_easy_setopt(plain->easy, CURLOPT_WRITEDATA, plain);
    curl_easy_setopt(plain->easy, CURLOPT_HEADERFUNCTION, plain_on_header);
}

static void plain_post(struct plain *plain)
{
    char key[NONBIS_KEY_SIZE], line[96];
    long status = 0;
    if (nonbis_key_make(key) != NONBIS_OK) {
        die("key", "no random source");
    }
    (void) snprintf(line, sizeof line, "Idempotency-Key: %s", key);
    struct curl_slist *fields = curl_slist_append(NULL, line);
    fields = curl_slist_append(fields, "Content-Type: application/json");
    fields = curl_slist_append(fields, "Accept:");
    curl_easy_setopt(plain->easy, CURLOPT_HTTPHEADER, fields);
    plain->len = 0;
    CURLcode code = curl_easy_perform(plain->easy);
    curl_easy_getinfo(plain->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(fields);
    if (code != CURLE_OK || status != 201) {
        die("plain libcurl", curl_easy_strerror(code));
    }
}

/* ---- libnonbis ---------------------------------------------------------------------------------------------------- */

/* Where a run is, for what fsync costs there. */
enum phase { PHASE_NEW, PHASE_SENT, PHASE_WIRE, PHASE_DONE };
static enum phase phase;
static uint64_t sync_calls[PHASES];
static double sync_us[PHASES];

int fsync(int fd);
int fsync(int fd)
{
    double began = now_us();
    int result = (int) syscall(SYS_fsync, fd);
    sync_us[phase] += now_us() - began;
    sync_calls[phase]++;
    return result;
}

static int follow(const struct nonbis_event *event, void *arg)
{
    (void) arg;
    phase = event->kind == NONBIS_EVENT_ATTEMPT  ? PHASE_SENT
            : event->kind == NONBIS_EVENT_SENT   ? PHASE_WIRE
            : event->kind == NONBIS_EVENT_ANSWER ? PHASE_DONE
                                                 : phase;
    return 0;
}

static void nonbis_post(struct nonbis_client *client, const char *url)
{
    struct nonbis_op *op = NULL;
    phase = PHASE_NEW;
    int error = nonbis_op_new(&op, client, url, body, sizeof body - 1);
    if (error == NONBIS_OK) {
        error = nonbis_op_set_header(op, "Content-Type", "application/json", 0);
    }
    if (error == NONBIS_OK) {
        error = nonbis_op_run(op);
    }
    if (error != NONBIS_OK) {
        die("libnonbis", nonbis_error_text(error));
    }
    if (nonbis_op_outcome(op) != NONBIS_COMPLETED || nonbis_op_http_status(op) != 201 || nonbis_op_attempts(op) != 1) {
        die("libnonbis", nonbis_op_message(op));
    }
    nonbis_op_free(op);
}

static struct nonbis_client *client_open(const char *journal)
{
    struct nonbis_client *client = NULL;
    if (nonbis_client_new(&client, NULL) != NONBIS_OK) {
        die("libnonbis", "no client");
    }
    if (journal != NULL) {
        if (nonbis_client_use_journal(client, journal) != NONBIS_OK) {
            die("libnonbis", nonbis_client_message(client));
        }
        nonbis_client_on_event(client, follow, NULL);
    }
    return client;
}

/* ---- measuring ---------------------------------------------------------------------------------------------------- */

struct lanes {
    struct plain plain;
    struct nonbis_client *client, *with_journal;
    const char *url;
    unsigned posts;
};

static int compare(const void *a, const void *b)
{
    double left = *(const double *) a, right = *(const double *) b;
    return left < right ? -1 : left > right;
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, compare);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* One kind of POST within a round. */
struct lane {
    double us[POSTS_MAX];
    double cpu_us; /* in all */
};

static void lane_add(struct lane *lane, unsigned post, double began_us, double began_cpu_us)
{
    lane->us[post] = now_us() - began_us;
    lane->cpu_us += cpu_us() - began_cpu_us;
}

static void take_turns(struct lanes *lanes, struct lane *plain, struct lane *ours)
{
    plain->cpu_us = ours->cpu_us = 0;
    for (unsigned i = 0; i < lanes->posts; i++) {
        double began_cpu_us = cpu_us(), began_us = now_us();
        plain_post(&lanes->plain);
        lane_add(plain, i, began_us, began_cpu_us);
        began_cpu_us = cpu_us();
        began_us = now_us();
        nonbis_post(lanes->client, lanes->url);
        lane_add(ours, i, began_us, began_cpu_us);
    }
}

static double with_journal_us(struct lanes *lanes, unsigned posts)
{
    double began = now_us();
    for (unsigned i = 0; i < posts; i++) {
        nonbis_post(lanes->with_journal, lanes->url);
    }
    return now_us() - began;
}

static void print_journal(unsigned posts, double us)
{
    static const char *const names[PHASES] = { "written (new), before anything is sent", "moved to sent, in the hook",
                                               "", "moved to done, after the answer" };
    printf("with the journal      %9.1f us a POST, in the mean\n", us);
    for (int i = 0; i < PHASES; i++) {
        if (names[i][0] != '\0') {
            printf("  %-40s %5.2f fsync, %9.1f us in them a POST\n", names[i], (double) sync_calls[i] / posts,
                   sync_us[i] / posts);
        }
    }
}

static void measure(struct lanes *lanes, unsigned rounds)
{
    static struct lane plain, ours;
    static double ratio[ROUNDS_MAX], extra[ROUNDS_MAX], extra_cpu[ROUNDS_MAX], plain_us[ROUNDS_MAX];
    unsigned journal_posts = lanes->posts / JOURNAL_PART > 0 ? lanes->posts / JOURNAL_PART : 1;
    double journal_us = 0;
    take_turns(lanes, &plain, &ours); /* connected and warm */
    (void) with_journal_us(lanes, 1);
    memset(sync_calls, 0, sizeof sync_calls);
    memset(sync_us, 0, sizeof sync_us);
    for (unsigned i = 0; i < rounds; i++) {
        take_turns(lanes, &plain, &ours);
        plain_us[i] = median(plain.us, lanes->posts);
        double ours_us = median(ours.us, lanes->posts);
        ratio[i] = ours_us / plain_us[i];
        extra[i] = ours_us - plain_us[i];
        extra_cpu[i] = (ours.cpu_us - plain.cpu_us) / lanes->posts;
        journal_us += with_journal_us(lanes, journal_posts);
    }
    double ratio_median = median(ratio, rounds), extra_median = median(extra, rounds);
    printf("%u rounds of %u POSTs of each kind, medians\n", rounds, lanes->posts);
    printf("plain libcurl         %9.1f us a POST\n", median(plain_us, rounds));
    printf(
        "libnonbis             %9.1f us more, ratio %.3f (rounds from %.3f to %.3f); %.1f us more of the processor\n",
        extra_median, ratio_median, ratio[0], ratio[rounds - 1], median(extra_cpu, rounds));
    printf("goal: ratio <= 1.05 or <= 50 us more   %s\n", ratio_median <= 1.05 || extra_median <= 50 ? "pass" : "fail");
    print_journal(journal_posts * rounds, journal_us / (journal_posts * rounds));
}

int main(int argc, char **argv)
{
    struct lanes lanes = { .posts = 0 };
    unsigned rounds = 0;
    if (argc == 5) {
        rounds = (unsigned) strtoul(argv[2], NULL, 10);
        lanes.posts = (unsigned) strtoul(argv[3], NULL, 10);
    }
    if (rounds < 1 || rounds > ROUNDS_MAX || lanes.posts < 1 || lanes.posts > POSTS_MAX) {
        fprintf(stderr, "usage: bench/client URL ROUNDS POSTS JOURNAL; at most %d rounds of %d\n", ROUNDS_MAX,
                POSTS_MAX);
        return 64;
    }
    curl_global_init(CURL_GLOBAL_DEFAULT);
    lanes.url = argv[1];
    lanes.client = client_open(NULL);
    lanes.with_journal = client_open(argv[4]);
    plain_open(&lanes.plain, lanes.url);
    measure(&lanes, rounds);
    curl_easy_cleanup(lanes.plain.easy);
    nonbis_client_free(lanes.with_journal);
    nonbis_client_free(lanes.client);
    return 0;
}
