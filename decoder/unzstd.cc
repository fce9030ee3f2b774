#include "decoder/unzstd.h"

#include <zstd.h>

#include <cstring>
#include <memory>

#include "common/check.h"

namespace clew::decoder {
namespace {

struct FreeStream {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

}  // namespace

bool IsZstd(std::span<const std::byte> bytes) {
  uint32_t magic = 0;
  if (bytes.size() < sizeof magic) {
    return false;
  }
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == ZSTD_MAGICNUMBER;
}

Result<std::vector<std::byte>> Unzstd(std::span<const std::byte> bytes,
                                      const std::string& name,
                                      uint64_t size_max) {
  const std::unique_ptr<ZSTD_DStream, FreeStream> stream(ZSTD_createDStream());
  CLEW_CHECK(stream != nullptr, "zstd: out of memory");
  std::vector<std::byte> out;
  std::vector<std::byte> chunk(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  size_t status = 0;
  bool full = false;
  while (in.pos < in.size || full) {
    ZSTD_outBuffer part{chunk.data(), chunk.size(), 0};
    status = ZSTD_decompressStream(stream.get(), &part, &in);
    if (ZSTD_isError(status)) {
      return CorruptInput("{}: offset {:#x}: zstd: {}", name, in.pos,
                          ZSTD_getErrorName(status));
    }
    full = part.pos == part.size;
    if (out.size() + part.pos > size_max) {
      return LimitReached("{}: more than {} bytes when decompressed", name,
                          size_max);
    }
    out.insert(out.end(), chunk.begin(),
               chunk.begin() + static_cast<ptrdiff_t>(part.pos));
  }
  if (status != 0) {
    return CorruptInput("{}: offset {:#x}: zstd: the last frame is cut off",
                        name, bytes.size());
  }
  return out;
}

}  // namespace clew::decoder
