// SPDX-License-Identifier: GPL-2.0
/* statpage self: the smallest use of the reader, on a workload that everybody can check by eye. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/coarse_stat_fs.h"
#include "tools/cmd.h"

static const char usage[] =
	"self [--json] MS\n"
	"\n"
	"Sleep for half of MS milliseconds, spin for the other half, and print where this thread's wall time\n"
	"went, by its page of coarse_stat_fs.\n"
	"\n"
	"  --json   one JSON object. Keys: sleep_ms, spin_ms (what was asked for); tid, cpu; wall_ns, which is\n"
	"           the sum of oncpu_ns, runq_ns, sleep_ns, dsleep_ns, iowait_ns; nr_preempt, nr_block,\n"
	"           nr_migrate; min_flt, maj_flt; syscr, syscw; read_bytes, write_bytes. All but the first four\n"
	"           are differences. A number that this kernel does not keep has no key.\n";

static void spin_ms(unsigned int ms)
{
	struct timespec ts;
	long long end;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	end = ts.tv_sec * 1000000000LL + ts.tv_nsec + ms * 1000000LL;
	do
		clock_gettime(CLOCK_MONOTONIC, &ts);
	while (ts.tv_sec * 1000000000LL + ts.tv_nsec < end);
}

static void sleep_ms(unsigned int ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static void put(const char *key, unsigned long long from, unsigned long long to)
{
	printf(",\"%s\":%llu", key, to - from);
}

static void print_json(const struct csf_snap *a, const struct csf_snap *b, const struct csf_diff *d)
{
	static const char *const bucket[CSF_NR_STATES] = {"oncpu_ns", "runq_ns", "sleep_ns",
							  "dsleep_ns", "iowait_ns"};
	int i;

	printf(",\"tid\":%u,\"cpu\":%u", b->p.tid, b->p.cpu);
	put("wall_ns", 0, d->wall_ns);
	for (i = 0; i < CSF_NR_STATES; i++)
		put(bucket[i], 0, d->ns[i]);
#define PUT(field)                                            \
	do {                                                  \
		if (CSF_HAS(&b->p, struct csf_thread, field)) \
			put(#field, a->p.field, b->p.field);  \
	} while (0)
	PUT(nr_preempt);
	PUT(nr_block);
	PUT(nr_migrate);
	PUT(min_flt);
	PUT(maj_flt);
	if (!(b->p.hdr.absent & CSF_ABSENT_SYSC)) {
		PUT(syscr);
		PUT(syscw);
	}
	if (!(b->p.hdr.absent & CSF_ABSENT_IO)) {
		PUT(read_bytes);
		PUT(write_bytes);
	}
#undef PUT
}

static int measure(unsigned int ms, bool json)
{
	const unsigned int asleep = ms / 2, spun = ms - asleep;
	struct csf_snap a, b;
	char buf[CSF_DIFF_BUFSZ];
	struct csf_diff d;

	if (csf_thread_snap(&a))
		return cmd_csf_err("thread-self");
	sleep_ms(asleep);
	spin_ms(spun);
	if (csf_thread_snap(&b))
		return cmd_csf_err("thread-self");
	if (csf_diff(&d, &a, &b) || csf_format_diff(buf, sizeof(buf), &a, &b) < 0)
		return cmd_err("the accounting of this thread began anew in between");
	if (json) {
		printf("{\"sleep_ms\":%u,\"spin_ms\":%u", asleep, spun);
		print_json(&a, &b, &d);
		puts("}");
	} else {
		printf("sleep %u ms + spin %u ms: %s\n", asleep, spun, buf);
	}
	return 0;
}

int cmd_self(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	bool json = false;
	double ms;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 'h':
			cmd_help(usage);
			return 0;
		default:
			return CMD_USAGE;
		}
	}
	if (optind != argc - 1)
		return cmd_usage("self needs the number of milliseconds, and nothing else");
	if (cmd_number("MS", argv[optind], 1, 86400000, &ms))
		return CMD_USAGE;
	if (ms != (unsigned int)ms)
		return cmd_usage("MS is a whole number, not '%s'", argv[optind]);
	return measure((unsigned int)ms, json);
}
