/* SPDX-License-Identifier: MIT */
/*
 * The thread pages that another process has mapped, read through /proc/PID/mem: for who may trace the
 * process (ptrace(2), PTRACE_MODE_ATTACH). Costs the process nothing; not for signal handlers.
 */
#ifndef LIB_CSF_REMOTE_H
#define LIB_CSF_REMOTE_H

#include <sys/types.h>

#include "lib/coarse_stat_fs.h"

/*
 * Call fn with a snapshot of each thread page that the process has mapped, until fn returns non-zero, which
 * is then returned. What csf_page_snap() says of pages of others holds. A thread may have several
 * mappings, of equal numbers; a page may be another process's, handed over; s->p.tid is of the
 * thread's own pid namespace. Pages that were being written whenever we looked are left out.
 *
 * Returns 0, or -1 with errno: ESRCH (no such process), EACCES or EPERM (we may not trace it), ENODATA (it
 * has no such page), ESTALE (the kernel gave up on the TSC).
 */
int csf_remote_each(pid_t pid, int (*fn)(const struct csf_snap *s, void *data), void *data);

#endif /* LIB_CSF_REMOTE_H */
