#ifndef CLEW_TESTS_COMMON_X86_CAPSTONE_ORACLE_H_
#define CLEW_TESTS_COMMON_X86_CAPSTONE_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/x86/branch.h"

struct cs_insn;

namespace clew::x86 {

// What Capstone says about one instruction.
struct CapstoneInsn {
  size_t length = 0;
  BranchClass branch_class = BranchClass::kNone;
};

class CapstoneOracle {
 public:
  CapstoneOracle();
  ~CapstoneOracle();
  CapstoneOracle(const CapstoneOracle&) = delete;
  CapstoneOracle& operator=(const CapstoneOracle&) = delete;

  // nullopt if it does not know the instruction that `bytes` begin with.
  std::optional<CapstoneInsn> Disassemble(std::span<const uint8_t> bytes);
  // Of the last one that it knew, as in "jmp 0x1004".
  std::string text() const;

 private:
  size_t handle_ = 0;
  cs_insn* raw_ = nullptr;
};

}  // namespace clew::x86

#endif  // CLEW_TESTS_COMMON_X86_CAPSTONE_ORACLE_H_
