#ifndef CLEW_DECODER_PT_LIBIPT_H_
#define CLEW_DECODER_PT_LIBIPT_H_

#include <intel-pt.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/check.h"
#include "common/units.h"
#include "decoder/pt/flow.h"

// What those files share that use libipt; no header but this one shows it.

namespace clew::decoder {

// Calls `Free` on a libipt object when it goes.
template <class T, void (*Free)(T*)>
struct IptDeleter {
  void operator()(T* object) const { Free(object); }
};
using BlockDecoderPtr =
    std::unique_ptr<pt_block_decoder,
                    IptDeleter<pt_block_decoder, pt_blk_free_decoder>>;

using ImagePtr = std::unique_ptr<pt_image, IptDeleter<pt_image, pt_image_free>>;

class CodeImage::Impl {
 public:
  explicit Impl(pt_image_section_cache* cache)
      : cache_(cache), image_(pt_image_alloc(nullptr)) {
    CLEW_CHECK(image_ != nullptr, "libipt: out of memory");
  }
  pt_image_section_cache* cache_;
  ImagePtr image_;
};

// libipt wants a mutable pointer but only its encoder writes.
inline pt_config ConfigOver(std::span<const std::byte> bytes) {
  pt_config config;
  pt_config_init(&config);
  auto* begin =
      const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(bytes.data()));
  config.begin = begin;
  config.end = begin + bytes.size();
  return config;
}

inline const char* TextOf(int status) { return pt_errstr(pt_errcode(status)); }

// A made-up beginning of a trace: PSB, MODE.Exec, FUP, PSBEND. What comes next
// is at `ip`, code of 64, 32 or 16 bits.
inline constexpr size_t kStartBytes = 29;
void WriteStart(std::byte* out, TraceeAddr ip, uint8_t code_bits);

// A made-up end that proves all before `ip`: FUP, TIP.PGD without address.
inline constexpr size_t kStopBytes = 10;
void WriteStop(std::byte* out, TraceeAddr ip);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_PT_LIBIPT_H_
