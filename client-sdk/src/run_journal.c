/* run_journal.c - see run.h. Without a journal, and for commands without a key, everything here is nothing. */
#include "client-sdk/src/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a record borrows while it is written. */
struct lists {
    struct transport_field *fields;
    const char **unstored;
};

static bool lists_new(const struct nonbis_op *op, struct lists *lists)
{
    lists->fields = calloc(op->field_count + 1, sizeof(*lists->fields));
    lists->unstored = calloc(op->field_count + op->lacks.count + 1, sizeof(*lists->unstored));
    return lists->fields != NULL && lists->unstored != NULL;
}

static void lists_free(struct lists *lists)
{
    free(lists->fields);
    free((void *) lists->unstored);
}

static void record_fill(const struct nonbis_op *op, struct journal_record *record, const struct lists *lists)
{
    *record = (struct journal_record){ .key = op->key,
                                       .method = op->method,
                                       .url = op->url,
                                       .status_url = op->status_url != NULL ? op->status_url : "",
                                       .name = op->name != NULL ? op->name : "",
                                       .fields = lists->fields,
                                       .unstored = lists->unstored,
                                       .body = op->body,
                                       .body_len = op->body_len,
                                       .has_body = op->has_body,
                                       .own_key = op->history.own_key,
                                       .created_wall_ms = op->created_wall_ms,
                                       .outcome = op->outcome,
                                       .stop = op->stop,
                                       .http_status = op->answer.status,
                                       .ended_wall_ms = op->outcome != 0 ? run_wall_ms(op) : 0 };
    for (size_t i = 0; i < op->field_count; i++) {
        if (op->fields[i].stored) {
            lists->fields[record->field_count++] =
                (struct transport_field){ .name = op->fields[i].name, .value = op->fields[i].value };
        } else {
            lists->unstored[record->unstored_count++] = op->fields[i].name;
        }
    }
    for (size_t i = 0; i < op->lacks.count; i++) {
        lists->unstored[record->unstored_count++] = op->lacks.names[i];
    }
}

int run_journal_begin(struct nonbis_op *op)
{
    struct journal *journal = op->client->parts.journal;
    if (journal == NULL || op->entry != NULL || op->key[0] == '\0' || !op->has_body) {
        return NONBIS_OK;
    }
    struct lists lists;
    struct journal_record record;
    int result = NONBIS_ERROR_MEMORY;
    if (lists_new(op, &lists)) {
        record_fill(op, &record, &lists);
        result = journal->create(journal, &record, &op->entry);
    }
    lists_free(&lists);
    if (result != NONBIS_OK) {
        (void) snprintf(op->message, sizeof(op->message), "nothing was sent: %s",
                        result != NONBIS_ERROR_MEMORY ? journal->message(journal) : nonbis_error_text(result));
    }
    return result;
}

int run_journal_sending(struct nonbis_op *op)
{
    struct journal *journal = op->client->parts.journal;
    /* A repeat of what is decided is a question: its entry stays where it is. */
    return op->entry == NULL || op->settled ? NONBIS_OK : journal->mark_sent(journal, op->entry);
}

/* Nothing will ever have to be done about it. What was not sent is decided too: the caller was told so and may start anew,
 * and a later resume must not send it after all. Not so of a command that came out of the journal: whoever began it is gone,
 * and only the journal remembers that it was wanted. */
static bool op_is_decided(const struct nonbis_op *op)
{
    return (op->outcome == NONBIS_NOT_SENT && !op->resumed) || nonbis_op_is_final(op) != 0;
}

static void message_add(struct nonbis_op *op, const char *why)
{
    size_t len = strlen(op->message);
    (void) snprintf(op->message + len, sizeof(op->message) - len, "; the journal could not keep this: %s", why);
}

static int record_write(struct nonbis_op *op, bool decided)
{
    struct journal *journal = op->client->parts.journal;
    struct lists lists;
    struct journal_record record;
    int result = NONBIS_ERROR_MEMORY;
    if (lists_new(op, &lists)) {
        record_fill(op, &record, &lists);
        result = journal->mark_ended(journal, op->entry, &record, decided);
    }
    lists_free(&lists);
    return result;
}

void run_journal_end(struct nonbis_op *op)
{
    struct journal *journal = op->client->parts.journal;
    if (op->entry == NULL) {
        return;
    }
    bool decided = op_is_decided(op);
    int result = op->settled ? NONBIS_OK : record_write(op, decided); /* what was decided once stands as it was told */
    if (result != NONBIS_OK) {
        /* The entry stays undecided: a resume asks the server again, and is told the same. */
        message_add(op, result != NONBIS_ERROR_MEMORY ? journal->message(journal) : nonbis_error_text(result));
    }
    if (decided) {
        journal->close(journal, op->entry);
        op->entry = NULL;
    }
}
