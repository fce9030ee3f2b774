#include "bundle/perf_data/features.h"

#include <utility>

#include "bundle/perf_data/record_parser.h"
#include "common/build_id.h"

namespace clew::bundle {
namespace {

// PERF_RECORD_MISC_BUILD_ID_SIZE: the byte behind the id is its size.
constexpr uint16_t kMiscBuildIdSize = 1u << 15;
constexpr std::string_view kKernel = "[kernel.kallsyms]";

// perf's strings: a length, which counts the padding, and as many bytes.
Result<std::string> ReadPerfText(ByteReader& reader) {
  CLEW_ASSIGN_OR_RETURN(size, reader.Read<uint32_t>("text length"));
  return reader.ReadText(size, "text");
}

Status ReadTextInto(ByteReader& section, std::string& text) {
  CLEW_ASSIGN_OR_RETURN(read, ReadPerfText(section));
  text = std::move(read);
  return {};
}

Status ReadCommand(ByteReader& section, PerfFeatures& features) {
  CLEW_ASSIGN_OR_RETURN(count, section.Read<uint32_t>("cmdline count"));
  std::vector<std::string> command;
  for (uint32_t i = 0; i < count; ++i) {
    CLEW_ASSIGN_OR_RETURN(word, ReadPerfText(section));
    command.push_back(std::move(word));
  }
  features.command = std::move(command);
  return {};
}

Status ReadBuildIds(ByteReader& section, PerfFeatures& features) {
  while (!section.at_end()) {
    CLEW_ASSIGN_OR_RETURN(header, ReadRecordHeader(section));
    const uint64_t at = section.file_offset();
    CLEW_ASSIGN_OR_RETURN(
        bytes,
        section.ReadBytes(header.size - kRecordHeaderBytes, "build-id entry"));
    ByteReader body(bytes, section.source(), at);
    CLEW_RETURN_IF_ERROR(ReadBuildIdRecord(header.misc, body, features));
  }
  return {};
}

}  // namespace

std::vector<std::byte> PerfFeatures::BuildIdOf(const std::string& path) const {
  const bool kernel = path.starts_with(kKernel);
  const auto found = build_ids.find(kernel ? std::string(kKernel) : path);
  return found == build_ids.end() ? std::vector<std::byte>() : found->second;
}

Status ReadFeature(uint32_t feature, ByteReader& section,
                   PerfFeatures& features) {
  switch (feature) {
    case kFeatureBuildId:
      return ReadBuildIds(section, features);
    case kFeatureHostName:
      return ReadTextInto(section, features.host);
    case kFeatureOsRelease:
      return ReadTextInto(section, features.os_release);
    case kFeatureVersion:
      return ReadTextInto(section, features.perf_version);
    case kFeatureCpuDescription:
      return ReadTextInto(section, features.cpu_description);
    case kFeatureCpuId:
      return ReadTextInto(section, features.cpu_id);
    case kFeatureCommand:
      return ReadCommand(section, features);
    default:
      return {};
  }
}

Status ReadBuildIdRecord(uint16_t misc, ByteReader& body,
                         PerfFeatures& features) {
  CLEW_RETURN_IF_ERROR(body.Skip(4, "build-id pid"));
  CLEW_ASSIGN_OR_RETURN(id, body.ReadBytes(kBuildIdBytesMax, "build-id"));
  CLEW_ASSIGN_OR_RETURN(told_size, body.Read<uint8_t>("build-id size"));
  const uint64_t size =
      (misc & kMiscBuildIdSize) != 0 ? told_size : kBuildIdBytesMax;
  if (size > kBuildIdBytesMax) {
    return body.Corrupt("build-id size is {}, wanted at most {}", size,
                        kBuildIdBytesMax);
  }
  CLEW_RETURN_IF_ERROR(body.Skip(3, "build-id padding"));
  CLEW_ASSIGN_OR_RETURN(
      path, body.ReadText(body.remaining_bytes(), "build-id filename"));
  if (!path.empty() && size > 0) {
    features.build_ids[path] = {id.begin(),
                                id.begin() + static_cast<ptrdiff_t>(size)};
  }
  return {};
}

}  // namespace clew::bundle
