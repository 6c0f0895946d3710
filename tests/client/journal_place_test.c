/* Where a journal lies: made, refused, and what its files may be read by. */
#include "tests/client/journal_lab.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static mode_t mode_of(const struct journal_lab *lab, const char *below)
{
    char path[512];
    struct stat status;
    (void) snprintf(path, sizeof(path), "%s%s", lab->path, below);
    ck_assert_msg(lstat(path, &status) == 0, "%s", path);
    return status.st_mode & 07777;
}

/* The message of a journal that does not open. */
static const char *refused(const char *path)
{
    static char message[512];
    message[0] = '\0';
    struct journal *journal = journal_directory_open(path, message, sizeof(message));
    ck_assert_msg(journal == NULL, "%s was opened", path != NULL ? path : "(default)");
    return message;
}

#define CONTAINS(text, part) ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in '%s'", part, text)

/* ---- modes -------------------------------------------------------------------------------------------------------- */

static const mode_t masks[] = { 0, 022, 077, 0277, 0777 };

/* As somebody whom permissions bind, since nothing stops root. */
static void become_nobody(const struct journal_lab *lab)
{
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(lab->parent, NOBODY, NOBODY), 0);
        ck_assert_int_eq(setgid(NOBODY), 0);
        ck_assert_int_eq(setuid(NOBODY), 0);
    }
}

START_TEST(nobody_else_reads_it_whatever_the_umask)
{
    struct journal_lab lab;
    struct journal_entry *entry = NULL;
    struct journal_record record = journal_lab_record("k"), ended = journal_lab_ended("k");
    journal_lab_parent(&lab);
    become_nobody(&lab);
    (void) umask(masks[_i]);
    journal_lab_reopen(&lab, NULL);
    ck_assert_uint_eq(mode_of(&lab, ""), 0700);
    ck_assert_uint_eq(mode_of(&lab, "/new"), 0700);
    ck_assert_uint_eq(mode_of(&lab, "/sent"), 0700);
    ck_assert_uint_eq(mode_of(&lab, "/done"), 0700);
    ck_assert_uint_eq(mode_of(&lab, "/tmp"), 0700);
    ck_assert_uint_eq(mode_of(&lab, "/lock"), 0600);
    ck_assert_int_eq(lab.journal->create(lab.journal, &record, &entry), NONBIS_OK);
    ck_assert_uint_eq(mode_of(&lab, "/new/k"), 0600);
    ck_assert_int_eq(lab.journal->mark_ended(lab.journal, entry, &ended, true), NONBIS_OK);
    ck_assert_uint_eq(mode_of(&lab, "/done/k"), 0600);
    lab.journal->close(lab.journal, entry);
    journal_lab_reopen(&lab, NULL);
    journal_lab_close(&lab);
}
END_TEST

/* ---- refused ------------------------------------------------------------------------------------------------------ */

START_TEST(a_place_that_others_write_to_is_refused)
{
    struct journal_lab lab;
    char below[512];
    static const mode_t bad[] = { 0720, 0702, 0777, 01777 }, good[] = { 0700, 0750, 0755 };
    journal_lab_open(&lab, NULL);
    for (size_t i = 0; i < 4; i++) {
        char mode[16];
        (void) snprintf(mode, sizeof(mode), "(mode %04o)", (unsigned) bad[i]);
        ck_assert_int_eq(chmod(lab.path, bad[i]), 0);
        CONTAINS(refused(lab.path), "can be written by others");
        CONTAINS(refused(lab.path), mode);
        CONTAINS(refused(lab.path), lab.path);
        ck_assert_int_eq(chmod(lab.path, 0700), 0);
        (void) snprintf(below, sizeof(below), "%s/sent", lab.path);
        ck_assert_int_eq(chmod(below, bad[i]), 0);
        CONTAINS(refused(lab.path), "/journal/sent can be written by others");
        ck_assert_int_eq(chmod(below, 0700), 0);
    }
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(chmod(lab.path, good[i]), 0);
        journal_lab_reopen(&lab, NULL);
        ck_assert_uint_eq(mode_of(&lab, ""), good[i]);
    }
    journal_lab_close(&lab);
}
END_TEST

START_TEST(a_place_of_somebody_else_is_refused)
{
    struct journal_lab lab;
    journal_lab_open(&lab, NULL);
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(lab.path, NOBODY, NOBODY), 0);
        CONTAINS(refused(lab.path), "belongs to user 65534 and not to user 0");
    } else {
        CONTAINS(refused("/"), "belongs to user 0 and not to user");
    }
    journal_lab_close(&lab);
}
END_TEST

