// SPDX-License-Identifier: GPL-2.0
/*
 * statpage record: what the viewing commands show, at each interval, into a file that they can replay. A line of
 * JSON is a whole instant: it is made in memory and written at once, so that a file that is cut short lacks
 * its end and nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "lib/cpus.h"
#include "lib/fmt_dist.h"
#include "lib/fmt_top.h"
#include "lib/record.h"
#include "tools/cmd.h"
#include "tools/cpu_table.h"
#include "tools/dist_view.h"
#include "tools/pace.h"
#include "uapi/kstats.h"

static const char usage[] =
	"record -o FILE [OPTION...] [NAME...]\n"
	"\n"
	"Record what show, ls, cpu and top would show, at each interval, until ^C, SIGTERM or SIGHUP. These commands\n"
	"and export look at it with --replay FILE, on any machine; report takes it as it is. docs/json.md has the format.\n"
	"\n"
	"  -o, --output FILE  where it goes; - for standard output. A file that is there becomes FILE.old\n"
	"  --interval T       look each T (500ms, 1.5s, 2m; from 1ms to 24h); default: 1s\n"
	"  --for TIME         end after this time\n"
	"  -p, --pid PID      only the threads of this process, and end with it; may be given more than once\n"
	"  --from DIR         distributions of a copy of /sys/kernel/debug/kstats\n"
	"  -h, --help\n"
	"\n"
	"NAMEs are metrics to record; default: all, also those that are traced later.\n";

#define MAX_PIDS 64

struct recorder {
	const char *file; /* as messages name it */
	int fd;
	off_t whole; /* bytes up to here are whole lines */
	uint64_t instants;
	char *const *names; /* ends with NULL; none: all metrics */
	const char *from;
	uint64_t interval_ns, for_ns; /* for_ns 0: until a signal */
	pid_t pid[MAX_PIDS];
	unsigned int nr_pids;
	struct threads *threads[MAX_PIDS];
	unsigned int nr_threads;
	struct thread_list list;
	char *text; /* of a line in the making */
	size_t len;
	FILE *f;
	const struct dist_engine *engine; /* whose metrics are being read */
	const char *comma;
	bool warned;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* ---- lines ---- */

static int begin_line(struct recorder *r)
{
	r->f = open_memstream(&r->text, &r->len);
	return r->f ? 0 : cmd_err("%s", strerror(errno));
}

static int write_all(int fd, const char *text, size_t len)
{
	ssize_t n;

	for (; len; text += n, len -= (size_t)n) {
		n = write(fd, text, len);
		if (n < 0 && errno == EINTR)
			n = 0;
		if (n < 0)
			return -1;
	}
	return 0;
}

/* A line that does not fit is taken back, and a file without any instant with it. */
static int write_failed(struct recorder *r)
{
	int err = errno;
	struct stat st;

	if (!fstat(r->fd, &st) && S_ISREG(st.st_mode) && r->fd != STDOUT_FILENO) {
		if (!r->instants)
			unlink(r->file);
		else if (ftruncate(r->fd, r->whole))
			err = errno;
	}
	return cmd_err("%s: %s; %" PRIu64 " instants are recorded", r->file, strerror(err),
		       r->instants);
}

static int end_line(struct recorder *r)
{
	bool bad = ferror(r->f);
	int ret = 0;

	if (fclose(r->f) || bad)
		ret = cmd_err("%s", strerror(ENOMEM));
	else if (write_all(r->fd, r->text, r->len))
		ret = write_failed(r);
	else
		r->whole += (off_t)r->len;
	free(r->text);
	r->text = NULL;
	return ret;
}

/* ---- distributions ---- */

static bool wanted(const struct recorder *r, const char *name)
{
	char *const *n;

	for (n = r->names; *n; n++)
		if (!strcmp(*n, name))
			return true;
	return !r->names[0];
}

/* A node is also its gaps' node. */
static bool wanted_node(const struct recorder *r, const char *name)
{
	char gap[sizeof(((struct dist_node *)0)->name) + sizeof(KSTATS_GAP_PREFIX)];

	snprintf(gap, sizeof(gap), KSTATS_GAP_PREFIX "%s", name);
	return wanted(r, name) || wanted(r, gap);
}

