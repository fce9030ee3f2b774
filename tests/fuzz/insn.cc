// Bytes as instructions, as a traced program may bring any. Each is decoded and
// described, and eight at most are executed, from registers that the input
// sets, in both domains: nothing but a stop may come of it, the length is that
// which Zydis finds, and values are the same whether what is read is known or
// symbolic.
//
// The input: a byte for each general register, one that seeds the vector
// registers, then code.

#include <Zydis/Zydis.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/check.h"
#include "common/x86/features.h"
#include "machine/cpu.h"
#include "machine/decode.h"
#include "machine/memory.h"
#include "machine/shadow.h"

namespace {

using namespace clew;           // NOLINT: a fuzz target is one function
using namespace clew::machine;  // NOLINT

constexpr size_t kHeadBytes = 17;
constexpr size_t kCodeBytesMax = 256;
constexpr uint64_t kInsnsMax = 8;
constexpr uint64_t kCodeAt = 0x10000;
constexpr uint64_t kDataAt = 0x20000;  // two pages, and nothing behind them
constexpr uint64_t kDataBytes = 2 * kPageBytes;

// The length that Zydis finds; 0: it is no instruction to it.
size_t LengthByZydis(std::span<const std::byte> code) {
  static const ZydisDecoder decoder = [] {
    ZydisDecoder made;
    ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return made;
  }();
  ZydisDecodedInstruction insn;
  return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
             &decoder, nullptr, code.data(), code.size(), &insn))
             ? insn.length
             : 0;
}

void Decode(std::span<const std::byte> code) {
  static Decoder decoder;
  const Decoded decoded = decoder.Decode(kCodeAt, code);
  CLEW_CHECK(!decoder.Describe(kCodeAt, code).empty(), "no description");
  if (decoded.status != DecodeStatus::kOk) {
    return;
  }
  const size_t length = LengthByZydis(code);
  CLEW_CHECK(length == 0 || length == decoded.insn.length,
             "{} has {} bytes; Zydis: {}", decoded.mnemonic,
             decoded.insn.length, length);
  CLEW_CHECK(decoded.insn.op_count <= decoded.insn.op.size(), "{} operands",
             decoded.insn.op_count);
}

// Half of them point into the data or to its ends, the others are small.
Registers RegistersOf(std::span<const std::byte> head) {
  Registers registers;
  for (size_t i = 0; i < registers.gpr.size(); ++i) {
    const auto byte = std::to_integer<uint64_t>(head[i]);
    registers.gpr[i] =
        byte < 128 ? byte : kDataAt + kDataBytes * (byte - 128) / 127;
  }
  auto word = std::to_integer<uint64_t>(head[16]);
  for (VecLane& lane : registers.vec) {
    for (Vec128& value : lane) {
      for (uint64_t& quad : value.q) {
        word = word * 6364136223846793005 + 1442695040888963407;
        quad = word;
      }
    }
  }
  for (uint64_t& mask : registers.opmask) {
    word = word * 6364136223846793005 + 1442695040888963407;
    mask = word >> 7;
  }
  registers.rip = kCodeAt;
  return registers;
}

Memory MemoryOf(std::span<const std::byte> code) {
  Memory memory;
  memory.Map(kCodeAt, kPageBytes, kProtRead | kProtExec);
  memory.Map(kDataAt, kDataBytes, kProtRead | kProtWrite);
  (void)memory.Poke(kCodeAt, code);
  (void)memory.Poke(kDataAt, code);
  (void)memory.Poke(kDataAt + kDataBytes - code.size(), code);
  memory.EnableDigest();
  return memory;
}

// Whatever is read is symbolic from then on.
class AllUnknown final : public ShadowObserver {
 public:
  explicit AllUnknown(ExprPool& pool) : pool_(pool) {}
  const Expr* OnRead(const ObservedAccess& access, const Expr*) override {
    return pool_.NewVar(8 * access.size_bytes, "read");
  }
  void OnWrite(const ObservedAccess&, const Expr*) override {}
  void OnBranch(uint64_t, const Expr*, bool) override {}
  void OnConcretised(uint64_t, const Expr*, uint64_t,
                     ConcretiseCause) override {}

 private:
  ExprPool& pool_;
};

void Execute(const Registers& registers, const Memory& memory) {
  CodeCache code(x86::kCarriedOut);
  Registers plain_registers = registers;
  Memory plain_memory = memory;
  Machine plain(plain_registers, plain_memory, code);
  const Stop plain_stop = plain.Run(kInsnsMax);

  ExprPool pool;
  ShadowMemory shadow(pool);
  ShadowCodeCache shadow_code(x86::kCarriedOut);
  AllUnknown observer(pool);
  Registers shadow_registers = registers;
  Memory shadow_memory = memory;
  ShadowMachine shadowed(shadow_registers, shadow_memory, shadow, shadow_code,
                         pool, observer);
  const Stop stop = shadowed.Run(kInsnsMax);

  CLEW_CHECK(stop.kind == plain_stop.kind &&
                 stop.insns_retired == plain_stop.insns_retired &&
                 stop.fault.kind == plain_stop.fault.kind &&
                 stop.fault.addr == plain_stop.fault.addr &&
                 stop.detail == plain_stop.detail,
             "stops: {} after {} and {} after {}, {:?}",
             static_cast<int>(plain_stop.kind), plain_stop.insns_retired,
             static_cast<int>(stop.kind), stop.insns_retired, stop.detail);
  CLEW_CHECK(shadow_registers == plain_registers, "registers differ at {:#x}",
             plain_registers.rip);
  CLEW_CHECK(shadow_memory.digest() == plain_memory.digest(),
             "memory differs at {:#x}", plain_registers.rip);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  if (size <= kHeadBytes) {
    return 0;
  }
  const auto code =
      input.subspan(kHeadBytes, std::min(size - kHeadBytes, kCodeBytesMax));
  for (size_t i = 0; i < std::min<size_t>(code.size(), kInsnsMax); ++i) {
    Decode(code.subspan(i));
  }
  Execute(RegistersOf(input.first(kHeadBytes)), MemoryOf(code));
  return 0;
}
