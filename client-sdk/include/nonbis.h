/* nonbis.h - libnonbis: sends one write to the end, or says honestly that the end is not known.
 *
 *     struct nonbis_client *client = NULL;
 *     struct nonbis_op *op = NULL;
 *     if (nonbis_client_new(&client, NULL) == NONBIS_OK &&
 *         nonbis_op_new(&op, client, "http://127.0.0.1:8620/orders", body, strlen(body)) == NONBIS_OK &&
 *         nonbis_op_run(op) == NONBIS_OK && nonbis_op_outcome(op) == NONBIS_COMPLETED) {
 *         printf("%d\n", nonbis_op_http_status(op));
 *     }
 *     nonbis_op_free(op);
 *     nonbis_client_free(client);
 *
 * An operation (struct nonbis_op) is one intent of one user: it has one Idempotency-Key, made once, and its own copy of
 * the body. Whatever is sent again carries the same key. A client (struct nonbis_client) is what operations share: policy,
 * retry budget, connections, journal, counters. How it ends is told by two values that are never mixed: the outcome (what
 * happened to the command) and the stop reason (why we stopped). The wire contract is docs/contract.md; a rule's section
 * is named where it is used.
 *
 * Threads: a client may be used by many threads. An operation belongs to one thread at a time; only nonbis_op_cancel and
 * nonbis_op_retry_now may be called from any thread, and from a signal handler, while the operation is alive. There is no
 * global state of ours; libcurl's is initialised by the first client. SIGPIPE: none is raised by this library.
 *
 * Errors: functions return NONBIS_OK or a negative enum nonbis_error; -1 to -99 is a mistake of the caller, -100 and below
 * the surroundings (memory, disk, random source). nonbis_op_message tells a sentence. Out-parameters are set only on
 * NONBIS_OK unless said otherwise.
 *
 * Ownership: `nonbis_X_new` gives what `nonbis_X_free` takes (NULL is fine). Texts and bytes that are passed in are copied.
 * Pointers that come out belong to the object they were asked of; they are valid until the next run, status, wait or void
 * of that operation, or its free. Nobody but the caller frees what he got from `new`.
 *
 * Compatibility: opaque types; structs that the library fills may grow at their end, and are never made by the caller but
 * through a size; numbers of enums are never given twice. Times are milliseconds, as int64_t; "wall" is since 1970, UTC. */
#ifndef NONBIS_H
#define NONBIS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define NONBIS_API __attribute__((visibility("default")))
#define NONBIS_MUST_CHECK __attribute__((warn_unused_result))
#else
#define NONBIS_API
#define NONBIS_MUST_CHECK
#endif

struct nonbis_policy;
struct nonbis_client;
struct nonbis_op;

/* ---- results ------------------------------------------------------------------------------------------------------ */

enum nonbis_error {
    NONBIS_OK = 0,
    NONBIS_END = 1, /* nonbis_client_resume: nothing is left */

    NONBIS_ERROR_MISUSE = -1,    /* a NULL where none may be, an enum that does not exist */
    NONBIS_ERROR_STATE = -2,     /* not now: the key of an operation that has run, a second run at the same time */
    NONBIS_ERROR_RANGE = -3,     /* a value outside its range; the message tells the range */
    NONBIS_ERROR_KEY = -4,       /* not a key (contract 2.3): 1 to 255 bytes of visible ASCII, no quote in a bare one */
    NONBIS_ERROR_FIELD = -5,     /* not a header field that may be set: bad name, control byte, or a field of ours */
    NONBIS_ERROR_URL = -6,       /* not an http:// or https:// URL with a host, or one with user:password in it */
    NONBIS_ERROR_POLICY = -7,    /* the options contradict each other, e.g. min-attempt over deadline */
    NONBIS_ERROR_NAME = -8,      /* no profile, or no option, of that name */
    NONBIS_ERROR_NOT_FOUND = -9, /* the journal has no such key */
    NONBIS_ERROR_EXISTS = -10,   /* the journal has this key already, undecided or completed: open it and run it on
                                      (nonbis_op_open), or use a new key if it is another request */
    NONBIS_ERROR_LOCKED = -11,   /* another process, or another operation of this one, works on this key */
    NONBIS_ERROR_LACKS = -12,    /* fields that the journal does not keep must be set again first: nonbis_op_lacks */

