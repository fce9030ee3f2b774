#include "daemon/source/source_keeper.h"

#include <utility>

namespace clew::daemon {

SourceKeeper::SourceKeeper(Parts parts, const Config& config,
                           std::function<void()> changed)
    : parts_(std::move(parts)), config_(config), changed_(std::move(changed)) {}

SourceKeeper::~SourceKeeper() { parts_.loop.Cancel(retry_); }

void SourceKeeper::Open() {
  parts_.loop.Cancel(std::exchange(retry_, 0));
  for_one_save_ = false;
  source_.reset();  // first: two sessions would lock twice the memory
  error_.clear();
  if (config_.source != SourceKind::kNone) {
    auto source = parts_.open(config_);
    if (source) {
      source_ = std::move(*source);
      parts_.log.Over("source-failed", "");
      parts_.log.Write(Priority::kInfo, "recording",
                       {{"source", std::string(ToString(config_.source))}});
    } else {
      error_ = source.error().message;
      parts_.incidents.SetLast(error_);
      parts_.log.Once(Priority::kError, "source-failed", "", {{"why", error_}});
      retry_ =
          parts_.loop.After(config_.source_retry_s * 1000, [this] { Open(); });
    }
  }
  changed_();
}

Status SourceKeeper::OpenForOneSave() {
  Config config = config_;
  config.source = SourceKind::kSideband;
  CLEW_ASSIGN_OR_RETURN(source, parts_.open(config));
  source_ = std::move(source);
  for_one_save_ = true;
  return {};
}

void SourceKeeper::Reopen(bool saving) {
  waits_to_reopen_ = saving;
  if (!saving) {
    Open();
  }
}

void SourceKeeper::SavesEnded() {
  if (std::exchange(for_one_save_, false)) {
    source_.reset();
  }
  if (std::exchange(waits_to_reopen_, false)) {
    Open();
  }
}

void SourceKeeper::RunPeriodicWork() {
  if (source_ == nullptr) {
    return;
  }
  if (const Status followed = source_->FollowCpus(); !followed) {
    parts_.incidents.Add("source-failed", followed.error());
    Open();
  }
}

}  // namespace clew::daemon
