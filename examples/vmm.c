// SPDX-License-Identifier: MIT
/*
 * A small real KVM host that embeds lib/rts: it runs real-mode guests, one virtual machine with one
 * virtual CPU and one thread each, and may fork children that run guests of their own.
 *
 *	vmm [-i] [-c CHILDREN] GUEST[:ARG]...
 *	STATPAGE_RUNTIME_STATS=summary vmm io:1000 mmio:200 spin:300 halt:1000 fast:5000
 *
 * -i uses KVM's in-kernel interrupt controller. The library comes in at six places, all marked
 *"rts:".
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "examples/vmm_guests.h"
#include "lib/rts/rts.h"

#define KICK	 (SIGRTMIN + 1)
#define MEM_SIZE 0x10000u
#define CODE	 0x1000u /* guest code; data and stack lie below and above */
#define MMIO_SEG 0x2000u /* nothing is mapped there */
#define PAGE_SEG 0x3000u /* the counters page */
#define PORT_END 0xf4
#define IRQ_VEC	 0x20

enum { COUNT_TIME, COUNT_TIME_SLOW };
static const char *const counter_names[] = {"guest_time", "guest_time_slow"};

struct guest {
	const char *name, *entry;
	unsigned int segment;
	const char *arg;
};
static const struct guest guests[] = {
	{"io", guest_io, 0, "ports are written and read, ARG times"},
	{"mmio", guest_mmio, MMIO_SEG, "a device's memory is written, ARG times"},
	{"spin", guest_spin, 0, "computes until it is kicked, after ARG ms"},
	{"halt", guest_halt, 0, "halts until an interrupt, after ARG ms"},
	{"fast", guest_fast, PAGE_SEG, "asks for the time, ARG times, mostly without an exit"},
};

struct vm {
	const struct guest *guest;
	unsigned long arg;
	int irqchip;
	int null_every; /* make each n-th run call return at once with nothing done; 0: none */
	int fd, vcpu;
	size_t run_size;
	struct kvm_run *run;
	char *mem;
	int irq_queued;
	pthread_t thread, timer;
	_Atomic int stop;
	_Atomic unsigned long exits; /* our own count, to compare with the record */
	unsigned long runs, kicks;
	int error;
};

static int kvm = -1;
static _Thread_local struct vm *here;

/* rts: a system call of ours, recorded when the statistics are on */
static long vm_ioctl(int fd, unsigned long request, void *arg)
{
	long ret;

	RTS_CALL(ret, RTS_ABI_NATIVE, SYS_ioctl, ioctl(fd, request, arg));
	return ret;
}

static void sleep_ms(unsigned long ms)
{
	struct timespec ts = {.tv_sec = (time_t)(ms / 1000),
			      .tv_nsec = (long)(ms % 1000) * 1000000};
	int ret;

	RTS_CALL(ret, RTS_ABI_NATIVE, SYS_clock_nanosleep, nanosleep(&ts, NULL));
	(void)ret;
}

/* The handler closes the gap between the check of `stop` and the run call: the call returns at
 * once. */
static void kicked(int sig)
{
	(void)sig;
	if (here)
		here->run->immediate_exit = 1;
}

