/* SPDX-License-Identifier: MIT */
/*
 * The threads that take the snapshot signal and the interval. The signal stays blocked in all other
 * threads and is taken with sigwait(), so it interrupts nothing and needs no handler.
 */
#include <time.h>

#include "internal.h"

static _Atomic int signo; /* 0: no snapshot signal is taken in this process */

static void set_of_signal(sigset_t *set)
{
	sigemptyset(set);
	if (signo)
		sigaddset(set, signo);
}

int rts_watch_signal(void)
{
	return signo;
}

void rts_watch_mask(int how)
{
	sigset_t set;

	if (!signo)
		return;
	set_of_signal(&set);
	pthread_sigmask(how, &set, NULL);
}

static void *take_signals(void *arg)
{
	sigset_t set;
	int got;

	set_of_signal(&set);
	while (!sigwait(&set, &got))
		rts_dump(RTS_SIGNAL);
	return arg;
}

/* Ticks are multiples of the interval since the start, so that they do not drift. */
static void *take_intervals(void *arg)
{
	uint64_t next, now;

	if (rts_clock(&next))
		return arg;
	for (;;) {
		next += rts_cfg.interval_ns;
		while (!rts_clock(&now) && now < next) {
			struct timespec ts = {.tv_sec = (time_t)((next - now) / 1000000000u),
					      .tv_nsec = (long)((next - now) % 1000000000u)};

			nanosleep(&ts, NULL);
		}
		if (rts_dump(RTS_INTERVAL) == -EALREADY)
			return arg;
	}
}

/* Our threads block every signal: the program's handlers run in the program's threads. */
static int start(void *(*fn)(void *))
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	ret = pthread_create(&thread, &attr, fn, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

/* NULL, or why the signal must be left alone. */
static const char *refusal(int sig)
{
	struct sigaction sa;
	sigset_t mask;
	int threads = rts_os_threads();

	if (sigaction(sig, NULL, &sa) || sa.sa_handler != SIG_DFL)
		return "the program handles or ignores it already";
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	if (sigismember(&mask, sig))
		return "the program blocks it already, so it may wait for it elsewhere";
	if (threads > 1)
		return "other threads are running already and would not block it";
	return NULL;
}

static void start_signal(void)
{
	const char *why = refusal(rts_cfg.signo);

	if (why) {
		rts_warn("%s_STATS_SIGNAL: no snapshots on signal %d: %s", rts_cfg.prefix,
			 rts_cfg.signo, why);
		return;
	}
	signo = rts_cfg.signo;
	rts_watch_mask(SIG_BLOCK);
	if (!start(take_signals))
		return;
	rts_watch_mask(SIG_UNBLOCK);
	signo = 0;
	rts_warn("%s_STATS_SIGNAL: no snapshots: no thread could be started", rts_cfg.prefix);
}

static void start_interval(void)
{
	if (rts_cfg.interval_ns && start(take_intervals))
		rts_warn("%s_STATS_INTERVAL: no thread could be started", rts_cfg.prefix);
}

void rts_watch_start(void)
{
	if (rts_cfg.signo)
		start_signal();
	start_interval();
}

/* The signal is blocked in the only thread there is, as its parent left it: nothing to refuse. */
void rts_watch_restart(void)
{
	if (signo && start(take_signals))
		rts_warn("%s_STATS_SIGNAL: no snapshots in this child: no thread could be started",
			 rts_cfg.prefix);
	start_interval();
}

void rts_watch_forget(void)
{
	rts_watch_mask(SIG_UNBLOCK);
	signo = 0;
}
