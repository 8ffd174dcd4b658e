/* SPDX-License-Identifier: MIT */
/*
 * libstatpage-vdso.so, a library to preload: counts the calls that the vDSO serves, which no tracer
 * of system calls sees, in a counters page that `statpage run` finds.
 *
 *	LD_PRELOAD=build/libstatpage-vdso.so statpage run -- CMD
 *	STATPAGE_VDSO_RUNTIME_STATS=summary LD_PRELOAD=build/libstatpage-vdso.so CMD
 *
 * With a clock source that the vDSO cannot read (hpet, acpi_pm) the precise clocks enter the
 * kernel, as CPU time clocks always do: those calls are system calls and not counted here. Not seen:
 * static programs, runtimes that call the vDSO by themselves (Go), calls within libc, setuid
 * programs. A counted call costs one atomic addition more; threads that all ask for the time share
 * the cache line.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "rts.h"

#define EXPORT __attribute__((visibility("default")))

enum { CLOCK_GETTIME, GETTIMEOFDAY, TIME, GETCPU };
static const char *const names[] = {"clock_gettime", "gettimeofday", "time", "getcpu"};

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_gettimeofday)(struct timeval *, void *);
static time_t (*real_time)(time_t *);
static int (*real_getcpu)(unsigned int *, unsigned int *);
static int precise; /* the vDSO reads the clock source */

/* ISO C has no conversion from dlsym()'s pointer to one to a function. */
#define FIND(name) memcpy(&real_##name, &(void *){dlsym(RTLD_NEXT, #name)}, sizeof(void *))

/* Before our constructor other libraries' may ask for the time, in the one thread there is. */
static void find_all(void)
{
	FIND(clock_gettime);
	FIND(gettimeofday);
	FIND(time);
	FIND(getcpu);
}

static int source_is_precise(void)
{
	static const char *const good[] = {"tsc\n", "kvm-clock\n", "hyperv_clocksource_tsc_page\n",
					   "arch_sys_counter\n"};
	char now[64] = "";
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		      O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, now, sizeof(now) - 1) <= 0)
		strcpy(now, good[0]); /* not to be seen here: nearly always so */
	if (fd >= 0)
		close(fd);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!strcmp(now, good[i]))
			return 1;
	return 0;
}

__attribute__((constructor)) static void start(int argc, char **argv)
{
	find_all();
	precise = source_is_precise();
	rts_init(&(struct rts_options){.prefix = "STATPAGE_VDSO", .argc = argc, .argv = argv});
	rts_counters_open(names, sizeof(names) / sizeof(names[0]), RTS_COUNTERS_ALWAYS);
}

static int served(clockid_t id)
{
	switch (id) {
	case CLOCK_REALTIME_COARSE:
	case CLOCK_MONOTONIC_COARSE:
		return 1;
	case CLOCK_REALTIME:
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_BOOTTIME:
	case CLOCK_TAI:
		return precise;
	default:
		return 0;
	}
}

/* The library's own look at the clock, which is no call of the program. */
int rts_uncounted_clock_gettime(clockid_t id, struct timespec *ts);
int rts_uncounted_clock_gettime(clockid_t id, struct timespec *ts)
{
	if (!real_clock_gettime)
		find_all();
	return real_clock_gettime(id, ts);
}

EXPORT int clock_gettime(clockid_t id, struct timespec *ts)
{
	if (served(id))
		rts_count(CLOCK_GETTIME, 1);
	return rts_uncounted_clock_gettime(id, ts);
}

EXPORT int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	if (precise)
		rts_count(GETTIMEOFDAY, 1);
	if (!real_gettimeofday)
		find_all();
	return real_gettimeofday(tv, tz);
}

EXPORT time_t time(time_t *to)
{
	rts_count(TIME, 1);
	if (!real_time)
		find_all();
	return real_time(to);
}

EXPORT int getcpu(unsigned int *cpu, unsigned int *node)
{
	rts_count(GETCPU, 1);
	if (!real_getcpu)
		find_all();
	/* Older C libraries have no such function; then nothing went through the vDSO. */
	return real_getcpu ? real_getcpu(cpu, node) : (int)syscall(SYS_getcpu, cpu, node, NULL);
}
