// Handlers that repair what failed, or go on elsewhere.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "signals.h"

// Form 5. A fault is at an instruction of its own, with all registers known:
// RSI, RDI and RBX are in the second page of `area`, which cannot be used, and
// so is R12, a stack; RCX is 0, R8 unmapped, R9 in data, R10 not canonical, R11
// behind the end of a file.
enum { kSkip, kReturn, kStack, kRegisters = 15, kFaultFlags = 0xcd5 };
enum { kRip = 4096 + 256, kUnmapped = 0x1000 };

struct Fault {
  const char* name;
  const char* start;
  const char* at;   // The instruction,
  const char* end;  // and what is behind it.
  int signal;
  int trap;
  int code;
  const char* rip;
  const char* address;
  int pushed;  // RSP is less by that.
  int how;     // To go on.
  int popped;  // With kStack: RSP is more by that in the end.
};

HIDDEN _Alignas(4096) char area[3 * 4096];
HIDDEN _Alignas(4096) char file_pages[2 * 4096];
HIDDEN _Alignas(4096) char plain[4096];
HIDDEN uint64_t zero;
HIDDEN uint64_t fault_popped;
HIDDEN uint64_t fault_pointers[2];
HIDDEN uint64_t fault_general[kRegisters];
HIDDEN uint64_t fault_seen[kRegisters];
HIDDEN uint64_t fault_flags;
HIDDEN uint64_t fault_seen_flags;
HIDDEN uint64_t fault_stack;
HIDDEN uint64_t fault_seen_stack;
HIDDEN const char* fault_start;
static uint64_t good_stack[64];
static const struct Fault* fault;

void RunFault(void);

#define EACH_GENERAL(text)                                                \
  ".set at, 0\n"                                                          \
  ".irp name, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, " \
  "r13, r14, r15\n" text "\n.set at, at + 8\n.endr\n"

asm(".text\n"
    "RunFault: .irp name, rbx, rbp, r12, r13, r14, r15\n"
    "pushq %\\name; .endr\n"
    "movq %rsp, fault_stack(%rip); pushq fault_flags(%rip); popfq\n"
    EACH_GENERAL("movq fault_general + at(%rip), %\\name")
    "jmp *fault_start(%rip)\n"
    "fault_done:\n"
    EACH_GENERAL("movq %\\name, fault_seen + at(%rip)")
    "movq %rsp, fault_seen_stack(%rip); pushfq; popq fault_seen_flags(%rip)\n"
    "cld; movq fault_stack(%rip), %rsp\n"
    ".irp name, r15, r14, r13, r12, rbp, rbx\n"
    "popq %\\name; .endr; ret\n"
    "stack_called: ret\n");

#define ACCESS(X, name, insn, offset)                                      \
  X(name, "", insn, SIGSEGV, 14, SEGV_ACCERR, name##_at, area + offset, 0, \
    kSkip, 0)
#define STACK(X, name, insn, offset, popped)                            \
  X(name, "movq %r12, %rsp", insn, SIGSEGV, 14, SEGV_ACCERR, name##_at, \
    area + 4096 + 512 + offset, 0, kStack, popped)
#define FETCH(X, name, before, insn, code, to, pushed)     \
  X(name, before, insn, SIGSEGV, 14, code, to, to, pushed, \
    pushed != 0 ? kReturn : kSkip, 0)
