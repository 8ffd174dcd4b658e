/* SPDX-License-Identifier: GPL-2.0 */
/* BPF programs that do nothing, attached without a library: what others are compared with, or get in the way of. */
#ifndef T_BPF_H
#define T_BPF_H

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The BTF id of a function of the kernel; 0: none. */
static inline uint32_t t_btf_id(const char *name)
{
	static char data[64 << 20];
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	struct btf_header *h = (void *)data;
	uint32_t id = 1, found = 0;
	size_t len = 0;
	char *at, *str;
	ssize_t n;

	static const unsigned int per[] = {[BTF_KIND_STRUCT] = 12,
					   [BTF_KIND_UNION] = 12,
					   [BTF_KIND_ENUM] = 8,
					   [BTF_KIND_FUNC_PROTO] = 8,
					   [BTF_KIND_DATASEC] = 12,
					   [BTF_KIND_ENUM64] = 12,
					   [31] = 0};
	static const unsigned int fixed[] = {[BTF_KIND_INT] = 4,
					     [BTF_KIND_ARRAY] = 12,
					     [BTF_KIND_VAR] = 4,
					     [BTF_KIND_DECL_TAG] = 4,
					     [31] = 0};

	while ((n = read(fd, data + len, sizeof(data) - len)) > 0)
		len += n;
	close(fd);
	at = data + h->hdr_len + h->type_off;
	str = data + h->hdr_len + h->str_off;
	for (; len && at < str && !found; id++) {
		struct btf_type *t = (void *)at;
		unsigned int kind = BTF_INFO_KIND(t->info);

		if (kind == BTF_KIND_FUNC && !strcmp(str + t->name_off, name))
			found = id;
		at += sizeof(*t) + fixed[kind] + per[kind] * BTF_INFO_VLEN(t->info);
	}
	return found;
}

/* Load and attach a program that reads the clock and does nothing, or does nothing. Returns the link's descriptor or -errno. */
static inline int t_bpf_attach(union bpf_attr *load, const char *tracepoint, bool clock)
{
	static const struct bpf_insn insns[] = {
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_ktime_get_ns},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr open;
	int prog, link;

	load->insns = (uintptr_t)(clock ? insns : insns + 1);
	load->insn_cnt = clock ? 3 : 2;
	load->license = (uintptr_t) "GPL";
	prog = syscall(SYS_bpf, BPF_PROG_LOAD, load, sizeof(*load));
	if (prog < 0)
		return -errno;
	memset(&open, 0, sizeof(open));
	open.raw_tracepoint.name = (uintptr_t)tracepoint;
	open.raw_tracepoint.prog_fd = prog;
	link = syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &open, sizeof(open));
	if (link < 0)
		link = -errno;
	close(prog);
	return link;
}

static inline int t_bpf_raw_tp_clock(const char *tracepoint, bool clock)
{
	union bpf_attr load;

	memset(&load, 0, sizeof(load));
	load.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	return t_bpf_attach(&load, tracepoint, clock);
}

static inline int t_bpf_raw_tp(const char *tracepoint)
{
	return t_bpf_raw_tp_clock(tracepoint, false);
}

/* how: BPF_TRACE_FENTRY or BPF_TRACE_FEXIT. */
static inline int t_bpf_function(const char *name, enum bpf_attach_type how)
{
	union bpf_attr load;

	memset(&load, 0, sizeof(load));
	load.prog_type = BPF_PROG_TYPE_TRACING;
	load.expected_attach_type = how;
	load.attach_btf_id = t_btf_id(name);
	return t_bpf_attach(&load, NULL, false);
}

#endif /* T_BPF_H */
