/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/csf_remote.h"

#define TRIES 100

/*
 * A copy that nobody wrote into meanwhile: seq and gen are even, and the same after csf_page_snap() has
 * read the clock. 0, or -1 with errno.
 */
static int snap(int mem, uint64_t addr, struct csf_snap *s)
{
	struct csf_thread copy, again;
	ssize_t n;

	for (int i = 0; i < TRIES; i++) {
		n = pread(mem, &copy, sizeof(copy), (off_t)addr);
		if (n < 0)
			return -1;
		if (n < (ssize_t)sizeof(copy))
			return csf_fail_(ESRCH);
		if (copy.seq & 1 || copy.hdr.gen & 1)
			continue;
		if (csf_page_snap(&copy, sizeof(copy), s))
			return -1;
		n = pread(mem, &again, offsetof(struct csf_thread, state), (off_t)addr);
		if (n < (ssize_t)offsetof(struct csf_thread, state))
			return csf_fail_(ESRCH);
		if (again.seq == copy.seq && again.hdr.gen == copy.hdr.gen)
			return 0;
	}
	return csf_fail_(EBUSY);
}

/*
 * A line of /proc/PID/maps as the address of what may be a thread page: of the filesystem, or a BPF map as
 * statpage serve hands them out; 0: it is something else.
 */
static uint64_t page_at(const char *line)
{
	uint64_t addr;

	if (!strstr(line, " r--s ") ||
	    (!strstr(line, " " CSF_MOUNT "/thread-self") && !strstr(line, " anon_inode:bpf-map")))
		return 0;
	return sscanf(line, "%" SCNx64 "-", &addr) == 1 ? addr : 0;
}

static FILE *open_maps(pid_t pid)
{
	char path[40];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f && errno == ENOENT)
		errno = ESRCH;
	return f;
}

int csf_remote_each(pid_t pid, int (*fn)(const struct csf_snap *s, void *data), void *data)
{
	FILE *maps = open_maps(pid);
	char line[512], path[40];
	int mem = -1, ret = 0, err = 0;
	bool found = false;
	struct csf_snap s;
	uint64_t addr;

	if (!maps)
		return -1;
	errno = 0;
	while (!ret && !err && fgets(line, sizeof(line), maps)) {
		addr = page_at(line);
		if (!addr)
			continue;
		if (mem < 0) {
			snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
			mem = open(path, O_RDONLY | O_CLOEXEC);
			if (mem < 0) {
				err = errno;
				break;
			}
		}
		if (!snap(mem, addr, &s)) {
			found = true;
			ret = fn(&s, data);
		} else if (errno == ESTALE) {
			err = ESTALE;
		} /* else it was unmapped meanwhile, or is always being written */
	}
	/* Of a process whose memory is not ours to see there is nothing in the file, or no file. */
	if (!err && ferror(maps))
		err = errno ? errno : EIO;
	fclose(maps);
	if (mem >= 0)
		close(mem);
	if (!err && !found)
		err = ENODATA;
	if (!err || ret)
		return ret;
	errno = err;
	return -1;
}
