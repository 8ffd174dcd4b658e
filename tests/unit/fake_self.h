/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of csf_thread_snap() on a made-up page share. */
#ifndef FAKE_SELF_H
#define FAKE_SELF_H

#include <pthread.h>

#include "tests/t.h"
#include "fake_page.h"

static struct csf_thread *page; /* of the main thread, to be written */

static inline int snap_errno(struct csf_snap *s)
{
	errno = 0;
	return csf_thread_snap(s) ? errno : 0;
}

/* Other files in the place of the main thread's, which stays mapped, and back. */
static inline void hide(void)
{
	if (rename("thread-self", "own"))
		fake_die("own");
}

static inline void restore(void)
{
	if (rename("own", "thread-self"))
		fake_die("own");
}

static inline void *snap_thread(void *err)
{
	struct csf_snap s;

	*(int *)err = snap_errno(&s);
	return NULL;
}

static inline void in_thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, arg))
		fake_die("pthread_create");
	pthread_join(t, NULL);
}

static pthread_barrier_t all_in, all_out;

static inline void *wait_thread(void *err)
{
	snap_thread(err);
	pthread_barrier_wait(&all_in);
	pthread_barrier_wait(&all_out);
	/* Still there, whatever the others did. */
	if (!*(int *)err)
		snap_thread(err);
	return NULL;
}

#endif /* FAKE_SELF_H */
