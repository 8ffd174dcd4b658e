/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/coarse_stat_fs.h"
#include "lib/dist.h"
#include "lib/engine.h"
#include "lib/probe.h"
#include "lib/procfs.h"
#include "lib/ptrace_engine.h"

#define DEBUGFS "/sys/kernel/debug"

__attribute__((format(printf, 2, 3))) static void text(struct probe *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->text, sizeof(p->text), fmt, ap);
	va_end(ap);
}

__attribute__((format(printf, 2, 3))) static void fix(struct probe *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->fix, sizeof(p->fix), fmt, ap);
	va_end(ap);
}

/* The first line of a file, "" where there is none. */
static const char *line_of(const char *path)
{
	static char line[256];
	FILE *f = fopen(path, "re");

	line[0] = '\0';
	if (f) {
		if (!fgets(line, sizeof(line), f))
			line[0] = '\0';
		fclose(f);
	}
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static bool file_has(const char *path, const char *word)
{
	char line[256];
	FILE *f = fopen(path, "re");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, word);
	if (f)
		fclose(f);
	return found;
}

/* ---- modules ---- */

static bool secure_boot(void)
{
	int fd = open("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
		      O_RDONLY | O_CLOEXEC);
	unsigned char v[5] = {0}; /* attributes, then the value */
	bool on = fd >= 0 && read(fd, v, sizeof(v)) == sizeof(v) && v[4];

	if (fd >= 0)
		close(fd);
	return on;
}

static bool loads_modules(void)
{
	return !access("/proc/modules", F_OK);
}

