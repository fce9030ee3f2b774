#ifndef CLEW_TESTS_RECORDER_BPF_RAW_EVENTS_H_
#define CLEW_TESTS_RECORDER_BPF_RAW_EVENTS_H_

#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

#include "recorder/bpf/raw_event.h"

// Events as the kernel's side writes them, for tests without a kernel.

namespace clew::recorder::bpf {

inline RawHead HeadOf(RawKind kind, uint32_t thread, uint64_t sequence,
                      uint32_t lost = 0, uint32_t causes = 0) {
  return {.kind = kind,
          .process = 5,
          .thread = thread,
          .lost = lost,
          .causes = causes,
          .zero = 0,
          .sequence = sequence};
}

inline RawCall CallOf(uint32_t thread, uint64_t sequence, uint64_t number,
                      int64_t result, uint32_t pieces = 0) {
  RawCall call = {};
  call.head = HeadOf(kRawCall, thread, sequence);
  call.number = number;
  call.result = result;
  call.flags = kRawReturned;
  call.pieces = pieces;
  return call;
}

inline RawSignal SignalOf(uint32_t thread, uint64_t sequence, uint64_t handler,
                          uint64_t sa_flags = 0) {
  RawSignal signal = {};
  signal.head = HeadOf(kRawSignal, thread, sequence);
  signal.taken.handler = handler;
  signal.taken.sa_flags = sa_flags;
  signal.taken.number = 10;
  return signal;
}

inline RawEnd EndOf(uint32_t thread, uint64_t sequence, uint32_t lost = 0,
                    uint32_t causes = 0) {
  return {.head = HeadOf(kRawEnd, thread, sequence, lost, causes)};
}

template <class Raw>
std::vector<std::byte> BytesOf(const Raw& raw) {
  std::vector<std::byte> bytes(sizeof(raw));
  std::memcpy(bytes.data(), &raw, sizeof(raw));
  return bytes;
}

// REQUIRES: text.size() <= CLEW_RAW_PIECE_SMALL.
inline std::vector<std::byte> PieceOf(uint32_t thread, uint64_t sequence,
                                      uint64_t addr, std::string_view text,
                                      RawPieceUse use = kRawWritten) {
  RawPiece piece = {};
  piece.head = HeadOf(kRawPiece, thread, sequence);
  piece.addr = addr;
  piece.size_bytes = static_cast<uint32_t>(text.size());
  piece.use = use;
  auto bytes = BytesOf(piece);
  bytes.resize(sizeof(piece) + CLEW_RAW_PIECE_SMALL);
  std::memcpy(bytes.data() + sizeof(piece), text.data(), text.size());
  return bytes;
}

}  // namespace clew::recorder::bpf

#endif  // CLEW_TESTS_RECORDER_BPF_RAW_EVENTS_H_
