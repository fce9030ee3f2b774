#include "bundle/zstd/unzstd.h"

#include <zstd.h>

#include <cstring>
#include <utility>

#include "common/check.h"

namespace clew::bundle {

bool IsZstd(std::span<const std::byte> bytes) {
  uint32_t magic = 0;
  if (bytes.size() < sizeof magic) {
    return false;
  }
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == ZSTD_MAGICNUMBER;
}

struct ZstdStream::State {
  State() : stream(ZSTD_createDStream()), chunk(ZSTD_DStreamOutSize()) {
    CLEW_CHECK(stream != nullptr, "zstd: out of memory");
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { ZSTD_freeDStream(stream); }

  ZSTD_DStream* stream;
  std::vector<std::byte> chunk;
};

ZstdStream::ZstdStream(std::string name, uint64_t size_max)
    : state_(std::make_unique<State>()),
      name_(std::move(name)),
      size_max_(size_max) {}
ZstdStream::~ZstdStream() = default;
ZstdStream::ZstdStream(ZstdStream&&) noexcept = default;

Status ZstdStream::Unpack(std::span<const std::byte> bytes,
                          uint64_t file_offset, const Taker& take) {
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  bool full = false;
  while (in.pos < in.size || full) {
    ZSTD_outBuffer out{state_->chunk.data(), state_->chunk.size(), 0};
    const size_t status = ZSTD_decompressStream(state_->stream, &out, &in);
    if (ZSTD_isError(status)) {
      return CorruptInput("{}: offset {:#x}: zstd: {}", name_,
                          file_offset + in.pos, ZSTD_getErrorName(status));
    }
    is_whole_ = status == 0;
    full = out.pos == out.size;
    size_ += out.pos;
    if (size_ > size_max_) {
      return LimitReached("{}: more than {} bytes when decompressed", name_,
                          size_max_);
    }
    CLEW_RETURN_IF_ERROR(take(std::span(state_->chunk).first(out.pos)));
  }
  return {};
}

Result<std::vector<std::byte>> Unzstd(std::span<const std::byte> bytes,
                                      const std::string& name,
                                      uint64_t size_max) {
  ZstdStream stream(name, size_max);
  std::vector<std::byte> out;
  CLEW_RETURN_IF_ERROR(stream.Unpack(
      bytes, 0, [&out](std::span<const std::byte> chunk) -> Status {
        out.insert(out.end(), chunk.begin(), chunk.end());
        return {};
      }));
  if (!stream.is_whole()) {
    return CorruptInput("{}: offset {:#x}: zstd: the last frame is cut off",
                        name, bytes.size());
  }
  return out;
}

}  // namespace clew::bundle
