/* settings.c - fuzzes server/config: read.c, read_flags.c, check.c, print.c. The input is lines: behind a '$' a variable of the environment,
 * else an argument of the command line.
 *
 * What is taken is within the ranges of its rows and in order with the others, and is printed so that it is read again as the same. What is
 * wrong is told in whole lines that are fit for a terminal, and the exit code says so. */
#include "schema/limits.h"
#include "server/config/values.h"

#include "tests/proof/fuzz/fuzz.h"

enum { WORDS_MAX = 320, ERRORS_MAX = 1 << 20 };

/* The words of one call. The texts belong to it. */
struct words {
    char *arguments[WORDS_MAX], *variables[WORDS_MAX];
    int argument_count, variable_count;
};

static void words_fini(struct words *words)
{
    for (int i = 0; i < words->argument_count; i++) {
        free(words->arguments[i]);
    }
    for (int i = 0; i < words->variable_count; i++) {
        free(words->variables[i]);
    }
}

static void words_add(struct words *words, struct view text)
{
    if (words->argument_count < WORDS_MAX - 1) {
        words->arguments[words->argument_count++] = fuzz_text(text);
    }
}

static void words_cut(struct words *words, struct view rest)
{
    *words = (struct words){ .argument_count = 0 };
    words_add(words, VIEW("nonbisd"));
    while (rest.len > 0) {
        struct view line = fuzz_line(&rest);
        if (line.len == 0 || line.ptr[0] != '$') {
            words_add(words, line);
        } else if (words->variable_count < WORDS_MAX - 1) {
            words->variables[words->variable_count++] = fuzz_text(view_make(line.ptr + 1, line.len - 1));
        }
    }
}

/* Ranges and relations. */
static void values_must_hold(const struct settings *settings)
{
    for (size_t row = 0; row < setting_table_count; row++) {
        enum setting_kind kind = setting_table[row].kind;
        if (kind == SETTING_BYTES || kind == SETTING_MS || kind == SETTING_COUNT_OF) {
            int64_t number = 0;
            memcpy(&number, (const char *) settings + setting_table[row].offset, sizeof(number));
            MUST(number >= setting_table[row].min && number <= setting_table[row].max);
        }
    }
    MUST(settings->answer_timeout_ms <= settings->hard_timeout_ms && settings->ttl_ms <= settings->tombstone_ttl_ms);
    MUST(settings->routes.count > 0 && settings->routes.count <= LIMIT_ROUTES);
    for (unsigned i = 0; i < settings->routes.count; i++) {
        MUST(settings->routes.items[i].index == i && settings->routes.items[i].pattern.ptr[0] == '/');
    }
    MUST(settings->store[0] != '\0' && settings->listen[0] != '\0');
}

/* The printed lines as arguments: "name = value  # source" becomes --set name=value, and a route --route. */
static void words_from_print(struct words *words, struct view printed, struct buf *without_sources)
{
    *words = (struct words){ .argument_count = 0 };
    words_add(words, VIEW("nonbisd"));
    words_add(words, VIEW("--print-config"));
    while (printed.len > 0) {
        struct view line = fuzz_line(&printed), route = VIEW("route = ");
        while (line.len > 0 && line.ptr[line.len - 1] != '#') {
            line.len--;
        }
        MUST(line.len > 3);
        line.len -= 3;
        struct buf word;
        buf_init(&word, line.len + 20);
        if (view_starts_with(line, route)) {
            buf_append_text(&word, "--route=");
            buf_append_bytes(&word, line.ptr + route.len, line.len - route.len);
        } else {
            const char *equals = memchr(line.ptr, '=', line.len);
            MUST(equals != NULL);
            size_t name = (size_t) (equals - line.ptr) - 1;
            buf_append_text(&word, "--set=");
            buf_append_bytes(&word, line.ptr, name);
            buf_append_text(&word, "=");
            buf_append_bytes(&word, equals + 2, line.len - name - 3);
        }
        words_add(words, buf_view(&word));
        buf_fini(&word);
        buf_append(without_sources, line);
        buf_append_text(without_sources, "\n");
    }
}

/* Prints, and reads what was printed. `depth` 1: the second time, which only prints for comparison. */
static void print_must_be_read_again(const struct settings *settings, struct buf *lines, int depth)
{
    struct words words;
    struct buf printed, told;
    buf_init(&printed, ERRORS_MAX);
    buf_init(&told, ERRORS_MAX);
    settings_print(settings, &printed);
    words_from_print(&words, buf_view(&printed), lines);
    if (depth == 0) {
        struct settings again;
        struct buf other;
        enum settings_action action;
        buf_init(&other, ERRORS_MAX);
        MUST(settings_read(&again, &action, words.argument_count, words.arguments, words.variables, &told) == 0);
        print_must_be_read_again(&again, &other, 1);
        MUST(view_equal(buf_view(lines), buf_view(&other)));
        buf_fini(&other);
        settings_fini(&again);
    }
    buf_fini(&printed);
    buf_fini(&told);
    words_fini(&words);
}

FUZZ_TARGET(settings)
{
    struct words words;
    struct settings settings;
    struct buf told, lines;
    enum settings_action action = ACTION_RUN;
    buf_init(&told, ERRORS_MAX);
    buf_init(&lines, ERRORS_MAX);
    words_cut(&words, input);
    int code = settings_read(&settings, &action, words.argument_count, words.arguments, words.variables, &told);
    MUST(code == 0 || code == 64 || code == 78);
    MUST((code == 0) == (told.len == 0) && !told.failed);
    MUST(fuzz_is_message(buf_view(&told), true));
    bool taken = code == 0 && action <= ACTION_PRINT_CONFIG;
    if (taken) {
        MUST(action == ACTION_PRINT_CONFIG || settings.upstream[0] != '\0');
        values_must_hold(&settings);
        print_must_be_read_again(&settings, &lines, 0);
    }
    settings_fini(&settings);
    words_fini(&words);
    buf_fini(&told);
    buf_fini(&lines);
    return taken;
}