START_TEST(a_place_that_is_none_is_refused_with_its_reason)
{
    struct journal_lab lab;
    char path[512], target[512];
    journal_lab_open(&lab, NULL);
    (void) snprintf(path, sizeof(path), "%s/missing/journal", lab.parent);
    CONTAINS(refused(path), "cannot make the journal's directory");
    CONTAINS(refused(path), "/missing/journal: No such file or directory");
    CONTAINS(refused(""), "the path of the journal is empty");
    (void) snprintf(path, sizeof(path), "%s/file", lab.path);
    journal_lab_write_file(&lab, ".", "file", "x", 1);
    CONTAINS(refused(path), "/journal/file: Not a directory");
    /* A symbolic link leads to the journal, but none is followed inside of it. */
    (void) snprintf(path, sizeof(path), "%s/link", lab.parent);
    ck_assert_int_eq(symlink(lab.path, path), 0);
    char message[512] = "";
    struct journal *journal = journal_directory_open(path, message, sizeof(message));
    ck_assert_msg(journal != NULL, "%s", message);
    journal->free(journal);
    (void) snprintf(path, sizeof(path), "%s/sent", lab.path);
    (void) snprintf(target, sizeof(target), "%s/elsewhere", lab.parent);
    ck_assert_int_eq(rename(path, target), 0);
    ck_assert_int_eq(symlink(target, path), 0);
    CONTAINS(refused(lab.path), "cannot open the journal's directory");
    CONTAINS(refused(lab.path), "/journal/sent");
    journal_lab_close(&lab);
}
END_TEST

START_TEST(a_place_without_permission_is_refused_and_later_nothing_is_written)
{
    struct journal_lab lab;
    struct journal_entry *entry = NULL;
    struct journal_record record = journal_lab_record("k");
    char below[512];
    journal_lab_parent(&lab);
    become_nobody(&lab);
    journal_lab_reopen(&lab, NULL);
    (void) snprintf(below, sizeof(below), "%s/tmp", lab.path);
    ck_assert_int_eq(chmod(below, 0500), 0);
    ck_assert_int_eq(lab.journal->create(lab.journal, &record, &entry), NONBIS_ERROR_JOURNAL);
    CONTAINS(lab.journal->message(lab.journal), "cannot create");
    CONTAINS(lab.journal->message(lab.journal), "/journal/tmp/k: Permission denied");
    ck_assert_ptr_null(entry);
    ck_assert_int_eq(chmod(below, 0700), 0);
    (void) snprintf(below, sizeof(below), "%s/new", lab.path);
    ck_assert_int_eq(chmod(below, 0500), 0);
    ck_assert_int_eq(lab.journal->create(lab.journal, &record, &entry), NONBIS_ERROR_JOURNAL);
    CONTAINS(lab.journal->message(lab.journal), "cannot move");
    ck_assert_uint_eq(journal_lab_count(&lab, "tmp"), 0);
    ck_assert_int_eq(chmod(below, 0000), 0);
    CONTAINS(refused(lab.path), "/journal/new: Permission denied");
    ck_assert_int_eq(chmod(below, 0700), 0);
    ck_assert_int_eq(chmod(lab.parent, 0500), 0);
    (void) snprintf(below, sizeof(below), "%s/other", lab.parent);
    CONTAINS(refused(below), "cannot make the journal's directory");
    CONTAINS(refused(below), "Permission denied");
    ck_assert_int_eq(chmod(lab.parent, 0700), 0);
    journal_lab_close(&lab);
}
END_TEST

/* A real short write, as on a full disk. */
START_TEST(a_file_that_cannot_be_written_whole_is_no_entry)
{
    struct journal_lab lab;
    struct journal_entry *entry = NULL;
    static char body[5000];
    struct rlimit limit;
    memset(body, 'b', sizeof(body));
    struct journal_record record = journal_lab_record("k"), small = journal_lab_record("small");
    record.body = body;
    record.body_len = sizeof(body);
    journal_lab_open(&lab, NULL);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 2000;
    ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int result = lab.journal->create(lab.journal, &record, &entry);
    int small_result = lab.journal->create(lab.journal, &small, &entry);
    limit.rlim_cur = before;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(result, NONBIS_ERROR_JOURNAL);
    ck_assert_int_eq(small_result, NONBIS_OK);
    lab.journal->close(lab.journal, entry);
    ck_assert_uint_eq(journal_lab_count(&lab, "tmp"), 0);
    ck_assert_str_eq(journal_lab_where(&lab, "k"), "");
    ck_assert_str_eq(journal_lab_where(&lab, "small"), "new");
    journal_lab_close(&lab);
}
END_TEST