/* Is it there to be loaded? modprobe knows, without loading it. */
static bool module_installed(const char *name)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 1);
		dup2(null, 2);
		execlp("modprobe", "modprobe", "-n", "-q", name, (char *)NULL);
		execl("/sbin/modprobe", "modprobe", "-n", "-q", name, (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       !WEXITSTATUS(status);
}

/* The module is not loaded: what stands in the way, the first thing first. */
static void why_no_module(struct probe *p, const char *name)
{
	char headers[128];
	struct utsname u;

	uname(&u);
	snprintf(headers, sizeof(headers), "/lib/modules/%s/build/Makefile", u.release);
	if (!loads_modules()) {
		text(p, "this kernel (%s) loads no modules", u.release);
		return;
	}
	text(p, "the module %s is not loaded", name);
	if (strstr(line_of("/proc/sys/kernel/modules_disabled"), "1")) {
		text(p, "the module %s is not loaded, and kernel.modules_disabled is 1", name);
		fix(p, "reboot: it cannot be set back");
	} else if (module_installed(name)) {
		if (secure_boot())
			fix(p,
			    "sudo modprobe %s; if its key is rejected: sudo mokutil --import "
			    "/var/lib/dkms/mok.pub, reboot, enrol it",
			    name);
		else
			fix(p, "sudo modprobe %s", name);
	} else if (access(headers, R_OK)) {
		text(p, "the module %s is not loaded, nor installed, nor are headers for %s", name,
		     u.release);
		fix(p, "sudo apt-get install linux-headers-%s", u.release);
	} else {
		text(p, "the module %s is not loaded, nor installed", name);
		fix(p, "sudo make install-kmod && sudo modprobe %s", name);
	}
}

/* ---- thread time ---- */

/* errno of a failed look at the filesystem. */
static void why_no_csf(struct probe *p, int err)
{
	if (err == ENOENT && file_has("/proc/filesystems", "coarse_stat_fs")) {
		text(p, "coarse_stat_fs is not mounted on " CSF_MOUNT);
		fix(p, "sudo mount -t coarse_stat_fs none " CSF_MOUNT);
	} else if (err == ENOENT) {
		why_no_module(p, "coarse_stat_fs");
	} else if (err == EACCES || err == EPERM) {
		text(p, "%s: its mode keeps this user out", CSF_MOUNT);
		fix(p, "sudo mount -o remount,mode=0444 " CSF_MOUNT);
	} else {
		text(p, "%s: %s", CSF_MOUNT, strerror(err));
	}
}

static void probe_thread(struct probe *p)
{
	struct csf_snap a, b;

	/* Else the reader would ask a server. */
	if (access(CSF_MOUNT "/thread-self", F_OK)) {
		why_no_csf(p, errno);
		return;
	}
	if (csf_thread_snap(&a) || csf_thread_snap(&b)) {
		why_no_csf(p, errno);
		return;
	}
	p->works = b.tsc >= a.tsc && b.p.oncpu_cyc > a.p.oncpu_cyc;
	if (!p->works)
		text(p, "the page of thread %u does not move", b.p.tid);
	else if (b.p.hdr.flags & CSF_F_TSC_UNSTABLE)
		text(p, "but the kernel has given up on the TSC: times are not to be trusted");
	else
		text(p, "a page for each thread that asks; %u kHz", b.p.hdr.freq_khz);
}

static void probe_serve(struct probe *p)
{
	size_t len;
	void *page = csf_map_served_(&len);
	int err = errno;

	p->works = page;
	if (page) {
		munmap(page, len);
		text(p, "a server gives a page to each thread that asks, on " CSF_SERVE_SOCKET);
	} else if (err == ENOENT) {
		text(p, "no server listens on " CSF_SERVE_SOCKET);
		fix(p, "sudo statpage serve");
	} else {
		text(p, CSF_SERVE_SOCKET ": %s",
		     err == ENOSPC ? "all pages are taken" : strerror(err));
		if (err == ENOSPC)
			fix(p, "sudo statpage serve --max N, with more of them");
	}
}

static void probe_cpu_page(struct probe *p)
{
	struct csf_cpu_snap s;

	if (csf_cpu_snap(&s, CSF_CPU_ALL)) {
		why_no_csf(p, errno);
		return;
	}
	p->works = true;
	text(p, "%u CPU ids, refreshed every %u us", s.nr_cpus, s.period_us);
}

static void probe_tsc(struct probe *p)
{
	const char *source =
		line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource");

	p->works = !strcmp(source, "tsc") || !strcmp(source, "kvm-clock") ||
		   !strcmp(source, "hyperv_clocksource_tsc_page");
	text(p, "the kernel keeps time by %s", *source ? source : "a clock that it does not name");
	if (!p->works)
		fix(p, "boot with tsc=reliable, if you know that the TSC is");
}

static void probe_schedstat(struct probe *p)
{
	p->works = procfs_has_schedstat();
	if (p->works)
		text(p, "/proc/PID/schedstat: CPU and run queue, as of the last tick or switch");
	else
		text(p, "/proc/PID/schedstat cannot be read, or is all zeros: is /proc mounted?");
}

/* ---- distributions ---- */

static void probe_kstats(struct probe *p)
{
	struct dist_why why = {""};
	struct statfs fs;

	p->works = !engine_kmod.try(&why);
	if (p->works) {
		text(p, "%s", why.text);
		return;
	}
	if (geteuid()) {
		text(p, "this needs root");
		fix(p, "sudo statpage doctor");
	} else if (loads_modules() && (statfs(DEBUGFS, &fs) || fs.f_type != 0x64626720)) {
		text(p, "debugfs is not mounted on " DEBUGFS);
		fix(p, "sudo mount -t debugfs none " DEBUGFS);
	} else if (access("/sys/module/kstats", F_OK)) {
		why_no_module(p, "kstats");
	} else {
		text(p, "%s", why.text);
	}
}

static void probe_dist_bpf(struct probe *p)
{
	struct dist_why why = {""};
	int err = engine_dist_bpf.try(&why);

	p->works = !err;
	text(p, "%s", why.text);
	if (err == -EPERM && geteuid())
		fix(p, "sudo statpage doctor");
}

/* ---- runtime stats ---- */

static void why_no_ptrace(struct probe *p, int err)
{
	struct proc_status st = {0};

	text(p, "a process cannot be traced: %s", strerror(err));
	procfs_status(getpid(), &st);
	if (st.seccomp == 2) {
		text(p, "a seccomp filter forbids ptrace (%s)", strerror(err));
		fix(p, "if this is a container: docker run --cap-add SYS_PTRACE");
	} else if (atoi(line_of("/proc/sys/kernel/yama/ptrace_scope")) == 3) {
		text(p, "kernel.yama.ptrace_scope is 3: nobody may trace");
		fix(p, "reboot with kernel.yama.ptrace_scope=1: it cannot be set back");
	}
}

/* 0, or the errno of tracing pid. */
static int seize(pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, 0, 0))
		return errno;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	return 0;
}

