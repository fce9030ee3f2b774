#ifndef CLEW_BUNDLE_ZSTD_UNZSTD_H_
#define CLEW_BUNDLE_ZSTD_UNZSTD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"

namespace clew::bundle {

// Returns whether `bytes` begin a zstd frame (RFC 8878, "Magic_Number").
bool IsZstd(std::span<const std::byte> bytes);

// Decompresses zstd frames that come in pieces. Memory: the window of the
// frames, at most 128 MiB, and one chunk. Not thread-safe.
class ZstdStream {
 public:
  // `name` for messages; `size_max`: most bytes that may come out.
  ZstdStream(std::string name, uint64_t size_max);
  ~ZstdStream();
  ZstdStream(ZstdStream&&) noexcept;
  ZstdStream& operator=(ZstdStream&&) = delete;

  // Calls `take` with each chunk that comes out; it is borrowed for the call.
  // Stops at its first Error. `file_offset` is that of `bytes`, for messages.
  // Fails with kCorruptInput if the bytes are not zstd or are damaged, and with
  // kLimit if more than size_max bytes come out.
  using Taker = std::function<Status(std::span<const std::byte>)>;
  [[nodiscard]] Status Unpack(std::span<const std::byte> bytes,
                              uint64_t file_offset, const Taker& take);
  // Returns whether what was unpacked ended with a whole frame.
  bool is_whole() const { return is_whole_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::string name_;
  uint64_t size_max_;
  uint64_t size_ = 0;
  bool is_whole_ = true;
};

// Decompresses zstd frames. kCorruptInput: they are damaged or cut off.
// kLimit: more than `size_max` bytes come out.
[[nodiscard]] Result<std::vector<std::byte>> Unzstd(
    std::span<const std::byte> bytes, const std::string& name,
    uint64_t size_max);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_ZSTD_UNZSTD_H_
