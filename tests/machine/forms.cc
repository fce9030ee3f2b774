#include "tests/machine/forms.h"

#include <array>
#include <map>
#include <span>

#include "machine/decode.h"

namespace clew::machine {
namespace {

constexpr uint64_t kAllButCarry = kFlagsArithmetic & ~kFlagCarry;

// Prefix combinations; REX comes last, as it must.
const std::vector<std::vector<uint8_t>>& PrefixSets() {
  static const std::vector<std::vector<uint8_t>> sets = {
      {},           {0x66},       {0x48},       {0x40},       {0x45},
      {0x4f},       {0x66, 0x45}, {0xf0},       {0xf0, 0x48}, {0xf0, 0x66},
      {0xf2},       {0xf3},       {0xf2, 0x48}, {0xf3, 0x48}, {0x66, 0xf3},
      {0x66, 0xf2}, {0x67},       {0x67, 0x48}, {0xf3, 0x67}};
  return sets;
}

// Register forms for each reg field with several r/m, memory forms [rbx],
// [rbp+disp8], [rsi+disp32], [rbx+rcx*2], [rsp+disp8], [rip+disp32].
std::vector<std::vector<uint8_t>> ModrmForms(Random& random) {
  std::vector<std::vector<uint8_t>> forms;
  const auto low = [&] { return static_cast<uint8_t>(random.Next() & 0x3f); };
  for (uint8_t reg = 0; reg < 8; ++reg) {
    const auto field = static_cast<uint8_t>(reg << 3);
    for (const unsigned rm : {0u, 1u, 3u, 4u, 7u}) {
      forms.push_back({static_cast<uint8_t>(0xc0 | field | rm)});
    }
    forms.push_back({static_cast<uint8_t>(field | 3)});
    forms.push_back({static_cast<uint8_t>(0x45 | field), low()});
    forms.push_back({static_cast<uint8_t>(0x86 | field), low(), 0, 0, 0});
    forms.push_back({static_cast<uint8_t>(0x04 | field), 0x4b});
    forms.push_back({static_cast<uint8_t>(0x44 | field), 0x24, low()});
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
  while (code.size() < kInsnBytesMax) {
    code.push_back(static_cast<uint8_t>(random.Next()));
  }
  decoded = decoder.Decode(kCodeAt, std::as_bytes(std::span(code)));
  if (decoded.status != DecodeStatus::kOk) {
    return false;
  }
  code.resize(decoded.insn.length);
  return true;
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
        if (!Complete(code, random, decoded)) {
          continue;
        }
        auto key = code;
        const bool has_modrm =
            decoded.insn.modrm == modrm[0] && code.size() > opcode_end;
        key.resize(has_modrm ? opcode_end + 1 : opcode_end);
        forms.try_emplace(key, Form{code, std::string(decoded.mnemonic),
                                    UndefinedFlags(decoded.mnemonic)});
      }
    }
  }
  std::vector<Form> result;
  for (auto& [key, form] : forms) {
    result.push_back(std::move(form));
  }
  return result;
}

// Source: Intel SDM vol. 1, "EFLAGS Cross-Reference", and the instructions'
// pages. Shifts: overflow is defined for a count of 1 only, carry not for
// counts above the width; both are compared exactly in shift_test.cc.
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
  for (Vec128& xmm : state.regs.xmm) {
    xmm.q = {random.Next(), random.Next()};
  }
  return state;
}

}  // namespace clew::machine
