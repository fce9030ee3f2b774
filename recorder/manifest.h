#ifndef CLEW_RECORDER_MANIFEST_H_
#define CLEW_RECORDER_MANIFEST_H_

#include <vector>

#include "bundle/manifest/manifest.h"
#include "recorder/images.h"
#include "recorder/qemu/session.h"
#include "recorder/record.h"

namespace clew::recorder {

// What manifest.pb of a recording by the QEMU plugin says.
bundle::Manifest DescribeRecording(const RecordOptions& options,
                                   const Session& session,
                                   const Outcome& outcome,
                                   const std::vector<ImageInfo>& images);

// The manifest's entry of a file that is in the bundle.
bundle::BundleImage DescribeCopied(const ImageInfo& image);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_MANIFEST_H_
