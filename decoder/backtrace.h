#ifndef CLEW_DECODER_BACKTRACE_H_
#define CLEW_DECODER_BACKTRACE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "common/inputs.h"
#include "common/result.h"
#include "common/units.h"

namespace clew::decoder {

// Most of everything that a backtrace has; what is beyond is left out, and
// said.
struct BacktraceLimits {
  size_t threads_max = 4096;
  size_t frames_max = 128;  // of a thread
  std::chrono::milliseconds time_max{20'000};
  uint64_t core_bytes_max = bundle::CoreDump::kSizeMax;
};

struct BacktraceFrame {
  TraceeAddr pc;
  std::string symbol = {};    // as in the symbol table; empty: not known
  std::string function = {};  // the same as people write it
  std::string module = {};  // base name of the image; empty: no file was there
  std::string build_id = {};  // hexadecimal; empty: not known
  // Address in the image's ELF file, as addr2line takes it. Of an image that is
  // not in the bundle: in the file's bytes. Without a module: `pc`.
  uint64_t offset = 0;
  // CodePlace's, of a frame without a symbol.
  uint64_t row_offset = 0;
  uint64_t row_bytes = 0;
  std::string file = {};  // source; empty: not known
  int line = 0;
};

struct ThreadBacktrace {
  Tid thread;
  bool failed = false;
  std::vector<BacktraceFrame> frames = {};  // innermost first; never empty
  bool cut_off = false;                     // there are more
};

// The program that ran: the image with the entry point.
struct FailedProgram {
  std::string name = {};      // base name; empty: not known
  std::string build_id = {};  // hexadecimal; empty: not known
  // What its package note says, at most kVersionBytesMax of printable ASCII,
  // or else the build-id.
  std::string version = {};
};
inline constexpr size_t kVersionBytesMax = 100;

struct Backtrace {
  Failure failure;
  FailedProgram program = {};
  // What the program said when it ended itself: Unwinder::AbortMessage.
  std::string message = {};
  // The failing one first, if there is one, then as in the core dump.
  std::vector<ThreadBacktrace> threads = {};
  // Files of program code that were mapped.
  std::vector<std::string> modules = {};
  // For people: that the failure may be the recorder's, then what is missing.
  std::vector<std::string> notes = {};
};

// The call stacks at the end of the run. From the core dump; without one, the
// failing instruction alone, as the manifest has it. Inlined functions are part
// of those that they are in.
//
// No limit is an Error but core_bytes_max (kLimit). kCorruptInput: the core
// dump, or without one perf.data, breaks its format. The images may be damaged
// in any way: a stack then ends where nothing tells how to go on.
[[nodiscard]] Result<Backtrace> ReadBacktrace(const bundle::Bundle& bundle,
                                              const BacktraceLimits& limits);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_BACKTRACE_H_
