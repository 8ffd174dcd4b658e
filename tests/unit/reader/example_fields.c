/* SPDX-License-Identifier: MIT */
/* The example of the documentation that takes fields, as it stands there. Compiled, not run. */
#include "lib/coarse_stat_fs.h"

void op(void);
int fields(double *out);

int fields(double *out)
{
	/* clang-format off */
struct csf_snap a, b;
if (csf_thread_snap(&a)) return -1;                 /* errno says why, for example ENOENT when not mounted */
op();
csf_thread_snap(&b);
const struct csf_hdr *h = &b.p.hdr;                 /* the header holds the conversion of cycles to ns */
double wall_ms = csf_cyc_to_ns(h, b.tsc - a.tsc) / 1e6, iowait_ms = csf_cyc_to_ns(h, b.p.iowait_cyc - a.p.iowait_cyc) / 1e6;
unsigned long long blocked = b.p.nr_block - a.p.nr_block, major_faults = b.p.maj_flt - a.p.maj_flt;
	/* clang-format on */
	*out = wall_ms + iowait_ms;
	return blocked + major_faults > 0;
}
