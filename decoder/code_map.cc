#include "decoder/code_map.h"

#include <algorithm>

#include "common/hex.h"

namespace clew::decoder {
namespace {

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

Status MapOne(const CodeMapping& of, CodeImage& image) {
  return of.file.empty() ? Status()
                         : image.Map(of.file, of.mapping.file_offset,
                                     of.mapping.size_bytes, of.mapping.addr);
}

}  // namespace

void CodeMap::Add(const CodeMapping& mapping) {
  (Overlaps(mapping.mapping) ? replacing_ : initial_).push_back(&mapping);
}

bool CodeMap::Overlaps(const MmapRecord& mapping) const {
  return std::any_of(
      initial_.begin(), initial_.end(), [&](const CodeMapping* e) {
        return Intersect(e->mapping, mapping) && !SameCode(e->mapping, mapping);
      });
}

Status CodeMap::MapInitial(CodeImage& image) const {
  for (const CodeMapping* entry : initial_) {
    CLEW_RETURN_IF_ERROR(MapOne(*entry, image));
  }
  return {};
}

Status CodeMap::MapUntil(TscTicks time, CodeImage& image, size_t& next) const {
  for (; next < replacing_.size() && replacing_[next]->time <= time; ++next) {
    CLEW_RETURN_IF_ERROR(MapOne(*replacing_[next], image));
  }
  return {};
}

std::string CodeMap::first_path() const {
  return initial_.empty() ? std::string() : initial_.front()->mapping.path;
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
      return fmt::format("{:?} (build-id {}{})", entry->mapping.path,
                         entry->mapping.build_id.empty()
                             ? "unknown"
                             : ToHex(entry->mapping.build_id),
                         entry->file.empty() ? ", image not found" : "");
    }
  }
  return "no file mapped there";
}

}  // namespace clew::decoder
