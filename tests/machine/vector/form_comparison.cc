#include "tests/machine/vector/form_comparison.h"

#include <fmt/format.h>
#include <signal.h>

#include "machine/decode.h"

namespace clew::machine {

std::string FormComparison::Describe(const std::vector<uint8_t>& code) {
  return Decoder().Describe(kCodeAt, std::as_bytes(std::span(code)));
}

bool FormComparison::Compare(const std::vector<uint8_t>& code, int count,
                             uint64_t misalignment) {
  oracle_.SetCode(code);
  for (int i = 0; i < count; ++i) {
    State state = AnyFormState();
    state.regs.gpr[kRsi] += random_.Below(misalignment + 1);
    const std::string difference = Difference(state);
    if (!difference.empty()) {
      ADD_FAILURE() << Describe(code) << ", seed " << seed_ << "\n"
                    << difference;
      return false;
    }
    ++compared_;
  }
  return true;
}

void FormComparison::CompareForm(const SseForm& form, int every) {
  constexpr int kTrialsPerImm = 2;
  const int imms = form.imm == ImmKind::kEvery ? 256 : 1;
  const int count = imms == 1 ? kTrials / every : kTrialsPerImm;
  // Those with VEX have so many operands that each meets a quarter of the
  // immediates, and each immediate several operands.
  const int step = imms == 1 ? 1 : (form.vex_lanes != 0 ? 4 : 1) * every;
  int first = 0;
  for (const Choice& choice : ChoicesFor(form)) {
    const uint64_t misalignment =
        choice.memory && (form.rm & kRmMem) != 0 ? 15 : 0;
    for (int imm = first; imm < imms; imm += step) {
      const auto code = Encode(form, choice, static_cast<uint8_t>(imm));
      if (!Compare(code, count, misalignment)) {
        return;
      }
    }
    first = (first + 1) % step;
  }
}

size_t FormComparison::CompareAll(const std::vector<SseForm>& forms,
                                  int every) {
  size_t count = 0;
  for (const SseForm& form : forms) {
    CompareForm(form, every);
    count += size_t{(form.rm & ~kInMemory) != 0} +
             size_t{(form.rm & kInMemory) != 0};
  }
  fmt::print("{} forms, {} comparisons\n", count, compared_);
  return count;
}

int FormComparison::SignalAt(const SseForm& form, uint64_t addr) {
  const auto code = Encode(form, kMemoryChoice, 0);
  oracle_.SetCode(code);
  State state = AnyFormState();
  state.regs.gpr[kRsi] = addr;
  EXPECT_EQ(Difference(state), "") << Describe(code) << ", seed " << seed_;
  return oracle_.RunOnMachine(state).signal;
}

void FormComparison::CompareFault(const SseForm& form, uint64_t addr) {
  EXPECT_EQ(SignalAt(form, addr), SIGSEGV)
      << Describe(Encode(form, kMemoryChoice, 0));
}

}  // namespace clew::machine
