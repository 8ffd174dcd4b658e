// SPDX-License-Identifier: GPL-2.0
/* This test checks that the cpu page says what /proc/stat says, in ns, and when it says it. */
#include <sys/sysinfo.h>

#include "t_work.h"

#define PERIOD "/sys/module/" CSF_FS_NAME "/parameters/period_us"
#define NCOLS  10

static const struct csf_cpu *map_cpu(void)
{
	int fd = open(T_CPU, O_RDONLY | O_CLOEXEC);
	const struct csf_cpu *pg;

	if (fd < 0)
		return NULL;
	pg = t_map_fd(fd);
	close(fd);
	return pg;
}

static size_t cpu_len(const struct csf_cpu *pg)
{
	return pg->rows_off + (size_t)pg->nr_rows * pg->row_size;
}

static void unmap_cpu(const struct csf_cpu *pg)
{
	munmap((void *)pg, cpu_len(pg));
}

/* The line of /proc/stat that begins with this word, in ns. */
static int proc_stat(const char *cpu, uint64_t col[NCOLS])
{
	uint64_t tick = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	char line[512], word[16];
	unsigned long long v[NCOLS];
	FILE *f = fopen("/proc/stat", "re");
	int found = 0;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%15s %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu", word,
			       &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8],
			       &v[9]) == 11 &&
			!strcmp(word, cpu);
	if (f)
		fclose(f);
	for (int i = 0; i < NCOLS; i++)
		col[i] = v[i] * tick;
	return found ? 0 : -1;
}

static void row_cols(const struct csf_cpu_row *r, uint64_t col[NCOLS])
{
	const uint64_t c[NCOLS] = {r->user_ns,	 r->nice_ns,	  r->system_ns,	 r->idle_ns,
				   r->iowait_ns, r->irq_ns,	  r->softirq_ns, r->steal_ns,
				   r->guest_ns,	 r->guest_nice_ns};

	memcpy(col, c, sizeof(c));
}

static int read_row(unsigned int cpu, uint64_t col[NCOLS], struct csf_cpu_snap *s)
{
	if (csf_cpu_snap(s, cpu))
		return -1;
	row_cols(&s->row, col);
	return 0;
}

static void test_page(void)
{
	const struct csf_cpu *pg = map_cpu();
	const struct csf_cpu_row *rows;
	uint64_t sum[NCOLS] = {0}, all[NCOLS], col[NCOLS];
	uint32_t seq;
	int wrong;

	TEST("the page describes itself") {
		if (!CHECK(pg, "%s: %s", T_CPU, strerror(errno)))
			return;
		CHECK(pg->hdr.magic == CSF_MAGIC && pg->hdr.abi == CSF_ABI_VERSION, "magic %x",
		      pg->hdr.magic);
		CHECK(pg->hdr.kind == CSF_KIND_CPU, "kind %u", pg->hdr.kind);
		CHECK(pg->hdr.size == cpu_len(pg), "size %u, rows end at %zu", pg->hdr.size,
		      cpu_len(pg));
		CHECK(pg->rows_off == sizeof(*pg) && pg->row_size == sizeof(struct csf_cpu_row),
		      "%u + n * %u", pg->rows_off, pg->row_size);
		CHECK((int)pg->nr_rows - 1 >= get_nprocs_conf(), "%u rows for %d CPUs", pg->nr_rows,
		      get_nprocs_conf());
		CHECK(pg->reserved == 0 && pg->hdr.reserved[0] == 0, "reserved words are zero");
		CHECK(pg->tick_ns == 0 || (pg->tick_ns >= 1000000 && pg->tick_ns <= 10000000),
		      "tick %u ns", pg->tick_ns);
	}
	TEST("the sum row is the sum of the rows, and rows know their CPU") {
		rows = (const void *)((const char *)pg + pg->rows_off);
		do { /* several rows of one refresh */
			seq = __atomic_load_n(&pg->seq, __ATOMIC_ACQUIRE);
			memset(sum, 0, sizeof(sum));
			row_cols(&rows[0], all);
			wrong = rows[0].cpu != CSF_CPU_ALL;
			for (uint32_t i = 1; i < pg->nr_rows; i++) {
				row_cols(&rows[i], col);
				wrong += (rows[i].flags & CSF_CPU_POSSIBLE) && rows[i].cpu != i - 1;
				for (int c = 0; c < NCOLS; c++)
					sum[c] += col[c];
			}
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
		} while ((seq & 1) || seq != __atomic_load_n(&pg->seq, __ATOMIC_RELAXED));
		CHECK(!wrong, "%d rows name another CPU than their own", wrong);
		CHECK(!memcmp(sum, all, sizeof(sum)), "idle: sum %llu, row %llu",
		      (unsigned long long)sum[3], (unsigned long long)all[3]);
	}
	unmap_cpu(pg);
}

