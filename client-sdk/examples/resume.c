/* resume.c - after a crash: lists the journal, and brings what is not
 * decided to its end, with the same keys.
 *
 *     resume JOURNAL-DIRECTORY */
#include <nonbis.h>

#include <stdio.h>

static int show(const struct nonbis_journal_entry *entry, void *arg)
{
    (void) arg;
    if (entry->fault != NULL) {
        printf("%s unreadable: %s\n", entry->state, entry->fault);
    } else {
        printf("%s %s %s\n", entry->state, entry->method, entry->key);
    }
    return 0;
}

static int resume_all(struct nonbis_client *client)
{
    struct nonbis_op *op = NULL;
    int error, worst = NONBIS_OK;

    while ((error = nonbis_client_resume(client, &op)) == NONBIS_OK) {
        /* Here: set what was not stored again, as Authorization. */
        int refused = nonbis_op_run(op);
        if (refused != NONBIS_OK) {
            /* It stays in the journal; the others go on. */
            printf("%s: %s\n", nonbis_op_key(op),
                   nonbis_op_message(op));
            worst = refused;
        } else {
            printf("%s: %s\n", nonbis_op_key(op),
                   nonbis_outcome_name(nonbis_op_outcome(op)));
        }
        nonbis_op_free(op);
    }
    return error == NONBIS_END ? worst : error;
}

int main(int argc, char **argv)
{
    struct nonbis_client *client = NULL;
    int error;

    if (argc != 2) {
        fprintf(stderr, "usage: resume JOURNAL-DIRECTORY\n");
        return 2;
    }
    error = nonbis_client_new(&client, NULL);
    if (error == NONBIS_OK) {
        error = nonbis_client_use_journal(client, argv[1]);
    }
    if (error == NONBIS_OK &&
        nonbis_journal_each(client, show, NULL) < 0) {
        error = NONBIS_ERROR_JOURNAL;
    }
    if (error == NONBIS_OK) {
        error = resume_all(client);
    }
    if (error == NONBIS_OK &&
        nonbis_journal_prune(client, (int64_t) 7 * 24 * 3600 * 1000,
                             0) < 0) {
        error = NONBIS_ERROR_JOURNAL;
    }
    if (error != NONBIS_OK) {
        fprintf(stderr, "%s: %s\n", nonbis_error_text(error),
                client != NULL ? nonbis_client_message(client) : "");
    }
    nonbis_client_free(client);
    return error == NONBIS_OK ? 0 : 1;
}
