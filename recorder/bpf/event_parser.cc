#include "recorder/bpf/event_parser.h"

#include <cstring>
#include <limits>

namespace clew::recorder::bpf {
namespace {

constexpr uint32_t kThreadMax = std::numeric_limits<int32_t>::max();
constexpr uint32_t kCausesMask = (1u << kRawCauses) - 1;
constexpr uint32_t kSignalMax = 64;

template <class Raw>
Result<Raw> Load(std::span<const std::byte> bytes, size_t size_wanted,
                 const char* what) {
  if (bytes.size() != size_wanted) {
    return CorruptInput("bpf event: a {} has {} bytes, wanted {}", what,
                        bytes.size(), size_wanted);
  }
  Raw raw;
  std::memcpy(&raw, bytes.data(), sizeof(raw));
  return raw;
}

Status CheckHead(const RawHead& head) {
  if (head.thread == 0 || head.thread > kThreadMax || head.process == 0 ||
      head.process > kThreadMax) {
    return CorruptInput("bpf event: thread {} of process {}, wanted 1 to {}",
                        head.thread, head.process, kThreadMax);
  }
  if ((head.causes & ~kCausesMask) != 0 ||
      (head.lost == 0) != (head.causes == 0) || head.zero != 0) {
    return CorruptInput(
        "bpf event: thread {}: {} lost for causes {:#x}, wanted causes below "
        "{:#x} where something was lost",
        head.thread, head.lost, head.causes, kCausesMask + 1);
  }
  if (head.sequence == 0 || head.sequence <= head.lost) {
    return CorruptInput(
        "bpf event: thread {}: sequence {} behind {} that were lost",
        head.thread, head.sequence, head.lost);
  }
  return {};
}

Result<RawEvent> ParsePiece(std::span<const std::byte> bytes) {
  const size_t data_bytes = bytes.size() - sizeof(RawHead);
  if (data_bytes < sizeof(RawPiece) - sizeof(RawHead)) {
    return CorruptInput("bpf event: a piece has {} bytes, wanted at least {}",
                        bytes.size(), sizeof(RawPiece));
  }
  PieceEvent event;
  std::memcpy(&event.piece, bytes.data(), sizeof(event.piece));
  const RawPiece& piece = event.piece;
  const auto data = bytes.subspan(sizeof(RawPiece));
  if (data.size() != CLEW_RAW_PIECE_SMALL &&
      data.size() != CLEW_RAW_PIECE_MEDIUM &&
      data.size() != CLEW_RAW_PIECE_LARGE) {
    return CorruptInput("bpf event: a piece has room for {} bytes, wanted {}",
                        data.size(), "64, 512 or 4096");
  }
  if (piece.size_bytes == 0 || piece.size_bytes > data.size()) {
    return CorruptInput("bpf event: a piece of {} bytes in room for {}",
                        piece.size_bytes, data.size());
  }
  if (piece.use >= kRawPieceUses || piece.head.lost != 0) {
    return CorruptInput("bpf event: a piece of use {} behind {} lost events",
                        piece.use, piece.head.lost);
  }
  if (piece.addr + piece.size_bytes < piece.addr) {
    return CorruptInput("bpf event: a piece of {} bytes at {:#x} wraps around",
                        piece.size_bytes, piece.addr);
  }
  event.bytes = data.first(piece.size_bytes);
  return event;
}

Result<RawEvent> ParseCall(std::span<const std::byte> bytes) {
  CLEW_ASSIGN_OR_RETURN(call, Load<RawCall>(bytes, sizeof(RawCall), "call"));
  if ((call.flags & ~static_cast<uint32_t>(kRawReturned)) != 0 ||
      (call.unknown & ~kCausesMask) != 0 || call.zero != 0) {
    return CorruptInput("bpf event: a call with flags {:#x}, unknown {:#x}",
                        call.flags, call.unknown);
  }
  return call;
}

Result<RawEvent> ParseSignal(std::span<const std::byte> bytes) {
  CLEW_ASSIGN_OR_RETURN(signal,
                        Load<RawSignal>(bytes, sizeof(RawSignal), "signal"));
  if (signal.taken.number == 0 || signal.taken.number > kSignalMax ||
      signal.taken.zero != 0) {
    return CorruptInput("bpf event: signal number is {}, wanted 1..{}",
                        signal.taken.number, kSignalMax);
  }
  if ((signal.unknown & ~kCausesMask) != 0) {
    return CorruptInput("bpf event: a signal with unknown {:#x}",
                        signal.unknown);
  }
  return signal;
}

}  // namespace

Result<RawEvent> ParseInputEvent(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(RawHead)) {
    return CorruptInput("bpf event: {} bytes, wanted at least {}", bytes.size(),
                        sizeof(RawHead));
  }
  RawHead head;
  std::memcpy(&head, bytes.data(), sizeof(head));
  CLEW_RETURN_IF_ERROR(CheckHead(head));
  switch (head.kind) {
    case kRawPiece:
      return ParsePiece(bytes);
    case kRawCall:
      return ParseCall(bytes);
    case kRawSignal:
      return ParseSignal(bytes);
    case kRawEnd: {
      CLEW_ASSIGN_OR_RETURN(end, Load<RawEnd>(bytes, sizeof(RawEnd), "end"));
      return end;
    }
    default:
      return CorruptInput("bpf event: kind is {}, wanted 1..4", head.kind);
  }
}

}  // namespace clew::recorder::bpf
