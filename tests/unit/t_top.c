/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks the pieces that statpage top's screens are drawn from: cells of four columns, names that
 * are cut with a mark, bars that add up, columns that fit, orders, and the differences of CPU times.
 */
#include <locale.h>
#include <string.h>

#include "tests/t.h"
#include "lib/fmt_top.h"

#define MS 1000000u

static struct thread_sample sample[3];
static struct top_thread row[3];

/* Three threads by the engine proc: half on a CPU; all of it; not known. */
static void setup(void)
{
	static const char *const comm[] = {"b", "a", "c"};

	for (int i = 0; i < 3; i++) {
		sample[i] = (struct thread_sample){
			.engine = &threads_proc, .pid = 10, .tid = 10 + i, .state = 'R', .cpu = i};
		strcpy(sample[i].comm, comm[i]);
		memset(&row[i], 0, sizeof(row[i]));
		row[i].s = &sample[i];
	}
	sample[0].known = sample[1].known = THREAD_KNOWN(THREAD_ONCPU) | THREAD_KNOWN(THREAD_BLOCK);
	row[0].d = (struct thread_delta){.wall_ns = 1000 * MS,
					 .known = sample[0].known,
					 .has_off = true,
					 .off_ns = 500 * MS};
	row[0].d.value[THREAD_ONCPU] = 500 * MS;
	row[0].d.value[THREAD_BLOCK] = 12345;
	row[1].d = row[0].d;
	/* It lags: more than there was time. */
	row[1].d.value[THREAD_ONCPU] = 1004 * MS;
	row[1].d.value[THREAD_BLOCK] = 3;
	row[1].d.off_ns = 0;
}

static void t_cells(void)
{
	static const struct {
		uint64_t n;
		const char *text;
	} counts[] = {{0, "0"},		 {9999, "9999"},   {10000, "10k"},    {999499, "999k"},
		      {1234567, "1.2M"}, {999500, "1.0M"}, {99500000, "100M"}};
	char cell[24];

	TEST("cells: shares of the time, rates, and what is not known") {
#define CELL(i, c) fmt_top_cell(cell, c, &row[i])
		CHECK(!strcmp(CELL(0, TOP_ONCPU), "50.0"), "%s", cell);
		CHECK(!strcmp(CELL(0, TOP_OFF), "50.0"), "%s", cell);
		CHECK(!strcmp(CELL(0, TOP_BLOCK), "12k"), "%s", cell);
		CHECK(!strcmp(CELL(1, TOP_ONCPU), "100"), "%s", cell);
		CHECK(!strcmp(CELL(1, TOP_BLOCK), "3.0"), "%s", cell);
		CHECK(!strcmp(CELL(0, TOP_SLEEP), "-"), "%s", cell);
		CHECK(!strcmp(CELL(2, TOP_ONCPU), "-"), "%s", cell);
		CHECK(!strcmp(CELL(2, TOP_TID), "12"), "%s", cell);
		CHECK(!strcmp(CELL(2, TOP_STATE), "R"), "%s", cell);
		CHECK(!strcmp(CELL(2, TOP_ENGINE), "proc"), "%s", cell);
	}
	TEST("counts take four columns") {
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
			CHECK(!strcmp(fmt_top_count(cell, counts[i].n), counts[i].text), "%llu: %s",
			      (unsigned long long)counts[i].n, cell);
		CHECK(!strcmp(fmt_top_share(cell, 1, 3), "33.3") &&
			      !strcmp(fmt_top_share(cell, 0, 0), "-"),
		      "%s", cell);
	}
}

static void t_names(void)
{
	static const struct {
		const char *name;
		unsigned int columns;
		bool utf8;
		const char *shown;
		unsigned int used;
	} names[] = {
		{"kworker/0:1", 15, true, "kworker/0:1", 11},
		{"abcdef", 6, true, "abcdef", 6},
		{"abcdef", 5, true, "abcd…", 5},
		{"abcdef", 5, false, "abcd~", 5},
		{"a\033[2J\x7f", 15, true, "a?[2J?", 6},
		{"\xc3\xa4\xff", 15, true, "ä?", 2},
		{"\xc3\xa4", 15, false, "??", 2},
		{"日本語", 5, true, "日本…", 5},
		{"日本語", 6, true, "日本語", 6},
		{"", 5, true, "", 0},
		{"ab", 1, false, "~", 1},
		{"ab", 0, false, "", 0},
	};
	char buf[64];

	TEST("names are cut with a mark, and do not command the terminal") {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			unsigned int used = fmt_top_name(buf, sizeof(buf), names[i].name,
							 names[i].columns, names[i].utf8);

			CHECK(!strcmp(buf, names[i].shown) && used == names[i].used,
			      "%zu: '%s' in %u columns", i, buf, used);
		}
		fmt_top_name(buf, 8, "abcdefghijkl", 15, true);
		CHECK(!strcmp(buf, "abcd…"), "a small buffer: '%s'", buf);
	}
}