static int vm_memory(struct vm *vm)
{
	struct kvm_userspace_memory_region ram = {.slot = 0, .memory_size = MEM_SIZE};
	struct kvm_userspace_memory_region page = {
		.slot = 1, .guest_phys_addr = PAGE_SEG << 4, .memory_size = 4096};
	unsigned int irq = CODE + (unsigned int)(guest_irq - guest_start);

	vm->mem = mmap(NULL, MEM_SIZE + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	if (vm->mem == MAP_FAILED)
		return -1;
	memcpy(vm->mem + CODE, guest_start, (size_t)(guest_end - guest_start));
	memcpy(vm->mem + 4 * IRQ_VEC, &irq, sizeof(irq)); /* segment 0 */
	ram.userspace_addr = (uintptr_t)vm->mem;
	/* rts: the guest counts its fast path in the counters page, if there is one */
	page.userspace_addr = rts_counters ? (uintptr_t)rts_counters :
					     (uintptr_t)vm->mem + MEM_SIZE;
	return vm_ioctl(vm->fd, KVM_SET_USER_MEMORY_REGION, &ram) ||
			       vm_ioctl(vm->fd, KVM_SET_USER_MEMORY_REGION, &page) ?
		       -1 :
		       0;
}

static int vm_registers(struct vm *vm)
{
	struct kvm_sregs s;
	struct kvm_regs r = {
		.rip = CODE + (unsigned long)(vm->guest->entry - guest_start),
		.rcx = vm->arg,
		.rbx = offsetof(struct rts_counters_page, value) + 8 * COUNT_TIME,
		.rsp = 0x1000,
		.rflags = 2,
	};

	if (vm_ioctl(vm->vcpu, KVM_GET_SREGS, &s))
		return -1;
	s.cs.base = s.cs.selector = 0;
	s.es.selector = (unsigned short)vm->guest->segment;
	s.es.base = vm->guest->segment << 4;
	return vm_ioctl(vm->vcpu, KVM_SET_SREGS, &s) || vm_ioctl(vm->vcpu, KVM_SET_REGS, &r) ? -1 :
											       0;
}

/* 0, or -1 with errno: then vm_close() cleans up. */
static int vm_open(struct vm *vm)
{
	long size;

	vm->vcpu = -1;
	vm->fd = (int)vm_ioctl(kvm, KVM_CREATE_VM, NULL);
	if (vm->fd < 0 || vm_ioctl(vm->fd, KVM_SET_TSS_ADDR, (void *)0xfffbd000ul))
		return -1;
	if (vm->irqchip && vm_ioctl(vm->fd, KVM_CREATE_IRQCHIP, NULL))
		return -1;
	vm->vcpu = (int)vm_ioctl(vm->fd, KVM_CREATE_VCPU, NULL);
	size = vm_ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, NULL);
	if (vm->vcpu < 0 || size < 0)
		return -1;
	vm->run_size = (size_t)size;
	vm->run = mmap(NULL, vm->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, vm->vcpu, 0);
	if (vm->run == MAP_FAILED)
		return -1;
	return vm_memory(vm) || vm_registers(vm) ? -1 : 0;
}

static void vm_close(struct vm *vm)
{
	if (vm->mem && vm->mem != MAP_FAILED)
		munmap(vm->mem, MEM_SIZE + 4096);
	if (vm->run && vm->run != MAP_FAILED)
		munmap(vm->run, vm->run_size);
	if (vm->vcpu >= 0)
		close(vm->vcpu);
	if (vm->fd >= 0)
		close(vm->fd);
}

/* One run call. rts: bracketed, with its reason and whether there was anything to do. 0 or errno.
 */
static int vcpu_run(struct vm *vm)
{
	struct rts_run run;
	int err;

	if (vm->null_every && ++vm->runs % (unsigned long)vm->null_every == 0)
		vm->run->immediate_exit = 1;
	if (!rts_on()) {
		err = ioctl(vm->vcpu, KVM_RUN, NULL) ? errno : 0;
	} else {
		rts_vcpu_begin(&run);
		err = ioctl(vm->vcpu, KVM_RUN, NULL) ? errno : 0;
		rts_vcpu_end(&run, err ? KVM_EXIT_INTR : vm->run->exit_reason,
			     rts_kvm_null(err, vm->run->exit_reason, vm->irq_queued));
	}
	vm->exits++;
	vm->kicks += err == EINTR;
	vm->run->immediate_exit = 0;
	return err;
}

/* No interrupt controller in the kernel: the halt is ours. Sleep, then inject the timer's
 * interrupt. */
static int vcpu_halted(struct vm *vm)
{
	struct kvm_interrupt irq = {.irq = IRQ_VEC};

	sleep_ms(vm->arg);
	return vm_ioctl(vm->vcpu, KVM_INTERRUPT, &irq) ? -1 : 0;
}

/* 1: go on, 0: the guest has ended, -1: it or we failed. */
static int vcpu_exit(struct vm *vm)
{
	const struct kvm_run *run = vm->run;

	switch (run->exit_reason) {
	case KVM_EXIT_IO:
		if (run->io.port == 0x12 && rts_counters)
			rts_count(COUNT_TIME_SLOW, 1);
		return run->io.port != PORT_END;
	case KVM_EXIT_MMIO:
		return 1;
	case KVM_EXIT_HLT:
		return vcpu_halted(vm) ? -1 : 1;
	default:
		fprintf(stderr, "vmm: guest %s: exit reason %u\n", vm->guest->name,
			run->exit_reason);
		return -1;
	}
}

static void *vcpu_thread(void *arg)
{
	struct vm *vm = arg;
	int go = 1, err;

	here = vm;
	/* rts: this thread is a virtual CPU; without statistics it is known not to halt in the run
	 * call */
	if (rts_vcpu_start(vm->vcpu) && !vm->irqchip)
		rts_vcpu_halted(0);
	while (go > 0 && !vm->stop) {
		err = vcpu_run(vm);
		if (err && err != EINTR && err != EAGAIN)
			go = -1;
		else if (!err)
			go = vcpu_exit(vm);
	}
	vm->error = go < 0;
	here = NULL;
	return NULL;
}

