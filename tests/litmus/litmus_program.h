#ifndef CLEW_TESTS_LITMUS_LITMUS_PROGRAM_H_
#define CLEW_TESTS_LITMUS_LITMUS_PROGRAM_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Small programs of a few threads over a few variables, for tests of memory
// models.
namespace clew::test {

// Variables a, b, c, ... lie 8 bytes apart, and are 0 at first.
inline constexpr uint32_t kLitmusVariables = 6;
inline constexpr uint32_t kLitmusBytes = 8 * kLitmusVariables;

struct LitmusOp {
  enum class Kind : uint8_t {
    kLoad,       // a new register gets what is at the place
    kStore,      // the place gets `value`
    kCopy,       // the place gets register number `value`
    kIncrement,  // the place gets itself + 1
    kAdd,        // a new register gets what is there, the place that + `value`
    kExchange,   // a new register gets what is there, the place `value`; always
                 // one step, as XCHG with memory is
    kSwapIfZero,  // the same, but it keeps what it has if that is not 0
                  // (CMPXCHG8B with `value` below 2^32)
    kFence,       // MFENCE
    kStoreFence,  // SFENCE
    kLoadFence,   // LFENCE: nothing here
  };
  Kind kind = Kind::kLoad;
  bool locked =
      false;        // of those that read and write: one step, no store waits
  uint32_t at = 0;  // byte
  uint32_t size_bytes = 8;
  uint32_t value = 0;
};

using LitmusThread = std::vector<LitmusOp>;
using LitmusProgram = std::vector<LitmusThread>;

// Whether it leaves something in a new register.
bool HasResult(LitmusOp::Kind kind);

// Threads are separated by '|', operations by ';'. An operation, where PLACE is
// a variable, with size and offset if need be (a.4+2: 4 bytes from byte 2 on):
//
//     r=PLACE  PLACE=7  PLACE=$0  [lock] PLACE++  [lock] r=add PLACE 2
//     r=xchg PLACE 1  [lock] r=swap PLACE 1  mfence  sfence  lfence
LitmusProgram ParseLitmus(std::string_view text);
std::string LitmusText(const LitmusProgram& program);

// What a run left: results of each thread in order, then memory.
struct LitmusOutcome {
  std::vector<std::vector<uint64_t>> results;
  std::vector<uint8_t> memory;
  auto operator<=>(const LitmusOutcome&) const = default;
};

}  // namespace clew::test

#endif  // CLEW_TESTS_LITMUS_LITMUS_PROGRAM_H_
