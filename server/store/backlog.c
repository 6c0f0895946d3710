/* backlog.c - see backlog.h. */
#include "server/store/backlog.h"

enum { GROWTH_TELL_MS = 60000 };

int64_t backlog_behind_ms(const struct backlog *backlog, int64_t now_ms)
{
    return backlog->due_ms != 0 && now_ms > backlog->due_ms ? now_ms - backlog->due_ms : 0;
}

int64_t backlog_note(struct backlog *backlog, int64_t due_ms, int64_t now_ms)
{
    backlog->due_ms = due_ms;
    int64_t behind_ms = backlog_behind_ms(backlog, now_ms);
    if (due_ms == 0) {
        backlog->tell_ms = 0;
    } else if (backlog->tell_ms == 0) {
        backlog->tell_ms = behind_ms + GROWTH_TELL_MS;
    } else if (behind_ms >= backlog->tell_ms) {
        backlog->tell_ms = 2 * behind_ms;
        return behind_ms;
    }
    return 0;
}
