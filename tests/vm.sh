#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Boot a kernel in QEMU with our modules and run guest tests: tests/vm.sh [names], default all.
# What there is to run is the table in tests/vm-inner.sh. The last line is `RESULT 0` when all
# passed, and that is the exit status too.
#
#   VM_CPUS=2       CPUs of the guest          VM_DEBUG=0   no slub_debug, init_on_free, KFENCE
#   VM_TIMEOUT=1200 seconds for a boot         VM_ICOUNT=1  one TSC tick an instruction (one CPU)
#   VM_MEM=1024     MiB of memory              VM_ACCEL     kvm or tcg; default: kvm where it works
#   VM_OUT=build/vm outputs: tests.log, console.log
#
# VM_KERNEL (image), VM_MODULES (its lib/modules/RELEASE) and VM_KO (tree with our modules) come from
# tests/debian/run.sh, which calls this script. Without them a kernel is chosen, and run.sh called.
# VM_TESTS (directory with the guest's programs) and VM_BUSYBOX are its too, for another architecture;
# without VM_TESTS the programs are built.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
cache=${STATPAGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/statpage}

GUEST="" # process id while there is one

say() { echo "vm.sh: $*"; }
die() { echo "vm.sh: $*" >&2; exit 1; }

# No kernel was named: this machine's own where that can be, else Debian 12's.
choose_kernel()
{
	local rel why=""

	rel=$(uname -r)
	[ -e /proc/modules ] || why="this machine's kernel has no module support"
	[ -e "/lib/modules/$rel/build/Makefile" ] || why=${why:-"no headers for this machine's kernel"}
	[ -r "/boot/vmlinuz-$rel" ] || why=${why:-"cannot read /boot/vmlinuz-$rel"}
	export VM_OUT=${VM_OUT:-$top/build/vm}
	if [ -z "$why" ]; then
		say "kernel: this machine's own, $rel"
		exec "$top/tests/debian/run.sh" host "$@"
	fi
	say "kernel: Debian bookworm's ($why)"
	exec "$top/tests/debian/run.sh" bookworm "$@"
}

# What a boot is made of, beyond the default: a line of the table says vm=NAME.
#   CPU is for TCG; APPEND goes to the kernel's command line; DEBUG is VM_DEBUG.
# A test that leaves the guest unfit for others (tsc-late) has a boot of its own, too; those of `last` can
# run in the table's order.
# Skylake-Server: `-cpu max` makes Linux distrust the TSC.
variant()
{
	CPU=Skylake-Server APPEND="" ICOUNT=${VM_ICOUNT:-} DEBUG=${VM_DEBUG:-1}
	case $1 in
	default | stress | tsc-late | last) ;;
	plain) DEBUG=0 ;; # for what would take too long under slub_debug
	icount) ICOUNT=1 DEBUG=0 ;; # a count is of the kernel's code, not of what debugs it
	svm) CPU=EPYC,+svm,+npt APPEND="tsc=reliable" ;;
	tsc-unstable) APPEND="tsc=unstable" ;;
	no-rdtscp) CPU=Skylake-Server,-rdtscp ;;
	no-debugfs) APPEND="debugfs=off" ;;
	*) die "vm-inner.sh: no vm=$1, expected one of variant() in vm.sh" ;;
	esac
}

# Sets QEMU to the command for a boot of initramfs $1 with acceleration $2.
qemu_args()
{
	# nowatchdog: on a busy host an emulated HPET is read late, and the guest blames the TSC for it.
	local append="console=ttyS0 panic_on_warn=1 oops=panic panic=-1 log_buf_len=2M tsc=nowatchdog $APPEND"

	# On a busy host an emulated timer may be late for the boot's check that it works: a panic.
	append+=" no_timer_check"

	if [ "$DEBUG" != 0 ]; then
		append+=" slub_debug=FZPU init_on_free=1 kfence.sample_interval=10"
	else
		append+=" kfence.sample_interval=0"
	fi
	QEMU=(qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot
		-m "${VM_MEM:-1024}" -kernel "$VM_KERNEL" -initrd "$1"
		-serial "file:$CONSOLE" -serial "file:$VERDICT")
	if [ "$2" = kvm ]; then
		QEMU+=(-accel kvm -cpu host -smp "$CPUS")
	elif [ -n "$ICOUNT" ]; then
		QEMU+=(-accel "tcg,thread=single" -cpu "$CPU" -smp 1 -icount "shift=0,sleep=off")
	else
		# QEMU 7.2 with thread=multi runs stale translations of patched kernel code.
		QEMU+=(-accel "tcg,thread=single" -cpu "$CPU" -smp "$CPUS")
	fi
	QEMU+=(-append "$append vm.debug=$DEBUG$PROBE")
}

