// BT, BTS, BTR, BTC, BSF, BSR, POPCNT, CRC32.

#include <bit>

#include "machine/insn/families.h"

namespace clew::machine {
namespace {

enum class BitChange { kNone, kSet, kReset, kComplement };

template <class D, class U, BitChange kChange>
Val<D, U> Changed(D& d, Val<D, U> a, U mask) {
  if constexpr (kChange == BitChange::kSet) {
    return d.Or(a, d.Const(mask));
  } else if constexpr (kChange == BitChange::kReset) {
    return d.And(a, d.Const(static_cast<U>(~mask)));
  } else {
    return d.Xor(a, d.Const(mask));
  }
}

// With a register as bit offset, memory beyond the operand is addressed: the
// offset is signed and counts bits from the operand's address.
template <class D, class U>
uint64_t BitAddress(Cpu<D>& cpu, const Insn& insn, U offset) {
  uint64_t addr = cpu.d().ConcretiseAddress(cpu.Offset(insn));
  if (insn.op[1].is_reg()) {
    constexpr unsigned kWidth = 8 * sizeof(U);
    constexpr unsigned kUnused = 64 - kWidth;
    const auto bits =
        static_cast<int64_t>(uint64_t{offset} << kUnused) >> kUnused;
    const int64_t units = bits >> std::countr_zero(kWidth);
    addr += static_cast<uint64_t>(units) * sizeof(U);
  }
  if (insn.addr32) {
    addr &= 0xffffffff;
  }
  return cpu.LinearAddress(insn, cpu.d().Const(addr));
}

template <class D, class U, BitChange kChange>
void BitMem(Cpu<D>& cpu, const Insn& insn, U offset) {
  const auto bit = static_cast<unsigned>(offset % (8 * sizeof(U)));
  const U mask = static_cast<U>(uint64_t{1} << bit);
  const uint64_t addr = BitAddress<D, U>(cpu, insn, offset);
  const bool locked = kChange != BitChange::kNone && insn.lock;
  const auto a =
      locked ? cpu.template LoadForUpdate<U>(addr) : cpu.template Load<U>(addr);
  if (cpu.faulted()) {
    return;
  }
  if constexpr (kChange != BitChange::kNone) {
    const auto r = Changed<D, U, kChange>(cpu.d(), a, mask);
    if (locked) {
      cpu.template StoreUpdate<U>(addr, r);
    } else if (!cpu.template Store<U>(addr, r)) {
      return;
    }
  }
  cpu.flags().SetOne(kFlagCarry, cpu.d().Bit(a, bit));
}

template <class D, class U, BitChange kChange>
void BitTest(Cpu<D>& cpu, const Insn& insn) {
  D& d = cpu.d();
  const U offset = insn.op[1].is_imm()
                       ? static_cast<U>(insn.imm & 0xff)
                       : d.Concretise(cpu.template GetReg<U>(insn.op[1].reg));
  if (insn.op[0].is_mem()) {
    BitMem<D, U, kChange>(cpu, insn, offset);
    return;
  }
  const auto bit = static_cast<unsigned>(offset % (8 * sizeof(U)));
  const U mask = static_cast<U>(uint64_t{1} << bit);
  const auto a = cpu.template GetReg<U>(insn.op[0].reg);
  if constexpr (kChange != BitChange::kNone) {
    cpu.template SetReg<U>(insn.op[0].reg, Changed<D, U, kChange>(d, a, mask));
  }
  cpu.flags().SetOne(kFlagCarry, d.Bit(a, bit));
}

template <class D, BitChange kChange>
Handler<D> SelectBitTest(const Insn& insn) {
  if (insn.op[0].size_bytes == 1) {
    return nullptr;
  }
  return BySize<D>(insn.op[0].size_bytes,
                   []<class U>() { return &BitTest<D, U, kChange>; });
}

// For 0 the destination is left alone, as all CPUs do (the SDM calls it
// undefined, AMD's manual promises it).
template <class D, class U, bool kForward>
void BitScan(Cpu<D>& cpu, const Insn& insn) {
  const U value = cpu.d().Concretise(cpu.template Read<U>(insn, insn.op[1]));
  if (cpu.faulted()) {
    return;
  }
  cpu.flags().SetOne(kFlagZero, cpu.d().Const(value == 0));
  if (value != 0) {
    const int index = kForward ? std::countr_zero(value)
                               : static_cast<int>(std::bit_width(value)) - 1;
    cpu.template SetReg<U>(insn.op[0].reg,
                           cpu.d().Const(static_cast<U>(index)));
  }
}

template <class D, bool kForward>
Handler<D> SelectScan(const Insn& insn) {
  if (insn.op[0].size_bytes == 1) {
    return nullptr;
  }
  return BySize<D>(insn.op[0].size_bytes,
                   []<class U>() { return &BitScan<D, U, kForward>; });
}

template <class D, class U>
void Popcnt(Cpu<D>& cpu, const Insn& insn) {
  const U value = cpu.d().Concretise(cpu.template Read<U>(insn, insn.op[1]));
  if (cpu.faulted()) {
    return;
  }
  cpu.template SetReg<U>(insn.op[0].reg,
                         cpu.d().Const(static_cast<U>(std::popcount(value))));
  cpu.flags().SetAll(value == 0 ? kFlagZero : 0);
}

template <class D>
Handler<D> SelectPopcnt(const Insn& insn) {
  if (insn.op[0].size_bytes == 1) {
    return nullptr;
  }
  return BySize<D>(insn.op[0].size_bytes,
                   []<class U>() { return &Popcnt<D, U>; });
}

// CRC-32C, bit-reflected polynomial 0x11edc6f41.
uint32_t Crc32c(uint32_t crc, uint64_t data, size_t size_bytes) {
  for (size_t i = 0; i < size_bytes; ++i) {
    crc ^= static_cast<uint8_t>(data >> (8 * i));
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    }
  }
  return crc;
}

template <class D, class U>
void Crc32(Cpu<D>& cpu, const Insn& insn) {
  D& d = cpu.d();
  const U data = d.Concretise(cpu.template Read<U>(insn, insn.op[1]));
  if (cpu.faulted()) {
    return;
  }
  const uint32_t crc =
      d.Concretise(cpu.template GetReg<uint32_t>(insn.op[0].reg));
  cpu.template SetReg<uint64_t>(
      insn.op[0].reg, d.Const(uint64_t{Crc32c(crc, data, sizeof(U))}));
}

template <class D>
Handler<D> SelectCrc32(const Insn& insn) {
  return BySize<D>(insn.op[1].size_bytes,
                   []<class U>() { return &Crc32<D, U>; });
}

}  // namespace

template <class D>
void RegisterBit(HandlerTable<D>& table) {
  table["bt"] = SelectBitTest<D, BitChange::kNone>;
  table["bts"] = SelectBitTest<D, BitChange::kSet>;
  table["btr"] = SelectBitTest<D, BitChange::kReset>;
  table["btc"] = SelectBitTest<D, BitChange::kComplement>;
  table["bsf"] = SelectScan<D, true>;
  table["bsr"] = SelectScan<D, false>;
  table["popcnt"] = SelectPopcnt<D>;
  table["crc32"] = SelectCrc32<D>;
}

CLEW_INSTANTIATE_FAMILY(RegisterBit);

}  // namespace clew::machine
