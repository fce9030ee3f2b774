#ifndef CLEW_BUNDLE_MANIFEST_MANIFEST_WRITER_H_
#define CLEW_BUNDLE_MANIFEST_MANIFEST_WRITER_H_

#include <string>

#include "bundle/manifest/bundle_writer.h"
#include "bundle/manifest/manifest.h"
#include "common/result.h"

namespace clew::bundle {

// Returns the bytes of manifest.pb. The version is kFormatVersion and the
// producer this program, whatever `manifest` says. Texts may contain any bytes;
// those that are not UTF-8 become "?".
std::string ManifestBytes(const Manifest& manifest);

// Writes manifest.pb, synced.
[[nodiscard]] Status WriteManifest(BundleWriter& bundle,
                                   const Manifest& manifest);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_MANIFEST_MANIFEST_WRITER_H_
