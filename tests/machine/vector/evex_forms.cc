#include "tests/machine/vector/evex_forms.h"

#include <Zydis/Zydis.h>

#include <array>
#include <span>

#include "common/check.h"
#include "common/inputs.h"

namespace clew::machine {
namespace {

using x86::Feature;

// What Zydis calls a set of instructions begins with its name in CPUID. Sets
// that have no row here are left out.
struct NamedFeature {
  std::string_view prefix;
  Feature feature;
};
constexpr NamedFeature kFeaturesOfSets[] = {
    {"AVX512F_", Feature::kAvx512f},
    {"AVX512CD_", Feature::kAvx512cd},
    {"AVX512BW_", Feature::kAvx512bw},
    {"AVX512DQ_", Feature::kAvx512dq},
    {"AVX512_IFMA_", Feature::kAvx512Ifma},
    {"AVX512_VBMI_", Feature::kAvx512Vbmi},
    {"AVX512_VBMI2_", Feature::kAvx512Vbmi2},
    {"AVX512_VNNI_", Feature::kAvx512Vnni},
    {"AVX512_BITALG_", Feature::kAvx512Bitalg},
    {"AVX512_VPOPCNTDQ_", Feature::kAvx512Vpopcntdq},
    {"AVX512_GFNI_", Feature::kGfni},
    {"AVX512_VAES_", Feature::kVaes},
    {"AVX512_VPCLMULQDQ_", Feature::kVpclmulqdq},
};

x86::FeatureSet NeedsOf(ZydisISASet isa_set) {
  const std::string_view name = ZydisISASetGetString(isa_set);
  x86::FeatureSet needs;
  for (const auto& [prefix, feature] : kFeaturesOfSets) {
    if (name.starts_with(prefix)) {
      needs = {Feature::kAvx512f, feature};
    }
  }
  if (!needs.empty() && (name.ends_with("_128") || name.ends_with("_256"))) {
    needs.Add(Feature::kAvx512vl);
  }
  return needs;
}

EvexField FieldOf(const ZydisDecodedOperand& operand) {
  if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) {
    return EvexField::kNothing;
  }
  switch (ZydisRegisterGetClass(operand.reg.value)) {
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM:
      return EvexField::kVector;
    case ZYDIS_REGCLASS_GPR32:
    case ZYDIS_REGCLASS_GPR64:
      return EvexField::kGpr;
    case ZYDIS_REGCLASS_MASK:
      return EvexField::kOpmask;
    default:
      return EvexField::kNothing;
  }
}

class FormFinder {
 public:
  FormFinder() {
    CLEW_CHECK(
        ZYAN_SUCCESS(ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64,
                                      ZYDIS_STACK_WIDTH_64)),
        "zydis cannot be opened");
  }

  // Adds `form` for each value of ModRM.reg that is an opcode extension, or
  // once.
  void Add(EvexForm form, EvexForms& forms) {
    for (uint8_t field = 0; field < 8; ++field) {
      form.reg_field = field;
      if (Complete(form)) {
        forms.push_back(form);
        if (!form.reg_field) {
          return;
        }
      }
    }
  }

