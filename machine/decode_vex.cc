#include "machine/decode_vex.h"

#include <Zydis/Zydis.h>

#include <array>
#include <bit>
#include <string_view>

#include "common/check.h"

namespace clew::machine {
namespace {

using x86::Feature;
using x86::FeatureSet;
using x86::OpcodeMap;

// What Zydis calls a set of instructions begins so.
struct NamedFeature {
  std::string_view prefix;
  Feature feature;
};
constexpr NamedFeature kNamedFeatures[] = {
    {"AVX2", Feature::kAvx2},
    {"GFNI", Feature::kGfni},
    {"SERIALIZE", Feature::kSerialize},
    {"AVX_GFNI", Feature::kGfni},
    {"VAES", Feature::kVaes},
    {"VPCLMULQDQ", Feature::kVpclmulqdq},
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

// Empty: it is of a set that no CPU with rows of CLEW_CPU_FEATURES has (Zydis
// knows Knights Corner's, whose encodings with VEX have legacy mnemonics), or
// that has no handler.
FeatureSet NeedsOf(const ZydisDecodedInstruction& raw) {
  const std::string_view set = ZydisISASetGetString(raw.meta.isa_set);
  FeatureSet needs;
  for (const auto& [prefix, feature] : kNamedFeatures) {
    if (set.starts_with(prefix)) {
      needs.Add(feature);
    }
  }
  if (!needs.empty() && (set.ends_with("_128") || set.ends_with("_256"))) {
    needs.Add(Feature::kAvx512vl);
  }
  return needs;
}

uint8_t NumberOf(ZydisRegister id) {
  return static_cast<uint8_t>(ZydisRegisterGetId(id));
}

// A register that an instruction may address memory by, or none.
uint8_t AddressRegisterOf(ZydisRegister id) {
  return id == ZYDIS_REGISTER_NONE ? MemOperand::kNoReg : NumberOf(id);
}

Operand OperandOf(ZydisRegister id) {
  const uint8_t number = NumberOf(id);
  switch (ZydisRegisterGetClass(id)) {
    case ZYDIS_REGCLASS_GPR8:
    case ZYDIS_REGCLASS_GPR16:
    case ZYDIS_REGCLASS_GPR32:
    case ZYDIS_REGCLASS_GPR64: {
      const auto bits = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, id);
      return {OperandKind::kReg, static_cast<uint8_t>(bits / 8),
              static_cast<uint8_t>(8 * number)};
    }
    case ZYDIS_REGCLASS_XMM:
      return {OperandKind::kVec, 16, number};
    case ZYDIS_REGCLASS_YMM:
      return {OperandKind::kVec, 32, number};
    case ZYDIS_REGCLASS_ZMM:
      return {OperandKind::kVec, 64, number};
    case ZYDIS_REGCLASS_MASK:
      return {OperandKind::kMask, 8, number};
    default:
      return {OperandKind::kOther, 0, 0};
  }
}

bool IsVector(ZydisRegister id) {
  const ZydisRegisterClass its_class = ZydisRegisterGetClass(id);
  return its_class == ZYDIS_REGCLASS_XMM || its_class == ZYDIS_REGCLASS_YMM ||
         its_class == ZYDIS_REGCLASS_ZMM;
}

MemOperand MemoryOf(const ZydisDecodedOperandMem& mem, const Insn& insn) {
  MemOperand result;
  result.segment = insn.mem.segment;
  result.disp = mem.disp.value;
  if (IsVector(mem.index)) {
    result.vector_index = NumberOf(mem.index);
  } else {
    result.index = AddressRegisterOf(mem.index);
  }
  result.shift = static_cast<uint8_t>(
      mem.scale != 0 ? std::countr_zero(unsigned{mem.scale}) : 0);
  if (mem.base == ZYDIS_REGISTER_RIP || mem.base == ZYDIS_REGISTER_EIP) {
    result.disp += static_cast<int64_t>(insn.next_ip());
  } else {
    result.base = AddressRegisterOf(mem.base);
  }
  return result;
}

// The writemask is Insn::opmask and no operand.
void SetVexOperands(std::span<const ZydisDecodedOperand> operands, Insn& insn) {
  for (const ZydisDecodedOperand& raw : operands) {
    if (raw.encoding == ZYDIS_OPERAND_ENCODING_MASK ||
        raw.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN ||
        insn.op_count == insn.op.size()) {
      continue;
    }
    Operand& operand = insn.op[insn.op_count++];
    switch (raw.type) {
      case ZYDIS_OPERAND_TYPE_REGISTER:
        operand = OperandOf(raw.reg.value);
        break;
      case ZYDIS_OPERAND_TYPE_MEMORY:
        operand = {OperandKind::kMem, static_cast<uint8_t>(raw.size / 8), 0};
        insn.mem = MemoryOf(raw.mem, insn);
        break;
      case ZYDIS_OPERAND_TYPE_IMMEDIATE:
        operand = {OperandKind::kImm, 1, 0};
        insn.imm = static_cast<int64_t>(raw.imm.value.u);
        break;
      default:
        break;
    }
  }
}

Rounding RoundingOf(const ZydisDecodedInstruction& raw) {
  switch (raw.avx.rounding.mode) {
    case ZYDIS_ROUNDING_MODE_RN:
      return Rounding::kNearest;
    case ZYDIS_ROUNDING_MODE_RD:
      return Rounding::kDown;
    case ZYDIS_ROUNDING_MODE_RU:
      return Rounding::kUp;
    case ZYDIS_ROUNDING_MODE_RZ:
      return Rounding::kTowardsZero;
    default:
      return raw.avx.has_sae != 0 ? Rounding::kSuppressExceptions
                                  : Rounding::kByMxcsr;
  }
}

void SetEvex(const ZydisDecodedInstruction& raw, Insn& insn) {
  insn.evex = true;
  insn.vector_bytes = static_cast<uint8_t>(raw.avx.vector_length / 8);
  insn.opmask = raw.avx.mask.reg != ZYDIS_REGISTER_NONE
                    ? NumberOf(raw.avx.mask.reg)
                    : uint8_t{0};
  insn.zeroing = raw.avx.mask.mode == ZYDIS_MASK_MODE_ZEROING ||
                 raw.avx.mask.mode == ZYDIS_MASK_MODE_CONTROL_ZEROING;
  insn.broadcast = raw.avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID &&
                   raw.avx.broadcast.is_static == 0;
  insn.rounding = RoundingOf(raw);
}

// KMOVB and its kin, of which VEX has no others in these rows. Source: Intel
// SDM vol. 2, "Opcode Map".
bool IsOpmaskOpcode(const x86::Opcode& opcode) {
  const uint8_t row = opcode.code >> 4;
  return (opcode.map == OpcodeMap::k0F && (row == 4 || row == 9)) ||
         (opcode.map == OpcodeMap::k0F3A && row == 3 &&
          (opcode.code & 0xf) < 4);
}

}  // namespace

struct VexDecoder::Impl {
  Impl() {
    CLEW_CHECK(
        ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
                                      ZYDIS_STACK_WIDTH_64)) &&
            ZYAN_SUCCESS(
                ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL)),
        "zydis cannot be opened");
  }

  bool Decode(std::span<const uint8_t> code) {
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(
               &decoder, code.data(), code.size(), &raw, operands.data())) &&
           raw.length == code.size();
  }

  ZydisDecoder decoder;
  ZydisFormatter formatter;
  ZydisDecodedInstruction raw;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
};

