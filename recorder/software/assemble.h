#ifndef CLEW_RECORDER_SOFTWARE_ASSEMBLE_H_
#define CLEW_RECORDER_SOFTWARE_ASSEMBLE_H_

#include "bundle/manifest/bundle_writer.h"
#include "common/result.h"
#include "recorder/native/mapped_files.h"
#include "recorder/qemu/plugin_config.h"
#include "recorder/software/record.h"

namespace clew::recorder {

// Makes the bundle's files out of what the plugin left in its folder:
// perf.data, inputs.pb, images/ as `files` holds them, manifest.pb; then
// removes the raw files. All files are synced afterwards. Returns the number of
// PT bytes.
[[nodiscard]] Result<uint64_t> Assemble(bundle::BundleWriter& bundle,
                                        const RecordOptions& options,
                                        const PluginConfig& config,
                                        const Outcome& outcome,
                                        const MappedFiles& files);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_ASSEMBLE_H_
