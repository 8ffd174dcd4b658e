/* SPDX-License-Identifier: MIT */
/* A use of every function of the reader. Compiled, not run. */
#include "lib/coarse_stat_fs.h"

int use(const void *page, size_t len);

int use(const void *page, size_t len)
{
	struct csf_snap a, b;
	struct csf_cpu_snap c;
	struct csf_diff d;
	uint64_t ns;

	if (csf_thread_snap(&a) || csf_page_snap(page, len, &b) || csf_diff(&d, &a, &b))
		return -1;
	if (CSF_HAS(&b.p, struct csf_thread, syscr) && !(b.p.hdr.absent & CSF_ABSENT_SYSC))
		printf("%llu\n", b.p.syscr);
	ns = csf_cyc_to_ns_u64(&a.p.hdr, csf_now(&a.p.hdr) - a.tsc) + d.ns[CSF_RUNQ];
	if (csf_cpu_snap(&c, CSF_CPU_ALL) || csf_cpu_snap(&c, 0))
		return -1;
	csf_cpu_close();
	return ns > c.update_mono_ns + c.row.user_ns;
}
