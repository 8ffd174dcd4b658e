#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Measure what docs/fleet.md reckons with: series, bytes and time of an exporter, and memory, disk and time
# that they take in a real Prometheus. Called by `make bench-fleet`. MACHINES exporters with METRICS metrics
# each, scraped once a second for SECONDS_RUN. A chunk of Prometheus holds 120 samples: less time than that
# says nothing about the disk.
set -euo pipefail
cd "$(dirname "$0")/../.."

machines=${MACHINES:-20} metrics=${METRICS:-10} seconds=${SECONDS_RUN:-180}
statpage=$PWD/tools/statpage fleet=$PWD/build/tests/native/fleet
bin=$(scripts/deps.sh metrics)/usr/bin
tmp=$(mktemp -d)
jobs=''
# shellcheck disable=SC2086 # one word a process
trap '{ kill $jobs; wait $jobs; } 2>/dev/null || true; rm -rf "$tmp"' EXIT

background()
{
	"${@:2}" >"$tmp/$1.out" 2>"$tmp/$1.err" &
	jobs="$jobs $!"
}

wait_for()
{
	local _

	for _ in $(seq 600); do
		grep -qs "$1" "$2" && return
		sleep 0.1
	done
	echo "bench_fleet.sh: no '$1' in $2: $(tail -n 3 "$2")" >&2
	exit 1
}

# New samples in every metric of every machine, again and again.
work()
{
	local round=0 i

	while round=$((round + 1)); do
		for i in $(seq "$metrics"); do
			"$fleet" table 3 "$i" "$((500 + round * 100))" >"$tmp/new"
			for dir in "$tmp"/m*/; do
				cp "$tmp/new" "$dir/_new" && mv "$dir/_new" "$dir/metric$i"
			done
		done
		sleep 0.5
	done
}

# An empty Prometheus, and later a full one.
prometheus()
{
	background "$1" "$bin/prometheus" --config.file="$tmp/$1.yml" --storage.tsdb.path="$tmp/$1.data" \
		--web.listen-address=127.0.0.1:0 --web.enable-admin-api
	pid=${jobs##* }
	wait_for 'msg="Listening on"' "$tmp/$1.err"
	api=http://$(sed -n 's/.*msg="Listening on" address=//p' "$tmp/$1.err" | head -n 1)/api/v1
}

ask() { curl -s -G "$api/query" --data-urlencode "query=$1" | jq -r '.data.result[0].value[1]'; }
own() { curl -s "${api%/api/v1}/metrics" | awk -v n="$1" 'index($0, n) == 1 && !seen++ { print $2 }'; }
rss_kib() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status"; }

for i in $(seq "$machines"); do
	mkdir "$tmp/m$i"
done
background work work
for i in $(seq "$machines"); do
	for n in $(seq "$metrics"); do
		until [ -e "$tmp/m$i/metric$n" ]; do sleep 0.1; done
	done
	background "m$i" "$statpage" export --listen 127.0.0.1:0 --from "$tmp/m$i"
	exporter=${jobs##* }
done
targets=''
for i in $(seq "$machines"); do
	wait_for ^http "$tmp/m$i.out"
	targets+="\"$(sed 's,^http://\(.*\)/metrics,\1,' "$tmp/m$i.out")\", "
done

echo "# one exporter of $metrics metrics of 3 bits"
printf 'bits    series     bytes\n'
for bits in 0 1 2 3; do
	"$statpage" export --textfile "$tmp" --from "$tmp/m1" --bits $bits
	printf '%4d %9d %9d\n' $bits "$(grep -vc '^#' "$tmp/statpage.prom")" "$(stat -c %s "$tmp/statpage.prom")"
done
printf 'series a metric, 1 bit: %d; beside the metrics: %d\n' \
	"$("$statpage" export --textfile "$tmp" --from "$tmp/m1" && grep -c 'metric="metric1"' "$tmp/statpage.prom")" \
	"$(grep -v '^#' "$tmp/statpage.prom" | grep -vc 'metric="')"

echo "global: {scrape_interval: 1h}" >"$tmp/empty.yml"
prometheus empty
sleep 5
empty=$(rss_kib "$pid")
cat >"$tmp/full.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 15s}
rule_files: [$PWD/packaging/prometheus/statpage.rules.yml]
scrape_configs: [{job_name: statpage, static_configs: [{targets: [${targets%, }]}]}]
END
prometheus full
sleep "$seconds"

series=$(own prometheus_tsdb_head_series)
snapshot=$(curl -s -X POST "$api/admin/tsdb/snapshot" | jq -r .data.name)
meta=$(echo "$tmp/full.data/snapshots/$snapshot"/*/meta.json)
samples=$(jq .stats.numSamples "$meta")
version=$("$bin/prometheus" --version 2>&1 | head -n 1 | cut -d ' ' -f 1-3)
echo "# $machines of them, scraped every second for $seconds s by $version"
printf 'collect: %.2f ms of an exporter a scrape; exporter: %d KiB\n' \
	"$(awk -v s="$(ask 'avg(statpage_collect_seconds)')" 'BEGIN { print s * 1e3 }')" "$(rss_kib "$exporter")"
printf 'scrape: %.2f ms as Prometheus sees it\n' \
	"$(awk -v s="$(ask 'avg(scrape_duration_seconds)')" 'BEGIN { print s * 1e3 }')"
grown=$(($(rss_kib "$pid") - empty))
printf 'memory: %d KiB more than an empty one, %d series: %.1f KiB a series\n' $grown "$series" \
	"$(awk -v m=$grown -v s="$series" 'BEGIN { print m / s }')"
printf 'disk: %d samples in %d bytes of chunks, %.2f bytes a sample; index %.0f bytes a series\n' "$samples" \
	"$(cat "${meta%/*}"/chunks/* | wc -c)" \
	"$(awk -v b="$(cat "${meta%/*}"/chunks/* | wc -c)" -v s="$samples" 'BEGIN { print b / s }')" \
	"$(awk -v b="$(stat -c %s "${meta%/*}/index")" -v s="$(jq .stats.numSeries "$meta")" 'BEGIN { print b / s }')"
rules=$(own 'prometheus_rule_group_last_duration_seconds{')
printf 'rules: %.1f ms for all of them, over %d bucket series\n' \
	"$(awk -v s="$rules" 'BEGIN { print s * 1e3 }')" "$(ask 'count(statpage_duration_seconds_bucket)')"
# A window of 20 samples, as 5 minutes have at one each 15 s.
query='sum by (metric, le) (rate(statpage_duration_seconds_bucket[20s]))'
best=$(for _ in 1 2 3 4 5 6 7 8 9 10; do
	curl -s -o "$tmp/answer" -w '%{time_total}\n' -G "$api/query" --data-urlencode "query=$query"
done | sort -n | head -n 1)
printf 'merge by Prometheus: %.1f ms for %d bucket series, 20 samples each: %.1f us a series\n' \
	"$(awk -v s="$best" 'BEGIN { print s * 1e3 }')" "$(ask 'count(statpage_duration_seconds_bucket)')" \
	"$(awk -v s="$best" -v n="$(ask 'count(statpage_duration_seconds_bucket)')" 'BEGIN { print s * 1e6 / n }')"
printf 'merge by lib/hist.c: %s ns a histogram of 3 bits into one of 3 bits, %s ns into one of 1 bit\n' \
	"$("$fleet" cost 3 100000 "$tmp/m1/metric1")" "$("$fleet" cost 1 100000 "$tmp/m1/metric1")"
