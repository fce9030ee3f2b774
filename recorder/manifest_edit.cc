#include "recorder/manifest_edit.h"

#include <sys/stat.h>

#include <limits>
#include <memory>
#include <span>

#include "proto/bundle.pb.h"
#include "recorder/whole_file.h"

namespace clew::recorder {
namespace {

pb::Trigger::Kind ToProto(TriggerKind kind) {
  switch (kind) {
    case TriggerKind::kUnknown:
      return pb::Trigger::KIND_UNKNOWN;
    case TriggerKind::kCore:
      return pb::Trigger::KIND_CORE;
    case TriggerKind::kUnitFailed:
      return pb::Trigger::KIND_UNIT_FAILED;
    case TriggerKind::kHang:
      return pb::Trigger::KIND_HANG;
    case TriggerKind::kRequest:
      return pb::Trigger::KIND_REQUEST;
  }
  return pb::Trigger::KIND_UNKNOWN;
}

// Only what an edit says; merging it would append to lists, so those that are
// replaced are cleared first.
void Apply(const Trigger& from, pb::Trigger& to) {
  to.set_kind(ToProto(from.kind));
  to.set_unit(from.unit);
  to.set_process(from.process);
  to.set_at_ns(from.at_ns);
  to.set_not_saved(from.not_saved);
}

void Apply(const Sufficiency& from, pb::Sufficiency& to) {
  to.set_score(from.score);
  to.set_decodes(from.decodes);
  to.set_images_missing(from.images_missing);
  to.set_gaps(from.gaps);
  to.set_gaps_at_failure(from.gaps_at_failure);
  to.clear_reasons();
  for (const std::string& reason : from.reasons) {
    to.add_reasons(reason);
  }
}

void Apply(const Journal& from, pb::Manifest& to) {
  to.clear_journal();
  to.set_no_journal(from.why);
  for (const JournalLine& line : from.lines) {
    pb::JournalLine& added = *to.add_journal();
    added.set_at_us(line.at_us);
    added.set_process(line.process);
    added.set_unit(line.unit);
    added.set_program(line.program);
    added.set_priority(line.priority);
    added.set_message(line.message);
  }
}

void Apply(const ManifestEdits& edits, pb::Manifest& manifest) {
  if (edits.trigger) {
    Apply(*edits.trigger, *manifest.mutable_trigger());
  }
  if (edits.sufficiency) {
    Apply(*edits.sufficiency, *manifest.mutable_sufficiency());
  }
  if (edits.command) {
    manifest.clear_command();
    for (const std::string& word : *edits.command) {
      manifest.add_command(word);
    }
  }
  if (edits.journal) {
    Apply(*edits.journal, manifest);
  }
  if (edits.assertion) {
    manifest.set_assertion(*edits.assertion);
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

}  // namespace clew::recorder
