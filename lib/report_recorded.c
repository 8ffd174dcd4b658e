/* SPDX-License-Identifier: MIT */
/* A recording of `statpage record` into the model of a report: its distributions at its end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fmt_dist.h"
#include "lib/json_get.h"
#include "lib/replay_parts.h"
#include "lib/report.h"

int report_take_recorded(struct report_input *in, struct json_object *o, uint64_t line)
{
	const char *format = json_get_str(o, "format");

	if (format && !strcmp(format, REPLAY_FORMAT)) {
		if (json_get_u64(o, "version") != REPLAY_VERSION)
			return report_fail(in, 0, "version %llu, this statpage reads %d",
					   (unsigned long long)json_get_u64(o, "version"),
					   REPLAY_VERSION);
		in->recording = true;
		in->recorded_whole = false;
		return 1;
	}
	if (!in->recording)
		return 0;
	if (json_get_str(o, "end")) {
		in->recorded_whole = true;
		return 1;
	}
	if (!json_get(o, "time_ns", json_type_int) || !json_get(o, "realtime_ns", json_type_int))
		return 0;
	json_object_put(in->recorded);
	in->recorded = json_object_get(o);
	in->recorded_line = line;
	return 1;
}

/* The line of `show --json --cpu N`, as a recording has only what is needed to print it. */
static int take_cpu(struct report_input *in, const char *name, const struct dist_metric *m, int cpu)
{
	struct json_object *o;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int ret;

	if (!f)
		return -ENOMEM;
	fmt_dist_json(f, name, m, cpu);
	if (fclose(f)) {
		free(text);
		return -ENOMEM;
	}
	o = json_tokener_parse(text);
	ret = report_take_metric(in, o, in->recorded_line);
	json_object_put(o);
	free(text);
	return ret;
}

static int take_cpus(struct report_input *in, struct json_object *o)
{
	const char *name = json_get_str(o, "name");
	struct dist_metric m;
	struct dist_why why;
	int ret = replay_metric(o, &m, &why);

	if (ret == -ENOMEM)
		return ret;
	if (ret)
		return report_fail(in, in->recorded_line, "%.200s", why.text);
	for (unsigned int cpu = 0; ret >= 0 && cpu < m.nr_cpus; cpu++)
		if (m.cpu[cpu])
			ret = take_cpu(in, name, &m, (int)cpu);
	dist_metric_free(&m);
	return ret < 0 ? ret : 0;
}

/* Of a name that both engines have, the first is that of the preferred one: as show has it. */
static bool is_again(struct json_object *list, size_t i)
{
	const char *name = json_get_str(json_object_array_get_idx(list, i), "name"), *other;

	for (size_t k = 0; k < i; k++) {
		other = json_get_str(json_object_array_get_idx(list, k), "name");
		if (name && other && !strcmp(name, other))
			return true;
	}
	return false;
}

int report_end_recorded(struct report_input *in)
{
	struct json_object *list, *o;
	int ret = 0;
	size_t n;

	if (!in->recorded)
		return report_fail(in, 0, "there is no whole instant in it");
	list = json_get_array(in->recorded, "distributions", &n);
	for (size_t i = 0; ret >= 0 && i < n; i++) {
		o = json_object_array_get_idx(list, i);
		if (is_again(list, i))
			continue;
		ret = take_cpus(in, o);
		if (!ret)
			ret = report_take_metric(in, o, in->recorded_line);
	}
	if (ret >= 0 && !in->readings)
		return report_fail(in, 0, "no distributions were recorded: %.200s",
				   json_get_str(in->recorded, "no_distributions") ?:
					   "nothing was traced");
	return ret < 0 ? ret : 0;
}
