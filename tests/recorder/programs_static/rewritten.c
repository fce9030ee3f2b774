// Code that is changed by stores alone, where it is executed: by itself, ahead
// of where it is; by code elsewhere, with and without a branch between. The
// exit status is 0 if what runs is what was written.
#include "nolibc.h"

// long write_ahead(long value): returns what it writes into its own next
// instruction.
// long call_patched(long value): writes it into a function, a byte at a time,
// and calls that.
// long take_turns(long count): returns how often a branch was taken that is
// reversed each time.
// long erase(long count): lets the REP STOS overwrite the ADDs that follow with
// NOPs, and returns how many of 8 are left.
// long push_beside(long value): its stack and its data are beside its code,
// which stays.
__asm__(
    ".section .changing, \"awx\", @progbits\n"
    "write_ahead:\n"
    "  movl %edi, 1f + 1(%rip)\n"
    "1: movl $0, %eax\n"
    "  ret\n"
    "call_patched:\n"
    "  movl %edi, %eax\n"
    "  movb %al, patched + 1(%rip)\n"
    "  movb %ah, patched + 2(%rip)\n"
    "  jmp patched\n"
    ".balign 4\n"
    "  .byte 0x90, 0x90, 0x90\n"  // so that the number is not aligned
    "patched:\n"
    "  movl $0, %eax\n"
    "  ret\n"
    "take_turns:\n"
    "  xorl %eax, %eax\n"
    "1: cmpl %edi, %edi\n"
    "2: jz 3f\n"
    "  jmp 4f\n"
    "3: incl %eax\n"
    "4: xorb $1, 2b(%rip)\n"  // jz, jnz
    "  decl %edi\n"
    "  jnz 1b\n"
    "  ret\n"
    "erase:\n"
    "  movl %edi, %ecx\n"
    "  leaq 1f(%rip), %rdi\n"
    "  imulq $3, %rcx\n"
    "  movl $0x90, %eax\n"
    "  xorl %edx, %edx\n"
    "  cld\n"
    "  rep stosb\n"
    "1: .rept 8\n"
    "  addl $1, %edx\n"
    "  .endr\n"
    "  movl %edx, %eax\n"
    "  ret\n"
    "push_beside:\n"
    "  movq %rsp, %rcx\n"
    "  leaq 3f(%rip), %rsp\n"
    "  pushq %rdi\n"
    "  popq %rax\n"
    "  movq %rcx, %rsp\n"
    "  addl %eax, 4f(%rip)\n"
    "  movl 4f(%rip), %eax\n"
    "  ret\n"
    "  .fill 64\n"
    "3:\n"
    "4: .long 0\n"
    ".text\n");

long write_ahead(long value);
long call_patched(long value);
long take_turns(long count);
long erase(long count);
long push_beside(long value);

static int Run(void) {
  long sum = 0;
  for (long i = 0; i < 200; ++i) {
    const long value = i * 7919 & 0xffff;
    if (write_ahead(value) != value || call_patched(value) != value) {
      return 1;
    }
    sum += i;
    if (push_beside(i) != sum) {
      return 2;
    }
  }
  if (take_turns(31) != 16) {
    return 3;
  }
  for (long i = 0; i <= 8; i += 2) {
    if (erase(i) != 8 - i) {
      return 4;
    }
  }
  return 0;
}

__attribute__((force_align_arg_pointer)) void _start(void) { Exit(Run()); }
