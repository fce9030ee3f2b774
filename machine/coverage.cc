#include "machine/coverage.h"

#include "machine/insn/families.h"

namespace clew::machine {

Coverage::Coverage() { RegisterAll(handlers_); }

bool Coverage::Has(std::span<const std::byte> bytes) {
  const Decoded decoded = decoder_.Decode(0, bytes);
  if (decoded.status != DecodeStatus::kOk) {
    return decoded.status == DecodeStatus::kIllegal;
  }
  const auto selector = handlers_.find(decoded.mnemonic);
  return selector != handlers_.end() &&
         selector->second(decoded.insn) != nullptr;
}

}  // namespace clew::machine
