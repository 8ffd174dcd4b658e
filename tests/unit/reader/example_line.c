/* SPDX-License-Identifier: MIT */
/* The example of the documentation that prints a line, as it stands there. Compiled, not run. */
#include "lib/coarse_stat_fs.h"

void op(void);
int loop(uint64_t slow);

int loop(uint64_t slow)
{
	/* clang-format off */
struct csf_snap before, after; char buf[CSF_DIFF_BUFSZ];   /* fits any csf_format_diff() output */
csf_thread_snap(&before); uint64_t t0 = csf_rdtsc();
op();
if (csf_rdtsc() - t0 > slow) { csf_thread_snap(&after); csf_format_diff(buf, sizeof(buf), &before, &after); puts(buf); }
	/* clang-format on */
	return 0;
}
