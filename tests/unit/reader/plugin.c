/* SPDX-License-Identifier: GPL-2.0 */
/* A shared library of two translation units that both use the reader: t_reader_lib opens it. */
#include <stdlib.h>
#include <unistd.h>

/* Before the reader, so that the reader's own destructor has run when this one lingers. */
__attribute__((destructor)) static void linger(void)
{
	const char *us = getenv("PLUGIN_LINGER");

	if (us)
		usleep((useconds_t)atoi(us));
}

#define CSF_MOUNT_PATH "."
#include "lib/coarse_stat_fs.h"

#ifdef PLUGIN_OTHER
int plugin_other_snap(struct csf_snap *s);

int plugin_other_snap(struct csf_snap *s)
{
	return csf_thread_snap(s);
}
#else
int plugin_snap(struct csf_snap *s);
int plugin_cpu_snap(struct csf_cpu_snap *s);

int plugin_snap(struct csf_snap *s)
{
	return csf_thread_snap(s);
}

int plugin_cpu_snap(struct csf_cpu_snap *s)
{
	return csf_cpu_snap(s, 0);
}
#endif
