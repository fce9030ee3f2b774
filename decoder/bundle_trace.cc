#include "decoder/bundle_trace.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "bundle/perf_data/perf_data.h"

namespace clew::decoder {
namespace {

using bundle::Bundle;
using bundle::BundleImage;
using bundle::BundleSource;
using bundle::Manifest;
using bundle::MmapRecord;
using bundle::PerfData;

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

}  // namespace

// A mapping's image is found by its build-id, or by its path where the record
// has no build-id.
Result<std::unique_ptr<PerfTrace>> ReadTrace(const Bundle& bundle) {
  const Manifest& manifest = bundle.manifest();
  CLEW_ASSIGN_OR_RETURN(data, PerfData::Open(bundle.perf_data_path()));
  TraceConfig config;
  config.cpu = manifest.cpu;
  config.branches_before_timing = bundle::IsOfSoftware(manifest.source);
  config.tsc_at_switches = config.branches_before_timing;
  config.sideband_alone = manifest.source == BundleSource::kPerf;
  config.resolve_image = [&bundle](const MmapRecord& mapping) {
    for (const BundleImage& image : bundle.manifest().images) {
      const bool same = mapping.build_id.empty()
                            ? image.path == mapping.path
                            : image.build_id == mapping.build_id;
      if (same && Exists(image.file)) {
        return image.file;
      }
    }
    return std::string();
  };
  return PerfTrace::Load(std::move(data), config);
}

}  // namespace clew::decoder
