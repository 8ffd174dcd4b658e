# SPDX-License-Identifier: GPL-2.0
# The top of the build: `make help` lists what there is. Kernel code is built by kbuild from
# kmod/Kbuild, tests by tests/Makefile, everything else here.

CC       ?= cc
CFLAGS   ?= -O2 -g
OBJCOPY  ?= objcopy
# The errors are those that gcc 14 makes by itself.
WARN     := -Wall -Wextra -Wconversion -Wno-sign-conversion -Werror=incompatible-pointer-types \
	-Werror=implicit-function-declaration -Werror=int-conversion
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(WARN) -I. -Iinclude -Iinclude/uapi -MMD -MP $(CFLAGS)
KDIR     ?= /lib/modules/$(shell uname -r)/build
BUILD    := build
SUITE    ?= trixie

MODULES  := kmod/coarse_stat_fs.ko kmod/kstats.ko
PROGRAMS := tools/statpage tools/csfcat build/eventloop build/libstatpage-vdso.so \
	    $(if $(filter x86_64-%,$(shell $(CC) -dumpmachine)),build/vmm)

.PHONY: FORCE all user kmod unit native bench-run bench-convert bench-fleet bench check debian demo \
	lint format compdb install install-kmod uninstall help clean
.DEFAULT_GOAL := all

# Reading JSON is json-c's work; without it, statpage convert and report say so.
HAVE_JSON_C := $(shell $(CC) -E -include json-c/json.h -x c /dev/null >/dev/null 2>&1 && echo yes)
ifeq ($(HAVE_JSON_C),yes)
CONVERT_SRCS := \
	lib/conv_life.c \
	lib/conv_read.c \
	lib/conv_text.c \
	lib/fmt_csv.c \
	lib/fmt_folded.c \
	lib/fmt_perfetto.c \
	lib/fmt_report.c \
	lib/fmt_report_compare.c \
	lib/fmt_report_dist.c \
	lib/fmt_report_run.c \
	lib/fmt_report_time.c \
	lib/fmt_speedscope.c \
	lib/report_compare.c \
	lib/report_dist.c \
	lib/report_html.c \
	lib/report_life.c \
	lib/report_read.c \
	lib/report_recorded.c \
	lib/replay.c \
	lib/replay_parts.c \
	lib/replay_times.c \
	tools/cmd_convert.c \
	tools/cmd_report.c \
	tools/replay.c
JSON_C_LIBS := -ljson-c
else
CONVERT_SRCS := tools/no_convert.c
endif

# Serving metrics is libmicrohttpd's work; without it, statpage export --listen says so.
HAVE_HTTPD := $(shell $(CC) -E -include microhttpd.h -x c /dev/null >/dev/null 2>&1 && echo yes)
ifeq ($(HAVE_HTTPD),yes)
HTTPD_SRCS := tools/export_http.c
HTTPD_LIBS := -lmicrohttpd
else
HTTPD_SRCS := tools/no_http.c
endif

# The bpf engine is libbpf's, clang's and bpftool's work, and needs the BTF of some kernel; without
# them statpage says so. Nothing of it is built for other architectures than this machine's.
BPFTOOL  ?= $(shell PATH=$$PATH:/usr/sbin:/sbin command -v bpftool)
CLANG    ?= clang
BTF      ?= $(firstword $(wildcard /sys/kernel/btf/vmlinux))
BPF_NEEDS = $(if $(BPFTOOL),,bpftool) $(if $(shell command -v $(CLANG)),,clang) \
	$(if $(BTF),,/sys/kernel/btf/vmlinux) \
	$(shell echo 'int main(void) { return 0; }' | \
		$(CC) -include bpf/libbpf.h -x c - -lbpf -lz -o /dev/null 2>/dev/null || echo libbpf)
BPF_MISSING := $(strip $(BPF_NEEDS))
ifeq ($(BPF_MISSING),)
BPF_SRCS := \
	lib/bpf_may.c \
	lib/bpf_node.c \
	lib/bpf_pins.c \
	lib/bpf_spec.c \
	lib/bpf_tree.c \
	lib/engine_bpf.c \
	lib/engine_dist_bpf.c \
	lib/serve_bpf.c
