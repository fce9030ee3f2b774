#ifndef CLEW_TESTS_MACHINE_FORMS_H_
#define CLEW_TESTS_MACHINE_FORMS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/digest.h"
#include "tests/machine/oracle.h"

namespace clew::machine {

// One encoding to compare with the CPU.
struct Form {
  std::vector<uint8_t> code;
  std::string mnemonic;
  uint64_t undefined_flags = 0;
};

// Encodings of opcode x prefixes x ModRM that the disassembler accepts, for
// opcodes of the one-byte map (0), 0F (1), 0F 38 (2). Immediates and
// displacements are made from `random`.
std::vector<Form> MakeForms(int map, uint8_t first_opcode, uint8_t last_opcode,
                            Random& random);

// The encodings of BMI1 and BMI2, all of which have VEX.
std::vector<Form> MakeVexForms(Random& random);

// Flags that the manual leaves undefined after `mnemonic`.
uint64_t UndefinedFlags(std::string_view mnemonic);

// A state with boundary and random values; address registers mostly point into
// the data window.
State MakeState(Random& random);
uint64_t BoundaryValue(Random& random);

}  // namespace clew::machine

#endif  // CLEW_TESTS_MACHINE_FORMS_H_
