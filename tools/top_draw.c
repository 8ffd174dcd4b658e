// SPDX-License-Identifier: GPL-2.0
/* The live view's screens. Whatever is wider than the screen is cut with a mark. */
#include <curses.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/fmt_dist.h"
#include "tools/top_ui.h"

/* Parts of a bar: those of a thread's time, then the same glyphs for CPUs. The last one is the rest. */
static const struct {
	const char *utf8, *ascii, *thread, *cpu;
	short colour;
} parts[TOP_NR_PARTS] = {
	{"█", "#", "CPU", "user", COLOR_GREEN},
	{"▓", "+", "run queue", "system", COLOR_RED},
	{"░", "~", "sleep", "I/O wait", COLOR_BLUE},
	{"▒", "=", "uninterruptible", "interrupts", COLOR_MAGENTA},
	{"▚", "@", "I/O wait", "steal", COLOR_YELLOW},
	{"·", ".", "off", "idle", -1},
};
#define PAIR_KEYS (TOP_NR_PARTS + 1)

static const char *const view_names[TOP_NR_VIEWS] = {"threads", "CPUs", "distributions"};

void top_draw_init(void)
{
	const char *no_colour = getenv("NO_COLOR");

	if ((no_colour && *no_colour) || !has_colors())
		return;
	start_color();
	use_default_colors();
	for (int i = 0; i < TOP_NR_PARTS; i++)
		init_pair((short)(i + 1), parts[i].colour, -1);
	init_pair(PAIR_KEYS, COLOR_BLACK, COLOR_CYAN);
}

static attr_t pair(int nr)
{
	return COLORS > 0 && COLOR_PAIRS > PAIR_KEYS ? (attr_t)COLOR_PAIR(nr) : A_NORMAL;
}

/* Text at a place, cut to width columns. Returns the column behind it. */
static int put(const struct top_ui *ui, int y, int x, int width, const char *text)
{
	char buf[1024];

	if (x >= COLS || width <= 0)
		return x;
	if (width > COLS - x)
		width = COLS - x;
	x += (int)fmt_top_name(buf, sizeof(buf), text, (unsigned int)width, ui->utf8);
	mvaddstr(y, x - (int)fmt_top_name(buf, sizeof(buf), text, (unsigned int)width, ui->utf8),
		 buf);
	return x;
}

__attribute__((format(printf, 4, 5))) static int putf(const struct top_ui *ui, int y, int x,
						      const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return put(ui, y, x, COLS - x, text);
}

/* In its columns, to the left or to the right. */
static void put_cell(const struct top_ui *ui, int y, int x, unsigned int width, bool left,
		     const char *text)
{
	unsigned int len = (unsigned int)strlen(text);

	put(ui, y, x + (left || len >= width ? 0 : (int)(width - len)), (int)width, text);
}

static void put_bar(const struct top_ui *ui, int y, int x, unsigned int width,
		    const uint64_t part[TOP_NR_PARTS])
{
	unsigned char cell[512];

	if (width > sizeof(cell))
		width = sizeof(cell);
	fmt_top_bar(cell, width, part, TOP_NR_PARTS);
	for (unsigned int i = 0; i < width; i++) {
		attrset(pair(cell[i] + 1));
		mvaddstr(y, x + (int)i, ui->utf8 ? parts[cell[i]].utf8 : parts[cell[i]].ascii);
	}
	attrset(A_NORMAL);
}

static void cpu_parts(uint64_t part[TOP_NR_PARTS], const struct cpu_delta *d)
{
	part[0] = d->ns[CPU_USER] + d->ns[CPU_NICE];
	part[1] = d->ns[CPU_SYSTEM];
	part[2] = d->ns[CPU_IOWAIT];
	part[3] = d->ns[CPU_IRQ] + d->ns[CPU_SOFTIRQ];
	part[4] = d->ns[CPU_STEAL];
	part[5] = d->ns[CPU_IDLE];
}

/* ---- head and foot ---- */

