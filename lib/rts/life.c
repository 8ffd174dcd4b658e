/* SPDX-License-Identifier: MIT */
/* Start, snapshots, fork, exec and end; who may write a record, and when none is written any more.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define QUIET_LIMIT_MS 100

struct rts_life rts_life;

static pthread_mutex_t dump_lock = PTHREAD_MUTEX_INITIALIZER;
static bool fork_holds_lock;
static unsigned int generation;	   /* the present one, also while the gate is 0 */
static pid_t owner;		   /* getpid() of the process the counts are of */
static _Thread_local bool staying; /* in rts_fork() */

bool rts_active(void)
{
	return rts_cfg.format != RTS_OFF;
}

static void copy_argv(int argc, char *const *argv)
{
	size_t used = 0, max = sizeof(rts_life.argv) / sizeof(rts_life.argv[0]);

	for (int i = 0; argv && i < argc && argv[i]; i++) {
		size_t n = strlen(argv[i]) + 1;

		if (rts_life.argc == max || n > sizeof(rts_life.argv_text) - used) {
			rts_life.argv_cut = true;
			return;
		}
		rts_life.argv[rts_life.argc++] = memcpy(rts_life.argv_text + used, argv[i], n);
		used += n;
	}
}

/* The start of a life: nothing in here can fail. */
static void restart(void)
{
	rts_life.start_ns = 0;
	rts_clock(&rts_life.start_ns);
	rts_steps_restart();
}

/* Counting goes on after the first exec, or it ended there. */
static unsigned int gate_now(void)
{
	return rts_active() && !(rts_cfg.until_exec && rts_life.execs) ? generation : 0;
}

static int finish(enum rts_reason reason, int status);

static void at_exit(int status)
{
	finish(RTS_EXIT, status);
}

int rts_init(const struct rts_options *opt)
{
	static _Atomic int called;
	int ret;

	if (atomic_exchange(&called, 1))
		return -EALREADY;
	if (!opt) {
		rts_warn("rts_init(NULL): expected options; the statistics stay off");
		return -EINVAL;
	}
	rts_cfg.warn = opt->warn;
	rts_cfg.exit_names = opt->exit_names;
	rts_cfg.nr_exit_names = opt->nr_exit_names;
	ret = rts_env_read(opt->prefix);
	if (ret || !rts_active())
		return ret;
	ret = rts_dump_init();
	if (!ret)
		ret = rts_output_open();
	if (!ret)
		ret = rts_watch_forks();
	if (!ret)
		ret = rts_os_at_exit(at_exit);
	if (ret) {
		rts_cfg.format = RTS_OFF;
		return ret;
	}
	owner = getpid();
	copy_argv(opt->argc, opt->argv);
	restart();
	rts_table_init();
	generation = 1;
	atomic_store(&rts_gate, gate_now());
	rts_watch_start();
	return 0;
}

/* A raw clone() may have made this process: then it starts from zero before anything else. */
static void check_owner(void)
{
	if (rts_active() && getpid() != owner)
		rts_forked();
}

int rts_dump(enum rts_reason reason)
{
	int ret = 0;

	check_owner();
	pthread_mutex_lock(&dump_lock);
	if (rts_life.final)
		ret = -EALREADY;
	else if (rts_cfg.format == RTS_JSONL || rts_cfg.format == RTS_SUMMARY)
		ret = rts_dump_write(reason, false, -1, generation);
	pthread_mutex_unlock(&dump_lock);
	return ret;
}

int rts_snapshot(void)
{
	return rts_active() ? rts_dump(RTS_SIGNAL) : 0;
}

static int finish(enum rts_reason reason, int status)
{
	int ret = -EALREADY;

	if (!rts_active())
		return 0;
	check_owner();
	pthread_mutex_lock(&dump_lock);
	if (!rts_life.final) {
		rts_life.final = true;
		rts_table_stop(0, QUIET_LIMIT_MS);
		if (reason == RTS_EXIT && rts_life.child)
			reason = RTS_FORK_CHILD_EXIT;
		ret = rts_dump_write(reason, true, status, generation);
	}
	pthread_mutex_unlock(&dump_lock);
	/* No later record counts it. Where standard error does not take it, it takes no warning either. */
	if (ret && ret != -EALREADY && rts_cfg.output)
		rts_warn("%s_STATS_OUTPUT=%.128s: the final record is lost: %s", rts_cfg.prefix,
			 rts_cfg.output, strerror(-ret));
	return ret;
}

int rts_finish(int status)
{
	return finish(RTS_EXIT, status);
}

int rts_finish_child_error(int status)
{
	return finish(RTS_FORK_CHILD_ERROR, status);
}

void rts_exec(void)
{
	unsigned int old;

	if (!rts_active())
		return;
	check_owner();
	pthread_mutex_lock(&dump_lock);
	if (!rts_life.final) {
		rts_steps_add("exec");
		old = generation++;
		rts_life.execs++;
		atomic_store(&rts_collecting, 1);
		rts_table_stop(gate_now(), QUIET_LIMIT_MS);
		rts_life.execs--; /* the record is of the life before */
		rts_dump_write(RTS_EXEC, false, -1, old);
		rts_life.execs++;
		atomic_store(&rts_collecting, 0);
		restart();
	}
	pthread_mutex_unlock(&dump_lock);
	rts_watch_mask(SIG_UNBLOCK);
}

void rts_exec_return(void)
{
	rts_watch_mask(SIG_BLOCK);
}

int rts_mask(sigset_t *to)
{
	int ret = pthread_sigmask(SIG_SETMASK, NULL, to);

	if (!ret && rts_watch_signal())
		sigdelset(to, rts_watch_signal());
	return -ret;
}

void rts_step(const char *name)
{
	if (!rts_active())
		return;
	pthread_mutex_lock(&dump_lock);
	rts_steps_add(name);
	pthread_mutex_unlock(&dump_lock);
}

/* ---- fork ---- */

/*
 * No dump is under way while the process is copied, but for one that is stuck beyond its limits:
 * then the child makes itself a new lock.
 */
static void before_fork(void)
{
	const struct timespec tick = {.tv_nsec = 1000000};

	for (int i = 0; i < 3 * RTS_WRITE_LIMIT_MS; i++) {
		fork_holds_lock = !pthread_mutex_trylock(&dump_lock);
		if (fork_holds_lock)
			return;
		nanosleep(&tick, NULL);
	}
}

static void after_fork_parent(void)
{
	if (fork_holds_lock)
		pthread_mutex_unlock(&dump_lock);
}

/* Counts, identity and the final flag first: whatever fails later finds the child at zero. */
void rts_forked(void)
{
	atomic_store(&rts_gate, 0);
	generation++;
	owner = getpid();
	rts_life.child = true;
	rts_life.final = false;
	rts_life.seq = rts_life.execs = rts_life.dropped = 0;
	rts_table_forget();
	restart();
	rts_counters_forked();
	pthread_mutex_init(&dump_lock, NULL);
	rts_output_forked();
	if (!staying)
		rts_watch_forget();
	atomic_store(&rts_gate, gate_now());
}

int rts_watch_forks(void)
{
	static _Atomic int done;

	if (atomic_exchange(&done, 1))
		return 0;
	return -pthread_atfork(before_fork, after_fork_parent, rts_forked);
}

pid_t rts_fork(void)
{
	pid_t pid;

	staying = true;
	pid = fork();
	staying = false;
	if (pid == 0 && rts_active())
		rts_watch_restart();
	return pid;
}