BPF_TOOLS := tools/cmd_serve.c
BPF_LIBS := -lbpf -lz
else
BPF_SRCS := lib/no_bpf.c
BPF_TOOLS := tools/no_serve.c
endif

# The live view of statpage top is ncurses' work; without it, top says so.
HAVE_NCURSES := $(shell echo 'int main(void) { return !initscr(); }' | \
	$(CC) -D_GNU_SOURCE -include curses.h -x c - $(LDFLAGS) -lncursesw -ltinfo -o /dev/null \
		>/dev/null 2>&1 && echo yes)
ifeq ($(HAVE_NCURSES),yes)
TOP_SRCS := \
	tools/top_draw.c \
	tools/top_live.c
NCURSES_LIBS := -lncursesw -ltinfo
else
TOP_SRCS := tools/no_top.c
endif

# statpage: the table of commands and one file for each.
TOOL_SRCS := \
	tools/main.c \
	tools/cmd.c \
	tools/cmd_cpu.c \
	tools/cmd_doctor.c \
	tools/cmd_export.c \
	tools/cmd_ls.c \
	tools/cmd_record.c \
	tools/cmd_run.c \
	tools/cmd_self.c \
	tools/cmd_show.c \
	tools/cmd_top.c \
	tools/cmd_trace.c \
	tools/cmd_untrace.c \
	tools/cpu_table.c \
	tools/dist_symbol.c \
	tools/dist_view.c \
	tools/export_collect.c \
	tools/export_file.c \
	tools/export_threads.c \
	tools/pace.c \
	tools/run_output.c \
	$(BPF_TOOLS) \
	$(CONVERT_SRCS) \
	$(HTTPD_SRCS) \
	$(TOP_SRCS) \

# What commands and unit tests link against; a new file of lib/ is a line here.
LIB_SRCS := \
	lib/buf.c \
	lib/calls.c \
	lib/cgroup.c \
	lib/child.c \
	lib/csf_remote.c \
	lib/csf_view.c \
	lib/counters_view.c \
	lib/cpus.c \
	lib/dist.c \
	lib/duration.c \
	lib/engine_kmod.c \
	lib/engine_ptrace.c \
	lib/fmt_dist.c \
	lib/fmt_json.c \
	lib/fmt_openmetrics.c \
	lib/fmt_plot.c \
	lib/fmt_summary.c \
	lib/fmt_top.c \
	lib/fmt_top_out.c \
	lib/hist.c \
	lib/kvm_names.c \
	lib/kvm_stats.c \
	lib/kvm_watch.c \
	lib/probe.c \
	lib/procfs.c \
	lib/procs.c \
	lib/ptrace_calls.c \
	lib/ptrace_inject.c \
	lib/ptrace_start.c \
	lib/record.c \
	lib/room.c \
	lib/syscalls.c \
	lib/threads.c \
	lib/threads_pages.c \
	lib/threads_proc.c \
	lib/top.c \
	lib/watch_signals.c \
	$(BPF_SRCS) \

# What embeds the statistics links against, with lib/rts/rts.h: a program build/librts.a, a shared
# library build/librts_pic.a.
RTS_SRCS := \
	lib/rts/counters.c \
	lib/rts/dump.c \
	lib/rts/env.c \
	lib/rts/life.c \
	lib/rts/merge.c \
	lib/rts/os_linux.c \
	lib/rts/os_posix.c \
	lib/rts/output.c \
	lib/rts/recorder.c \
	lib/rts/signal.c \
	lib/rts/steps.c \
	lib/rts/table.c \
	lib/rts/thread_time.c \
	lib/rts/vcpu.c \
	lib/buf.c \
	lib/duration.c \
	lib/fmt_json.c \
	lib/fmt_summary.c \
	lib/hist.c \
	lib/kvm_names.c \
	lib/record.c \
	lib/room.c \
	lib/syscalls.c \

