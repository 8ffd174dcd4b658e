/* SPDX-License-Identifier: MIT */
/*
 * Thread time of the start-up steps, by the buckets of the thread-time module. The only file here that
 * knows the module; where it is not mounted, or not made for this machine, there is nothing to tell.
 */
#include "internal.h"

#if defined(__linux__) && defined(__x86_64__) && !defined(__ILP32__) && !defined(RTS_PORTABLE)
#include "lib/coarse_stat_fs.h"

_Static_assert(RTS_NR_BUCKETS == (int)CSF_NR_STATES, "one bucket a state");

const char *const rts_bucket_names[RTS_NR_BUCKETS] = {
	[CSF_ONCPU] = "oncpu_ns",   [CSF_RUNQ] = "runq_ns",	[CSF_SLEEP] = "sleep_ns",
	[CSF_DSLEEP] = "dsleep_ns", [CSF_IOWAIT] = "iowait_ns",
};

/* Where the last lap ended, in whichever thread that was. */
static struct csf_snap last;
static bool started;

int rts_thread_lap(uint64_t ns[RTS_NR_BUCKETS])
{
	int saved = errno, ret = -1;
	struct csf_snap now;
	struct csf_diff d;
	bool known = !csf_thread_snap(&now);

	/* Another thread's page is another accounting, which csf_diff() refuses. */
	if (known && started && !csf_diff(&d, &last, &now)) {
		for (int i = 0; i < RTS_NR_BUCKETS; i++)
			ns[i] = d.ns[i];
		ret = 0;
	}
	started = known;
	if (known)
		last = now;
	errno = saved;
	return ret;
}
#else
const char *const rts_bucket_names[RTS_NR_BUCKETS];

int rts_thread_lap(uint64_t ns[RTS_NR_BUCKETS])
{
	(void)ns;
	return -1;
}
#endif
