#ifndef CLEW_RECORDER_SOFTWARE_DESCRIBE_RECORDING_H_
#define CLEW_RECORDER_SOFTWARE_DESCRIBE_RECORDING_H_

#include <vector>

#include "bundle/manifest/manifest.h"
#include "recorder/qemu/plugin_config.h"
#include "recorder/software/record.h"

namespace clew::recorder {

// What manifest.pb of a recording by the QEMU plugin says. REQUIRES: `options`
// have surroundings.
bundle::Manifest DescribeRecording(
    const RecordOptions& options, const PluginConfig& config,
    const Outcome& outcome, const std::vector<bundle::BundleImage>& images);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_DESCRIBE_RECORDING_H_
