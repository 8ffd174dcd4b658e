// SPDX-License-Identifier: MIT
/* The engine of the module kstats.ko: everything goes through its text files in debugfs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/dist.h"
#include "uapi/kstats.h"
#include "uapi/kstats_bucket.h"

#define CONTROL KSTATS_DIR "/" KSTATS_CONTROL
#define NODES	KSTATS_DIR "/" KSTATS_NODES

/* NULL: the module's own. */
static const char *copy;

void engine_kmod_from(const char *dir)
{
	copy = dir;
}

bool engine_kmod_is_copy(void)
{
	return copy;
}

/* Under lockdown nothing in debugfs can be opened for writing, and what can be read is 0444. */
static bool locked_down(void)
{
	char buf[80] = "";
	int fd = open("/sys/kernel/security/lockdown", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 && !strstr(buf, "[none]");
}

/* Why a file of the module cannot be opened, from errno. */
static int no_file(const char *file, struct dist_why *why)
{
	int err = -errno;
	struct stat st;

	if (copy)
		return dist_fail(why, err, "%s: %s", file, strerror(-err));
	if (err == -EACCES || err == -EPERM) {
		if (locked_down())
			return dist_fail(why, -EROFS,
					 "%s: the kernel is locked down: debugfs cannot be "
					 "written to",
					 file);
		return dist_fail(why, err, "%s: permission denied: this needs root", file);
	}
	if (err != -ENOENT)
		return dist_fail(why, err, "%s: %s", file, strerror(-err));
	if (!stat(KSTATS_DIR, &st))
		return dist_fail(why, err, "no metric %s", file + sizeof(KSTATS_DIR));
	if (stat("/sys/kernel/debug", &st))
		return dist_fail(why, err, "no debugfs in this kernel, or no right to see it");
	return dist_fail(why, err,
			 "%s is not there: modprobe kstats, and debugfs must be mounted "
			 "and not off (debugfs=off)",
			 KSTATS_DIR);
}

/* Where debugfs is not to be seen, the module may still be there. */
static int probe(struct dist_why *why)
{
	DIR *d;
	int err;

	if (!copy) {
		err = access(NODES, R_OK) ? no_file(NODES, why) : 0;
		return err == -ENOENT && access("/sys/module/kstats", F_OK) ? -ENODEV : err;
	}
	d = opendir(copy);
	if (!d)
		return no_file(copy, why);
	closedir(d);
	return 0;
}

/* The reason is read back from the same open file. */
static void read_reason(int fd, struct dist_why *why)
{
	static const char key[] = "# error: ";
	char buf[512];
	ssize_t n = read(fd, buf, sizeof(buf) - 1);
	char *at;

	buf[n > 0 ? n : 0] = '\0';
	at = strstr(buf, key);
	if (at)
		dist_fail(why, 0, "%.*s", (int)strcspn(at + strlen(key), "\n"), at + strlen(key));
}

static int command(const char *text, struct dist_why *why)
{
	int fd, err = 0;

	fd = open(CONTROL, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return no_file(CONTROL, why);
	if (write(fd, text, strlen(text)) < 0) {
		err = -errno;
		dist_fail(why, err, "%s: %s", text, strerror(-err));
		read_reason(fd, why);
	}
	close(fd);
	return err;
}

/* A word that would become two, or none, must not change what the command means. */
static bool is_word(const char *s)
{
	return s && *s && !strpbrk(s, " \t\n");
}

static int trace(const struct dist_spec *spec, struct dist_why *why)
{
	char text[512], pid[24] = "", cpu[24] = "", active[32] = "";
	int n;

	if (!is_word(spec->name) || !is_word(spec->start) || (spec->end && !is_word(spec->end)) ||
	    (spec->comm && !is_word(spec->comm)))
		return dist_fail(why, -EINVAL, "names must not be empty or have blanks in them");
	if (spec->pid)
		snprintf(pid, sizeof(pid), " pid %d", spec->pid);
	if (spec->cpu >= 0)
		snprintf(cpu, sizeof(cpu), " cpu %d", spec->cpu);
	if (spec->maxactive)
		snprintf(active, sizeof(active), " maxactive %u", spec->maxactive);
	n = snprintf(text, sizeof(text), "trace %s start %s%s%s bits %u via %s%s%s%s%s%s%s%s",
		     spec->name, spec->start, spec->end ? " end " : "", spec->end ? spec->end : "",
		     spec->bits, spec->via ? spec->via : "auto", spec->by_cpu ? " by cpu" : "",
		     spec->gap ? "" : " gap no", pid, cpu, active, spec->comm ? " comm " : "",
		     spec->comm ? spec->comm : "");
	if (n > KSTATS_CONTROL_MAX)
		return dist_fail(why, -EINVAL,
				 "%s: the names are too long together: %d bytes, at "
				 "most %d",
				 spec->name, n, KSTATS_CONTROL_MAX);
	return command(text, why);
}

static int untrace(const char *name, struct dist_why *why)
{
	char text[300];

	if (!is_word(name))
		return dist_fail(why, -EINVAL, "a name must not be empty or have blanks in it");
	snprintf(text, sizeof(text), "remove %s", name);
	return command(text, why);
}

/* The number after a key in "key value key value ..."; 0 if there is none. */
static uint64_t number(const char *text, const char *key)
{
	size_t len = strlen(key);
	const char *at;

	for (at = text; (at = strstr(at, key)); at += len)
		if ((at == text || at[-1] == ' ') && at[len] == ' ')
			return strtoull(at + len, NULL, 10);
	return 0;
}

static void parse_ledger(const char *text, struct dist_ledger *l)
{
	static const char key[] = " missed-";
	const char *at = text;
	size_t len = 0;
	int n;

	memset(l, 0, sizeof(*l));
	l->attempted = number(text, "attempted");
	l->recorded = number(text, "recorded");
	l->missed = number(text, "missed");
	l->filtered = number(text, "filtered");
	l->stopped = number(text, "stopped");
	l->inside = number(text, "inside");
	l->unpaired = number(text, "unpaired");
	while ((at = strstr(at, key))) {
		at += strlen(key);
		n = (int)strcspn(at, " \n");
		n += 1 + (int)strcspn(at + n + 1, " \n");
		len += (size_t)snprintf(l->causes + len, sizeof(l->causes) - len, "%s%.*s",
					len ? " " : "", n, at);
		if (len >= sizeof(l->causes))
			break;
	}
}

static int parse_node(char *line, struct dist_node *node)
{
	char gap[8], *ledger = strstr(line, " attempted "), *note = strstr(line, " note ");

	memset(node, 0, sizeof(*node));
	if (!ledger ||
	    sscanf(line, "%63s start %127s end %127s bits %u by %7s via %15s gap %7s state %15s",
		   node->name, node->start, node->end, &node->bits, node->by, node->via, gap,
		   node->state) != 8)
		return -EPROTO;
	node->gap = !strcmp(gap, "yes");
	if (note)
		snprintf(node->note, sizeof(node->note), "%.*s", (int)strcspn(note + 6, "\n"),
			 note + 6);
	if (note)
		*note = '\0';
	parse_ledger(ledger, &node->ledger);
	return 0;
}

static int list(int (*fn)(const struct dist_node *node, void *data), void *data,
		struct dist_why *why)
{
	char path[PATH_MAX], line[1024];
	struct dist_node node;
	int err = 0;
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/" KSTATS_NODES, copy ? copy : KSTATS_DIR) >= PATH_MAX)
		return dist_fail(why, -ENAMETOOLONG, "%.200s: the path is too long", copy);
	f = fopen(path, "re");
	if (!f)
		return no_file(path, why);
	while (!err && fgets(line, sizeof(line), f)) {
		if (*line == '#') {
			memset(&node, 0, sizeof(node));
			snprintf(node.note, sizeof(node.note), "%.*s", (int)strcspn(line + 2, "\n"),
				 line + 2);
			err = fn(&node, data);
			continue;
		}
		err = parse_node(line, &node);
		if (err)
			dist_fail(why, err, "%.200s: not a line of this version: %.60s", path,
				  line);
		else
			err = fn(&node, data);
	}
	fclose(f);
	return err;
}

/* A comment line of a metric's file. */
static void parse_head(const char *line, struct dist_metric *to)
{
	size_t len = strcspn(line, "\n");
	const char *state = strstr(line, " state ");
	unsigned long long sum;

	line += 2;
	len = len > 2 ? len - 2 : 0;
	if (!strncmp(line, "bits ", 5) && state)
		sscanf(state, " state %15s", to->state);
	else if (!strncmp(line, "attempted ", 10))
		parse_ledger(line, &to->ledger);
	else if (!strncmp(line, "time ", 5) || !strncmp(line, "gap ", 4) ||
		 !strncmp(line, "samples ", 8))
		snprintf(to->origin, sizeof(to->origin), "%.*s", (int)len, line);
	else if (!strncmp(line, "sum ", 4)) {
		to->has_sum = true;
		to->sum = sscanf(line, "sum %llu", &sum) == 1 ? sum : UINT64_MAX;
	} else
		snprintf(to->notes + strlen(to->notes), sizeof(to->notes) - strlen(to->notes),
			 "%.*s\n", (int)len, line);
}

static struct hist *cpu_hist(struct dist_metric *to, unsigned int cpu, unsigned int bits)
{
	struct hist **cpus;

	if (cpu >= to->nr_cpus) {
		cpus = realloc(to->cpu, (cpu + 1) * sizeof(*cpus));
		if (!cpus)
			return NULL;
		memset(cpus + to->nr_cpus, 0, (cpu + 1 - to->nr_cpus) * sizeof(*cpus));
		to->cpu = cpus;
		to->nr_cpus = cpu + 1;
	}
	if (!to->cpu[cpu])
		to->cpu[cpu] = hist_new(bits);
	return to->cpu[cpu];
}

/* "slot 55  CPU  0    count 589 avg 480 p 0.027613" */
static int parse_row(const char *line, struct dist_metric *to)
{
	unsigned long long count, avg;
	unsigned int slot, cpu;
	uint64_t sum;
	struct hist *h;
	char kind;

	if (sscanf(line, "slot %u CPU%c %u count %llu avg %llu p ", &slot, &kind, &cpu, &count,
		   &avg) != 5 ||
	    (kind != ' ' && kind != 'S') || (kind == ' ' && cpu >= 1 << 16))
		return -EPROTO;
	h = kind == 'S' ? to->all : cpu_hist(to, cpu, to->all->bits);
	if (!h)
		return -ENOMEM;
	if (__builtin_mul_overflow(count, avg, &sum))
		sum = UINT64_MAX;
	return hist_add_slot(h, slot, count, sum) ? -EPROTO : 0;
}

int engine_kmod_parse(FILE *f, const char *name, struct dist_metric *to, struct dist_why *why)
{
	unsigned int bits, nr = 0;
	char line[1024];
	int err = 0;

	memset(to, 0, sizeof(*to));
	while (!err && fgets(line, sizeof(line), f)) {
		nr++;
		if (nr == 1) {
			err = sscanf(line, "# bits %u ", &bits) == 1 && bits <= KSTATS_MAX_BITS ?
				      0 :
				      -EPROTO;
			if (!err && !(to->all = hist_new(bits)))
				err = -ENOMEM;
		}
		if (!err && *line == '#')
			parse_head(line, to);
		else if (!err)
			err = parse_row(line, to);
	}
	if (!err && ferror(f))
		err = errno ? -errno : -EIO;
	if (!err && !nr)
		err = -EPROTO;
	/* Rows have rounded averages. */
	if (!err && to->has_sum)
		to->all->sum = to->sum;
	if (!err)
		return 0;
	dist_metric_free(to);
	if (err == -EPROTO)
		return dist_fail(why, err, "%s: line %u is not of a kstats table: %.*s", name, nr,
				 (int)strcspn(line, "\n"), nr ? line : "");
	return dist_fail(why, err, "%s: %s", name, strerror(-err));
}

/* A metric's path; names come from a user and must stay inside the directory. */
static int path_of(const char *name, char *path, size_t size, struct dist_why *why)
{
	if (!*name || *name == '_' || !name[strspn(name, ".")] || strchr(name, '/') ||
	    strlen(name) > KSTATS_NAME_MAX)
		return dist_fail(why, -EINVAL, "'%.64s' is not a metric's name", name);
	if ((size_t)snprintf(path, size, "%s/%s", copy ? copy : KSTATS_DIR, name) >= size)
		return dist_fail(why, -ENAMETOOLONG, "%.200s: the path is too long", copy);
	return 0;
}

static int is_metric(const struct dirent *d)
{
	return *d->d_name != '_' && d->d_name[strspn(d->d_name, ".")];
}

static int metrics(int (*fn)(const char *name, void *data), void *data, struct dist_why *why)
{
	const char *dir = copy ? copy : KSTATS_DIR;
	struct dirent **names;
	int err = 0, i, nr = scandir(dir, &names, is_metric, alphasort);

	if (nr < 0)
		return no_file(dir, why);
	for (i = 0; i < nr; i++) {
		if (!err)
			err = fn(names[i]->d_name, data);
		free(names[i]);
	}
	free(names);
	return err;
}

static int try_here(struct dist_why *why)
{
	int err = probe(why);

	return err ? err : dist_fail(why, 0, "kstats is loaded and its files can be read");
}

static bool has(const char *name)
{
	struct dist_why why;
	char path[200];

	return !path_of(name, path, sizeof(path), &why) && !access(path, F_OK);
}

static int read_metric(const char *name, struct dist_metric *to, struct dist_why *why)
{
	char path[PATH_MAX];
	int err = path_of(name, path, sizeof(path), why);
	FILE *f;

	if (err)
		return err;
	f = fopen(path, "re");
	if (!f)
		return no_file(path, why);
	err = engine_kmod_parse(f, name, to, why);
	fclose(f);
	return err;
}

static int act(const char *name, enum dist_action action, struct dist_why *why)
{
	static const char *const word[] = {"start", "stop", "reset"};
	char path[PATH_MAX];
	int err = path_of(name, path, sizeof(path), why), fd;

	if (err)
		return err;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return no_file(path, why);
	if (write(fd, word[action], strlen(word[action])) < 0)
		err = dist_fail(why, -errno, "%s %s: %s", word[action], name,
				errno == EIO ? "the TSC was marked unstable: load kstats anew" :
					       strerror(errno));
	close(fd);
	return err;
}

const struct dist_engine engine_kmod = {
	.name = "kmod",
	.probe = probe,
	.try = try_here,
	.has = has,
	.trace = trace,
	.untrace = untrace,
	.list = list,
	.metrics = metrics,
	.read = read_metric,
	.act = act,
};
