/* SPDX-License-Identifier: MIT */
/* Calls made inside a traced program: what only the program itself may ask the kernel. x86-64. */
#ifndef STATPAGE_PTRACE_INJECT_H
#define STATPAGE_PTRACE_INJECT_H

#include <sys/types.h>

/*
 * tid is at the exit stop of a call. Make ioctl(fd, request) there, take the descriptor it returns, and
 * close it there at once. All of it with every signal blocked; registers and mask are as before
 * afterwards. Our copy of the descriptor, or -1 and *why. *status is set to a wait status that the
 * caller has to handle as if it had come from waitpid() if the thread died of it, else to 0.
 */
int ptrace_take_fd(pid_t tid, int fd, unsigned long request, int *status, const char **why);

#endif /* STATPAGE_PTRACE_INJECT_H */
