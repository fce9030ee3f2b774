// All registers are as before behind signals that come at any time.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "signals.h"

// Form 1. The words that are loaded, and found again behind all the work: 15
// general registers (of all but RSP), and so on.
enum {
  kFlags = 15,
  kStackPointer,
  kRedZone,
  kVectors = kRedZone + 16,
  kMxcsr = kVectors + 64,
  kControl,
  kStatus,
  kFloats,
  kStrings = kFloats + 8,
  kConditions = kStrings + 3,
  kBad,
  kWords,
  kFlagBits = 0xcd5,
  kDirection = 0x400,
  kStringSize = 200
};

HIDDEN uint64_t wanted[kWords];
HIDDEN uint64_t seen[kWords];
HIDDEN unsigned char scratch[4096];
HIDDEN uint64_t entry_flags;
HIDDEN uint32_t entry_mxcsr;
HIDDEN uint16_t entry_control;
HIDDEN uint32_t default_mxcsr = 0x1f80;
HIDDEN uint32_t other_mxcsr = 0xffbf;
HIDDEN uint16_t other_control = 0x47f;
HIDDEN unsigned char has_avx;
HIDDEN uint32_t turns;
HIDDEN uint64_t next;

void RunRegisters(void);
void OnRegisters(int signal, siginfo_t* info, void* context);

#define SIXTEEN(text)                                                   \
  ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n" text \
  "\n.endr\n"
#define GENERAL(text)                                                     \
  ".set at, 0\n"                                                          \
  ".irp name, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, " \
  "r13, r14, r15\n" text "\n.set at, at + 8\n.endr\n"

// The same numbers as above, in bytes.
asm(".set kFlags, 8 * 15\n"
    ".set kStackPointer, kFlags + 8\n"
    ".set kRedZone, kStackPointer + 8\n"
    ".set kVectors, kRedZone + 8 * 16\n"
    ".set kMxcsr, kVectors + 8 * 64\n"
    ".set kControl, kMxcsr + 8\n"
    ".set kStatus, kControl + 8\n"
    ".set kFloats, kStatus + 8\n"
    ".set kStrings, kFloats + 8 * 8\n"
    ".set kConditions, kStrings + 8 * 3\n"
    ".set kBad, kConditions + 8\n"
    ".macro reload name, index\n"
    "movq wanted + 8 * \\index(%rip), %\\name\n"
    ".endm\n");

