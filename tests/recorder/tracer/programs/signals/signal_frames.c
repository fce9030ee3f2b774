// The frames of handlers, and handlers within handlers.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "signals.h"

// Form 2. The blocks are of instructions of one size, and so is what each adds.
enum { kMappings = 64, kStored = 2048 };

static struct {
  uint64_t start;
  uint64_t end;
} code[kMappings];
static int code_count;
static uint64_t stack_start;
static uint64_t stack_size;
HIDDEN volatile uint64_t frame_counter;
HIDDEN uint64_t frame_stack;

extern const char inc_block[], lea_block[], memory_block[], push_block[],
    call_block[], blocks_end[], counting[], storing[], yielded[];
void RunBlocks(int yields);

asm(".text\n"
    "RunBlocks: pushq %rbx; pushq %r12; testl %edi, %edi; jz 1f\n"
    "movl $24, %eax; syscall; yielded: nop; 1: xorl %ebx, %ebx\n"
    "inc_block: .rept 64; incq %rbx; .endr; inc_end: xorl %r12d, %r12d\n"
    "lea_block: .rept 64; leaq 1(%r12), %r12; .endr; lea_end:\n"
    "movq $0, frame_counter(%rip)\n"
    "memory_block: .rept 64; incq frame_counter(%rip); .endr; memory_end:\n"
    "movq %rsp, frame_stack(%rip)\n"
    "push_block: .rept 64; pushq %rbx; .endr; push_end:\n"
    "leaq 512(%rsp), %rsp; xorl %ebx, %ebx\n"
    "call_block: .rept 64; call counting; .endr; blocks_end:\n"
    "leaq scratch(%rip), %rdi; movl $2048, %ecx\n"
    "storing: rep stosb; popq %r12; popq %rbx; ret\n"
    "counting: incq %rbx; ret\n");

static void ReadMappings(void) {
  FILE* file = fopen("/proc/self/maps", "r");
  char* line = NULL;
  size_t size = 0;
  while (getline(&line, &size, file) > 0 && code_count < kMappings) {
    char access[8];
    const int found = sscanf(line, "%lx-%lx %7s", &code[code_count].start,
                             &code[code_count].end, access);
    const int named = strchr(line, '/') != NULL || strstr(line, "[vdso]");
    code_count += found == 3 && access[2] == 'x' && named;
  }
  free(line);
  fclose(file);
}

static void ReadStack(void) {
  pthread_attr_t attributes;
  void* start = NULL;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &start, &stack_size);
  pthread_attr_destroy(&attributes);
  stack_start = (uintptr_t)start;
}

static int InCode(uint64_t address) {
  for (int i = 0; i < code_count; ++i) {
    if (address >= code[i].start && address < code[i].end) {
      return 1;
    }
  }
  return 0;
}

// `value` is how many of the block's instructions are behind, if we are in it.
static void CheckBlock(uint64_t at, const char* block, uint64_t size,
                       uint64_t value) {
  const uint64_t offset = at - (uintptr_t)block;
  if (offset < 64 * size) {
    Want("RIP within its instruction", offset % size, 0);
    Want("what the instructions did", value, offset / size);
  }
}

static void CheckPlace(const greg_t* registers) {
  const uint64_t at = registers[REG_RIP];
  const uint64_t rbx = registers[REG_RBX];
  const uint64_t stack = registers[REG_RSP];
  CheckBlock(at, inc_block, 3, rbx);
  CheckBlock(at, lea_block, 5, registers[REG_R12]);
  CheckBlock(at, memory_block, 7, frame_counter);
  CheckBlock(at, push_block, 1, (frame_stack - stack) / 8);
  CheckBlock(at, call_block, 5, rbx);
  const uint64_t in = at - (uintptr_t)counting;
  if (in <= 3) {
    const uint64_t back = *(const uint64_t*)stack - (uintptr_t)call_block;
    Want("RIP in a call", in % 3, 0);
    Want("calls", rbx * 5, back - (in == 0 ? 5 : 0));
  }
  if (at == (uintptr_t)yielded) {
    Want("RCX behind a call", registers[REG_RCX], at);
    Want("RAX behind a call", registers[REG_RAX], 0);
  }
  if (at == (uintptr_t)storing) {
    const uint64_t stored = registers[REG_RDI] - (uintptr_t)scratch;
    Want("stored", stored, kStored - registers[REG_RCX]);
  }
}

