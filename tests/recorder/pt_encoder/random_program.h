#ifndef CLEW_TESTS_RECORDER_PT_ENCODER_RANDOM_PROGRAM_H_
#define CLEW_TESTS_RECORDER_PT_ENCODER_RANDOM_PROGRAM_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "common/digest.h"
#include "common/x86/branch.h"
#include "recorder/pt_encoder/core_encoder.h"
#include "tests/recorder/pt_encoder/ipt_decode.h"

namespace clew::recorder {

// Random basic blocks as real machine code, in regions near and far from each
// other. Direct jumps and calls lead forward only, so that no address repeats
// without a packet between (then an interrupt could not be located, not on
// hardware either).
class RandomProgram {
 public:
  struct Insn {
    x86::BranchClass branch_class = x86::BranchClass::kNone;
    uint64_t next_ip = 0;
    uint64_t target = 0;  // of direct branches
  };

  RandomProgram(Random& random, int blocks_per_region);

  const CodeImage& image() const { return image_; }
  const Insn& At(uint64_t ip) const { return insns_.at(ip); }
  uint64_t RandomBlock(Random& random) const {
    return starts_[random.Below(starts_.size())];
  }

 private:
  void AddRegion(Random& random, uint64_t addr, int blocks);

  CodeImage image_;
  std::vector<uint64_t> starts_;
  std::unordered_map<uint64_t, Insn> insns_;
};

// An abstract execution and what it told the encoder.
struct Execution {
  struct Step {
    uint64_t ip = 0;
    uint64_t time = 0;        // at which it retired
    uint64_t event_time = 0;  // of the last event encoded before it
    bool branch = false;      // it told the encoder something
  };
  std::vector<Step> steps;
  // Indices into steps at which an overflow happened before.
  std::vector<size_t> overflows;
};

struct ExecutionMix {
  int overflow_per_1000 = 0;
  int interrupt_per_1000 = 10;
  int pause_per_1000 = 2;  // long time in the kernel
  int wrong_return_percent = 10;
};

// Runs at least `insns` instructions and leaves the encoder disabled and
// flushed.
Execution Execute(const RandomProgram& program, Random& random, int insns,
                  const ExecutionMix& mix, CoreEncoder& encoder);

}  // namespace clew::recorder

#endif  // CLEW_TESTS_RECORDER_PT_ENCODER_RANDOM_PROGRAM_H_
