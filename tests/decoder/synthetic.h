#ifndef CLEW_TESTS_DECODER_SYNTHETIC_H_
#define CLEW_TESTS_DECODER_SYNTHETIC_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/digest.h"
#include "common/units.h"
#include "decoder/perf_trace.h"
#include "recorder/pt_encoder/encoder_config.h"

namespace clew::decoder {

// A random program, run by a toy machine with several cores and threads, and
// traced with our encoder: what the decoder must give back is known.
struct SyntheticConfig {
  uint64_t seed = 1;
  uint32_t cores = 3;
  uint32_t threads = 5;
  uint64_t insns = 30000;
  recorder::EncoderConfig encoder = {};
  bool overflows = false;
  // Half of the program is in another file at another place.
  bool has_library = false;
  // Direct branches lead from one file to the other, too.
  bool linked_directly = false;
  // Chances, one in so many instructions; 0: never.
  uint64_t interrupt_one_in = 300;
  uint64_t idle_one_in = 2000;  // a core's clock jumps far ahead
};

struct TrueInsn {
  TraceeAddr ip;
  TscTicks time;
  CoreId core;
  bool interrupted = false;  // the thread left user mode after it, no SYSCALL
};

struct Synthetic {
  std::string folder;  // removed with the object
  std::string perf_path;
  std::string code_path;
  std::string path_of_library;  // empty: there is none
  TraceeAddr base_of_library;   // where it is mapped
  std::map<Tid, std::vector<TrueInsn>> truth;
  std::map<CoreId, std::vector<uint8_t>> pt;

  Synthetic() = default;
  Synthetic(const Synthetic&) = delete;
  Synthetic& operator=(const Synthetic&) = delete;
  ~Synthetic();
  // Finds the code file of a mapping where it is.
  TraceConfig Config() const;
};

// Up to four cores and six threads, under any setting of the encoder that has
// time.
SyntheticConfig RandomSyntheticConfig(uint64_t seed, Random& random);

// Runs and records. Fails the current test if a file cannot be written.
std::unique_ptr<Synthetic> MakeSynthetic(const SyntheticConfig& config);

// What was recorded, as a trace of our software or with what holds of hardware
// alone. Fails the current test if it is refused.
std::unique_ptr<PerfTrace> LoadTrace(const Synthetic& synthetic,
                                     bool like_hardware = false);

}  // namespace clew::decoder

#endif  // CLEW_TESTS_DECODER_SYNTHETIC_H_
