// What `clew import` takes from strangers: perf.data and a core dump. The first
// four bytes say how many of the rest are perf.data. What import would write
// into the manifest, the reader of bundles must accept. No file of this host is
// opened, whatever the mappings name.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "bundle/convert_inputs.h"
#include "bundle/core_dump/core_dump.h"
#include "bundle/manifest/convert_manifest.h"
#include "bundle/manifest/manifest_writer.h"
#include "bundle/manifest/message.h"
#include "common/build_id.h"
#include "common/check.h"
#include "decoder/code_file.h"
#include "decoder/perf_trace.h"
#include "importer/import_bundle.h"

namespace {

using namespace clew;           // NOLINT: a fuzz target is one function
using namespace clew::bundle;   // NOLINT
using namespace clew::decoder;  // NOLINT

void CheckManifest(const bundle::Manifest& written) {
  const std::string bytes = bundle::ManifestBytes(written);
  pb::Manifest message;
  CLEW_CHECK(ParseMessage(std::as_bytes(std::span(bytes)), message),
             "import writes what is no message");
  const auto manifest = ToManifest(message, "manifest.pb", "b.clew");
  CLEW_CHECK(manifest.has_value(), "import writes what no reader accepts: {}",
             manifest ? "" : manifest.error().message);
  CLEW_CHECK(manifest->source == BundleSource::kImported &&
                 manifest->images.size() == written.images.size(),
             "the manifest lost something");
}

// What a file is asked before it is taken for an image.
void LookAtImage(std::span<const std::byte> file) {
  CLEW_CHECK(BuildIdOf(file).size() <= kBuildIdBytesMax, "a long build-id");
  (void)LacksCode(file);
  (void)HasCodeIn(file, 0, 4096);
}

Status Import(std::span<const std::byte> perf_data,
              std::span<const std::byte> core_bytes) {
  LookAtImage(core_bytes);
  CLEW_ASSIGN_OR_RETURN(data, PerfData::Over(perf_data, "fuzz"));
  std::vector<ImageMatch> images;
  TraceConfig config;
  config.resolve_image = [&images](const MmapRecord& mapping) {
    images.push_back({.path = mapping.path,
                      .build_id = mapping.build_id,
                      .file = {},
                      .why = {},
                      .refused = {}});
    return std::string();
  };
  CLEW_ASSIGN_OR_RETURN(trace, PerfTrace::Load(std::move(data), config));
  CheckManifest(importer::DescribeRun(*trace, images, nullptr));
  CLEW_ASSIGN_OR_RETURN(core, CoreDump::Over(core_bytes, "core"));
  CheckManifest(importer::DescribeRun(*trace, images, &core));
  LookAtImage(core.vdso());
  return {};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint32_t perf_bytes = 0;
  if (size < sizeof perf_bytes) {
    return 0;
  }
  std::memcpy(&perf_bytes, data, sizeof perf_bytes);
  const auto rest =
      std::as_bytes(std::span(data, size)).subspan(sizeof perf_bytes);
  const size_t first = std::min<size_t>(perf_bytes, rest.size());
  (void)Import(rest.first(first), rest.subspan(first));  // errors are fine
  return 0;
}