static void put_title(const struct top_ui *ui)
{
	const struct top_report *r = ui->r;
	time_t t = (time_t)(r->real_ns / 1000000000u);
	char target[100] = "all processes", when[64], clock[16];
	struct tm tm;

	for (size_t i = 0; ui->o->pid && i < r->nr_threads; i++)
		if (r->thread[i].s->tid == ui->o->pid)
			snprintf(target, sizeof(target), "process %d %s", ui->o->pid,
				 r->thread[i].s->comm);
	strftime(clock, sizeof(clock), "%T", localtime_r(&t, &tm));
	if (r->interval_ns)
		snprintf(when, sizeof(when), "%slast %.2f s  %s", ui->paused ? "PAUSED  " : "",
			 (double)r->interval_ns / 1e9, clock);
	else
		snprintf(when, sizeof(when), "%ssince they began  %s", ui->paused ? "PAUSED  " : "",
			 clock);
	attrset(A_BOLD);
	putf(ui, 0, 0, "statpage top");
	attrset(A_NORMAL);
	if (!ui->ended[0]) {
		char text[300];

		snprintf(text, sizeof(text), "%s: %zu thread%s", target, r->nr_threads,
			 r->nr_threads == 1 ? "" : "s");
		put(ui, 0, 14, COLS - 14 - (int)strlen(when) - 1, text);
	} else {
		put(ui, 0, 14, COLS - 14 - (int)strlen(when) - 1, ui->ended);
	}
	put_cell(ui, 0, COLS - (int)strlen(when), (unsigned int)strlen(when), true, when);
}

static void put_machine(const struct top_ui *ui)
{
	const struct top_report *r = ui->r;
	char user[24], sys[24], io[24], irq[24], steal[24];
	uint64_t part[TOP_NR_PARTS];
	int x;

	if (!r->nr_cpus) {
		putf(ui, 1, 0, "CPUs: %s", r->no_cpus);
		return;
	}
	cpu_parts(part, &r->cpu[0].d);
	x = putf(ui, 1, 0, "%zu CPU%s: user %4s  system %4s  I/O wait %4s  irq %4s  steal %4s ",
		 r->nr_cpus - 1, r->nr_cpus == 2 ? "" : "s",
		 fmt_top_share(user, part[0], r->cpu[0].d.all_ns),
		 fmt_top_share(sys, part[1], r->cpu[0].d.all_ns),
		 fmt_top_share(io, part[2], r->cpu[0].d.all_ns),
		 fmt_top_share(irq, part[3], r->cpu[0].d.all_ns),
		 fmt_top_share(steal, part[4], r->cpu[0].d.all_ns));
	if (r->cpu[0].d.all_ns && x + 5 < COLS)
		put_bar(ui, 1, x, (unsigned int)(COLS - x), part);
}

static void put_source(const struct top_ui *ui)
{
	const struct top_report *r = ui->r;
	int x = 0;

	switch (ui->view) {
	case TOP_THREADS:
		for (int i = 0; ui->o->engine[i]; i++)
			x = putf(ui, 2, x, "%s%s", i ? ", " : "engine ", ui->o->engine[i]->name);
		x = putf(ui, 2, x, " (F1: what it cannot see)   sorted by %s%s",
			 top_columns[ui->sort].title, ui->reverse ? ", reversed" : "");
		if (ui->filter[0])
			putf(ui, 2, x, ", filter '%s'", ui->filter);
		break;
	case TOP_CPUS:
		putf(ui, 2, 0, "from %s, in %% of the interval",
		     r->cpu_source ? r->cpu_source : "nowhere");
		break;
	default:
		if (!r->dist_engines[0])
			break;
		putf(ui, 2, 0, "engine %s, samples %s, the axis is logarithmic", r->dist_engines,
		     ui->all_samples ? "since the metrics were reset" : "of the interval");
	}
}

static void put_legend(const struct top_ui *ui)
{
	int x = 0;

	if (ui->view == TOP_DISTS)
		return;
	for (int i = 0; i < TOP_NR_PARTS; i++) {
		attrset(pair(i + 1));
		x = put(ui, 3, x, 1, ui->utf8 ? parts[i].utf8 : parts[i].ascii);
		attrset(A_NORMAL);
		x = putf(ui, 3, x, " %s  ", ui->view == TOP_CPUS ? parts[i].cpu : parts[i].thread);
	}
}