 private:
  // Whether it is an instruction, with any operands.
  bool Accepts(const EvexForm& form, const EvexChoice& choice) {
    const std::vector<uint8_t> code = Encode(form, choice, 0);
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(
               &decoder_, code.data(), code.size(), &raw_, operands_.data())) &&
           raw_.length == code.size();
  }

  // False if there is no such instruction. REQUIRES: only what says how it is
  // encoded is set, with `reg_field`.
  bool Complete(EvexForm& form) {
    for (const bool has_imm : {false, true}) {
      form.has_imm = has_imm;
      form.must_mask = false;
      if (Accepts(form, {})) {
        return Describe(form);
      }
      form.must_mask = !form.vex && Accepts(form, {.opmask = 1});
      if (form.must_mask) {
        return Describe(form);
      }
    }
    return false;
  }

  // Takes over what the decoder found.
  bool Describe(EvexForm& form) {
    form.mnemonic = ZydisMnemonicGetString(raw_.mnemonic);
    form.needs = NeedsOf(raw_.meta.isa_set);
    form.aligned = raw_.meta.exception_class == ZYDIS_EXCEPTION_CLASS_E1 ||
                   raw_.meta.exception_class == ZYDIS_EXCEPTION_CLASS_E1NF;
    if (form.needs.empty() ||
        (form.vex && raw_.meta.category != ZYDIS_CATEGORY_KMASK)) {
      return false;
    }
    for (const auto& operand : std::span(operands_).first(raw_.operand_count)) {
      DescribeOperand(operand, form);
    }
    form.writemask = !form.vex && Accepts(form, {.opmask = 1});
    form.zeroing = !form.vex && Accepts(form, {.opmask = 1, .zeroing = true});
    return true;
  }

  static void DescribeOperand(const ZydisDecodedOperand& operand,
                              EvexForm& form) {
    switch (operand.encoding) {
      case ZYDIS_OPERAND_ENCODING_MODRM_REG:
        form.reg = FieldOf(operand);
        form.reg_field = std::nullopt;
        break;
      case ZYDIS_OPERAND_ENCODING_MODRM_RM:
        form.rm = FieldOf(operand);
        if (form.in_memory()) {
          form.memory_bytes = static_cast<uint8_t>(operand.size / 8);
        }
        break;
      case ZYDIS_OPERAND_ENCODING_NDSNDD:
        form.vvvv = FieldOf(operand);
        break;
      default:
        break;
    }
  }

  ZydisDecoder decoder_;
  ZydisDecodedInstruction raw_;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands_;
};

// Every opcode of a map, with every prefix, and with W set and clear.
template <class F>
void EachOpcode(uint8_t map, F f) {
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    for (uint8_t pp = 0; pp < 4; ++pp) {
      for (const bool w : {false, true}) {
        EvexForm form;
        form.map = map;
        form.opcode = static_cast<uint8_t>(opcode);
        form.pp = pp;
        form.w = w;
        f(form);
      }
    }
  }
}

struct EvexLists {
  EvexForms plain;
  EvexForms vsib;
};

void AddEvex(FormFinder& finder, EvexForm form, EvexLists& lists) {
  for (const bool b : {false, true}) {
    form.b = b;
    for (uint8_t length = 0; length < 4; ++length) {
      form.length = length;
      form.rm_kind = EvexRm::kRegister;
      finder.Add(form, lists.plain);
      form.rm_kind = EvexRm::kMemory;
      const size_t before = lists.plain.size();
      finder.Add(form, lists.plain);
      if (lists.plain.size() == before) {
        form.rm_kind = EvexRm::kElements;
        finder.Add(form, lists.vsib);
      }
    }
  }
}

const EvexLists& Lists() {
  static const EvexLists lists = [] {
    FormFinder finder;
    EvexLists result;
    for (uint8_t map = 1; map <= 3; ++map) {
      EachOpcode(map,
                 [&](const EvexForm& form) { AddEvex(finder, form, result); });
    }
    return result;
  }();
  return lists;
}

EvexForms FindOpmaskForms() {
  FormFinder finder;
  EvexForms forms;
  for (const uint8_t map : {uint8_t{1}, uint8_t{3}}) {
    EachOpcode(map, [&](EvexForm form) {
      form.vex = true;
      for (uint8_t length = 0; length < 2; ++length) {
        form.length = length;
        for (const EvexRm kind : {EvexRm::kRegister, EvexRm::kMemory}) {
          form.rm_kind = kind;
          finder.Add(form, forms);
        }
      }
    });
  }
  return forms;
}

unsigned Bit(unsigned value, unsigned n) { return value >> n & 1; }

constexpr unsigned kIndexRegister = 13;  // [r14 + 2 * r13]
constexpr unsigned kBaseRegister = 14;

// The bits of registers that are no part of ModRM and SIB: 3 and 4 of reg, of
// rm, or of base and index. (EVEX.X is bit 4 of rm, bit 3 of an index.)
struct HighBits {
  unsigned reg3, reg4, x, b, index4;
};

HighBits HighBitsOf(const EvexForm& form, const EvexChoice& choice) {
  const unsigned reg = form.reg_field ? 0 : choice.reg;
  HighBits high = {Bit(reg, 3), Bit(reg, 4), 0, 0, 0};
  switch (form.rm_kind) {
    case EvexRm::kRegister:
      high.b = Bit(choice.rm, 3);
      high.x = Bit(choice.rm, 4);
      break;
    case EvexRm::kMemory:
      high.b = choice.indexed ? Bit(kBaseRegister, 3) : 0;
      high.x = choice.indexed ? Bit(kIndexRegister, 3) : 0;
      break;
    case EvexRm::kElements:
      high.x = Bit(choice.index, 3);
      high.index4 = Bit(choice.index, 4);
      break;
  }
  return high;
}

