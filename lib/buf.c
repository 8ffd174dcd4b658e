/* SPDX-License-Identifier: MIT */
/* Text into a buffer of fixed size: what the formatters need of stdio, safe in any context. */
#include <string.h>

#include "lib/record.h"

static void put_mem(struct rts_buf *b, const char *s, size_t n)
{
	if (n > b->cap - b->len) {
		b->cut = true;
		return;
	}
	memcpy(b->p + b->len, s, n);
	b->len += n;
}

void rts_put(struct rts_buf *b, const char *s)
{
	put_mem(b, s, strlen(s));
}

void rts_putc(struct rts_buf *b, char c)
{
	put_mem(b, &c, 1);
}

void rts_put_u64(struct rts_buf *b, uint64_t v)
{
	char d[20];
	size_t i = sizeof(d);

	do {
		d[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	put_mem(b, d + i, sizeof(d) - i);
}

void rts_put_i64(struct rts_buf *b, int64_t v)
{
	if (v < 0)
		rts_putc(b, '-');
	rts_put_u64(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void rts_put_fixed(struct rts_buf *b, uint64_t v, unsigned int digits)
{
	uint64_t unit = 1;

	for (unsigned int i = 0; i < digits; i++)
		unit *= 10;
	rts_put_u64(b, v / unit);
	if (digits)
		rts_putc(b, '.');
	for (v %= unit; unit > 1; v %= unit) {
		unit /= 10;
		rts_putc(b, (char)('0' + v / unit));
	}
}

/* Length of the valid UTF-8 sequence at s (no overlong form, no surrogate), or 0. */
static size_t utf8_len(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 :
		   s[0] < 0xc2 ? 0 :
		   s[0] < 0xe0 ? 2 :
		   s[0] < 0xf0 ? 3 :
		   s[0] < 0xf5 ? 4 :
				 0;

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void rts_put_json_str(struct rts_buf *b, const char *str)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *s = (const unsigned char *)str;

	rts_putc(b, '"');
	while (*s) {
		size_t n = utf8_len(s);
		char esc[] = {'\\', 'u', '0', '0', hex[*s >> 4], hex[*s & 15], '\0'};

		if (!n) {
			rts_put(b, "\\\\x");
			rts_put(b, esc + 4);
			n = 1;
		} else if (*s < 0x20 || *s == 0x7f) {
			rts_put(b, esc);
		} else {
			if (*s == '"' || *s == '\\')
				rts_putc(b, '\\');
			put_mem(b, (const char *)s, n);
		}
		s += n;
	}
	rts_putc(b, '"');
}
