#ifndef CLEW_RECORDER_QEMU_REQUEST_TABLE_H_
#define CLEW_RECORDER_QEMU_REQUEST_TABLE_H_

#include <cstdint>
#include <optional>

namespace clew::recorder {

// How many bytes the kernel writes at the argument of an ioctl(2) request (its
// third one), or of a prctl(2) option (its second one), if the call succeeds.
// nullopt: the recorder does not know the request.
std::optional<uint64_t> IoctlBytes(uint32_t request);
std::optional<uint64_t> PrctlBytes(uint64_t option);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_REQUEST_TABLE_H_
