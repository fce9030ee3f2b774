#include "tests/machine/forms.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "machine/decode.h"

namespace clew::machine {
namespace {

constexpr uint64_t kAllButCarry = kFlagsArithmetic & ~kFlagCarry;
constexpr uint64_t kAdjustAndParity = kFlagAdjust | kFlagParity;

// Prefix combinations; REX comes last, as it must.
const std::vector<std::vector<uint8_t>>& PrefixSets() {
  static const std::vector<std::vector<uint8_t>> sets = {
      {},           {0x66},       {0x48},       {0x40},       {0x45},
      {0x4f},       {0x66, 0x45}, {0xf0},       {0xf0, 0x48}, {0xf0, 0x66},
      {0xf2},       {0xf3},       {0xf2, 0x48}, {0xf3, 0x48}, {0x66, 0xf3},
      {0x66, 0xf2}, {0x67},       {0x67, 0x48}, {0xf3, 0x67}};
  return sets;
}

// For each reg field two register forms, and in turn one of the memory forms
// [rbx], [rbp+disp8], [rsi+disp32], [rbx+rcx*2], [rsp+disp8]; for the first
// all of them.
std::vector<std::vector<uint8_t>> ModrmForms(Random& random) {
  std::vector<std::vector<uint8_t>> forms;
  const auto low = static_cast<uint8_t>(random.Next() & 0x3f);
  const auto add = [&](unsigned modrm, std::vector<uint8_t> rest) {
    rest.insert(rest.begin(), static_cast<uint8_t>(modrm));
    forms.push_back(rest);
  };
  const std::vector<std::pair<unsigned, std::vector<uint8_t>>> memory = {
      {3, {}},
      {0x45, {low}},
      {0x86, {low, 0, 0, 0}},
      {4, {0x4b}},
      {0x44, {0x24, low}}};
  for (unsigned reg = 0; reg < 8; ++reg) {
    const unsigned field = reg << 3;
    add(0xc0 | field | (reg + 1) % 8, {});
    add(0xc0 | field | 4, {});
    for (size_t i = 0; i < memory.size(); ++i) {
      if (reg == 0 || i == reg % memory.size()) {
        add(field | memory[i].first, memory[i].second);
      }
    }
  }
  return forms;
}

std::vector<uint8_t> Opcode(int map, uint8_t opcode) {
  switch (map) {
    case 0:
      return {opcode};
    case 1:
      return {0x0f, opcode};
    default:
      return {0x0f, 0x38, opcode};
  }
}

// Appends what may be an immediate and cuts to what the decoder takes.
bool Complete(std::vector<uint8_t>& code, Random& random, Decoded& decoded) {
  static Decoder decoder;
  while (code.size() < x86::kInsnBytesMax) {
    code.push_back(static_cast<uint8_t>(random.Next()));
  }
  decoded = decoder.Decode(kCodeAt, std::as_bytes(std::span(code)));
  if (decoded.status != DecodeStatus::kOk) {
    return false;
  }
  code.resize(decoded.insn.length);
  const bool shift_double =
      decoded.mnemonic == "shld" || decoded.mnemonic == "shrd";
  if (shift_double && decoded.insn.op[2].is_imm()) {
    code.back() &= 0xcf;  // more than the width is undefined
  }
  if (decoded.mnemonic == "enter") {
    // Few locals: where ENTER faults late, the CPU has pushed rbp already (and
    // would push it again), the machine has not.
    code[code.size() - 2] &= 1;
  }
  return true;
}

// False where the byte meant as opcode is one more prefix.
bool SameOpcode(const Insn& insn, int map, uint8_t opcode) {
  const std::vector<uint8_t> wanted = Opcode(map, opcode);
  return std::equal(wanted.begin(), wanted.end(), insn.opcode.begin());
}

template <class T>
void Append(std::vector<uint8_t>& to, const T& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

std::vector<Form> MakeForms(int map, uint8_t first_opcode, uint8_t last_opcode,
                            Random& random) {
  // By bytes without immediates, so that an opcode without ModRM is not
  // repeated for each.
  std::map<std::vector<uint8_t>, Form> forms;
  for (unsigned opcode = first_opcode; opcode <= last_opcode; ++opcode) {
    for (const auto& prefixes : PrefixSets()) {
      for (const auto& modrm : ModrmForms(random)) {
        std::vector<uint8_t> code = prefixes;
        Append(code, Opcode(map, static_cast<uint8_t>(opcode)));
        const size_t opcode_end = code.size();
        Append(code, modrm);
        Decoded decoded;
        if (!Complete(code, random, decoded) ||
            !SameOpcode(decoded.insn, map, static_cast<uint8_t>(opcode))) {
          continue;
        }
        auto key = code;
        const bool has_modrm =
            decoded.insn.modrm == modrm[0] && code.size() > opcode_end;
        key.resize(has_modrm ? opcode_end + 1 : opcode_end);
        const std::string mnemonic(decoded.mnemonic);
        forms.try_emplace(key, Form{code, mnemonic, UndefinedFlags(mnemonic)});
      }
    }
  }
  std::vector<Form> result;
  result.reserve(forms.size());
  for (auto& [key, form] : forms) {
    result.push_back(std::move(form));
  }
  return result;
}

namespace {

// An opcode with VEX, of the maps 0F 38 (2) and 0F 3A (3); `pp` is VEX.pp.
struct VexOpcode {
  uint8_t map;
  uint8_t opcode;
  uint8_t pp;
};

constexpr VexOpcode kVexOpcodes[] = {
    {2, 0xf2, 0},                              // ANDN
    {2, 0xf3, 0},                              // BLSR, BLSMSK, BLSI
    {2, 0xf5, 0}, {2, 0xf5, 2}, {2, 0xf5, 3},  // BZHI, PEXT, PDEP
    {2, 0xf6, 3},                              // MULX
    {2, 0xf7, 0}, {2, 0xf7, 1}, {2, 0xf7, 2}, {2, 0xf7, 3},  // BEXTR, SHLX, ..
    {3, 0xf0, 3}};                                           // RORX

// With R and B as bits 1 and 0 of `high`. RORX has no vvvv.
std::vector<uint8_t> VexBytes(const VexOpcode& opcode, bool w, unsigned high,
                              unsigned vvvv) {
  const unsigned r = (high & 2) != 0 ? 0 : 0x80;
  const unsigned b = (high & 1) != 0 ? 0 : 0x20;
  const unsigned shown = opcode.map == 3 ? 0 : vvvv;
  return {
      0xc4, static_cast<uint8_t>(r | 0x40 | b | opcode.map),
      static_cast<uint8_t>((w ? 0x80u : 0u) | (~shown & 15u) << 3 | opcode.pp),
      opcode.opcode};
}

}  // namespace

std::vector<Form> MakeVexForms(Random& random) {
  std::vector<Form> forms;
  for (const VexOpcode& opcode : kVexOpcodes) {
    for (const auto& modrm : ModrmForms(random)) {
      for (unsigned i = 0; i < 16; ++i) {
        const auto vvvv = static_cast<unsigned>(random.Below(16));
        std::vector<uint8_t> code =
            VexBytes(opcode, (i & 1) != 0, i >> 1 & 3, vvvv);
        Append(code, modrm);
        Decoded decoded;
        if (Complete(code, random, decoded)) {
          const std::string mnemonic(decoded.mnemonic);
          forms.push_back({code, mnemonic, UndefinedFlags(mnemonic)});
        }
      }
    }
  }
  return forms;
}

// Source: Intel SDM vol. 1, "EFLAGS Cross-Reference", and the instructions'
// pages. Shifts: overflow is defined for a count of 1 only, carry not for
// counts above the width; insn_test.cc
// compares both where they are defined.
uint64_t UndefinedFlags(std::string_view mnemonic) {
  static const std::map<std::string_view, uint64_t> table = {
      {"and", kFlagAdjust},
      {"or", kFlagAdjust},
      {"xor", kFlagAdjust},
      {"test", kFlagAdjust},
      {"mul", kAllButCarry & ~kFlagOverflow},
      {"imul", kAllButCarry & ~kFlagOverflow},
      {"div", kFlagsArithmetic},
      {"idiv", kFlagsArithmetic},
      {"bt", kAllButCarry & ~kFlagZero},
      {"bts", kAllButCarry & ~kFlagZero},
      {"btr", kAllButCarry & ~kFlagZero},
      {"btc", kAllButCarry & ~kFlagZero},
      {"bsf", kFlagsArithmetic & ~kFlagZero},
      {"bsr", kFlagsArithmetic & ~kFlagZero},
      {"tzcnt", kAllButCarry & ~kFlagZero},
      {"lzcnt", kAllButCarry & ~kFlagZero},
      {"andn", kAdjustAndParity},
      {"bextr", kAdjustAndParity | kFlagSign},
      {"blsi", kAdjustAndParity},
      {"blsmsk", kAdjustAndParity},
      {"blsr", kAdjustAndParity},
      {"bzhi", kAdjustAndParity},
      {"shl", kFlagAdjust | kFlagOverflow | kFlagCarry},
      {"sal", kFlagAdjust | kFlagOverflow | kFlagCarry},
      {"shr", kFlagAdjust | kFlagOverflow | kFlagCarry},
      {"sar", kFlagAdjust | kFlagOverflow},
      {"rol", kFlagOverflow},
      {"ror", kFlagOverflow},
      {"rcl", kFlagOverflow},
      {"rcr", kFlagOverflow},
      {"shld", kFlagAdjust | kFlagOverflow},
      {"shrd", kFlagAdjust | kFlagOverflow}};
  const auto it = table.find(mnemonic);
  return it != table.end() ? it->second : 0;
}

uint64_t BoundaryValue(Random& random) {
  static constexpr uint64_t kValues[] = {0,
                                         1,
                                         2,
                                         3,
                                         7,
                                         8,
                                         15,
                                         16,
                                         31,
                                         32,
                                         33,
                                         63,
                                         64,
                                         0x7f,
                                         0x80,
                                         0x81,
                                         0xff,
                                         0x100,
                                         0x7fff,
                                         0x8000,
                                         0xffff,
                                         0x7fffffff,
                                         0x80000000,
                                         0xffffffff,
                                         0x100000000,
                                         0x7fffffffffffffff,
                                         0x8000000000000000,
                                         ~uint64_t{0},
                                         ~uint64_t{1},
                                         0xffffffff80000000,
                                         0xffffffffffff8000,
                                         0xffffffffffffff80,
                                         0x5555555555555555,
                                         0xaaaaaaaaaaaaaaaa};
  const uint64_t choice = random.Below(4);
  if (choice == 0) {
    return random.Next();
  }
  if (choice == 1) {
    return random.Next() >> random.Below(64);
  }
  return kValues[random.Below(std::size(kValues))];
}

State MakeState(Random& random) {
  State state;
  state.regs.mxcsr_mask = x86::HostMxcsrMask();
  for (uint64_t& value : state.regs.gpr) {
    value = BoundaryValue(random);
  }
  for (const unsigned number : {kRbx, kRsp, kRbp, kRsi, kRdi}) {
    if (random.Below(8) != 0) {
      state.regs.gpr[number] = kDataAt + 0x100 + random.Below(kDataBytes / 2);
    }
  }
  if (random.Below(4) != 0) {
    state.regs.gpr[kRcx] = random.Below(256);
  }
  state.regs.rflags = 0x202 | (random.Next() & kFlagsArithmetic) |
                      (random.Below(4) == 0 ? kFlagDirection : 0);
  for (size_t i = 0; i < kDataBytes; i += 8) {
    const uint64_t value = BoundaryValue(random);
    std::memcpy(state.window.data() + i, &value, 8);
  }
  for (VecLane& lane : state.regs.vec) {
    for (Vec128& value : lane) {
      value.q = {random.Next(), random.Next()};
    }
  }
  for (uint64_t& mask : state.regs.opmask) {
    mask = random.Next();
  }
  return state;
}

}  // namespace clew::machine
