#include "tests/common/x86/capstone_oracle.h"

#include <capstone/capstone.h>

#include <string_view>

#include "common/check.h"

namespace clew::x86 {
namespace {

bool IsFar(unsigned id) {
  switch (id) {
    case X86_INS_LJMP:
    case X86_INS_LCALL:
    case X86_INS_RETF:
    case X86_INS_RETFQ:
    case X86_INS_IRET:
    case X86_INS_IRETD:
    case X86_INS_IRETQ:
    case X86_INS_INT:
    case X86_INS_INT1:
    case X86_INS_INT3:
    case X86_INS_INTO:
    case X86_INS_SYSCALL:
    case X86_INS_SYSRET:
    case X86_INS_SYSENTER:
    case X86_INS_SYSEXIT:
    case X86_INS_VMCALL:
    case X86_INS_VMLAUNCH:
    case X86_INS_VMRESUME:
      return true;
    default:
      return false;
  }
}

bool IsConditional(std::string_view name) {
  return name.starts_with("loop") || (name.starts_with("j") && name != "jmp");
}

bool IsDirect(const cs_insn& raw) {
  const cs_x86& x86 = raw.detail->x86;
  return x86.op_count > 0 && x86.operands[0].type == X86_OP_IMM;
}

bool IsString(std::string_view name) {
  for (const char* stem : {"ins", "outs", "movs", "cmps", "stos", "lods"}) {
    if (name.size() == std::string_view(stem).size() + 1 &&
        name.starts_with(stem)) {
      return true;
    }
  }
  return name.starts_with("scas");
}

BranchClass ClassOf(const cs_insn& raw, std::string_view name) {
  if (IsFar(raw.id)) {
    return BranchClass::kFar;
  }
  if (IsConditional(name)) {
    return BranchClass::kConditional;
  }
  switch (raw.id) {
    case X86_INS_JMP:
      return IsDirect(raw) ? BranchClass::kDirectJump
                           : BranchClass::kIndirectJump;
    case X86_INS_CALL:
      return IsDirect(raw) ? BranchClass::kDirectCall
                           : BranchClass::kIndirectCall;
    case X86_INS_RET:
      return BranchClass::kReturn;
    default:
      break;
  }
  // Not by the mnemonic: it has no "repne" for MOVSD. SSE has a MOVSD too.
  const cs_x86& x86 = raw.detail->x86;
  const bool repeats = x86.prefix[0] == 0xf2 || x86.prefix[0] == 0xf3;
  return repeats && x86.opcode[0] != 0x0f && IsString(name)
             ? BranchClass::kRepString
             : BranchClass::kNone;
}

}  // namespace

CapstoneOracle::CapstoneOracle() {
  CLEW_CHECK(cs_open(CS_ARCH_X86, CS_MODE_64, &handle_) == CS_ERR_OK,
             "capstone cannot be opened");
  cs_option(handle_, CS_OPT_DETAIL, CS_OPT_ON);
  raw_ = cs_malloc(handle_);
}

CapstoneOracle::~CapstoneOracle() {
  cs_free(raw_, 1);
  cs_close(&handle_);
}

std::optional<CapstoneInsn> CapstoneOracle::Disassemble(
    std::span<const uint8_t> bytes) {
  const uint8_t* code = bytes.data();
  size_t size = bytes.size();
  uint64_t ip = 0x1000;
  if (!cs_disasm_iter(handle_, &code, &size, &ip, raw_)) {
    return std::nullopt;
  }
  const char* name = cs_insn_name(handle_, raw_->id);
  return CapstoneInsn{raw_->size, ClassOf(*raw_, name)};
}

std::string CapstoneOracle::text() const {
  return std::string(raw_->mnemonic) + " " + raw_->op_str;
}

}  // namespace clew::x86
