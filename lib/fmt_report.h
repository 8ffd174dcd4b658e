/* SPDX-License-Identifier: MIT */
/* The parts of a report's page, and the words and numbers that all of them are made of. */
#ifndef STATPAGE_FMT_REPORT_H
#define STATPAGE_FMT_REPORT_H

#include <stdio.h>

#include "lib/report.h"

/*
 * Text that others chose. What means something to HTML is escaped; what is no visible character of valid
 * UTF-8, or turns the direction of text, is written as \xHH or \u{HHHH}.
 */
void html_text(FILE *f, const char *s);

/* 480 ns, 20.1 µs, 1.06 ms, 1.50 s: three digits. */
void html_ns(FILE *f, uint64_t ns);
/* 1,234,567 */
void html_num(FILE *f, uint64_t n);

/* Cells. The exact number, by which the page sorts, is in data-v. */
void html_td_ns(FILE *f, uint64_t ns);
void html_td_num(FILE *f, uint64_t n);
void html_td_none(FILE *f);
/* has ? time : nothing */
void html_td_maybe(FILE *f, bool has, uint64_t ns);

/*
 * A table in a box that scrolls by itself; columns are names, an empty one ends them; one of
 * text begins with <, and is aligned to the left.
 */
void html_table(FILE *f, const char *label, bool sorts, const char *const *columns);
void html_table_end(FILE *f);

/* part of whole in percent, 0 of 0 is 0. */
double html_percent(double part, double whole);

/* Each part is a section; nr tells the ids of the inputs' sections apart. */
void fmt_report_run(FILE *f, const struct report_input *in, size_t nr);
void fmt_report_calls(FILE *f, const struct report_calls *t, const char *label);
void fmt_report_timeline(FILE *f, const struct report_input *in, size_t nr);
void fmt_report_metrics(FILE *f, const struct report_input *in, size_t nr);
void fmt_report_compare(FILE *f, const struct report_input *before,
			const struct report_input *after);
void fmt_report_engines(FILE *f, const struct report_input *in);

#endif /* STATPAGE_FMT_REPORT_H */
