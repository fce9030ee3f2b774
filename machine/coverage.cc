#include "machine/coverage.h"

#include "machine/insn/families.h"

namespace clew::machine {

Coverage::Coverage(x86::FeatureSet features) : handlers_(features) {}

bool Coverage::Has(std::span<const std::byte> bytes) {
  const Decoded decoded = decoder_.Decode(0, bytes);
  if (decoded.status != DecodeStatus::kOk) {
    return decoded.status == DecodeStatus::kIllegal;
  }
  return handlers_.Find(decoded) != nullptr;
}

}  // namespace clew::machine
