/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the commands of statpage share. A command is a function like main(), in cmd_<name>.c, with a
 * row in the table of main.c. It returns 0, CMD_FAILED or CMD_USAGE, prints results to stdout and
 * all else to stderr through cmd_err(). main() flushes stdout afterwards and turns a failed write
 * into CMD_FAILED.
 */
#ifndef TOOLS_CMD_H
#define TOOLS_CMD_H

#define CMD_FAILED 1
#define CMD_USAGE  2

#define STATPAGE_VERSION "0.1" /* dkms.conf has it too, and a test compares them */

/* The command that runs, for hints; NULL: none. Set by main(). */
extern const char *cmd_name;

int cmd_attach(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_cpu(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_reset(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_self(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_start(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_untrace(int argc, char **argv);

/* One line to stderr, with the program's name before it. Returns CMD_FAILED. */
__attribute__((format(printf, 1, 2))) int cmd_err(const char *fmt, ...);

/* A command's help to stdout: its usage from the command's name on, and what follows. */
void cmd_help(const char *text);

/* Like cmd_err(), and a hint at --help. Returns CMD_USAGE. */
__attribute__((format(printf, 1, 2))) int cmd_usage(const char *fmt, ...);

/* Why a snapshot of this file of coarse_stat_fs failed, from errno, and what helps. Returns
 * CMD_FAILED. */
int cmd_csf_err(const char *file);

/* Text as a number from min to max, or a message that names what and the range. Returns 0 or
 * CMD_USAGE. */
int cmd_number(const char *what, const char *text, double min, double max, double *out);

/* Flush stdout. Returns 0, or CMD_FAILED with a message when a write to it failed, now or before.
 */
int cmd_flush(void);

#endif /* TOOLS_CMD_H */
