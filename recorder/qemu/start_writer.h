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

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_START_WRITER_H_
