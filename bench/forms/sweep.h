#ifndef CLEW_BENCH_FORMS_SWEEP_H_
#define CLEW_BENCH_FORMS_SWEEP_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "bench/forms/code.h"
#include "common/x86/features.h"

namespace clew::bench {

// Instructions that are told apart. The texts live as long as the program.
struct InsnForm {
  std::string_view mnemonic;
  std::string_view encoding;  // "legacy", "VEX", "EVEX", ..

  auto operator<=>(const InsnForm&) const = default;
};

struct Occurrences {
  uint64_t count = 0;
  // Of the first one:
  uint64_t addr = 0;
  std::string bytes;  // in hexadecimal

  void Add(uint64_t at, std::span<const std::byte> code);
};

struct FormCounts {
  std::string_view isa_set;  // as Zydis names it
  uint64_t covered = 0;
  Occurrences uncovered;
};

// What was found in code.
struct Tally {
  uint64_t insns = 0;
  uint64_t insns_covered = 0;
  std::map<InsnForm, FormCounts> forms;
  // Instructions that the machine's decoder decodes and Zydis does not know, or
  // with another length.
  Occurrences lengths_differing;
  // Bytes with which neither has an instruction begin.
  Occurrences no_insn;

  // Forms all of whose occurrences are covered.
  uint64_t forms_covered() const;
};

// Takes code apart and asks the machine for each instruction whether it can
// execute it. Not thread-safe.
class Sweeper {
 public:
  Sweeper();
  ~Sweeper();
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  // Adds to `tally` what is in `range`, from its first byte on, one instruction
  // after another.
  void Sweep(const CodeRange& range, Tally& tally);

  // What the machine carries out on this host.
  x86::FeatureSet features() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace clew::bench

#endif  // CLEW_BENCH_FORMS_SWEEP_H_
