/* SPDX-License-Identifier: GPL-2.0 */
/* statpage run and statpage attach: what a whole process tree did, seen from outside. */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/engine.h"
#include "tools/cmd.h"
#include "tools/pace.h"
#include "tools/run_output.h"

#define NOT_EXECUTABLE 126
#define NOT_FOUND      127

/* The first is the one that always works. */
static const struct run_engine *const engines[] = {&engine_ptrace, &engine_bpf};

static const char options_help[] =
	"  -f, --format F     summary (default), json: one document, jsonl: a line a record\n"
	"  -o, --output OUT   a file (jsonl is appended to it, else it is replaced), or a folder: one\n"
	"                     file a process, named by its pid, and tree.*; default: standard error\n"
	"      --interval T   jsonl: a record of every process each T: 1ms to 24h, as 500ms, 1.5s,\n"
	"                     2m or 1h\n"
	"      --signal SIG   a snapshot of every process when statpage gets SIG (USR1, RTMIN+1, 10):\n"
	"                     jsonl lines, or a summary's short form; json prints one document only\n"
	"      --engine E     bpf: watches from the kernel, needs root and costs a small part; ptrace:\n"
	"                     stops the program at each call; auto (default): bpf where it can be used\n"
	"      --pin[=CPU]    watcher and program share one CPU: several times cheaper a call, but the\n"
	"                     program sees it and cannot run in parallel\n"
	"      --no-split     do not tell on-CPU from waiting time; with several threads a call costs a tenth less\n"
	"      --kvm-stats    fetch KVM's statistics of virtual CPUs: needs a call made inside the\n"
	"                     program, never made in one with a seccomp filter\n"
	"  -h, --help\n";

static void run_help(void)
{
	printf("usage: statpage run [OPTION...] [--] COMMAND [ARGUMENT...]\n\n"
	       "Run a command and count the system calls of it and of all it starts. No privileges\n"
	       "are needed. The exit status is the command's, 128+n if signal n ended it, 127 if it\n"
	       "was not found, 126 if it could not be executed.\n\n%s\n"
	       "SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the command; a second one, 100 ms\n"
	       "later or more, ends the watch: records are written and the command goes on, unwatched.\n"
	       "Of ^C on the terminal, which the command gets anyway, two within a second are needed.\n",
	       options_help);
}

static void attach_help(void)
{
	printf("usage: statpage attach [OPTION...] -p PID | --cgroup PATH\n\n"
	       "Count the system calls of a running process, of all its threads and of all it starts\n"
	       "from now on, until it ends or SIGINT or SIGTERM ends the watch; it goes on then.\n"
	       "The engine ptrace interrupts a call that waits, and it is restarted once, as by any stop\n"
	       "and continue.\n\n"
	       "  -p, --pid PID\n"
	       "      --cgroup PATH  all processes of this directory of cgroup v2 and below, now or later,\n"
	       "                     and all they start, until it is removed; who leaves stays watched\n%s",
	       options_help);
}

/* USR1, SIGUSR1, RTMIN+2, 10; 0: not that, or one that is needed otherwise. */
static int parse_signal(const char *text)
{
	static const struct {
		const char *name;
		int sig;
	} names[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"WINCH", SIGWINCH}, {"URG", SIGURG}};
	char *end;
	long n = strtol(text, &end, 10);

	if (end != text && !*end)
		return n == SIGUSR1 || n == SIGUSR2 || n == SIGWINCH || n == SIGURG ||
				       (n >= SIGRTMIN && n <= SIGRTMAX) ?
			       (int)n :
			       0;
	if (!strncmp(text, "SIG", 3))
		text += 3;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i].name))
			return names[i].sig;
	if (strncmp(text, "RTMIN", 5))
		return 0;
	n = text[5] == '+' ? strtol(text + 6, &end, 10) : 0;
	if (text[5] && (text[5] != '+' || end == text + 6 || *end || n < 0))
		return 0;
	return SIGRTMIN + n <= SIGRTMAX ? SIGRTMIN + (int)n : 0;
}

/* A CPU that we may use: the one named, or the one we are on. -1: not that. */
static int parse_cpu(const char *text)
{
	cpu_set_t set;
	char *end;
	long n;

	if (!text)
		return sched_getcpu();
	n = strtol(text, &end, 10);
	if (end == text || *end || n < 0 || n >= CPU_SETSIZE ||
	    sched_getaffinity(0, sizeof(set), &set) || !CPU_ISSET((size_t)n, &set))
		return -1;
	return (int)n;
}

