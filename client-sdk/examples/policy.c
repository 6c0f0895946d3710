/* policy.c - shows what a profile says, with changes.
 *
 *     policy PROFILE [NAME=VALUE]... */
#include <nonbis.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Applies "NAME=VALUE". */
static int change(struct nonbis_policy *policy, char *text)
{
    char *value = strchr(text, '=');
    if (value == NULL) {
        return NONBIS_ERROR_NAME;
    }
    *value++ = '\0';
    return nonbis_policy_set_text(policy, text, value);
}

static void show(const struct nonbis_policy *policy)
{
    int option;

    for (option = 1; option < NONBIS_OPTION_END; option++) {
        enum nonbis_option which = (enum nonbis_option) option;
        printf("%s %" PRId64 "\n", nonbis_option_name(which),
               nonbis_policy_get(policy, which));
    }
}

int main(int argc, char **argv)
{
    struct nonbis_policy *policy = NULL;
    struct nonbis_client *client = NULL;
    int i, error;

    if (argc < 2) {
        fprintf(stderr, "usage: policy PROFILE [NAME=VALUE]...\n");
        return 2;
    }
    error = nonbis_policy_new(&policy, argv[1]);
    for (i = 2; i < argc && error == NONBIS_OK; i++) {
        error = change(policy, argv[i]);
    }
    if (error != NONBIS_OK) {
        fprintf(stderr, "%s: %s\n", argv[i - 1],
                nonbis_error_text(error));
        nonbis_policy_free(policy);
        return 2;
    }
    /* Finds contradictions, and keeps a copy. */
    error = nonbis_client_new(&client, policy);
    if (error != NONBIS_OK) {
        fprintf(stderr, "%s\n", nonbis_error_text(error));
    } else {
        show(policy);
    }
    nonbis_client_free(client);
    nonbis_policy_free(policy);
    return error == NONBIS_OK ? 0 : 2;
}
