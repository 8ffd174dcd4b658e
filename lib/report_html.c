/* SPDX-License-Identifier: MIT */
/* Words and numbers of a page. */
#include <inttypes.h>
#include <string.h>

#include "lib/fmt_report.h"

/* The character at s and its length; 0: not valid UTF-8. */
static size_t decode(const unsigned char *s, uint32_t *c)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (!n || s[0] > 0xf4)
		return 0;
	*c = n == 1 ? s[0] : s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (s[i] & 0x3f);
	}
	if (*c < least[n] || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000))
		return 0;
	return n;
}

/* Controls, characters that HTML forbids, and those that change the direction of what follows. */
static bool is_visible(uint32_t c)
{
	return c >= 0x20 && !(c >= 0x7f && c < 0xa0) && !(c >= 0x200e && c <= 0x200f) &&
	       !(c >= 0x2028 && c <= 0x202e) && !(c >= 0x2066 && c <= 0x2069) &&
	       !(c >= 0xfdd0 && c <= 0xfdef) && (c & 0xfffe) != 0xfffe && c != 0x61c;
}

void html_text(FILE *f, const char *str)
{
	const unsigned char *s = (const unsigned char *)str;

	while (*s) {
		uint32_t c = 0;
		size_t n = decode(s, &c);

		if (!n)
			fprintf(f, "\\x%02x", *s);
		else if (!is_visible(c))
			fprintf(f, c < 0x80 ? "\\x%02x" : "\\u{%x}", c);
		else if (strchr("&<>\"'", (int)(c < 0x80 ? c : 'x')))
			fprintf(f, "&#%u;", c);
		else
			fwrite(s, 1, n, f);
		s += n ? n : 1;
	}
}

void html_ns(FILE *f, uint64_t ns)
{
	static const char *const unit[] = {"ns", "µs", "ms", "s"};
	double v = (double)ns;
	unsigned int i;

	for (i = 0; i < 3 && v >= 999.5; i++)
		v /= 1000;
	fprintf(f, "%.*f %s", i == 0 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2, v, unit[i]);
}

void html_num(FILE *f, uint64_t n)
{
	char d[24];
	int len = snprintf(d, sizeof(d), "%" PRIu64, n);

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			fputc(',', f);
		fputc(d[i], f);
	}
}

void html_td_ns(FILE *f, uint64_t ns)
{
	fprintf(f, "<td data-v=\"%" PRIu64 "\">", ns);
	html_ns(f, ns);
}

void html_td_num(FILE *f, uint64_t n)
{
	fprintf(f, "<td data-v=\"%" PRIu64 "\">", n);
	html_num(f, n);
}

void html_td_none(FILE *f)
{
	fputs("<td class=none>–", f);
}

void html_td_maybe(FILE *f, bool has, uint64_t ns)
{
	if (has)
		html_td_ns(f, ns);
	else
		html_td_none(f);
}

void html_table(FILE *f, const char *label, bool sorts, const char *const *columns)
{
	fputs("<div class=scroll tabindex=0 role=region aria-label=\"", f);
	html_text(f, label);
	fprintf(f, "\"><table%s><thead><tr>", sorts ? " class=sorts" : "");
	for (; **columns; columns++)
		fprintf(f, "<th scope=col%s>%s", **columns == '<' ? " class=left" : "",
			*columns + (**columns == '<'));
	fputs("<tbody>\n", f);
}

void html_table_end(FILE *f)
{
	fputs("</table></div>\n", f);
}

double html_percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}
