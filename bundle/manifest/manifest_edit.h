#ifndef CLEW_BUNDLE_MANIFEST_MANIFEST_EDIT_H_
#define CLEW_BUNDLE_MANIFEST_MANIFEST_EDIT_H_

#include <optional>
#include <string>
#include <vector>

#include "common/bundle_facts.h"
#include "common/os/file.h"
#include "common/result.h"

namespace clew::bundle {

// What is to change in a manifest; what is absent stays as it is.
struct ManifestEdits {
  std::optional<Trigger> trigger = {};
  std::optional<Sufficiency> sufficiency = {};
  std::optional<std::vector<std::string>> command = {};
  std::optional<Journal> journal = {};
  std::optional<std::string> assertion = {};
  bool drop_settings = false;
  std::vector<std::string> redactions = {};  // added to those that are there
};

// Rewrites `folder`/manifest.pb, which is the old or the new one whole,
// whatever ends the program: through manifest.pb.partial, synced and renamed.
// All other fields stay, also those that this version does not know.
//
// Fails with kInvalidArgument if a string is not UTF-8 or the bundle has a
// schedule.pb, which names the digest of its manifest, and with kCorruptInput
// if manifest.pb is not such a message. Two edits of one bundle at a time are
// not kept apart: the later one wins.
[[nodiscard]] Status EditManifest(FileSystem& files, const std::string& folder,
                                  const ManifestEdits& edits);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_MANIFEST_MANIFEST_EDIT_H_
