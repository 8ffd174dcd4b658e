// SPDX-License-Identifier: GPL-2.0
/*
 * This test checks that a virtual CPU's thread can be registered: KVM's own preempt notifier is on the same
 * list, and joins and leaves it at every KVM_RUN.
 */
#include <linux/kvm.h>
#include <sys/ioctl.h>

#include "t_work.h"

#define GUEST_LOOPS 2000000
#define GUEST_MEM   0x1000

/* Real mode: count down, tell port 0x10, halt, again. */
static const uint8_t code[] = {
	0x66, 0xb9, GUEST_LOOPS & 0xff, GUEST_LOOPS >> 8 & 0xff, GUEST_LOOPS >> 16 & 0xff,
	0,	    /* mov ecx */
	0x66, 0x49, /* dec ecx */
	0x75, 0xfc, /* jnz */
	0xe6, 0x10, /* out 0x10, al */
	0xf4,	    /* hlt */
	0xeb, 0xf1, /* jmp to the start */
};

struct vcpu {
	int kvm, vm, fd;
	struct kvm_run *run;
	int run_size;
	void *mem;
};

static int vcpu_open(struct vcpu *v)
{
	struct kvm_userspace_memory_region mem = {.memory_size = GUEST_MEM};
	struct kvm_sregs sregs;
	struct kvm_regs regs = {.rflags = 2};

	if (access("/dev/kvm", F_OK) && system("modprobe kvm-amd"))
		return -1;
	v->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (v->kvm < 0)
		return -1;
	v->vm = ioctl(v->kvm, KVM_CREATE_VM, 0);
	v->mem = mmap(NULL, GUEST_MEM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memcpy(v->mem, code, sizeof(code));
	mem.userspace_addr = (uint64_t)v->mem;
	if (v->vm < 0 || ioctl(v->vm, KVM_SET_USER_MEMORY_REGION, &mem))
		return -1;
	v->fd = ioctl(v->vm, KVM_CREATE_VCPU, 0);
	v->run_size = ioctl(v->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	v->run = mmap(NULL, (size_t)v->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
	if (v->fd < 0 || v->run == MAP_FAILED || ioctl(v->fd, KVM_GET_SREGS, &sregs))
		return -1;
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	return ioctl(v->fd, KVM_SET_SREGS, &sregs) || ioctl(v->fd, KVM_SET_REGS, &regs) ? -1 : 0;
}

static void vcpu_close(struct vcpu *v)
{
	munmap(v->run, (size_t)v->run_size);
	close(v->fd);
	close(v->vm);
	close(v->kvm);
	munmap(v->mem, GUEST_MEM);
}

static void test_vcpu(void)
{
	struct vcpu v = {0};
	struct csf_snap a, b;
	struct csf_thread pg;
	const struct csf_thread *page;
	int exits[2] = {0};
	pthread_t t[2];

	TEST("a registered virtual CPU: exits, halts and preemptions inside the run call") {
		if (!CHECK(!vcpu_open(&v), "/dev/kvm: %s", strerror(errno)))
			break;
		page = t_map();
		work_spinners_start(t, 2);
		t_pin(0);
		t_snap(&a);
		for (int i = 0; i < 20; i++) {
			CHECK(ioctl(v.fd, KVM_RUN, 0) == 0, "KVM_RUN: %s", strerror(errno));
			exits[0] += v.run->exit_reason == KVM_EXIT_IO;
			exits[1] += v.run->exit_reason == KVM_EXIT_HLT;
			if (i % 4 == 0)
				t_sleep_ns(2 * MS);
		}
		t_snap(&b);
		work_unpin();
		work_spinners_stop(t, 2);
		t_copy(&pg, page);
		t_unmap(page);
		vcpu_close(&v);
		struct t_diff d = t_diff(&a, &b);

		CHECK(exits[0] == 10 && exits[1] == 10, "%d I/O exits, %d halts", exits[0],
		      exits[1]);
		CHECK(t_sum(&pg) == pg.last_switch_tsc - pg.start_tsc, "the buckets do not add up");
		CHECK(d.cpu > 5 && d.runq > 5, "cpu %.3f runq %.3f ms", d.cpu, d.runq);
		CHECK(d.sleep > 0 && d.dsleep < d.wall / 2, "sleep %.3f dsleep %.3f", d.sleep,
		      d.dsleep);
		CHECK(b.p.nr_preempt > a.p.nr_preempt, "never preempted among 2 spinners");
	}
}

int main(void)
{
	test_vcpu();
	return t_done("t_kvm");
}