VexDecoder::VexDecoder() : impl_(std::make_unique<Impl>()) {}
VexDecoder::~VexDecoder() = default;
VexDecoder::VexDecoder(VexDecoder&&) noexcept = default;
VexDecoder& VexDecoder::operator=(VexDecoder&&) noexcept = default;

bool CapstoneKnowsLittleOf(const x86::Layout& layout) {
  switch (layout.opcode.encoding) {
    case x86::Encoding::kEvex:
      return true;
    case x86::Encoding::kVex2:
    case x86::Encoding::kVex3:
      return IsOpmaskOpcode(layout.opcode);
    default:
      return false;
  }
}

void VexDecoder::Decode(std::span<const uint8_t> code, Decoded& result) {
  const ZydisDecodedInstruction& raw = impl_->raw;
  if (!impl_->Decode(code) || NeedsOf(raw).empty()) {
    result.status = DecodeStatus::kUnknown;
    return;
  }
  SetVexOperands(std::span(impl_->operands).first(raw.operand_count),
                 result.insn);
  if (raw.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX) {
    SetEvex(raw, result.insn);
  }
  result.mnemonic = ZydisMnemonicGetString(raw.mnemonic);
  result.needs = NeedsOf(raw);
  result.status = DecodeStatus::kOk;
}

std::string VexDecoder::Describe(uint64_t ip, std::span<const uint8_t> code) {
  std::array<char, 128> text = {};
  if (!impl_->Decode(code) ||
      !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(
          &impl_->formatter, &impl_->raw, impl_->operands.data(),
          impl_->raw.operand_count_visible, text.data(), text.size(), ip,
          nullptr))) {
    return "unknown instruction";
  }
  return text.data();
}

}  // namespace clew::machine
