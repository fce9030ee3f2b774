#include "bundle/perf_data/attr.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <cstring>

namespace clew::bundle {
namespace {

constexpr uint64_t kFlagSampleIdAll = 1u << 18;
// PERF_ATTR_SIZE_VER0; no attr is smaller.
constexpr uint32_t kAttrSizeMin = 64;
constexpr uint32_t kAttrSizeMax = 4096;

}  // namespace

Result<EventAttr> ReadEventAttr(ByteReader& reader) {
  EventAttr attr;
  CLEW_ASSIGN_OR_RETURN(type, reader.Read<uint32_t>("attr.type"));
  CLEW_ASSIGN_OR_RETURN(size, reader.Read<uint32_t>("attr.size"));
  if (size < kAttrSizeMin || size > kAttrSizeMax) {
    return reader.Corrupt("attr.size is {}, wanted {}..{}", size, kAttrSizeMin,
                          kAttrSizeMax);
  }
  CLEW_ASSIGN_OR_RETURN(config, reader.Read<uint64_t>("attr.config"));
  CLEW_RETURN_IF_ERROR(reader.Skip(8, "attr.sample_period"));
  CLEW_ASSIGN_OR_RETURN(sample_type, reader.Read<uint64_t>("attr.sample_type"));
  CLEW_RETURN_IF_ERROR(reader.Skip(8, "attr.read_format"));
  CLEW_ASSIGN_OR_RETURN(flags, reader.Read<uint64_t>("attr flags"));
  CLEW_RETURN_IF_ERROR(reader.Skip(size - 48, "attr's other fields"));
  attr.type = type;
  attr.config = config;
  attr.sample_type = sample_type;
  attr.sample_id_all = (flags & kFlagSampleIdAll) != 0;
  return attr;
}

const EventAttr* AttrOfRecord(const std::vector<EventAttr>& attrs,
                              std::span<const std::byte> body) {
  if (attrs.empty()) {
    return nullptr;
  }
  const EventAttr& first = attrs.front();
  if ((first.sample_type & PERF_SAMPLE_IDENTIFIER) == 0 || body.size() < 8) {
    return &first;
  }
  uint64_t id = 0;
  std::memcpy(&id, body.data() + body.size() - 8, 8);
  for (const EventAttr& attr : attrs) {
    if (std::find(attr.ids.begin(), attr.ids.end(), id) != attr.ids.end()) {
      return &attr;
    }
  }
  return &first;
}

}  // namespace clew::bundle