static void put_keys(const struct top_ui *ui)
{
	static const struct {
		const char *key, *what;
	} keys[] = {{"F1", "Help"}, {"F2", "View"},   {"F4", "Filter"}, {"F5", "Pause"},
		    {"F6", "Sort"}, {"F7", "Invert"}, {"F10", "Quit"}};
	int x = 0;

	if (ui->mode == TOP_FILTER) {
		x = putf(ui, LINES - 1, 0, "Filter: %s", ui->filter);
		attrset(A_REVERSE);
		mvaddch(LINES - 1, x < COLS ? x : COLS - 1, ' ');
		attrset(A_NORMAL);
		putf(ui, LINES - 1, x + 3, "(name, pid or tid)  Enter: done  Esc: show all");
		return;
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		x = putf(ui, LINES - 1, x, "%s", keys[i].key);
		attrset(COLORS > 0 ? pair(PAIR_KEYS) : A_REVERSE);
		x = putf(ui, LINES - 1, x, "%s", keys[i].what) + 1;
		attrset(A_NORMAL);
	}
	putf(ui, LINES - 1, x + 1, "(%s)", view_names[ui->view]);
}

static void put_table_head(const struct top_ui *ui, int y, const char *text)
{
	attrset(A_REVERSE);
	mvhline(y, 0, ' ', COLS);
	put(ui, y, 0, COLS, text);
	attrset(A_NORMAL);
}

/* ---- threads ---- */

static void put_thread_head(const struct top_ui *ui, const struct top_layout *l)
{
	int x = 0;

	put_table_head(ui, TOP_HEAD_LINES - 1, "");
	for (int c = 0; c < TOP_NR_COLUMNS; c++) {
		if (!l->width[c])
			continue;
		attrset(c == (int)ui->sort ? A_REVERSE | A_BOLD : A_REVERSE);
		put_cell(ui, TOP_HEAD_LINES - 1, x, l->width[c], top_columns[c].left,
			 top_columns[c].title);
		x += (int)l->width[c] + 1;
	}
	attrset(A_REVERSE);
	if (l->left_out)
		put(ui, TOP_HEAD_LINES - 1, COLS - 1, 1, ui->utf8 ? "»" : ">");
	attrset(A_NORMAL);
}

static void put_thread(const struct top_ui *ui, const struct top_layout *l, int y,
		       const struct top_thread *t, attr_t attr)
{
	uint64_t part[TOP_NR_PARTS];
	char cell[24];
	int x = 0;

	attrset(attr);
	mvhline(y, 0, ' ', COLS);
	for (int c = 0; c < TOP_NR_COLUMNS; c++) {
		if (!l->width[c])
			continue;
		attrset(attr);
		if (c == TOP_COMM)
			put(ui, y, x, (int)l->width[c], t->s->comm);
		else if (c != TOP_BAR)
			put_cell(ui, y, x, l->width[c], top_columns[c].left,
				 fmt_top_cell(cell, (enum top_column)c, t));
		else if (fmt_top_parts(part, t))
			put_bar(ui, y, x, l->width[c], part);
		x += (int)l->width[c] + 1;
	}
	attrset(A_NORMAL);
}

/* ---- CPUs ---- */

static void put_cpu(const struct top_ui *ui, int y, const struct top_cpu *c, attr_t attr)
{
	uint64_t part[TOP_NR_PARTS], ns[CPU_NR_TIMES];
	char text[24] = "all";
	int x = 4;

	attrset(attr);
	mvhline(y, 0, ' ', COLS);
	if (c->row->cpu >= 0)
		snprintf(text, sizeof(text), "%d", c->row->cpu);
	put_cell(ui, y, 0, 4, false, text);
	memcpy(ns, c->d.ns, sizeof(ns));
	ns[CPU_GUEST] += ns[CPU_GUEST_NICE];
	for (int i = 0; i <= CPU_GUEST; i++, x += 6)
		put_cell(ui, y, x, 6, false,
			 c->d.known & 1u << i ? fmt_top_share(text, ns[i], c->d.all_ns) : "-");
	cpu_parts(part, &c->d);
	if (c->d.all_ns && x + 2 < COLS)
		put_bar(ui, y, x + 1, (unsigned int)(COLS - x - 1), part);
	attrset(A_NORMAL);
}

