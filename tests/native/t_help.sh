#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# This test checks that the command table, --help, the man page and the completions agree.
. "$(dirname "$0")/tap.sh"

commands=$("$statpage" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')

# The long and short options that text names, one a line.
options()
{
	grep -oE -- '(^|[^-[:alnum:]])-(-[a-z][a-z-]+|[a-zA-Z]\b)' | grep -oE -- '-.*' | sort -u
}

# The man page's text on one command.
section()
{
	sed 's/\\-/-/g; s/\\f.//g' tools/statpage.1 | awk -v c="$1" '
		/^\.S[SH] / { inside = /^\.SS/ && $2 == c } inside'
}

begin "help, hints and the version name the program and the command"
for c in $commands; do
	is "$("$statpage" "$c" --help | head -n 1 | cut -d ' ' -f -3)" "usage: statpage $c" "$c --help"
done
for args in "run" "attach" "convert" "ls x" "self" "untrace"; do
	# shellcheck disable=SC2086
	is "$("$statpage" $args 2>&1 | tail -n 1)" "Try 'statpage ${args%% *} --help'." "$args"
done
is "$("$statpage" nonsense 2>&1 | tail -n 1)" "Try 'statpage --help'." "no command"
is "$("$statpage" --version)" "statpage $(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)" "--version"

begin "the man pages are without a warning"
for f in tools/statpage.1 docs/man/*.[1-9]; do
	is "$(groff -man -Tutf8 -ww -z "$f" 2>&1)" "" "$f"
done

begin "the man page has every command, in the order of the table, and no other"
is "$(sed -n '/^\.SH COMMANDS/,/^\.SH FIELDS/s/^\.SS \([a-z]*\).*/\1/p' tools/statpage.1)" "$commands" commands

begin "the man page has every option of a command, and no other"
for c in $commands; do
	is "$(section "$c" | options | grep -v -e '^--help$' -e '^-h$' | xargs)" \
		"$("$statpage" "$c" --help | options | grep -v -e '^--help$' -e '^-h$' | xargs)" "$c"
done

# What bash offers for the words given, the last one being completed.
bash_offers()
{
	bash -c '. packaging/completion/statpage.bash
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _statpage
		printf "%s\n" "${COMPREPLY[@]}"' complete "$@" | sort -u | paste -sd ' '
}

begin "bash completes commands, options and values"
is "$(bash_offers "$statpage" "")" "$(printf '%s\n' --help "$commands" | sort -u | paste -sd ' ')" commands
is "$(bash_offers "$statpage" un)" untrace "un"
for c in $commands; do
	is "$(bash_offers "$statpage" "$c" - | tr ' ' '\n' | grep -- -- | paste -sd ' ')" \
		"$({ "$statpage" "$c" --help | options | grep -- --; echo --help; } | sort -u | paste -sd ' ')" "$c"
done
is "$(bash_offers "$statpage" run --format "")" "json jsonl summary" "formats"
is "$(bash_offers "$statpage" convert --to s)" speedscope "--to s"
is "$(bash_offers "$statpage" trace --via k)" "kprobe kretprobe" "--via k"
check grep -qw ptrace <(bash_offers "$statpage" run --engine "") "no engines"
mkdir "$tmp/d" && touch "$tmp/d/records.jsonl"
is "$(bash_offers "$statpage" convert "$tmp/d/r")" "$tmp/d/records.jsonl" "a file"
check grep -qw jq <(bash_offers "$statpage" run -- j) "a command behind --"

# The same for zsh, with what would draw the menu replaced.
zsh_offers()
{
	zsh -f -c '
		_describe() { shift; eval "print -l -- \${${1}%%:*}"; }
		compadd() { [[ $1 = -- ]] && shift; print -l -- "$@"; }
		_files() { print files; }; _command_names() { print commands; }; _normal() { print "normal $words"; }
		words=("$@") CURRENT=$#
		compdef() { :; }
		. ./packaging/completion/_statpage' complete "$@" | sort -u | paste -sd ' '
}

begin "zsh completes commands, options and values"
if command -v zsh >/dev/null; then
	is "$(zsh_offers "$statpage" "")" "$(echo "$commands" | sort -u | paste -sd ' ')" commands
	for c in $commands; do
		is "$(zsh_offers "$statpage" "$c" - | tr ' ' '\n' | grep -- -- | paste -sd ' ')" \
			"$("$statpage" "$c" --help | options | grep -- -- | paste -sd ' ')" "$c"
	done
	is "$(zsh_offers "$statpage" convert --to "")" "csv folded perfetto speedscope" "formats"
	check grep -qw ptrace <(zsh_offers "$statpage" run --engine "") "no engines"
	is "$(zsh_offers "$statpage" convert "")" files "a file"
	is "$(zsh_offers "$statpage" run -- make x)" "normal make x" "a command behind --"
else
	skip "no zsh here"
fi

finish
