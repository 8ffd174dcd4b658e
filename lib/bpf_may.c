/* SPDX-License-Identifier: MIT */
#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

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
