#ifndef CLEW_BUNDLE_MANIFEST_CONVERT_MANIFEST_H_
#define CLEW_BUNDLE_MANIFEST_CONVERT_MANIFEST_H_

#include <string>

#include "bundle/manifest/manifest.h"
#include "common/result.h"
#include "proto/bundle.pb.h"

// The manifest's protobuf message to plain values and back.

namespace clew::bundle {

// Checks every field against its range in proto/bundle.proto; `where` begins
// each message. `bundle_path` is where images lie.
[[nodiscard]] Result<Manifest> ToManifest(const pb::Manifest& from,
                                          const std::string& where,
                                          const std::string& bundle_path);

// Leaves format_version and producer unset. Bytes in texts that are not UTF-8
// become "?".
pb::Manifest FromManifest(const Manifest& from);

// Parts of FromManifest. What `to` holds otherwise, also in fields that this
// version does not know, stays; texts must be UTF-8.
void SetTrigger(const Trigger& from, pb::Trigger& to);
void SetSufficiency(const Sufficiency& from, pb::Sufficiency& to);
void SetJournal(const Journal& from, pb::Manifest& to);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_MANIFEST_CONVERT_MANIFEST_H_