static void warn_once(struct recorder *r, const char *text)
{
	if (!r->warned)
		cmd_err("%s", text);
	r->warned = true;
}

/* A metric that went away since it was listed is not there. */
static int put_metric(const char *name, void *data)
{
	struct recorder *r = data;
	struct dist_metric m;
	struct dist_why why;
	int err;

	if (!wanted(r, name))
		return 0;
	err = r->engine->read(name, &m, &why);
	if (err) {
		if (err != -ENOENT)
			warn_once(r, why.text);
		return 0;
	}
	fputs(r->comma, r->f);
	r->comma = ",";
	fmt_dist_json_whole(r->f, r->engine->name, name, &m);
	dist_metric_free(&m);
	return 0;
}

static int put_node(const struct dist_node *n, void *data)
{
	struct recorder *r = data;

	if (n->name[0] && !wanted_node(r, n->name))
		return 0;
	fputs(r->comma, r->f);
	r->comma = ",";
	fmt_dist_node_json(r->f, r->engine->name, n);
	return 0;
}

/* The list of nodes is left out whole where one engine's cannot be read: part of it would look like all. */
static void put_nodes(struct recorder *r, const struct dist_engine *const *engines)
{
	FILE *line = r->f;
	struct dist_why why;
	char *text = NULL;
	size_t len = 0;
	int err = 0;

	r->f = open_memstream(&text, &len);
	for (r->comma = ""; r->f && !err && *engines; engines++) {
		r->engine = *engines;
		err = r->engine->list(put_node, r, &why);
	}
	if (r->f && fclose(r->f))
		err = -ENOMEM;
	if (r->f && !err)
		fprintf(line, ",\"nodes\":[%s]", text);
	free(text);
	r->f = line;
}

static void put_dists(struct recorder *r)
{
	struct dist_why why;
	const struct dist_engine *const *engines = dist_engines_now(&why), *const * e;

	if (!engines) {
		fputs(",\"no_distributions\":", r->f);
		fmt_top_string(r->f, why.text);
		return;
	}
	fputs(",\"dist_engines\":[", r->f);
	for (e = engines; *e; e++)
		fprintf(r->f, "%s\"%s\"", e == engines ? "" : ",", (*e)->name);
	fputs("],\"distributions\":[", r->f);
	r->comma = "";
	for (e = engines; *e; e++) {
		r->engine = *e;
		why.text[0] = '\0';
		if ((*e)->metrics(put_metric, r, &why))
			warn_once(r, why.text);
	}
	fputc(']', r->f);
	put_nodes(r, engines);
}

/* ---- CPUs ---- */

/* Times of /proc/stat in the shape of the page. Returns their source, or NULL and why. */
static const char *to_table(const struct cpus *c, struct cpu_table *t, char *why, size_t len)
{
	int most = c->row[c->nr - 1].cpu;
	struct csf_cpu_row *row = calloc((size_t)most + 1, sizeof(*row));

	/* The page that was busy just now knows more than these times. */
	if (!row || strcmp(c->source, "/proc/stat")) {
		snprintf(why, len, "%s", row ? "the cpu page was busy" : strerror(ENOMEM));
		free(row);
		return NULL;
	}
	cpu_table_free(t);
	*t = (struct cpu_table){.cpu = row};
	t->sum.nr_cpus = (uint32_t)most + 1;
	t->sum.update_mono_ns = c->mono_ns;
	memcpy(&t->sum.row.user_ns, c->row[0].ns, sizeof(c->row[0].ns));
	for (size_t i = 1; i < c->nr; i++) {
		row = &t->cpu[c->row[i].cpu];
		row->flags = CSF_CPU_POSSIBLE | CSF_CPU_ONLINE;
		memcpy(&row->user_ns, c->row[i].ns, sizeof(c->row[i].ns));
	}
	return c->source;
}

/* The page is mapped no longer than it takes: while it is, the kernel refreshes it. */
static void put_cpus(struct recorder *r)
{
	struct cpu_table t = {0};
	struct cpus c = {0};
	char why[200];
	const char *source = NULL;

	fputs(",\"cpu\":", r->f);
	if (!cpu_table_read(&t))
		source = "coarse_stat_fs";
	else if (!cpus_read(&c, why, sizeof(why)))
		source = to_table(&c, &t, why, sizeof(why));
	if (source) {
		cpu_table_json(r->f, &t, source);
	} else {
		fputs("{\"absent\":", r->f);
		fmt_top_string(r->f, why);
		fputc('}', r->f);
	}
	csf_cpu_close();
	cpu_table_free(&t);
	cpus_free(&c);
}