/* ---- distributions ---- */

/* Columns of the screen: the name, four numbers of 8, and the rest for the picture. */
static unsigned int dist_name_width(void)
{
	return COLS < 100 ? 22 : 34;
}

static const struct hist *dist_hist(const struct top_ui *ui, const struct top_dist *d)
{
	return ui->all_samples ? d->all : d->interval;
}

/* One axis for all metrics. False: there are no samples. */
static bool dist_axis(const struct top_ui *ui, uint64_t *low, uint64_t *high)
{
	*low = UINT64_MAX;
	*high = 0;
	for (size_t i = 0; i < ui->r->nr_dists; i++) {
		const struct hist *h = dist_hist(ui, &ui->r->dist[i]);

		if (!h || !h->count)
			continue;
		if (h->min < *low)
			*low = h->min;
		if (h->max > *high)
			*high = h->max;
	}
	if (!*low)
		*low = 1;
	return *high >= *low;
}

static void put_dist_head(const struct top_ui *ui)
{
	int x = (int)dist_name_width() + 4 * 9 + 1, width = COLS - x;
	uint64_t low, high;
	char text[16];

	put_table_head(ui, TOP_HEAD_LINES - 1, "");
	attrset(A_REVERSE);
	put(ui, TOP_HEAD_LINES - 1, 0, x, "METRIC");
	for (int i = 0; i < 4; i++) {
		static const char *const title[] = {"COUNT", "P50", "P99", "MAX"};

		put_cell(ui, TOP_HEAD_LINES - 1, (int)dist_name_width() + 9 * i, 9, false,
			 title[i]);
	}
	if (dist_axis(ui, &low, &high) && width >= 18) {
		put(ui, TOP_HEAD_LINES - 1, x, width, fmt_dist_ns(text, low));
		fmt_dist_ns(text, high);
		put(ui, TOP_HEAD_LINES - 1, COLS - (int)strlen(text), (int)strlen(text), text);
	}
	attrset(A_NORMAL);
}