/* What the guest's timer does after ARG ms: stop a spinning one, wake a halted one. */
static void *timer_thread(void *arg)
{
	struct kvm_irq_level line = {.irq = 0, .level = 1};
	struct vm *vm = arg;

	sleep_ms(vm->arg);
	if (vm->guest->entry == guest_spin) {
		vm->stop = 1;
		pthread_kill(vm->thread, KICK);
		return NULL;
	}
	if (vm_ioctl(vm->fd, KVM_IRQ_LINE, &line))
		perror("vmm: KVM_IRQ_LINE");
	line.level = 0;
	vm_ioctl(vm->fd, KVM_IRQ_LINE, &line);
	return NULL;
}

static int needs_timer(const struct vm *vm)
{
	return vm->guest->entry == guest_spin || (vm->guest->entry == guest_halt && vm->irqchip);
}

/* Open and start; 0 or an errno. vm_join() ends it. */
static int vm_start(struct vm *vm)
{
	int ret = vm_open(vm) ? errno : 0;

	if (!ret)
		ret = pthread_create(&vm->thread, NULL, vcpu_thread, vm);
	if (ret) {
		vm_close(vm);
		return ret;
	}
	if (needs_timer(vm) && pthread_create(&vm->timer, NULL, timer_thread, vm))
		abort();
	return 0;
}

/* 0, or 1 if the guest failed. */
static int vm_join(struct vm *vm)
{
	pthread_join(vm->thread, NULL);
	if (needs_timer(vm))
		pthread_join(vm->timer, NULL);
	vm_close(vm);
	return vm->error;
}

static int vms_run(struct vm *vms, int nr)
{
	int failed = 0, ret = 0, started = 0;

	for (; started < nr && !ret; started += !ret) {
		ret = vm_start(&vms[started]);
		if (ret)
			fprintf(stderr, "vmm: guest %s: %s\n", vms[started].guest->name,
				strerror(ret));
	}
	for (int i = 0; i < started; i++)
		failed |= vm_join(&vms[i]);
	return failed || ret;
}

static int vm_parse(struct vm *vm, const char *text)
{
	size_t n = strcspn(text, ":");
	char *end = NULL;

	for (size_t i = 0; i < sizeof(guests) / sizeof(guests[0]); i++)
		if (strlen(guests[i].name) == n && !strncmp(guests[i].name, text, n))
			vm->guest = &guests[i];
	vm->arg = text[n] ? strtoul(text + n + 1, &end, 10) : 100;
	return vm->guest && vm->arg && vm->arg <= 65535 && (!end || !*end) ? 0 : -1;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: vmm [-i] [-c CHILDREN] GUEST[:ARG]...   (ARG: 1 to 65535, default 100)\n");
	for (size_t i = 0; i < sizeof(guests) / sizeof(guests[0]); i++)
		fprintf(stderr, "  %-5s %s\n", guests[i].name, guests[i].arg);
	return 2;
}

/* The kick signal is ours before the library starts, so it will not take it for snapshots. */
static int host_start(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = kicked};
	int ret;

	sigaction(KICK, &sa, NULL);
	/* rts: start it, name the counters */
	ret = rts_init(&(struct rts_options){.argc = argc, .argv = argv});
	if (!ret)
		ret = rts_counters_open(counter_names, 2, 0);
	if (ret)
		fprintf(stderr, "vmm: statistics: %s\n", strerror(-ret));
	rts_step("init");
	kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (kvm < 0)
		perror("vmm: /dev/kvm");
	rts_step("open-kvm");
	return ret || kvm < 0;
}

int main(int argc, char **argv)
{
	struct vm vms[16] = {{0}};
	int nr = 0, children = 0, irqchip = 0, opt, failed, status;

	while ((opt = getopt(argc, argv, "ic:")) != -1) {
		if (opt == 'i')
			irqchip = 1;
		else if (opt == 'c')
			children = atoi(optarg);
		else
			return usage();
	}
	for (; optind < argc && nr < 16; optind++, nr++) {
		vms[nr].irqchip = irqchip;
		if (vm_parse(&vms[nr], argv[optind]))
			return usage();
	}
	if (!nr || optind < argc)
		return usage();
	if (host_start(argc, argv))
		return 1;
	for (int i = 0; i < children; i++) {
		/* rts: a child that goes on; it counts from zero and writes a record of its own */
		pid_t pid = rts_fork();

		if (pid == 0)
			exit(vms_run(vms, nr));
		if (pid < 0) {
			perror("vmm: fork");
			children = i;
		}
	}
	failed = vms_run(vms, nr);
	for (int i = 0; i < children; i++)
		failed |= wait(&status) < 0 || status;
	return failed != 0;
}
