#ifndef CLEW_MACHINE_COVERAGE_H_
#define CLEW_MACHINE_COVERAGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "machine/decode.h"
#include "machine/domain.h"
#include "machine/handlers.h"

namespace clew::machine {

// What the machine can execute, without executing it, of a CPU with certain
// features. Not thread-safe.
class Coverage {
 public:
  explicit Coverage(x86::FeatureSet features);

  // Returns true if a Cpu executes the instruction that `bytes` begin with, or
  // faults as a CPU does; false if it would stop as unsupported.
  bool Has(std::span<const std::byte> bytes);
  // Describes it as Decoder::Describe does.
  std::string Describe(uint64_t ip, std::span<const std::byte> bytes) {
    return decoder_.Describe(ip, bytes, handlers_.features());
  }

 private:
  Decoder decoder_;
  Handlers<Concrete> handlers_;
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_COVERAGE_H_
