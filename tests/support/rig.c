/* rig.c - see rig.h. */
#include "tests/support/rig.h"

void rig_start(struct rig *rig, const char *const *more)
{
    rig->peer = peer_new();
    (void) snprintf(rig->store, sizeof rig->store, "%s/nonbis.db", daemon_folder());
    rig_restart(rig, more);
}

void rig_restart(struct rig *rig, const char *const *more)
{
    daemon_start(&rig->nonbis, peer_url(rig->peer), rig->store, more);
    rig->address = rig->nonbis.listen;
}

void rig_end(struct rig *rig)
{
    int exit_code = daemon_stop(&rig->nonbis);
    ck_assert_msg(exit_code == 0, "nonbisd ended with %d, see %s", exit_code, rig->nonbis.log_path);
    ck_assert_msg(!daemon_logged(&rig->nonbis, "Z error "), "an error was logged, see %s", rig->nonbis.log_path);
    peer_free(rig->peer);
}
