#ifndef CLEW_MACHINE_CPU_ACCESS_H_
#define CLEW_MACHINE_CPU_ACCESS_H_

// Operands and memory of Cpu<D>; the run loop is in cpu_run.h.

#include <algorithm>
#include <array>
#include <cstring>

#include "machine/cpu_core.h"  // IWYU pragma: export

namespace clew::machine {

// With 57-bit linear addresses absent, bits 63..47 must be equal.
inline bool IsCanonical(uint64_t addr) {
  const uint64_t top = addr >> 47;
  return top == 0 || top == 0x1ffff;
}

template <class D>
typename D::template V<uint64_t> Cpu<D>::Offset(const Insn& insn) {
  const MemOperand& mem = insn.mem;
  V<uint64_t> offset = d_.Const(static_cast<uint64_t>(mem.disp));
  if (mem.base != MemOperand::kNoReg) {
    offset = d_.template Add<uint64_t>(
        d_.template GetReg<uint64_t>(regs_, mem.base * 8u), offset);
  }
  if (mem.index != MemOperand::kNoReg) {
    const V<uint64_t> index =
        d_.template GetReg<uint64_t>(regs_, mem.index * 8u);
    offset = d_.template Add<uint64_t>(
        offset,
        d_.template Shl<uint64_t>(index, d_.Const(uint64_t{mem.shift})));
  }
  if (insn.addr32) [[unlikely]] {
    offset = d_.template ZExt<uint64_t, uint32_t>(
        d_.template Trunc<uint32_t, uint64_t>(offset));
  }
  return offset;
}

template <class D>
uint64_t Cpu<D>::LinearAddress(const Insn& insn, V<uint64_t> offset) {
  const uint64_t addr = d_.ConcretiseAddress(offset);
  switch (insn.mem.segment) {
    case x86::Segment::kNone:
      return addr;
    case x86::Segment::kFs:
      return addr + regs_.fs_base;
    default:
      return addr + regs_.gs_base;
  }
}

template <class D>
template <class U>
typename D::template V<U> Cpu<D>::Read(const Insn& insn,
                                       const Operand& operand) {
  if (operand.is_reg()) {
    return GetReg<U>(operand.reg);
  }
  if (operand.is_mem()) {
    return Load<U>(Address(insn));
  }
  return d_.Const(static_cast<U>(insn.imm));
}

template <class D>
template <class U>
void Cpu<D>::Write(const Insn& insn, const Operand& operand, V<U> value) {
  if (faulted()) {
    return;
  }
  if (operand.is_reg()) {
    SetReg<U>(operand.reg, value);
  } else {
    Store<U>(Address(insn), value);
  }
}

// The bytes of an integer, or of what is one behind the other.
template <class T>
std::span<std::byte> BytesIn(T& value) {
  if constexpr (std::is_integral_v<T>) {
    return std::as_writable_bytes(std::span(&value, 1));
  } else {
    return std::as_writable_bytes(std::span(value));
  }
}
template <class T>
std::span<const std::byte> BytesIn(const T& value) {
  if constexpr (std::is_integral_v<T>) {
    return std::as_bytes(std::span(&value, 1));
  } else {
    return std::as_bytes(std::span(value));
  }
}

template <class D>
template <class T>
bool Cpu<D>::LoadPlain(uint64_t addr, T& value) {
  if (!memory_.Load(addr, value)) [[unlikely]] {
    return false;
  }
  if (buffer_ != nullptr) [[unlikely]] {
    buffer_->Forward(addr, BytesIn(value));
  }
  return true;
}

template <class D>
template <class T>
bool Cpu<D>::StorePlain(uint64_t addr, const T& value) {
  if (buffer_ == nullptr) [[likely]] {
    return memory_.Store(addr, value);
  }
  return StoreWaiting(addr, BytesIn(value));
}

template <class D>
bool Cpu<D>::StoreWaiting(uint64_t addr, std::span<const std::byte> bytes) {
  if (!memory_.CanStore(addr, bytes.size())) {
    return false;
  }
  // A buffer knows of one place only; a thread would not see its own store at
  // another.
  if (memory_.HasMirror(addr, bytes.size())) [[unlikely]] {
    buffer_->Drain(memory_);
    return memory_.Store(addr, bytes);
  }
  buffer_->Store({.insn = first_insn_ + CurrentOffset(),
                  .addr = addr,
                  .size_bytes = static_cast<uint32_t>(bytes.size())},
                 bytes, memory_);
  if (stops_to_drain_ && signal_ < Signal::kObserver && buffer_->Full()) {
    signal_ = Signal::kObserver;
  }
  return true;
}

template <class D>
template <class U>
typename D::template V<U> Cpu<D>::Load(uint64_t addr) {
  U value = 0;
  if (!LoadPlain(addr, value)) [[unlikely]] {
    RaiseAccess(addr, sizeof(U), false);
    return d_.Const(U{0});
  }
  if (observer_ != nullptr) [[unlikely]] {
    Observe(addr, value, sizeof(U), AccessKind::kRead);
  }
  return d_.template AfterLoad<U>(*this, addr, value, AccessKind::kRead);
}

template <class D>
template <class U>
bool Cpu<D>::Store(uint64_t addr, V<U> value) {
  const U plain = d_.Value(value);
  if (!StorePlain(addr, plain)) [[unlikely]] {
    RaiseAccess(addr, sizeof(U), true);
    return false;
  }
  d_.template AfterStore<U>(*this, addr, value, AccessKind::kWrite);
  NoticeCodeChange();
  if (observer_ != nullptr) [[unlikely]] {
    Observe(addr, plain, sizeof(U), AccessKind::kWrite);
  }
  return true;
}

template <class D>
template <class U>
typename D::template V<U> Cpu<D>::LoadForUpdate(uint64_t addr) {
  Fence();
  U value = 0;
  if (!CheckStore(addr, sizeof(U)) || !memory_.Load(addr, value)) {
    RaiseAccess(addr, sizeof(U), true);
    return d_.Const(U{0});
  }
  if (observer_ != nullptr) [[unlikely]] {
    Observe(addr, value, sizeof(U), AccessKind::kReadModifyWrite);
  }
  return d_.template AfterLoad<U>(*this, addr, value,
                                  AccessKind::kReadModifyWrite);
}

template <class D>
template <class U>
void Cpu<D>::StoreUpdate(uint64_t addr, V<U> value) {
  if (memory_.Store(addr, d_.Value(value))) {
    d_.template AfterStore<U>(*this, addr, value, AccessKind::kReadModifyWrite);
    NoticeCodeChange();
  }
}

template <class D>
bool Cpu<D>::LoadBytes(uint64_t addr, std::span<std::byte> bytes) {
  if (!LoadPlain(addr, bytes)) {
    RaiseAccess(addr, bytes.size(), false);
    return false;
  }
  uint64_t low = 0;
  std::memcpy(&low, bytes.data(), std::min<size_t>(8, bytes.size()));
  if (observer_ != nullptr) [[unlikely]] {
    Observe(addr, low, bytes.size(), AccessKind::kRead);
  }
  d_.AfterLoadBytes(*this, addr, bytes, AccessKind::kRead);
  return true;
}

template <class D>
bool Cpu<D>::StoreBytes(uint64_t addr, std::span<const std::byte> bytes) {
  if (!StorePlain(addr, bytes)) {
    RaiseAccess(addr, bytes.size(), true);
    return false;
  }
  d_.AfterStoreBytes(*this, addr, bytes, AccessKind::kWrite);
  NoticeCodeChange();
  uint64_t low = 0;
  std::memcpy(&low, bytes.data(), std::min<size_t>(8, bytes.size()));
  if (observer_ != nullptr) [[unlikely]] {
    Observe(addr, low, bytes.size(), AccessKind::kWrite);
  }
  return true;
}

template <class D>
bool Cpu<D>::LoadBytesForUpdate(uint64_t addr, std::span<std::byte> bytes) {
  Fence();
  if (!CheckStore(addr, bytes.size()) || !memory_.Load(addr, bytes)) {
    RaiseAccess(addr, bytes.size(), true);
    return false;
  }
  uint64_t low = 0;
  std::memcpy(&low, bytes.data(), std::min<size_t>(8, bytes.size()));
  if (observer_ != nullptr) [[unlikely]] {
    Observe(addr, low, bytes.size(), AccessKind::kReadModifyWrite);
  }
  d_.AfterLoadBytes(*this, addr, bytes, AccessKind::kReadModifyWrite);
  return true;
}

template <class D>
void Cpu<D>::StoreBytesUpdate(uint64_t addr, std::span<const std::byte> bytes) {
  if (memory_.Store(addr, bytes)) {
    d_.AfterStoreBytes(*this, addr, bytes, AccessKind::kReadModifyWrite);
    NoticeCodeChange();
  }
}

template <class D>
bool Cpu<D>::CheckLoad(uint64_t addr, uint64_t size_bytes) {
  if (memory_.CanLoad(addr, size_bytes)) {
    return true;
  }
  RaiseAccess(addr, size_bytes, false);
  return false;
}

template <class D>
bool Cpu<D>::CheckStore(uint64_t addr, uint64_t size_bytes) {
  if (memory_.CanStore(addr, size_bytes)) [[likely]] {
    return true;
  }
  RaiseAccess(addr, size_bytes, true);
  return false;
}

template <class D>
uint64_t Cpu<D>::AlignedAddress(const Insn& insn, unsigned alignment,
                                bool write) {
  const uint64_t addr = Address(insn);
  if ((addr & (alignment - 1)) != 0) {
    Raise(FaultKind::kGeneral, addr, write);
  }
  return addr;
}

template <class D>
template <VecForm kForm>
inline auto Cpu<D>::ReadQuads(const Insn& insn, const Operand& operand,
                              bool unaligned) -> Quads<kForm> {
  if (operand.is_vec()) [[likely]] {
    Quads<kForm> quads = {};
    for (unsigned i = 0; i < quads.size(); ++i) {
      quads[i] = GetQuad(operand.reg, i);
    }
    return quads;
  }
  return LoadQuads<kForm>(insn, operand, unaligned);
}

template <class D>
template <VecForm kForm>
auto Cpu<D>::LoadQuads(const Insn& insn, const Operand& operand, bool unaligned)
    -> Quads<kForm> {
  Quads<kForm> quads = {};
  if (operand.is_mmx()) {
    quads[0] = GetMmx(operand.reg);
    return quads;
  }
  const uint64_t addr =
      AlignedAddress(insn, unaligned ? 1 : kForm.size_bytes(), false);
  std::array<uint64_t, 2 * kForm.lanes> plain;
  if (faulted()) {
    return quads;
  }
  if (!LoadPlain(addr, plain)) [[unlikely]] {
    RaiseAccess(addr, kForm.size_bytes(), false);
    return quads;
  }
  if (observer_ != nullptr) [[unlikely]] {
    Observe(addr, plain[0], kForm.size_bytes(), AccessKind::kRead);
  }
  for (unsigned i = 0; i < quads.size(); ++i) {
    quads[i] = d_.template AfterLoad<uint64_t>(*this, addr + 8 * i, plain[i],
                                               AccessKind::kRead);
  }
  return quads;
}

template <class D>
template <VecForm kForm>
inline void Cpu<D>::WriteQuads(const Insn& insn, const Operand& operand,
                               const Quads<kForm>& value, bool unaligned) {
  if (faulted()) {
    return;
  }
  if (operand.is_vec()) [[likely]] {
    for (unsigned i = 0; i < value.size(); ++i) {
      SetQuad(operand.reg, i, value[i]);
    }
    if constexpr (kForm.vex) {
      NoteVectorUse(operand.reg, insn.vector_bytes);
      ClearLanes(operand.reg, kForm.lanes);
    }
    return;
  }
  StoreQuads<kForm>(insn, operand, value, unaligned);
}

template <class D>
template <VecForm kForm>
void Cpu<D>::StoreQuads(const Insn& insn, const Operand& operand,
                        const Quads<kForm>& value, bool unaligned) {
  if (operand.is_mmx()) {
    SetMmx(operand.reg, value[0]);
    return;
  }
  const uint64_t addr =
      AlignedAddress(insn, unaligned ? 1 : kForm.size_bytes(), true);
  std::array<uint64_t, 2 * kForm.lanes> plain;
  for (unsigned i = 0; i < plain.size(); ++i) {
    plain[i] = d_.Value(value[i]);
  }
  if (faulted()) {
    return;
  }
  if (!StorePlain(addr, plain)) [[unlikely]] {
    RaiseAccess(addr, kForm.size_bytes(), true);
    return;
  }
  for (unsigned i = 0; i < value.size(); ++i) {
    d_.template AfterStore<uint64_t>(*this, addr + 8 * i, value[i],
                                     AccessKind::kWrite);
  }
  NoticeCodeChange();
  if (observer_ != nullptr) [[unlikely]] {
    Observe(addr, plain[0], kForm.size_bytes(), AccessKind::kWrite);
  }
}

template <class D>
void Cpu<D>::ClearLanes(unsigned number, unsigned lane) {
  for (unsigned i = 2 * lane; i < kVecQuads; ++i) {
    SetQuad(number, i, d_.Const(uint64_t{0}));
  }
}

template <class D>
template <VecForm kForm>
auto Cpu<D>::ReadLanes(const Insn& insn, const Operand& operand, bool unaligned)
    -> Vec<kForm> {
  const Quads<kForm> quads = ReadQuads<kForm>(insn, operand, unaligned);
  Vec<kForm> value;
  for (unsigned i = 0; i < quads.size(); ++i) {
    value[i / 2].q[i % 2] = d_.Concretise(quads[i]);
  }
  return value;
}

template <class D>
template <VecForm kForm>
void Cpu<D>::WriteLanes(const Insn& insn, const Operand& operand,
                        const Vec<kForm>& value, bool unaligned) {
  Quads<kForm> quads;
  for (unsigned i = 0; i < quads.size(); ++i) {
    quads[i] = d_.Const(value[i / 2].q[i % 2]);
  }
  WriteQuads<kForm>(insn, operand, quads, unaligned);
}

template <class D>
template <class U>
typename D::template V<U> Cpu<D>::ReadLow(const Insn& insn,
                                          const Operand& operand) {
  if (operand.is_vec()) {
    return d_.template Trunc<U, uint64_t>(d_.GetQuad(regs_, operand.reg, 0));
  }
  if (operand.is_mmx()) {
    return d_.template Trunc<U, uint64_t>(GetMmx(operand.reg));
  }
  return Read<U>(insn, operand);
}

template <class D>
template <class U>
void Cpu<D>::WriteLow(const Insn& insn, const Operand& operand, V<U> value) {
  if (!operand.is_vec()) {
    Write<U>(insn, operand, value);
    return;
  }
  if (!faulted()) {
    SetQuad(operand.reg, 0, WithLow<U>(GetQuad(operand.reg, 0), value));
  }
}

template <class D>
template <class U>
typename D::template V<uint64_t> Cpu<D>::WithLow(V<uint64_t> quad, V<U> low) {
  if constexpr (sizeof(U) == sizeof(uint64_t)) {
    return low;
  } else {
    const uint64_t upper = ~uint64_t{0} << (8 * sizeof(U));
    return d_.template Or<uint64_t>(
        d_.template And<uint64_t>(quad, d_.Const(upper)),
        d_.template ZExt<uint64_t, U>(low));
  }
}

template <class D>
void Cpu<D>::Push(V<uint64_t> value) {
  const uint64_t addr = d_.ConcretiseAddress(GetReg<uint64_t>(8 * kRsp)) - 8;
  if (Store<uint64_t>(addr, value)) {
    SetReg<uint64_t>(8 * kRsp, d_.Const(addr));
  }
}

template <class D>
ObservedAccess Cpu<D>::MakeAccess(uint64_t addr, uint64_t value,
                                  uint64_t size_bytes, AccessKind kind) const {
  return ObservedAccess{.ip = current_->ip,
                        .insn_offset = CurrentOffset(),
                        .addr = addr,
                        .value = value,
                        .size_bytes = static_cast<uint32_t>(size_bytes),
                        .kind = kind};
}

template <class D>
void Cpu<D>::Observe(uint64_t addr, uint64_t value, uint64_t size_bytes,
                     AccessKind kind) {
  bool stops = observer_->OnAccess(MakeAccess(addr, value, size_bytes, kind));
  if (kind != AccessKind::kRead) {
    memory_.ForEachMirror(
        addr, size_bytes, [&](uint64_t at, uint64_t offset, uint64_t part) {
          stops |= observer_->OnAccess(MakeAccess(
              at, BytesOf(value, offset, part), part, AccessKind::kWrite));
        });
  }
  if (stops && signal_ < Signal::kObserver) {
    signal_ = Signal::kObserver;
  }
}

template <class D>
void Cpu<D>::RaiseAccess(uint64_t addr, uint64_t size_bytes, bool write) {
  if (!IsCanonical(addr) || !IsCanonical(addr + size_bytes - 1)) {
    Raise(FaultKind::kGeneral, addr, write);
    return;
  }
  const uint32_t needed = write ? kProtWrite : kProtRead;
  // The CPU reports the first byte that it could not access.
  const auto first = memory_.ProtectionAt(addr);
  const bool first_bad = !first || (*first & needed) == 0;
  const uint64_t bad =
      first_bad ? addr : (addr + size_bytes - 1) / kPageBytes * kPageBytes;
  const bool mapped = memory_.ProtectionAt(bad).has_value();
  Raise(mapped ? FaultKind::kProtection : FaultKind::kUnmapped, bad, write);
}

template <class D>
void Cpu<D>::NoticeCodeChange() {
  if (memory_.code_version() != code_version_) [[unlikely]] {
    if (signal_ == Signal::kNone) {
      signal_ = Signal::kReblock;
    }
  }
}

}  // namespace clew::machine

#endif  // CLEW_MACHINE_CPU_ACCESS_H_
