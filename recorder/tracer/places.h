#ifndef CLEW_RECORDER_TRACER_PLACES_H_
#define CLEW_RECORDER_TRACER_PLACES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/linux/syscall_reads.h"
#include "common/result.h"
#include "recorder/tracer/shared_layout.h"

namespace clew::tracer {

// Chooses where the runtime goes in a process whose /proc/PID/maps is `maps`:
// in gaps, so that what the program maps lies where the kernel would put it
// without, unless it fills more than 1 GiB below its libraries. `libraries` is
// an address among those, that of its loader say; `program` is one of its own
// file.
//
// A cache is near the code that it has copies of, within 2 GiB, where there is
// room; another one else, which costs time.
//
// kLimit: there is no gap for it.
[[nodiscard]] Result<Places> ChoosePlaces(std::string_view maps,
                                          uint64_t libraries, uint64_t program);

// What the runtime has there.
[[nodiscard]] std::vector<MemoryRange> MemoryOf(const Places& places);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_PLACES_H_
