/* SPDX-License-Identifier: MIT */
#ifndef STATPAGE_ROOM_H
#define STATPAGE_ROOM_H

#include <stdint.h>

/*
 * Wait until fd, the end of a pipe say, takes PIPE_BUF bytes without blocking, or until until_ns of
 * CLOCK_MONOTONIC; signals do not end the wait and do not lengthen it. 0, -ETIMEDOUT, or -errno of
 * poll(). Thread-safe, async-signal-safe.
 */
int rts_wait_for_room(int fd, uint64_t until_ns);

#endif /* STATPAGE_ROOM_H */
