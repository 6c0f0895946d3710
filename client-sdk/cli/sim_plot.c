/* sim_plot.c - see sim_plot.h. */
#include "client-sdk/cli/sim_plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 60, LEVELS = 8 };

/* Blocks where the terminal speaks UTF-8, else ASCII. */
static const char *const *levels_of_locale(void)
{
    static const char *const blocks[LEVELS + 1] = { " ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                                    "\u2585", "\u2586", "\u2587", "\u2588" };
    static const char *const plain[LEVELS + 1] = { " ", ".", ":", "-", "=", "+", "*", "#", "@" };
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0') {
            return strstr(value, "UTF-8") != NULL || strstr(value, "utf8") != NULL ? blocks : plain;
        }
    }
    return plain;
}

/* The highest bucket of those that lie in the column. */
static uint64_t column_peak(const struct sim_wave *wave, size_t column, int64_t end_ms)
{
    int64_t from_ms = end_ms * (int64_t) column / COLUMNS, to_ms = end_ms * (int64_t) (column + 1) / COLUMNS;
    uint64_t peak = 0;
    for (size_t i = (size_t) (from_ms / SIM_BUCKET_MS); i < wave->bucket_count; i++) {
        if ((int64_t) i * SIM_BUCKET_MS >= to_ms) {
            break;
        }
        if ((int64_t) i * SIM_BUCKET_MS >= from_ms && wave->arrivals[i] > peak) {
            peak = wave->arrivals[i];
        }
    }
    return peak;
}

void sim_plot_print(const struct sim_wave *waves, size_t count, uint64_t clients)
{
    const char *const *levels = levels_of_locale();
    int64_t end_ms = 0;
    for (size_t i = 0; i < count; i++) {
        end_ms = waves[i].last_ms > end_ms ? waves[i].last_ms : end_ms;
    }
    end_ms += SIM_BUCKET_MS;
    putchar('\n');
    for (size_t i = 0; i < count; i++) {
        printf("%-12s |", waves[i].name);
        for (size_t column = 0; column < COLUMNS; column++) {
            uint64_t level = (column_peak(&waves[i], column, end_ms) * LEVELS + clients - 1) / clients; /* upwards */
            fputs(levels[level < LEVELS ? level : LEVELS], stdout);
        }
        printf("|\n");
    }
    printf("%-12s  0 s%*.1f s\n", "", COLUMNS - 5, (double) end_ms / 1000.0);
}
