#include "tests/machine/vector/x87_forms.h"

#include "machine/vector/x87_op.h"

namespace clew::machine {
namespace {

constexpr uint16_t kAllButC1 = kX87C0 | kX87C2 | kX87C3;

void AddRegisters(X87Forms& forms, int opcode, int first_modrm,
                  uint16_t undefined) {
  for (int i = 0; i < 8; ++i) {
    forms.push_back({static_cast<uint8_t>(opcode),
                     static_cast<uint8_t>(first_modrm + i), undefined,
                     X87Data::kNone});
  }
}

void AddSingle(X87Forms& forms, int opcode, int modrm, uint16_t undefined) {
  forms.push_back({static_cast<uint8_t>(opcode), static_cast<uint8_t>(modrm),
                   undefined, X87Data::kNone});
}

void AddMemory(X87Forms& forms, int opcode, int reg_field, uint16_t undefined,
               X87Data data = X87Data::kNumber) {
  constexpr int kRsiBase = 6;
  forms.push_back({static_cast<uint8_t>(opcode),
                   static_cast<uint8_t>(reg_field << 3 | kRsiBase), undefined,
                   data});
}

void AddArithmetic(X87Forms& forms) {
  for (const int field : {0, 1, 4, 5, 6, 7}) {
    for (const int opcode : {0xd8, 0xda, 0xdc, 0xde}) {
      AddMemory(forms, opcode, field, kAllButC1);
    }
    for (const int opcode : {0xd8, 0xdc, 0xde}) {
      AddRegisters(forms, opcode, 0xc0 | field << 3, kAllButC1);
    }
  }
}

void AddComparisons(X87Forms& forms) {
  for (const int field : {2, 3}) {
    for (const int opcode : {0xd8, 0xda, 0xdc, 0xde}) {
      AddMemory(forms, opcode, field, 0);
    }
    AddRegisters(forms, 0xd8, 0xc0 | field << 3, 0);
  }
  AddRegisters(forms, 0xdd, 0xe0, 0);  // FUCOM
  AddRegisters(forms, 0xdd, 0xe8, 0);  // FUCOMP
  for (const int opcode : {0xdb, 0xdf}) {
    // FUCOMI, FCOMI: the manuals of Intel and AMD differ on C1.
    AddRegisters(forms, opcode, 0xe8, kX87Conditions);
    AddRegisters(forms, opcode, 0xf0, kX87Conditions);
  }
  AddSingle(forms, 0xda, 0xe9, 0);  // FUCOMPP
  AddSingle(forms, 0xde, 0xd9, 0);  // FCOMPP
  AddSingle(forms, 0xd9, 0xe4, 0);  // FTST
  AddSingle(forms, 0xd9, 0xe5, 0);  // FXAM
}

void AddMoves(X87Forms& forms) {
  for (const auto& [opcode, field] :
       {std::pair{0xd9, 0}, {0xdd, 0}, {0xdb, 0}, {0xdf, 0}, {0xdf, 5}}) {
    AddMemory(forms, opcode, field, kAllButC1);  // FLD, FILD
  }
  for (const auto& [opcode, field] : {std::pair{0xd9, 2},
                                      {0xd9, 3},
                                      {0xdd, 2},
                                      {0xdd, 3},
                                      {0xdb, 1},
                                      {0xdb, 2},
                                      {0xdb, 3},
                                      {0xdd, 1},
                                      {0xdf, 1},
                                      {0xdf, 2},
                                      {0xdf, 3},
                                      {0xdf, 7},
                                      {0xdb, 7},
                                      {0xdf, 6}}) {
    AddMemory(forms, opcode, field, kAllButC1);  // FST, FIST, FISTTP, FBSTP
  }
  AddMemory(forms, 0xdb, 5, kAllButC1, X87Data::kFloat80);
  AddMemory(forms, 0xdf, 4, kAllButC1, X87Data::kBcd);
  AddRegisters(forms, 0xd9, 0xc0, kAllButC1);  // FLD st(i)
  AddRegisters(forms, 0xd9, 0xc8, kAllButC1);  // FXCH
  AddRegisters(forms, 0xdd, 0xd0, kAllButC1);  // FST st(i)
  AddRegisters(forms, 0xdd, 0xd8, kAllButC1);  // FSTP st(i)
  for (const int opcode : {0xda, 0xdb}) {
    for (const int modrm : {0xc0, 0xc8, 0xd0, 0xd8}) {
      AddRegisters(forms, opcode, modrm, kAllButC1);  // FCMOVcc
    }
  }
  AddRegisters(forms, 0xdd, 0xc0, kX87Conditions);  // FFREE
  AddRegisters(forms, 0xdf, 0xc0, kX87Conditions);  // FFREEP
  for (int modrm = 0xe8; modrm <= 0xee; ++modrm) {  // constants
    AddSingle(forms, 0xd9, modrm, kAllButC1);
  }
  for (const int modrm : {0xe0, 0xe1, 0xf6, 0xf7}) {  // FCHS, FABS, top
    AddSingle(forms, 0xd9, modrm, kAllButC1);
  }
}

void AddFunctions(X87Forms& forms) {
  // F2XM1, FYL2X, FPATAN, FXTRACT, FYL2XP1, FSQRT, FRNDINT, FSCALE
  for (const int modrm : {0xf0, 0xf1, 0xf3, 0xf4, 0xf9, 0xfa, 0xfc, 0xfd}) {
    AddSingle(forms, 0xd9, modrm, kAllButC1);
  }
  AddSingle(forms, 0xd9, 0xf5, 0);                    // FPREM1
  AddSingle(forms, 0xd9, 0xf8, 0);                    // FPREM
  for (const int modrm : {0xf2, 0xfb, 0xfe, 0xff}) {  // FPTAN .. FCOS
    AddSingle(forms, 0xd9, modrm, kX87C0 | kX87C3);
  }
}

void AddControl(X87Forms& forms) {
  AddMemory(forms, 0xd9, 5, kX87Conditions, X87Data::kControl);  // FLDCW
  AddMemory(forms, 0xd9, 7, kX87Conditions);                     // FNSTCW
  AddMemory(forms, 0xdd, 7, 0);                                  // FNSTSW
  AddSingle(forms, 0xdf, 0xe0, 0);
  AddSingle(forms, 0xd9, 0xd0, kX87Conditions);  // FNOP
  AddSingle(forms, 0xdb, 0xe2, kX87Conditions);  // FNCLEX
  AddSingle(forms, 0xdb, 0xe3, 0);               // FNINIT
}

}  // namespace

X87Forms AllX87Forms() {
  X87Forms forms;
  AddArithmetic(forms);
  AddComparisons(forms);
  AddMoves(forms);
  AddFunctions(forms);
  AddControl(forms);
  return forms;
}

}  // namespace clew::machine
