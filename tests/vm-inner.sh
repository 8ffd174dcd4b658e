#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The guest's init: runs the tests and gives the verdict. Serial ports: ttyS0 the console, ttyS1 the
# verdict and nothing else, ttyS2 what the tests say. The same file holds the table of guest tests,
# which vm.sh asks for on the host (--names, --needs). The shell and all its programs are busybox's.
# shellcheck disable=SC3043 # busybox's sh has local

# One line a test: the program (tests/NAME.c, or a script tests/NAME.sh or tests/red/NAME.sh), then
#   ko=NAME    our module: loaded before the test, its filesystem mounted, and unloaded after it
#   serve=NAME that program is what runs, once more, beside `statpage serve` and with its pages: see t_csf.h
#   T_X=VALUE  a variable of its environment
#   with=NAME  our module, or a file of ours by its path: there, as /ko/NAME.ko or /t/FILE
#   btf=NAME   our module with BTF, as /ko/NAME_btf.ko
#   host=NAME  a program of this machine: there, in the guest's PATH
#   mod=NAME   a module of the kernel: `modprobe NAME` finds it, and what it depends on
#   oom        a memory cgroup of it runs full, which the kernel may report with a trace
#   vm=NAME    a boot of its own kind, see variant() in vm.sh
#   named      runs only when it is asked for by name
TABLE='
t_boot     ko=coarse_stat_fs
t_cpu      ko=coarse_stat_fs
t_thread   ko=coarse_stat_fs mod=null_blk
t_states   ko=coarse_stat_fs ko=csf_states mod=null_blk
t_cputime  ko=coarse_stat_fs vm=icount
t_kvm      ko=coarse_stat_fs vm=svm mod=kvm-amd
t_fresh    ko=coarse_stat_fs vm=icount
t_exec     ko=coarse_stat_fs
t_life     ko=coarse_stat_fs
t_memory   ko=coarse_stat_fs oom vm=plain
t_misuse   ko=coarse_stat_fs
t_reader   ko=coarse_stat_fs
t_module   ko=coarse_stat_fs
t_hotplug  ko=coarse_stat_fs
t_tsc_boot with=coarse_stat_fs vm=tsc-unstable
t_rdtscp   with=coarse_stat_fs vm=no-rdtscp
t_tsc_late ko=coarse_stat_fs with=csf_tsc vm=tsc-late
t_stress   ko=coarse_stat_fs vm=stress
t_tools    ko=coarse_stat_fs with=tools/csfcat with=build/eventloop
t_export   ko=coarse_stat_fs ko=kstats ko=kstats_demo with=tools/statpage
t_record   ko=coarse_stat_fs ko=kstats ko=kstats_demo with=tools/statpage
t_pages    ko=coarse_stat_fs with=tools/statpage
t_serve    with=tools/statpage with=build/tests/threads
t_thread_serve  serve=t_thread with=tools/statpage mod=null_blk
t_states_serve  serve=t_states with=tools/statpage ko=csf_states mod=null_blk
t_cputime_serve serve=t_cputime with=tools/statpage vm=icount
t_fresh_serve   serve=t_fresh with=tools/statpage vm=icount
t_kvm_serve     serve=t_kvm with=tools/statpage vm=svm mod=kvm-amd
t_exec_serve    serve=t_exec with=tools/statpage
t_life_serve    serve=t_life with=tools/statpage
t_misuse_serve  serve=t_misuse with=tools/statpage
t_reader_serve  serve=t_reader with=tools/statpage
t_hotplug_serve serve=t_hotplug with=tools/statpage
t_stress_serve  serve=t_stress with=tools/statpage T_PAIRS=8000 T_STORM_S=5
t_doctor   with=tools/statpage with=coarse_stat_fs with=kstats
t_run      with=tools/statpage with=build/tests/workload with=build/tests/i386call
t_run_bpf  with=tools/statpage with=build/tests/workload with=build/tests/i386call with=build/tests/bpf_ids
t_run_kvm  vm=svm mod=kvm-amd mod=kvm-intel with=tools/statpage with=build/vmm with=build/tests/workload
t_rts_steps ko=coarse_stat_fs
t_rts_vmm  vm=svm mod=kvm-amd mod=kvm-intel
t_rts_vmm_asan named vm=svm mod=kvm-amd mod=kvm-intel
t_rts_vmm_tsan named vm=svm mod=kvm-amd mod=kvm-intel
t_readme   with=coarse_stat_fs with=kstats with=tools/csfcat with=tools/statpage with=build/eventloop with=./README.md
t_kstats_hist ko=kstats ko=kstats_demo ko=kstats_slots
t_kstats_call ko=kstats ko=kstats_demo
t_kstats_pair ko=kstats ko=kstats_demo
t_kstats_errors ko=kstats ko=kstats_demo with=kstats_api
t_kstats_direct ko=kstats ko=kstats_demo
t_kstats_tools ko=kstats ko=kstats_demo with=tools/statpage
t_kstats_nodebugfs with=kstats with=kstats_off vm=no-debugfs with=tools/statpage
t_dist_bpf vm=plain ko=kstats btf=kstats_demo with=tools/statpage
t_dist_bpf_tool vm=plain ko=kstats btf=kstats_demo with=tools/statpage
t_kstats_clock ko=kstats ko=kstats_demo with=csf_tsc vm=last with=tools/statpage
t_kstats_lockdown ko=kstats ko=kstats_demo vm=last with=tools/statpage
t_run_bpf_lockdown vm=last with=tools/statpage with=build/tests/workload with=build/tests/bpf_ids
demo       named ko=coarse_stat_fs with=tools/csfcat with=build/eventloop
red_fail   named
red_status named
red_signal named
red_mute   named
red_skip   named
red_splat  named
red_leak   named ko=coarse_stat_fs
red_crash  named
red_hang   named
red_liar   named
bench      ko=coarse_stat_fs vm=icount
bench_reader vm=icount
bench_kstats vm=icount ko=kstats ko=kstats_demo
bench_bpf  vm=icount with=tools/statpage host=strace
bench_dist_bpf vm=icount ko=kstats btf=kstats_demo with=tools/statpage
bench_serve vm=icount with=tools/statpage
'

