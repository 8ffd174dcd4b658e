// SPDX-License-Identifier: MIT
/* Distributions drawn with characters. */
#include <inttypes.h>
#include <string.h>

#include "lib/fmt_dist.h"
#include "lib/fmt_plot.h"
#include "uapi/kstats_bucket.h"

static unsigned int columns(const struct plot_style *style)
{
	return style->columns < PLOT_MIN_COLUMNS ? PLOT_MIN_COLUMNS : style->columns;
}

static void paint(FILE *f, const struct plot_style *style, const char *sgr)
{
	if (style->colour)
		fprintf(f, "\033[%sm", sgr);
}

static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

/* n of `of` as a bar of at most width columns, filled up with blanks; what is there at all shows. */
static void put_bar(FILE *f, const struct plot_style *style, char ascii, const char *sgr,
		    uint64_t n, uint64_t of, unsigned int width)
{
	unsigned int unit = style->utf8 ? 8 : 1, len, used;

	len = (unsigned int)((double)n / (double)of * width * unit + 0.5);
	if (n && !len)
		len = 1;
	used = (len + unit - 1) / unit;
	paint(f, style, sgr);
	for (unsigned int i = 0; i < len / unit; i++)
		fputs(style->utf8 ? "█" : (char[]){ascii, '\0'}, f);
	fputs(eighths[len % unit], f);
	paint(f, style, "0");
	fprintf(f, "%*s", (int)(width - used), "");
}

/* The quantiles that lie in a slot, as one word: "p90", "p50-p99", or "". */
static const char *marks(const struct hist *h, unsigned int slot, char buf[16])
{
	static const struct {
		double q;
		const char *name;
	} marked[] = {{0.5, "p50"}, {0.9, "p90"}, {0.99, "p99"}, {0.999, "p999"}};
	const char *first = NULL, *last = NULL;
	struct hist_quantile v;

	for (unsigned int i = 0; i < sizeof(marked) / sizeof(marked[0]); i++) {
		if (hist_quantile(h, marked[i].q, &v) || kstats_slot(v.low, h->bits) != slot)
			continue;
		first = first ? first : marked[i].name;
		last = marked[i].name;
	}
	snprintf(buf, 16, "%s%s%s", first ? first : "", first != last ? "-" : "",
		 first != last ? last : "");
	return buf;
}

/* The first and the last slot with samples; false: there are none. */
static bool bounds(const struct hist *h, unsigned int *first, unsigned int *last)
{
	if (!h || !h->count)
		return false;
	for (*first = 0; !h->slot[*first].count; (*first)++)
		;
	for (*last = h->nr - 1; !h->slot[*last].count; (*last)--)
		;
	return true;
}

static uint64_t highest(const struct hist *h)
{
	uint64_t most = 0;

	for (unsigned int i = 0; i < h->nr; i++)
		if (h->slot[i].count > most)
			most = h->slot[i].count;
	return most;
}

/* What a line has beside its two bars: bound, count, share and marks, and the blanks between. */
#define BESIDE_BARS 44

void fmt_plot(FILE *f, const char *name, const struct dist_metric *m, int cpu,
	      const struct plot_style *style)
{
	const struct hist *h = fmt_dist_pick(m, cpu);
	unsigned int first, last, skipped = 0, width = (columns(style) - BESIDE_BARS) / 2;
	uint64_t most, so_far = 0;
	char low[16], mark[16];

	fmt_dist_head(f, name, m, cpu);
	if (!bounds(h, &first, &last)) {
		fputs("no samples\n", f);
		return;
	}
	most = highest(h);
	fprintf(f, "%10s %12s %-*s   share\n", "from", "count", (int)width, "distribution");
	for (unsigned int i = first; i <= last; i++) {
		uint64_t count = h->slot[i].count;

		/* Far apart modes: a gap of more than 8 lines is told, not drawn. */
		if (!count && ++skipped > 8)
			continue;
		if (count && skipped > 8)
			fprintf(f, "%10s\n", "...");
		if (count)
			skipped = 0;
		so_far += count;
		fprintf(f, "%10s %12" PRIu64 " ", fmt_dist_ns(low, kstats_slot_low(i, h->bits)),
			count);
		put_bar(f, style, '#', "36", count, most, width);
		fprintf(f, " %6.2f%% ", 100.0 * (double)so_far / (double)h->count);
		put_bar(f, style, '=', "34", so_far, h->count, width);
		paint(f, style, "1");
		fprintf(f, " %s", count ? marks(h, i, mark) : "");
		paint(f, style, "0");
		fputc('\n', f);
	}
}

/* ---- heat map ---- */

