#include "decoder/code_map.h"

#include <algorithm>

#include "common/text/hex.h"

namespace clew::decoder {
namespace {

using bundle::MmapRecord;

bool Contains(const MmapRecord& mapping, TraceeAddr addr) {
  return addr >= mapping.addr &&
         addr.as_int() - mapping.addr.as_int() < mapping.size_bytes;
}

bool SameCode(const MmapRecord& a, const MmapRecord& b) {
  return a.path == b.path && a.build_id == b.build_id &&
         a.file_offset - a.addr.as_int() == b.file_offset - b.addr.as_int();
}

bool Intersect(const MmapRecord& a, const MmapRecord& b) {
  return Contains(a, b.addr) || Contains(b, a.addr);
}

}  // namespace

void CodeMap::MapOne(const CodeMapping& of, CodeImage& image) {
  if (of.file.empty()) {
    return;
  }
  const Status mapped = image.Map(of.file, of.mapping.file_offset,
                                  of.mapping.size_bytes, of.mapping.addr);
  if (!mapped) {
    faults_.insert_or_assign(&of, mapped.error().message);
  }
}

void CodeMap::Add(const CodeMapping& mapping) {
  (Overlaps(mapping.mapping) ? replacing_ : initial_).push_back(&mapping);
}

bool CodeMap::Overlaps(const MmapRecord& mapping) const {
  return std::any_of(
      initial_.begin(), initial_.end(), [&](const CodeMapping* e) {
        return Intersect(e->mapping, mapping) && !SameCode(e->mapping, mapping);
      });
}

void CodeMap::MapInitial(CodeImage& image) {
  for (const CodeMapping* entry : initial_) {
    MapOne(*entry, image);
  }
}

void CodeMap::MapUntil(TscTicks time, CodeImage& image, size_t& next) {
  for (; next < replacing_.size() && replacing_[next]->time <= time; ++next) {
    MapOne(*replacing_[next], image);
  }
}

std::vector<MmapRecord> CodeMap::Missing() const {
  std::vector<MmapRecord> missing;
  for (const auto* entries : {&initial_, &replacing_}) {
    for (const CodeMapping* entry : *entries) {
      const bool seen =
          std::any_of(missing.begin(), missing.end(), [&](const auto& other) {
            return other.path == entry->mapping.path &&
                   other.build_id == entry->mapping.build_id;
          });
      if (entry->file.empty() && !seen) {
        missing.push_back(entry->mapping);
      }
    }
  }
  return missing;
}

std::string CodeMap::Describe(TraceeAddr addr) const {
  for (const auto* entries : {&replacing_, &initial_}) {
    for (const CodeMapping* entry : *entries) {
      if (!Contains(entry->mapping, addr)) {
        continue;
      }
      const auto fault = faults_.find(entry);
      return fmt::format("{:?} (build-id {}{}{})", entry->mapping.path,
                         entry->mapping.build_id.empty()
                             ? "unknown"
                             : ToHex(entry->mapping.build_id),
                         entry->file.empty() ? ", image not found" : "",
                         fault == faults_.end() ? "" : ", " + fault->second);
    }
  }
  return "no file mapped there";
}

}  // namespace clew::decoder
