/* late.h - outcomes that the store would not take (no room, an error that certainly left nothing): kept in memory and tried again until they are
 * recorded, so that a repeat finds the truth as soon as the disk allows (docs/contract.md section 6). Until then the record is in progress, and
 * unknown from its deadline on; the first caller was told "unrecorded". Loop thread. */
#ifndef NONBIS_SERVER_FLOW_LATE_H
#define NONBIS_SERVER_FLOW_LATE_H

#include "server/flow/flow.h"

/* Copies what it needs. Over LATE_OUTCOMES_MAX at a time an outcome is given up: its record becomes unknown. */
void late_keep(struct flow *flow, const struct store_finish *finish);

/* The drain is over: what is left becomes unknown at the next start. */
void late_drop_all(struct flow *flow);

#endif
