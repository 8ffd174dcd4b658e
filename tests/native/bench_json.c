/* SPDX-License-Identifier: GPL-2.0 */
/* json-c's parser alone, line by line, on FILE: what `statpage convert` is held against. */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct json_tokener *tok = json_tokener_new();
	FILE *f = argc == 2 ? fopen(argv[1], "re") : NULL;
	unsigned long good = 0;
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	if (!tok || !f) {
		fprintf(stderr, "bench_json: expected a file of JSON lines\n");
		return 2;
	}
	while ((n = getline(&line, &cap, f)) > 0) {
		struct json_object *o;

		json_tokener_reset(tok);
		o = json_tokener_parse_ex(tok, line, (int)n);
		good += o != NULL;
		json_object_put(o);
	}
	printf("%lu\n", good);
	free(line);
	json_tokener_free(tok);
	fclose(f);
	return 0;
}
