// SPDX-License-Identifier: GPL-2.0
// This test checks that the guest is what the other tests count on: mounts, limits, debug options.
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <unistd.h>

#include "uapi/coarse_stat_fs.h"
#include "t.h"

static char *slurp(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(buf, 1, size - 1, f) : 0;

	if (f)
		fclose(f);
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return buf;
}

static long fs_type(const char *path)
{
	struct statfs st;

	return statfs(path, &st) ? 0 : (long)st.f_type;
}

static void test_mounts(void)
{
	static const struct {
		const char *path;
		long magic;
	} mounts[] = {
		{"/proc", PROC_SUPER_MAGIC},
		{"/sys", SYSFS_MAGIC},
		{"/dev", TMPFS_MAGIC},
		{"/dev/pts", DEVPTS_SUPER_MAGIC},
		{"/tmp", TMPFS_MAGIC},
		{"/sys/fs/cgroup", CGROUP2_SUPER_MAGIC},
		{"/sys/kernel/debug", DEBUGFS_MAGIC},
		{"/sys/kernel/tracing", TRACEFS_MAGIC},
	};

	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++)
		CHECK(fs_type(mounts[i].path) == mounts[i].magic, "%s has type 0x%lx",
		      mounts[i].path, fs_type(mounts[i].path));
}

int main(void)
{
	char cmdline[2048], buf[256];
	int debug;

	slurp("/proc/cmdline", cmdline, sizeof(cmdline));
	debug = strstr(cmdline, "vm.debug=1") != NULL;

	TEST("a warning panics") {
		CHECK(atoi(slurp("/proc/sys/kernel/panic_on_warn", buf, sizeof(buf))) == 1,
		      "panic_on_warn is %s", buf);
		CHECK(atoi(slurp("/proc/sys/kernel/panic", buf, sizeof(buf))) == -1, "panic is %s",
		      buf);
		CHECK(atoi(slurp("/proc/sys/kernel/panic_on_oops", buf, sizeof(buf))) == 1,
		      "panic_on_oops is %s", buf);
	}
	TEST("filesystems are mounted")
		test_mounts();
	TEST("a module is loaded and its filesystem mounted")
		CHECK(fs_type(CSF_MOUNT) == CSF_FS_MAGIC, CSF_MOUNT " has type 0x%lx",
		      fs_type(CSF_MOUNT));
	TEST("the TSC is the clock source") {
		slurp("/sys/devices/system/clocksource/clocksource0/current_clocksource", buf,
		      sizeof(buf));
		CHECK(!strcmp(buf, "tsc") || !strcmp(buf, "kvm-clock"), "it is %s", buf);
	}
	TEST("the slab allocator checks itself") {
		if (!debug) {
			SKIP("VM_DEBUG=0");
			break;
		}
		slurp("/sys/kernel/slab/kmalloc-64/sanity_checks", buf, sizeof(buf));
		CHECK(atoi(buf) == 1, "sanity_checks of kmalloc-64 is '%s'", buf);
		slurp("/sys/kernel/slab/kmalloc-64/poison", buf, sizeof(buf));
		CHECK(atoi(buf) == 1, "poison of kmalloc-64 is '%s'", buf);
	}
	TEST("KFENCE watches") {
		if (!debug || access("/sys/module/kfence", F_OK)) {
			SKIP("%s", debug ? "the kernel has no KFENCE" : "VM_DEBUG=0");
			break;
		}
		slurp("/sys/module/kfence/parameters/sample_interval", buf, sizeof(buf));
		CHECK(atoi(buf) == 10, "sample_interval is '%s'", buf);
	}
	return t_done("t_boot");
}
