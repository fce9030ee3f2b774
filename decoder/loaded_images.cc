#include "decoder/loaded_images.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "bundle/perf_data/perf_data.h"
#include "common/build_id.h"
#include "common/os/file.h"
#include "common/os/maps_path.h"
#include "common/text/hex.h"
#include "common/x86/page.h"
#include "decoder/code_file.h"

namespace clew::decoder {
namespace {

using bundle::Bundle;
using bundle::BundleImage;
using bundle::CoreDump;
using bundle::DumpMapping;
using bundle::MmapRecord;
using bundle::PerfData;
using bundle::Record;

using Bytes = std::span<const std::byte>;

// A mapping of a file.
struct Mapping {
  uint64_t addr = 0;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  std::string path;
  std::vector<std::byte> build_id;  // empty: not known
  bool executable = true;
};

// Empty if there is nothing to load, or more than makes sense.
LoadSegments SaneLoadsOf(Bytes elf) {
  LoadSegments loads = LoadSegmentsOf(elf);
  std::erase_if(loads.all, [](const LoadSegment& load) {
    return load.memory_bytes == 0 || load.addr > INT64_MAX ||
           load.memory_bytes > INT64_MAX || load.offset > INT64_MAX ||
           load.file_bytes > INT64_MAX;
  });
  if (loads.all.size() > LoadedImages::kHeadersMax) {
    loads.all.clear();
  }
  return loads;
}

}  // namespace

class LoadedImages::Builder {
 public:
  explicit Builder(const Bundle& bundle) : bundle_(bundle) {}

  void Add(const Mapping& mapping) {
    const Candidate& candidate = CandidateOf(mapping);
    if (candidate.file.empty()) {
      AddAbsent(mapping, candidate);
      return;
    }
    // A page of the file may have the end of one segment and the beginning of
    // the next, and then is in memory twice, as code once.
    const LoadSegment* code =
        mapping.executable
            ? CodeIn(candidate.loads, mapping.file_offset, mapping.size_bytes)
            : nullptr;
    if (code != nullptr) {
      AddPresent(mapping, candidate, *code);
    }
  }

  // Where two images overlap, that which was added last is kept.
  LoadedImages Finish() {
    LoadedImages result;
    for (auto image = images_.rbegin(); image != images_.rend(); ++image) {
      const bool taken =
          std::ranges::any_of(result.images_, [&](const LoadedImage& other) {
            return image->begin < other.end && other.begin < image->end;
          });
      if (!taken) {
        result.images_.push_back(std::move(*image));
      }
    }
    std::ranges::sort(result.images_, {}, &LoadedImage::begin);
    return result;
  }

 private:
  // A file of the bundle, or why there is none.
  struct Candidate {
    std::string build_id;
    std::string file;
    std::string why;
    LoadSegments loads;
  };

  const BundleImage* InManifest(const Mapping& mapping) const {
    for (const BundleImage& image : bundle_.manifest().images) {
      const bool same = mapping.build_id.empty()
                            ? image.path == mapping.path
                            : image.build_id == mapping.build_id;
      if (same) {
        return &image;
      }
    }
    return nullptr;
  }

  const Candidate& CandidateOf(const Mapping& mapping) {
    const auto key = std::pair(mapping.path, mapping.build_id);
    const auto [at, added] = candidates_.try_emplace(key);
    if (added) {
      at->second = Look(mapping);
    }
    return at->second;
  }

  Candidate Look(const Mapping& mapping) const {
    Candidate candidate;
    candidate.build_id = ToHex(mapping.build_id);
    const BundleImage* image = InManifest(mapping);
    if (image == nullptr) {
      candidate.why = "the bundle has no image of it";
      return candidate;
    }
    candidate.build_id = ToHex(image->build_id);
    const auto file = MappedFile::Open(image->file);
    if (!file) {
      candidate.why = "the bundle has no image of it";
      return candidate;
    }
    if (image->has_build_id && BuildIdOf(file->bytes()) != image->build_id) {
      candidate.why = "the image in the bundle has another build-id";
      return candidate;
    }
    candidate.loads = SaneLoadsOf(file->bytes());
    if (candidate.loads.all.empty()) {
      candidate.why =
          "the image in the bundle is no ELF file that can be loaded";
      return candidate;
    }
    candidate.file = image->file;
    return candidate;
  }

