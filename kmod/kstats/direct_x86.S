/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Direct trampolines. ftrace makes the traced function's first instruction, a call, call one of these:
 * on the stack are the address after that instruction and, above it, the function's own return
 * address. The slot takes the time, calls the rest of the function itself, and so gets control back
 * when that returns. The start time lies in the slot's stack frame: it belongs to this call, whatever
 * the function does. No code is made at run time; the call of the function's rest is a static call,
 * which the kernel patches.
 *
 * A slot's calls are counted per CPU at both ends, so that one knows whether somebody is inside. The
 * windows before the first and after the second count are covered by tasks RCU, see direct.c.
 *
 * Registers. A function's entry may clobber rax, r10 and r11; its arguments are in the others. Its
 * return may clobber all but the callee-saved ones and rax, rdx, which hold the result.
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/asm.h>
#include <asm/nospec-branch.h>
#include <asm/percpu.h>
#include <asm/unwind_hints.h>

#include "../compat.h"
#include "direct.h"

#define SLOT_CPU(idx, member) PER_CPU_VAR(kstats_slot_cpu + ((idx) << KSTATS_SLOT_SHIFT) + member)

	.text

/* rax = TSC, after what came before in the program. Clobbers r10. */
.macro READ_START
	movq	%rdx, %r10
	lfence
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	movq	%r10, %rdx
.endm

/*
 * Push the time when the latest call ended on this CPU, 0 if there is none or an earlier start took it.
 * The CPU that it was taken on is left in r11.
 */
.macro TAKE_END idx
	movl	PER_CPU_VAR(kstats_this_cpu), %r11d
	movq	SLOT_CPU(\idx, KSTATS_SLOT_END), %rax
	xorl	%r10d, %r10d
	cmpxchgq %r10, SLOT_CPU(\idx, KSTATS_SLOT_END)
	cmovneq	%r10, %rax	/* an interrupt's call was faster */
	pushq	%rax
.endm

/* The call of the traced function's rest. objtool makes it a patched call when the key is mentioned. */
.macro CALL_REST name
	CALL_DEPTH_ACCOUNT
	call	__SCT__kstats_sc_\name
	.pushsection .discard.addressable, "aw"
	.balign	8
	.quad	__SCK__kstats_sc_\name
	.popsection
.endm

/* Back to the traced function's caller: over the address that is left from the first call. */
.macro RETURN idx drop
	incq	SLOT_CPU(\idx, KSTATS_SLOT_EXIT)
	addq	$\drop, %rsp
	UNWIND_HINT_FUNC
	RET
.endm

/*
 * A wide slot copies KSTATS_WORDS words of the caller's frame below its own, where the function looks for
 * its stack arguments; distance is from rsp to the first of them. As a push moves rsp by a word, the
 * distance to the next word stays the same. Most of the words are no arguments, and they may even end
 * beyond the stack's last page: a word that cannot be read becomes 0.
 */
#define WORDS 0, 1, 2, 3, 4, 5, 6, 7 /* KSTATS_WORDS of them */
.macro COPY_WORDS wide name distance
.if \wide
.irp k, WORDS
.Lcopy_\name\()_\k:
	pushq	(\distance + 8 * (KSTATS_WORDS - 1))(%rsp)
.Lcopied_\name\()_\k:
	_ASM_EXTABLE(.Lcopy_\name\()_\k, .Lzero_\name\()_\k)
.endr
.endif
.endm

.macro DROP_WORDS wide
.if \wide
	addq	$(8 * KSTATS_WORDS), %rsp
.endif
.endm

.macro ZERO_WORDS wide name
.if \wide
.irp k, WORDS
.Lzero_\name\()_\k:
	pushq	$0
	jmp	.Lcopied_\name\()_\k
.endr
.endif
.endm

/* A call. Frame, from rsp: start, address in the function, its return address, its arguments. */
.macro SLOT_PLAIN name idx wide
SYM_FUNC_START(kstats_slot_plain_\name)
	ANNOTATE_NOENDBR
	incq	SLOT_CPU(\idx, KSTATS_SLOT_ENTRY)
	READ_START
	pushq	%rax
	COPY_WORDS \wide, plain_\name, 24
	CALL_REST \name
	DROP_WORDS \wide
	movq	(%rsp), %rsi
	movq	%rax, (%rsp)
	pushq	%rdx
	movq	kstats_slot_arg + 8 * (\idx)(%rip), %rdi
	call	kstats_direct_return
	popq	%rdx
	popq	%rax
	RETURN \idx, 8
	ZERO_WORDS \wide, plain_\name
SYM_FUNC_END(kstats_slot_plain_\name)
.endm

/* The same with the gap before it. Frame, from rsp: start, end before it, and as above. */
.macro SLOT_GAP name idx wide
SYM_FUNC_START(kstats_slot_gap_\name)
	ANNOTATE_NOENDBR
	incq	SLOT_CPU(\idx, KSTATS_SLOT_ENTRY)
	TAKE_END \idx
	READ_START
	pushq	%rax
	cmpl	PER_CPU_VAR(kstats_this_cpu), %r11d
	jne	.Lmoved_\name
.Lstay_\name:
	COPY_WORDS \wide, gap_\name, 32
	CALL_REST \name
	DROP_WORDS \wide
	movq	(%rsp), %rsi
	movq	%rax, (%rsp)
	movq	8(%rsp), %r8
	movq	%rdx, 8(%rsp)
	movq	kstats_slot_arg + 8 * (\idx)(%rip), %rdi
	call	kstats_direct_return_gap
	popq	%rax
	popq	%rdx
	RETURN \idx, 8
.Lmoved_\name:	/* the end is another CPU's by now */
	movq	$0, 8(%rsp)
	jmp	.Lstay_\name
	ZERO_WORDS \wide, gap_\name
SYM_FUNC_END(kstats_slot_gap_\name)
.endm

/* An entry: tell, and go on in the function, to which the address on the stack leads. */
.macro SLOT_HIT name idx
SYM_FUNC_START(kstats_slot_hit_\name)
	ANNOTATE_NOENDBR
	incq	SLOT_CPU(\idx, KSTATS_SLOT_ENTRY)
	pushq	%rdi
	pushq	%rsi
	pushq	%rdx
	pushq	%rcx
	pushq	%r8
	pushq	%r9
	movq	kstats_slot_arg + 8 * (\idx)(%rip), %rdi
	call	kstats_direct_hit
	popq	%r9
	popq	%r8
	popq	%rcx
	popq	%rdx
	popq	%rsi
	popq	%rdi
	incq	SLOT_CPU(\idx, KSTATS_SLOT_EXIT)
	RET
SYM_FUNC_END(kstats_slot_hit_\name)
.endm

.irp a, 0, 1, 2, 3, 4, 5, 6, 7
.irp b, 0, 1, 2, 3, 4, 5, 6, 7
	SLOT_PLAIN \a\b, (\a*8+\b), 0
	SLOT_GAP \a\b, (\a*8+\b), 0
	SLOT_HIT \a\b, (\a*8+\b)
.endr
.endr

.irp a, 0, 1
.irp b, 0, 1, 2, 3, 4, 5, 6, 7
	SLOT_PLAIN w\a\b, (KSTATS_LEAN+\a*8+\b), 1
	SLOT_GAP w\a\b, (KSTATS_LEAN+\a*8+\b), 1
.endr
.endr
