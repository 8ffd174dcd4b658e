/* SPDX-License-Identifier: MIT */
/* Folded stacks, `process;category;call ns`: for flamegraph.pl and its like. */
#include "lib/conv.h"

/* Semicolons and line ends are the format's own. */
static void put_frame(FILE *out, const char *s)
{
	for (; *s; s++)
		putc(*s == ';' || (unsigned char)*s < ' ' ? '_' : *s, out);
}

static int begin(struct converter *c, FILE *out)
{
	(void)c;
	(void)out;
	return 0;
}

static int delta(struct converter *c, FILE *out, const struct conv_delta *d)
{
	(void)c;
	for (size_t i = 0; i < d->nr_rows; i++) {
		const struct conv_row *w = &d->rows[i];

		if (!w->spent_ns)
			continue;
		put_frame(out, d->rec->name);
		putc(';', out);
		put_frame(out, w->category);
		putc(';', out);
		put_frame(out, w->name);
		fprintf(out, " %llu\n", (unsigned long long)w->spent_ns);
	}
	return 0;
}

struct converter conv_folded = {.name = "folded", .begin = begin, .delta = delta, .end = begin};
