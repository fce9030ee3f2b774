// MOVS, STOS, LODS, CMPS, SCAS with REP, REPE, REPNE.
//
// A fault in an iteration leaves rcx, rsi, rdi as after the one before it, so
// that the instruction goes on where it was; that is what the CPU does.

#include <algorithm>
#include <array>

#include "machine/insn/families.h"

namespace clew::machine {
namespace {

// An address or count register: 32 bits of it with the 67 prefix.
template <class D>
uint64_t GetIndex(Cpu<D>& cpu, const Insn& insn, unsigned number) {
  const uint64_t value =
      cpu.d().ConcretiseAddress(cpu.template GetReg<uint64_t>(8 * number));
  return insn.addr32 ? value & 0xffffffff : value;
}

template <class D>
void SetIndex(Cpu<D>& cpu, const Insn& insn, unsigned number, uint64_t value) {
  if (insn.addr32) {
    value &= 0xffffffff;
  }
  cpu.template SetReg<uint64_t>(8 * number, cpu.d().Const(value));
}

template <class D, class U>
void Advance(Cpu<D>& cpu, const Insn& insn, unsigned number) {
  const bool down = (cpu.regs().rflags & kFlagDirection) != 0;
  const uint64_t step = down ? -uint64_t{sizeof(U)} : uint64_t{sizeof(U)};
  SetIndex(cpu, insn, number, GetIndex(cpu, insn, number) + step);
}

template <class D>
uint64_t SourceAddress(Cpu<D>& cpu, const Insn& insn) {
  return cpu.LinearAddress(insn, cpu.d().Const(GetIndex(cpu, insn, kRsi)));
}

// Each operation: one iteration; returns whether a REPE or REPNE goes on.
struct Movs {
  static constexpr bool kCompares = false;
  template <class D, class U>
  static bool Once(Cpu<D>& cpu, const Insn& insn) {
    const auto value = cpu.template Load<U>(SourceAddress(cpu, insn));
    if (cpu.faulted() ||
        !cpu.template Store<U>(GetIndex(cpu, insn, kRdi), value)) {
      return false;
    }
    Advance<D, U>(cpu, insn, kRsi);
    Advance<D, U>(cpu, insn, kRdi);
    return true;
  }
};

struct Stos {
  static constexpr bool kCompares = false;
  template <class D, class U>
  static bool Once(Cpu<D>& cpu, const Insn& insn) {
    const auto value = cpu.template GetReg<U>(8 * kRax);
    if (!cpu.template Store<U>(GetIndex(cpu, insn, kRdi), value)) {
      return false;
    }
    Advance<D, U>(cpu, insn, kRdi);
    return true;
  }
};

struct Lods {
  static constexpr bool kCompares = false;
  template <class D, class U>
  static bool Once(Cpu<D>& cpu, const Insn& insn) {
    const auto value = cpu.template Load<U>(SourceAddress(cpu, insn));
    if (cpu.faulted()) {
      return false;
    }
    cpu.template SetReg<U>(8 * kRax, value);
    Advance<D, U>(cpu, insn, kRsi);
    return true;
  }
};

template <class D, class U>
void Compare(Cpu<D>& cpu, Val<D, U> a, Val<D, U> b) {
  cpu.flags().template Set<U>(FlagSource::kSub, a, b, cpu.d().Sub(a, b));
}

struct Cmps {
  static constexpr bool kCompares = true;
  template <class D, class U>
  static bool Once(Cpu<D>& cpu, const Insn& insn) {
    const auto a = cpu.template Load<U>(SourceAddress(cpu, insn));
    const auto b =
        cpu.faulted() ? a : cpu.template Load<U>(GetIndex(cpu, insn, kRdi));
    if (cpu.faulted()) {
      return false;
    }
    Compare<D, U>(cpu, a, b);
    Advance<D, U>(cpu, insn, kRsi);
    Advance<D, U>(cpu, insn, kRdi);
    return true;
  }
};

struct Scas {
  static constexpr bool kCompares = true;
  template <class D, class U>
  static bool Once(Cpu<D>& cpu, const Insn& insn) {
    const auto b = cpu.template Load<U>(GetIndex(cpu, insn, kRdi));
    if (cpu.faulted()) {
      return false;
    }
    Compare<D, U>(cpu, cpu.template GetReg<U>(8 * kRax), b);
    Advance<D, U>(cpu, insn, kRdi);
    return true;
  }
};

// Iterations that one bulk copy can make, 0 for none: no shadow, no observer,
// upwards, within the pages of both ends, and the ranges do not feed each
// other.
template <class D, class U>
uint64_t BulkCount(Cpu<D>& cpu, uint64_t count, uint64_t to, uint64_t from) {
  if (D::kShadow || cpu.one_by_one() ||
      (cpu.regs().rflags & kFlagDirection) != 0) {
    return 0;
  }
  const auto left = [](uint64_t addr) {
    return (kPageBytes - addr % kPageBytes) / sizeof(U);
  };
  const uint64_t n = std::min({count, left(to), left(from)});
  return to - from < n * sizeof(U) && to != from ? 0 : n;
}

// Some iterations at once; returns how many, 0 if it has to go one by one.
template <class D, class U>
uint64_t BulkMove(Cpu<D>& cpu, const Insn& insn, uint64_t count) {
  const uint64_t to = GetIndex(cpu, insn, kRdi);
  const uint64_t from = SourceAddress(cpu, insn);
  const uint64_t n = BulkCount<D, U>(cpu, count, to, from);
  std::array<std::byte, kPageBytes> buffer;
  const auto bytes = std::span(buffer).first(n * sizeof(U));
  if (n < 8 || !cpu.CanStore(to, bytes.size()) ||
      !cpu.CanLoad(from, bytes.size())) {
    return 0;
  }
  cpu.LoadBytes(from, bytes);
  cpu.StoreBytes(to, bytes);
  SetIndex(cpu, insn, kRdi, GetIndex(cpu, insn, kRdi) + bytes.size());
  SetIndex(cpu, insn, kRsi, GetIndex(cpu, insn, kRsi) + bytes.size());
  return n;
}

template <class D, class U>
uint64_t BulkFill(Cpu<D>& cpu, const Insn& insn, uint64_t count) {
  const uint64_t to = GetIndex(cpu, insn, kRdi);
  const uint64_t n = BulkCount<D, U>(cpu, count, to, to);
  if (n < 8 || !cpu.CanStore(to, n * sizeof(U))) {
    return 0;
  }
  std::array<U, kPageBytes / sizeof(U)> buffer;
  std::fill_n(buffer.begin(), n,
              cpu.d().Value(cpu.template GetReg<U>(8 * kRax)));
  cpu.StoreBytes(to, std::as_bytes(std::span(buffer).first(n)));
  SetIndex(cpu, insn, kRdi, to + n * sizeof(U));
  return n;
}

template <class D, class U, class Op>
uint64_t Bulk(Cpu<D>& cpu, const Insn& insn, uint64_t count) {
  if constexpr (std::same_as<Op, Movs>) {
    return BulkMove<D, U>(cpu, insn, count);
  } else if constexpr (std::same_as<Op, Stos>) {
    return BulkFill<D, U>(cpu, insn, count);
  } else {
    return 0;
  }
}

template <class D, class U, class Op>
void Single(Cpu<D>& cpu, const Insn& insn) {
  Op::template Once<D, U>(cpu, insn);
}

// With the 67 prefix and ECX = 0, Intel's CPUs clear the upper halves of what
// registers they would count and, of a move or a fill, address with; others
// change nothing. (Manuals leave it open; this is what Sapphire Rapids does.)
template <class D, class Op>
void RepeatNever(Cpu<D>& cpu, const Insn& insn) {
  if (!insn.addr32 || !cpu.regs().is_of_intel()) {
    return;
  }
  SetIndex(cpu, insn, kRcx, 0);
  if (std::same_as<Op, Movs>) {
    SetIndex(cpu, insn, kRsi, GetIndex(cpu, insn, kRsi));
  }
  if (std::same_as<Op, Movs> || std::same_as<Op, Stos>) {
    SetIndex(cpu, insn, kRdi, GetIndex(cpu, insn, kRdi));
  }
}

template <class D, class U, class Op>
void Repeated(Cpu<D>& cpu, const Insn& insn) {
  uint64_t count = GetIndex(cpu, insn, kRcx);
  if (count == 0) {
    RepeatNever<D, Op>(cpu, insn);
  }
  while (count > 0) {
    uint64_t n = Bulk<D, U, Op>(cpu, insn, count);
    if (n == 0) {
      if (!Op::template Once<D, U>(cpu, insn)) {
        return;
      }
      n = 1;
    }
    count -= n;
    SetIndex(cpu, insn, kRcx, count);
    if (Op::kCompares && cpu.Decide(cpu.flags().Zero()) == insn.repne) {
      return;
    }
  }
}

// Bytes for even opcodes, the operand size for odd ones.
template <class D, class Op>
Handler<D> SelectString(const Insn& insn) {
  const unsigned size = insn.opcode[0] % 2 == 0 ? 1u : insn.operand_size_bytes;
  return BySize<D>(size, [&]<class U>() {
    return insn.rep || insn.repne ? &Repeated<D, U, Op> : &Single<D, U, Op>;
  });
}

}  // namespace

template <class D>
void RegisterString(HandlerTable<D>& table) {
  for (const char* name : {"movsb", "movsw", "movsd$string", "movsq"}) {
    table[name] = SelectString<D, Movs>;
  }
  for (const char* name : {"stosb", "stosw", "stosd", "stosq"}) {
    table[name] = SelectString<D, Stos>;
  }
  for (const char* name : {"lodsb", "lodsw", "lodsd", "lodsq"}) {
    table[name] = SelectString<D, Lods>;
  }
  for (const char* name : {"cmpsb", "cmpsw", "cmpsd$string", "cmpsq"}) {
    table[name] = SelectString<D, Cmps>;
  }
  for (const char* name : {"scasb", "scasw", "scasd", "scasq"}) {
    table[name] = SelectString<D, Scas>;
  }
}

CLEW_INSTANTIATE_FAMILY(RegisterString);

}  // namespace clew::machine