static void put_spark(const struct top_ui *ui, int y, int x, int width, const struct hist *h)
{
	static const char *const utf8[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
	unsigned char height[512];
	uint64_t low, high;

	if (width > (int)sizeof(height))
		width = sizeof(height);
	if (width <= 0 || !dist_axis(ui, &low, &high))
		return;
	fmt_top_spark(height, (unsigned int)width, h, low, high);
	attrset(pair(1));
	for (int i = 0; i < width; i++)
		mvaddstr(y, x + i, ui->utf8 ? utf8[height[i]] : ascii[height[i]]);
	attrset(A_NORMAL);
}

static void put_dist(const struct top_ui *ui, int y, const struct top_dist *d, attr_t attr)
{
	static const double quantile[] = {0.5, 0.99, 1};
	const struct hist *h = dist_hist(ui, d);
	int x = (int)dist_name_width();
	struct hist_quantile q;
	char text[24] = "-";

	attrset(attr);
	mvhline(y, 0, ' ', COLS);
	/* A metric that has missed samples says so. */
	put(ui, y, 0, x - 1, d->name);
	if (d->missed)
		put(ui, y, x - 1, 1, "!");
	if (h)
		fmt_top_count(text, h->count);
	put_cell(ui, y, x, 9, false, text);
	for (int i = 0; i < 3; i++)
		put_cell(ui, y, x + 9 * (i + 1), 9, false,
			 h && !hist_quantile(h, quantile[i], &q) ? fmt_dist_ns(text, q.value) :
								   "-");
	if (h && h->count)
		put_spark(ui, y, x + 4 * 9 + 1, COLS - x - 4 * 9 - 1, h);
	attrset(A_NORMAL);
}

/* ---- the sort menu, help ---- */

enum top_column top_menu_column(size_t i)
{
	return i < TOP_BAR	      ? (enum top_column)i :
	       i + 1 < TOP_NR_COLUMNS ? (enum top_column)(i + 1) :
					TOP_NR_COLUMNS;
}

static void draw_menu(struct top_ui *ui)
{
	size_t nr = TOP_NR_COLUMNS - 1, room = top_room(), first;

	if (ui->menu >= nr)
		ui->menu = nr - 1;
	first = ui->menu < room ? 0 : ui->menu - room + 1;
	put_table_head(ui, TOP_HEAD_LINES - 1, "Sort by (Enter: choose, any other key: leave)");
	for (size_t i = first; i < nr && i - first < room; i++) {
		enum top_column c = top_menu_column(i);
		int y = TOP_HEAD_LINES + (int)(i - first);

		attrset(i == ui->menu ? A_REVERSE : A_NORMAL);
		mvhline(y, 0, ' ', COLS);
		putf(ui, y, 0, "  %-8s %s", top_columns[c].title, top_columns[c].help);
	}
	attrset(A_NORMAL);
}

/* Lines of help, one after the other; those from first on are on the screen. */
struct pager {
	const struct top_ui *ui;
	size_t first, nr;
	int y; /* of the first line */
};

static void page_line(struct pager *p, const char *text)
{
	size_t at = p->nr++;

	if (at >= p->first && at - p->first < (size_t)(LINES - 2))
		put(p->ui, p->y + (int)(at - p->first), 0, COLS, text);
}

/* Words in as many lines as it takes, all but the first one indented. */
static void page_text(struct pager *p, unsigned int indent, const char *text)
{
	char line[512];
	size_t width = (size_t)COLS < sizeof(line) ? (size_t)COLS : sizeof(line) - 1, len = 0;

	for (const char *w = text; *w;) {
		size_t n = strcspn(w, " ");

		if (len && len + 1 + n > width) {
			line[len] = '\0';
			page_line(p, line);
			memset(line, ' ', indent);
			len = indent - 1;
		}
		if (len)
			line[len++] = ' ';
		if (n > width - len)
			n = width - len;
		memcpy(line + len, w, n);
		len += n;
		w += n;
		w += strspn(w, " ");
	}
	line[len] = '\0';
	page_line(p, line);
}

static void draw_help(struct top_ui *ui)
{
	static const char *const keys[] = {
		"F1 h ?       this help            F2 Tab 1 2 3  threads, CPUs, distributions",
		"F4 \\ /       filter threads       F5 Z blank    pause, go on",
		"F6 < >       sort by a column     F7 I          invert the order",
		"P N          sort by CPU%, by pid A             distributions: all samples",
		"F10 q ^C     quit",
		"arrows, PgUp, PgDn, Home, End     move (here, too)",
		"",
	};
	struct pager p = {.ui = ui, .first = ui->help_line};
	char text[1024];

	for (int pass = 0; pass < 2; pass++) {
		erase();
		p.nr = 0;
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			page_line(&p, keys[i]);
		for (int i = 0; ui->o->engine[i]; i++) {
			snprintf(text, sizeof(text), "Engine %s. It cannot see: %s.",
				 ui->o->engine[i]->name, ui->o->engine[i]->cannot_see);
			page_text(&p, 2, text);
		}
		if (ui->o->hint)
			page_text(&p, 2, ui->o->hint);
		page_line(&p, "");
		for (int c = 0; c < TOP_NR_COLUMNS; c++) {
			snprintf(text, sizeof(text), "%-8s %s", top_columns[c].title,
				 top_columns[c].help);
			page_line(&p, text);
		}
		page_text(
			&p, 2,
			"- is not known. Where the head ends with a mark, a wider terminal shows more. "
			"A metric with ! has missed samples: statpage show tells why.");
		/* Again where the end was passed. */
		if (p.first + (size_t)(LINES - 2) <= p.nr || !p.first)
			break;
		p.first = p.nr > (size_t)(LINES - 2) ? p.nr - (size_t)(LINES - 2) : 0;
	}
	ui->help_line = p.first;
	attrset(A_REVERSE);
	mvhline(LINES - 1, 0, ' ', COLS);
	putf(ui, LINES - 1, 0, "Help, lines %zu to %zu of %zu. Any other key: back", p.first + 1,
	     p.first + (size_t)(LINES - 2) < p.nr ? p.first + (size_t)(LINES - 2) : p.nr, p.nr);
	attrset(A_NORMAL);
}

/* ---- all of it ---- */

size_t top_rows(const struct top_ui *ui)
{
	switch (ui->view) {
	case TOP_THREADS:
		return ui->nr_threads;
	case TOP_CPUS:
		return ui->r->nr_cpus;
	default:
		return ui->r->nr_dists;
	}
}

size_t top_room(void)
{
	int room = LINES - TOP_HEAD_LINES - 1;

	return room > 0 ? (size_t)room : 1;
}

/* Put the marked row into the range of rows, and the screen around it. */
static void settle(struct top_ui *ui)
{
	size_t *row = &ui->row[ui->view], *first = &ui->first[ui->view];
	size_t nr = top_rows(ui), room = top_room();

	if (*row >= nr)
		*row = nr ? nr - 1 : 0;
	if (*first + room > nr)
		*first = nr > room ? nr - room : 0;
	if (*row < *first)
		*first = *row;
	if (*row >= *first + room)
		*first = *row - room + 1;
}

/* A text that may need more than a line. */
static void put_words(struct top_ui *ui, int y, const char *text)
{
	struct pager p = {.ui = ui, .y = y};

	page_text(&p, 2, text);
}

static void draw_rows(struct top_ui *ui)
{
	size_t first = ui->first[ui->view], nr = top_rows(ui), room = top_room();
	struct top_layout l;

	if (ui->view == TOP_THREADS) {
		fmt_top_layout(&l, ui->r, ui->o->pid != 0, (unsigned int)COLS);
		put_thread_head(ui, &l);
	} else if (ui->view == TOP_CPUS) {
		put_table_head(ui, TOP_HEAD_LINES - 1,
			       " CPU  user  nice   sys  idle  iowt   irq  sirq steal guest TIME");
	} else {
		put_dist_head(ui);
	}
	for (size_t i = first; i < nr && i - first < room; i++) {
		int y = TOP_HEAD_LINES + (int)(i - first);
		attr_t attr = i == ui->row[ui->view] ? A_REVERSE : A_NORMAL;

		if (ui->view == TOP_THREADS)
			put_thread(ui, &l, y, &ui->thread[i], attr);
		else if (ui->view == TOP_CPUS)
			put_cpu(ui, y, &ui->r->cpu[i], attr);
		else
			put_dist(ui, y, &ui->r->dist[i], attr);
	}
	if (!nr && ui->view == TOP_DISTS)
		put_words(ui, TOP_HEAD_LINES,
			  ui->r->dist_engines[0] ?
				  "nothing is traced: try statpage trace vfs_read" :
				  ui->r->no_dists);
	if (!nr && ui->view == TOP_THREADS)
		put(ui, TOP_HEAD_LINES, 0, COLS,
		    ui->ended[0]  ? ui->ended :
		    ui->filter[0] ? "no thread matches the filter" :
				    "no threads");
}

static void draw_table(struct top_ui *ui)
{
	settle(ui);
	put_title(ui);
	put_machine(ui);
	put_source(ui);
	put_legend(ui);
	if (ui->mode == TOP_SORT)
		draw_menu(ui);
	else
		draw_rows(ui);
	put_keys(ui);
}

void top_draw(struct top_ui *ui)
{
	erase();
	if (COLS < TOP_MIN_COLUMNS || LINES < TOP_MIN_LINES)
		putf(ui, 0, 0, "%dx%d is too small: %dx%d is the least", COLS, LINES,
		     TOP_MIN_COLUMNS, TOP_MIN_LINES);
	else if (ui->mode == TOP_HELP)
		draw_help(ui);
	else
		draw_table(ui);
	refresh();
}