# Does hardware virtualisation work here? /dev/kvm may be there and a guest may hang all the same, so
# boot one, with a time limit; the answer holds until the next boot of this machine.
probe_kvm()
{
	local stamp answer=tcg
	stamp="$(cat /proc/sys/kernel/random/boot_id) $(qemu-system-x86_64 --version | head -n 1)"

	[ -w /dev/kvm ] || { echo tcg; return; }
	mkdir -p "$cache"
	exec 7>"$cache/kvm.lock"
	flock 7
	if [ "$(sed -n 1p "$cache/kvm" 2>/dev/null)" != "$stamp" ]; then
		say "trying hardware virtualisation (20 s at most, once)" >&2
		PROBE=' vm.probe' qemu_args "$1" kvm
		timeout -k 1 20 "${QEMU[@]}" </dev/null >/dev/null 2>&1 || true
		! grep -qx 'RESULT 0' "$VERDICT" || answer=kvm
		printf '%s\n%s\n' "$stamp" "$answer" >"$cache/kvm"
	fi
	sed -n 2p "$cache/kvm"
	exec 7>&-
}

# Boot the variant $1 for the tests that follow; adds to $LOG. A guest that says nothing has failed.
boot()
{
	local name=$1 initrd=$VM_OUT/initramfs-$1.cpio log=$VM_OUT/tests-$1.log why status=0 accel
	shift

	CONSOLE=$VM_OUT/console-$name.log VERDICT=$VM_OUT/verdict-$name PROBE=""
	variant "$name"
	CPUS=${VM_CPUS:-2}
	[ -z "$ICOUNT" ] || CPUS=1
	"$top/tests/initramfs.sh" "$initrd" "$@" || die "no initramfs for: $*"
	accel=${VM_ACCEL:-}
	[ -z "$ICOUNT" ] || accel=tcg
	[ -n "$accel" ] || accel=$(probe_kvm "$initrd")
	qemu_args "$initrd" "$accel"
	say "booting ${VM_MODULES##*/}, $CPUS CPU, $accel${ICOUNT:+ icount}, vm=$name: $*"

	rm -f "$VERDICT"
	: >"$log"
	timeout --foreground -k 5 "${VM_TIMEOUT:-1200}" "${QEMU[@]}" -serial "file:$log" \
		</dev/null >"$VM_OUT/qemu.log" 2>&1 &
	GUEST=$!
	tail -s 0.2 -n +1 -f --pid=$GUEST "$log"
	wait $GUEST || status=$?
	GUEST=""
	cp "$CONSOLE" "$VM_OUT/console.log"
	if ! grep -q '^RESULT' "$VERDICT"; then
		why="the guest died without a verdict"
		[ $status != 124 ] || why="no verdict within ${VM_TIMEOUT:-1200} s"
		echo "# the end of $CONSOLE:"
		tail -n 80 "$CONSOLE" | tr -d '\r' | sed 's/^/#   /'
		grep -v 'TCG doesn.t support' "$VM_OUT/qemu.log" || true
		echo "not ok - guest vm=$name: $why" | tee -a "$log"
	fi
	cat "$log" >>"$LOG"
	grep -qx 'RESULT 0' "$VERDICT" && ! grep -q '^not ok' "$log"
}

main()
{
	local names name program need needs vm vms="" programs=() files=() result=0 group

	[ -n "${VM_KERNEL:-}" ] || choose_kernel "$@"
	"$top/scripts/deps.sh" guest build
	mkdir -p "$VM_OUT"
	LOG=$VM_OUT/tests.log
	exec 8>"$VM_OUT/lock" # one run at a time in this directory
	flock 8
	: >"$LOG"
	trap '[ -z "$GUEST" ] || kill "$GUEST"' EXIT
	names=$("$top/tests/vm-inner.sh" --names "$@") || exit
	[[ $names != *@(bpf|serve)* ]] || "$top/scripts/deps.sh" bpf
	for name in $names; do
		needs=$("$top/tests/vm-inner.sh" --needs "$name")
		vm=default program=$name
		for need in $needs; do
			case $need in
			vm=*) vm=${need#vm=} ;;
			serve=*) program=${need#serve=} ;;
			with=*/*) files+=("${need#with=}") ;;
			esac
		done
		[ -e "$top/tests/$program.sh" ] || [ -e "$top/tests/red/$program.sh" ] ||
			programs+=("$program")
		declare -A groups
		groups[$vm]+=" $name"
		[[ " $vms " = *" $vm "* ]] || vms+=" $vm"
	done
	[ ${#programs[@]} = 0 ] || [ -n "${VM_TESTS:-}" ] || make -s -C "$top/tests" "${programs[@]}" >&2 ||
		die "the test programs do not build"
	[ ${#files[@]} = 0 ] || make -s -C "$top" "${files[@]}" >&2 ||
		die "does not build: ${files[*]}"
	for vm in $vms; do
		read -ra group <<<"${groups[$vm]}"
		boot "$vm" "${group[@]}" || result=1
	done
	echo "RESULT $result" | tee -a "$LOG"
	exit $result
}

main "$@"
