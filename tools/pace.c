// SPDX-License-Identifier: GPL-2.0
/* Intervals and the signals that end them. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>

#include "lib/record.h"
#include "tools/cmd.h"
#include "tools/pace.h"

uint64_t pace_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int pace_signals(int also)
{
	struct sigaction now;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	/* One that is ignored would come through all the same: nohup means it. */
	if (also && !sigaction(also, NULL, &now) && now.sa_handler != SIG_IGN)
		sigaddset(&set, also);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		cmd_err("signalfd: %s", strerror(errno));
	return fd;
}

bool pace_wait(int signals, uint64_t start_ns, uint64_t interval_ns, uint64_t end_ns)
{
	struct pollfd p = {.fd = signals, .events = POLLIN};
	uint64_t now = pace_now(), left = interval_ns - (now - start_ns) % interval_ns;
	struct timespec ts;

	if (end_ns < now + left)
		left = end_ns > now ? end_ns - now : 0;
	ts = (struct timespec){.tv_sec = (time_t)(left / 1000000000),
			       .tv_nsec = (long)(left % 1000000000)};
	return ppoll(&p, 1, &ts, NULL) > 0;
}

int pace_duration(const char *option, const char *text, uint64_t *ns)
{
	*ns = rts_duration(text);
	return *ns ? 0 :
		     cmd_usage("%s is a time from 1ms to 24h, such as 500ms, not '%s'", option,
			       text);
}