struct settings {
	struct run_opts run;
	enum run_format format;
	const char *output;
	const struct run_engine *engine;
	bool if_it_can; /* ptrace will do as well */
	bool help;
};

enum {
	OPT_INTERVAL = 256,
	OPT_SIGNAL,
	OPT_ENGINE,
	OPT_PIN,
	OPT_NO_SPLIT,
	OPT_KVM_STATS,
	OPT_CGROUP
};

static int set_format(struct settings *s, const char *text)
{
	static const char *const names[] = {"summary", "json", "jsonl"};

	for (int i = 0; i < 3; i++) {
		if (strcmp(text, names[i]))
			continue;
		s->format = (enum run_format)i;
		return 0;
	}
	return cmd_usage("--format %s: expected summary, json or jsonl", text);
}

static int set_engine(struct settings *s, const char *text)
{
	s->if_it_can = !strcmp(text, "auto");
	if (s->if_it_can)
		text = engine_bpf.name;
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		if (strcmp(text, engines[i]->name))
			continue;
		s->engine = engines[i];
		return 0;
	}
	return cmd_usage("--engine %s: there is no such engine; expected ptrace, bpf or auto",
			 text);
}

static int set_pid(struct settings *s, const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end || n <= 0 || n > 1 << 30)
		return cmd_usage("--pid %s: expected the number of a process", text);
	s->run.attach = (pid_t)n;
	return 0;
}

static int set(struct settings *s, int opt, const char *arg)
{
	switch (opt) {
	case 'f':
		return set_format(s, arg);
	case 'o':
		s->output = arg;
		return *arg ? 0 : cmd_usage("--output: expected a file or a folder");
	case 'p':
		return set_pid(s, arg);
	case OPT_INTERVAL:
		return pace_duration("--interval", arg, &s->run.interval_ns);
	case OPT_SIGNAL:
		s->run.snapshot_signal = parse_signal(arg);
		return s->run.snapshot_signal ?
			       0 :
			       cmd_usage(
				       "--signal %s: expected USR1, USR2, WINCH, URG, RTMIN+n or a number "
				       "of these",
				       arg);
	case OPT_ENGINE:
		return set_engine(s, arg);
	case OPT_PIN:
		s->run.pin_cpu = parse_cpu(arg);
		return s->run.pin_cpu >= 0 ?
			       0 :
			       cmd_usage("--pin=%s: expected a CPU that may be used here", arg);
	case OPT_CGROUP:
		s->run.cgroup = arg;
		return cgroup_is_dir(arg) ?
			       0 :
			       cmd_usage("--cgroup %s: expected a directory of cgroup v2", arg);
	case OPT_NO_SPLIT:
		s->run.no_split = true;
		return 0;
	case OPT_KVM_STATS:
		s->run.kvm_stats = true;
		return 0;
	case 'h':
		s->help = true;
		return 0;
	default:
		/* getopt has said what is wrong */
		return CMD_USAGE;
	}
}

static int parse(struct settings *s, int argc, char **argv, const char *short_opts)
{
	static const struct option long_opts[] = {
		{"format", required_argument, NULL, 'f'},
		{"output", required_argument, NULL, 'o'},
		{"interval", required_argument, NULL, OPT_INTERVAL},
		{"signal", required_argument, NULL, OPT_SIGNAL},
		{"engine", required_argument, NULL, OPT_ENGINE},
		{"pin", optional_argument, NULL, OPT_PIN},
		{"no-split", no_argument, NULL, OPT_NO_SPLIT},
		{"kvm-stats", no_argument, NULL, OPT_KVM_STATS},
		{"help", no_argument, NULL, 'h'},
		{"pid", required_argument, NULL, 'p'},
		{"cgroup", required_argument, NULL, OPT_CGROUP},
		{NULL, 0, NULL, 0},
	};
	int opt, ret;

	*s = (struct settings){.run = {.pin_cpu = -1}, .engine = &engine_bpf, .if_it_can = true};
	while ((opt = getopt_long(argc, argv, short_opts, long_opts, NULL)) != -1) {
		ret = set(s, opt, optarg);
		if (ret)
			return ret;
	}
	if (s->run.interval_ns && s->format != RUN_JSONL)
		return cmd_usage("--interval needs --format jsonl");
	return 0;
}

