/* SPDX-License-Identifier: GPL-2.0 */
/* simdjson's parser alone (Debian: libsimdjson-dev), line by line, on FILE, each line to a whole tree. */
#include <cstdio>
#include <cstdlib>
#include <simdjson.h>

int main(int argc, char **argv)
{
	FILE *f = argc == 2 ? fopen(argv[1], "re") : nullptr;
	simdjson::dom::parser parser;
	unsigned long good = 0;
	char *line = nullptr;
	size_t cap = 0;
	ssize_t n;

	if (!f) {
		fprintf(stderr, "bench_simdjson: expected a file of JSON lines\n");
		return 2;
	}
	while ((n = getline(&line, &cap, f)) > 0) {
		simdjson::dom::element o;

		good += !parser.parse(line, (size_t)n).get(o);
	}
	printf("%lu\n", good);
	free(line);
	fclose(f);
	return 0;
}
