#ifndef CLEW_RECORDER_MANIFEST_H_
#define CLEW_RECORDER_MANIFEST_H_

#include <vector>

#include "bundle/manifest/manifest.h"
#include "recorder/qemu/session.h"
#include "recorder/record.h"

namespace clew::recorder {

// What manifest.pb of a recording by the QEMU plugin says.
bundle::Manifest DescribeRecording(
    const RecordOptions& options, const Session& session,
    const Outcome& outcome, const std::vector<bundle::BundleImage>& images);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_MANIFEST_H_