    NONBIS_ERROR_MEMORY = -100,
    NONBIS_ERROR_JOURNAL = -101,   /* the journal cannot be read or written: nothing was sent */
    NONBIS_ERROR_RANDOM = -102,    /* the system's random source fails: no key can be made */
    NONBIS_ERROR_TRANSPORT = -103, /* libcurl cannot be set up, or is older than 7.80 (no pre-request hook) */
};

/* What happened to the command, as far as this operation's attempts go. 0 before the first run. */
enum nonbis_outcome {
    NONBIS_COMPLETED = 1, /* the answer is final, whatever its status: nonbis_op_http_status */
    NONBIS_REJECTED = 2,  /* the deduplicating layer refused it and the handler was not asked: needs a repair, and a new
                               operation (key used for another payload, key malformed, body too large ...) */
    NONBIS_NOT_SENT = 3,  /* no byte of any attempt left this process: anything may be done */
    NONBIS_NOT_APPLIED =
        4, /* sent, but the server tells that it did not take effect: run it again with the same key, or
                               void it first and start anew */
    NONBIS_IN_PROGRESS = 5, /* the server has it and still executes it: run or wait later, same key only */
    NONBIS_UNKNOWN = 6      /* it may have been executed. Only the same key, a status query or a human may go on */
};

/* Why we stopped. 0 before the first run. */
enum nonbis_stop {
    NONBIS_STOP_DONE = 1,        /* nothing is left to do */
    NONBIS_STOP_ATTEMPTS = 2,    /* the attempts that the policy allows are used up */
    NONBIS_STOP_DEADLINE = 3,    /* no further attempt can end before the deadline */
    NONBIS_STOP_BUDGET = 4,      /* the client's retry budget is empty */
    NONBIS_STOP_CANCELLED = 5,   /* nonbis_op_cancel */
    NONBIS_STOP_CALLER = 6,      /* the event callback said stop */
    NONBIS_STOP_RETRY_LATER = 7, /* the server asks for more patience than the limits allow: nonbis_op_retry_after_s */
    NONBIS_STOP_SERVER_SAID_NO = 8, /* the server says that the same request will not help */
    NONBIS_STOP_NOT_REPLAYABLE = 9, /* sending again is not safe (no key; a server that does not deduplicate, or has not
                                       shown that it does) or not possible (the body is not there) */
    NONBIS_STOP_KEY_EXPIRED = 10,   /* the key is older than the server remembers: reconcile by hand */
    NONBIS_STOP_LOCAL = 11          /* something here: nonbis_op_message, nonbis_op_local_error */
};

/* Words for people and machines: "completed", "retry-later", and a sentence for an error. Never NULL. Any thread. */
NONBIS_API const char *nonbis_outcome_name(enum nonbis_outcome outcome);
NONBIS_API const char *nonbis_stop_name(enum nonbis_stop stop);
NONBIS_API const char *nonbis_error_text(int error);

/* "0.1.0". Any thread. */
NONBIS_API const char *nonbis_version(void);

/* ---- keys --------------------------------------------------------------------------------------------------------- */

enum { NONBIS_KEY_SIZE = 37 }; /* of a key that we make, with its NUL */

/* A fresh key: UUID version 7 (RFC 9562), 48 bits of wall time and 74 of the system's random source.
 * NONBIS_ERROR_RANDOM when that fails; `key` is then empty. Any thread. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_key_make(char key[NONBIS_KEY_SIZE]);

/* Whether a text can be a key: NONBIS_OK or NONBIS_ERROR_KEY; `*why` (may be NULL) is then a sentence. A quoted text is
 * read as a structured-field String, as the server does (contract 2.2). Any thread. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_key_check(const char *text, const char **why);

/* ---- policy ------------------------------------------------------------------------------------------------------- */

/* The jitter of waits. `window` is min(cap, base * 2^n), n = 0 for the first retry. */
enum nonbis_jitter {
    NONBIS_JITTER_FULL = 1,        /* uniform in [0, window): the default */
    NONBIS_JITTER_EQUAL = 2,       /* half of the window, and uniform in the other half */
    NONBIS_JITTER_DECORRELATED = 3 /* min(cap, base + uniform in [0, 3 * previous - base)) */
};

