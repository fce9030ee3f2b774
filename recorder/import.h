#ifndef CLEW_RECORDER_IMPORT_H_
#define CLEW_RECORDER_IMPORT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bundle/manifest/bundle_writer.h"
#include "bundle/manifest/manifest.h"
#include "common/progress.h"
#include "common/result.h"

namespace clew::recorder {

// Copies what `fd` gives until its end to the file `name` of the bundle,
// synced; returns how many bytes. Memory: one buffer. `source` names it in
// messages; `total` is its size for `progress` (may be null), 0 if not known.
[[nodiscard]] Result<uint64_t> CopyInto(bundle::BundleWriter& bundle,
                                        const std::string& name, int fd,
                                        const std::string& source,
                                        uint64_t total, ProgressSink* progress);

// Writes images/, of what `manifest` lists and says the file of, and
// manifest.pb. kSystem also if a file is no longer of the build that it says.
[[nodiscard]] Status WriteImport(bundle::BundleWriter& bundle,
                                 const bundle::Manifest& manifest);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_IMPORT_H_
