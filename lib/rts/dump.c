/* SPDX-License-Identifier: MIT */
/* One record: gathered, put into words in memory, written in one piece. The dump lock is held. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

_Static_assert(RTS_X86_64 == (int)RTS_ABI_X86_64 && RTS_I386 == (int)RTS_ABI_I386 &&
		       RTS_X32 == (int)RTS_ABI_X32 && RTS_OTHER == (int)RTS_ABI_OTHER &&
		       NR_ABIS == (int)RTS_NR_ABIS,
	       "one numbering of ABIs");

/* rts_fmt_json(): 1 MiB for 1,000 rows. */
#define TEXT_SIZE (4u << 20)

static const struct rts_engine engine = {
	.name = "embedded",
	.split_absent = "the library takes wall time only",
	.cannot_see = "calls the program does not pass through the library",
};

static char *text; /* after a newline, which rts_output_write() may need */

int rts_dump_init(void)
{
	text = rts_os_map(NULL, TEXT_SIZE, false);
	if (!text)
		return -ENOMEM;
	*text++ = '\n';
	return rts_merge_init();
}

static uint64_t ns(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * 1000000000u + (uint64_t)tv.tv_usec * 1000u;
}

static void add_self(struct rts_record *r, char *comm)
{
	struct timespec real;
	struct rusage ru;

	rts_os_who(&r->pid, &r->ppid, comm);
	r->ns_pid = (int32_t)getpid();
	r->comm = comm[0] ? comm : NULL;
	rts_clock(&r->time_ns);
	if (!clock_gettime(CLOCK_REALTIME, &real))
		r->realtime_ns = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
	if (!getrusage(RUSAGE_SELF, &ru)) {
		r->has_cpu = true;
		r->user_ns = ns(ru.ru_utime);
		r->system_ns = ns(ru.ru_stime);
	}
}

static void add_life(struct rts_record *r)
{
	r->seq = rts_life.seq;
	r->execs = rts_life.execs;
	r->start_ns = rts_life.start_ns;
	r->argv = (const char *const *)rts_life.argv;
	r->argc = rts_life.argc;
	r->argv_cut = rts_life.argv_cut;
}

static void add_counts(struct rts_record *r, struct merged *m)
{
	r->rows = m->rows;
	r->nr_rows = m->nr_rows;
	r->in_flight = m->in_flight;
	r->nr_in_flight = m->nr_in_flight;
	r->no_return = m->no_return;
	r->nr_no_return = m->nr_no_return;
	r->vcpu = m->has_vcpu ? &m->vcpu : NULL;
	r->has_ledger = true;
	r->lost = m->lost;
	r->lost.records_dropped = rts_life.dropped;
	r->engine = &engine;
}

static int put_text(const struct rts_record *r, size_t *len)
{
	struct rts_buf b = {.p = text, .cap = TEXT_SIZE - 1};
	int ret;

	if (rts_cfg.format == RTS_SUMMARY)
		ret = rts_fmt_summary(&b, r, r->reason == RTS_SIGNAL ? RTS_SUMMARY_SHORT : 0);
	else
		ret = rts_fmt_json(&b, r);
	if (rts_cfg.format != RTS_SUMMARY)
		rts_putc(&b, '\n');
	*len = b.len;
	return b.cut ? -ENOSPC : ret;
}

int rts_dump_write(enum rts_reason reason, bool final, int status, unsigned int generation)
{
	static struct merged m;
	struct rts_counter counters[RTS_NR_COUNTERS];
	struct rts_record r = {.reason = reason, .final = final};
	char comm[16];
	size_t len;
	int ret;

	add_self(&r, comm);
	rts_merge(generation, final || reason == RTS_EXEC, &m);
	add_life(&r);
	add_counts(&r, &m);
	r.has_exit = status >= 0;
	r.exit_code = status;
	r.has_counters = rts_counters;
	r.counters = counters;
	r.nr_counters = rts_counters_read(counters, reason == RTS_EXEC);
	r.nr_phases = rts_steps_read(&r.phases);
	ret = put_text(&r, &len);
	if (!ret)
		ret = rts_output_write(text, len);
	if (ret)
		rts_life.dropped++;
	rts_life.seq++;
	return ret;
}
