#ifndef CLEW_BUNDLE_PERF_DATA_PT_STREAM_H_
#define CLEW_BUNDLE_PERF_DATA_PT_STREAM_H_

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "common/units.h"

// Whose PT a stream is. perf records a stream for each core or, with
// --per-thread, for each thread, wherever that runs. The CoreId of a thread's
// own stream has a bit that no core's number has; the others are its Tid.

namespace clew::bundle {

inline constexpr uint32_t kThreadStreamBit = 1u << 31;

// REQUIRES: thread > 0.
constexpr CoreId StreamOfThread(Tid thread) {
  return CoreId(kThreadStreamBit | static_cast<uint32_t>(thread.as_int()));
}

constexpr bool IsStreamOfThread(CoreId stream) {
  return (stream.as_int() & kThreadStreamBit) != 0;
}

// REQUIRES: IsStreamOfThread(stream).
constexpr Tid ThreadOfStream(CoreId stream) {
  return Tid(static_cast<int32_t>(stream.as_int() & ~kThreadStreamBit));
}

// "core 3", "thread 4711".
inline std::string StreamName(CoreId stream) {
  return IsStreamOfThread(stream)
             ? fmt::format("thread {}", ThreadOfStream(stream))
             : fmt::format("core {}", stream);
}

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_PT_STREAM_H_
