#ifndef CLEW_RECORDER_QEMU_RESERVATION_H_
#define CLEW_RECORDER_QEMU_RESERVATION_H_

#include <array>
#include <cstdint>
#include <functional>

#include "common/result.h"

namespace clew::recorder {

// Memory of the host that can be used without taking it from others, as the
// kernel estimates it; UINT64_MAX where it does not say.
uint64_t AvailableHostBytes();

// At an mmap or mremap: whether the host can bear it. QEMU keeps a description
// of each page of a mapping, also of one that is only reserved, and does not
// give it back. `available_bytes` says what the host has left, and is asked for
// large mappings. kUnsupported: too large a mapping; the message says what to
// do. Other calls pass.
[[nodiscard]] Status CheckReservation(
    uint64_t number, const std::array<uint64_t, 6>& args,
    const std::function<uint64_t()>& available_bytes);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_RESERVATION_H_
