#include "bundle/manifest/manifest_edit.h"

#include <sys/stat.h>

#include "bundle/manifest/convert_manifest.h"
#include "bundle/manifest/message.h"
#include "bundle/manifest/whole_file.h"

namespace clew::bundle {
namespace {

// Only what an edit says; merging it would append to lists.
void Apply(const ManifestEdits& edits, pb::Manifest& manifest) {
  if (edits.trigger) {
    SetTrigger(*edits.trigger, *manifest.mutable_trigger());
  }
  if (edits.sufficiency) {
    SetSufficiency(*edits.sufficiency, *manifest.mutable_sufficiency());
  }
  if (edits.command) {
    manifest.clear_command();
    for (const std::string& word : *edits.command) {
      manifest.add_command(word);
    }
  }
  if (edits.journal) {
    SetJournal(*edits.journal, manifest);
  }
  if (edits.assertion) {
    manifest.set_assertion(*edits.assertion);
  }
  if (edits.drop_settings) {
    manifest.clear_settings();
  }
  for (const std::string& line : edits.redactions) {
    manifest.add_redactions(line);
  }
}

}  // namespace

Status EditManifest(FileSystem& files, const std::string& folder,
                    const ManifestEdits& edits) {
  const std::string schedule = folder + "/schedule.pb";
  if (struct stat status; stat(schedule.c_str(), &status) == 0) {
    return InvalidArgument(
        "{}: the schedule in it belongs to the manifest as it is; remove "
        "schedule.pb first, and solve again afterwards",
        folder);
  }
  const std::string path = folder + "/manifest.pb";
  pb::Manifest manifest;
  CLEW_RETURN_IF_ERROR(ReadMessage(path, manifest));
  Apply(edits, manifest);
  return ReplaceMessage(files, folder, "manifest.pb", manifest);
}

}  // namespace clew::bundle
