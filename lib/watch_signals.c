/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "lib/procs.h"
#include "lib/watch_signals.h"

#define POKE_NS 20000000 /* how long a signal may go unnoticed */
/*
 * timeout(1) signals its child and then its whole group, a microsecond later: who asks twice waits to
 * see whether the first time was enough.
 */
#define ONE_REQUEST_NS 100000000
#define TWICE_NS       1000000000 /* of ^C: what is pressed twice */

volatile sig_atomic_t watch_pending;

static struct {
	struct sigaction old[NSIG];
	bool taken[NSIG];
	sigset_t old_mask;
	timer_t poke, ticker;
	bool have_poke, have_ticker;
	int snapshot_signal;
	uint64_t interval_ns, interval_began_ns;
	volatile sig_atomic_t seen[NSIG], terminal[NSIG];
	uint64_t asked_ns[NSIG]; /* when it was taken for a request; 0: never */
	uint64_t end_ns;	 /* the same, of any of those that end */
} w;

static void arm(timer_t t, uint64_t first_ns, uint64_t every_ns)
{
	struct itimerspec its = {
		.it_value = {(time_t)(first_ns / 1000000000u), (long)(first_ns % 1000000000u)},
		.it_interval = {(time_t)(every_ns / 1000000000u), (long)(every_ns % 1000000000u)},
	};

	timer_settime(t, 0, &its, NULL);
}

static void on_signal(int sig, siginfo_t *si, void *ctx)
{
	int saved = errno;

	(void)ctx;
	if (sig != SIGALRM) {
		w.seen[sig] = 1;
		w.terminal[sig] = si->si_code == SI_KERNEL;
	}
	watch_pending = 1;
	arm(w.poke, POKE_NS, 0);
	errno = saved;
}

/* A signal that the caller's parent has ignored stays ignored (nohup, a shell's background job). */
static void take(int sig, void (*handler)(int, siginfo_t *, void *), bool even_if_ignored)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};

	sigaction(sig, NULL, &w.old[sig]);
	if (w.old[sig].sa_handler == SIG_IGN && !even_if_ignored)
		return;
	sigfillset(&sa.sa_mask);
	sigaction(sig, &sa, NULL);
	w.taken[sig] = true;
}

static void take_plain(int sig, void (*handler)(int), int flags)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};

	sigaction(sig, &sa, &w.old[sig]);
	w.taken[sig] = true;
}

static int make_timer(timer_t *t, bool *have)
{
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};

	if (timer_create(CLOCK_MONOTONIC, &ev, t))
		return -errno;
	*have = true;
	return 0;
}

int watch_start(int snapshot_signal, uint64_t interval_ns)
{
	sigset_t open;
	int ret;

	memset(&w, 0, sizeof(w));
	watch_pending = 0;
	w.snapshot_signal = snapshot_signal;
	w.interval_ns = interval_ns;
	ret = make_timer(&w.poke, &w.have_poke);
	if (!ret && interval_ns)
		ret = make_timer(&w.ticker, &w.have_ticker);
	if (ret) {
		watch_stop();
		return ret;
	}
	take(SIGINT, on_signal, false);
	take(SIGTERM, on_signal, false);
	take(SIGHUP, on_signal, false);
	take(SIGQUIT, on_signal, false);
	take(SIGALRM, on_signal, true);
	if (snapshot_signal)
		take(snapshot_signal, on_signal, true);
	/* Without SA_NOCLDSTOP each stop of the program would signal us; ignored, it would reap. */
	take_plain(SIGCHLD, SIG_DFL, SA_NOCLDSTOP);
	/* Records that cannot be written are counted. */
	take_plain(SIGPIPE, SIG_IGN, 0);
	take_plain(SIGXFSZ, SIG_IGN, 0);
	sigemptyset(&open);
	for (int s = 1; s < NSIG; s++)
		if (w.taken[s])
			sigaddset(&open, s);
	sigprocmask(SIG_UNBLOCK, &open, &w.old_mask);
	if (interval_ns) {
		w.interval_began_ns = now_ns();
		arm(w.ticker, interval_ns, interval_ns);
	}
	return 0;
}

void watch_restore_child(void)
{
	for (int s = 1; s < NSIG; s++)
		if (w.taken[s])
			sigaction(s, &w.old[s], NULL);
	sigprocmask(SIG_SETMASK, &w.old_mask, NULL);
}

void watch_stop(void)
{
	if (w.have_ticker)
		timer_delete(w.ticker);
	if (w.have_poke)
		timer_delete(w.poke);
	if (w.taken[SIGCHLD])
		watch_restore_child();
	memset(&w, 0, sizeof(w));
}

/* The interval is due by the clock: signals of one kind do not queue. */
static bool interval_due(void)
{
	uint64_t ns = now_ns();

	if (!w.interval_ns || ns - w.interval_began_ns < w.interval_ns - w.interval_ns / 16)
		return false;
	w.interval_began_ns = ns;
	return true;
}

/* Take this end signal for a request, unless it is one with the one before. */
static void take_end(int sig, struct watch_news *n)
{
	uint64_t ns = now_ns();

	if (w.asked_ns[sig] && ns - w.asked_ns[sig] < ONE_REQUEST_NS)
		return;
	w.asked_ns[sig] = ns;
	n->end = sig;
	n->from_terminal = w.terminal[sig];
	/* ^C is a key that people use: two of them are an order only when they come as one. */
	n->again = w.end_ns && (!n->from_terminal || ns - w.end_ns < TWICE_NS);
	w.end_ns = ns;
}

struct watch_news watch_take(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct watch_news n = {0};

	/* Flags first, then look: what arrives from here on sets them again. */
	arm(w.poke, 0, 0);
	watch_pending = 0;
	n.interval = interval_due();
	if (w.snapshot_signal && w.seen[w.snapshot_signal]) {
		w.seen[w.snapshot_signal] = 0;
		n.snapshot = true;
	}
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]) && !n.end; i++) {
		if (!w.seen[ends[i]])
			continue;
		w.seen[ends[i]] = 0;
		take_end(ends[i], &n);
	}
	/* One end signal a call. */
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (w.seen[ends[i]])
			watch_pending = 1;
	return n;
}
