// What a thread tells of its inputs as a hostile program might: the stream in
// pieces. Nothing but errors may come of it, and items that are the same
// wherever the stream is cut.
//
//   input: a byte for the size of every other piece, one for that of the rest,
//   and the stream

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "common/check.h"
#include "recorder/tracer/free/told_stream.h"

namespace {

using clew::MemoryWrite;
using clew::tracer::CallItem;
using clew::tracer::SignalItem;
using clew::tracer::ToldItem;
using clew::tracer::ToldStream;

struct Sums {
  size_t items = 0;
  size_t writes = 0;
  size_t bytes = 0;  // of writes and paths
  bool operator==(const Sums&) const = default;
};

void Add(const std::vector<MemoryWrite>& writes, Sums& sums) {
  for (const MemoryWrite& write : writes) {
    CLEW_CHECK(!write.bytes.empty(), "a write of nothing");
    ++sums.writes;
    sums.bytes += write.bytes.size();
  }
}

void Add(const std::vector<ToldItem>& items, Sums& sums) {
  for (const ToldItem& item : items) {
    ++sums.items;
    if (const auto* const call = std::get_if<CallItem>(&item)) {
      Add(call->writes, sums);
      sums.bytes += call->path.size();
    } else if (const auto* const signal = std::get_if<SignalItem>(&item)) {
      Add(signal->writes, sums);
    }
  }
}

// Until the stream ends, or is foul.
Sums Read(std::span<const std::byte> rest, std::array<size_t, 2> pieces) {
  ToldStream told;
  Sums sums;
  for (size_t i = 0; !rest.empty(); ++i) {
    const size_t piece = std::min(rest.size(), pieces[i % pieces.size()]);
    const auto taken = told.Take(rest.first(piece));
    rest = rest.subspan(piece);
    Add(told.Items(), sums);
    if (!taken) {
      break;
    }
  }
  return sums;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) {
    return 0;
  }
  const auto stream = std::as_bytes(std::span(data, size)).subspan(2);
  const Sums sums = Read(stream, {size_t{1} + data[0], size_t{1} + data[1]});
  CLEW_CHECK(sums.bytes <= stream.size(), "{} bytes of {}", sums.bytes,
             stream.size());
  const Sums whole = Read(stream, {stream.size(), stream.size()});
  CLEW_CHECK(sums == whole, "{} items in pieces, {} whole", sums.items,
             whole.items);
  return 0;
}
