// SPDX-License-Identifier: GPL-2.0
// This test checks that the module does not load where the kernel distrusts the TSC, and says so.
#include "t_csf.h"

#include <sys/klog.h>

#define KO "/ko/" CSF_FS_NAME ".ko"

/* Lines of the kernel log that the module itself wrote; the last goes to line. */
static int log_lines(char *line, size_t size)
{
	static char log[1 << 18];
	int len = klogctl(3 /* SYSLOG_ACTION_READ_ALL */, log, sizeof(log) - 1), nr = 0;
	char *save, *l;

	log[len < 0 ? 0 : len] = '\0';
	for (l = strtok_r(log, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		l = strstr(l, CSF_FS_NAME ": ");
		if (!l || strstr(l, "taint"))
			continue;
		snprintf(line, size, "%s", l);
		nr++;
	}
	return nr;
}

int main(void)
{
	char types[4096], line[256] = "";
	int fd, ret, nr;

	TEST("an unstable TSC: the module is refused with one line") {
		fd = open(KO, O_RDONLY);
		CHECK(fd >= 0, "open: %m");
		ret = syscall(SYS_finit_module, fd, "", 0) ? errno : 0;
		close(fd);
		CHECK(ret == ENODEV, "insmod: %s", ret ? strerror(ret) : "it loads");
		nr = log_lines(line, sizeof(line));
		CHECK(nr == 1, "%d lines in the log", nr);
		CHECK(strstr(line, "TSC unstable"), "the log says '%s'", line);
	}
	TEST("and leaves nothing behind") {
		CHECK(access("/sys/module/" CSF_FS_NAME, F_OK), "the module");
		CHECK(access(CSF_MOUNT, F_OK), "its mount point");
		t_read_file("/proc/filesystems", types, sizeof(types));
		CHECK(!strstr(types, CSF_FS_NAME), "its filesystem type");
	}
	return t_done("t_tsc_boot");
}
