#ifndef CLEW_TESTS_MACHINE_VECTOR_EVEX_COMPARISON_H_
#define CLEW_TESTS_MACHINE_VECTOR_EVEX_COMPARISON_H_

#include <cstdint>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <string_view>

#include "tests/machine/vector/evex_forms.h"
#include "tests/machine/vector/form_comparison.h"

namespace clew::machine {

// Mnemonics of forms of evex_forms.h that the machine does not carry out.
const std::set<std::string_view>& NotCarriedOut();

// Some of the forms, and how often each is compared.
struct EvexPart {
  std::string_view name;
  int trials = 0;
  uint8_t map = 0;  // EVEX.mmm; 0: all forms
  uint8_t pp = 0;

  bool Has(const EvexForm& form) const {
    return map == 0 || (form.map == map && form.pp == pp);
  }
  friend void PrintTo(const EvexPart& part, std::ostream* out) {
    *out << part.name;
  }
};

// Forms of evex_forms.h on the machine and on the CPU, if that has AVX-512,
// from the same random states. At its end a test prints which differ.
class EvexComparison : public FormComparison,
                       public testing::WithParamInterface<EvexPart> {
 protected:
  enum class Verdict : uint8_t { kAgree, kDiffer, kNotSupported };

  explicit EvexComparison(uint64_t seed) : FormComparison(seed) {}
  void SetUp() override;
  void TearDown() override;
  State AnyFormState() override;
  std::string Difference(const State& state) override;

  // Calls f(form) for each form of the part that the CPU has.
  template <class F>
  void EachForm(const EvexForms& forms, F f) {
    for (const EvexForm& form : forms) {
      if (GetParam().Has(form) && x86::HostFeatures().Contains(form.needs)) {
        ++forms_;
        f(form);
      }
    }
  }

  // Low and high registers, equal ones, any, as `trial` says; any writemask,
  // displacement and index that the form may have.
  EvexChoice AnyChoice(const EvexForm& form, int trial);
  // A state in which the memory operand is in the window, and as the form wants
  // it aligned.
  State AnyStateFor(const EvexForm& form, const EvexChoice& choice);
  // On both. The first two of a mnemonic that differ, and a mnemonic that is
  // not supported and not among NotCarriedOut, are failures.
  Verdict Compare(const EvexForm& form, const EvexChoice& choice, uint8_t imm,
                  const State& state);
  // As often as the part says, until they differ; five times as often where
  // `has_many` values matter. Each form goes on with the immediates where the
  // one before it ended: those of one instruction meet all of them.
  void CompareForm(const EvexForm& form, bool has_many);
  // Of the last Compare, on the machine; 0: none.
  int signal() const { return signal_; }

 private:
  uint64_t AnyIndex(unsigned scale);

  uint8_t next_imm_ = 0;
  int forms_ = 0;
  int compared_ = 0;
  int signal_ = 0;
  std::map<std::string_view, int> differ_;
  std::set<std::string_view> not_supported_;
};

inline std::string PartName(const testing::TestParamInfo<EvexPart>& test) {
  return std::string(test.param.name);
}

}  // namespace clew::machine

#endif  // CLEW_TESTS_MACHINE_VECTOR_EVEX_COMPARISON_H_
