#ifndef CLEW_MACHINE_DECODE_VEX_H_
#define CLEW_MACHINE_DECODE_VEX_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/x86/layout.h"
#include "machine/decode.h"

namespace clew::machine {

// Whether it is of what came with AVX-512, EVEX or VEX on opmask registers, of
// which Capstone 4.0.2 knows a part.
bool CapstoneKnowsLittleOf(const x86::Layout& layout);

// Decodes that, and what else Capstone does not know of the sets of
// instructions in common/x86/features.h (VAES, GFNI), by Zydis. Not
// thread-safe.
class VexDecoder {
 public:
  VexDecoder();
  ~VexDecoder();
  VexDecoder(VexDecoder&&) noexcept;
  VexDecoder& operator=(VexDecoder&&) noexcept;

  // Sets status, mnemonic and needs of `result` and the operands of its
  // instruction, of which ip, length and what the layout tells are set.
  // REQUIRES: `code` is the whole instruction.
  void Decode(std::span<const uint8_t> code, Decoded& result);

  // Returns it as text, as in "vpaddd zmm1 {k2}, zmm3, zmm4".
  std::string Describe(uint64_t ip, std::span<const uint8_t> code);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_DECODE_VEX_H_