/* What the server does with Idempotency-Key. The header alone makes no endpoint safe: somebody must have said, or the server
 * shown, that it deduplicates on this very route; else what may have been executed is never sent again. It has shown it by a
 * word of Idempotency-Status in an answer of this route, by its record of a key that we made, or by saying on the way of the
 * request itself that it protects it (contract 7.7). "Not seen" alone shows nothing: that is also said of a key that went to a
 * route that is not protected (contract 1.7), or past the server. */
enum nonbis_server {
    NONBIS_SERVER_DETECT = 1, /* find out */
    NONBIS_SERVER_NONBIS = 2, /* it keeps docs/contract.md: status and void can be asked */
    NONBIS_SERVER_KEYED = 3,  /* it deduplicates by key, but knows no status resource */
    NONBIS_SERVER_PLAIN = 4   /* it does not deduplicate: one sending */
};

enum nonbis_option {
    NONBIS_ATTEMPTS = 1,          /* "attempts": with the first; 1 means one sending, the key is there all the same */
    NONBIS_BASE_MS = 2,           /* "base-delay": window of the first wait */
    NONBIS_CAP_MS = 3,            /* "max-delay": largest window */
    NONBIS_JITTER = 4,            /* "jitter": enum nonbis_jitter; as text full, equal, decorrelated */
    NONBIS_ATTEMPT_MS = 5,        /* "attempt-timeout": of one attempt, with connecting; at most what is left */
    NONBIS_CONNECT_MS = 6,        /* "connect-timeout": name, TCP and TLS of one attempt */
    NONBIS_DEADLINE_MS = 7,       /* "deadline": of a run, over attempts, questions and waits */
    NONBIS_MIN_ATTEMPT_MS = 8,    /* "min-attempt": no wait is begun that leaves less than this */
    NONBIS_SERVER_WAIT_MS = 9,    /* "max-server-wait": a longer Retry-After stops with RETRY_LATER */
    NONBIS_BUDGET_MILLI = 10,     /* "budget": size of the bucket in thousandths of a token; 0: no budget */
    NONBIS_DEPOSIT_MILLI = 11,    /* "budget-deposit": what a first attempt puts in; 100 means 10 % extra load */
    NONBIS_COST_MILLI = 12,       /* "budget-cost": what a retry takes out */
    NONBIS_BREAKER_FAILURES = 13, /* "breaker-failures": in a row, that open the circuit; 0: none. Not for payments */
    NONBIS_BREAKER_MS = 14,       /* "breaker-open": for how long */
    NONBIS_SERVER = 15,           /* "server": enum nonbis_server; as text detect, nonbis, keyed, plain */
    NONBIS_STATUS_MS = 16,        /* "status-timeout": of one question for the status */
    NONBIS_POLL_MS = 17,          /* "poll": window of the first wait for a running command; doubles */
    NONBIS_POLL_CAP_MS = 18,      /* "max-poll" */
    NONBIS_HOLD_MS = 19,          /* "hold": a status query asks to be held so long (Prefer: wait); 0: not */
    NONBIS_RETENTION_MS = 20,     /* "retention": how long the server surely remembers a key, where it does not say */
    NONBIS_RESPONSE_MAX =
        21,                 /* "response-max": bytes of an answer that are kept; what is over it is read and dropped */
    NONBIS_KEY_QUOTED = 22, /* "key-quoted": 1 sends Idempotency-Key: "k" as the IETF draft does, 0 bare */
    NONBIS_SEED = 23,       /* "seed": the same chances in waits again, for tests; 0: the system's. Never of keys */
    NONBIS_OPTION_END = 24
};