TOOL_LIBS := $(JSON_C_LIBS) $(HTTPD_LIBS) $(BPF_LIBS) $(NCURSES_LIBS)
TOOL_OBJS := $(TOOL_SRCS:%.c=$(BUILD)/%.o)
LIB_OBJS  := $(LIB_SRCS:%.c=$(BUILD)/%.o)
RTS_OBJS  := $(RTS_SRCS:%.c=$(BUILD)/%.o)
RTS_PIC   := $(RTS_SRCS:%.c=$(BUILD)/pic/%.o)

all: user kmod ## build the modules for KDIR's kernel, and the programs

user: $(PROGRAMS) ## build what runs in user space

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c -o $@ $<

# For a shared library: thread-local storage that takes no call, and nothing that it would export.
# That costs a recorded call 2 instructions, so programs do without.
$(BUILD)/pic/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -fPIC -ftls-model=initial-exec -fvisibility=hidden -c -o $@ $<

$(BUILD)/lib/syscalls.o $(BUILD)/pic/lib/syscalls.o: build/gen/syscalls_table.h

# What a page of statpage report has in it as it is: its style and its script.
build/gen/report_files.h: lib/report/report.css lib/report/report.js
	@mkdir -p $(@D)
	for f in $^; do \
		echo "static const char report_$${f##*.}[] = {"; \
		od -An -v -tx1 $$f | sed 's/[0-9a-f][0-9a-f]/0x&,/g'; echo "};"; \
	done >$@.tmp && mv $@.tmp $@

$(BUILD)/lib/fmt_report.o: build/gen/report_files.h

build/gen/vmlinux.h: $(BTF)
	@mkdir -p $(@D)
	$(BPFTOOL) btf dump file $(BTF) format c >$@.tmp && mv $@.tmp $@

# clang's name of x86-64 is x86 in libbpf's headers; the rest agree.
$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c bpf/compat.bpf.h build/gen/vmlinux.h \
		include/uapi/kstats_bucket.h include/uapi/run_bpf.h include/uapi/threads_bpf.h \
		include/uapi/coarse_stat_fs.h include/uapi/dist_bpf.h
	@mkdir -p $(@D)
	$(CLANG) -O2 -g -target bpf -mcpu=v3 -Wall -D__TARGET_ARCH_$(patsubst x86_64,x86,$(shell uname -m)) \
		-I. -Ibuild/gen -c -o $@ $<

.SECONDARY: $(BUILD)/bpf/dist.bpf.o $(BUILD)/bpf/run.bpf.o $(BUILD)/bpf/threads.bpf.o

build/gen/%.skel.h: $(BUILD)/bpf/%.bpf.o
	@mkdir -p $(@D)
	$(BPFTOOL) gen skeleton $< name $*_bpf >$@.tmp && mv $@.tmp $@

$(BUILD)/lib/engine_bpf.o: build/gen/run.skel.h
$(BUILD)/lib/engine_dist_bpf.o: build/gen/dist.skel.h
$(BUILD)/lib/serve_bpf.o: build/gen/threads.skel.h
$(BUILD)/lib/engine_bpf.o $(BUILD)/lib/engine_dist_bpf.o $(BUILD)/lib/serve_bpf.o: \
	ALL_CFLAGS += -Ibuild/gen

$(BUILD)/lib.a: $(LIB_OBJS)
	rm -f $@
	$(AR) rcs $@ $^

# One object in which only rts_* is global: the program may have a sys_name() of its own.
$(BUILD)/librts.a: $(RTS_OBJS)
$(BUILD)/librts_pic.a: $(RTS_PIC)
$(BUILD)/librts.a $(BUILD)/librts_pic.a:
	rm -f $@
	$(CC) $(CFLAGS) -r -nostdlib -o $(@:.a=.o) $^
	$(OBJCOPY) --wildcard --keep-global-symbol='rts_*' $(@:.a=.o)
	$(AR) rcs $@ $(@:.a=.o)

$(BUILD)/vmm: $(BUILD)/examples/vmm.o $(BUILD)/librts.a
	$(CC) $(LDFLAGS) -o $@ $^ -pthread -lm $(LDLIBS)