START_TEST(a_lock_file_that_was_replaced_is_noticed)
{
    struct journal_lab lab;
    struct journal_entry *entry = NULL;
    struct journal_record record = journal_lab_record("k");
    char path[512];
    journal_lab_open(&lab, NULL);
    (void) snprintf(path, sizeof(path), "%s/lock", lab.path);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(lab.journal->create(lab.journal, &record, &entry), NONBIS_ERROR_JOURNAL);
    CONTAINS(lab.journal->message(lab.journal), "cannot open the journal's lock file");
    journal_lab_write_file(&lab, ".", "lock", "", 0);
    ck_assert_int_eq(lab.journal->create(lab.journal, &record, &entry), NONBIS_ERROR_JOURNAL);
    CONTAINS(lab.journal->message(lab.journal), "was replaced while it was in use");
    ck_assert_str_eq(journal_lab_where(&lab, "k"), "");
    journal_lab_reopen(&lab, NULL);
    ck_assert_int_eq(lab.journal->create(lab.journal, &record, &entry), NONBIS_OK);
    lab.journal->close(lab.journal, entry);
    journal_lab_close(&lab);
}
END_TEST

/* ---- paths -------------------------------------------------------------------------------------------------------- */

static void set_places(const char *state_home, const char *home)
{
    ck_assert_int_eq(state_home != NULL ? setenv("XDG_STATE_HOME", state_home, 1) : unsetenv("XDG_STATE_HOME"), 0);
    ck_assert_int_eq(home != NULL ? setenv("HOME", home, 1) : unsetenv("HOME"), 0);
}

static void open_default(struct journal_lab *lab, const char *expected_below)
{
    char message[512] = "";
    struct journal *journal = journal_directory_open(NULL, message, sizeof(message));
    ck_assert_msg(journal != NULL, "%s", message);
    journal->free(journal);
    (void) snprintf(lab->path, sizeof(lab->path), "%s%s", lab->parent, expected_below);
    ck_assert_uint_eq(mode_of(lab, ""), 0700);
    ck_assert_uint_eq(mode_of(lab, "/sent"), 0700);
    ck_assert_uint_eq(mode_of(lab, "/.."), 0700);
}

START_TEST(the_default_place_is_made_below_the_state_directory)
{
    struct journal_lab lab;
    char path[96];
    journal_lab_parent(&lab);
    set_places(NULL, lab.parent);
    open_default(&lab, "/.local/state/nonbis/journal");
    set_places("relative/is/ignored", lab.parent);
    open_default(&lab, "/.local/state/nonbis/journal");
    (void) snprintf(path, sizeof(path), "%s/state", lab.parent);
    set_places(path, lab.parent);
    open_default(&lab, "/state/nonbis/journal");
    set_places(NULL, NULL);
    CONTAINS(refused(NULL), "neither XDG_STATE_HOME nor HOME is an absolute path");
    set_places("", "home");
    CONTAINS(refused(NULL), "neither XDG_STATE_HOME nor HOME is an absolute path");
    (void) snprintf(path, sizeof(path), "%s/missing/home", lab.parent);
    set_places(NULL, path);
    CONTAINS(refused(NULL), "/missing/home/.local: No such file or directory");
    journal_lab_close(&lab);
}
END_TEST

START_TEST(a_path_may_be_relative_and_end_in_slashes)
{
    struct journal_lab lab;
    static const char *const paths[] = { "here", "here//", "./here/", "here/../here" };
    journal_lab_parent(&lab);
    ck_assert_int_eq(chdir(lab.parent), 0);
    (void) snprintf(lab.path, sizeof(lab.path), "here");
    for (size_t i = 0; i < 4; i++) {
        char message[512] = "";
        struct journal_entry *entry = NULL;
        struct journal_record record = journal_lab_record("k");
        struct journal *journal = journal_directory_open(paths[i], message, sizeof(message));
        ck_assert_msg(journal != NULL, "%s", message);
        ck_assert_int_eq(journal->create(journal, &record, &entry), i == 0 ? NONBIS_OK : NONBIS_ERROR_EXISTS);
        journal->close(journal, entry);
        journal->free(journal);
    }
    ck_assert_uint_eq(mode_of(&lab, "/new/k"), 0600);
    ck_assert_int_eq(chdir("/"), 0);
    journal_lab_close(&lab);
}
END_TEST

SUITE(journal_place)
{
    Suite *suite = suite_create("client/journal_place");
    CASE_LOOP(suite, nobody_else_reads_it_whatever_the_umask, sizeof(masks) / sizeof(masks[0]));
    CASE(suite, a_place_that_others_write_to_is_refused);
    CASE(suite, a_place_of_somebody_else_is_refused);
    CASE(suite, a_place_that_is_none_is_refused_with_its_reason);
    CASE(suite, a_place_without_permission_is_refused_and_later_nothing_is_written);
    CASE(suite, a_file_that_cannot_be_written_whole_is_no_entry);
    CASE(suite, a_lock_file_that_was_replaced_is_noticed);
    CASE(suite, the_default_place_is_made_below_the_state_directory);
    CASE(suite, a_path_may_be_relative_and_end_in_slashes);
    return suite;
}
