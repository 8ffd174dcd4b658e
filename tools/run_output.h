/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where `statpage run` and `statpage attach` put their records. jsonl goes out line by line; a summary
 * and a json document begin with the tree, which is known last: what processes leave behind waits
 * in a temporary file, so memory does not grow with the number of processes. Where none can be made,
 * it waits in memory.
 */
#ifndef TOOLS_RUN_OUTPUT_H
#define TOOLS_RUN_OUTPUT_H

#include <sys/types.h>

#include "lib/engine.h"

enum run_format { RUN_SUMMARY, RUN_JSON, RUN_JSONL };

struct run_output {
	struct run_sink sink; /* the first member: the engine gets its address */
	enum run_format format;
	const char *path; /* NULL: standard error */
	int fd;
	int dir;	  /* descriptor of the folder, or -1 */
	int spill;	  /* descriptor of the temporary file, or -1 */
	off_t spill_size; /* of it, what is whole records */
	struct rts_buf buf;
	bool torn;  /* a line was cut: the next starts on a line of its own */
	bool final; /* the record at hand is the last one of its process, or of the tree */
	unsigned long dropped; /* records that could not be written */
	int error;	       /* errno of the first failure */
	bool spill_failed;     /* that was the temporary file's */
};

/* 0, or -1 after a message. */
int run_output_open(struct run_output *o, enum run_format format, const char *path);
/* 0, or -1 after a message when something could not be written. */
int run_output_close(struct run_output *o);

#endif /* TOOLS_RUN_OUTPUT_H */
