/* SPDX-License-Identifier: MIT */
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/bpf_may.h"

bool bpf_may_load(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {{0}};
	uint64_t have;

	if (syscall(SYS_capget, &head, d))
		return false;
	have = d[0].effective | (uint64_t)d[1].effective << 32;
	return have & (1ull << CAP_SYS_ADMIN) ||
	       (have & (1ull << CAP_BPF) && have & (1ull << CAP_PERFMON));
}

static int say_nothing(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

void bpf_be_quiet(void)
{
	libbpf_set_print(say_nothing);
}

/* Has the kernel a struct of that name? */
static bool kernel_has(const char *name)
{
	struct btf *kernel = btf__load_vmlinux_btf();
	bool found = kernel && btf__find_by_name_kind(kernel, name, BTF_KIND_STRUCT) > 0;

	btf__free(kernel);
	return found;
}

/* The first line of a file, which may be compressed, that begins with a word; false: there is none. */
static bool line_of(const char *path, const char *start, char *line, int len)
{
	gzFile f = gzopen(path, "re");
	bool found = false;

	if (!f)
		return false;
	while (!found && gzgets(f, line, len))
		found = !strncmp(line, start, strlen(start));
	gzclose(f);
	return found;
}

/* One that switches tasks in the kernel only where they wait, or ask whether they should. */
static bool kernel_yields(void)
{
	char line[4096], path[128] = "/proc/config.gz";
	struct utsname u;

	if (line_of("/sys/kernel/debug/sched/preempt", "", line, sizeof(line)))
		return strstr(line, "(none)") || strstr(line, "(voluntary)");
	if (line_of("/proc/cmdline", "", line, sizeof(line)) && strstr(line, "preempt="))
		return strstr(line, "preempt=none") || strstr(line, "preempt=voluntary");
	if (!line_of(path, "CONFIG_PREEMPT", line, sizeof(line)) && !uname(&u))
		snprintf(path, sizeof(path), "/boot/config-%s", u.release);
	return line_of(path, "CONFIG_PREEMPT_NONE=y", line, sizeof(line)) ||
	       line_of(path, "CONFIG_PREEMPT_VOLUNTARY=y", line, sizeof(line));
}

bool bpf_is_preempted(void)
{
	return kernel_has("tracepoint_ext") && !kernel_yields();
}