/* user, system, irq and softirq between two rows, in ms */
static double busy_ms(const uint64_t a[NCOLS], const uint64_t b[NCOLS])
{
	return (double)(b[0] + b[2] + b[5] + b[6] - a[0] - a[2] - a[5] - a[6]) / 1e6;
}

static double idle_ms(const uint64_t a[NCOLS], const uint64_t b[NCOLS])
{
	return (double)(b[3] + b[4]) / 1e6 - (double)(a[3] + a[4]) / 1e6;
}

static void test_against_proc_stat(void)
{
	static const char *const names[NCOLS] = {"user",   "nice",	"system",  "idle",
						 "iowait", "irq",	"softirq", "steal",
						 "guest",  "guest_nice"};
	uint64_t before[NCOLS], after[NCOLS], ours[NCOLS],
		tick = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	struct csf_cpu_snap s;
	char word[16];

	for (int cpu = 0; cpu < get_nprocs(); cpu++) {
		TEST("cpu%d lies between two readings of /proc/stat", cpu) {
			snprintf(word, sizeof(word), "cpu%d", cpu);
			CHECK(proc_stat(word, before) == 0, "/proc/stat has no %s", word);
			csf_cpu_close(); /* so that the next open refreshes */
			CHECK(read_row((unsigned int)cpu, ours, &s) == 0, "%s", strerror(errno));
			CHECK(proc_stat(word, after) == 0, "/proc/stat has no %s", word);
			for (int c = 0; c < NCOLS; c++)
				/* /proc/stat cuts off below its tick; its idle may run backwards by some */
				CHECK(ours[c] + 2 * tick >= before[c] &&
					      ours[c] < after[c] + 2 * tick,
				      "%s: /proc/stat %llu..%llu, page %llu", names[c],
				      (unsigned long long)before[c], (unsigned long long)after[c],
				      (unsigned long long)ours[c]);
		}
	}
	TEST("a second of spinning on CPU 0 is as much busy time there as /proc/stat has") {
		uint64_t a[NCOLS], b[NCOLS];

		t_pin(0);
		CHECK(proc_stat("cpu0", before) == 0 && read_row(0, a, &s) == 0, "%s",
		      strerror(errno));
		t_spin_ns(1000 * MS);
		CHECK(read_row(0, b, &s) == 0 && proc_stat("cpu0", after) == 0, "%s",
		      strerror(errno));
		work_unpin();
		double page = busy_ms(a, b), proc = busy_ms(before, after);

		/* Not against the wall clock: a slow emulator loses ticks, and the kernel with them time. */
		CHECK(page > proc - 60 && page < proc + 60, "busy %.1f ms, /proc/stat %.1f", page,
		      proc);
		CHECK(page > 40, "busy for %.1f ms only", page);
		CHECK(b[3] - a[3] < 100 * MS, "idle for %.1f ms", (double)(b[3] - a[3]) / 1e6);
	}
	TEST("a second of sleep is idle time, as much as /proc/stat has") {
		uint64_t a[NCOLS], b[NCOLS], outer0[NCOLS], inner0[NCOLS], inner1[NCOLS],
			outer1[NCOLS];
		double slack = 4 * (double)tick / 1e6 * get_nprocs();

		proc_stat("cpu", outer0);
		csf_cpu_close();
		CHECK(read_row(CSF_CPU_ALL, a, &s) == 0, "%s", strerror(errno));
		proc_stat("cpu", inner0);
		t_sleep_ns(1000 * MS);
		proc_stat("cpu", inner1);
		csf_cpu_close();
		CHECK(read_row(CSF_CPU_ALL, b, &s) == 0, "%s", strerror(errno));
		proc_stat("cpu", outer1);
		double idle = idle_ms(a, b), least = idle_ms(inner0, inner1),
		       most = idle_ms(outer0, outer1);

		/* Not against the wall clock: under emulation 7.2 counts 2.1 s of idle time here. */
		CHECK(idle > least - slack && idle < most + slack,
		      "idle %.1f ms, /proc/stat %.1f to %.1f", idle, least, most);
		CHECK(idle > 700 * get_nprocs(), "idle for %.1f ms only", idle);
	}
}