// All but W, pp, L'L, b, z, aaa and the map are inverted.
void AppendEvex(const EvexForm& form, const EvexChoice& choice,
                std::vector<uint8_t>& code) {
  const auto [reg3, reg4, x, b, index4] = HighBitsOf(form, choice);
  const unsigned v4 =
      form.rm_kind == EvexRm::kElements ? index4 : Bit(choice.vvvv, 4);
  const unsigned p0 = (reg3 << 7 | x << 6 | b << 5 | reg4 << 4) ^ 0xf0;
  const unsigned p1 =
      (form.w ? 0x80u : 0u) | ((choice.vvvv & 15u) ^ 15u) << 3 | 4u | form.pp;
  const unsigned p2 = (choice.zeroing ? 0x80u : 0u) | form.length << 5u |
                      (form.b ? 0x10u : 0u) | (v4 ^ 1) << 3 | choice.opmask;
  code.insert(code.end(), {0x62, static_cast<uint8_t>(p0 | form.map),
                           static_cast<uint8_t>(p1), static_cast<uint8_t>(p2),
                           form.opcode});
}

// VEX, of two bytes where that is possible.
void AppendVex(const EvexForm& form, const EvexChoice& choice,
               std::vector<uint8_t>& code) {
  const auto [reg3, reg4, x, b, index4] = HighBitsOf(form, choice);
  const unsigned r = (reg3 ^ 1) << 7;
  const unsigned last =
      ((choice.vvvv & 15u) ^ 15u) << 3 | form.length << 2u | form.pp;
  if (form.map == 1 && !form.w && x == 0 && b == 0) {
    code.insert(code.end(), {0xc5, static_cast<uint8_t>(r | last)});
  } else {
    const unsigned first = r | (x ^ 1) << 6 | (b ^ 1) << 5 | form.map;
    code.insert(code.end(),
                {0xc4, static_cast<uint8_t>(first),
                 static_cast<uint8_t>((form.w ? 0x80u : 0u) | last)});
  }
  code.push_back(form.opcode);
}

// ModRM, SIB and displacement.
void AppendOperands(const EvexForm& form, const EvexChoice& choice,
                    std::vector<uint8_t>& code) {
  constexpr unsigned kSib = 4;
  const unsigned reg = form.reg_field.value_or(choice.reg) & 7u;
  const bool vsib = form.rm_kind == EvexRm::kElements;
  const bool sib = vsib || choice.indexed;
  const unsigned mod = !form.in_memory() ? 3u : choice.disp8 ? 1u : 0u;
  const unsigned place = sib ? kSib : unsigned{kRsi};
  const unsigned rm = form.in_memory() ? place : choice.rm & 7u;
  code.push_back(static_cast<uint8_t>(mod << 6 | reg << 3 | rm));
  if (form.in_memory() && sib) {
    const unsigned scale = vsib ? choice.scale : 1;
    const unsigned index = (vsib ? choice.index : kIndexRegister) & 7;
    const unsigned base = (vsib ? unsigned{kRsi} : kBaseRegister) & 7;
    code.push_back(static_cast<uint8_t>(scale << 6 | index << 3 | base));
  }
  if (form.in_memory() && choice.disp8) {
    code.push_back(static_cast<uint8_t>(*choice.disp8));
  }
}

}  // namespace

const EvexForms& AllEvexForms() { return Lists().plain; }

const EvexForms& AllVsibForms() { return Lists().vsib; }

const EvexForms& AllOpmaskForms() {
  static const EvexForms forms = FindOpmaskForms();
  return forms;
}

std::vector<uint8_t> Encode(const EvexForm& form, const EvexChoice& choice,
                            uint8_t imm) {
  std::vector<uint8_t> code;
  code.reserve(16);
  if (form.vex) {
    AppendVex(form, choice, code);
  } else {
    AppendEvex(form, choice, code);
  }
  AppendOperands(form, choice, code);
  if (form.has_imm) {
    code.push_back(imm);
  }
  return code;
}

}  // namespace clew::machine