/* A policy with a profile's values; durations in seconds:
 *
 *   profile      attempts base cap attempt deadline server-wait budget
 *   interactive      2    0.5   2     5       10        10      3       somebody waits
 *   standard         4    0.5   8    10       30        60     10       the default
 *   batch            6    1    30    20      300       120     10       nobody waits
 *   read             3    0.3   3     8        8         8     20       foreground read (GET, HEAD)
 *   background       2    1    30    15       15        15     20       background read
 *   unkeyed          1    -     -     8        8         -      3       a write without a key: one attempt
 *   keyed            2    0.5   2    10       10        10      3       foreground write with a key
 *
 * and "reconnect", which is only a jitter preset for long-lived connections: decorrelated, base 0.5, cap 30, otherwise as
 * batch. NULL means standard. NONBIS_ERROR_NAME for other names. Any thread; the policy then belongs to one. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_policy_new(struct nonbis_policy **out, const char *profile);
NONBIS_API void nonbis_policy_free(struct nonbis_policy *policy);

/* The names of the profiles; NULL past the end. Any thread. */
NONBIS_API const char *nonbis_profile_name(unsigned index);

/* One option. NONBIS_ERROR_RANGE changes nothing. Contradictions between options are found by nonbis_policy_check and
 * nonbis_client_new. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_policy_set(struct nonbis_policy *policy, enum nonbis_option option,
                                                   int64_t value);
/* The value; -1 when there is no such option. */
NONBIS_API int64_t nonbis_policy_get(const struct nonbis_policy *policy, enum nonbis_option option);

/* Whether its options go together: NONBIS_OK or NONBIS_ERROR_POLICY; `*why` (may be NULL) is then a sentence that names
 * them by their option names. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_policy_check(const struct nonbis_policy *policy, const char **why);

/* The same by name and text, for command lines and files: "attempts", "4"; durations "500ms", "10s", "2m", "1h" (a bare
 * number is milliseconds); sizes "16KiB", "1MiB"; tokens "3" or "0.1". NONBIS_ERROR_NAME, NONBIS_ERROR_RANGE. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_policy_set_text(struct nonbis_policy *policy, const char *name,
                                                        const char *text);
/* An option's name, and a line of help with its range; NULL when there is no such option. Any thread. */
NONBIS_API const char *nonbis_option_name(enum nonbis_option option);
NONBIS_API const char *nonbis_option_help(enum nonbis_option option);

/* ---- client ------------------------------------------------------------------------------------------------------- */

/* A client with a copy of the policy (NULL: standard). NONBIS_ERROR_POLICY when its options contradict each other;
 * NONBIS_ERROR_TRANSPORT, NONBIS_ERROR_MEMORY. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_client_new(struct nonbis_client **out, const struct nonbis_policy *policy);

/* No operation of it may exist any more. */
NONBIS_API void nonbis_client_free(struct nonbis_client *client);

/* Texts that the transport needs. Before the first operation. */
enum nonbis_client_text {
    NONBIS_CLIENT_CA_FILE = 1,     /* certificates to trust, PEM; default: the system's */
    NONBIS_CLIENT_CERT_FILE = 2,   /* own certificate, PEM */
    NONBIS_CLIENT_KEY_FILE = 3,    /* its private key, PEM */
    NONBIS_CLIENT_UNIX_SOCKET = 4, /* connect to this path instead of the URL's host */
    NONBIS_CLIENT_PROXY = 5,       /* URL of a proxy; default none: variables of the environment are not obeyed, since
                                     whatever stands between may send again */
    NONBIS_CLIENT_USER_AGENT = 6   /* default "libnonbis/VERSION" */
};
NONBIS_API NONBIS_MUST_CHECK int nonbis_client_set_text(struct nonbis_client *client, enum nonbis_client_text which,
                                                        const char *text);

/* Keeps operations in a directory so that a crash does not lose their keys; made with mode 0700 when missing. A path of
 * NULL: $XDG_STATE_HOME/nonbis/journal, else ~/.local/state/nonbis/journal. Several processes may use one directory.
 * Before the first operation. NONBIS_ERROR_JOURNAL. Without a journal nothing is written anywhere.
 *
 * With a journal an operation is written durably before its first byte can leave, and marked as sent inside the
 * connection's pre-request hook. What cannot be written is not sent. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_client_use_journal(struct nonbis_client *client, const char *path);

/* A sentence about the last error of a call on this client in this thread's order of calls; "" when there is none. For
 * setting up only: while several threads use a client, ask the operation. */
NONBIS_API const char *nonbis_client_message(const struct nonbis_client *client);

/* ---- events ------------------------------------------------------------------------------------------------------- */

