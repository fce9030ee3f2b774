#include "tests/recorder/tracer/random_code_forms.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

namespace clew::tracer::random_code {
namespace {

constexpr OpcodeMap kOne = OpcodeMap::kOne;
constexpr OpcodeMap k0F = OpcodeMap::k0F;
constexpr OpcodeMap k38 = OpcodeMap::k0F38;
constexpr OpcodeMap k3A = OpcodeMap::k0F3A;
constexpr Scheme kVex = Scheme::kVex3;
constexpr Scheme kEvex = Scheme::kEvex;

constexpr uint32_t kReadsReg = 0;
constexpr uint32_t kUpdatesRm = kWritesRm | kLocks;
constexpr uint32_t kVectors = kVector | kVectorReg | kVectorRm;
constexpr uint32_t kThreeVectors = kVectors | kVvvvVector;
constexpr uint32_t kToGeneral = kWritesReg | kVectorRm;

constexpr uint8_t Opcode(unsigned base, unsigned offset) {
  return static_cast<uint8_t>(base + offset);
}

// ADD, OR, ADC, SBB, AND, SUB, XOR, CMP.
void AddArithmetic(std::vector<Form>& forms) {
  for (unsigned kind = 0; kind < 8; ++kind) {
    const bool writes = kind != 7;
    const uint32_t rm = writes ? kUpdatesRm : 0;
    const uint32_t reg = writes ? uint32_t{kWritesReg} : 0;
    const auto digit = static_cast<int8_t>(kind);
    const auto at = [&](unsigned offset) { return Opcode(kind * 8, offset); };
    forms.insert(forms.end(), {{kByte | rm, 0, kOne, at(0)},
                               {kSized | rm, 0, kOne, at(1)},
                               {kByte | reg, 0, kOne, at(2)},
                               {kSized | reg, 0, kOne, at(3)},
                               {kByte | rm | kImm8, 0, kOne, 0x80, digit},
                               {kSized | rm | kImm, 0, kOne, 0x81, digit},
                               {kSized | rm | kImm8, 0, kOne, 0x83, digit}});
  }
}

// ROL, ROR, RCL, RCR, SHL, SHR, SAR.
void AddShifts(std::vector<Form>& forms) {
  for (const int8_t digit :
       std::initializer_list<int8_t>{0, 1, 2, 3, 4, 5, 7}) {
    forms.insert(forms.end(),
                 {{kByte | kWritesRm | kImm8, 0, kOne, 0xc0, digit},
                  {kSized | kWritesRm | kImm8, 0, kOne, 0xc1, digit},
                  {kSized | kWritesRm, 0, kOne, 0xd1, digit},
                  {kByte | kWritesRm, 0, kOne, 0xd2, digit},
                  {kSized | kWritesRm, 0, kOne, 0xd3, digit}});
  }
}

void AddConditions(std::vector<Form>& forms) {
  for (unsigned condition = 0; condition < 16; ++condition) {
    forms.push_back({kByte | kWritesRm, 0, k0F, Opcode(0x90, condition)});
    forms.push_back({kSized | kWritesReg, 0, k0F, Opcode(0x40, condition)});
  }
}

const Form kIntegerForms[] = {
    // MOV, several times
    {kByte | kWritesRm, 0, kOne, 0x88},
    {kByte | kWritesRm, 0, kOne, 0x88},
    {kByte | kWritesReg, 0, kOne, 0x8a},
    {kByte | kWritesReg, 0, kOne, 0x8a},
    {kSized | kWritesRm, 0, kOne, 0x89},
    {kSized | kWritesRm, 0, kOne, 0x89},
    {kSized | kWritesReg, 0, kOne, 0x8b},
    {kSized | kWritesReg, 0, kOne, 0x8b},
    {kSized | kWritesReg, 0, kOne, 0x8b},
    {kByte | kWritesRm | kImm8, 0, kOne, 0xc6, 0},
    {kSized | kWritesRm | kImm, 0, kOne, 0xc7, 0},
    // LEA
    {kSized | kWritesReg | kMemory | kNoAccess, 0, kOne, 0x8d},
    {kSized | kWritesReg | kMemory | kNoAccess, 0, kOne, 0x8d},
    // TEST, NOT, NEG, MUL, IMUL, INC, DEC
    {kByte | kReadsReg, 0, kOne, 0x84},
    {kSized | kReadsReg, 0, kOne, 0x85},
    {kByte | kImm8, 0, kOne, 0xf6, 0},
    {kSized | kImm, 0, kOne, 0xf7, 0},
    {kByte | kUpdatesRm, 0, kOne, 0xf6, 2},
    {kSized | kUpdatesRm, 0, kOne, 0xf7, 2},
    {kByte | kUpdatesRm, 0, kOne, 0xf6, 3},
    {kSized | kUpdatesRm, 0, kOne, 0xf7, 3},
    {kByte, 0, kOne, 0xf6, 4},
    {kSized, 0, kOne, 0xf7, 4},
    {kSized, 0, kOne, 0xf7, 5},
    {kByte | kUpdatesRm, 0, kOne, 0xfe, 0},
    {kSized | kUpdatesRm, 0, kOne, 0xff, 0},
    {kByte | kUpdatesRm, 0, kOne, 0xfe, 1},
    {kSized | kUpdatesRm, 0, kOne, 0xff, 1},
    {kSized | kWritesReg | kImm, 0, kOne, 0x69},
    {kSized | kWritesReg | kImm8, 0, kOne, 0x6b},
    {kSized | kWritesReg, 0, k0F, 0xaf},
    // MOVZX, MOVSX, MOVSXD
    {kSized | kWritesReg, 0, k0F, 0xb6, kAnyReg, 1},
    {kSized | kWritesReg, 0, k0F, 0xb7, kAnyReg, 2},
    {kSized | kWritesReg, 0, k0F, 0xbe, kAnyReg, 1},
    {kSized | kWritesReg, 0, k0F, 0xbf, kAnyReg, 2},
    {kWide | kWritesReg, 0, kOne, 0x63, kAnyReg, 4},
    // XCHG, XADD, CMPXCHG, CMPXCHG8B, CMPXCHG16B
    {kByte | kWritesReg | kWritesRm | kAligned | kLocks, 0, kOne, 0x86},
    {kSized | kWritesReg | kWritesRm | kAligned | kLocks, 0, kOne, 0x87},
    {kByte | kWritesReg | kUpdatesRm, 0, k0F, 0xc0},
    {kSized | kWritesReg | kUpdatesRm, 0, k0F, 0xc1},
    {kByte | kUpdatesRm, 0, k0F, 0xb0},
    {kSized | kUpdatesRm, 0, k0F, 0xb1},
    {kMemory | kUpdatesRm | kAligned, 0, k0F, 0xc7, 1, 8},
    {kWide | kMemory | kUpdatesRm | kAligned | kNeedsV2, 0, k0F, 0xc7, 1, 16},
    // BT, BTS, BTR, BTC; of memory only with an immediate
    {kSized | kRegister, 0, k0F, 0xa3},
    {kSized | kRegister | kWritesRm, 0, k0F, 0xab},
    {kSized | kRegister | kWritesRm, 0, k0F, 0xb3},
    {kSized | kRegister | kWritesRm, 0, k0F, 0xbb},
    {kSized | kImm8, 0, k0F, 0xba, 4},
    {kSized | kUpdatesRm | kImm8, 0, k0F, 0xba, 5},
    {kSized | kUpdatesRm | kImm8, 0, k0F, 0xba, 6},
    {kSized | kUpdatesRm | kImm8, 0, k0F, 0xba, 7},
    // SHLD, SHRD
    {kSized | kNo16 | kWritesRm | kImm8, 0, k0F, 0xa4},
    {kSized | kNo16 | kWritesRm, 0, k0F, 0xa5},
    {kSized | kNo16 | kWritesRm | kImm8, 0, k0F, 0xac},
    {kSized | kNo16 | kWritesRm, 0, k0F, 0xad},
    // MOVNTI, POPCNT, CRC32, NOP, PREFETCHT0
    {kSized | kNo16 | kMemory | kWritesRm, 0, k0F, 0xc3},
    {kSized | kWritesReg | kNeedsV2, 0xf3, k0F, 0xb8},
    {kSized | kNo16 | kWritesReg | kNeedsV2, 0xf2, k38, 0xf0, kAnyReg, 1},
    {kSized | kWritesReg | kNeedsV2, 0xf2, k38, 0xf1},
    {kSized | kNoAccess, 0, k0F, 0x1f, 0},
    {kMemory | kNoAccess, 0, k0F, 0x18, 1},
};

// LZCNT, TZCNT, MOVBE.
const Form kIntegerV3Forms[] = {
    {kSized | kWritesReg, 0xf3, k0F, 0xbc},
    {kSized | kWritesReg, 0xf3, k0F, 0xbd},
    {kSized | kWritesReg | kMemory, 0, k38, 0xf0},
    {kSized | kWritesRm | kMemory, 0, k38, 0xf1},
};

const Form kSseForms[] = {
    // MOVUPS, MOVUPD, MOVSS, MOVSD, MOVAPS, MOVDQU, MOVDQA
    {kVectors, 0, k0F, 0x10},
    {kVectors | kWritesRm, 0, k0F, 0x11},
    {kVectors, 0x66, k0F, 0x10},
    {kVectors, 0xf3, k0F, 0x10, kAnyReg, 4},
    {kVectors | kWritesRm, 0xf2, k0F, 0x11, kAnyReg, 8},
    {kVectors | kAligned, 0, k0F, 0x28},
    {kVectors | kAligned | kWritesRm, 0, k0F, 0x29},
    {kVectors, 0xf3, k0F, 0x6f},
    {kVectors | kWritesRm, 0xf3, k0F, 0x7f},
    {kVectors | kAligned, 0x66, k0F, 0x6f},
    // MOVLPS, MOVHPD, MOVNTDQ
    {kVectors | kMemory, 0, k0F, 0x12, kAnyReg, 8},
    {kVectors | kMemory | kWritesRm, 0x66, k0F, 0x17, kAnyReg, 8},
    {kVectors | kMemory | kAligned | kWritesRm, 0x66, k0F, 0xe7},
    // PADDD, PADDQ, PXOR, PUNPCKLBW, PMULUDQ, PSHUFD, SHUFPS, CMPPS
    {kVectors | kAligned, 0x66, k0F, 0xfe},
    {kVectors | kAligned, 0x66, k0F, 0xfe},
    {kVectors | kAligned, 0x66, k0F, 0xd4},
    {kVectors | kAligned, 0x66, k0F, 0xef},
    {kVectors | kAligned, 0x66, k0F, 0x60},
    {kVectors | kAligned, 0x66, k0F, 0xf4},
    {kVectors | kAligned | kImm8, 0x66, k0F, 0x70},
    {kVectors | kAligned | kImm8, 0, k0F, 0xc6},
    {kVectors | kAligned | kImm8, 0, k0F, 0xc2},
    // ADDSD, MULPS, CVTDQ2PS, CVTSI2SD
    {kVectors, 0xf2, k0F, 0x58, kAnyReg, 8},
    {kVectors | kAligned, 0, k0F, 0x59},
    {kVectors | kAligned, 0, k0F, 0x5b},
    {kSized | kNo16 | kVectorReg, 0xf2, k0F, 0x2a},
    {kSized | kNo16 | kVectorReg, 0xf3, k0F, 0x2a},
    // PINSRW, MOVD and MOVQ to vectors
    {kVectorReg | kImm8, 0x66, k0F, 0xc4, kAnyReg, 2},
    {kSized | kNo16 | kVectorReg, 0x66, k0F, 0x6e},
    // MOVD and MOVQ, PMOVMSKB, MOVMSKPD, PEXTRW, CVTTSD2SI, UCOMISD: to
    // general registers and flags
    {kSized | kNo16 | kVectorReg | kWritesRm, 0x66, k0F, 0x7e},
    {kSized | kNo16 | kVectorReg | kWritesRm, 0x66, k0F, 0x7e},
    {kWide | kVectorReg | kWritesRm, 0x66, k0F, 0x7e},
    {kToGeneral | kRegister, 0x66, k0F, 0xd7},
    {kToGeneral | kRegister, 0x66, k0F, 0x50},
    {kToGeneral | kRegister | kImm8, 0x66, k0F, 0xc5},
    {kSized | kNo16 | kToGeneral, 0xf2, k0F, 0x2c, kAnyReg, 8},
    {kVectors, 0x66, k0F, 0x2e, kAnyReg, 8},
    // PSHUFB, PMOVZXBW, PBLENDVB, PTEST, PALIGNR, PCMPESTRI
    {kVectors | kAligned | kNeedsV2, 0x66, k38, 0x00},
    {kVectors | kNeedsV2, 0x66, k38, 0x30, kAnyReg, 8},
    {kVectors | kAligned | kNeedsV2, 0x66, k38, 0x10},
    {kVectors | kAligned | kNeedsV2, 0x66, k38, 0x17},
    {kVectors | kAligned | kNeedsV2 | kImm8, 0x66, k3A, 0x0f},
    {kVectors | kNeedsV2 | kImm8 | kWritesRcx, 0x66, k3A, 0x61},
    // PINSRD and PINSRQ, PEXTRD and PEXTRQ
    {kSized | kNo16 | kVectorReg | kNeedsV2 | kImm8, 0x66, k3A, 0x22},
    {kSized | kNo16 | kVectorReg | kWritesRm | kNeedsV2 | kImm8, 0x66, k3A,
     0x16},
};

const Form kVexForms[] = {
    // VPADDD, VPXOR, VPSHUFB, VADDPD, VFMADD231PS
    {kThreeVectors, 0x66, k0F, 0xfe, kAnyReg, 0, kVex},
    {kThreeVectors, 0x66, k0F, 0xfe, kAnyReg, 0, kVex},
    {kThreeVectors, 0x66, k0F, 0xef, kAnyReg, 0, kVex},
    {kThreeVectors, 0x66, k38, 0x00, kAnyReg, 0, kVex},
    {kThreeVectors, 0x66, k0F, 0x58, kAnyReg, 0, kVex},
    {kThreeVectors, 0x66, k38, 0xb8, kAnyReg, 0, kVex},
    // VMOVDQU, VMOVUPS
    {kVectors, 0xf3, k0F, 0x6f, kAnyReg, 0, kVex},
    {kVectors | kWritesRm, 0xf3, k0F, 0x7f, kAnyReg, 0, kVex},
    {kVectors | kWritesRm, 0, k0F, 0x11, kAnyReg, 0, kVex},
    // VPBLENDVB, VBLENDVPS, VPALIGNR, VINSERTI128, VPMASKMOVD, VBROADCASTSS
    {kThreeVectors | kImmRegister, 0x66, k3A, 0x4c, kAnyReg, 0, kVex},
    {kThreeVectors | kImmRegister, 0x66, k3A, 0x4a, kAnyReg, 0, kVex},
    {kThreeVectors | kImm8, 0x66, k3A, 0x0f, kAnyReg, 0, kVex},
    {kThreeVectors | kImm8 | kLength256, 0x66, k3A, 0x38, kAnyReg, 16, kVex},
    {kThreeVectors | kMemory, 0x66, k38, 0x8c, kAnyReg, 0, kVex},
    {kThreeVectors | kMemory | kWritesRm, 0x66, k38, 0x8e, kAnyReg, 0, kVex},
    {kVectors, 0x66, k38, 0x18, kAnyReg, 4, kVex},
    // VCVTSI2SD, VPINSRW, VMOVD and VMOVQ, VPMOVMSKB, VPEXTRD and VPEXTRQ
    {kSized | kNo16 | kVectorReg | kVvvvVector | kLength128, 0xf2, k0F, 0x2a,
     kAnyReg, 0, kVex},
    {kVectorReg | kVvvvVector | kImm8 | kLength128, 0x66, k0F, 0xc4, kAnyReg, 2,
     kVex},
    {kSized | kNo16 | kVectorReg | kLength128, 0x66, k0F, 0x6e, kAnyReg, 0,
     kVex},
    {kSized | kNo16 | kVectorReg | kWritesRm | kLength128, 0x66, k0F, 0x7e,
     kAnyReg, 0, kVex},
    {kToGeneral | kRegister, 0x66, k0F, 0xd7, kAnyReg, 0, kVex},
    {kSized | kNo16 | kVectorReg | kWritesRm | kLength128 | kImm8, 0x66, k3A,
     0x16, kAnyReg, 0, kVex},
    // ANDN, BEXTR, BZHI, SARX, SHLX, SHRX, PDEP, PEXT
    {kSized | kNo16 | kWritesReg | kVvvv | kLength128, 0, k38, 0xf2, kAnyReg, 0,
     kVex},
    {kSized | kNo16 | kWritesReg | kVvvv | kLength128, 0, k38, 0xf7, kAnyReg, 0,
     kVex},
    {kSized | kNo16 | kWritesReg | kVvvv | kLength128, 0, k38, 0xf5, kAnyReg, 0,
     kVex},
    {kSized | kNo16 | kWritesReg | kVvvv | kLength128, 0xf3, k38, 0xf7, kAnyReg,
     0, kVex},
    {kSized | kNo16 | kWritesReg | kVvvv | kLength128, 0x66, k38, 0xf7, kAnyReg,
     0, kVex},
    {kSized | kNo16 | kWritesReg | kVvvv | kLength128, 0xf2, k38, 0xf7, kAnyReg,
     0, kVex},
    {kSized | kNo16 | kWritesReg | kVvvv | kLength128, 0xf2, k38, 0xf5, kAnyReg,
     0, kVex},
    {kSized | kNo16 | kWritesReg | kVvvv | kLength128, 0xf3, k38, 0xf5, kAnyReg,
     0, kVex},
    // MULX, RORX, BLSR, BLSMSK, BLSI
    {kSized | kNo16 | kWritesReg | kVvvv | kWritesVvvv | kLength128, 0xf2, k38,
     0xf6, kAnyReg, 0, kVex},
    {kSized | kNo16 | kWritesReg | kImm8 | kLength128, 0xf2, k3A, 0xf0, kAnyReg,
     0, kVex},
    {kSized | kNo16 | kVvvv | kWritesVvvv | kLength128, 0, k38, 0xf3, 1, 0,
     kVex},
    {kSized | kNo16 | kVvvv | kWritesVvvv | kLength128, 0, k38, 0xf3, 2, 0,
     kVex},
    {kSized | kNo16 | kVvvv | kWritesVvvv | kLength128, 0, k38, 0xf3, 3, 0,
     kVex},
};

const Form kEvexForms[] = {
    // VPADDD, VPADDQ, VPTERNLOGD, VALIGND, VPERMT2Q
    {kThreeVectors | kMasked | kZeroes | kBroadcasts, 0x66, k0F, 0xfe, kAnyReg,
     0, kEvex},
    {kThreeVectors | kMasked | kZeroes | kBroadcasts, 0x66, k0F, 0xfe, kAnyReg,
     0, kEvex},
    {kThreeVectors | kMasked | kZeroes | kBroadcasts | kWide, 0x66, k0F, 0xd4,
     kAnyReg, 0, kEvex},
    {kThreeVectors | kMasked | kZeroes | kBroadcasts | kImm8, 0x66, k3A, 0x25,
     kAnyReg, 0, kEvex},
    {kThreeVectors | kMasked | kZeroes | kBroadcasts | kImm8, 0x66, k3A, 0x03,
     kAnyReg, 0, kEvex},
    {kThreeVectors | kMasked | kZeroes | kBroadcasts | kWide, 0x66, k38, 0x7e,
     kAnyReg, 0, kEvex},
    // VMOVDQU64, VMOVDQU32
    {kVectors | kMasked | kZeroes | kWide, 0xf3, k0F, 0x6f, kAnyReg, 0, kEvex},
    {kVectors | kMasked | kWide | kWritesRm, 0xf3, k0F, 0x7f, kAnyReg, 0,
     kEvex},
    {kVectors | kMasked | kZeroes, 0xf3, k0F, 0x6f, kAnyReg, 0, kEvex},
    // VPCMPUD, VPTESTMD to a mask; KMOVW between masks and general registers
    {kThreeVectors | kMaskReg | kMasked | kBroadcasts | kImm8, 0x66, k3A, 0x1e,
     kAnyReg, 0, kEvex},
    {kThreeVectors | kMaskReg | kMasked | kBroadcasts, 0x66, k38, 0x27, kAnyReg,
     0, kEvex},
    {kMaskReg | kRegister | kLength128, 0, k0F, 0x92, kAnyReg, 0, kVex},
    {kMaskReg | kMemory | kLength128, 0, k0F, 0x90, kAnyReg, 2, kVex},
    {kMaskReg | kMemory | kWritesRm | kLength128, 0, k0F, 0x91, kAnyReg, 2,
     kVex},
    // VCVTUSI2SD, VMOVD and VMOVQ
    {kSized | kNo16 | kVectorReg | kVvvvVector | kLength128, 0xf2, k0F, 0x7b,
     kAnyReg, 0, kEvex},
    {kSized | kNo16 | kVectorReg | kLength128, 0x66, k0F, 0x6e, kAnyReg, 0,
     kEvex},
    {kSized | kNo16 | kVectorReg | kWritesRm | kLength128, 0x66, k0F, 0x7e,
     kAnyReg, 0, kEvex},
};

}  // namespace

Forms FormsOf(const Features& features) {
  Forms forms;
  AddArithmetic(forms.integer);
  AddShifts(forms.integer);
  AddConditions(forms.integer);
  std::ranges::copy(kIntegerForms, std::back_inserter(forms.integer));
  std::ranges::copy(kSseForms, std::back_inserter(forms.sse));
  if (!features.v2) {
    const auto needs_v2 = [](const Form& form) { return form.Has(kNeedsV2); };
    std::erase_if(forms.integer, needs_v2);
    std::erase_if(forms.sse, needs_v2);
  }
  if (features.v3) {
    std::ranges::copy(kIntegerV3Forms, std::back_inserter(forms.integer));
    std::ranges::copy(kVexForms, std::back_inserter(forms.vex));
  }
  if (features.avx512) {
    std::ranges::copy(kEvexForms, std::back_inserter(forms.evex));
  }
  return forms;
}

}  // namespace clew::tracer::random_code
