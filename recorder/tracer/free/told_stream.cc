#include "recorder/tracer/free/told_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace clew::tracer {
namespace {

// What the writes of a call may take here, twice what it tells.
constexpr uint64_t kWriteBytesMax = 2 * kWritesOfCallMax;

template <class T>
Result<T> Load(std::span<const std::byte> bytes, const char* what) {
  if (bytes.size() != sizeof(T)) {
    return CorruptInput("a thread tells of {} in {} bytes, wanted {}", what,
                        bytes.size(), sizeof(T));
  }
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

}  // namespace

Status ToldStream::Take(std::span<const std::byte> bytes) {
  rest_.insert(rest_.end(), bytes.begin(), bytes.end());
  std::span<const std::byte> left = rest_;
  while (left.size() >= sizeof(ToldHead)) {
    ToldHead head;
    std::memcpy(&head, left.data(), sizeof(head));
    if (head.bytes > kToldBytesMax) {
      return CorruptInput("a thread tells {} bytes at once, at most {}",
                          head.bytes, kToldBytesMax);
    }
    if (left.size() - sizeof(head) < head.bytes) {
      break;
    }
    CLEW_RETURN_IF_ERROR(
        TakeItem(head.kind, left.subspan(sizeof(head), head.bytes)));
    left = left.subspan(sizeof(head) + head.bytes);
  }
  rest_.erase(rest_.begin(),
              rest_.end() - static_cast<std::ptrdiff_t>(left.size()));
  return {};
}

std::vector<ToldItem> ToldStream::Items() { return std::exchange(items_, {}); }

Status ToldStream::TakeWrite(std::span<const std::byte> bytes) {
  uint64_t addr = 0;
  if (bytes.size() <= sizeof(addr)) {
    return CorruptInput("a thread tells of a write in {} bytes, wanted {}",
                        bytes.size(), sizeof(addr) + 1);
  }
  std::memcpy(&addr, bytes.data(), sizeof(addr));
  const auto data = bytes.subspan(sizeof(addr));
  write_bytes_ += data.size();
  if (write_bytes_ > kWriteBytesMax) {
    return CorruptInput("a thread tells {} bytes of one call, at most {}",
                        write_bytes_, kWriteBytesMax);
  }
  // What is told in parts is one write.
  if (!writes_.empty() &&
      writes_.back().addr.as_int() + writes_.back().bytes.size() == addr) {
    std::vector<std::byte>& before = writes_.back().bytes;
    before.insert(before.end(), data.begin(), data.end());
  } else {
    writes_.push_back({TraceeAddr(addr), {data.begin(), data.end()}});
    write_bytes_ += sizeof(MemoryWrite);
  }
  return {};
}

Status ToldStream::TakeItem(ToldKind kind, std::span<const std::byte> bytes) {
  switch (kind) {
    case ToldKind::kWrite:
      return TakeWrite(bytes);
    case ToldKind::kPath:
      path_.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return {};
    case ToldKind::kCall: {
      CLEW_ASSIGN_OR_RETURN(call, Load<ToldCall>(bytes, "a call"));
      items_.emplace_back(
          CallItem{call, std::exchange(writes_, {}), std::exchange(path_, {})});
      write_bytes_ = 0;
      return {};
    }
    case ToldKind::kSignal: {
      CLEW_ASSIGN_OR_RETURN(signal, Load<ToldSignal>(bytes, "a signal"));
      items_.emplace_back(SignalItem{signal, std::exchange(writes_, {})});
      write_bytes_ = 0;
      return {};
    }
    case ToldKind::kInsn: {
      CLEW_ASSIGN_OR_RETURN(insn, Load<ToldInsn>(bytes, "an instruction"));
      items_.emplace_back(insn);
      return {};
    }
  }
  return CorruptInput("a thread tells of {}, which is nothing",
                      static_cast<uint32_t>(kind));
}

}  // namespace clew::tracer
