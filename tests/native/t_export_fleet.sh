#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks statpage export against a real Prometheus that scrapes several of it: quantiles over all
# machines against lib/hist.c's of the merged tables, the recording rules, and every query of the dashboard.
. "$(dirname "$0")/tap.sh"

fleet=$native/fleet
bin=$(scripts/deps.sh metrics)/usr/bin
rules=packaging/prometheus/statpage.rules.yml
machines=4
jobs=''
# shellcheck disable=SC2086 # one word a process
trap '[ -z "$jobs" ] || { kill $jobs; wait $jobs; } 2>/dev/null; rm -rf "$tmp"' EXIT

# Wait at most two minutes until a command succeeds.
until_true()
{
	local _

	for _ in $(seq 600); do
		"$@" && return 0
		sleep 0.2
	done
	return 1
}

background()
{
	"${@:2}" >"$tmp/$1.out" 2>"$tmp/$1.err" &
	jobs="$jobs $!"
}

# Start an exporter and print where it listens.
exporter()
{
	background "$1" "${@:2}" --listen 127.0.0.1:0
	until_true grep -qs ^http "$tmp/$1.out" || fail "$1 does not listen: $(cat "$tmp/$1.err")"
}

where() { sed 's,^http://\(.*\)/metrics,\1,' "$tmp/$1.out"; }

# Write a file whole or not at all: an exporter may read it at any moment.
replace() { "${@:2}" >"${1%/*}/_new" && mv "${1%/*}/_new" "$1"; }

# The machines at work: what was recorded so far, and CPU time.
work()
{
	local round=0 i

	while round=$((round + 1)); do
		for i in $(seq "$machines"); do
			replace "$tmp/m$i/vfs_read" "$fleet" table 3 "$i" "$((500 + round * 100 * i))"
		done
		"$fleet" cpu "$tmp/csf/new" "$round" && mv "$tmp/csf/new" "$tmp/csf/cpu"
		sleep 0.3
	done
}

mkdir "$tmp/csf"
for i in $(seq "$machines"); do
	mkdir "$tmp/m$i" "$tmp/fine$i"
	"$fleet" table 3 "$i" 500 >"$tmp/m$i/vfs_read"
	"$fleet" table 3 "$i" $((1000 * i)) >"$tmp/m$i/frozen"
	"$fleet" table $((3 + i % 3)) "$i" $((1000 * i)) >"$tmp/fine$i/frozen_fine"
done
cp "$tmp/m1/frozen" "$tmp/m1/mixed"
cp "$tmp/m1/frozen" "$tmp/fine1/mixed"
"$fleet" cpu "$tmp/csf/cpu" 1

begin "exporters and Prometheus start"
# The CPU times of a page that was made up, as the machine may have no module.
variable() { make -pn 2>/dev/null | sed -n "s/^$1 := //p"; }
libs=$(variable TOOL_LIBS)
# shellcheck disable=SC2046,SC2086 # words
cc -std=gnu11 -D_GNU_SOURCE -I. -Iinclude -Iinclude/uapi -DCSF_MOUNT_PATH="\"$tmp/csf\"" -o "$tmp/statpage" \
	tools/export_collect.c tools/cpu_table.c \
	$(variable TOOL_OBJS | tr ' ' '\n' | grep -v -e /export_collect.o -e /cpu_table.o) \
	build/lib.a -pthread -lm $libs || fail "does not link"
exporter cpu "$tmp/statpage" export --threads prometheus
for i in $(seq "$machines"); do
	exporter "m$i" "$statpage" export --from "$tmp/m$i"
	exporter "fine$i" "$statpage" export --from "$tmp/fine$i" --bits 3 --range 1us..1s
done
cat >"$tmp/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [$PWD/$rules]
scrape_configs:
  - job_name: statpage
    static_configs:
      - targets: [$(for i in $(seq "$machines"); do printf '"%s", ' "$(where "m$i")"; done)"$(where cpu)"]
  - job_name: fine
    static_configs:
      - targets: [$(for i in $(seq "$machines"); do printf '"%s", ' "$(where "fine$i")"; done)]
