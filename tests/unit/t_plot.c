// SPDX-License-Identifier: GPL-2.0
// This test checks plots and heat maps, character by character, in ASCII, UTF-8 and colour.
#include <stdlib.h>

#include "lib/fmt_plot.h"
#include "tests/t.h"
#include "uapi/kstats_bucket.h"

static char buf[65536];

/* A metric of 3 bits with these samples, given as {value, count} up to a count of 0. */
static struct dist_metric metric(const uint64_t samples[][2])
{
	struct dist_metric m = {.all = hist_new(3), .origin = "time", .state = "running"};

	for (; (*samples)[1]; samples++)
		hist_record_n(m.all, (*samples)[0], (*samples)[1]);
	return m;
}

static const char *plot(const uint64_t samples[][2], struct plot_style style)
{
	struct dist_metric m = metric(samples);
	FILE *f = fmemopen(buf, sizeof(buf), "w");

	fmt_plot(f, "x", &m, -1, &style);
	fclose(f);
	dist_metric_free(&m);
	return buf;
}

static size_t longest_line(const char *s)
{
	size_t most = 0;

	for (; *s; s += strcspn(s, "\n") + 1)
		most = strcspn(s, "\n") > most ? strcspn(s, "\n") : most;
	return most;
}

static void t_plot(void)
{
	static const uint64_t few[][2] = {{480, 60}, {1024, 30}, {1152, 10}, {0}};
	static const uint64_t one[][2] = {{0, 1}, {0}}, last[][2] = {{UINT64_MAX, 1}, {0}};
	static const uint64_t none[][2] = {{0}}, far[][2] = {{100, 1}, {1000000000, 1}, {0}};
	static const uint64_t rare[][2] = {{480, 1000000}, {1024, 1}, {0}};
	struct plot_style ascii = {.columns = 84};

	TEST("plot: bars, counts, shares and quantiles, in ASCII") {
		/* 84 columns: bars of 20 */
		plot(few, ascii);
		CHECK(strstr(buf,
			     "    480 ns           60 ####################  60.00% ============"
			     "         p50\n"),
		      "%s", buf);
		CHECK(strstr(buf, "   1.02 us           30 ##########            90.00% "
				  "==================   p90\n"),
		      "%s", buf);
		CHECK(strstr(buf, "   1.15 us           10 ###                  100.00% "
				  "==================== p99-p999\n"),
		      "%s", buf);
		CHECK(strstr(buf, "    512 ns            0                       60.00% "), "%s",
		      buf);
		for (const char *p = buf; *p; p++)
			if (!CHECK(*p == '\n' || (*p >= ' ' && *p < 127), "%d is not plain", *p))
				break;
	}
	TEST("plot: UTF-8 bars are an eighth of a column fine") {
		plot(few, (struct plot_style){.columns = 84, .utf8 = true});
		/* 10 of 60 in 20 columns are 3 and 2.67 eighths */
		CHECK(strstr(buf, "10 ███▍                 100.00%"), "%s", buf);
	}
	TEST("plot: colour, and none where it was not asked for") {
		plot(few, (struct plot_style){.columns = 84, .colour = true});
		CHECK(strstr(buf, "\033[36m####################\033[0m") &&
			      strstr(buf, "\033[34m============\033[0m") &&
			      strstr(buf, "\033[1m p50\033[0m"),
		      "%s", buf);
		CHECK(!strchr(plot(few, ascii), '\033'), "%s", buf);
	}
	TEST("plot: one in a million shows, no line is wider than the terminal, and a gap is told") {
		CHECK(strstr(plot(rare, ascii), "   1.02 us            1 # "), "%s", buf);
		for (unsigned int columns = 60; columns < 200; columns += 7)
			CHECK(longest_line(plot(few, (struct plot_style){.columns = columns})) <=
				      columns,
			      "%u columns: %s", columns, buf);
		CHECK(longest_line(plot(few, (struct plot_style){.columns = 5})) <=
			      PLOT_MIN_COLUMNS,
		      "%s", buf);
		CHECK(strstr(plot(far, ascii), "\n       ...\n"), "%s", buf);
	}
	TEST("plot: the first slot only, the last slot only, and nothing") {
		CHECK(strstr(plot(one, ascii), "100.00%"), "%s", buf);
		CHECK(strstr(plot(last, ascii), "100.00%"), "%s", buf);
		CHECK(strstr(plot(none, ascii), "no samples\n"), "%s", buf);
	}
}

