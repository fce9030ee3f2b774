#include "machine/xsave.h"

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