# A library to preload. All but its four functions is hidden: a program may embed lib/rts itself.
$(BUILD)/libstatpage-vdso.so: lib/rts/vdso_count.c $(RTS_SRCS) build/gen/syscalls_table.h
	$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -fPIC -fvisibility=hidden -c -o $@.o $<
	$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -fPIC -fvisibility=hidden -shared \
		-Dclock_gettime=rts_uncounted_clock_gettime -o $@ $@.o $(RTS_SRCS) -pthread -lm -ldl

tools/statpage: $(TOOL_OBJS) $(BUILD)/lib.a
	$(if $(JSON_C_LIBS),,@echo "make: no json-c headers (Debian: libjson-c-dev):" \
		"statpage convert, report and --replay are left out" >&2)
	$(if $(HTTPD_LIBS),,@echo "make: no libmicrohttpd headers (Debian: libmicrohttpd-dev):" \
		"statpage export has no --listen" >&2)
	$(if $(NCURSES_LIBS),,@echo "make: no ncurses (Debian: libncurses-dev):" \
		"statpage top has no live view" >&2)
	$(if $(BPF_MISSING),@echo "make: no $(BPF_MISSING) (Debian: libbpf-dev clang bpftool):" \
		"statpage has no engine bpf; statpage serve is left out" >&2)
	$(CC) $(LDFLAGS) -o $@ $^ -pthread -lm $(TOOL_LIBS) $(LDLIBS)

tools/csfcat: tools/statpage
	ln -f $< $@

$(BUILD)/eventloop: $(BUILD)/examples/eventloop.o
	$(CC) $(LDFLAGS) -o $@ $^ -pthread $(LDLIBS)

-include $(TOOL_OBJS:.o=.d) $(LIB_OBJS:.o=.d) $(RTS_OBJS:.o=.d) $(RTS_PIC:.o=.d) \
	 $(BUILD)/examples/eventloop.d $(BUILD)/examples/vmm.d

kmod: ## build the kernel modules for the kernel whose headers are in KDIR
	@test -e $(KDIR)/Makefile || { \
		echo "make: no kernel headers in KDIR=$(KDIR):" \
		     "install linux-headers-$$(uname -r), or name another kernel's with KDIR=..." >&2; \
		exit 1; }
	$(MAKE) -C $(KDIR) M=$(CURDIR)/kmod modules

# What a guest's test runs beside itself.
$(BUILD)/tests/%: FORCE
	@$(MAKE) -s -C tests $(abspath $@)

build/gen/syscalls_table.h: scripts/gen_syscalls.sh lib/syscalls.tbl
	@mkdir -p $(@D)
	CC="$(CC)" scripts/gen_syscalls.sh lib/syscalls.tbl >$@.tmp && mv $@.tmp $@

unit: user ## build the unit tests, and run them on this machine
	@scripts/deps.sh build unit
	$(MAKE) -C tests units
	@bad=0; for t in $$($(MAKE) -s -C tests list-units); do \
		build/tests/unit/$$t || [ $$? = 77 ] || bad=1; \
	done; exit $$bad

native: user ## test statpage run, attach and convert on this machine
	@tests/native/run.sh $(T)

bench-run: user ## compare the cost of statpage run with that of strace -c -f
	@tests/native/run.sh /dev/null
	@tests/native/bench_strace.py

bench-convert: user ## compare the speed of statpage convert with that of json-c's parser alone
	@tests/native/run.sh /dev/null
	@tests/native/bench_convert.py

bench-fleet: user ## measure what exporters cost a Prometheus, in four minutes
	@tests/native/run.sh /dev/null
	@tests/native/bench_fleet.sh

# Of all kernels docs/cost.md is made; SUITE= measures one, and leaves it.
bench: user ## measure costs, in ns on this machine, in instructions in guests: docs/cost.md
	@scripts/bench.sh $(if $(filter file,$(origin SUITE)),,$(SUITE))

check: ## run all tests, guests included; ends with `N passed, N failed, N skipped`
	@scripts/check.sh

debian: ## run the guest tests on the kernel of one Debian suite: SUITE=trixie, sid, ...
	@tests/debian/run.sh $(SUITE) $(T)

demo: ## show the programs at work, in a guest that has the module
	@scripts/demo.sh

