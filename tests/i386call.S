/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A 32-bit program without a library: 23 getpid, 2 close of a bad descriptor, exit with status 7. Read
 * with the 64-bit table, getpid (20) would be writev and close (6) lstat.
 */
	.globl _start
_start:
	movl	$23, %esi
1:	movl	$20, %eax
	int	$0x80
	decl	%esi
	jnz	1b
	movl	$2, %esi
2:	movl	$6, %eax
	movl	$9999, %ebx
	int	$0x80
	decl	%esi
	jnz	2b
	movl	$1, %eax
	movl	$7, %ebx
	int	$0x80
