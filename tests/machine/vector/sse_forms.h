#ifndef CLEW_TESTS_MACHINE_VECTOR_SSE_FORMS_H_
#define CLEW_TESTS_MACHINE_VECTOR_SSE_FORMS_H_

#include <cstdint>
#include <optional>
#include <vector>

// Every SSE to SSE4.2, MMX and VEX instruction of machine/insn/sse_*.cc, by its
// encoding.

namespace clew::machine {

enum class OpcodeMap : uint8_t { k0f, k0f38, k0f3a };

// What ModRM.rm may be.
enum RmKinds : uint8_t {
  kRmXmm = 1,
  kRmGpr = 2,
  kRmMemAligned = 4,  // a whole register; misaligned is a protection fault
  kRmMem = 8,         // any alignment
  kRmMmx = 16,
};

enum class ImmKind : uint8_t { kNone, kEvery };

// For the tables of forms.
inline constexpr auto k0f = OpcodeMap::k0f;
inline constexpr auto k0f38 = OpcodeMap::k0f38;
inline constexpr auto k0f3a = OpcodeMap::k0f3a;
inline constexpr auto kEvery = ImmKind::kEvery;
inline constexpr uint8_t kInteger = kRmGpr | kRmMem;

// Shifts by an immediate, of the map 0F: ModRM.reg is `field`. Those of whole
// registers by bytes (PSLLDQ, PSRLDQ) have no MMX form.
struct ShiftByImm {
  uint8_t opcode;
  uint8_t field;
  bool of_bytes = false;
};
inline constexpr ShiftByImm kShiftsByImm[] = {
    {0x71, 2}, {0x71, 4}, {0x71, 6}, {0x72, 2},       {0x72, 4},
    {0x72, 6}, {0x73, 2}, {0x73, 6}, {0x73, 3, true}, {0x73, 7, true}};

struct SseForm {
  uint8_t prefix;  // 0, 0x66, 0xf2, 0xf3
  OpcodeMap map;
  uint8_t opcode;
  uint8_t rm;               // RmKinds
  bool reg_is_gpr = false;  // ModRM.reg is a general register
  ImmKind imm = ImmKind::kNone;
  std::optional<uint8_t> reg_field = std::nullopt;  // opcode extension
  bool rex_w = false;
  uint8_t vex_lanes = 0;  // with VEX, 1 or 2 by VEX.L; 0: a legacy encoding
  bool vvvv = false;      // with VEX.vvvv as first source
};
using SseForms = std::vector<SseForm>;

// Those that work on XMM registers only.
// RCPxS and RSQRTxS are not among them: what they approximate is no two CPUs'
// agreement.
SseForms AllSseForms();

// Those that work on MMX registers.
SseForms AllMmxForms();

// Those with VEX, but for moves under a mask, which need not access all of
// their memory operand, or any.
SseForms AllVexForms();
SseForms AllMaskedForms();
// FMA and F16C.
SseForms AllFusedForms();
// AES, PCLMULQDQ and SHA, with VEX and without.
SseForms AllCryptoForms();

// ModRM.rm in memory is [rsi].
struct Choice {
  uint8_t reg;
  uint8_t rm;
  bool memory;
  uint8_t vvvv = 0;
};

std::vector<uint8_t> Encode(const SseForm& form, Choice choice, uint8_t imm);
// Low and high registers, sources equal to each other and to the destination,
// memory: as far as the form has them.
std::vector<Choice> ChoicesFor(const SseForm& form);

}  // namespace clew::machine

#endif  // CLEW_TESTS_MACHINE_VECTOR_SSE_FORMS_H_
