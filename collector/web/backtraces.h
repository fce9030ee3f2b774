#ifndef CLEW_COLLECTOR_WEB_BACKTRACES_H_
#define CLEW_COLLECTOR_WEB_BACKTRACES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace clew::collector::web {

// The document of Analysis::backtraces as far as it can be understood. It was
// made from a stranger's bundle: any text may be any bytes.
struct Frame {
  std::string function;  // empty: not known
  std::string module;
  std::string build_id;
  std::string offset;  // hexadecimal, in the module; empty: not known
  std::string file;
  uint64_t line = 0;  // 0: not known
};
struct ThreadTrace {
  int64_t thread = 0;
  bool failed = false;
  std::vector<Frame> frames;  // innermost first; at most kFramesMax
  size_t frames_left_out = 0;
  bool cut_off = false;  // the stack goes on
};
struct Backtraces {
  std::vector<ThreadTrace> threads;  // failed ones first; at most kThreadsMax
  size_t threads_left_out = 0;
  std::vector<std::string> notes;  // for people; at most kNotesMax
  bool understood = true;  // false: no JSON, or without a list of threads
};
inline constexpr size_t kFramesMax = 64;
inline constexpr size_t kThreadsMax = 256;
inline constexpr size_t kNotesMax = 16;
inline constexpr size_t kBacktracesDepthMax = 8;  // of JSON in JSON

// An access as `clew solve --json` says it of the races of a witness, likewise.
struct AccessSeen {
  int64_t thread = 0;
  std::string kind;  // "read", "write", "read-modify-write"
  Frame place;
  std::string within;    // a library's function that the place called
  std::string variable;  // empty: not known
  uint64_t addr = 0;
  uint64_t value = 0;
  std::string call;  // to a descriptor; empty: an access to memory
  uint64_t descriptor = 0;
  int64_t result = 0;
};
using AccessesSeen = std::vector<AccessSeen>;  // in the witness's order
inline constexpr size_t kRacesMax = 4;
inline constexpr size_t kAccessesMax = 8;
// Without those that are none of the program's.
std::vector<AccessesSeen> ParseRaces(std::string_view json_untrusted);

// What it says of a thread that nothing woke, likewise.
struct LockSeen {
  std::string name;  // of the variable, or its address
  bool shared = false;
  Frame place;  // where it was taken
};
struct WaitSeen {
  int64_t thread = 0;
  bool in_cycle = false;
  std::string what;  // "lock", "condition variable", "end of thread"
  std::string name;  // as of a lock; a thread's number
  Frame place;
  std::vector<LockSeen> holds;  // at most kHoldsMax
};
inline constexpr size_t kWaitsMax = 16;
inline constexpr size_t kHoldsMax = 8;
// Those of a cycle first.
std::vector<WaitSeen> ParseWaits(std::string_view json_untrusted);

// Takes anything; what has another type than it should is left out.
Backtraces ParseBacktraces(std::string_view json_untrusted);

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_BACKTRACES_H_