/* How much of a line's samples are in a cell: at least `of` in a thousand, but for the first: any. */
static const struct {
	unsigned int of;
	char ascii;
	const char *utf8, *sgr, *name;
} shades[] = {
	{0, '.', "·", "38;5;240", ">0%"},   {10, ':', "░", "38;5;25", "1%"},
	{30, '+', "▒", "38;5;37", "3%"},    {100, '#', "▓", "38;5;178", "10%"},
	{300, '@', "█", "38;5;196", "30%"},
};
#define NR_SHADES (sizeof(shades) / sizeof(shades[0]))

/* What a line has beside its cells: time, count and p99, and the blanks between. */
#define BESIDE_CELLS 29

struct scale {
	unsigned int cells, slots_a_cell, cells_a_slot;
};

static struct scale scale(const struct heatmap *map)
{
	unsigned int room = columns(&map->style) - BESIDE_CELLS, slots = map->high - map->low + 1;
	struct scale s = {.slots_a_cell = (slots + room - 1) / room, .cells_a_slot = 1};

	if (s.slots_a_cell == 1)
		s.cells_a_slot = room / slots;
	s.cells = (slots + s.slots_a_cell - 1) / s.slots_a_cell * s.cells_a_slot;
	return s;
}

static unsigned int first_slot(const struct heatmap *map, const struct scale *s, unsigned int cell)
{
	return map->low + cell / s->cells_a_slot * s->slots_a_cell;
}

static void put_shade(FILE *f, const struct plot_style *style, unsigned int shade)
{
	paint(f, style, shades[shade].sgr);
	fputs(style->utf8 ? shades[shade].utf8 : (char[]){shades[shade].ascii, '\0'}, f);
	paint(f, style, "0");
}

/* Legend, and the times at which every tenth cell begins, as far as each has room. */
static void put_axis(FILE *f, const struct heatmap *map)
{
	struct scale s = scale(map);
	char ns[16];

	fputs("share of a line's samples in a cell, at least:", f);
	for (unsigned int i = 0; i < NR_SHADES; i++) {
		fputs("  ", f);
		put_shade(f, &map->style, i);
		fprintf(f, " %s", shades[i].name);
	}
	fprintf(f, "\n%8s %9s ", "time", "count");
	for (unsigned int at = 0; at < s.cells; at += 10)
		fprintf(f, "%-*s", (int)(s.cells - at < 10 ? s.cells - at : 10),
			s.cells - at < 9 ? "" :
					   fmt_dist_ns(ns, kstats_slot_low(first_slot(map, &s, at),
									   map->bits)));
	fprintf(f, " %9s\n", "p99");
}

/* One power of two more on each side, so that a stray sample seldom moves the axis. */
static void widen(struct heatmap *map, unsigned int first, unsigned int last)
{
	unsigned int octave = 1u << map->bits, end = KSTATS_NR_SLOTS(map->bits) - 1;

	first = first > octave ? first - octave : 0;
	last = last + octave < end ? last + octave : end;
	if (map->low > map->high) {
		map->low = first;
		map->high = last;
	}
	map->low = first < map->low ? first : map->low;
	map->high = last > map->high ? last : map->high;
}

void heatmap_init(struct heatmap *map, const struct plot_style *style, const struct hist *so_far)
{
	unsigned int first, last;

	*map = (struct heatmap){.style = *style, .bits = so_far->bits, .low = 1, .high = 0};
	if (bounds(so_far, &first, &last))
		widen(map, first, last);
}

void fmt_heatmap_line(FILE *f, struct heatmap *map, const char *when, const struct hist *h)
{
	unsigned int first, last;
	struct hist_quantile p99;
	struct scale s;
	char ns[16];

	if (!bounds(h, &first, &last)) {
		fprintf(f, "%8s %9d\n", when, 0);
		return;
	}
	if (map->low > map->high || first < map->low || last > map->high) {
		widen(map, first, last);
		map->has_axis = false;
	}
	if (!map->has_axis)
		put_axis(f, map);
	map->has_axis = true;
	s = scale(map);
	fprintf(f, "%8s %9" PRIu64 " ", when, h->count);
	for (unsigned int cell = 0; cell < s.cells; cell++) {
		unsigned int slot = first_slot(map, &s, cell), shade = 0;
		uint64_t n = 0;

		for (unsigned int i = slot; i < slot + s.slots_a_cell && i <= map->high; i++)
			n += h->slot[i].count;
		while (shade + 1 < NR_SHADES &&
		       (double)n * 1000 >= (double)h->count * shades[shade + 1].of)
			shade++;
		if (n)
			put_shade(f, &map->style, shade);
		else
			fputc(' ', f);
	}
	hist_quantile(h, 0.99, &p99);
	fprintf(f, " %9s\n", fmt_dist_ns(ns, p99.value));
}
