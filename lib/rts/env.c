/* SPDX-License-Identifier: MIT */
/* The environment variables. A value that is not known is one warning, and counts as unset. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "internal.h"

/* The name in warnings of what comes before there is a prefix. */
struct rts_config rts_cfg = {.prefix = "STATPAGE"};

void rts_warn(const char *fmt, ...)
{
	char text[300];
	int n = snprintf(text, sizeof(text), "%s: ", rts_cfg.warn ? "" : rts_cfg.prefix);
	char *start = rts_cfg.warn ? text : text + n;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(start, sizeof(text) - (size_t)(start - text) - 1, fmt, ap);
	va_end(ap);
	if (rts_cfg.warn) {
		rts_cfg.warn(text);
		return;
	}
	strcat(text, "\n");
	rts_output_plain(STDERR_FILENO, text, strlen(text));
}

static const char *get(const char *suffix, char *name, size_t size)
{
	const char *v;

	snprintf(name, size, "%s_%s", rts_cfg.prefix, suffix);
	v = getenv(name);
	return v && *v ? v : NULL;
}

static enum rts_format parse_format(const char *v, const char *name)
{
	if (!v || !strcmp(v, "0"))
		return RTS_OFF;
	if (!strcmp(v, "1") || !strcmp(v, "summary"))
		return RTS_SUMMARY;
	if (!strcmp(v, "json"))
		return RTS_JSON;
	if (!strcmp(v, "jsonl"))
		return RTS_JSONL;
	rts_warn("%s=%.64s is not known: expected 0, 1, summary, json or jsonl; it stays off", name,
		 v);
	return RTS_OFF;
}

/* The whole of s as a number of 1 to max; 0 when it is none. */
static unsigned long number(const char *s, unsigned long max)
{
	unsigned long n;
	char *end;

	if (!isdigit((unsigned char)*s))
		return 0;
	errno = 0;
	n = strtoul(s, &end, 10);
	return *end || errno || n > max ? 0 : n;
}

static int parse_signal(const char *v, const char *name)
{
	const char *s = v;
	int signo;

	if (!v)
		return 0;
	if (!strncmp(s, "SIG", 3))
		s += 3;
	if (!strcmp(s, "USR1"))
		return SIGUSR1;
	if (!strcmp(s, "USR2"))
		return SIGUSR2;
	signo = (int)number(s, 1000);
#ifdef SIGRTMIN
	if (!strcmp(s, "RTMIN"))
		signo = SIGRTMIN;
	else if (!strncmp(s, "RTMIN+", 6) && number(s + 6, (unsigned long)(SIGRTMAX - SIGRTMIN)))
		signo = SIGRTMIN + (int)number(s + 6, (unsigned long)(SIGRTMAX - SIGRTMIN));
	if (signo >= SIGRTMIN && signo <= SIGRTMAX)
		return signo;
#endif
	if (signo == SIGUSR1 || signo == SIGUSR2)
		return signo;
	rts_warn(
		"%s=%.64s is not known: expected USR1, USR2, RTMIN+n, or the number of one of them; "
		"no snapshot signal",
		name, v);
	return 0;
}

static uint64_t parse_interval(const char *v, const char *name)
{
	uint64_t ns = v ? rts_duration(v) : 0;

	if (v && !ns)
		rts_warn("%s=%.64s is not known: expected 1ms to 24h, as 500ms, 1.5s, 2m or 1h; "
			 "no interval",
			 name, v);
	return ns;
}

struct trace {
	bool calls_to_exec, calls_steady, steps;
};

static void parse_trace(const char *v, const char *name, struct trace *t)
{
	while (v && *v) {
		size_t n = strcspn(v, ",");

		if (n == 8 && !strncmp(v, "syscalls", n))
			t->calls_to_exec = true;
		else if (n == 15 && !strncmp(v, "syscalls-steady", n))
			t->calls_steady = true;
		else if (n == 5 && !strncmp(v, "steps", n))
			t->steps = true;
		else if (n == 3 && !strncmp(v, "all", n))
			*t = (struct trace){true, true, true};
		else
			rts_warn(
				"%s: %.*s is not known: expected syscalls, syscalls-steady, steps or all",
				name, n > 64 ? 64 : (int)n, v);
		v += n + (v[n] == ',');
	}
}

int rts_env_read(const char *prefix)
{
	struct trace trace = {false, false, false};
	char name[64];

	if (prefix && strlen(prefix) > RTS_PREFIX_MAX) {
		rts_warn("rts_init(): the prefix %.40s... has %zu bytes: expected %d at most; "
			 "the statistics stay off",
			 prefix, strlen(prefix), RTS_PREFIX_MAX);
		return -EINVAL;
	}
	snprintf(rts_cfg.prefix, sizeof(rts_cfg.prefix), "%s", prefix ? prefix : "STATPAGE");
	rts_cfg.format = parse_format(get("RUNTIME_STATS", name, sizeof(name)), name);
	parse_trace(get("STARTUP_TRACE", name, sizeof(name)), name, &trace);
	rts_cfg.steps = trace.steps;
	if (rts_cfg.format == RTS_OFF) {
		if (!trace.calls_to_exec && !trace.calls_steady && !trace.steps)
			return 0;
		rts_cfg.format = RTS_SUMMARY;
		rts_cfg.until_exec = !trace.calls_steady;
	}
	rts_cfg.signo = parse_signal(get("STATS_SIGNAL", name, sizeof(name)), name);
	rts_cfg.interval_ns = parse_interval(get("STATS_INTERVAL", name, sizeof(name)), name);
	rts_cfg.output = get("STATS_OUTPUT", name, sizeof(name));
	if (rts_cfg.interval_ns && rts_cfg.format != RTS_JSONL) {
		rts_warn("%s_STATS_INTERVAL has an effect with %s_RUNTIME_STATS=jsonl only",
			 rts_cfg.prefix, rts_cfg.prefix);
		rts_cfg.interval_ns = 0;
	}
	return 0;
}
