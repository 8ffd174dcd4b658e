// SPDX-License-Identifier: GPL-2.0
// This test checks that pages say so when the kernel gives up on the TSC while they are in use.
#include "t_csf.h"
#include "lib/coarse_stat_fs.h"

static int insmod(const char *ko)
{
	int fd = open(ko, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return ret;
}

static void *new_thread(void *err)
{
	struct csf_snap s;

	*(int *)err = csf_thread_snap(&s) ? errno : 0;
	return NULL;
}

int main(void)
{
	int fd = open(T_CPU, O_RDONLY), err = 0, ret;
	const struct csf_thread *pg = t_map(), *later;
	const struct csf_cpu *cpu = t_map_fd(fd);
	struct csf_cpu_snap row;
	struct csf_snap s;
	pthread_t thread;

	TEST("before: no flag, snapshots work") {
		CHECK(!((t_flags(pg) | cpu->hdr.flags) & CSF_F_TSC_UNSTABLE), "flagged already");
		CHECK(!csf_thread_snap(&s), "snapshot: %m");
	}
	TEST("the TSC is marked unstable: every page says so") {
		ret = insmod("/ko/csf_tsc.ko");
		CHECK(!ret, "insmod: %s", strerror(-ret));
		CHECK(T_UNTIL(t_flags(pg) & CSF_F_TSC_UNSTABLE), "thread page: 0x%x", t_flags(pg));
		CHECK(T_UNTIL(cpu->hdr.flags & CSF_F_TSC_UNSTABLE), "cpu page: 0x%x",
		      cpu->hdr.flags);
		CHECK(!(t_flags(pg) & (CSF_F_PARKED | CSF_F_DEAD)), "flags 0x%x", t_flags(pg));
	}
	TEST("snapshots fail with ESTALE rather than show wrong times") {
		CHECK(csf_thread_snap(&s) == -1 && errno == ESTALE, "snapshot: %m");
		CHECK(csf_page_snap(pg, pg->hdr.size, &s) == -1 && errno == ESTALE, "page: %m");
		pthread_create(&thread, NULL, new_thread, &err);
		pthread_join(thread, NULL);
		CHECK(err == ESTALE, "in a new thread: %s", strerror(err));
	}
	TEST("so does a page that is made later") {
		t_unmap(pg);
		later = t_map();
		CHECK(t_flags(later) & CSF_F_TSC_UNSTABLE, "flags 0x%x", t_flags(later));
		t_unmap(later);
	}
	TEST("the cpu page is in ns and goes on") {
		CHECK(!csf_cpu_snap(&row, CSF_CPU_ALL), "snapshot: %m");
		CHECK(T_UNTIL(cpu->nr_updates > row.nr_updates), "no more refreshes");
		CHECK(T_UNTIL(!csf_cpu_snap(&row, 0) && row.row.idle_ns), "CPU 0 was never idle");
	}
	return t_done("t_tsc_late");
}
