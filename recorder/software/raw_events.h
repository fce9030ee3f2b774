#ifndef CLEW_RECORDER_SOFTWARE_RAW_EVENTS_H_
#define CLEW_RECORDER_SOFTWARE_RAW_EVENTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/units.h"

namespace clew::recorder {

// A line of the plugin's event file: "<kind> <core> <thread> <tsc> ...".
struct RawEvent {
  enum class Kind : uint8_t {
    kSwitchIn,   // in
    kSwitchOut,  // out, 1 if preempted
    kFork,       // fork, child
    kExit,       // exit, parent
    kComm,       // comm, 1 if by execve, name
    kMmap,       // mmap, addr, size, file offset, prot, path
  };
  Kind kind = Kind::kSwitchIn;
  CoreId core;
  Tid thread;
  TscTicks time;
  Tid other;          // child or parent
  bool flag = false;  // preempted, execve
  uint64_t addr = 0;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  uint32_t prot = 0;
  std::string text;  // name or path
};

// Fails with kCorruptInput, naming `line`, if that is not an event.
[[nodiscard]] Result<RawEvent> ParseRawEvent(const std::string& line);

// Calls `take` for each event of the file, in order; stops at its first error.
[[nodiscard]] Status ForEachRawEvent(
    const std::string& path,
    const std::function<Status(const RawEvent&)>& take);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_RAW_EVENTS_H_
