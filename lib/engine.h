/* SPDX-License-Identifier: MIT */
/*
 * An engine watches a process tree and hands out records. Commands know engines only by this
 * interface and by the name a user gave.
 */
#ifndef STATPAGE_ENGINE_H
#define STATPAGE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/record.h"

struct run_opts {
	char *const *argv; /* the program to start, argv[0] as the user gave it; NULL: attach */
	const char *path;  /* the file to execute */
	pid_t attach;
	const char *cgroup;   /* attach: to all processes of this cgroup and of those below it */
	uint64_t interval_ns; /* 0: none */
	int snapshot_signal;  /* 0: none */
	int pin_cpu;	      /* put engine and program on this CPU; -1: leave them alone */
	bool no_split;	      /* leave out on-CPU and waiting time */
	bool kvm_stats;	      /* may make calls inside the program to get at KVM's statistics */
};

/* Where records and warnings go. r is valid during the call only. */
struct run_sink {
	void (*record)(struct run_sink *s, const struct rts_record *r);
	/* One line without newline, without the program's name. */
	void (*warn)(struct run_sink *s, const char *fmt, ...)
		__attribute__((format(printf, 2, 3)));
};

struct run_result {
	int wait_status; /* of the program that was started, as waitpid() gives it */
	bool started;	 /* else exec_errno says why not */
	int exec_errno;
	int interrupted; /* the signal that ended the watch early, or 0 */
};

struct run_engine {
	const char *name;
	const char *cannot_see;
	/*
	 * Whether it can be used here, by getting it ready; run() with the same options follows. 0, or
	 * -errno and a reason that fits "... cannot be used: reason". NULL: it always can.
	 */
	int (*prepare)(const struct run_opts *o, char *why, size_t len);
	/*
	 * Start or attach, watch until the last process is gone or a signal ends it, hand out every
	 * record, the tree's last. 0, or -errno after a warning that says what failed. Takes SIGINT,
	 * SIGTERM, SIGHUP, SIGQUIT, SIGALRM and the snapshot signal meanwhile. One at a time.
	 */
	int (*run)(const struct run_opts *o, struct run_sink *s, struct run_result *res);
};

extern const struct run_engine engine_ptrace, engine_bpf;

#endif /* STATPAGE_ENGINE_H */
