#ifndef CLEW_RECORDER_TRACER_RUNTIME_TELLER_H_
#define CLEW_RECORDER_TRACER_RUNTIME_TELLER_H_

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "recorder/tracer/runtime/call.h"
#include "recorder/tracer/runtime/log.h"
#include "recorder/tracer/runtime/runtime.h"

// Items of what comes in (shared_layout.h, ToldKind), with what the program's
// memory has.

namespace clew::tracer {

inline constexpr uint64_t kIovecMax = 1024;  // UIO_MAXIOV

// Returns how many bytes could be read from `addr` on. The program may have
// anything there, and another thread may change it.
uint64_t ReadSome(ThreadState& thread, uint64_t addr, std::span<uint8_t> to);

template <class T>
std::span<uint8_t> BytesOf(T& value) {
  return {reinterpret_cast<uint8_t*>(&value), sizeof(T)};
}
template <class T>
std::span<const uint8_t> BytesOf(const T& value) {
  return {reinterpret_cast<const uint8_t*>(&value), sizeof(T)};
}

template <class T>
bool Read(ThreadState& thread, uint64_t addr, T& to) {
  return ReadSome(thread, addr, BytesOf(to)) == sizeof(T);
}

// Calls `use` with the ranges that an iovec[entries] gives to `total` bytes.
// Returns false if it could not be read, or `use` returned false.
template <class Use>
bool ForVector(ThreadState& thread, uint64_t vector, uint64_t entries,
               uint64_t total, Use use) {
  for (uint64_t i = 0; i < std::min(entries, kIovecMax) && total != 0; ++i) {
    iovec entry = {};
    if (!Read(thread, vector + i * sizeof(entry), entry)) {
      return false;
    }
    const uint64_t bytes = std::min(uint64_t{entry.iov_len}, total);
    if (!use(AddrOf(entry.iov_base), bytes)) {
      return false;
    }
    total -= bytes;
  }
  return true;
}

// The items of one call or signal.
class Teller {
 public:
  explicit Teller(ThreadState& thread) : thread_(thread), writer_(thread) {}

  Untold untold() const { return untold_; }
  // The call is not told whole. Returns false.
  bool Miss(Untold why) {
    if (untold_ == Untold::kNothing || untold_ == Untold::kSharedFile) {
      untold_ = why;
    }
    return false;
  }

  template <class T>
  bool ReadOrMiss(uint64_t addr, T& to) {
    return Read(thread_, addr, to) || Miss(Untold::kFault);
  }

  // Tells what is in memory now. Returns false if it is not told whole.
  bool TellRange(uint64_t addr, uint64_t bytes);
  bool TellVector(uint64_t vector, uint64_t entries, uint64_t total) {
    return ForVector(thread_, vector, entries, total,
                     [this](uint64_t addr, uint64_t bytes) {
                       return TellRange(addr, bytes);
                     }) ||
           Miss(Untold::kFault);
  }
  // A value that the kernel is known to write, whether it has by now or not.
  void TellWord(uint64_t addr, uint32_t value);
  // What a file has where it is mapped, which was zero.
  void TellFile(uint64_t fd, uint64_t offset, uint64_t addr, uint64_t bytes);
  // Tells what is in memory now and not zero.
  void TellNonzero(uint64_t addr, uint64_t bytes);
  void TellPath(uint64_t fd);
  template <class T>
  void TellItem(ToldKind kind, const T& item) {
    TellBytes(kind, BytesOf(item));
  }

 private:
  static constexpr size_t kWriteHeadBytes = sizeof(ToldHead) + sizeof(uint64_t);
  // What is longer may be in several items, so that batches are full.
  static constexpr uint64_t kWholeBytesMax = 512;

  void TellBytes(ToldKind kind, std::span<const uint8_t> bytes);
  // Returns room for the next item of a write of so many bytes; none if the
  // call writes too much.
  std::span<uint8_t> RoomForWrite(uint64_t bytes);
  // The first bytes of that room are what was written at `addr`.
  void UseWrite(uint64_t addr, size_t bytes);
  // Tells what read(to, done) reads from the byte `done` on, where that is not
  // zero. It returns how many bytes it read, or an error.
  template <class ReadAt>
  void TellContents(uint64_t addr, uint64_t bytes, ReadAt read);

  ThreadState& thread_;
  ToldWriter writer_;
  Untold untold_ = Untold::kNothing;
  uint64_t left_ = kWritesOfCallMax;
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_TELLER_H_
