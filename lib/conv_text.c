/* SPDX-License-Identifier: MIT */
#include "lib/conv.h"

void conv_put_json(FILE *out, const char *s)
{
	putc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if ((unsigned char)*s < 0x20 || *s == 0x7f)
			fprintf(out, "\\u%04x", (unsigned char)*s);
		else
			putc(*s, out);
	}
	putc('"', out);
}