lines() { echo "$TABLE" | grep -v -e '^$' -e '^#'; }

case ${1:-} in
--names) # of the given tests (t_ may be left out), or of all but the `named` ones
	shift
	[ $# -gt 0 ] || { lines | grep -v -w named | cut -d ' ' -f 1; exit; }
	for name; do
		lines | cut -d ' ' -f 1 | grep -x -e "$name" -e "t_$name" && continue
		echo "vm.sh: no test '$name', expected one of:" >&2
		lines | cut -d ' ' -f 1 | xargs echo >&2
		exit 2
	done
	exit ;;
--needs)
	lines | grep "^$2\( \|$\)" | tr -s ' ' | cut -s -d ' ' -f 2-
	exit ;;
esac

# From here on we are PID 1 of the guest.
[ $$ = 1 ] || { echo "vm-inner.sh: this is the guest's init, use tests/vm.sh" >&2; exit 2; }
export PATH=/bin:/sbin:/t
BAD=0

not_ok()
{
	echo "not ok - $*"
	BAD=1
}

finish()
{
	exec >/dev/console 2>&1 # a close waits until all is sent
	stty -F /dev/ttyS1 raw
	echo "RESULT $BAD" >/dev/ttyS1
	exec reboot -f
}

mount_all()
{
	mount -t proc proc /proc
	mount -t sysfs sys /sys
	mount -t devtmpfs dev /dev
	mkdir -p /dev/pts /dev/shm
	mount -t devpts devpts /dev/pts
	mount -t tmpfs -o mode=1777 tmp /tmp
	mount -t tmpfs -o mode=1777 shm /dev/shm
	mount -t tmpfs -o mode=755 run /run
	mount -t cgroup2 cgroup /sys/fs/cgroup
	mount -t securityfs security /sys/kernel/security
	mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null # not there with debugfs=off
	mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
	ip link set lo up
}

load()
{
	insmod "/ko/$1.ko" || { not_ok "$name: $1.ko does not load"; return 1; }
	if [ -d "/sys/kernel/$1" ] && grep -qw "$1" /proc/filesystems; then
		mount -t "$1" none "/sys/kernel/$1" || not_ok "$name: $1 does not mount"
	fi
}

