/* name.c - words for the public enums. */
#include "client-sdk/include/nonbis.h"

const char *nonbis_version(void)
{
    return NONBIS_VERSION;
}

const char *nonbis_outcome_name(enum nonbis_outcome outcome)
{
    switch (outcome) {
    case NONBIS_COMPLETED:
        return "completed";
    case NONBIS_REJECTED:
        return "rejected";
    case NONBIS_NOT_SENT:
        return "not-sent";
    case NONBIS_NOT_APPLIED:
        return "not-applied";
    case NONBIS_IN_PROGRESS:
        return "in-progress";
    case NONBIS_UNKNOWN:
        return "unknown";
    }
    return "none";
}

const char *nonbis_stop_name(enum nonbis_stop stop)
{
    switch (stop) {
    case NONBIS_STOP_DONE:
        return "done";
    case NONBIS_STOP_ATTEMPTS:
        return "attempts";
    case NONBIS_STOP_DEADLINE:
        return "deadline";
    case NONBIS_STOP_BUDGET:
        return "budget";
    case NONBIS_STOP_CANCELLED:
        return "cancelled";
    case NONBIS_STOP_CALLER:
        return "caller";
    case NONBIS_STOP_RETRY_LATER:
        return "retry-later";
    case NONBIS_STOP_SERVER_SAID_NO:
        return "server-said-no";
    case NONBIS_STOP_NOT_REPLAYABLE:
        return "not-replayable";
    case NONBIS_STOP_KEY_EXPIRED:
        return "key-expired";
    case NONBIS_STOP_LOCAL:
        return "local";
    }
    return "none";
}

const char *nonbis_error_text(int error)
{
    switch (error) {
    case NONBIS_OK:
        return "no error";
    case NONBIS_END:
        return "there is no further entry";
    case NONBIS_ERROR_MISUSE:
        return "an argument is missing or does not exist";
    case NONBIS_ERROR_STATE:
        return "not possible at this moment of the object's life";
    case NONBIS_ERROR_RANGE:
        return "the value is outside of its range";
    case NONBIS_ERROR_KEY:
        return "the text is no key: 1 to 255 bytes of visible ASCII, without a quote in it";
    case NONBIS_ERROR_FIELD:
        return "the header field cannot be set: malformed, or one that the library sets itself";
    case NONBIS_ERROR_URL:
        return "the text is no http or https URL with a host and without a user in it";
    case NONBIS_ERROR_POLICY:
        return "two options of the policy contradict each other";
    case NONBIS_ERROR_NAME:
        return "there is no profile or option of that name";
    case NONBIS_ERROR_NOT_FOUND:
        return "the journal has no such key";
    case NONBIS_ERROR_EXISTS:
        return "the journal has an undecided operation with this key: resume that one";
    case NONBIS_ERROR_LOCKED:
        return "somebody else works on this key";
    case NONBIS_ERROR_LACKS:
        return "fields that the journal does not keep must be set again first";
    case NONBIS_ERROR_MEMORY:
        return "out of memory or descriptors";
    case NONBIS_ERROR_JOURNAL:
        return "the journal cannot be read or written";
    case NONBIS_ERROR_RANDOM:
        return "the system's random source fails";
    case NONBIS_ERROR_TRANSPORT:
        return "libcurl cannot be set up, or is older than 7.80";
    default:
        return "an error that this version does not know";
    }
}