END
background work work
"$bin/promtool" check config "$tmp/prometheus.yml" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
background prometheus "$bin/prometheus" --config.file="$tmp/prometheus.yml" --storage.tsdb.path="$tmp/data" \
	--web.listen-address=127.0.0.1:0
until_true grep -qs 'msg="Listening on"' "$tmp/prometheus.err" || fail "$(tail -n 3 "$tmp/prometheus.err")"
api=http://$(sed -n 's/.*msg="Listening on" address=//p' "$tmp/prometheus.err" | head -n 1)/api/v1

# The answer to a query, as JSON.
ask() { curl -s --max-time 60 -G "$api/query" --data-urlencode "query=$1"; }
# Its numbers, one a line.
numbers() { ask "$1" | jq -r '.data.result[]?.value[1]'; }
# Whether it is this one number.
gives() { [ "$(numbers "$1")" = "$2" ]; }

expected=0
check until_true gives 'sum(up)' $((2 * machines + 1)) "not all are up: $(numbers up | xargs)"
for i in $(seq "$machines"); do
	expected=$((expected + 1000 * i))
done
# A scrape is taken in as one, but several come one after another.
for metric in frozen frozen_fine; do
	check until_true gives "sum(statpage_duration_seconds_count{metric=\"$metric\"})" $expected \
		"$metric: not all are there"
done

# There is nothing to ask, and nothing to wait for.
[ -z "$bad" ] || finish

begin "Prometheus takes OpenMetrics: types and units are known"
metadata() { curl -s "$api/targets/metadata?limit=1&metric=$1" | jq -r '.data[0] | .type + " " + .unit'; }
is "$(metadata statpage_build)" "info " statpage_build
is "$(metadata statpage_duration_seconds)" "histogram seconds" statpage_duration_seconds
is "$(metadata statpage_samples_missed)" "counter " statpage_samples_missed
is "$(metadata statpage_samples_inside)" "gauge " statpage_samples_inside

# in_slot BITS Q JOB METRIC TABLE...: what Prometheus makes of all the machines lies in the slot of the quantile
# of all tables merged. Between buckets it draws a line from the bound below, which is one less than the slot's
# low.
in_slot()
{
	local bits=$1 q=$2 job=$3 metric=$4 low high count sum got
	shift 4

	read -r low high count sum < <("$fleet" merge "$bits" "$q" "$@")
	got="statpage_duration_seconds_bucket{job=\"$job\",metric=\"$metric\"}"
	got=$(numbers "histogram_quantile($q, sum by (le) ($got))")
	awk -v v="$got" -v low="$low" -v high="$high" \
		'BEGIN { v *= 1e9; exit !(v >= low - 1.001 && v <= high + 0.001) }' ||
		fail "$metric, $q: $got, expected $low to $high ns"
}