/* The lines that these samples add to a map. */
static const char *line(struct heatmap *map, const uint64_t samples[][2])
{
	struct dist_metric m = metric(samples);
	FILE *f = fmemopen(buf, sizeof(buf), "w");

	fmt_heatmap_line(f, map, "12:34:56", m.all);
	fclose(f);
	dist_metric_free(&m);
	return buf;
}

static void t_heatmap(void)
{
	static const uint64_t none[][2] = {{0}}, at[][2] = {{512, 1}, {0}};
	/* of 1,000: 400, 350, 200, 40, 8 and 2 */
	static const uint64_t shaded[][2] = {{512, 400}, {576, 350}, {640, 200}, {704, 40},
					     {768, 8},	 {832, 2},   {0}};
	static const uint64_t outside[][2] = {{1000000, 7}, {0}},
			      wide[][2] = {{16, 1}, {1ull << 40, 1}, {0}};
	struct plot_style ascii = {.columns = 80};
	struct dist_metric empty = metric(none), some = metric(at);
	struct heatmap map;

	TEST("heat map: shades by share, the time, the count and the p99") {
		heatmap_init(&map, &ascii, some.all);
		CHECK(strstr(line(&map, shaded), "\n12:34:56      1000 "), "%s", buf);
		/* 512 +- an octave: 17 slots, 3 cells each in 51 */
		CHECK(strstr(buf, "@@@@@@###+++......"), "%s", buf);
		CHECK(strstr(buf, "    735 ns\n"), "%s", buf);
		CHECK(strstr(buf, "at least:  . >0%  : 1%  + 3%  # 10%  @ 30%\n"), "%s", buf);
		CHECK(strstr(buf, "\n    time     count 256 ns    352 ns    "), "%s", buf);
	}
	TEST("heat map: the axis comes once, and again when samples fall outside of it") {
		CHECK(!strstr(line(&map, shaded), "time"), "%s", buf);
		CHECK(strstr(line(&map, outside), "time"), "%s", buf);
		CHECK(!strstr(line(&map, shaded), "time"), "%s", buf);
	}
	TEST("heat map: an interval without samples, before and after the first one") {
		heatmap_init(&map, &ascii, empty.all);
		CHECK(!strcmp(line(&map, none), "12:34:56         0\n"), "%s", buf);
		CHECK(strstr(line(&map, at), "time"), "%s", buf);
		CHECK(!strcmp(line(&map, none), "12:34:56         0\n"), "%s", buf);
	}
	TEST("heat map: no line is wider than the terminal, however wide the range") {
		for (unsigned int columns = 60; columns < 300; columns += 17) {
			heatmap_init(&map, &(struct plot_style){.columns = columns}, empty.all);
			CHECK(longest_line(line(&map, wide)) <= (columns > 80 ? columns : 80),
			      "%u columns: %s", columns, buf);
			CHECK(strstr(buf, "56         2 "), "%s", buf);
		}
	}
	TEST("heat map: UTF-8 and colour") {
		heatmap_init(&map,
			     &(struct plot_style){.columns = 80, .utf8 = true, .colour = true},
			     some.all);
		CHECK(strstr(line(&map, shaded), "\033[38;5;196m█\033[0m"), "%s", buf);
		CHECK(strstr(buf, "\033[38;5;240m·\033[0m"), "%s", buf);
	}
	dist_metric_free(&empty);
	dist_metric_free(&some);
}

int main(void)
{
	t_plot();
	t_heatmap();
	return t_done("t_plot");
}