/* The least time that a refresh and the fourth after it were apart: a busy host makes some late, but not all. */
static uint64_t four_periods(const struct csf_cpu *pg, uint64_t at_most, uint64_t enough)
{
	uint64_t until = t_now_ns() + at_most, at[256] = {0}, n0 = pg->nr_updates, n, then;
	uint64_t least = UINT64_MAX;

	do {
		n = pg->nr_updates;
		at[n % 256] = pg->update_mono_ns;
		then = at[(n - 4) % 256];
		if (then && pg->nr_updates == n && at[n % 256] - then < least)
			least = at[n % 256] - then;
		t_sleep_ns(MS / 5);
	} while (t_now_ns() < until && (pg->nr_updates - n0 < 40 || least > enough));
	return least;
}

static void test_refresh(void)
{
	const struct csf_cpu *pg;
	uint64_t n0, n1, from, least, mapped, idle = 0, iowait = 0;
	const struct csf_cpu_row *row;

	csf_cpu_close();
	TEST("refreshed every period while mapped, at once on open, and not at all otherwise") {
		CHECK(t_write_file(PERIOD, "2000") == 0, "%s", PERIOD);
		pg = map_cpu();
		n0 = pg->nr_updates;
		from = t_now_ns();
		least = four_periods(pg, 20000 * MS, 14 * MS);
		n1 = pg->nr_updates;
		from = t_now_ns() - from;
		CHECK(pg->period_us == 2000, "period %u us", pg->period_us);
		CHECK(least <= 14 * MS, "four periods of 2 ms took %llu ns or more",
		      (unsigned long long)least);
		CHECK(n1 - n0 <= from / (2 * MS) + 10, "%llu refreshes in %llu ns at 2 ms",
		      (unsigned long long)(n1 - n0), (unsigned long long)from);
		unmap_cpu(pg);
		t_sleep_ns(20 * MS); /* a work item may be on its way */
		/* A busy host may take its time while we have it mapped. */
		from = t_now_ns();
		pg = map_cpu();
		n0 = pg->nr_updates;
		unmap_cpu(pg);
		mapped = t_now_ns() - from;
		t_sleep_ns(200 * MS);
		from = t_now_ns();
		pg = map_cpu();
		n1 = pg->nr_updates;
		mapped += t_now_ns() - from;
		CHECK(n1 - n0 <= mapped / (2 * MS) + 4,
		      "%llu refreshes with nobody there but for %llu ns",
		      (unsigned long long)(n1 - n0), (unsigned long long)mapped);
		CHECK(t_now_ns() - pg->update_mono_ns < 50 * MS, "the first look is %llu ns old",
		      (unsigned long long)(t_now_ns() - pg->update_mono_ns));
		unmap_cpu(pg);
		CHECK(t_write_file(PERIOD, "10000") == 0, "%s", PERIOD);
	}
	TEST("periods outside 500 to 1000000 us are refused, and the old one stays") {
		CHECK(t_write_file(PERIOD, "499") == -EINVAL, "499");
		CHECK(t_write_file(PERIOD, "1000001") == -EINVAL, "1000001");
		CHECK(t_write_file(PERIOD, "soon") == -EINVAL, "soon");
		CHECK(t_read_num(PERIOD) == 10000, "%lld", t_read_num(PERIOD));
		CHECK(t_write_file(PERIOD, "1000000") == 0 && t_write_file(PERIOD, "500") == 0,
		      "the ends");
	}
	TEST("idle and iowait never run backwards over 2,000 refreshes at the shortest period") {
		int back = 0;

		pg = map_cpu();
		row = (const void *)((const char *)pg + pg->rows_off + pg->row_size);
		n0 = pg->nr_updates;
		while (pg->nr_updates - n0 < 2000) {
			uint64_t i = __atomic_load_n(&row->idle_ns, __ATOMIC_RELAXED);
			uint64_t w = __atomic_load_n(&row->iowait_ns, __ATOMIC_RELAXED);

			back += i < idle || w < iowait;
			idle = i;
			iowait = w;
			t_sleep_ns(MS / 2);
		}
		CHECK(!back, "%d times", back);
		unmap_cpu(pg);
		CHECK(t_write_file(PERIOD, "10000") == 0, "%s", PERIOD);
	}
}

static void test_ids(void)
{
	struct csf_cpu_snap s;

	TEST("a CPU that cannot exist is an error") {
		errno = 0;
		CHECK(csf_cpu_snap(&s, 1u << 20) == -1 && errno, "CPU 1048576: errno %d", errno);
	}
	csf_cpu_close();
}

int main(void)
{
	test_page();
	test_against_proc_stat();
	test_refresh();
	test_ids();
	return t_done("t_cpu");
}
