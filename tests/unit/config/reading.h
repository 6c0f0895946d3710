/* reading.h - one reading of settings in a test: what it was given, and what came out. For read_test.c and mistakes_test.c. */
#ifndef NONBIS_TESTS_UNIT_CONFIG_READING_H
#define NONBIS_TESTS_UNIT_CONFIG_READING_H

#include "server/config/settings.h"
#include "tests/support/suite.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

enum { WORDS_MAX = 320 };

/* One reading: "nonbisd" and the flags given, under an environment given; both NULL-terminated. */
static struct settings settings;
static enum settings_action action;
static char errors[65536];

static int read_all(const char *const *environment, const char *const *flags)
{
    char *argv[WORDS_MAX] = { (char *) (uintptr_t) "nonbisd" };
    char *envp[WORDS_MAX] = { NULL };
    int argc = 1;
    for (; flags[argc - 1] != NULL; argc++) {
        argv[argc] = (char *) (uintptr_t) flags[argc - 1];
    }
    for (int i = 0; environment[i] != NULL; i++) {
        envp[i] = (char *) (uintptr_t) environment[i];
    }
    struct buf told;
    buf_init(&told, sizeof(errors) - 1);
    int code = settings_read(&settings, &action, argc, argv, envp, &told);
    memcpy(errors, told.len > 0 ? told.ptr : "", told.len);
    errors[told.len] = '\0';
    buf_fini(&told);
    return code;
}

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define HOME_ONLY LIST("HOME=/home/ada")
#define UPSTREAM "--upstream=http://127.0.0.1:3000"

#endif
