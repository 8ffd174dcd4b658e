/* SPDX-License-Identifier: MIT */
/* How long an interval is, in words. By hand: strtod() takes the comma of some locales. */
#include <ctype.h>
#include <string.h>

#include "lib/record.h"

#define MS_NS	 1000000ull
#define LEAST_NS MS_NS
#define MOST_NS	 (24 * 3600000 * MS_NS)

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {{"ms", MS_NS}, {"s", 1000 * MS_NS}, {"m", 60000 * MS_NS}, {"h", 3600000 * MS_NS}};

static uint64_t digit(const char *s)
{
	return (uint64_t)(*s - '0');
}

uint64_t rts_duration(const char *text)
{
	uint64_t whole = 0, part = 0, scale = 1, ns;
	size_t i = 0;

	if (!isdigit((unsigned char)*text))
		return 0;
	for (; isdigit((unsigned char)*text) && whole <= MOST_NS; text++)
		whole = whole * 10 + digit(text);
	if (*text == '.' && !isdigit((unsigned char)*++text))
		return 0;
	/* An hour has 3.6e12 ns: with six digits the product below stays in range. */
	for (; isdigit((unsigned char)*text); text++)
		if (scale < 1000000) {
			part = part * 10 + digit(text);
			scale *= 10;
		}
	while (i < sizeof(units) / sizeof(units[0]) && strcmp(text, units[i].name))
		i++;
	if (i == sizeof(units) / sizeof(units[0]) || whole > MOST_NS / units[i].ns)
		return 0;
	ns = whole * units[i].ns + part * units[i].ns / scale;
	return ns < LEAST_NS || ns > MOST_NS ? 0 : ns;
}
