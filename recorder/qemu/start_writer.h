#ifndef CLEW_RECORDER_QEMU_START_WRITER_H_
#define CLEW_RECORDER_QEMU_START_WRITER_H_

#include <span>
#include <string>

#include "common/inputs.h"
#include "recorder/qemu/guest_memory.h"

namespace clew::recorder {

// Writes start.pb (message Start) to `path`: the registers in `state`, whose
// segments are ignored, and the memory of `regions` as it is now, without the
// zero pages at a region's end. Memory use does not depend on the regions.
[[nodiscard]] Status WriteStart(const std::string& path,
                                const StartState& state,
                                std::span<const GuestRegion> regions,
                                const GuestMemory& memory);

// True if `count` bytes (at most a page) at `addr` are readable and not all
// zero.
bool HasContent(const GuestMemory& memory, uint64_t addr, size_t count);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_START_WRITER_H_
