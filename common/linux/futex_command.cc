#include "common/linux/futex_command.h"

namespace clew {
namespace {

// 12 bits with a sign.
constexpr int32_t Operand(uint32_t bits) {
  return static_cast<int32_t>(bits << 20) >> 20;
}

std::optional<uint32_t> Operated(uint32_t operation, uint32_t operand,
                                 uint32_t word) {
  switch (operation) {
    case FUTEX_OP_SET:
      return operand;
    case FUTEX_OP_ADD:
      return word + operand;
    case FUTEX_OP_OR:
      return word | operand;
    case FUTEX_OP_ANDN:
      return word & ~operand;
    case FUTEX_OP_XOR:
      return word ^ operand;
    default:
      return std::nullopt;
  }
}

std::optional<bool> Compared(uint32_t comparison, int32_t word,
                             int32_t operand) {
  switch (comparison) {
    case FUTEX_OP_CMP_EQ:
      return word == operand;
    case FUTEX_OP_CMP_NE:
      return word != operand;
    case FUTEX_OP_CMP_LT:
      return word < operand;
    case FUTEX_OP_CMP_LE:
      return word <= operand;
    case FUTEX_OP_CMP_GT:
      return word > operand;
    case FUTEX_OP_CMP_GE:
      return word >= operand;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<FutexOperation> OperateOnFutex(uint32_t encoded, uint32_t word) {
  auto operand = static_cast<uint32_t>(Operand(encoded >> 12 & 0xfff));
  const uint32_t operation = encoded >> 28;
  if ((operation & FUTEX_OP_OPARG_SHIFT) != 0) {
    operand = uint32_t{1} << (operand & 31);
  }
  const auto value =
      Operated(operation & ~uint32_t{FUTEX_OP_OPARG_SHIFT}, operand, word);
  const auto wakes = Compared(encoded >> 24 & 0xf, static_cast<int32_t>(word),
                              Operand(encoded & 0xfff));
  if (!value || !wakes) {
    return std::nullopt;
  }
  return FutexOperation{.value = *value, .wakes = *wakes};
}

}  // namespace clew
