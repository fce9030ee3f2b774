#include "machine/decode.h"

#include <capstone/capstone.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "common/check.h"
#include "common/x86/branch.h"
#include "common/x86/layout.h"
#include "machine/decode_vex.h"
#include "machine/registers.h"

namespace clew::machine {
namespace {

using x86::Feature;
using x86::FeatureSet;
using x86::Layout;
using x86::LayoutStatus;
using x86::Opcode;
using x86::OpcodeMap;

// Operands of the registers of one width, in the order of their numbers.
struct RegisterClass {
  std::array<x86_reg, 16> ids;
  uint8_t size_bytes;
};

constexpr RegisterClass kClasses[] = {
    {{X86_REG_RAX, X86_REG_RCX, X86_REG_RDX, X86_REG_RBX, X86_REG_RSP,
      X86_REG_RBP, X86_REG_RSI, X86_REG_RDI, X86_REG_R8, X86_REG_R9,
      X86_REG_R10, X86_REG_R11, X86_REG_R12, X86_REG_R13, X86_REG_R14,
      X86_REG_R15},
     8},
    {{X86_REG_EAX, X86_REG_ECX, X86_REG_EDX, X86_REG_EBX, X86_REG_ESP,
      X86_REG_EBP, X86_REG_ESI, X86_REG_EDI, X86_REG_R8D, X86_REG_R9D,
      X86_REG_R10D, X86_REG_R11D, X86_REG_R12D, X86_REG_R13D, X86_REG_R14D,
      X86_REG_R15D},
     4},
    {{X86_REG_AX, X86_REG_CX, X86_REG_DX, X86_REG_BX, X86_REG_SP, X86_REG_BP,
      X86_REG_SI, X86_REG_DI, X86_REG_R8W, X86_REG_R9W, X86_REG_R10W,
      X86_REG_R11W, X86_REG_R12W, X86_REG_R13W, X86_REG_R14W, X86_REG_R15W},
     2},
    {{X86_REG_AL, X86_REG_CL, X86_REG_DL, X86_REG_BL, X86_REG_SPL, X86_REG_BPL,
      X86_REG_SIL, X86_REG_DIL, X86_REG_R8B, X86_REG_R9B, X86_REG_R10B,
      X86_REG_R11B, X86_REG_R12B, X86_REG_R13B, X86_REG_R14B, X86_REG_R15B},
     1},
};
constexpr std::array<x86_reg, 4> kHighBytes = {X86_REG_AH, X86_REG_CH,
                                               X86_REG_DH, X86_REG_BH};

using RegisterTable = std::array<Operand, X86_REG_ENDING>;

RegisterTable MakeRegisterTable() {
  RegisterTable table;
  table.fill({OperandKind::kOther, 0, 0});
  for (const RegisterClass& regs : kClasses) {
    for (uint8_t i = 0; i < 16; ++i) {
      table[regs.ids[i]] = {OperandKind::kReg, regs.size_bytes,
                            static_cast<uint8_t>(8 * i)};
    }
  }
  for (uint8_t i = 0; i < 4; ++i) {
    table[kHighBytes[i]] = {OperandKind::kReg, 1,
                            static_cast<uint8_t>(8 * i + 1)};
  }
  for (uint8_t i = 0; i < kVecRegisters; ++i) {
    table[X86_REG_XMM0 + i] = {OperandKind::kVec, 16, i};
    table[X86_REG_YMM0 + i] = {OperandKind::kVec, 32, i};
  }
  for (uint8_t i = 0; i < 8; ++i) {
    table[X86_REG_ST0 + i] = {OperandKind::kX87, 10, i};
    table[X86_REG_MM0 + i] = {OperandKind::kMmx, 8, i};
  }
  return table;
}

Operand RegisterOperand(x86_reg id) {
  static const RegisterTable table = MakeRegisterTable();
  return table[id];
}

// The number of an address register, MemOperand::kNoReg for none.
uint8_t AddressRegister(x86_reg id) {
  if (id == X86_REG_INVALID || id == X86_REG_RIZ || id == X86_REG_EIZ) {
    return MemOperand::kNoReg;
  }
  return static_cast<uint8_t>(RegisterOperand(id).reg / 8);
}

MemOperand MemoryOperand(const cs_insn& raw, const x86_op_mem& mem) {
  MemOperand result;
  result.disp = mem.disp;
  const Operand index = RegisterOperand(mem.index);
  if (index.is_vec()) {
    result.vector_index = index.reg;
  } else {
    result.index = AddressRegister(mem.index);
  }
  for (int scale = mem.scale; scale > 1; scale /= 2) {
    ++result.shift;
  }
  if (mem.base == X86_REG_RIP || mem.base == X86_REG_EIP) {
    result.disp += static_cast<int64_t>(raw.address + raw.size);
  } else {
    result.base = AddressRegister(mem.base);
  }
  return result;
}

void SetOperands(const cs_insn& raw, Insn& insn) {
  const cs_x86& x86 = raw.detail->x86;
  insn.op_count = std::min(x86.op_count, static_cast<uint8_t>(insn.op.size()));
  for (size_t i = 0; i < insn.op_count; ++i) {
    const cs_x86_op& op = x86.operands[i];
    switch (op.type) {
      case X86_OP_REG:
        insn.op[i] = RegisterOperand(op.reg);
        break;
      case X86_OP_IMM:
        insn.op[i] = {OperandKind::kImm, op.size, 0};
        insn.imm = op.imm;
        break;
      case X86_OP_MEM:
        insn.op[i] = {OperandKind::kMem, op.size, 0};
        insn.mem = MemoryOperand(raw, op.mem);
        break;
      default:
        break;
    }
  }
}

// Targets of relative branches; Capstone cuts some of them to 16 bits.
void RepairTarget(const x86::Branch& branch, Insn& insn) {
  if (x86::IsRelative(branch.branch_class)) {
    insn.imm = branch.displacement + static_cast<int64_t>(insn.next_ip());
  }
}

// CMPPS and its kin, legacy and VEX.
bool IsVectorComparison(const Insn& insn) {
  return insn.opcode[0] == 0x0f && insn.opcode[1] == 0xc2;
}

// TZCNT and LZCNT. A CPU that does not have them ignores their prefix F3 (SDM
// vol. 2, "TZCNT").
struct ZeroCount {
  uint8_t opcode;
  std::string_view name;
  std::string_view otherwise;
  Feature needs;
};
constexpr ZeroCount kZeroCounts[] = {{0xbc, "tzcnt", "bsf", Feature::kBmi1},
                                     {0xbd, "lzcnt", "bsr", Feature::kLzcnt}};

// Returns which of them it is, wherever the prefix stands; nullptr: none.
const ZeroCount* ZeroCountOf(const Insn& insn) {
  for (const ZeroCount& count : kZeroCounts) {
    if (insn.rep && insn.vector_bytes == 0 && insn.opcode[0] == 0x0f &&
        insn.opcode[1] == count.opcode) {
      return &count;
    }
  }
  return nullptr;
}

// Capstone spells the predicate of CMPPS and its kin into the mnemonic and
// drops the immediate; ENTER has two immediates.
void RepairImmediates(std::span<const uint8_t> bytes, Insn& insn) {
  const unsigned operands = insn.vector_bytes == 0 ? 3 : 4;
  if (IsVectorComparison(insn) && insn.op_count < operands) {
    insn.op[insn.op_count++] = {OperandKind::kImm, 1, 0};
    insn.imm = static_cast<int64_t>(bytes.back());
  } else if (insn.opcode[0] == 0xc8) {
    const auto at = [&](size_t from_end) {
      return static_cast<int64_t>(bytes[bytes.size() - from_end]);
    };
    insn.imm = at(3) | at(2) << 8 | at(1) << 16;
  }
}

// MOVSXD without REX.W moves 32 bits; Capstone shows a 64-bit register.
void RepairSizes(Insn& insn) {
  if (insn.opcode[0] == 0x63 && !insn.rex_w) {
    insn.op[0].size_bytes = insn.operand_size_bytes;
  }
}

// LOCK needs memory to write to. (Most other misuse is unknown to Capstone.)
bool LockIsIllegal(const Insn& insn) {
  const bool hint = insn.opcode[0] == 0x0f && insn.opcode[1] >= 0x18 &&
                    insn.opcode[1] <= 0x1f;
  const bool exchange = insn.opcode[0] == 0x86 || insn.opcode[0] == 0x87;
  return insn.lock && (hint || (!insn.op[0].is_mem() && !exchange));
}

// XSAVEC has no meaning for these prefixes: #UD (SDM vol. 2, "XSAVEC", NP).
bool PrefixIsIllegal(const cs_insn& raw, const Insn& insn) {
  return (raw.id == X86_INS_XSAVEC || raw.id == X86_INS_XSAVEC64) &&
         (insn.opsize || insn.rep || insn.repne);
}

// VPGATHERDD and its kin, the only ones of these opcodes with VEX, need a
// vector in their address, which SIB names (SDM vol. 2, "VSIB Memory
// Addressing").
bool LacksVectorIndex(const Layout& layout) {
  const x86::Opcode& opcode = layout.opcode;
  return opcode.encoding == x86::Encoding::kVex3 &&
         opcode.map == x86::OpcodeMap::k0F38 && opcode.code >= 0x90 &&
         opcode.code <= 0x93 && !layout.sib;
}

bool IsMoveToCs(const cs_insn& raw) {
  return raw.id == X86_INS_MOV && raw.detail->x86.operands[0].reg == X86_REG_CS;
}

// Opcodes of the 0F map for which 66, F2, F3 are not mandatory prefixes.
bool IsIntegerOpcode(uint8_t code) {
  return (code >= 0x40 && code <= 0x4f) || (code >= 0x80 && code <= 0xb7) ||
         code == 0xba || code == 0xbb || code == 0xbe || code == 0xbf ||
         code == 0xc0 || code == 0xc1 || (code >= 0xc8 && code <= 0xcf);
}

// Prefixes that no compiler makes and Capstone reads wrongly: a REX that does
// nothing; 66 together with F2 or F3 where neither is a mandatory prefix (it
// gets the operand size wrong, but for string instructions).
bool IsMisread(const Opcode& opcode) {
  const x86::Prefixes& prefixes = opcode.prefixes;
  const bool string = opcode.IsLegacy(OpcodeMap::kOneByte) &&
                      opcode.code >= 0xa4 && opcode.code <= 0xaf;
  const bool mandatory = opcode.IsLegacy(OpcodeMap::k0F)
                             ? !IsIntegerOpcode(opcode.code)
                             : !opcode.IsLegacy(OpcodeMap::kOneByte);
  return prefixes.ignored_rex ||
         (prefixes.operand_size && (prefixes.rep || prefixes.repne) &&
          !string && !mandatory);
}

// The opcode's bytes, as they are encoded.
std::array<uint8_t, 3> OpcodeBytes(const Opcode& opcode) {
  switch (opcode.map) {
    case OpcodeMap::k0F:
      return {0x0f, opcode.code, 0};
    case OpcodeMap::k0F38:
      return {0x0f, 0x38, opcode.code};
    case OpcodeMap::k0F3A:
      return {0x0f, 0x3a, opcode.code};
    default:
      return {opcode.code, 0, 0};
  }
}

// Fills the fields of `insn` that the bytes up to ModRM decide.
void ApplyLayout(const Layout& layout, Insn& insn) {
  const x86::Prefixes& prefixes = layout.opcode.prefixes;
  insn.lock = prefixes.lock;
  insn.rep = prefixes.rep;
  insn.repne = prefixes.repne;
  insn.opsize = prefixes.operand_size;
  insn.addr32 = prefixes.address_size;
  insn.rex_w = prefixes.w();
  insn.operand_size_bytes = insn.rex_w ? 8 : insn.opsize ? 2 : 4;
  insn.vector_bytes = layout.opcode.vector_bytes;
  insn.mem.segment = prefixes.segment;
  insn.opcode = OpcodeBytes(layout.opcode);
  insn.modrm = layout.modrm.value_or(0);
}

// RDSSPD and RDSSPQ, which Capstone does not know and every C++ throw executes
// (libgcc's unwinder). They do nothing where there is no shadow stack: the CPU
// that the recorder presents has none.
bool IsShadowStackRead(const Layout& layout) {
  return layout.opcode.prefixes.rep && layout.opcode.IsLegacy(OpcodeMap::k0F) &&
         layout.opcode.code == 0x1e && layout.modrm &&
         (*layout.modrm & 0xf8) == 0xc8;
}

Decoded DecodeShadowStackRead(uint64_t ip, const Layout& layout) {
  Decoded result;
  result.insn.ip = ip;
  result.insn.length = layout.length;
  ApplyLayout(layout, result.insn);
  result.mnemonic = "nop";
  result.status = DecodeStatus::kOk;
  return result;
}

// What the layout alone tells: kOk if the rest is for Capstone to say.
DecodeStatus StatusOf(const Layout& layout) {
  if (layout.status == LayoutStatus::kTruncated) {
    return DecodeStatus::kTooShort;
  }
  const bool legacy = layout.opcode.encoding == x86::Encoding::kLegacy;
  // SDM vol. 2, "VEX Prefix Instruction Format": with one of these before VEX
  // or EVEX, #UD.
  const x86::Prefixes& prefixes = layout.opcode.prefixes;
  const bool refused =
      prefixes.lock || prefixes.rep || prefixes.repne || prefixes.operand_size;
  if (layout.status == LayoutStatus::kUndefined && (legacy || refused)) {
    return DecodeStatus::kIllegal;
  }
  // Other undefined ones may be defined on a later CPU.
  if (layout.status == LayoutStatus::kUndefined) {
    return DecodeStatus::kUnknown;
  }
  return IsMisread(layout.opcode) ? DecodeStatus::kUnknown : DecodeStatus::kOk;
}

// The name without the predicate, which Capstone spells into it.
std::string_view ComparisonName(std::string_view spelled, const Insn& insn) {
  constexpr std::string_view kNames[] = {"vcmpps", "vcmppd", "vcmpss",
                                         "vcmpsd"};
  for (const std::string_view name : kNames) {
    if (spelled.ends_with(name.substr(name.size() - 2))) {
      return insn.vector_bytes == 0 ? name.substr(1) : name;
    }
  }
  return spelled;
}

std::string_view Name(csh handle, const cs_insn& raw, const Insn& insn) {
  if (raw.id == X86_INS_MOVSD && insn.opcode[0] == 0xa5) {
    return "movsd$string";
  }
  if (raw.id == X86_INS_CMPSD && insn.opcode[0] == 0xa7) {
    return "cmpsd$string";
  }
  const std::string_view name = cs_insn_name(handle, raw.id);
  return IsVectorComparison(insn) ? ComparisonName(name, insn) : name;
}

struct GroupFeature {
  x86_insn_group group;
  Feature feature;
};
constexpr GroupFeature kGroupFeatures[] = {
    {X86_GRP_SSE3, Feature::kSse3},   {X86_GRP_SSSE3, Feature::kSsse3},
    {X86_GRP_SSE41, Feature::kSse41}, {X86_GRP_SSE42, Feature::kSse42},
    {X86_GRP_AES, Feature::kAes},     {X86_GRP_PCLMUL, Feature::kPclmulqdq},
    {X86_GRP_AVX, Feature::kAvx},     {X86_GRP_F16C, Feature::kF16c},
    {X86_GRP_FMA, Feature::kFma},     {X86_GRP_AVX2, Feature::kAvx2},
    {X86_GRP_BMI, Feature::kBmi1},    {X86_GRP_BMI2, Feature::kBmi2},
    {X86_GRP_SHA, Feature::kSha},     {X86_GRP_ADX, Feature::kAdx}};

// Capstone's groups tell, but of some instructions that have none.
FeatureSet Needs(const cs_insn& raw) {
  switch (raw.id) {
    case X86_INS_TZCNT:  // ZeroCountOf tells
      return {};
    case X86_INS_VRCPSS:
    case X86_INS_VRSQRTSS:
    case X86_INS_VSQRTSD:
    case X86_INS_VSQRTSS:
      return {Feature::kAvx};
    case X86_INS_MOVBE:
      return {Feature::kMovbe};
    case X86_INS_XSAVE:
    case X86_INS_XSAVE64:
    case X86_INS_XRSTOR:
    case X86_INS_XRSTOR64:
      return {Feature::kXsave};
    case X86_INS_XSAVEC:
    case X86_INS_XSAVEC64:
      return {Feature::kXsavec};
    case X86_INS_XSAVEOPT:
    case X86_INS_XSAVEOPT64:
      return {Feature::kXsaveopt};
    case X86_INS_CLFLUSHOPT:
      return {Feature::kClflushopt};
    case X86_INS_CLWB:
      return {Feature::kClwb};
    case X86_INS_XTEST:
      return {Feature::kRtm};
    default:
      break;
  }
  FeatureSet features;
  const std::span groups(raw.detail->groups, raw.detail->groups_count);
  for (const auto& [group, feature] : kGroupFeatures) {
    if (std::ranges::find(groups, group) != groups.end()) {
      features.Add(feature);
    }
  }
  return features;
}

}  // namespace

struct Decoder::Impl {
  Impl() {
    CLEW_CHECK(cs_open(CS_ARCH_X86, CS_MODE_64, &handle) == CS_ERR_OK,
               "capstone cannot be opened");
    cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
    raw = cs_malloc(handle);
    CLEW_CHECK(raw != nullptr, "capstone has no memory");
  }
  ~Impl() {
    cs_free(raw, 1);
    cs_close(&handle);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool Disassemble(uint64_t ip, std::span<const std::byte> bytes) {
    const auto* code = reinterpret_cast<const uint8_t*>(bytes.data());
    size_t size = std::min(bytes.size(), x86::kInsnBytesMax);
    return cs_disasm_iter(handle, &code, &size, &ip, raw);
  }

  Decoded DecodeByZydis(uint64_t ip, std::span<const uint8_t> code,
                        const Layout& layout) {
    Decoded result;
    result.insn.ip = ip;
    result.insn.length = layout.length;
    ApplyLayout(layout, result.insn);
    zydis.Decode(code.first(layout.length), result);
    return result;
  }

  csh handle = 0;
  cs_insn* raw = nullptr;
  VexDecoder zydis;
};

Decoder::Decoder() : impl_(std::make_unique<Impl>()) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

Decoded Decoder::Decode(uint64_t ip, std::span<const std::byte> bytes) {
  const std::span code(reinterpret_cast<const uint8_t*>(bytes.data()),
                       bytes.size());
  const Layout layout = x86::ScanLayout(code);
  Decoded result;
  result.status = StatusOf(layout);
  if (result.status != DecodeStatus::kOk) {
    return result;
  }
  if (IsShadowStackRead(layout)) {
    return DecodeShadowStackRead(ip, layout);
  }
  if (CapstoneKnowsLittleOf(layout)) {
    return impl_->DecodeByZydis(ip, code, layout);
  }
  if (!impl_->Disassemble(ip, bytes)) {
    // LOCK is only for instructions that Capstone knows.
    result.status = DecodeStatus::kIllegal;
    return layout.opcode.prefixes.lock ? result
                                       : impl_->DecodeByZydis(ip, code, layout);
  }
  const cs_insn& raw = *impl_->raw;
  // Capstone reads it wrongly.
  if (raw.size != layout.length || LacksVectorIndex(layout)) {
    result.status = DecodeStatus::kUnknown;
    return result;
  }
  Insn& insn = result.insn;
  insn.ip = ip;
  insn.length = layout.length;
  SetOperands(raw, insn);
  ApplyLayout(layout, insn);
  const x86::Branch branch =
      x86::ClassifyBranch(layout.opcode, code.first(insn.length));
  RepairSizes(insn);
  RepairTarget(branch, insn);
  RepairImmediates(code.first(insn.length), insn);
  result.mnemonic = Name(impl_->handle, raw, insn);
  result.needs = Needs(raw);
  if (const ZeroCount* const count = ZeroCountOf(insn)) {
    result.mnemonic = count->name;
    result.otherwise = count->otherwise;
    result.needs = {count->needs};
  }
  result.ends_block = x86::TransfersControl(branch.branch_class);
  result.status =
      LockIsIllegal(insn) || PrefixIsIllegal(raw, insn) || IsMoveToCs(raw)
          ? DecodeStatus::kIllegal
          : DecodeStatus::kOk;
  return result;
}

std::string Decoder::Describe(uint64_t ip, std::span<const std::byte> bytes,
                              FeatureSet has) {
  bytes = bytes.first(std::min(bytes.size(), x86::kInsnBytesMax));
  std::string text = "unknown instruction";
  FeatureSet missing;
  const std::span code(reinterpret_cast<const uint8_t*>(bytes.data()),
                       bytes.size());
  const Layout layout = x86::ScanLayout(code);
  const bool is_whole = layout.status == LayoutStatus::kWhole;
  if (!(is_whole && CapstoneKnowsLittleOf(layout)) &&
      impl_->Disassemble(ip, bytes)) {
    bytes = bytes.first(impl_->raw->size);
    text = fmt::format("{} {}", impl_->raw->mnemonic, impl_->raw->op_str);
    missing = Needs(*impl_->raw).Without(has);
  } else if (is_whole) {
    bytes = bytes.first(layout.length);
    text = impl_->zydis.Describe(ip, code.first(layout.length));
    missing = Decode(ip, bytes).needs.Without(has);
  }
  text += fmt::format(" at {:#x} (", ip);
  for (size_t i = 0; i < bytes.size(); ++i) {
    text += fmt::format("{}{:02x}", i == 0 ? "" : " ",
                        static_cast<uint8_t>(bytes[i]));
  }
  text += ")";
  return missing.empty() ? text : text + ", needs " + x86::NamesOf(missing);
}

}  // namespace clew::machine
