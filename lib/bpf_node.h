/* SPDX-License-Identifier: MIT */
/* A node of the bpf engine that is there: its maps, read and controlled through their pins. */
#ifndef LIB_BPF_NODE_H
#define LIB_BPF_NODE_H

#include "lib/dist.h"
#include "uapi/dist_bpf.h"

/* The node that a metric's name means: itself, or that of GAP-name. */
struct bpf_node {
	struct dist_bpf_conf conf;
	bool gap; /* the gap's metric was meant */
};

bool bpf_node_has(const char *metric);

/* -ENOENT: there is no such metric; -EPROTO: it is of another release of this tool. */
int bpf_node_find(const char *metric, struct bpf_node *node, struct dist_why *why);

/* As in struct dist_engine. */
int bpf_node_list(int (*fn)(const struct dist_node *node, void *data), void *data,
		  struct dist_why *why);
int bpf_node_metrics(int (*fn)(const char *name, void *data), void *data, struct dist_why *why);
int bpf_node_read(const char *metric, struct dist_metric *to, struct dist_why *why);
int bpf_node_act(const char *metric, enum dist_action action, struct dist_why *why);

#endif /* LIB_BPF_NODE_H */
