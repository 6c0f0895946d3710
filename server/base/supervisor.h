/* supervisor.h - tells whoever started this process how it is, in the way of systemd (Type=notify): a datagram to the socket that NOTIFY_SOCKET
 * names. Nothing happens where it names none. Any thread; never waits. */
#ifndef NONBIS_SERVER_BASE_SUPERVISOR_H
#define NONBIS_SERVER_BASE_SUPERVISOR_H

#include <stdint.h>

void supervisor_tell_ready(void);
/* It ends now, and may take that long: it must not be killed before. */
void supervisor_tell_stopping(int64_t within_ms);

#endif
