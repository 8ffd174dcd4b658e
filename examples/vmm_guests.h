/* SPDX-License-Identifier: MIT */
/* The real-mode guests of vmm.c; each is told apart by where it starts. */
#ifndef VMM_GUESTS_H
#define VMM_GUESTS_H

/* The guests. cx: how often; bx: offset of a counter in the page at es. */
__asm__(".pushsection .rodata\n"
	".code16\n"
	"guest_start:\n"
	"guest_io:	outb %al, $0x10\n"
	"		inb $0x11, %al\n"
	"		decw %cx\n"
	"		jnz guest_io\n"
	"		outb %al, $0xf4\n"
	"guest_mmio:	movb %al, %es:0\n"
	"		decw %cx\n"
	"		jnz guest_mmio\n"
	"		outb %al, $0xf4\n"
	"guest_spin:	incl 0x500\n"
	"		jmp guest_spin\n"
	/* Ask for the time: the page answers 255 of 256 without an exit, and says so when its gate
	   is on. */
	"guest_fast:	testb $0xff, %cl\n"
	"		jz 2f\n"
	"		cmpl $0, %es:8\n"
	"		je 1f\n"
	"		lock addl $1, %es:(%bx)\n"
	"		adcl $0, %es:4(%bx)\n"
	"1:		decw %cx\n"
	"		jnz guest_fast\n"
	"		outb %al, $0xf4\n"
	"2:		inb $0x12, %al\n"
	"		jmp 1b\n"
	/* The first writes set up the 8259; without one they are exits that nobody answers. */
	"guest_halt:	movb $0x11, %al\n"
	"		outb %al, $0x20\n"
	"		movb $0x20, %al\n"
	"		outb %al, $0x21\n"
	"		movb $0x04, %al\n"
	"		outb %al, $0x21\n"
	"		movb $0x01, %al\n"
	"		outb %al, $0x21\n"
	"		movb $0xfe, %al\n"
	"		outb %al, $0x21\n"
	"		sti\n"
	"		hlt\n"
	"		outb %al, $0xf4\n"
	"guest_irq:	movb $0x20, %al\n"
	"		outb %al, $0x20\n"
	"		iretw\n"
	"guest_end:\n"
	".code64\n"
	".popsection\n");
extern const char guest_start[], guest_io[], guest_mmio[], guest_spin[], guest_fast[], guest_halt[],
	guest_irq[], guest_end[];

#endif /* VMM_GUESTS_H */