for kind in "1 statpage frozen m" "3 fine frozen_fine fine"; do
	read -r bits job metric dir <<<"$kind"
	begin "quantiles over all machines lie in the slot of the merged histograms', $bits bits"
	for q in 0.001 0.01 0.1 0.25 0.5 0.75 0.9 0.95 0.99 0.999; do
		in_slot "$bits" $q "$job" "$metric" "$tmp/$dir"[0-9]/"$metric"
	done
	read -r _ _ count sum < <("$fleet" merge "$bits" 0.5 "$tmp/$dir"[0-9]/"$metric")
	is "$(numbers "sum(statpage_duration_seconds_count{metric=\"$metric\"})")" "$count" "count of all"
	is "$(numbers "sum(statpage_duration_seconds_sum{metric=\"$metric\"})" | awk '{ printf "%.6f", $1 }')" \
		"$(awk -v s="$sum" 'BEGIN { printf "%.6f", s / 1e9 }')" "sum of all"
done

# Numbers, and not all of them NaN, which is what comes of nothing to divide by.
has_numbers() { numbers "$1" | grep -qE '^[-+0-9.e]+$'; }

begin "promtool finds nothing to object to in the rules"
"$bin/promtool" check rules $rules >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"

begin "each recording rule records"
names=$(sed -n 's/.*- record: //p' $rules)
check test "$(echo "$names" | wc -l)" -ge 10 "only: $names"
for rule in $names; do
	check until_true has_numbers "$rule" "$rule: no data"
done
is "$(curl -s "$api/rules" | jq -r '.data.groups[].rules[] | select(.health == "err") | .name')" "" "rules that fail"

begin "recorded: a median between those of the machines, shares that are right"
# How much of each machine is in it depends on when it was scraped.
low=$("$fleet" merge 1 0.5 "$tmp/m1/frozen" | cut -d ' ' -f 1)
high=$("$fleet" merge 1 0.5 "$tmp/m$machines/frozen" | cut -d ' ' -f 2)
median='metric:statpage_duration_seconds:p50_5m{metric="vfs_read"}'
between()
{
	numbers "$median" | awk -v low="$low" -v high="$high" \
		'{ ok = $1 * 1e9 >= low - 2 && $1 * 1e9 <= high + 1 } END { exit !ok }'
}
check until_true between "median: $(numbers "$median"), expected $low to $high"
share='metric:statpage_samples_missed:ratio_rate5m{metric="vfs_read"}'
missed() { numbers "$share" | awk '{ ok = $1 > 0.0005 && $1 < 0.004 } END { exit !ok }'; }
check until_true missed "missed: $(numbers "$share"), expected 0.002"
is "$(numbers 'round(sum(mode:statpage_cpu_seconds:ratio_rate5m), 0.001)')" 1 "shares of CPU time"

begin "a second Prometheus adds up what the first has recorded"
host=${api#http://} host=${host%%/*}
cat >"$tmp/top.yml" <<END
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: shards
    honor_labels: true
    metrics_path: /federate
    params: {"match[]": ['{__name__=~"[a-z_]+:statpage_.*"}']}
    static_configs: [{targets: ["$host"]}]
END
background top "$bin/prometheus" --config.file="$tmp/top.yml" --storage.tsdb.path="$tmp/top.data" \
	--web.listen-address=127.0.0.1:0
until_true grep -qs 'msg="Listening on"' "$tmp/top.err" || fail "$(tail -n 3 "$tmp/top.err")"
first=$api
api=http://$(sed -n 's/.*msg="Listening on" address=//p' "$tmp/top.err" | head -n 1)/api/v1
buckets='metric_le:statpage_duration_seconds_bucket:rate5m{metric="vfs_read"}'
check until_true gives "count($buckets)" 61 "buckets: $(numbers "count($buckets)")"
median="histogram_quantile(0.5, sum by (le) ($buckets))"
check until_true between "median: $(numbers "$median"), expected $low to $high"
api=$first

begin "machines with other buckets are found"
is "$(numbers 'metric:statpage_duration_seconds:buckets_beyond_one_machine{metric="vfs_read"}')" 0 vfs_read
is "$(numbers 'metric:statpage_duration_seconds:buckets_beyond_one_machine{metric="mixed"} > bool 0')" 1 mixed

begin "each query of the dashboard returns data"
dashboard=packaging/grafana/statpage.json
jq -r '.. | .expr? // empty' $dashboard >"$tmp/queries"
check test "$(wc -l <"$tmp/queries")" -ge 10 "only $(wc -l <"$tmp/queries") queries"
# shellcheck disable=SC2016 # the dashboard's variables
sed -i 's/\$__rate_interval/1m/g; s/\$metric/.*/g; s/\$instance/.*/g' "$tmp/queries"
check test -z "$(grep -F '$' "$tmp/queries")" "a variable that this test does not know"
while read -r query; do
	check until_true has_numbers "$query" "$query: $(ask "$query")"
done <"$tmp/queries"

begin "so do its variables"
jq -r '.templating.list[] | select(.type == "query") | .definition' $dashboard |
	sed -n 's/^label_values(\(.*\), \(.*\))$/\1 \2/p' >"$tmp/variables"
is "$(wc -l <"$tmp/variables")" 2 "variables"
while read -r series label; do
	check test "$(curl -s -G "$api/label/$label/values" --data-urlencode "match[]=$series" | jq '.data | length')" -gt 1 \
		"$label of $series"
done <"$tmp/variables"

finish
