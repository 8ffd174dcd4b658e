/* SPDX-License-Identifier: GPL-2.0 */
/* A program that embeds lib/rts and uses all of it, so that every key of its records can be seen. */
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/rts/rts.h"

static int fds[2];

static void *reader(void *arg)
{
	char c;
	long n;

	RTS_CALL(n, RTS_ABI_NATIVE, SYS_read, read(fds[0], &c, 1));
	(void)n;
	return arg;
}

static void run_vcpu(int halts_known)
{
	struct rts_run run;

	rts_vcpu_start(-1);
	if (halts_known)
		rts_vcpu_halted(0);
	for (unsigned int reason = 0; reason < 3; reason++) {
		rts_vcpu_begin(&run);
		rts_vcpu_end(&run, reason, reason == 1);
	}
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"fast_reads", NULL, "fast_writes"};
	pthread_t t;
	long ret;

	rts_init(&(struct rts_options){.argc = argc, .argv = argv});
	rts_step("init");
	rts_counters_open(names, 3, 0);
	rts_count(0, 3);
	rts_count(12, 1);
	if (pipe(fds) || pthread_create(&t, NULL, reader, NULL))
		return 1;
	for (int i = 0; i < 10; i++)
		RTS_CALL(ret, RTS_ABI_NATIVE, SYS_close, close(9999));
	(void)ret;
	if (rts_on())
		run_vcpu(argc > 1);
	usleep(50000);
	rts_step("work");
	/* The reader is in flight still. */
	rts_finish(0);
	return 0;
}
