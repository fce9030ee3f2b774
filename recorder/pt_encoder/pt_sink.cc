#include "recorder/pt_encoder/pt_sink.h"

#include "common/check.h"

namespace clew::recorder {

std::span<uint8_t> VectorSink::Exchange(size_t used_bytes) {
  CLEW_CHECK(used_bytes <= room_.size(), "used {} of {} bytes", used_bytes,
             room_.size());
  bytes_.insert(bytes_.end(), room_.begin(),
                room_.begin() + static_cast<ptrdiff_t>(used_bytes));
  room_.resize(size_t{64} << 10);
  return room_;
}

}  // namespace clew::recorder
