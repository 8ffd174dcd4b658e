// SPDX-License-Identifier: GPL-2.0
/*
 * What the tests of statpage export compare with: tables as kstats.ko prints them, of samples that are
 * known, and the quantiles of several such tables merged by lib/hist.c.
 *
 *	fleet table BITS SEED COUNT	a table of the first COUNT samples of sequence SEED
 *	fleet merge BITS Q TABLE...	slot's low and high in ns, count and sum of all of them together
 *	fleet cost BITS N TABLE	ns to merge a histogram into another, by N merges
 *	fleet cpu FILE N		a cpu page of two CPUs, whose times grow with N
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/dist.h"
#include "uapi/coarse_stat_fs.h"
#include "uapi/kstats_bucket.h"

/* Latencies as they are: log-normal around 20 to 200 us by the seed, one in 100 a hundred times as long. */
static uint64_t sample(uint64_t *state, uint64_t seed)
{
	double u, normal = 0;
	int i;

	for (i = 0; i < 4; i++) {
		*state = *state * 6364136223846793005u + 1442695040888963407u;
		u = (double)(*state >> 11) / 9007199254740992.0;
		normal += u - 0.5;
	}
	return (uint64_t)(exp(normal) * 20000 * (double)(1 + seed % 10) * (u < 0.01 ? 100 : 1));
}

static void put_row(unsigned int slot, const char *cpu, const struct hist *h, uint64_t so_far)
{
	printf("slot %-3u CPU%s count %8" PRIu64 " avg %8" PRIu64 " p %.6f\n", slot, cpu,
	       h->slot[slot].count, hist_slot_mean(h, slot), (double)so_far / (double)h->count);
}

static int table(unsigned int bits, uint64_t seed, uint64_t count)
{
	struct hist *h = hist_new(bits);
	uint64_t state = seed, so_far = 0, missed = count / 500, i;
	unsigned int slot;

	if (!h)
		return 1;
	for (i = 0; i < count; i++)
		hist_record(h, sample(&state, seed));
	printf("# bits %u state running since 1.000 s after boot\n"
	       "# time start vfs_read end return by task via direct clock tsc 2000000 kHz error 0.100 ppm\n"
	       "# attempted %" PRIu64 " recorded %" PRIu64 " missed %" PRIu64
	       " filtered 0 stopped 0 inside 1 missed-instance %" PRIu64 "\n"
	       "# sum %" PRIu64 " mean %" PRIu64 "\n",
	       bits, count + missed + 1, count, missed, missed, h->sum, hist_mean(h));
	for (slot = 0; slot < h->nr; slot++) {
		if (!h->slot[slot].count)
			continue;
		so_far += h->slot[slot].count;
		put_row(slot, "  0   ", h, so_far);
		put_row(slot, "S 1   ", h, so_far);
	}
	hist_free(h);
	return 0;
}

static int merge(unsigned int bits, double q, char **files)
{
	struct hist *all = hist_new(bits);
	struct hist_quantile at;
	struct dist_metric m;
	struct dist_why why;
	unsigned int slot;
	uint64_t sum = 0;
	FILE *f;

	for (; all && *files; files++) {
		f = fopen(*files, "re");
		if (!f || engine_kmod_parse(f, *files, &m, &why) || hist_merge(all, m.all))
			return 1;
		sum += m.sum;
		dist_metric_free(&m);
		fclose(f);
	}
	if (!all || hist_quantile(all, q, &at))
		return 1;
	slot = kstats_slot(at.value, bits);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
	       (uint64_t)kstats_slot_low(slot, bits), (uint64_t)kstats_slot_high(slot, bits),
	       all->count, sum);
	hist_free(all);
	return 0;
}

static int cost(unsigned int bits, uint64_t times, const char *file)
{
	struct hist *all = hist_new(bits);
	struct timespec from, to;
	struct dist_metric m;
	struct dist_why why;
	FILE *f = fopen(file, "re");
	uint64_t i;

	if (!all || !f || engine_kmod_parse(f, file, &m, &why))
		return 1;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	for (i = 0; i < times; i++)
		if (hist_merge(all, m.all))
			return 1;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	if (all->count != times * m.all->count)
		return 1;
	printf("%.0f\n",
	       ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
		       (double)times);
	fclose(f);
	return 0;
}

static int cpu_page(const char *file, uint64_t times)
{
	static struct {
		struct csf_cpu page;
		struct csf_cpu_row row[3];
	} all = {.page = {.hdr = {.magic = CSF_MAGIC,
				  .abi = CSF_ABI_VERSION,
				  .kind = CSF_KIND_CPU,
				  .clock = CSF_CLOCK_TSC},
			  .nr_rows = 3,
			  .row_size = sizeof(struct csf_cpu_row),
			  .period_us = 10000,
			  .tick_ns = 4000000,
			  .nr_updates = 77,
			  .nr_corrected = 3,
			  .update_mono_ns = 12500000000}};
	FILE *f = fopen(file, "we");
	unsigned int i, n;

	all.page.hdr.size = sizeof(all);
	all.page.rows_off = sizeof(all.page);
	for (i = 0; i < 3; i++) {
		__u64 *ns = &all.row[i].user_ns;

		all.row[i].flags = CSF_CPU_POSSIBLE | CSF_CPU_ONLINE;
		all.row[i].cpu = i ? i - 1 : CSF_CPU_ALL;
		for (n = 0; n < 10; n++)
			ns[n] = times * (i * 100000000 + n * 1000000);
	}
	return !f || fwrite(&all, sizeof(all), 1, f) != 1 || fclose(f);
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "table"))
		return table((unsigned int)atoi(argv[2]), strtoull(argv[3], NULL, 10),
			     strtoull(argv[4], NULL, 10));
	if (argc > 4 && !strcmp(argv[1], "merge"))
		return merge((unsigned int)atoi(argv[2]), atof(argv[3]), argv + 4);
	if (argc == 5 && !strcmp(argv[1], "cost"))
		return cost((unsigned int)atoi(argv[2]), strtoull(argv[3], NULL, 10), argv[4]);
	if (argc == 4 && !strcmp(argv[1], "cpu"))
		return cpu_page(argv[2], strtoull(argv[3], NULL, 10));
	fputs("fleet: table, merge or cpu: see the top of fleet.c\n", stderr);
	return 2;
}
