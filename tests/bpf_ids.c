// SPDX-License-Identifier: GPL-2.0
/*
 * Prints what of BPF the kernel holds, as `prog 12`, `map 7` and `link 3` lines: for tests in a guest,
 * where there is no bpftool.
 */
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	static const struct {
		const char *name;
		int cmd;
	} kinds[] = {{"prog", BPF_PROG_GET_NEXT_ID},
		     {"map", BPF_MAP_GET_NEXT_ID},
		     {"link", BPF_LINK_GET_NEXT_ID}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		union bpf_attr attr;

		memset(&attr, 0, sizeof(attr));
		while (!syscall(SYS_bpf, kinds[i].cmd, &attr, sizeof(attr))) {
			printf("%s %u\n", kinds[i].name, attr.next_id);
			attr.start_id = attr.next_id;
		}
	}
	return 0;
}