# kstats refuses while somebody is inside a function that was traced, and looks once a second.
unload()
{
	local tries=0

	grep -q "^$1 " /proc/modules || return 0 # the test did it
	while grep -q " /sys/kernel/$1 " /proc/mounts; do
		umount "/sys/kernel/$1" || { not_ok "$name: $1 does not unmount"; return; }
	done
	until rmmod "$1" 2>/tmp/.rmmod; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || { not_ok "$name: $1.ko does not unload after the test: $(cat /tmp/.rmmod)"; return; }
		sleep 0.2
	done
}

# The server, and when it is done with nothing of it.
serve()
{
	local tries=0

	: >/tmp/.served
	statpage serve >/tmp/.served 2>&1 &
	server=$!
	until grep -q '^serving' /tmp/.served; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || { not_ok "$name: statpage serve does not start: $(cat /tmp/.served)"; return; }
		sleep 0.2
	done
}

end_serve()
{
	kill "$server"
	wait "$server" || not_ok "$name: statpage serve ends with status $?: $(cat /tmp/.served)"
	[ ! -e /sys/fs/bpf/statpage ] || not_ok "$name: statpage serve leaves /sys/fs/bpf/statpage"
	umount /sys/fs/bpf
}

# What the kernel has said since the last look, without what this test is expected to make it say.
said_by_kernel()
{
	dmesg -c | if [ -n "$oom" ]; then sed '/ invoked oom-killer: /,/<\/TASK>/d'; else cat; fi
}

# Exit statuses are those of t.h: 0, 1, or 77 when everything was skipped.
judge()
{
	local line

	case $1 in
	0 | 77) ;;
	1) grep -q '^not ok' "$2" || not_ok "$name: exit status 1" ;;
	*) not_ok "$name: exit status $1" ;;
	esac
	grep -q '^not ok' "$2" && BAD=1
	grep -q '^ok' "$2" || [ "$1" != 0 ] || not_ok "$name: says nothing"
	sed -n 's/^ok [0-9]* - \(.*\) # SKIP.*/\1/p' "$2" >/tmp/.skips
	while read -r line; do
		skip_expected /etc/kernels "$RELEASE cpus=$(nproc)" "$name" "$line" ||
			not_ok "$name: skipped '$line', which tests/kernels does not expect here"
	done </tmp/.skips
	if said_by_kernel | grep -E -f /etc/splats.deny >/tmp/.splat; then
		sed 's/^/#   /' /tmp/.splat
		not_ok "$name: the kernel log has: $(head -n 1 /tmp/.splat)"
	fi
}

run()
{
	local name="$1" prog="$1" out=/tmp/.out loaded="" oom="" server="" need env=""
	shift

	echo "# $name"
	for need; do
		case $need in
		ko=*) load "${need#ko=}" && loaded="${need#ko=} $loaded" ;;
		oom) oom=1 ;;
		serve=*) prog=${need#serve=} env="$env T_PAGES=serve" && serve ;;
		T_*=*) env="$env $need" ;;
		esac
	done
	# shellcheck disable=SC2086 # one word a variable
	{ env $env "$prog" 2>&1; echo $? >/tmp/.status; } | tee $out
	[ -z "$server" ] || end_serve
	for need in $loaded; do unload "$need"; done
	judge "$(cat /tmp/.status)" $out
}

main()
{
	local name

	mount_all
	case $(cat /proc/cmdline) in *vm.probe*) finish ;; esac
	exec </dev/null >/dev/ttyS2 2>&1
	stty -F /dev/ttyS2 raw
	# shellcheck source=scripts/skips.sh
	. /etc/skips.sh
	RELEASE=$(uname -r)
	echo "# Linux $RELEASE, $(nproc) CPU, up $(cut -d ' ' -f 1 /proc/uptime) s"
	dmesg -c >/tmp/boot.log
	cd /tmp || exit
	while read -r name <&4; do
		# shellcheck disable=SC2046 # one word a need
		run "$name" $(/init --needs "$name")
	done 4</etc/tests
	finish
}

main
