// Instructions without effect on the thread's state, those whose results come
// from outside, those that user mode may not execute, and flag control.

#include "machine/insn/families.h"

namespace clew::machine {
namespace {

template <class D>
void Nop(Cpu<D>&, const Insn&) {}

// No effect, but the address must be readable.
template <class D>
void Clflush(Cpu<D>& cpu, const Insn& insn) {
  cpu.CheckLoad(cpu.Address(insn), 1);
}

template <class D>
void Nondeterministic(Cpu<D>& cpu, const Insn&) {
  cpu.StopNondeterministic();
}

// Serialises.
template <class D>
void Cpuid(Cpu<D>& cpu, const Insn&) {
  cpu.Fence();
  cpu.StopNondeterministic();
}

template <class D>
void Privileged(Cpu<D>& cpu, const Insn&) {
  cpu.Raise(FaultKind::kGeneral);
}

template <class D, uint64_t kBit, bool kValue>
void SetFlag(Cpu<D>& cpu, const Insn&) {
  cpu.flags().SetOne(kBit, cpu.d().Const(kValue));
}

template <class D>
void Cmc(Cpu<D>& cpu, const Insn&) {
  cpu.flags().SetOne(kFlagCarry, cpu.d().Not(cpu.flags().Carry()));
}

template <class D, bool kValue>
void SetDirection(Cpu<D>& cpu, const Insn&) {
  uint64_t& rflags = cpu.regs().rflags;
  rflags = (rflags & ~kFlagDirection) | (kValue ? kFlagDirection : 0);
}

constexpr uint64_t kSahfFlags =
    kFlagCarry | kFlagParity | kFlagAdjust | kFlagZero | kFlagSign;

template <class D>
void Fence(Cpu<D>& cpu, const Insn&) {
  cpu.Fence();
}

// XTEST, outside of a transaction: none is ever begun here.
template <class D>
void Xtest(Cpu<D>& cpu, const Insn&) {
  cpu.flags().SetAll(kFlagZero);
}

template <class D>
void Lahf(Cpu<D>& cpu, const Insn&) {
  cpu.flags().ConcretiseAll();
  const uint64_t image = (cpu.regs().rflags & kSahfFlags) | 2;
  cpu.template SetReg<uint8_t>(8 * kRax + 1,
                               cpu.d().Const(static_cast<uint8_t>(image)));
}

template <class D>
void Sahf(Cpu<D>& cpu, const Insn&) {
  const uint8_t image =
      cpu.d().Concretise(cpu.template GetReg<uint8_t>(8 * kRax + 1));
  cpu.flags().StoreAll();
  const uint64_t overflow = cpu.regs().rflags & kFlagOverflow;
  const auto kept = cpu.flags().Overflow();
  cpu.flags().SetAll((image & kSahfFlags) | overflow);
  cpu.flags().SetOne(kFlagOverflow, kept);
}

}  // namespace

template <class D>
void RegisterSystem(HandlerTable<D>& table) {
  for (const char* name :
       {"nop", "pause", "endbr64", "endbr32", "prefetch", "prefetchw",
        "prefetchwt1", "prefetchnta", "prefetcht0", "prefetcht1", "prefetcht2",
        "lfence"}) {
    table[name] = Always<D, &Nop<D>>;
  }
  table["mfence"] = Always<D, &Fence<D>>;
  table["sfence"] = Always<D, &Fence<D>>;
  table["cpuid"] = Always<D, &Cpuid<D>>;
  for (const char* name : {"rdtsc", "rdtscp", "xgetbv", "rdrand", "rdseed"}) {
    table[name] = Always<D, &Nondeterministic<D>>;
  }
  for (const char* name :
       {"hlt",  "cli",    "sti",    "in",     "out",    "insb",  "insw",
        "insd", "outsb",  "outsw",  "outsd",  "rdmsr",  "wrmsr", "wbinvd",
        "invd", "invlpg", "clts",   "lgdt",   "lidt",   "lldt",  "ltr",
        "lmsw", "rdpmc",  "swapgs", "sysret", "sysexit"}) {
    table[name] = Always<D, &Privileged<D>>;
  }
  table["xtest"] = Always<D, &Xtest<D>>;
  for (const char* name : {"clflush", "clflushopt", "clwb"}) {
    table[name] = Always<D, &Clflush<D>>;
  }
  table["serialize"] = Always<D, &Fence<D>>;
  table["clc"] = Always<D, &SetFlag<D, kFlagCarry, false>>;
  table["stc"] = Always<D, &SetFlag<D, kFlagCarry, true>>;
  table["cmc"] = Always<D, &Cmc<D>>;
  table["cld"] = Always<D, &SetDirection<D, false>>;
  table["std"] = Always<D, &SetDirection<D, true>>;
  table["lahf"] = Always<D, &Lahf<D>>;
  table["sahf"] = Always<D, &Sahf<D>>;
}

CLEW_INSTANTIATE_FAMILY(RegisterSystem);

}  // namespace clew::machine