  void AddAbsent(const Mapping& mapping, const Candidate& candidate) {
    Push({.path = mapping.path,
          .build_id = candidate.build_id,
          .file = {},
          .why = candidate.why,
          .begin = TraceeAddr(mapping.addr),
          .end = TraceeAddr(mapping.addr + mapping.size_bytes),
          .bias = mapping.addr - mapping.file_offset});
  }

  void AddPresent(const Mapping& mapping, const Candidate& candidate,
                  const LoadSegment& code) {
    const uint64_t bias =
        mapping.addr - mapping.file_offset + code.offset - code.addr;
    uint64_t lo = UINT64_MAX;
    uint64_t hi = 0;
    for (const LoadSegment& load : candidate.loads.all) {
      lo = std::min(lo, load.addr / kPageBytes * kPageBytes);
      hi = std::max(hi, load.addr + load.memory_bytes);
    }
    const bool wraps = bias + lo > bias + hi;
    if (wraps || (!candidate.loads.movable && bias != 0)) {
      return;  // no loader puts it there: the file was mapped to be read
    }
    Push({.path = mapping.path,
          .build_id = candidate.build_id,
          .file = candidate.file,
          .why = {},
          .begin = TraceeAddr(bias + lo),
          .end = TraceeAddr(bias + hi),
          .bias = bias});
  }

  void Push(LoadedImage image) {
    if (image.begin < image.end && images_.size() < kImagesMax &&
        known_.emplace(image.begin, image.path).second) {
      images_.push_back(std::move(image));
    }
  }

  const Bundle& bundle_;
  std::map<std::pair<std::string, std::vector<std::byte>>, Candidate>
      candidates_;
  std::set<std::pair<TraceeAddr, std::string>> known_;
  std::vector<LoadedImage> images_;
};

namespace {

// The build-id that the mapped file's own headers say in memory.
std::vector<std::byte> BuildIdInMemory(const CoreDump& core,
                                       const DumpMapping& mapping) {
  std::vector<std::byte> page(
      std::min<uint64_t>(mapping.size_bytes, kPageBytes));
  if (mapping.file_offset != 0 || !core.Read(mapping.addr, page)) {
    return {};
  }
  return BuildIdOf(page);
}

}  // namespace

Result<LoadedImages> LoadedImages::FromCore(const Bundle& bundle,
                                            const CoreDump& core) {
  if (core.mappings().empty()) {
    return FromTrace(bundle);
  }
  // The first page of a file comes before the others of it.
  std::map<std::string, std::vector<std::byte>> build_ids;
  Builder builder(bundle);
  for (const DumpMapping& mapping : core.mappings()) {
    const std::string path(WithoutDeleted(mapping.path));
    if (mapping.file_offset == 0) {
      build_ids[path] = BuildIdInMemory(core, mapping);
    }
    builder.Add({.addr = mapping.addr.as_int(),
                 .size_bytes = mapping.size_bytes,
                 .file_offset = mapping.file_offset,
                 .path = path,
                 .build_id = build_ids[path],
                 .executable = core.MayRunAt(mapping.addr)});
  }
  return builder.Finish();
}

Result<LoadedImages> LoadedImages::FromTrace(const Bundle& bundle) {
  CLEW_ASSIGN_OR_RETURN(data, PerfData::Open(bundle.perf_data_path()));
  Builder builder(bundle);
  CLEW_RETURN_IF_ERROR(data.ForEachRecord([&](const Record& record) -> Status {
    const auto* mapped = std::get_if<MmapRecord>(&record.body);
    if (mapped != nullptr && mapped->executable && mapped->pid >= 0 &&
        mapped->path.starts_with('/')) {
      builder.Add({.addr = mapped->addr.as_int(),
                   .size_bytes = mapped->size_bytes,
                   .file_offset = mapped->file_offset,
                   .path = mapped->path,
                   .build_id = mapped->build_id});
    }
    return {};
  }));
  return builder.Finish();
}

const LoadedImage* LoadedImages::Find(TraceeAddr addr) const {
  const auto after =
      std::ranges::upper_bound(images_, addr, {}, &LoadedImage::begin);
  if (after == images_.begin() || std::prev(after)->end <= addr) {
    return nullptr;
  }
  return &*std::prev(after);
}

}  // namespace clew::decoder
