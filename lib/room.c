/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "lib/room.h"

#define NS_PER_MS 1000000u

/* Rounded up, so that poll() does not return early; 0: the time has come. */
static int ms_until(uint64_t until_ns)
{
	struct timespec ts;
	uint64_t now;

	if (clock_gettime(CLOCK_MONOTONIC, &ts))
		return 0;
	now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	return now < until_ns ? (int)((until_ns - now + NS_PER_MS - 1) / NS_PER_MS) : 0;
}

int rts_wait_for_room(int fd, uint64_t until_ns)
{
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};
	int ret;

	do {
		ret = poll(&pfd, 1, ms_until(until_ns));
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : ret == 0 ? -ETIMEDOUT : 0;
}