asm(".text\n"
    "RunRegisters:\n"
    ".irp name, rbx, rbp, r12, r13, r14, r15\n"
    "pushq %\\name\n"
    ".endr\n"
    "movq %rsp, wanted + kStackPointer(%rip)\n"
    SIXTEEN("movq wanted + kRedZone + 8 * \\i(%rip), %rax\n"
            "movq %rax, 8 * \\i - 128(%rsp)")
    "fninit; fldcw wanted + kControl(%rip)\n"
    ".irp i, 3, 2, 1, 0\n"
    "fldt wanted + kFloats + 16 * \\i(%rip)\n"
    ".endr\n"
    "ldmxcsr wanted + kMxcsr(%rip)\n"
    "cmpb $0, has_avx(%rip); je 1f\n"
    SIXTEEN("vmovdqu wanted + kVectors + 32 * \\i(%rip), %ymm\\i")
    "jmp 2f\n"
    "1:\n"
    SIXTEEN("movdqu wanted + kVectors + 32 * \\i(%rip), %xmm\\i")
    "2: leaq -128(%rsp), %rsp\n"
    "pushq wanted + kFlags(%rip); popfq\n"
    "leaq 128(%rsp), %rsp\n"
    GENERAL("movq wanted + at(%rip), %\\name")
    "again:\n"
    // Neither the flags nor the stack change.
    ".rept 6\n"
    "jc 1f; nop; 1: jo 1f; nop; 1: jz 1f; nop; 1: js 1f; nop; 1: jp 1f\n"
    "xchgq %rax, %rbx; 1: xchgq %rax, %rbx; notq %rdx; bswapq %rsi\n"
    "xchgq %rdi, scratch(%rip); leaq 17(%r8), %r8; jp 1f; nop\n"
    "1: notq %rdx; bswapq %rsi; xchgq %rdi, scratch(%rip)\n"
    "leaq -17(%r8), %r8; movq %r10, scratch + 8(%rip); cmovcq %rbp, %rbp\n"
    "pxor %xmm1, %xmm2; pxor %xmm15, %xmm9; fxch %st(2)\n"
    "pxor %xmm1, %xmm2; pxor %xmm15, %xmm9; fxch %st(2)\n"
    "movq scratch + 8(%rip), %r10; movq %r14, -8(%rsp)\n"
    "movq wanted + kRedZone + 120(%rip), %r14; xchgq %r14, -8(%rsp)\n"
    ".endr\n"
    "movl turns(%rip), %ecx; leaq -8(%rcx), %rcx; jrcxz 1f; jmp 2f\n"
    "1: movl $24, %eax; syscall; xchgq %rax, %rcx; jrcxz 1f; jmp bad\n"
    "1: reload rax, 0; reload r11, 10; 2: reload rcx, 2\n"
    "setc seen + kConditions(%rip); setp seen + kConditions + 1(%rip)\n"
    "setz seen + kConditions + 2(%rip); sets seen + kConditions + 3(%rip)\n"
    "seto seen + kConditions + 4(%rip)\n"
    "movl $5, %ecx; 1: movq %rcx, %r12; movl $4, %ecx\n"
    "2: leaq 1(%r11), %r11; loop 2b; movq %r12, %rcx; loop 1b\n"
    "jrcxz 1f; jmp bad; 1: leaq -20(%r11), %r11\n"
    "3: leaq -5(%r12), %rcx; leaq 1(%r12), %r12; jrcxz 4f; jmp 3b\n"
    "4: leaq 5f(%rip), %r13; jmp *%r13; ud2\n"
    "5: leaq scratch + 1024(%rip), %rdi; leaq scratch + 2048(%rip), %rsi\n"
    "movl $200, %ecx; rep movsb\n"
    "movq %rdi, seen + kStrings(%rip); movq %rsi, seen + kStrings + 8(%rip)\n"
    "movq %rcx, seen + kStrings + 16(%rip)\n"
    "leaq scratch + 3072(%rip), %rdi; movl $200, %ecx; rep stosb\n"
    "reload rcx, 2; reload rsi, 4; reload rdi, 5; reload r12, 11\n"
    "reload r13, 12\n"
    // All may change, but for the 128 bytes that are left below the stack.
    "leaq -128(%rsp), %rsp; pushfq\n"
    ".irp name, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r15\n"
    "pushq %\\name; notq %\\name\n"
    ".endr\n"
    ".irp name, r15, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax\n"
    "popq %\\name\n"
    ".endr\n"
    "movl $3, %ecx; 1: call tiny; call outer; leaq tiny(%rip), %r9\n"
    "call *%r9; movq %r9, scratch(%rip); call *scratch(%rip)\n"
    "subl $1, %ecx; jnz 1b; subq $15, %r8\n"
    "movl $9, %ecx; 1: movl $7, %edx; 2: subl $1, %edx; jnz 2b\n"
    "cmpq %rdx, %rcx; je bad; decl %ecx; jne 1b; movq %rbx, scratch(%rip)\n"
    "movq %rbx, %rax; lock cmpxchgq %rdi, scratch(%rip); jne bad\n"
    "lock cmpxchgq %rsi, scratch(%rip); je bad; cmpq %rdi, %rax; jne bad\n"
    "xorl %edx, %edx; movl $100, %eax; movl $7, %ecx; divl %ecx\n"
    "cmpl $14, %eax; jne bad; cmpl $2, %edx; jne bad\n"
    "leaq again(%rip), %rdx; leaq registers_end(%rip), %rcx\n"
    "decl turns(%rip); cmovzq %rcx, %rdx; movq %rdx, next(%rip)\n"
    "reload rax, 0; reload rcx, 2; reload rdx, 3; reload r9, 8\n"
    "popfq; leaq 128(%rsp), %rsp; jmp *next(%rip)\n");

asm("registers_end:\n"
    GENERAL("movq %\\name, seen + at(%rip)")
    "movq %rsp, seen + kStackPointer(%rip)\n"
    SIXTEEN("movq 8 * \\i - 128(%rsp), %rax\n"
            "movq %rax, seen + kRedZone + 8 * \\i(%rip)")
    "pushfq; popq seen + kFlags(%rip); cld\n"
    "cmpb $0, has_avx(%rip); je 1f\n"
    SIXTEEN("vmovdqu %ymm\\i, seen + kVectors + 32 * \\i(%rip)")
    "vzeroupper; jmp 2f\n"
    "1:\n"
    SIXTEEN("movdqu %xmm\\i, seen + kVectors + 32 * \\i(%rip)")
    "2: stmxcsr seen + kMxcsr(%rip); fnstcw seen + kControl(%rip)\n"
    "fnstsw seen + kStatus(%rip)\n"
    ".irp i, 0, 1, 2, 3\n"
    "fstpt seen + kFloats + 16 * \\i(%rip)\n"
    ".endr\n"
    "fninit; ldmxcsr default_mxcsr(%rip)\n"
    "movq wanted + kStackPointer(%rip), %rsp\n"
    ".irp name, r15, r14, r13, r12, rbp, rbx\n"
    "popq %\\name\n"
    ".endr\n"
    "ret\n"
    "bad: movq $1, seen + kBad(%rip); jmp registers_end\n"
    "outer: call tiny; jmp tiny\n"
    "tiny: leaq 1(%r8), %r8; ret\n");