/* The same, tried by a process that is no ancestor of it, to which stricter rules apply. */
static int seize_stranger(pid_t pid)
{
	pid_t other = fork();
	int status;

	if (!other)
		_exit(seize(pid));
	if (other < 0 || waitpid(other, &status, 0) != other)
		return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static int try_ptrace(int (*attempt)(pid_t pid))
{
	pid_t pid = fork();
	int err;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(20); /* whatever happens to us */
		pause();
		_exit(0);
	}
	if (pid < 0)
		return errno;
	err = attempt(pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return err;
}

static void probe_run_ptrace(struct probe *p)
{
	uint64_t cost;
	int err = try_ptrace(seize);

	if (err) {
		why_no_ptrace(p, err);
		return;
	}
	p->works = ptrace_calibrate(true, &cost);
	if (p->works)
		text(p, "adds %llu ns to a system call here", (unsigned long long)cost);
	else
		text(p, "a process can be seized, but its calls are not seen");
}

/* In a process of its own, with whose end all is gone that was loaded. */
static void probe_run_bpf(struct probe *p)
{
	const struct run_opts o = {.path = "/bin/true", .pin_cpu = -1};
	char why[300] = "";
	int fd[2], status = -1;
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC)) {
		text(p, "%s", strerror(errno));
		return;
	}
	pid = fork();
	if (!pid) {
		status = engine_bpf.prepare(&o, why, sizeof(why));
		(void)!write(fd[1], why, strlen(why));
		_exit(status != 0);
	}
	close(fd[1]);
	if (pid > 0 && read(fd[0], why, sizeof(why) - 1) >= 0)
		waitpid(pid, &status, 0);
	close(fd[0]);
	p->works = !status;
	text(p, "%s", p->works ? "its programs load" : *why ? why : "its programs do not load");
	if (!p->works && geteuid())
		fix(p, "sudo statpage doctor");
}

static void probe_attach(struct probe *p)
{
	int err = try_ptrace(seize_stranger),
	    scope = atoi(line_of("/proc/sys/kernel/yama/ptrace_scope"));

	p->works = !err;
	if (!err) {
		text(p, "processes of this user%s can be attached to",
		     geteuid() ? "" : ", and of others,");
		return;
	}
	why_no_ptrace(p, err);
	if (scope == 1 || scope == 2) {
		text(p, "kernel.yama.ptrace_scope is %d: only %s", scope,
		     scope == 1 ? "children may be traced" : "root may trace");
		fix(p,
		    scope == 1 ? "sudo sysctl kernel.yama.ptrace_scope=0" : "sudo statpage attach");
	}
}

static void probe_kvm(struct probe *p)
{
	int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC), vm = -1, vcpu = -1, stats = 0;

	if (fd < 0) {
		text(p, "/dev/kvm: %s", strerror(errno));
		if (errno == EACCES)
			fix(p, "sudo adduser $USER kvm, and log in again");
		else if (errno == ENOENT && loads_modules())
			fix(p,
			    "sudo modprobe -a kvm_intel kvm_amd, if the processor can and the firmware lets it");
		return;
	}
	vm = ioctl(fd, KVM_CREATE_VM, 0);
	vcpu = vm < 0 ? -1 : ioctl(vm, KVM_CREATE_VCPU, 0);
	stats = vm < 0 ? 0 : ioctl(vm, KVM_CHECK_EXTENSION, KVM_CAP_BINARY_STATS_FD);
	p->works = vcpu >= 0;
	if (p->works)
		text(p, "virtual CPUs can be made; their statistics %s",
		     stats > 0 ? "have a descriptor" : "have no descriptor in this kernel");
	else
		text(p, "/dev/kvm makes no virtual CPU: %s", strerror(errno));
	close(vcpu);
	close(vm);
	close(fd);
}

static const struct {
	const char *part, *engine;
	void (*run)(struct probe *p);
} probes[] = {
	{"thread time", "module", probe_thread},
	{"thread time", "bpf", probe_serve},
	{"thread time", "cpu page", probe_cpu_page},
	{"thread time", "TSC", probe_tsc},
	{"thread time", "schedstat", probe_schedstat},
	{"distributions", "module", probe_kstats},
	{"distributions", "bpf", probe_dist_bpf},
	{"runtime stats", "ptrace", probe_run_ptrace},
	{"runtime stats", "bpf", probe_run_bpf},
	{"runtime stats", "attach", probe_attach},
	{"runtime stats", "KVM", probe_kvm},
};

bool probe_run(unsigned int i, struct probe *p)
{
	if (i >= sizeof(probes) / sizeof(probes[0]))
		return false;
	*p = (struct probe){.part = probes[i].part, .engine = probes[i].engine};
	probes[i].run(p);
	return true;
}
