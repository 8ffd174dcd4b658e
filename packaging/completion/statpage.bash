# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# Completion of statpage and csfcat for bash. Commands and options are asked of the program itself, so
# they are always those of the version at hand.

# Metrics and nodes that exist; as root, or where debugfs may be read. Nodes of the engine bpf are folders.
_statpage_metrics()
{
	local f

	for f in /sys/kernel/debug/kstats/*; do
		f=${f##*/}
		[[ $f = _* || $f = '*' ]] || echo "$f"
	done
	for f in /sys/fs/bpf/statpage/*/begin; do
		f=${f%/begin} f=${f##*/}
		[[ $f = '*' ]] || printf '%b\n' "${f//%/\\x}"
	done
}

# What may stand behind option $2 of command $3 of program $1, where $4 stands now; fails for a word that is no such option.
_statpage_values()
{
	case $2 in
	-f | --format) echo summary json jsonl ;;
	-t | --to) "$1" "$3" --help 2>/dev/null | sed -n 's/^       \([a-z]*\)  .*/\1/p' ;;
	--engine) "$1" "$3" --help 2>/dev/null | sed -n 's/^ *--engine E *//p' | tr -d , ;;
	--via) echo direct fentry kretprobe fprobe kprobe ftrace tracepoint ;;
	--signal) echo USR1 USR2 ;;
	--replay) compgen -f -- "$4" ;;
	--cgroup) compgen -d -- "${4:-/sys/fs/cgroup/}" ;;
	-p | --pid) (cd /proc && echo [0-9]*) ;;
	--bits) echo 0 1 2 3 4 5 ;;
	*) return 1 ;;
	esac
}

_statpage()
{
	local prog=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local cmd=${COMP_WORDS[1]} words i

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		words=$("$prog" --help 2>/dev/null | sed -n 's/^  \([a-z]*\)  .*/\1/p')
		mapfile -t COMPREPLY < <(compgen -W "$words --help" -- "$cur")
		return
	fi
	# Behind `run --` the command completes as if it stood alone.
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [[ $cmd = run && ${COMP_WORDS[i]} = -- ]]; then
			if declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
			else
				mapfile -t COMPREPLY < <(compgen -c -- "$cur")
			fi
			return
		fi
	done
	if words=$(_statpage_values "$prog" "$prev" "$cmd" "$cur"); then
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
		return
	fi
	if [[ $cur = -* ]]; then
		words=$("$prog" "$cmd" --help 2>/dev/null | grep -oE -- '(^| )-(-[a-z][a-z-]+|[a-z]\b)')
		mapfile -t COMPREPLY < <(compgen -W "$words --help" -- "$cur" | sort -u)
		return
	fi
	case $cmd in
	show | untrace | start | stop | reset)
		mapfile -t COMPREPLY < <(compgen -W "$(_statpage_metrics)" -- "$cur") ;;
	record) # metrics, and -o's file
		if [[ $prev = -o || $prev = --output ]]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -W "$(_statpage_metrics)" -- "$cur")
		fi ;;
	trace)
		[ -z "$cur" ] || mapfile -t COMPREPLY < <(grep -hoE "^${cur//[^A-Za-z0-9_]/}[A-Za-z0-9_]*" \
			/sys/kernel/tracing/available_filter_functions 2>/dev/null | head -n 200) ;;
	run)
		mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
	*)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	esac
}

complete -o filenames -F _statpage statpage csfcat
