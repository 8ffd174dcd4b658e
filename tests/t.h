/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The whole test framework: one header, plain C programs.
 *
 *	// This test checks that a sleep shows up as sleep.
 *	int main(void)
 *	{
 *		TEST("sleep of 25 ms") {
 *			CHECK(ms > 24.9, "slept only %.3f ms", ms);
 *		}
 *		return t_done("t_mine");
 *	}
 *
 * One line a case on stdout, `ok N - name`, `not ok N - name`, or `ok N - name # SKIP why`; failed
 * checks say file, line and why on stdout before it. t_done() returns the exit status: 0, 1, or 77 when
 * every case was skipped. Inside a TEST block, `break` ends the case early. Not thread-safe but for
 * CHECK, which any thread may call. A child made by fork() must leave by _exit().
 */
#ifndef T_H
#define T_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static struct {
	char name[160];
	char skip[160];
	int open, nr, failed, skipped;
	atomic_int bad;
} t_;

/* Close the open case and print its verdict. Returns 0, so that it can end TEST's loop. */
static inline int t_end(void)
{
	int bad = atomic_load(&t_.bad);

	if (!t_.open)
		return 0;
	t_.open = 0;
	t_.nr++;
	t_.failed += bad != 0;
	t_.skipped += !bad && t_.skip[0];
	printf("%sok %d - %s%s%s\n", bad ? "not " : "", t_.nr, t_.name,
	       !bad && t_.skip[0] ? " # SKIP " : "", bad ? "" : t_.skip);
	fflush(stdout);
	return 0;
}

/* Open a case; a case left by `break` is closed first. Returns 1. */
__attribute__((format(printf, 1, 2))) static inline int t_begin(const char *fmt, ...)
{
	va_list ap;

	t_end();
	va_start(ap, fmt);
	vsnprintf(t_.name, sizeof(t_.name), fmt, ap);
	va_end(ap);
	t_.skip[0] = '\0';
	atomic_store(&t_.bad, 0);
	t_.open = 1;
	fflush(stdout);
	return 1;
}

__attribute__((format(printf, 4, 5))) static inline int t_check(int good, const char *file,
								int line, const char *fmt, ...)
{
	char why[400];
	va_list ap;

	if (good)
		return 1;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	/* Past the first dozen the reader has understood. */
	if (atomic_fetch_add(&t_.bad, 1) < 12)
		printf("#   %s:%d: %s\n", file, line, why);
	return 0;
}

/* Close the last case, print the program's sum. Returns the exit status. */
static inline int t_done(const char *prog)
{
	t_end();
	printf("1..%d\n# %s: %d passed, %d failed, %d skipped\n", t_.nr, prog,
	       t_.nr - t_.failed - t_.skipped, t_.failed, t_.skipped);
	fflush(stdout);
	if (t_.failed || !t_.nr)
		return 1;
	return t_.skipped == t_.nr ? 77 : 0;
}

#define TEST(...) for (int t_run_ = t_begin(__VA_ARGS__); t_run_; t_run_ = t_end())
/* True when cond holds; otherwise the case fails, goes on, and says why. */
#define CHECK(cond, ...) t_check(!!(cond), __FILE__, __LINE__, __VA_ARGS__)
/* Mark the case skipped; follow it with `break`. */
#define SKIP(...) snprintf(t_.skip, sizeof(t_.skip), __VA_ARGS__)

#endif /* T_H */
