/* rig.c - see rig.h. */
#include "tests/support/rig.h"

void rig_start(struct rig *rig, const char *const *more)
{
    rig_start_at(rig, NULL, more);
}

void rig_start_at(struct rig *rig, const char *wall, const char *const *more)
{
    rig->peer = peer_new();
    rig->clock.clock = NULL;
    if (wall != NULL) {
        clock_hand_make(&rig->clock, wall);
    }
    (void) snprintf(rig->store, sizeof rig->store, "%s/nonbis.db", daemon_folder());
    rig_restart(rig, more);
}

void rig_restart(struct rig *rig, const char *const *more)
{
    const char *clock_path = rig->clock.clock != NULL ? rig->clock.path : NULL;
    daemon_start_by_clock(&rig->nonbis, clock_path, peer_url(rig->peer), rig->store, more);
    rig->address = rig->nonbis.listen;
}

void rig_end(struct rig *rig)
{
    int exit_code = daemon_stop(&rig->nonbis);
    ck_assert_msg(exit_code == 0, "nonbisd ended with %d, see %s", exit_code, rig->nonbis.log_path);
    ck_assert_msg(!daemon_logged(&rig->nonbis, "Z error "), "an error was logged, see %s", rig->nonbis.log_path);
    peer_free(rig->peer);
}
