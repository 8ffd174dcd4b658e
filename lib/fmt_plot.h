/* SPDX-License-Identifier: MIT */
/* A metric drawn with characters. Pure, as fmt_dist.h is. */
#ifndef LIB_FMT_PLOT_H
#define LIB_FMT_PLOT_H

#include <stdio.h>

#include "lib/dist.h"

struct plot_style {
	unsigned int columns; /* of the terminal; less than PLOT_MIN_COLUMNS count as that */
	bool utf8;	      /* block characters, an eighth of a column fine; else ASCII */
	bool colour;	      /* escape sequences of ECMA-48 */
};

#define PLOT_MIN_COLUMNS 60

/*
 * The distribution and the share of samples up to each slot, as bars; a line a slot, so the height of
 * the picture is the logarithm of time. Lines with a quantile say which.
 */
void fmt_plot(FILE *f, const char *name, const struct dist_metric *m, int cpu,
	      const struct plot_style *style);

/* Time against latency: a line an interval, latency from left to right, logarithmic. */
struct heatmap {
	struct plot_style style;
	unsigned int bits;	/* of the histograms that will come */
	unsigned int low, high; /* the slots that are shown; none yet: low > high */
	bool has_axis;		/* it was printed for these */
};

/* A heat map that shows at first where `so_far` has samples; it may be empty. */
void heatmap_init(struct heatmap *map, const struct plot_style *style, const struct hist *so_far);

/*
 * One line: the samples h of an interval, after `when` of at most 8 characters. The axis comes before the
 * first line, and again when samples fall outside of it.
 */
void fmt_heatmap_line(FILE *f, struct heatmap *map, const char *when, const struct hist *h);

#endif /* LIB_FMT_PLOT_H */