enum nonbis_event_kind {
    NONBIS_EVENT_ATTEMPT = 1,  /* an attempt begins */
    NONBIS_EVENT_SENT = 2,     /* connected; the first byte leaves as soon as the callback returns 0 */
    NONBIS_EVENT_ANSWER = 3,   /* an attempt ended: error_kind, http_status, bytes_sent */
    NONBIS_EVENT_DECISION = 4, /* what comes next: decision, delay_ms */
    NONBIS_EVENT_ASK = 5,      /* a status, response or void question begins */
    NONBIS_EVENT_TOLD = 6,     /* its answer: error_kind is the state that was told */
    NONBIS_EVENT_OUTCOME = 7   /* the run ends: outcome, stop */
};

/* What comes next, behind the wait or at once. */
enum nonbis_next {
    NONBIS_NEXT_ATTEMPT = 1, /* the command is sent again */
    NONBIS_NEXT_ASK = 2      /* a question: status, response or void */
};

/* Made by the library, valid during the callback. Never holds bodies, credentials, keys or query strings. */
struct nonbis_event {
    enum nonbis_event_kind kind;
    const struct nonbis_op *op; /* only getters may be called on it, and cancel */
    const char *name;           /* nonbis_op_set_name, else "METHOD endpoint" */
    const char *endpoint;       /* scheme://host[:port]/path */
    const char *method;
    unsigned attempt; /* 1 is the first; 0 when nothing was attempted yet */
    unsigned attempts_max;
    int keyed;               /* 1: the request carries a key */
    int64_t delay_ms;        /* DECISION: the wait that begins, else 0 */
    int64_t server_delay_ms; /* the part of it that the server asked for; -1: it did not ask */
    const char *error_kind;  /* "" or abort, timeout, network, offline, authn, authz, validation, concurrency,
                                   rate-limit, http, parse, dedupe, local; for TOLD a state */
    int http_status;         /* 0: none */
    const char *decision;    /* "" or the reason word: nonbis_op_reason */
    int64_t deadline_left_ms;
    int64_t tokens_left_milli;   /* -1: no budget */
    int64_t elapsed_ms;          /* since the run began; for ANSWER and TOLD: of the exchange */
    uint64_t bytes_sent;         /* handed to the system; 0 proves that nothing was sent */
    enum nonbis_outcome outcome; /* as it would be if we stopped now */
    enum nonbis_stop stop;       /* OUTCOME only, else 0 */
    enum nonbis_next next;       /* DECISION only, else 0 */
};

/* Called on the thread that runs the operation, without a lock held. Not 0 stops the run with NONBIS_STOP_CALLER; from SENT
 * nothing is then sent. Before the first operation. NULL turns it off. */
NONBIS_API void nonbis_client_on_event(struct nonbis_client *client,
                                       int (*callback)(const struct nonbis_event *event, void *arg), void *arg);

/* ---- counters ----------------------------------------------------------------------------------------------------- */

enum { NONBIS_DELAY_BUCKETS = 8 }; /* below 100 ms, 250 ms, 500 ms, 1 s, 2 s, 5 s, 10 s, and above */

/* Of all operations of a client since it was made. */
struct nonbis_stats {
    uint64_t runs, attempts, retries; /* attempts = first attempts + retries */
    uint64_t outcomes[7];             /* by enum nonbis_outcome; [0] is not used */
    uint64_t stops[12];               /* by enum nonbis_stop; [0] is not used */
    uint64_t completed_after_retry;   /* runs with a retry that ended COMPLETED */
    uint64_t failed_after_retry;      /* runs with a retry that ended otherwise */
    uint64_t ambiguous;               /* attempts after which nobody could know */
    uint64_t ambiguous_resolved;      /* runs in which that was cleared up */
    uint64_t not_sent;                /* attempts of which no byte left */
    uint64_t resends_blocked;         /* times that libcurl wanted to send again by itself and was stopped */
    uint64_t replays;                 /* answers that were recorded ones: a duplicate that did not happen */
    uint64_t rate_limited, timeouts;  /* attempts */
    uint64_t status_asked;            /* questions: status, response, void */
    uint64_t retry_on[6];             /* what made us retry: 408, 425, 429, 503, other 5xx, no answer */
    uint64_t delays[NONBIS_DELAY_BUCKETS];
    uint64_t wait_ms, elapsed_ms; /* in waits; in all of the runs */
    int64_t tokens_milli;         /* now; -1: no budget */
};

