#ifndef CLEW_MACHINE_DECODE_H_
#define CLEW_MACHINE_DECODE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/x86/features.h"
#include "machine/insn.h"

namespace clew::machine {

enum class DecodeStatus : uint8_t {
  kOk,
  kTooShort,  // the bytes end within the instruction
  kIllegal,   // UD2 and encodings that raise #UD on every x86-64 CPU
  // Not decoded: other undefined encodings with VEX or EVEX; bytes that
  // Capstone or Zydis does not know, or reads wrongly. kOk does not promise a
  // handler.
  kUnknown,
};

struct Decoded {
  DecodeStatus status = DecodeStatus::kUnknown;
  Insn insn;
  // A key of HandlerTable; lives as long as the program.
  std::string_view mnemonic;
  x86::FeatureSet needs;  // the CPU has the instruction if it has all of these
  // What another CPU takes the same bytes for; empty: for nothing.
  std::string_view otherwise;
  bool ends_block = false;  // a transfer of control, or may stop the run
};

// Bytes to instructions, by Capstone; what came with AVX-512, by Zydis. Not
// thread-safe.
class Decoder {
 public:
  Decoder();
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  // Returns the instruction that `bytes` (at most x86::kInsnBytesMax are looked
  // at) begin with, at address `ip`.
  Decoded Decode(uint64_t ip, std::span<const std::byte> bytes);

  // Describes it for messages: "vaddps ymm0, ymm1, ymm2 at 0x401000 (c5 f4 58
  // c2), needs AVX": what it needs of the features that a CPU `has` not.
  std::string Describe(uint64_t ip, std::span<const std::byte> bytes,
                       x86::FeatureSet has = x86::kCarriedOut);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_DECODE_H_