lint: ## check the sources: C by clang-format, clang-tidy and sparse, scripts by shellcheck
	@scripts/lint.sh $(T)

format: ## lay the C sources out as .clang-format says
	@scripts/lint.sh --format

compdb: kmod ## write compile_commands.json, and kmod/'s, for editors and clang-tidy
	@scripts/lint.sh --compdb >compile_commands.json
	scripts/kmod-compdb.py $(KDIR) kmod >kmod/compile_commands.json

# What is installed, as FROM:TO below PREFIX. The headers keep their places to each other, so that a
# program includes "lib/coarse_stat_fs.h" with -I.../include/statpage, or <coarse_stat_fs.h> without.
PREFIX   ?= /usr/local
INSTALL_PROGRAMS := tools/statpage:bin/statpage tools/csfcat:bin/csfcat build/librts.a:lib/librts.a \
	build/librts_pic.a:lib/librts_pic.a \
	build/libstatpage-vdso.so:lib/libstatpage-vdso.so
INSTALL_FILES := \
	include/uapi/coarse_stat_fs.h:include/statpage/include/uapi/coarse_stat_fs.h \
	lib/coarse_stat_fs.h:include/statpage/lib/coarse_stat_fs.h \
	lib/csf_map.h:include/statpage/lib/csf_map.h \
	lib/rts/rts.h:include/statpage/lib/rts/rts.h \
	packaging/coarse_stat_fs.h:include/coarse_stat_fs.h \
	packaging/coarse_stat_fs.conf:lib/modules-load.d/coarse_stat_fs.conf \
	packaging/sys-kernel-coarse_stat_fs.mount:lib/systemd/system/sys-kernel-coarse_stat_fs.mount \
	README.md:share/doc/statpage/README.md \
	LICENSE:share/doc/statpage/LICENSE \
	packaging/prometheus/statpage.rules.yml:share/statpage/prometheus/statpage.rules.yml \
	packaging/grafana/statpage.json:share/statpage/grafana/statpage.json \
	packaging/completion/statpage.bash:share/bash-completion/completions/statpage \
	packaging/completion/statpage.bash:share/bash-completion/completions/csfcat \
	packaging/completion/_statpage:share/zsh/site-functions/_statpage \
	tools/statpage.1:share/man/man1/statpage.1 tools/statpage.1:share/man/man1/csfcat.1 \
	docs/man/coarse_stat_fs.4:share/man/man4/coarse_stat_fs.4 \
	docs/man/kstats.9:share/man/man9/kstats.9 \
	$(foreach f,$(wildcard docs/*.md),$(f):share/doc/statpage/$(f))

install: user build/librts.a build/librts_pic.a ## install programs, headers and units below DESTDIR and PREFIX
	@for f in $(INSTALL_PROGRAMS); do \
		install -D $${f%%:*} $(DESTDIR)$(PREFIX)/$${f#*:} || exit 1; \
	done
	@for f in $(INSTALL_FILES); do \
		install -D -m 644 $${f%%:*} $(DESTDIR)$(PREFIX)/$${f#*:} || exit 1; \
	done
	@sed -i 's,@PREFIX@,$(PREFIX),' $(DESTDIR)$(PREFIX)/lib/systemd/system/*coarse_stat_fs.mount
	@echo "installed below $(DESTDIR)$(PREFIX)"

install-kmod: kmod ## install the modules for KDIR's kernel, below DESTDIR
	$(MAKE) -C $(KDIR) M=$(CURDIR)/kmod INSTALL_MOD_PATH=$(DESTDIR) modules_install

uninstall: ## remove what install installed
	@cd $(DESTDIR)$(PREFIX) && for f in $(INSTALL_PROGRAMS) $(INSTALL_FILES); do \
		rm -f $${f#*:}; d=$${f#*:}; rmdir -p --ignore-fail-on-non-empty $${d%/*} 2>/dev/null; \
	done; true

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

clean: ## remove all outputs (the cache of downloads stays)
	rm -rf $(BUILD) $(PROGRAMS)
	find kmod examples tests/kmod -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
		-o -name '.*.cmd' -o -name Module.symvers -o -name modules.order | xargs -r rm -f
