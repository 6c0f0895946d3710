/* finding.c - the words for findings: names for history, kinds for events. See classify.h. */
#include "client-sdk/src/classify.h"

static const char *const finding_names[FINDING_COUNT] = {
    [FINDING_CANCELLED] = "cancelled",
    [FINDING_HELD_BACK] = "held-back",
    [FINDING_LOCAL] = "local",
    [FINDING_OFFLINE] = "offline",
    [FINDING_NOT_SENT] = "not-sent",
    [FINDING_CANCELLED_SENT] = "cancelled-sent",
    [FINDING_RESEND_BLOCKED] = "resend-blocked",
    [FINDING_LOST] = "lost",
    [FINDING_CUT] = "cut",
    [FINDING_REPLAY_CUT] = "replay-cut",
    [FINDING_EXECUTED] = "executed",
    [FINDING_REPLAYED] = "replayed",
    [FINDING_UNRECORDED] = "unrecorded",
    [FINDING_NOT_EXECUTED] = "not-executed",
    [FINDING_DECLINED] = "declined",
    [FINDING_SAID_UNKNOWN] = "unknown",
    [FINDING_RUNNING] = "in-progress",
    [FINDING_UNAVAILABLE] = "unavailable",
    [FINDING_REFUSED] = "refused",
    [FINDING_KEY_REUSED] = "key-reused",
    [FINDING_KEY_FOREIGN] = "key-of-other-credentials",
    [FINDING_KEY_EXPIRED_EXECUTED] = "key-expired-executed",
    [FINDING_KEY_EXPIRED_UNKNOWN] = "key-expired-unknown",
    [FINDING_KEY_VOIDED] = "key-voided",
    [FINDING_SUCCESS] = "success",
    [FINDING_THROTTLED] = "throttled",
    [FINDING_BUSY] = "busy",
    [FINDING_FAULT] = "fault",
    [FINDING_CONFLICT] = "conflict",
    [FINDING_TURNED_AWAY] = "turned-away",
    [FINDING_FINAL] = "final",
    [FINDING_TOLD_COMPLETED] = "completed",
    [FINDING_TOLD_ANSWER] = "answer",
    [FINDING_TOLD_RUNNING] = "in_progress",
    [FINDING_TOLD_UNKNOWN] = "unknown",
    [FINDING_TOLD_RELEASED] = "released",
    [FINDING_TOLD_VOIDED] = "voided",
    [FINDING_TOLD_EXPIRED_EXECUTED] = "expired",
    [FINDING_TOLD_EXPIRED_UNKNOWN] = "expired",
    [FINDING_TOLD_NOT_SEEN] = "not-seen",
    [FINDING_TOLD_NOT_SEEN_DOUBTFUL] = "not-seen",
    [FINDING_TOLD_FORGOTTEN] = "forgotten",
    [FINDING_TOLD_NO_RESOURCE] = "no-status-resource",
    [FINDING_TOLD_TURNED_AWAY] = "turned-away",
    [FINDING_TOLD_NOTHING] = "no-answer",
    [FINDING_TOLD_PROTECTED] = "route-protected",
    [FINDING_TOLD_UNPROTECTED] = "route-not-protected",
    [FINDING_TOLD_NO_ROUTE] = "route-not-told",
};

const char *finding_name(enum finding finding)
{
    return (unsigned) finding < FINDING_COUNT ? finding_names[finding] : "";
}

static const char *kind_of_status(int status)
{
    switch (status) {
    case 400:
    case 422:
        return "validation";
    case 401:
    case 407:
        return "authn";
    case 403:
        return "authz";
    case 408:
        return "timeout";
    case 409:
        return "concurrency";
    case 429:
        return "rate-limit";
    default:
        return status >= 400 ? "http" : "";
    }
}

const char *reading_kind(const struct reading *reading)
{
    switch (reading->finding) {
    case FINDING_CANCELLED:
    case FINDING_CANCELLED_SENT:
    case FINDING_HELD_BACK:
        return "abort";
    case FINDING_LOCAL:
        return "local";
    case FINDING_OFFLINE:
        return "offline";
    case FINDING_NOT_SENT:
    case FINDING_RESEND_BLOCKED:
    case FINDING_LOST:
    case FINDING_CUT:
    case FINDING_REPLAY_CUT:
        return reading->timed_out ? "timeout" : reading->garbled ? "parse" : "network";
    case FINDING_RUNNING:
        return "concurrency";
    case FINDING_REFUSED:
    case FINDING_KEY_REUSED:
    case FINDING_KEY_FOREIGN:
    case FINDING_KEY_EXPIRED_EXECUTED:
    case FINDING_KEY_EXPIRED_UNKNOWN:
    case FINDING_KEY_VOIDED:
        return "dedupe";
    default:
        return reading->finding >= FINDING_TOLD_COMPLETED ? finding_name(reading->finding)
                                                          : kind_of_status(reading->http_status);
    }
}