// Leaves nothing as it was, not even what a function has to keep: all is as
// the kernel has saved it.
asm("OnRegisters:\n"
    "pushfq; popq entry_flags(%rip)\n"
    "stmxcsr entry_mxcsr(%rip); fnstcw entry_control(%rip)\n"
    "subq $8, %rsp; call CheckEntry; addq $8, %rsp\n"
    "leaq -6000(%rsp), %rdi; movl $750, %ecx; movq $-1, %rax; rep stosq\n"
    SIXTEEN("pcmpeqd %xmm\\i, %xmm\\i")
    "cmpb $0, has_avx(%rip); je 1f\n"
    SIXTEEN("vmovdqu wanted + \\i(%rip), %ymm\\i")
    "1: ldmxcsr other_mxcsr(%rip); fldcw other_control(%rip)\n"
    "fld1; fldz; fldpi; fldl2e; fldlg2; fld1; fldz\n"
    GENERAL("movq $0x5a5a5a5a, %\\name")
    "lock incq handled + 8 * 10(%rip)\n"
    "pushq $0xcd7; popfq; ret\n");

_Static_assert(SIGUSR1 == 10 && SYS_sched_yield == 24, "as the code has it");

HIDDEN void CheckEntry(int signal) {
  Want("the handler's signal", signal, SIGUSR1);
  Want("the handler's DF, TF and RF", entry_flags & 0x10500, 0);
  Want("the handler's MXCSR", entry_mxcsr, 0x1f80);
  Want("the handler's x87 control word", entry_control, 0x37f);
}

static uint64_t Random(void) {
  static uint64_t state = 88172645463325252ul;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static void FillWanted(void) {
  for (int i = 0; i < kWords; ++i) {
    wanted[i] = Random();
    seen[i] = 0;
  }
  for (int i = 0; i < 64 && !has_avx; ++i) {
    wanted[kVectors + i] *= i % 4 < 2;
  }
  const uint64_t flags = Random() & kFlagBits;
  wanted[kFlags] = flags | 0x202;
  wanted[kMxcsr] = 0x1f80 | (1 + Random() % 3) << 13 | (Random() & 0x803f);
  wanted[kControl] = 0x7f | (1 + Random() % 3) << 10 | (Random() & 1) << 9;
  wanted[kStatus] = 4 << 11;
  for (int i = kFloats; i < kStrings; i += 2) {
    wanted[i] |= 1ul << 63;
    wanted[i + 1] = (Random() & 0x803f) | 0x3fc0;
  }
  const int64_t by = (flags & kDirection) != 0 ? -kStringSize : kStringSize;
  wanted[kStrings] = (uintptr_t)scratch + 1024 + by;
  wanted[kStrings + 1] = (uintptr_t)scratch + 2048 + by;
  wanted[kStrings + 2] = 0;
  wanted[kConditions] = (flags & 1) | (flags >> 2 & 1) << 8 |
                        (flags >> 6 & 1) << 16 | (flags >> 7 & 1) << 24 |
                        (flags >> 11 & 1) << 32;
  wanted[kBad] = 0;
}

static void FillStrings(uint64_t round) {
  memset(scratch + 512, (int)(round % 251), 1024);
  memset(scratch + 1536, (int)(round % 251 + 1), 1024);
  memset(scratch + 2560, (int)(wanted[0] + 1) & 0xff, 1024);
}

static void CheckStrings(uint64_t round) {
  const int down = (wanted[kFlags] & kDirection) != 0;
  const int first = down ? 1 - kStringSize : 0;
  for (int i = -512; i < 512; ++i) {
    const int in = i >= first && i < first + kStringSize;
    Want("a byte of movsb", scratch[1024 + i], round % 251 + in);
    Want("a byte of stosb", scratch[3072 + i], (wanted[0] + !in) & 0xff);
  }
}

static void CheckSeen(void) {
  seen[kFlags] = (seen[kFlags] & kFlagBits) | 0x202;
  if (memcmp(wanted, seen, sizeof seen) == 0) {
    return;
  }
  for (int i = 0; i < kWords; ++i) {
    if (seen[i] != wanted[i]) {
      dprintf(1, "word %d: found %#lx, wanted %#lx\n", i, seen[i], wanted[i]);
    }
  }
  dprintf(1,
          "RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8: from word 0, flags: %d, RSP: "
          "%d, red zone: %d, vectors: %d, MXCSR: %d, "
          "x87: %d, strings: %d, conditions: %d, branches: %d\n",
          kFlags, kStackPointer, kRedZone, kVectors, kMxcsr, kControl, kStrings,
          kConditions, kBad);
  _exit(1);
}

void Registers(long count) {
  has_avx = __builtin_cpu_supports("avx") != 0;
  Install(SIGUSR1, OnRegisters, 0, 0);
  struct Sender* sender = StartSender(SIGUSR1, 0, count);
  for (uint64_t round = 0; handled[SIGUSR1] < count; ++round) {
    FillWanted();
    FillStrings(round);
    turns = round % 64 == 0 ? 16 : 7;
    RunRegisters();
    CheckSeen();
    CheckStrings(round);
  }
  EndSender(sender);
  Want("signals", handled[SIGUSR1], count);
  printf("registers: %ld signals, all as before\n", count);
}
