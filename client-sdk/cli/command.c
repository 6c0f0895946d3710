/* command.c - see command.h. */
#include "client-sdk/cli/command.h"

#include <string.h>

enum { MANY = 1000 };

static const struct command commands[COMMAND_COUNT] = {
    [COMMAND_POST] = { "post", "URL", "send one keyed POST to a certain end, or say that it is not certain", "",
                       "Sends DATA with an Idempotency-Key, again with the same key where that is safe, and ends with "
                       "one of the\n"
                       "exit codes below. The key is printed on stderr before the first byte leaves; the journal keeps "
                       "key and\n"
                       "body, so that `nonbis resume` can go on after a crash. stdout gets the final answer's body and "
                       "nothing\n"
                       "else. A server that is not nonbis shows nothing of its own: say --server keyed if it "
                       "deduplicates.\n",
                       1, 1, post_run },
    [COMMAND_STATUS] = { "status", "KEY", "ask once what the server knows of a key", "",
                         "Where the server is tells --url, else the journal, else the variable NONBIS_URL. One "
                         "question, no\n"
                         "retry. \"Not seen\" is not \"never\": a copy may be under way. Only `nonbis void` makes it "
                         "certain.\n",
                         1, 1, query_status_run },
    [COMMAND_WAIT] = { "wait", "KEY", "ask until it is decided, and print the recorded answer", "",
                       "Sends no execution. Where the server is: as for status.\n", 1, 1, query_wait_run },
    [COMMAND_VOID] = { "void", "KEY", "make sure that it never happens, if it has not happened yet", "",
                       "Exit code 0 says that it was not executed and never will be; 14 that it is too late. Where the "
                       "server\n"
                       "is: as for status.\n",
                       1, 1, query_void_run },
    [COMMAND_RESUME] = { "resume", "[KEY]...", "finish what the journal has undecided, with the same keys", "",
                         "Without a key: everything that is undecided and that no other process works on, in the "
                         "order\n"
                         "of the keys, a line each on stdout, and the exit code of the one that needs most care. With "
                         "one key it answers "
                         "as post does.\n"
                         "Fields with secrets are not stored: give them again with -H or --auth-file.\n",
                         0, MANY, resume_run },
    [COMMAND_JOURNAL] = { "journal", "ls|show KEY|prune", "list, show or prune the journal", "ls show prune",
                          "prune removes decided entries that are older than --older-than (7d), and nothing that is "
                          "undecided\n"
                          "unless --undecided says so, which forgets those keys for ever.\n",
                          1, 2, journal_run },
    [COMMAND_KEY] = { "key", "new|check KEY", "make a key, or check one", "new check",
                      "A new key is a UUID of version 7. check says why a text cannot be a key, and ends with 2.\n", 1,
                      2, key_run },
    [COMMAND_SIM] = { "sim", "", "show what jitter does: so many clients fail at the same moment", "",
                      "Each client fails at 0 s and tries again --retries times. Peak: most retries in one bucket; "
                      "buckets: in\n"
                      "how many of them any came; last: when the last one came.\n",
                      0, 0, sim_run },
    [COMMAND_VERSION] = { "version", "", "print the version", "", "", 0, 0, version_run },
    [COMMAND_COMPLETION] = { "completion", "bash|zsh|fish", "print a completion script for a shell", "bash zsh fish",
                             "bash:  source <(nonbis completion bash)\n"
                             "zsh:   nonbis completion zsh > \"${fpath[1]}/_nonbis\"\n"
                             "fish:  nonbis completion fish > ~/.config/fish/completions/nonbis.fish\n",
                             1, 1, completion_run },
    [COMMAND_HELP] = { "help", "[COMMAND|exit-codes]", "tell all this", "exit-codes", "", 0, 1, help_run },
};

const struct command *command_at(enum command_id id)
{
    return &commands[id];
}

const struct command *command_find(const char *name, enum command_id *id)
{
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            *id = (enum command_id) i;
            return &commands[i];
        }
    }
    return NULL;
}
