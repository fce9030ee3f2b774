#ifndef CLEW_RECORDER_MANIFEST_H_
#define CLEW_RECORDER_MANIFEST_H_

#include <vector>

#include "common/result.h"
#include "recorder/bundle_writer.h"
#include "recorder/images.h"
#include "recorder/qemu/session.h"
#include "recorder/record.h"

namespace clew::pb {
class Failure;
}

namespace clew::recorder {

void SetFailure(const Failure& failure, pb::Failure& to);

// Writes manifest.pb of a recording by the QEMU plugin.
[[nodiscard]] Status WriteManifest(BundleWriter& bundle,
                                   const RecordOptions& options,
                                   const Session& session,
                                   const Outcome& outcome,
                                   const std::vector<ImageInfo>& images);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_MANIFEST_H_
