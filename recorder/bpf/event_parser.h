#ifndef CLEW_RECORDER_BPF_EVENT_PARSER_H_
#define CLEW_RECORDER_BPF_EVENT_PARSER_H_

#include <cstddef>
#include <span>
#include <variant>

#include "common/result.h"
#include "recorder/bpf/raw_event.h"

namespace clew::recorder::bpf {

// A piece with its bytes, which point into the event.
struct PieceEvent {
  RawPiece piece;
  std::span<const std::byte> bytes;
};

using RawEvent = std::variant<PieceEvent, RawCall, RawSignal, RawEnd>;

// Checks one event of the ring, field by field. Allocates for errors only.
//
// kCorruptInput: of no known kind, of another size than its kind has, a number
// out of its range (raw_event.h), a thread 0.
[[nodiscard]] Result<RawEvent> ParseInputEvent(
    std::span<const std::byte> bytes);

}  // namespace clew::recorder::bpf

#endif  // CLEW_RECORDER_BPF_EVENT_PARSER_H_
