/* SPDX-License-Identifier: MIT */
/* Functions made to be traced (work.c), and what calls them (demo.c). */
#ifndef DEMO_H
#define DEMO_H

#include <linux/types.h>

/* Each does what its name says; all can be traced. n: how often, how deep, or how many ms. */
void kstats_demo_sleep(int n);
int kstats_demo_recurse(int n);
void kstats_demo_migrate(int n);
void kstats_demo_softirq_body(void);
void kstats_demo_forever(void);
int kstats_demo_empty(int n);
void kstats_demo_outer(int n);
void kstats_demo_inner(int n);
long kstats_demo_stack_args(long a, long b, long c, long d, long e, long f, long g, long h, long i);
int kstats_demo_unwind(void);

/* Lets the callers of kstats_demo_forever() go after all; they could not be unloaded otherwise. */
void kstats_demo_release(void);

/* How often any of them was called since the last look: what a tracer should have seen. */
u64 kstats_demo_calls(void);

#endif /* DEMO_H */
