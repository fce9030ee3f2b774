#ifndef CLEW_TESTS_MACHINE_VECTOR_FORM_COMPARISON_H_
#define CLEW_TESTS_MACHINE_VECTOR_FORM_COMPARISON_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/machine/vector/any_state.h"
#include "tests/machine/vector/sse_forms.h"

namespace clew::machine {

// Forms on the machine and on the CPU, from the same random states. Which
// states, and what must agree, the derived fixture says.
class FormComparison : public testing::Test {
 protected:
  static constexpr int kTrials = 60;
  static constexpr uint8_t kInMemory = kRmMem | kRmMemAligned;
  static constexpr Choice kMemoryChoice = {1, 0, true};

  explicit FormComparison(uint64_t seed) : random_(seed), seed_(seed) {}

  virtual State AnyFormState() = 0;
  // Empty, or how machine and CPU differ after the oracle's code.
  virtual std::string Difference(const State& state) = 0;

  // Runs `code` from `count` states, with rsi moved on by up to `misalignment`
  // bytes; false after the first failure.
  bool Compare(const std::vector<uint8_t>& code, int count,
               uint64_t misalignment = 0);
  // Runs all, with all operands and immediates, and prints how many. Returns
  // the number of forms; one with operands in registers and memory is two.
  // `every`: only one in so many comparisons.
  size_t CompareAll(const std::vector<SseForm>& forms, int every = 1);
  // The machine and the CPU do the same from a state with rsi at `addr`.
  // Returns the signal, 0 for none.
  int SignalAt(const SseForm& form, uint64_t addr);
  // They fault alike.
  void CompareFault(const SseForm& form, uint64_t addr);

  static std::string Describe(const std::vector<uint8_t>& code);

  Oracle oracle_;
  Random random_;

 private:
  void CompareForm(const SseForm& form, int every);

  uint64_t seed_;
  int64_t compared_ = 0;
};

}  // namespace clew::machine

#endif  // CLEW_TESTS_MACHINE_VECTOR_FORM_COMPARISON_H_
