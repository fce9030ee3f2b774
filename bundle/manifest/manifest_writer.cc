#include "bundle/manifest/manifest_writer.h"

#include <span>

#include "bundle/manifest/convert_manifest.h"

namespace clew::bundle {

std::string ManifestBytes(const Manifest& manifest) {
  pb::Manifest message = FromManifest(manifest);
  message.set_format_version(kFormatVersion);
  message.set_producer("clew " CLEW_VERSION);
  return message.SerializeAsString();
}

Status WriteManifest(BundleWriter& bundle, const Manifest& manifest) {
  const std::string bytes = ManifestBytes(manifest);
  return bundle.Write("manifest.pb", std::as_bytes(std::span(bytes)));
}

}  // namespace clew::bundle
