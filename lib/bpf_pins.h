/* SPDX-License-Identifier: MIT */
/*
 * Nodes of the bpf engine as folders of pins in DIST_BPF_DIR. A node is there when its folder has
 * PIN_BEGIN, the link that is made last and removed first; without it, it is what a tool has left that
 * was killed meanwhile, and is swept away. One tool at a time makes and removes nodes.
 */
#ifndef LIB_BPF_PINS_H
#define LIB_BPF_PINS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/dist.h"

/* Links: */
#define PIN_BEGIN "begin"
#define PIN_END	  "end"
#define PIN_DIED  "died"
/* Programs: */
#define PIN_BEGIN_PROG "begin_prog"
#define PIN_END_PROG   "end_prog"
/* Maps: */
#define PIN_CONF     "conf"
#define PIN_CTL	     "ctl"
#define PIN_SLOTS    "slots"
#define PIN_GAP	     "gap"
#define PIN_TALLY    "tally"
#define PIN_BASE     "base" /* what reset subtracts, once there was one; and the gap's */
#define PIN_GAP_BASE "gap_base"

#define PIN_PATH_MAX 320

/* Where a pin of a node is; NULL: the node's folder. */
void bpf_pins_path(char path[PIN_PATH_MAX], const char *node, const char *pin);

bool bpf_pins_has_node(const char *node);

/*
 * Make DIST_BPF_DIR, and mount the filesystem where it is not. -errno with why set, as all below.
 * Then the lock, which is let go by close(), or the end of the process; and what was half made is gone.
 */
int bpf_pins_lock(struct dist_why *why);

/* Sweep if nobody is at it; nothing to tell. */
void bpf_pins_sweep(void);

/* A node's folder and all pins in it. Its programs are gone when this returns, unless they are kept. */
int bpf_pins_remove(const char *node, struct dist_why *why);

/*
 * Calls fn with the name of each node until it returns non-zero, which is then returned; 0 too where
 * there is no such folder.
 */
int bpf_pins_each(int (*fn)(const char *node, void *data), void *data);

#endif /* LIB_BPF_PINS_H */
