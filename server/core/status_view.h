/* status_view.h - what a status query may tell of a record at a moment (docs/contract.md section 7): pure data, without ids and texts. Writing
 * it as JSON is server/api/status_body.h. Pure. Any thread. */
#ifndef NONBIS_SERVER_CORE_STATUS_VIEW_H
#define NONBIS_SERVER_CORE_STATUS_VIEW_H

#include "server/core/record.h"

struct status_view {
    enum record_state state; /* that counts now; never ABSENT */
    enum executed executed;
    uint32_t executions;
    enum cause cause; /* of an unknown outcome, as a tombstone too; else CAUSE_NONE */
    /* store time, milliseconds; 0: not yet, or not for this state */
    int64_t created_ms;
    int64_t
        completed_ms; /* of the newest execution's end, or of the void; 0 while it runs, and when its end was never recorded */
    int64_t expires_ms; /* end of replay, of a completed command and of its tombstone */
    bool has_response;
    int response_status;
    uint64_t response_bytes;
    bool response_kept; /* the body can be replayed now */
};

/* False: there is nothing to tell, the key counts as never seen. `now_ms` is store time. */
bool status_view_make(const struct record *record, int64_t now_ms, struct status_view *out);

/* May the record be told to this caller? Not under another credential; the comparison takes constant time. */
bool status_view_is_for(const struct record *record, const struct credential *caller);

#endif