/* ---- threads ---- */

static int open_threads(struct recorder *r)
{
	unsigned int nr = r->nr_pids ? r->nr_pids : 1;
	char why[300];
	int err;

	for (; r->nr_threads < nr; r->nr_threads++) {
		err = threads_open(&r->threads[r->nr_threads], NULL, r->pid[r->nr_threads], why,
				   sizeof(why));
		if (err)
			return err == -EINVAL ? cmd_usage("%s", why) : cmd_err("%s", why);
	}
	return 0;
}

static void close_threads(struct recorder *r, unsigned int i)
{
	threads_close(r->threads[i]);
	r->threads[i] = r->threads[--r->nr_threads];
}

/* In the order of pid and tid, as threads_sample() has them. */
static int put_threads(struct recorder *r)
{
	const char *comma = "";
	char why[300];
	unsigned int i;
	int err;

	fputs(",\"threads\":[", r->f);
	for (i = 0; i < r->nr_threads;) {
		err = threads_sample(r->threads[i], &r->list, why, sizeof(why));
		if (err == -ESRCH) {
			close_threads(r, i);
			continue;
		}
		if (err)
			return cmd_err("%s", why);
		for (size_t k = 0; k < r->list.nr; k++) {
			fputs(comma, r->f);
			comma = ",";
			fmt_top_sample_json(r->f, &r->list.v[k]);
		}
		i++;
	}
	fputc(']', r->f);
	return 0;
}

/* ---- the file ---- */

static void put_thread_engines(struct recorder *r)
{
	const struct thread_engine *e;

	fputs(",\"thread_engines\":[", r->f);
	for (unsigned int i = 0; (e = threads_engine(r->threads[0], i)); i++) {
		fprintf(r->f, "%s{\"name\":\"%s\",\"cannot_see\":", i ? "," : "", e->name);
		fmt_top_string(r->f, e->cannot_see);
		fputc('}', r->f);
	}
	fputc(']', r->f);
}

static int put_head(struct recorder *r)
{
	uint64_t real = clock_ns(CLOCK_REALTIME);
	struct utsname uts = {0};

	if (begin_line(r))
		return CMD_FAILED;
	uname(&uts);
	fprintf(r->f,
		"{\"format\":\"statpage-record\",\"version\":1,\"statpage\":\"" STATPAGE_VERSION
		"\",\"host\":");
	fmt_top_string(r->f, uts.nodename);
	fputs(",\"release\":", r->f);
	fmt_top_string(r->f, uts.release);
	fputs(",\"machine\":", r->f);
	fmt_top_string(r->f, uts.machine);
	fprintf(r->f,
		",\"realtime_ns\":%" PRIu64 ",\"boot_realtime_ns\":%" PRIu64
		",\"clock\":\"monotonic\",\"interval_ns\":%" PRIu64 ",\"cpus\":%ld",
		real, real - clock_ns(CLOCK_BOOTTIME), r->interval_ns,
		sysconf(_SC_NPROCESSORS_CONF));
	put_thread_engines(r);
	fputs("}\n", r->f);
	return end_line(r);
}

static int put_instant(struct recorder *r)
{
	int ret;

	if (begin_line(r))
		return CMD_FAILED;
	fprintf(r->f, "{\"time_ns\":%" PRIu64 ",\"realtime_ns\":%" PRIu64,
		clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_REALTIME));
	put_dists(r);
	put_cpus(r);
	ret = put_threads(r);
	fputs("}\n", r->f);
	if (ret) {
		fclose(r->f);
		free(r->text);
		return ret;
	}
	ret = end_line(r);
	r->instants += !ret;
	return ret;
}

static int put_end(struct recorder *r, const char *why)
{
	if (begin_line(r))
		return CMD_FAILED;
	fprintf(r->f, "{\"end\":\"%s\",\"instants\":%" PRIu64 "}\n", why, r->instants);
	return end_line(r);
}