static void t_bars(void)
{
	uint64_t part[3] = {1, 0, 2};
	unsigned char cell[10];

	TEST("bars: parts take their share of the cells, and all of them the width") {
		fmt_top_bar(cell, 9, part, 3);
		CHECK(!memcmp(cell, "\0\0\0\2\2\2\2\2\2", 9), "a third and the rest");
		part[0] = 2;
		part[2] = 1;
		fmt_top_bar(cell, 10, part, 3);
		CHECK(!memcmp(cell, "\0\0\0\0\0\0\0\2\2\2", 10), "two thirds are rounded");
		part[0] = part[2] = 0;
		fmt_top_bar(cell, 9, part, 3);
		CHECK(!memcmp(cell, "\2\2\2\2\2\2\2\2\2", 9), "nothing at all is the last one");
		part[0] = UINT64_MAX;
		fmt_top_bar(cell, 9, part, 3);
		CHECK(!memcmp(cell, "\0\0\0\0\0\0\0\0\0", 9), "all of one");
	}
	TEST("sparks: heights by count, over the logarithm of time") {
		struct hist *h = hist_new(3);

		hist_record_n(h, 100, 80);
		hist_record_n(h, 1050, 10);
		hist_record_n(h, 9900, 1);
		fmt_top_spark(cell, 10, h, 100, 10000);
		CHECK(cell[0] == 8 && cell[5] == 1 && cell[9] == 1, "%d %d %d", cell[0], cell[5],
		      cell[9]);
		CHECK(!cell[2] && !cell[7], "nothing in between");
		hist_free(h);
	}
}

static void t_layout(void)
{
	struct top_report r = {.thread = row, .nr_threads = 3};
	struct top_layout l;

	TEST("columns fit any width, and say how many are left out") {
		for (unsigned int columns = 40; columns <= 300; columns++) {
			unsigned int used = 0;

			fmt_top_layout(&l, &r, false, columns);
			for (int c = 0; c < TOP_NR_COLUMNS; c++)
				used += l.width[c] + (l.width[c] > 0);
			CHECK(used <= columns + 1 && l.width[TOP_TID] && l.width[TOP_COMM],
			      "%u of %u", used, columns);
			CHECK(!l.left_out || columns < 80, "%u left out of %u", l.left_out,
			      columns);
		}
		CHECK(!l.width[TOP_SLEEP] && !l.width[TOP_MIGRATE] && !l.width[TOP_ENGINE] &&
			      l.width[TOP_OFF] && l.width[TOP_PID],
		      "columns that nobody has");
		fmt_top_layout(&l, &r, true, 40);
		CHECK(l.left_out && !l.width[TOP_PID], "of one process");
	}
	TEST("80 columns hold the buckets of a process, its switches and its faults") {
		struct thread_sample s = {.known = (1u << THREAD_NR_FIELDS) - 1};
		struct top_thread t = {.s = &s};
		struct top_report all = {.thread = &t, .nr_threads = 1};

		fmt_top_layout(&l, &all, true, 80);
		CHECK(l.width[TOP_ONCPU] && l.width[TOP_RUNQ] && l.width[TOP_SLEEP] &&
			      l.width[TOP_DSLEEP] && l.width[TOP_IOWAIT] && l.width[TOP_BAR] &&
			      l.width[TOP_BLOCK] && l.width[TOP_PREEMPT] && l.width[TOP_MIN_FLT] &&
			      l.width[TOP_MAJ_FLT],
		      "%u left out", l.left_out);
	}
	TEST("orders: more first, what is not known last, then by tid; reversed") {
		fmt_top_sort(row, 3, TOP_ONCPU, false);
		CHECK(row[0].s->tid == 11 && row[1].s->tid == 10 && row[2].s->tid == 12, "CPU");
		fmt_top_sort(row, 3, TOP_COMM, true);
		CHECK(row[0].s->tid == 12 && row[1].s->tid == 10 && row[2].s->tid == 11, "name");
		fmt_top_sort(row, 3, TOP_STATE, false);
		CHECK(row[0].s->tid == 10 && row[2].s->tid == 12, "equal ones");
	}
}

static void t_cpus(void)
{
	struct cpu_row old_row[2] = {{.cpu = -1}, {.cpu = 0}},
		       new_row[2] = {{.cpu = -1}, {.cpu = 1}};
	struct cpus old = {.source = "s", .row = old_row, .nr = 2};
	struct cpus new = {.source = "s", .row = new_row, .nr = 2};
	struct cpus real = {0};
	struct cpu_delta d;
	char why[200];

	TEST("CPU times: differences, without what ran backwards or was not there") {
		new_row[0].ns[CPU_USER] = 30;
		new_row[0].ns[CPU_SYSTEM] = 10;
		new_row[0].ns[CPU_GUEST] = 5;
		old_row[0].ns[CPU_IDLE] = 1;
		cpus_diff(&d, &old, &new, 0);
		CHECK(d.all_ns == 40 && d.ns[CPU_USER] == 30 && d.ns[CPU_GUEST] == 5, "all");
		CHECK(!(d.known & 1u << CPU_IDLE) && d.known & 1u << CPU_IOWAIT, "backwards");
		cpus_diff(&d, &old, &new, 1);
		CHECK(!d.all_ns && !d.known, "a CPU that came");
		old.source = "t";
		cpus_diff(&d, &old, &new, 0);
		CHECK(!d.known, "another source");
	}
	TEST("CPU times of this machine: a sum and a row for each CPU") {
		CHECK(!cpus_read(&real, why, sizeof(why)), "%s", why);
		CHECK(real.nr >= 2 && real.row[0].cpu == -1 && real.row[1].cpu >= 0, "%zu",
		      real.nr);
		CHECK(real.row[0].ns[CPU_USER] >= real.row[1].ns[CPU_USER], "the sum is less");
		cpus_free(&real);
	}
}

int main(void)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	setup();
	t_cells();
	t_names();
	t_bars();
	t_layout();
	t_cpus();
	return t_done("t_top");
}
