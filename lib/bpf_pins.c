/* SPDX-License-Identifier: MIT */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "lib/bpf_pins.h"
#include "uapi/dist_bpf.h"
#include "uapi/threads_bpf.h"

#define BPFFS	    "/sys/fs/bpf"
#define BPFFS_MAGIC 0xcafe4a11
#define GONE_MS	    5000

/* The filesystem allows no dots in names; without a dash none is THREADS_PIN_DIR's. */
void bpf_pins_path(char path[PIN_PATH_MAX], const char *node, const char *pin)
{
	size_t len = (size_t)sprintf(path, "%s/", DIST_BPF_DIR);

	for (; *node && len < PIN_PATH_MAX - 20; node++)
		len += (size_t)sprintf(path + len, strchr(".-%", *node) ? "%%%02x" : "%c", *node);
	if (pin)
		sprintf(path + len, "/%s", pin);
}

/* A folder's name back into the node's. */
static bool name_of(const char *folder, char name[64])
{
	size_t len = 0;
	unsigned int c;

	for (; *folder && len < 63; folder++) {
		if (*folder != '%') {
			name[len++] = *folder;
			continue;
		}
		if (sscanf(folder, "%%%2x", &c) != 1)
			return false;
		name[len++] = (char)c;
		folder += 2;
	}
	name[len] = '\0';
	return !*folder;
}

bool bpf_pins_has_node(const char *node)
{
	char path[PIN_PATH_MAX];

	bpf_pins_path(path, node, PIN_BEGIN);
	return !access(path, F_OK);
}

int bpf_pins_each(int (*fn)(const char *node, void *data), void *data)
{
	struct dirent *d;
	char name[64];
	int ret = 0;
	DIR *dir = opendir(DIST_BPF_DIR);

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (!ret && (d = readdir(dir)))
		if (d->d_name[0] != '.' &&
		    strncmp(d->d_name, THREADS_PIN_DIR, strlen(THREADS_PIN_DIR)) &&
		    name_of(d->d_name, name))
			ret = fn(name, data);
	closedir(dir);
	return ret;
}

static uint32_t prog_id(const char *node, const char *pin)
{
	struct bpf_prog_info info = {0};
	char path[PIN_PATH_MAX];
	uint32_t len = sizeof(info);
	int fd;

	bpf_pins_path(path, node, pin);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return 0;
	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		info.id = 0;
	close(fd);
	return info.id;
}

/* The kernel lets go of a link some time after its pin has gone; programs go after their links. */
static void wait_gone(uint32_t id)
{
	const struct timespec ms = {0, 1000000};
	int fd;

	for (int i = 0; id && i < GONE_MS; i++) {
		fd = bpf_prog_get_fd_by_id(id);
		if (fd < 0)
			return;
		close(fd);
		nanosleep(&ms, NULL);
	}
}

/* The begin first: without it there is no node, whatever happens to us next. */
static int remove_pins(const char *node)
{
	char path[PIN_PATH_MAX], file[2 * PIN_PATH_MAX];
	struct dirent *d;
	DIR *dir;

	bpf_pins_path(path, node, PIN_BEGIN);
	if (unlink(path) && errno != ENOENT)
		return -errno;
	bpf_pins_path(path, node, NULL);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		snprintf(file, sizeof(file), "%s/%.255s", path, d->d_name);
		if (d->d_name[0] != '.')
			unlink(file);
	}
	if (dir)
		closedir(dir);
	return rmdir(path) ? -errno : 0;
}

int bpf_pins_remove(const char *node, struct dist_why *why)
{
	uint32_t begin = prog_id(node, PIN_BEGIN_PROG), end = prog_id(node, PIN_END_PROG);
	int err = remove_pins(node);

	if (err)
		return dist_fail(why, err, "%s: its pins cannot be removed: %s", node,
				 strerror(-err));
	wait_gone(begin);
	wait_gone(end);
	return 0;
}

static int sweep_one(const char *node, void *data)
{
	(void)data;
	if (!bpf_pins_has_node(node))
		remove_pins(node);
	return 0;
}

void bpf_pins_sweep(void)
{
	int fd = open(DIST_BPF_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		bpf_pins_each(sweep_one, NULL);
	close(fd);
}

static int mount_bpffs(struct dist_why *why)
{
	struct statfs fs;

	if (!statfs(BPFFS, &fs) && fs.f_type == BPFFS_MAGIC)
		return 0;
	if (!mount("bpf", BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700"))
		return 0;
	return dist_fail(why, -errno, "no bpf filesystem can be mounted on " BPFFS ": %s",
			 strerror(errno));
}

int bpf_pins_lock(struct dist_why *why)
{
	int err = mount_bpffs(why), fd;

	if (err)
		return err;
	if (mkdir(DIST_BPF_DIR, 0700) && errno != EEXIST)
		return dist_fail(why, -errno, DIST_BPF_DIR ": %s", strerror(errno));
	fd = open(DIST_BPF_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return dist_fail(why, -errno, DIST_BPF_DIR ": %s", strerror(errno));
	while (flock(fd, LOCK_EX)) {
		if (errno == EINTR)
			continue;
		err = -errno;
		close(fd);
		return dist_fail(why, err, DIST_BPF_DIR ": %s", strerror(-err));
	}
	bpf_pins_each(sweep_one, NULL);
	return fd;
}