/* As perf record does: what was recorded before is not lost, but by the second time. */
static int open_file(struct recorder *r)
{
	struct stat st;
	char *old;
	int ret = 0;

	if (!strcmp(r->file, "-")) {
		r->file = "standard output";
		r->fd = STDOUT_FILENO;
		return 0;
	}
	if (!stat(r->file, &st) && S_ISREG(st.st_mode) && st.st_size) {
		if (asprintf(&old, "%s.old", r->file) < 0)
			return cmd_err("%s", strerror(ENOMEM));
		if (rename(r->file, old))
			ret = cmd_err("%s: cannot become %s: %s", r->file, old, strerror(errno));
		free(old);
	}
	if (ret)
		return ret;
	r->fd = open(r->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return r->fd < 0 ? cmd_err("%s: %s", r->file, strerror(errno)) : 0;
}

/* The last instant is as of the end, whatever ends it. */
static int record(struct recorder *r, int signals)
{
	uint64_t start = pace_now(), end = r->for_ns ? start + r->for_ns : UINT64_MAX;
	const char *why = NULL;
	int ret = put_head(r);

	while (!ret) {
		ret = put_instant(r);
		if (ret || why)
			break;
		if (!r->nr_threads) {
			why = "processes";
			break;
		}
		if (pace_wait(signals, start, r->interval_ns, end))
			why = "signal";
		else if (pace_now() >= end)
			why = "duration";
	}
	return ret ? ret : put_end(r, why);
}

static int run(struct recorder *r)
{
	const struct dist_engine *const *engines;
	struct dist_metric m;
	struct dist_why why;
	int signals, ret;

	if (r->names[0] || r->from) {
		engines = dist_engines_now(&why);
		if (!engines)
			return cmd_err("%s", why.text);
		for (char *const *n = r->names; *n; n++) {
			if (dist_engine_of(engines, *n)->read(*n, &m, &why))
				return cmd_err("%s", why.text);
			dist_metric_free(&m);
		}
	}
	ret = open_threads(r);
	signals = ret ? -1 : pace_signals(SIGHUP);
	if (!ret && signals < 0)
		ret = CMD_FAILED;
	if (!ret)
		ret = open_file(r);
	if (!ret) {
		ret = record(r, signals);
		if (r->fd != STDOUT_FILENO && close(r->fd) && !ret)
			ret = write_failed(r);
	}
	if (signals >= 0)
		close(signals);
	while (r->nr_threads)
		close_threads(r, r->nr_threads - 1);
	thread_list_free(&r->list);
	return ret;
}

static int add_pid(struct recorder *r, const char *text)
{
	double pid;

	if (cmd_number("PID", text, 1, 4194304, &pid))
		return CMD_USAGE;
	if (pid != (double)(pid_t)pid)
		return cmd_usage("PID is a whole number, not '%s'", text);
	for (unsigned int i = 0; i < r->nr_pids; i++)
		if (r->pid[i] == (pid_t)pid)
			return 0;
	if (r->nr_pids == MAX_PIDS)
		return cmd_usage("-p: at most %d", MAX_PIDS);
	r->pid[r->nr_pids++] = (pid_t)pid;
	return 0;
}

int cmd_record(int argc, char **argv)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'},
		{"interval", required_argument, NULL, 'i'},
		{"for", required_argument, NULL, 't'},
		{"pid", required_argument, NULL, 'p'},
		{"from", required_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct recorder r = {.interval_ns = 1000000000u};
	int c, ret = 0;

	while (!ret && (c = getopt_long(argc, argv, "o:p:h", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			r.file = optarg;
			break;
		case 'i':
			ret = pace_duration("--interval", optarg, &r.interval_ns);
			break;
		case 't':
			ret = pace_duration("--for", optarg, &r.for_ns);
			break;
		case 'p':
			ret = add_pid(&r, optarg);
			break;
		case 'f':
			r.from = optarg;
			engine_kmod_from(optarg);
			break;
		case 'h':
			cmd_help(usage);
			return 0;
		default:
			return CMD_USAGE;
		}
	}
	if (ret)
		return ret;
	if (!r.file || !*r.file)
		return cmd_usage("expected -o FILE, where the recording goes");
	r.names = argv + optind;
	return run(&r);
}
