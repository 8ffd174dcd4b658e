// SPDX-License-Identifier: GPL-2.0
// This test checks kstats' histograms and files: values, shares, averages, stop, start, reset.
#include "t_kstats.h"

#include "kmod/slot_digest.h"

#define RECORDED      "demo_recorded"
#define FILE_OF(name) KSTATS_DIR "/" name

static void reset(void)
{
	CHECK(!put(FILE_OF(RECORDED), "reset"), "reset");
}

static void t_values(void)
{
	static const struct {
		unsigned int slot;
		uint64_t avg;
	} want[] = {{0, 0}, {1, 1}, {240, 1ull << 32}, {488, 1ull << 63}};
	char buf[8192], row[80];
	uint64_t avg;
	char *last;

	TEST("values: 0, 1, 2^32, 2^63 and 2^64-1 have their slots and averages") {
		reset();
		CHECK(!demo("values", 1, 3), "demo");
		get(FILE_OF(RECORDED), buf, sizeof(buf));
		for (unsigned int i = 0; i < 4; i++) {
			snprintf(row, sizeof(row), "slot %-3u CPUS %-4ld count %8u avg %8llu p ",
				 want[i].slot, sysconf(_SC_NPROCESSORS_CONF), 3,
				 (unsigned long long)want[i].avg);
			CHECK(strstr(buf, row), "no '%s' in\n%s", row, buf);
		}
		last = strstr(buf, "slot 495 CPUS");
		if (!CHECK(last, "2^64-1 has no row"))
			break;
		avg = strtoull(strstr(last, " avg ") + 5, NULL, 10);
		/* As documented: low by less than 2^-24 of the slot's width, 2^60. */
		CHECK(UINT64_MAX - avg < 1ull << 36, "average %llu", (unsigned long long)avg);
	}
	TEST("rows: columns 8 and 10 are average and share, and a CPU can be grepped for") {
		CHECK(!system("awk '/CPUS/ { n++; if (NF != 10 || $5 != \"count\" && $4 != \"count\") bad++ }"
			      " END { exit n != 5 || bad }' " FILE_OF(RECORDED)),
		      "columns");
		CHECK(!system("test $(grep -c 'CPUS' " FILE_OF(RECORDED) ") = 5"), "grep CPUS");
		CHECK(!system("test $(grep 'CPU  0 ' " FILE_OF(
			      RECORDED) " | grep -vc '^slot') = 0"),
		      "comments hold a CPU");
	}
}

static void t_control(void)
{
	struct metric m;

	TEST("stop, start: samples are left out, and counted") {
		reset();
		CHECK(!put(FILE_OF(RECORDED), "stop\n"), "stop");
		CHECK(!demo("record", 100, 5), "demo");
		METRIC(RECORDED, &m);
		sound(RECORDED, &m);
		CHECK(m.count == 0 && m.stopped == 5, "count %d stopped %d", (int)m.count,
		      (int)m.stopped);
		CHECK(strstr(m.head, "state stopped"), "%s", m.head);
		CHECK(!put(FILE_OF(RECORDED), "Start"), "start");
		CHECK(!demo("record", 100, 7), "demo");
		METRIC(RECORDED, &m);
		sound(RECORDED, &m);
		CHECK(m.count == 7 && m.head_sum == 700, "count %d sum %d", (int)m.count,
		      (int)m.head_sum);
	}
	TEST("reset: nothing is left, and what comes after is exact") {
		CHECK(!put(FILE_OF(RECORDED), "RESET\n"), "reset");
		METRIC(RECORDED, &m);
		CHECK(m.count == 0 && m.attempted == 0 && m.stopped == 0 && m.head_sum == 0,
		      "left: %s", m.head);
		CHECK(!demo("record", 12, 1000), "demo");
		METRIC(RECORDED, &m);
		sound(RECORDED, &m);
		CHECK(m.count == 1000 && m.slot[12] == 1000 && m.head_sum == 12000, "after: %s",
		      m.head);
	}
	TEST("writing anything else is EINVAL") {
		static const char *const bad[] = {"",		"\n",	  "go",
						  "start stop", "reset!", "startstartstartstart"};
		for (unsigned int i = 1; i < sizeof(bad) / sizeof(bad[0]); i++)
			CHECK(put(FILE_OF(RECORDED), bad[i]) == -EINVAL, "'%s'", bad[i]);
	}
}

static void t_copy(void)
{
	char a[8192], b[8192];
	size_t at = 0;
	ssize_t n;
	int fd;

	TEST("an open file is a copy: read a byte at a time while samples come in, it closes") {
		reset();
		demo("record", 5, 10);
		get(FILE_OF(RECORDED), a, sizeof(a));
		fd = open(FILE_OF(RECORDED), O_RDONLY);
		demo("record", 7, 10);
		while ((n = read(fd, b + at, 1)) == 1)
			at++;
		b[at] = '\0';
		CHECK(!strcmp(a, b), "not the same:\n%s\n%s", a, b);
		CHECK(lseek(fd, 0, SEEK_SET) == 0 && read(fd, b, 40) == 40 && !strncmp(a, b, 40),
		      "again from the start");
		close(fd);
	}
}

static void t_exact(void)
{
	const int n = 5000000;
	struct metric m;

	TEST("two CPUs, 10 million samples: exact count, exact sum") {
		reset();
		CHECK(!demo("record2", n, 1), "demo");
		METRIC(RECORDED, &m);
		sound(RECORDED, &m);
		CHECK(m.count == 2 * n, "count %llu", (unsigned long long)m.count);
		CHECK(m.head_sum == (uint64_t)n * (n + 1), "sum %llu",
		      (unsigned long long)m.head_sum);
	}
}

static void t_modes(void)
{
	static const struct {
		const char *file;
		unsigned int mode;
	} want[] = {{KSTATS_CONTROL, 0644}, {KSTATS_NODES, 0444}, {RECORDED, 0444}};
	char path[100];
	struct stat st;

	TEST("modes: 0644 for _control, 0444 for the rest") {
		for (unsigned int i = 0; i < 3; i++) {
			snprintf(path, sizeof(path), KSTATS_DIR "/%s", want[i].file);
			CHECK(!stat(path, &st) && (st.st_mode & 07777) == want[i].mode, "%s: %o",
			      path, st.st_mode);
		}
		CHECK(put(FILE_OF(KSTATS_NODES), "trace vfs_read") < 0, "_nodes takes commands");
	}
}

static void t_slots(void)
{
	char digest[200];

	TEST("slots: kbuild's compiler agrees with this one on 0..5 bits") {
		char mine[200];
		int at = 0;

		get("/sys/module/kstats_slots/parameters/digest", digest, sizeof(digest));
		for (unsigned int bits = 0; bits <= KSTATS_MAX_BITS; bits++)
			at += snprintf(mine + at, sizeof(mine) - at, "%s%016llx", bits ? " " : "",
				       (unsigned long long)slot_digest(bits, 1000000));
		CHECK(!strncmp(mine, digest, strlen(mine)), "gcc %s, kbuild %s", mine, digest);
	}
}

int main(void)
{
	t_slots();
	t_values();
	t_control();
	t_copy();
	t_exact();
	t_modes();
	return t_done("t_kstats_hist");
}
