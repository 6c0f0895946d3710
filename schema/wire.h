/* wire.h - every name that appears on the wire (docs/contract.md). No behaviour. */
#ifndef NONBIS_SCHEMA_WIRE_H
#define NONBIS_SCHEMA_WIRE_H

#define WIRE_CONTRACT_VERSION 1

/* Paths below this belong to nonbis and are never forwarded. */
#define WIRE_PREFIX "/_nonbis"
#define WIRE_CONTRACT_PATH "/_nonbis/v1"
#define WIRE_COMMAND_PATH "/_nonbis/v1/command"
#define WIRE_RESPONSE_PATH "/_nonbis/v1/command/response"
#define WIRE_VOID_PATH "/_nonbis/v1/command/void"
#define WIRE_COMMANDS_PATH "/_nonbis/v1/commands/"

/* Request fields. */
#define WIRE_IDEMPOTENCY_KEY "Idempotency-Key"
#define WIRE_ASK "Nonbis-Ask" /* OPTIONS: whether a request of this method is protected (contract 7.7) */

/* Response fields (section 10). */
#define WIRE_STATUS "Idempotency-Status"
#define WIRE_REPLAYED "Idempotent-Replayed"
#define WIRE_EXPIRES "Idempotency-Expires"
#define WIRE_BODY_NOT_KEPT "Nonbis-Body"
#define WIRE_BODY_NOT_KEPT_VALUE "not-kept"

/* Between nonbis and the handler. Everything that starts with the prefix is ours and is removed on the way. */
#define WIRE_OWN_PREFIX "Nonbis-"
#define WIRE_COMMAND_ID "Nonbis-Command-Id"
#define WIRE_EXECUTION "Nonbis-Execution"
#define WIRE_OUTCOME "Nonbis-Outcome"

/* Words of Idempotency-Status. */
#define WIRE_WORD_EXECUTED "executed"
#define WIRE_WORD_REPLAYED "replayed"
#define WIRE_WORD_IN_PROGRESS "in-progress"
#define WIRE_WORD_UNKNOWN "unknown"
#define WIRE_WORD_NOT_EXECUTED "not-executed"
#define WIRE_WORD_REFUSED "refused"
#define WIRE_WORD_UNRECORDED "unrecorded"
#define WIRE_WORD_IGNORED "ignored"

#define WIRE_PROBLEM_PREFIX "urn:nonbis:problem:"
#define WIRE_PROBLEM_CONTENT_TYPE "application/problem+json"

#endif