static void OnFrame(int signal, siginfo_t* info, void* context) {
  const ucontext_t* frame = context;
  const greg_t* registers = frame->uc_mcontext.gregs;
  const uint64_t stack = registers[REG_RSP];
  Want("signal", signal, SIGUSR1);
  Want("si_signo", info->si_signo, SIGUSR1);
  Want("si_code", info->si_code, SI_TKILL);
  Want("si_pid", info->si_pid, getpid());
  Want("si_uid", info->si_uid, getuid());
  Want("RIP in code", InCode(registers[REG_RIP]), 1);
  Want("RSP in the stack", stack - stack_start < stack_size, 1);
  Want("frame below RSP", (uintptr_t)(&frame->uc_sigmask) + 8 <= stack - 128,
       1);
  const uintptr_t floats = (uintptr_t)frame->uc_mcontext.fpregs;
  Want("x87 state above the frame", floats > (uintptr_t)frame, 1);
  Want("x87 state below RSP", floats + 512 <= stack - 128, 1);
  Want("MXCSR", frame->uc_mcontext.fpregs->mxcsr, 0x1f80);
  Want("uc_sigmask", Bits(&frame->uc_sigmask), 0);
  CheckPlace(registers);
  ++handled[SIGUSR1];
}

void Frame(long count) {
  ReadMappings();
  ReadStack();
  Want("size of the calls", (blocks_end - call_block), 64 * 5);
  Install(SIGUSR1, OnFrame, 0, 0);
  struct Sender* sender = StartSender(SIGUSR1, 0, count);
  for (uint64_t round = 0; handled[SIGUSR1] < count; ++round) {
    RunBlocks(round % 1024 == 0);
  }
  EndSender(sender);
  Want("signals", handled[SIGUSR1], count);
  printf("frame: %ld signals, all frames right\n", count);
}

// Form 3.
enum { kCanaries = 16, kDeep = 8, kNested = 4 };

static struct {
  int signal;
  int flags;
  uint64_t mask;
} nested[kNested];
static volatile int depth;

static void FillCanaries(volatile uint64_t* canaries, uint64_t seed) {
  for (uint64_t i = 0; i < kCanaries; ++i) {
    canaries[i] = (seed + i) * 0x9e3779b97f4a7c15ul;
  }
}

static void CheckCanaries(const volatile uint64_t* canaries, uint64_t seed) {
  for (uint64_t i = 0; i < kCanaries; ++i) {
    Want("a local", canaries[i], (seed + i) * 0x9e3779b97f4a7c15ul);
  }
}

static void CheckNested(int which, const ucontext_t* frame, uint64_t local) {
  const int own = (nested[which].flags & SA_NODEFER) == 0;
  const uint64_t mask = Bits(&frame->uc_sigmask) | nested[which].mask |
                        (own ? Bit(nested[which].signal) : 0);
  Want("mask", Mask(), mask);
  const uint64_t stack = frame->uc_mcontext.gregs[REG_RSP];
  const int there = (nested[which].flags & SA_ONSTACK) || OnAlternate(stack);
  Want("alternate stack", OnAlternate(local), there);
}

// The count lets the next signal come: where it is deep, only after the return.
static void OnNested(int signal, siginfo_t* info, void* context) {
  volatile uint64_t canaries[kCanaries];
  const uint64_t seed = (uintptr_t)canaries ^ signal;
  const int deep = ++depth > kDeep;
  FillCanaries(canaries, seed);
  Want("si_signo", info->si_signo, signal);
  int which = 0;
  while (nested[which].signal != signal) {
    ++which;
  }
  CheckNested(which, context, (uintptr_t)canaries);
  if (deep) {
    SetMask(~0ul);
  } else {
    ++handled[signal];
  }
  Spin(6000);
  if (!deep) {
    CheckNested(which, context, (uintptr_t)canaries);
  }
  CheckCanaries(canaries, seed);
  --depth;
  if (deep) {
    ++handled[signal];
  }
}

static void AddNested(int which, int signal, int flags, uint64_t mask) {
  nested[which].signal = signal;
  nested[which].flags = flags;
  nested[which].mask = mask;
  Install(signal, OnNested, flags, mask);
}

static long CountNested(void) {
  long sum = 0;
  for (int i = 0; i < kNested; ++i) {
    sum += handled[nested[i].signal];
  }
  return sum;
}

void Nested(long count) {
  const long each = (count + kNested - 1) / kNested;
  volatile uint64_t canaries[kCanaries];
  FillCanaries(canaries, 1);
  SetMask(Bit(SIGHUP));
  UseAlternate();
  AddNested(0, SIGUSR1, 0, Bit(SIGUSR2));
  AddNested(1, SIGUSR2, SA_RESTART, Bit(SIGTERM) | Bit(SIGRTMIN + 5));
  AddNested(2, SIGRTMIN, SA_ONSTACK, Bit(SIGUSR1));
  AddNested(3, SIGRTMIN + 1, SA_ONSTACK | SA_NODEFER, Bit(SIGRTMIN));
  struct Sender* first = StartSender(SIGUSR1, SIGRTMIN + 1, each);
  struct Sender* second = StartSender(SIGUSR2, SIGRTMIN, each);
  while (CountNested() < each * kNested) {
    Spin(100);
    CheckCanaries(canaries, 1);
  }
  EndSender(first);
  EndSender(second);
  Want("mask", Mask(), Bit(SIGHUP));
  Want("signals", CountNested(), (each * kNested));
  Want("depth", depth, 0);
  printf("nested: %ld signals, all handled in their order\n", each * kNested);
}