/* A snapshot; each number is right by itself. `size` is sizeof *stats as the caller knows it. Any thread. */
NONBIS_API void nonbis_client_stats(const struct nonbis_client *client, struct nonbis_stats *stats, size_t size);

/* ---- operations --------------------------------------------------------------------------------------------------- */

/* A POST of these bytes (copied; NULL with 0 is no body), with a new key. NONBIS_ERROR_URL, NONBIS_ERROR_RANDOM. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_op_new(struct nonbis_op **out, struct nonbis_client *client, const char *url,
                                               const void *body, size_t body_len);

/* An operation of which only the key is known: it can be asked for, waited for and voided, never sent. `url` is any URL of
 * the server; its scheme, host and port count. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_op_new_for_key(struct nonbis_op **out, struct nonbis_client *client,
                                                       const char *url, const char *key);

/* Not while it runs. */
NONBIS_API void nonbis_op_free(struct nonbis_op *op);

/* The caller's key instead of the one that was made; NULL: no key, and so exactly one attempt. Quoted or bare; it is kept
 * unquoted. Before the first run: NONBIS_ERROR_STATE, NONBIS_ERROR_KEY. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_op_set_key(struct nonbis_op *op, const char *key);

/* Default POST. GET, HEAD, OPTIONS, PUT and DELETE may be repeated without a key; GET and HEAD are sent without the body. Before
 * the first run. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_op_set_method(struct nonbis_op *op, const char *method);

enum nonbis_header_flags {
    NONBIS_HEADER_STORED =
        1 /* may be written to the journal; else only its name is, and it must be set again before a resumed run.
             Content-Type, Content-Encoding and Accept are stored anyhow. Never for secrets */
};

/* A request field; a second call with the same name replaces the first. Refused (NONBIS_ERROR_FIELD): Idempotency-Key,
 * Host, Content-Length, Transfer-Encoding, Connection, Expect, Prefer; bad names; control bytes. A changed Authorization or
 * X-API-Key after the first sending is allowed, and remembered: the server may then no longer know us (contract 3.4). */
NONBIS_API NONBIS_MUST_CHECK int nonbis_op_set_header(struct nonbis_op *op, const char *name, const char *value,
                                                      unsigned flags);

/* A word for events, e.g. "charge-card"; not sent. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_op_set_name(struct nonbis_op *op, const char *name);

/* Where the server's own resources are, when not at the origin of the URL: "https://host/prefix", to which
 * "/_nonbis/v1/..." is appended. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_op_set_status_url(struct nonbis_op *op, const char *base_url);

/* Sends it, and goes on until it is decided, a limit is met, or somebody cancels. Blocks. NONBIS_OK means that there is an
 * outcome; a negative result that this call has sent nothing (and the outcome is as it was). May be called again while the
 * command is not decided: same key, fresh attempts and deadline. NONBIS_ERROR_LACKS: without its fields it would be another
 * request, and its key then another's. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_op_run(struct nonbis_op *op);

/* As run, but only asks: polls until the command is decided, and fetches its answer. Never sends the command, and so can
 * tell nothing of a server that knows no status resource (reason no-status-resource): there only a run can. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_op_wait(struct nonbis_op *op);

/* Makes "never" of "not yet" (contract 8.1). Afterwards NOT_APPLIED with nonbis_op_is_final says that it has not been and
 * will not be executed; COMPLETED, IN_PROGRESS or UNKNOWN that it is too late. Of what was sent the status is asked first: a
 * key from before the server's memory is not voided (stop KEY_EXPIRED), since it may have been executed and forgotten. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_op_void(struct nonbis_op *op);

/* What the server tells of a command (contract 7.2). Texts are "" and times 0 where it tells nothing. */
struct nonbis_status {
    int answered;           /* 0: no usable answer; nonbis_op_message says why. All the rest is then empty */
    int seen;               /* 0: the server knows no such command for this caller: not seen is not never */
    const char *state;      /* in_progress, completed, unknown, released, expired, voided; "" when not seen */
    const char *executed;   /* no, yes, unknown */
    const char *id, *cause; /* cause of unknown */
    const char *request_method, *request_target;
    int64_t executions, replays;
    int64_t created_ms, completed_ms, expires_ms; /* wall, as the server tells them */
    int64_t window_start_ms;                      /* when not seen: since then every key is remembered */
    int64_t retry_after_ms;                       /* -1: not told */
    int response_status;                          /* 0: no answer recorded */
    int64_t response_length;
    int response_kept, resolved;
};

