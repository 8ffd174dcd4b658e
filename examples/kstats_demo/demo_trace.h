/* SPDX-License-Identifier: MIT */
/* The tracepoints of the demo: a module's own, to be traced by kstats. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kstats_demo

#if !defined(DEMO_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define DEMO_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(kstats_demo_begin, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),
	    TP_fast_assign(__entry->n = n;), TP_printk("n=%d", __entry->n));

TRACE_EVENT(kstats_demo_end, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),
	    TP_fast_assign(__entry->n = n;), TP_printk("n=%d", __entry->n));

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE demo_trace
#include <trace/define_trace.h>