/* Whether this file can be executed; else errno. */
static int check_file(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	return access(path, X_OK) ? errno : 0;
}

/* As a shell finds a command. 0 and *path to be freed, or the errno that matters most. */
static int find_command(const char *name, char **path)
{
	const char *list = getenv("PATH"), *end;
	int err = ENOENT;

	if (strchr(name, '/')) {
		*path = strdup(name);
		return *path ? check_file(name) : ENOMEM;
	}
	for (list = list ? list : "/bin:/usr/bin"; *name; list = end + 1) {
		int ret;

		end = strchrnul(list, ':');
		if (asprintf(path, "%.*s/%s", end == list ? 1 : (int)(end - list),
			     end == list ? "." : list, name) < 0)
			return ENOMEM;
		ret = check_file(*path);
		if (!ret)
			return 0;
		if (ret == EACCES)
			err = ret;
		free(*path);
		*path = NULL;
		if (!*end)
			break;
	}
	return err;
}

static int exec_failed(const char *name, int err)
{
	if (err == ENOENT && !strchr(name, '/')) {
		cmd_err("%s: command not found", name);
		return NOT_FOUND;
	}
	cmd_err("%s: cannot be executed: %s", name, strerror(err));
	return err == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
}

/*
 * The engine that was asked for, or the one that always works, with a reason unless either would do. Only
 * one can watch a cgroup.
 */
static int choose_engine(struct settings *s)
{
	char why[160] = "";

	if (!s->engine->prepare || !s->engine->prepare(&s->run, why, sizeof(why)))
		return 0;
	if (s->run.cgroup)
		return cmd_err("--cgroup needs the %s engine, which cannot be used: %s",
			       s->engine->name, why);
	if (!s->if_it_can)
		cmd_err("the %s engine cannot be used: %s; using %s", s->engine->name, why,
			engines[0]->name);
	s->engine = engines[0];
	return 0;
}

static int watch(struct settings *s)
{
	struct run_output out;
	struct run_result res;
	int ret, failed;

	if (run_output_open(&out, s->format, s->output))
		return CMD_FAILED;
	ret = choose_engine(s) ? -ENOTSUP : s->engine->run(&s->run, &out.sink, &res);
	/* The program has ended: a message that nobody reads must not cost us its status. */
	signal(SIGPIPE, SIG_IGN);
	failed = run_output_close(&out) ? CMD_FAILED : 0;
	if (ret)
		return CMD_FAILED;
	if (!s->run.argv)
		return failed;
	if (res.interrupted)
		return 128 + res.interrupted;
	if (!res.started)
		return exec_failed(s->run.argv[0], res.exec_errno);
	ret = WIFSIGNALED(res.wait_status) ? 128 + WTERMSIG(res.wait_status) :
					     WEXITSTATUS(res.wait_status);
	return ret ? ret : failed;
}

int cmd_run(int argc, char **argv)
{
	struct settings s;
	char *path = NULL;
	int ret = parse(&s, argc, argv, "+f:o:h");

	if (ret)
		return ret;
	if (s.help) {
		run_help();
		return 0;
	}
	if (s.run.attach || s.run.cgroup)
		return cmd_usage("%s: 'statpage attach' takes what is running",
				 s.run.attach ? "--pid" : "--cgroup");
	if (optind == argc)
		return cmd_usage("expected a command to run");
	s.run.argv = argv + optind;
	ret = find_command(s.run.argv[0], &path);
	s.run.path = path;
	ret = ret ? exec_failed(s.run.argv[0], ret) : watch(&s);
	free(path);
	return ret;
}

int cmd_attach(int argc, char **argv)
{
	struct settings s;
	int ret = parse(&s, argc, argv, "f:o:p:h");

	if (ret)
		return ret;
	if (s.help) {
		attach_help();
		return 0;
	}
	if (optind < argc)
		return cmd_usage("%s: unexpected; expected -p PID or --cgroup PATH", argv[optind]);
	if (!s.run.attach == !s.run.cgroup)
		return cmd_usage("expected either -p PID or --cgroup PATH");
	if (s.run.cgroup && s.engine == &engine_ptrace)
		return cmd_usage("--cgroup: needs the engine bpf, not ptrace");
	if (s.run.pin_cpu >= 0)
		return cmd_usage("--pin: only for a program that is started");
	return watch(&s);
}
