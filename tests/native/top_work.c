// SPDX-License-Identifier: GPL-2.0
/*
 * Threads of which it is known what they do, for t_top.sh: `spinner` runs, `sleeper` waits until
 * SIGUSR1, and then ends; `switcher` blocks once a millisecond or so. The first line on standard output
 * has their tids, once all of them are there.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static sem_t there, done;
static int tid[3];

static void begin(int i, const char *name)
{
	prctl(PR_SET_NAME, name);
	tid[i] = (int)syscall(SYS_gettid);
	sem_post(&there);
}

static void *spinner(void *arg)
{
	begin(0, "spinner");
	for (;;)
		;
	return arg;
}

static void *sleeper(void *arg)
{
	begin(1, "sleeper");
	while (sem_wait(&done))
		;
	return arg;
}

static void *switcher(void *arg)
{
	begin(2, "switcher");
	for (;;)
		usleep(1000);
	return arg;
}

static void end_sleeper(int sig)
{
	(void)sig;
	sem_post(&done);
}

int main(void)
{
	void *(*const body[])(void *) = {spinner, sleeper, switcher};
	pthread_t thread;

	prctl(PR_SET_NAME, "threads");
	sem_init(&there, 0, 0);
	sem_init(&done, 0, 0);
	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread, NULL, body[i], NULL))
			return 1;
	for (int i = 0; i < 3; i++)
		while (sem_wait(&there))
			;
	signal(SIGUSR1, end_sleeper);
	printf("%d %d %d\n", tid[0], tid[1], tid[2]);
	fflush(stdout);
	for (;;)
		pause();
}
