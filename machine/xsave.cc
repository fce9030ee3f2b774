#include "machine/xsave.h"

#include <cstring>

#include "machine/insn/x87_stack.h"

namespace clew::machine {
namespace {

bool HasComponent(uint64_t bits, unsigned component) {
  return (bits >> component & 1) != 0;
}

uint64_t PlaceFor(const XsaveComponent& component, uint64_t end) {
  return component.aligned ? (end + 63) / 64 * 64 : end;
}

}  // namespace

void RestoreX87(const FxsaveArea& area, X87& x87) {
  X87Stack stack(x87);
  stack.SetControl(area.head.control);
  stack.SetStatus(area.head.status);
  for (unsigned i = 0; i < 8; ++i) {
    stack.Set(i, area.x87[i]);
  }
  stack.SetNonEmptyMask(static_cast<uint8_t>(area.head.tags));
}

void RestoreXsave(std::span<const std::byte> area, Registers& registers) {
  FxsaveArea legacy;
  XsaveHeader header;
  std::memcpy(&legacy, area.data(), sizeof(legacy));
  std::memcpy(&header, area.data() + sizeof(legacy), sizeof(header));
  const Registers initial;
  registers.x87 = initial.x87;
  if (HasComponent(header.xstate_bv, kComponentX87)) {
    RestoreX87(legacy, registers.x87);
  }
  registers.mxcsr = legacy.pointers.mxcsr;
  registers.vec = initial.vec;
  registers.avx_in_use = HasComponent(header.xstate_bv, kComponentAvx);
  if (HasComponent(header.xstate_bv, kComponentSse)) {
    registers.vec[0] = legacy.xmm;
  }
  const XsaveComponent avx = XsaveLayout().components[kComponentAvx];
  if (HasComponent(header.xstate_bv, kComponentAvx) &&
      area.size() >= avx.offset + avx.size_bytes) {
    std::memcpy(registers.vec[1].data(), area.data() + avx.offset,
                avx.size_bytes);
  }
}

std::optional<uint64_t> XsaveLayout::OffsetOf(unsigned component,
                                              uint64_t xcomp_bv) const {
  constexpr unsigned kCompacted = 63;
  const XsaveComponent& wanted = components[component];
  if (wanted.size_bytes == 0) {
    return std::nullopt;
  }
  if (!HasComponent(xcomp_bv, kCompacted)) {
    return wanted.offset;
  }
  uint64_t end = sizeof(FxsaveArea) + sizeof(XsaveHeader);
  for (unsigned i = kComponentAvx; i < component; ++i) {
    if (HasComponent(xcomp_bv, i)) {
      if (components[i].size_bytes == 0) {
        return std::nullopt;
      }
      end = PlaceFor(components[i], end) + components[i].size_bytes;
    }
  }
  return HasComponent(xcomp_bv, component)
             ? std::optional(PlaceFor(wanted, end))
             : std::nullopt;
}

}  // namespace clew::machine