/* One question, no retry. `*status` belongs to the operation. NONBIS_OK also when the server did not answer. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_op_status(struct nonbis_op *op, const struct nonbis_status **status);

/* Ends a run, wait or void as soon as it can be: in waits and transfers, with looking up the name, within 50 ms. The one
 * exception is the first TLS connection of a session, which reads the certificates to trust: up to 100 ms. The outcome is read as always: after sending it is seldom NOT_SENT. Lasts: a cancelled
 * operation does not run again until nonbis_op_uncancel. Any thread, and signal handlers. */
NONBIS_API void nonbis_op_cancel(struct nonbis_op *op);
NONBIS_API void nonbis_op_uncancel(struct nonbis_op *op);

/* Ends the present wait early, but never earlier than the server asked for. Any thread, and signal handlers. */
NONBIS_API void nonbis_op_retry_now(struct nonbis_op *op);

/* ---- what became of it: getters of one operation ------------------------------------------------------------------ */

NONBIS_API enum nonbis_outcome nonbis_op_outcome(const struct nonbis_op *op);
NONBIS_API enum nonbis_stop nonbis_op_stop(const struct nonbis_op *op);

/* 1: the outcome cannot change any more (COMPLETED with its answer, REJECTED, voided). */
NONBIS_API int nonbis_op_is_final(const struct nonbis_op *op);

/* The word of the last decision: completed, max-attempts-reached, non-retryable-error:KIND, operation-not-retry-safe,
 * body-not-replayable, deadline-exceeded, server-delay, backoff-jitter, server-rate-limit, server-wait-too-long,
 * retry-budget-exhausted, circuit-open, offline, outcome-check, command-in-progress, command-completed, not-seen,
 * key-expired, refused, outcome-unknown, no-status-resource, voided, cancelled, stopped-by-caller, local-error. */
NONBIS_API const char *nonbis_op_reason(const struct nonbis_op *op);

/* A sentence: what was tried, on what, why it ended, what may be done now. Never NULL. */
NONBIS_API const char *nonbis_op_message(const struct nonbis_op *op);

NONBIS_API int nonbis_op_local_error(const struct nonbis_op *op);       /* STOP_LOCAL: enum nonbis_error, else 0 */
NONBIS_API int64_t nonbis_op_retry_after_s(const struct nonbis_op *op); /* RETRY_LATER: seconds from now, else -1 */
NONBIS_API int64_t nonbis_op_deadline_left_ms(const struct nonbis_op *op);

/* Unquoted, "" when it has none. One with a quote in it is no bare key: to be set again it has to be quoted (contract 2.2). */
NONBIS_API const char *nonbis_op_key(const struct nonbis_op *op);
NONBIS_API const char *nonbis_op_url(const struct nonbis_op *op);
NONBIS_API const char *nonbis_op_method(const struct nonbis_op *op);

/* The request: its body (NULL and 0 when only the key is known), and a field that was set, by name; NULL when it is not
 * there. So whoever opens an operation of the journal can tell whether it is the request that he means. */
NONBIS_API const void *nonbis_op_request_body(const struct nonbis_op *op, size_t *len);
NONBIS_API const char *nonbis_op_request_field(const struct nonbis_op *op, const char *name);

/* The last answer, also when it was not the final one: 0, NULL and 0 when there is none. */
NONBIS_API int nonbis_op_http_status(const struct nonbis_op *op);
NONBIS_API const void *nonbis_op_body(const struct nonbis_op *op, size_t *len);
NONBIS_API int nonbis_op_body_is_whole(const struct nonbis_op *op);
/* A response field by name, case does not matter: its first line; NULL when it is not there. */
NONBIS_API const char *nonbis_op_field(const struct nonbis_op *op, const char *name);
/* The fields in their order: 1 while there is an index-th one. */
NONBIS_API int nonbis_op_field_at(const struct nonbis_op *op, size_t index, const char **name, const char **value);

