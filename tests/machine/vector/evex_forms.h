#ifndef CLEW_TESTS_MACHINE_VECTOR_EVEX_FORMS_H_
#define CLEW_TESTS_MACHINE_VECTOR_EVEX_FORMS_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/x86/features.h"

// Every instruction with EVEX, and those with VEX on opmask registers, by its
// encoding: all encodings that Zydis knows of the features named at `needs`.
// Left out are those of AVX512_FP16, AVX512_BF16, AVX512ER, AVX512PF,
// AVX512_4FMAPS, AVX512_4VNNIW and AVX512_VP2INTERSECT.

namespace clew::machine {

// What a field of an encoding names.
enum class EvexField : uint8_t { kNothing, kVector, kGpr, kOpmask };

// What ModRM.rm is.
enum class EvexRm : uint8_t {
  kRegister,
  kMemory,
  kElements,  // memory at an address for each element: VSIB
};

struct EvexForm {
  std::string_view mnemonic;  // lives as long as the program
  x86::FeatureSet needs;      // of those that came with AVX-512

  bool vex = false;  // with VEX; else EVEX
  uint8_t map = 1;   // EVEX.mmm: 0F, 0F 38, 0F 3A
  uint8_t opcode = 0;
  uint8_t pp = 0;
  bool w = false;
  // EVEX.L'L; VEX.L. With `b` and a register it is how to round, and the vector
  // length is 512 bits.
  uint8_t length = 0;
  bool b = false;  // EVEX.b: memory is one element; static rounding, SAE
  EvexRm rm_kind = EvexRm::kRegister;
  std::optional<uint8_t> reg_field = std::nullopt;  // opcode extension

  EvexField reg = EvexField::kNothing;
  EvexField rm = EvexField::kNothing;  // kNothing: memory
  EvexField vvvv = EvexField::kNothing;
  bool has_imm = false;

  bool writemask = false;  // may have one
  bool must_mask = false;  // has to
  bool zeroing = false;    // may be a zeroing one
  uint8_t memory_bytes = 0;
  bool aligned = false;  // memory that is not is a protection fault

  bool in_memory() const { return rm_kind != EvexRm::kRegister; }
};
using EvexForms = std::vector<EvexForm>;

// Those with EVEX, but for VSIB. Made once.
const EvexForms& AllEvexForms();
// VPGATHERxx, VGATHERxPx, VPSCATTERxx, VSCATTERxPx.
const EvexForms& AllVsibForms();
// KMOVx and its kin, with VEX.
const EvexForms& AllOpmaskForms();

// The operands of an encoding.
struct EvexChoice {
  uint8_t reg = 1;
  uint8_t rm = 2;  // of memory: see `indexed`
  uint8_t vvvv = 0;
  uint8_t opmask = 0;  // the writemask; 0: none
  bool zeroing = false;
  // Times what the form's memory tuple has as its unit; nullopt: none.
  std::optional<int8_t> disp8 = std::nullopt;
  bool indexed = false;  // memory is [r14 + 2 * r13], not [rsi]
  uint8_t index = 3;     // VSIB is [rsi + index * (1 << scale)]
  uint8_t scale = 2;
};

std::vector<uint8_t> Encode(const EvexForm& form, const EvexChoice& choice,
                            uint8_t imm);

}  // namespace clew::machine

#endif  // CLEW_TESTS_MACHINE_VECTOR_EVEX_FORMS_H_
