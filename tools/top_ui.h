/* SPDX-License-Identifier: GPL-2.0 */
/* State of the live view: top_live.c changes it, by keys and time, top_draw.c draws it. */
#ifndef TOOLS_TOP_UI_H
#define TOOLS_TOP_UI_H

#include "tools/top.h"

#define TOP_MIN_COLUMNS 60
#define TOP_MIN_LINES	10
#define TOP_HEAD_LINES	5 /* above the rows; below them is one more */

enum top_view { TOP_THREADS, TOP_CPUS, TOP_DISTS, TOP_NR_VIEWS };

enum top_mode {
	TOP_TABLE,
	TOP_FILTER, /* the table, and a line to type in */
	TOP_SORT,   /* a menu of columns */
	TOP_HELP,
};

struct top_ui {
	const struct top_opts *o;
	const struct top_report *r;
	enum top_view view;
	enum top_mode mode;
	struct top_thread *thread; /* those that match the filter, in order; their memory is ours */
	size_t nr_threads;
	enum top_column sort;
	bool reverse;
	char filter[32];
	bool paused;
	bool all_samples; /* of distributions; else those of the interval */
	char ended[100];  /* why there will be no more reports; "" */
	/* The row that is marked and the first one on the screen, of each view. */
	size_t row[TOP_NR_VIEWS], first[TOP_NR_VIEWS];
	size_t menu;	  /* the line of the sort menu that is marked */
	size_t help_line; /* the first one on the screen */
	bool utf8;
};

/* Draw all of it, and put rows and lines that are out of range back into it. */
void top_draw(struct top_ui *ui);

/* Prepare colours, after initscr(). */
void top_draw_init(void);

/* Rows of the view that is shown, and how many the screen has room for. */
size_t top_rows(const struct top_ui *ui);
size_t top_room(void);

/* The i'th column of the sort menu; TOP_NR_COLUMNS: there are no more. */
enum top_column top_menu_column(size_t i);

#endif /* TOOLS_TOP_UI_H */