#define AT(X, name, insn, signal, trap, code) \
  X(name, "", insn, signal, trap, code, name##_at, name##_at, 0, kSkip, 0)
#define REFUSED(X, name, insn) \
  X(name, "", insn, SIGSEGV, 13, SI_KERNEL, name##_at, NULL, 0, kSkip, 0)
#define BREAK(X, name, insn) \
  X(name, "", insn, SIGTRAP, 3, SI_KERNEL, name##_end, NULL, 0, kSkip, 0)

#define FAULTS(X)                                                              \
  ACCESS(X, load, "movq (%rsi), %rax", 4096 + 64)                              \
  ACCESS(X, store, "movl %eax, 8(%rdi)", 4096 + 136)                           \
  ACCESS(X, load_indexed, "movzbl -1(%rsi,%rcx,4), %eax", 4096 + 63)           \
  ACCESS(X, store_string, "stosq", 4096 + 128)                                 \
  ACCESS(X, push_memory, "pushq (%rsi)", 4096 + 64)                            \
  ACCESS(X, pop_memory, "popq (%rdi)", 4096 + 128)                             \
  ACCESS(X, call_memory, "call *(%rbx)", 4096 + 192)                           \
  ACCESS(X, jump_memory, "jmp *(%rbx)", 4096 + 192)                            \
  ACCESS(X, call_indexed, "call *16(%rbx,%rcx,8)", 4096 + 208)                 \
  ACCESS(X, jump_indexed, "jmp *16(%rbx,%rcx,8)", 4096 + 208)                  \
  ACCESS(X, rip_call, "call *area + 4352(%rip)", kRip)                         \
  ACCESS(X, rip_jump, "jmp *area + 4352(%rip)", kRip)                          \
  ACCESS(X, rip_load_rdi, "movq area + 4352(%rip), %rdi", kRip)                \
  ACCESS(X, rip_load_rax, "movq area + 4352(%rip), %rax", kRip)                \
  ACCESS(X, rip_store, "movq %rsi, area + 4352(%rip)", kRip)                   \
  ACCESS(X, rip_constant, "movq $-77, area + 4352(%rip)", kRip)                \
  ACCESS(X, rip_add, "addl $0x12345678, area + 4352(%rip)", kRip)              \
  ACCESS(X, rip_increment, "lock incq area + 4352(%rip)", kRip)                \
  ACCESS(X, rip_exchange, "xchgq %rdi, area + 4352(%rip)", kRip)               \
  ACCESS(X, rip_compare, "lock cmpxchgq %rbx, area + 4352(%rip)", kRip)        \
  ACCESS(X, rip_compare8, "lock cmpxchg8b area + 4352(%rip)", kRip)            \
  ACCESS(X, rip_compare16, "lock cmpxchg16b area + 4352(%rip)", kRip)          \
  ACCESS(X, rip_multiply, "mulq area + 4352(%rip)", kRip)                      \
  ACCESS(X, rip_push, "pushq area + 4352(%rip)", kRip)                         \
  ACCESS(X, rip_pop, "popq area + 4352(%rip)", kRip)                           \
  ACCESS(X, rip_vector, "movdqu area + 4352(%rip), %xmm7", kRip)               \
  ACCESS(X, rip_vector_store, "movups %xmm7, area + 4352(%rip)", kRip)         \
  ACCESS(X, rip_float, "fldt area + 4352(%rip)", kRip)                         \
  ACCESS(X, avx_vector, "vmovdqu area + 4352(%rip), %ymm7", kRip)              \
  STACK(X, stack_push, "pushq %rax", -8, -8)                                   \
  STACK(X, stack_flags, "pushfq", -8, -8)                                      \
  STACK(X, stack_pop, "popq fault_popped(%rip)", 0, 8)                         \
  STACK(X, stack_call, "call stack_called", -8, 0)                             \
  STACK(X, stack_call_register, "call *%r13", -8, 0)                           \
  STACK(X, stack_call_memory, "call *fault_pointers + 8(%rip)", -8, 0)         \
  STACK(X, stack_return, "ret", 0, 8)                                          \
  STACK(X, stack_return_more, "ret $16", 0, 24)                                \
  FETCH(X, jump_unmapped, "", "jmp *%r8", SEGV_MAPERR, (char*)kUnmapped, 0)    \
  FETCH(X, call_unmapped, "", "call *%r8", SEGV_MAPERR, (char*)kUnmapped, 8)   \
  FETCH(X, return_unmapped, "pushq %r8", "ret", SEGV_MAPERR, (char*)kUnmapped, \
        0)                                                                     \
  FETCH(X, jump_data, "", "jmp *%r9", SEGV_ACCERR, plain + 64, 0)              \
  FETCH(X, call_data, "", "call *%r9", SEGV_ACCERR, plain + 64, 8)             \
  FETCH(X, return_data, "pushq %r9", "ret", SEGV_ACCERR, plain + 64, 0)        \
  FETCH(X, jump_direct, "", "jmp plain + 64", SEGV_ACCERR, plain + 64, 0)      \
  FETCH(X, call_direct, "", "call plain + 64", SEGV_ACCERR, plain + 64, 8)     \
  FETCH(X, jump_pointer, "", "jmp *fault_pointers(%rip)", SEGV_ACCERR,         \
        plain + 64, 0)                                                         \
  FETCH(X, call_pointer, "", "call *fault_pointers(%rip)", SEGV_ACCERR,        \
        plain + 64, 8)                                                         \
  AT(X, divide, "divq %rcx", SIGFPE, 0, FPE_INTDIV)                            \
  AT(X, divide_memory, "idivl zero(%rip)", SIGFPE, 0, FPE_INTDIV)              \
  AT(X, undefined, "ud2", SIGILL, 6, ILL_ILLOPN)                               \
  BREAK(X, breakpoint, "int3")                                                 \
  BREAK(X, breakpoint_long, ".byte 0xcd, 3")                                   \
  REFUSED(X, halt, "hlt")                                                      \
  REFUSED(X, load_far, "movq (%r10), %rax")                                    \
  REFUSED(X, store_far, "movq %rax, (%r10)")                                   \
  X(beyond_file, "", "movq (%r11), %rax", SIGBUS, 14, BUS_ADRERR,              \
    beyond_file_at, file_pages + 4096 + 8, 0, kSkip, 0)

#define CODE(name, before, insn, ...)                            \
  asm(#name "_start: " before "\n" #name "_at: " insn "\n" #name \
            "_end: jmp fault_done\n");                           \
  extern const char name##_start[], name##_at[], name##_end[];
#define ROW(name, before, insn, ...) \
  {#name, name##_start, name##_at, name##_end, __VA_ARGS__},

FAULTS(CODE)

static const struct Fault kAllFaults[] = {FAULTS(ROW)};

extern const char stack_called[];

// In the order of fault_general.
static const int kContextIndices[kRegisters] = {
    REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_R8,
    REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
enum { kRbx = 1, kRcx = 2, kRsi = 4, kRdi = 5, kR8 = 7, kR14 = 13 };

static void WantOf(const char* what, uint64_t found, uint64_t wanted) {
  if (found != wanted) {
    dprintf(1, "%s: ", fault->name);
    Want(what, found, wanted);
  }
}

static void CheckContext(const siginfo_t* info, const greg_t* registers) {
  WantOf("si_code", info->si_code, fault->code);
  WantOf("si_addr", (uintptr_t)info->si_addr, (uintptr_t)fault->address);
  WantOf("RIP", registers[REG_RIP], (uintptr_t)fault->rip);
  WantOf("trap", registers[REG_TRAPNO], fault->trap);
  if (fault->trap == 14) {
    WantOf("CR2", registers[REG_CR2], (uintptr_t)fault->address);
  }
  WantOf("flags", registers[REG_EFL] & kFaultFlags, fault_flags & kFaultFlags);
  const uint64_t stack = fault->how == kStack ? fault_general[11] : fault_stack;
  WantOf("RSP", registers[REG_RSP], stack - fault->pushed);
  for (int i = 0; i < kRegisters; ++i) {
    WantOf("register", registers[kContextIndices[i]], fault_general[i]);
  }
}

static void OnFault(int signal, siginfo_t* info, void* context) {
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  WantOf("signal", signal, fault->signal);
  CheckContext(info, registers);
  registers[REG_R14] = ~registers[REG_R14];
  ++handled[signal];
  if (fault->how == kStack) {
    registers[REG_RSP] = (greg_t)(good_stack + 32);
    return;
  }
  if (fault->how == kReturn) {
    const uint64_t back = *(const uint64_t*)registers[REG_RSP];
    WantOf("return address", back, (uintptr_t)fault->end);
    registers[REG_RSP] += 8;
  }
  registers[REG_RIP] = (greg_t)fault->end;
}

static void FillFault(uint64_t seed) {
  for (uint64_t i = 0; i < kRegisters; ++i) {
    fault_general[i] = (seed * 97 + i + 1) * 0x9e3779b97f4a7c15ul;
  }
  fault_general[kRbx] = (uintptr_t)area + 4096 + 192;
  fault_general[kRcx] = 0;
  fault_general[kRsi] = (uintptr_t)area + 4096 + 64;
  fault_general[kRdi] = (uintptr_t)area + 4096 + 128;
  fault_general[kR8] = kUnmapped;
  fault_general[kR8 + 1] = (uintptr_t)plain + 64;
  fault_general[kR8 + 2] = 1ul << 63;
  fault_general[kR8 + 3] = (uintptr_t)file_pages + 4096 + 8;
  fault_general[kR8 + 4] = (uintptr_t)area + 4096 + 512;
  fault_general[kR8 + 5] = (uintptr_t)stack_called;
  fault_flags = 0x202 | (fault_general[0] >> 8 & kFaultFlags);
  good_stack[32] = (uintptr_t)fault->end;
}

static void RunOneFault(uint64_t seed) {
  FillFault(seed);
  fault_start = fault->start;
  handled[fault->signal] = 0;
  RunFault();
  WantHandled(fault->name, fault->signal, 1);
  fault_general[kR14] = ~fault_general[kR14];
  for (int i = 0; i < kRegisters; ++i) {
    WantOf("register behind it", fault_seen[i], fault_general[i]);
  }
  const uint64_t stack = fault->how == kStack
                             ? (uintptr_t)(good_stack + 32) + fault->popped
                             : fault_stack;
  WantOf("RSP behind it", fault_seen_stack, stack);
  WantOf("flags behind it", fault_seen_flags & kFaultFlags,
         fault_flags & kFaultFlags);
}

static void RunAllFaults(uint64_t times, int with_traps) {
  const int file = memfd_create("signals", 0);
  WantNone("ftruncate", ftruncate(file, 4096));
  Want("mmap",
       (uintptr_t)mmap(file_pages, sizeof file_pages, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, file, 0),
       (uintptr_t)file_pages);
  plain[64] = 1;
  fault_pointers[0] = (uintptr_t)plain + 64;
  fault_pointers[1] = (uintptr_t)stack_called;
  const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  for (int i = 0; i < 5; ++i) {
    Install(signals[i], OnFault, SA_ONSTACK, 0);
  }
  for (size_t i = 0; i < sizeof kAllFaults / sizeof kAllFaults[0]; ++i) {
    fault = &kAllFaults[i];
    const int runs = (strncmp(fault->name, "avx", 3) != 0 ||
                      __builtin_cpu_supports("avx") != 0) &&
                     (fault->signal != SIGTRAP || with_traps);
    for (uint64_t j = 0; runs && j < times; ++j) {
      RunOneFault(i * times + j);
    }
  }
}

// Repairs: the instruction is run again when its page can be used.
void StoreByte(char* to, int value);
int LoadByte(const char* from);
void CopyBytes(char* to, const char* from, size_t size);
extern const char load_byte_at[], copy_bytes_at[];
static char* repaired;
static int repaired_protection;

asm(".text\n"
    "StoreByte: movb %sil, (%rdi); ret\n"
    "LoadByte: xorl %eax, %eax; load_byte_at: movzbl (%rdi), %eax; ret\n"
    "CopyBytes: movq %rdx, %rcx; copy_bytes_at: rep movsb; ret\n");

static void OnRepair(int signal, siginfo_t* info, void* context) {
  const greg_t* registers = ((const ucontext_t*)context)->uc_mcontext.gregs;
  const char* at = (const char*)registers[REG_RIP];
  const int loads = at == load_byte_at;
  Want("si_addr", (uintptr_t)info->si_addr, (uintptr_t)repaired);
  Want("si_code", info->si_code, SEGV_ACCERR);
  Want("RDI", registers[REG_RDI], (uintptr_t)repaired);
  if (!loads) {
    Want("RIP", (uintptr_t)at, (uintptr_t)StoreByte);
  }
  WantNone("bytes at RIP",
           memcmp(at, loads ? "\x0f\xb6\x07" : "\x40\x88\x37", 3));
  char* page = repaired - (uintptr_t)repaired % 4096;
  WantNone("mprotect", mprotect(page, 4096, repaired_protection));
  ++handled[signal];
}

// Every page is first read, then written; every fourth is only written.
static void RepairPages(long count) {
  const size_t size = (size_t)count * 4096;
  char* pages = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  long wanted = 0;
  Install(SIGSEGV, OnRepair, SA_ONSTACK, 0);
  for (long i = 0; i < count; ++i) {
    repaired = pages + i * 4096 + i * 7 % 4096;
    repaired_protection = PROT_READ;
    if (i % 4 != 0) {
      Want("loaded", LoadByte(repaired), 0);
      WantHandled("repairs", SIGSEGV, ++wanted);
    }
    repaired_protection = PROT_READ | PROT_WRITE;
    StoreByte(repaired, (int)(i % 251));
    WantHandled("repairs", SIGSEGV, ++wanted);
    Want("stored", (unsigned char)*repaired, i % 251);
  }
  munmap(pages, size);
}

enum { kBefore = 100, kCopied = 300 };

static void OnCopy(int signal, siginfo_t* info, void* context) {
  const greg_t* registers = ((const ucontext_t*)context)->uc_mcontext.gregs;
  const uint64_t to = registers[REG_RDI];
  const uint64_t done = to - (uintptr_t)(area + 4096 - kBefore);
  const uint64_t address = (uintptr_t)info->si_addr;
  Want("RIP", registers[REG_RIP], (uintptr_t)copy_bytes_at);
  Want("si_addr", address - (uintptr_t)(area + 4096) < 4096, 1);
  Want("RDI", done <= kBefore, 1);
  Want("RCX", registers[REG_RCX], kCopied - done);
  Want("RSI", registers[REG_RSI], (uintptr_t)plain + done);
  WantNone("mprotect", mprotect(area + 4096, 4096, PROT_READ | PROT_WRITE));
  ++handled[signal];
}

static void RepairCopies(void) {
  Install(SIGSEGV, OnCopy, SA_ONSTACK, 0);
  for (int i = 0; i < 20; ++i) {
    memset(plain, i + 1, kCopied);
    mprotect(area + 4096, 4096, PROT_NONE);
    CopyBytes(area + 4096 - kBefore, plain, kCopied);
    WantHandled("copies", SIGSEGV, i + 1);
    WantNone("what was copied", memcmp(area + 4096 - kBefore, plain, kCopied));
  }
}

static void RepairAll(long count, int with_traps) {
  UseAlternate();
  RepairPages(count);
  RepairCopies();
  mprotect(area + 4096, 4096, PROT_NONE);
  RunAllFaults(count < 20 ? (uint64_t)count : 20, with_traps);
  printf("repair: %ld pages and %d kinds of faults, all as wanted\n", count,
         (int)(sizeof kAllFaults / sizeof kAllFaults[0]));
}

void Repair(long count) { RepairAll(count, 1); }
// Whoever steps through a handler of SIGTRAP takes it away from the program.
void RepairStepped(long count) { RepairAll(count, 0); }