enum nonbis_mark {
    NONBIS_MARK_REPLAYED = 1,    /* the answer is the recorded one */
    NONBIS_MARK_UNRECORDED = 2,  /* warning: executed, but the server could not record it (contract 6.17) */
    NONBIS_MARK_IGNORED = 4,     /* warning: the route is not protected and the key had no effect (contract 1.7) */
    NONBIS_MARK_BODY_LOST = 8,   /* executed, but the body of the answer is kept no more */
    NONBIS_MARK_VOIDED = 16,     /* the key is voided */
    NONBIS_MARK_CREDENTIALS = 32 /* refused because the key belongs to other credentials */
};
NONBIS_API unsigned nonbis_op_marks(const struct nonbis_op *op); /* of enum nonbis_mark */

/* One attempt of the past. */
struct nonbis_attempt {
    unsigned number;        /* from 1, over all runs of this operation in this process */
    const char *result;     /* our class of it, e.g. "not-sent", "lost", "executed", "throttled" */
    const char *error_kind; /* as in events */
    int sent;               /* 1: bytes may have left */
    int http_status;
    int transport_code; /* CURLcode */
    uint64_t bytes_sent;
    int64_t elapsed_ms;       /* of the attempt */
    int64_t delay_ms;         /* the wait before it */
    const char *delay_reason; /* and its reason word, "" for the first */
    int64_t started_wall_ms;
};

/* Attempts are kept for as long as the operation lives, at most 1000. NULL past the end. */
NONBIS_API unsigned nonbis_op_attempts(const struct nonbis_op *op);
NONBIS_API const struct nonbis_attempt *nonbis_op_attempt(const struct nonbis_op *op, unsigned index);

/* ---- journal ------------------------------------------------------------------------------------------------------ */

/* The next operation of the journal that is not decided and that nobody works on, in the order of the keys, which is that of their
 * age where the library made them; each is given once per client. Set the fields that it lacks, then run, wait or void it, then
 * free it. NONBIS_END when there is none left. What ends as NOT_SENT stays in the journal, since nobody else remembers it; void it
 * to give it up. An entry that cannot be read is NONBIS_ERROR_JOURNAL, once, behind all the others: a further call goes on. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_client_resume(struct nonbis_client *client, struct nonbis_op **out);

/* The journal's operation with this key, decided or not. NONBIS_ERROR_NOT_FOUND, NONBIS_ERROR_LOCKED. */
NONBIS_API NONBIS_MUST_CHECK int nonbis_op_open(struct nonbis_op **out, struct nonbis_client *client, const char *key);

/* The names of the fields that it was sent with, that the journal does not keep, and that were not set again since; NULL past
 * the end. While there is one the operation does not run (NONBIS_ERROR_LACKS); an empty value is one, too. */
NONBIS_API const char *nonbis_op_lacks(const struct nonbis_op *op, unsigned index);

/* One line of the journal, for lists. */
struct nonbis_journal_entry {
    const char *state; /* new: not sent; sent: perhaps sent; done: decided */
    const char *key, *method, *url;
    size_t body_len;
    int64_t created_wall_ms, changed_wall_ms;
    enum nonbis_outcome outcome; /* of the last run, 0 when there was none or it crashed */
    enum nonbis_stop stop;
    int http_status;
    int locked;        /* 1: somebody works on it */
    const char *fault; /* NULL; else why it cannot be read: key is then the file name's, method and url tell nothing */
};

/* Calls back for each entry, oldest first, until that returns not 0. The number of entries told, or an error. */
NONBIS_API int nonbis_journal_each(struct nonbis_client *client,
                                   int (*callback)(const struct nonbis_journal_entry *entry, void *arg), void *arg);

/* Removes decided entries that were changed last more than so long ago; `undecided` not 0: also those that are not decided,
 * which forgets their keys for ever. How many were removed, or an error. */
NONBIS_API int nonbis_journal_prune(struct nonbis_client *client, int64_t older_than_ms, int undecided);

#ifdef __cplusplus
}
#endif

#endif
