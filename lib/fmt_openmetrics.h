/* SPDX-License-Identifier: MIT */
/*
 * What an exporter tells at one moment, as text that Prometheus reads. Pure: nothing is read but what is
 * given, nothing written but to f. Names and labels are in docs/fleet.md.
 */
#ifndef LIB_FMT_OPENMETRICS_H
#define LIB_FMT_OPENMETRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/dist.h"
#include "lib/threads.h"
#include "uapi/coarse_stat_fs.h"

enum om_dialect {
	OM_PROMETHEUS,	/* text format 0.0.4: node_exporter's textfile collector, promtool */
	OM_OPENMETRICS, /* 1.0 */
};

/*
 * Buckets of distributions: slots of this many bits from the one that holds low to the one that holds
 * high, and one below them. Machines whose buckets are to be added up need the same: they are all there,
 * empty or not. A metric of fewer bits has its own, which are fewer.
 */
struct om_buckets {
	unsigned int bits;
	uint64_t low, high; /* ns, OM_LEAST_NS .. OM_MOST_NS */
};

#define OM_LEAST_NS 10ull
#define OM_MOST_NS  3600000000000ull

struct om_metric {
	char name[64];
	struct dist_metric m; /* cpu[] is not looked at */
};

/* The cpu page, of one refresh. */
struct om_cpus {
	const struct csf_cpu_row *row; /* by CPU id; flags is 0 where no CPU can be */
	unsigned int nr;
	uint64_t update_mono_ns, nr_updates, nr_corrected;
	uint32_t period_us, tick_ns;
};

/* Time and counts of the threads of all processes of a name, as one engine saw them. */
struct om_process {
	char comm[64];
	const char *engine;
	unsigned int threads; /* now */
	unsigned int known;   /* which of value[], as in lib/threads.h */
	bool has_off;
	uint64_t off_ns; /* wall time that is in no bucket that the engine knows */
	uint64_t value[THREAD_NR_FIELDS];
};

struct om_part {
	const char *name, *engine;
	bool up; /* it could be read; else nothing else is told of it */
};

/* Everything is borrowed. */
struct om_scrape {
	enum om_dialect dialect;
	struct om_buckets buckets;
	const char *version;
	const char *release; /* of the kernel; NULL: not known */
	const struct om_part *part;
	const struct om_metric *metric;
	const struct om_cpus *cpus; /* NULL: none */
	const struct om_process *process;
	unsigned int nr_parts, nr_metrics, nr_processes;
	unsigned int unread; /* metrics that are there and could not be read */
	uint64_t collect_ns; /* what collecting all this took */
};

void fmt_openmetrics(FILE *f, const struct om_scrape *s);

/* ns as seconds, to the last digit: 0.25, 1.27e-07. The shortest text, as Prometheus writes it itself. */
void fmt_om_seconds(FILE *f, uint64_t ns);

#endif /* LIB_FMT_OPENMETRICS_H */
