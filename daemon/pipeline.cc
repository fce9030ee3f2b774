#include "daemon/pipeline.h"

#include <algorithm>
#include <utility>

#include "daemon/facts.h"
#include "daemon/takeover.h"
#include "recorder/manifest_edit.h"

namespace clew::daemon {
namespace {

constexpr size_t kRequestedMax = 64;

}  // namespace

Pipeline::Pipeline(Parts parts, BundleWork& prepare, BundleWork* upload,
                   uint64_t retry_ms)
    : parts_(parts),
      prepare_(prepare),
      upload_(upload),
      retry_ms_first_(retry_ms),
      retry_ms_(retry_ms) {}

Pipeline::~Pipeline() { parts_.loop.Cancel(timer_); }

void Pipeline::SetUpload(BundleWork* upload, uint64_t retry_ms) {
  upload_ = upload;
  retry_ms_first_ = retry_ms;
  retry_ms_ = retry_ms;
  retry_at_ms_ = 0;  // what is new may work
}

void Pipeline::ExpectRequested(int32_t process) {
  if (requested_.size() < kRequestedMax) {
    requested_.insert(process);
  }
}

uint64_t Pipeline::retry_in_ms() const {
  const uint64_t now_ms = parts_.clock.MonotonicMs();
  return retry_at_ms_ - std::min(retry_at_ms_, now_ms);
}

void Pipeline::Kick() {
  PrepareNext();
  UploadNext();
}

void Pipeline::Later(uint64_t delay_ms) {
  const uint64_t at_ms = parts_.clock.MonotonicMs() + delay_ms;
  if (timer_ != 0 && timer_at_ms_ <= at_ms) {
    return;  // Kick looks at everything
  }
  parts_.loop.Cancel(timer_);
  timer_at_ms_ = at_ms;
  timer_ = parts_.loop.After(delay_ms, [this] {
    timer_ = 0;
    Kick();
  });
}

void Pipeline::Trouble(std::string_view event, const std::string& name,
                       const std::string& why) {
  parts_.last_error = {parts_.clock.WallNs(), fmt::format("{}: {}", name, why)};
  parts_.log.Once(Level::kWarning, event, why,
                  {{"bundle", name}, {"why", why}});
}

void Pipeline::PrepareNext() {
  while (preparing_.empty()) {
    const auto left = parts_.spool.List(Stage::kChecking);
    const auto fresh = parts_.spool.List(Stage::kIncoming);
    if (left.empty() && fresh.empty()) {
      return;
    }
    const std::string name = left.empty() ? fresh.front() : left.front();
    if (left.empty()) {
      const Status moved =
          parts_.spool.Move(name, Stage::kIncoming, Stage::kChecking);
      if (!moved) {
        Trouble("spool-failed", name, moved.error().message);
        Later(kDiskRetryMs);
        return;
      }
    }
    if (!Adopt(name)) {
      return;
    }
  }
}

// False: the disk fails, nothing can be done now.
bool Pipeline::Adopt(const std::string& name) {
  const auto wanted = Judge(name);
  if (!wanted) {
    const Error& error = wanted.error();
    if (error.code == ErrorCode::kInvalidArgument ||
        error.code == ErrorCode::kCorruptInput) {
      return Park(name, Stage::kChecking, error.message);
    }
    Trouble("spool-failed", name, error.message);
    Later(kDiskRetryMs);
    return false;
  }
  if (!*wanted) {
    const Status removed = parts_.spool.Remove(name, Stage::kChecking);
    if (!removed) {
      Trouble("spool-failed", name, removed.error().message);
    }
    return removed.has_value();
  }
  preparing_ = name;
  const Status started =
      prepare_.Start(parts_.spool.Path(Stage::kChecking, name),
                     [this, name](const WorkEnd& end) { Prepared(name, end); });
  if (!started) {
    preparing_.clear();
    Trouble("prepare-failed", name, started.error().message);
    Later(kDiskRetryMs);
  }
  return started.has_value();
}

Result<bool> Pipeline::Judge(const std::string& name) {
  const std::string folder = parts_.spool.Path(Stage::kChecking, name);
  CLEW_RETURN_IF_ERROR(TakeOver(folder));
  CLEW_ASSIGN_OR_RETURN(facts, ReadFacts(folder));
  if (facts.has_trigger) {
    return true;  // ours, or adopted before we were killed
  }
  return Admit(name, facts);
}

// A bundle of a software unit, which nobody asked us about before.
Result<bool> Pipeline::Admit(const std::string& name,
                             const BundleFacts& facts) {
  const BundleName parsed = ParseName(name).value_or(BundleName());
  const FailureKey key{parsed.subject, facts.signal};
  const uint64_t now_ms = parts_.clock.MonotonicMs();
  const bool requested = requested_.erase(parsed.process) > 0;
  ++parts_.counters.triggers;
  // Names are unique, so no other bundle of this process is its duplicate.
  const Admitted admitted =
      requested ? Admitted::kYes : parts_.admission.Ask(key, 0, now_ms);
  if (admitted != Admitted::kYes) {
    ++parts_.counters.refused_rate;
    parts_.admission.NotSaved(key, 0, now_ms);
    parts_.log.Once(Level::kWarning, "not-saved", parsed.subject,
                    {{"subject", parsed.subject},
                     {"why", std::string(ToString(admitted))}});
    return false;
  }
  const Trigger trigger{.kind = requested    ? TriggerKind::kRequest
                                : facts.hang ? TriggerKind::kHang
                                             : TriggerKind::kUnitFailed,
                        .unit = parsed.subject,
                        .process = parsed.process,
                        .at_ns = parts_.clock.WallNs(),
                        .not_saved = parts_.admission.Saved(key, 0, now_ms)};
  recorder::ManifestEdits edits;
  edits.trigger = trigger;
  CLEW_RETURN_IF_ERROR(recorder::EditManifest(
      PosixFileSystem(), parts_.spool.Path(Stage::kChecking, name), edits));
  return true;
}

// False: the disk fails.
bool Pipeline::Park(const std::string& name, Stage from,
                    const std::string& why) {
  Trouble("bundle-refused", name, why);
  const Status parked = parts_.spool.Refuse(name, from, why);
  if (!parked) {
    Trouble("spool-failed", name, parked.error().message);
    Later(kDiskRetryMs);
    return false;
  }
  ++parts_.counters.refused_bundles;
  return true;
}

void Pipeline::Prepared(const std::string& name, const WorkEnd& end) {
  preparing_.clear();
  if (end.what == WorkEnd::What::kRetry) {
    Trouble("prepare-failed", name, end.why);
    Later(kDiskRetryMs);
    return;
  }
  if (end.what == WorkEnd::What::kRefuse) {
    if (Park(name, Stage::kChecking, end.why)) {
      Kick();
    }
    return;
  }
  if (end.what == WorkEnd::What::kUnchecked) {
    ++parts_.counters.unchecked;
    Trouble("unchecked", name, end.why);
  }
  const Status moved = parts_.spool.Move(name, Stage::kChecking, Stage::kReady);
  if (!moved) {
    Trouble("spool-failed", name, moved.error().message);
    Later(kDiskRetryMs);
    return;
  }
  ++parts_.counters.saved;
  parts_.log.Write(Level::kInfo, "ready", {{"bundle", name}});
  KeepBudget();
  Kick();
}

void Pipeline::KeepBudget() {
  const auto gone = parts_.spool.MakeRoom(1, uploading_);
  if (!gone) {
    Trouble("spool-failed", "", gone.error().message);
    return;
  }
  for (const Evicted& bundle : *gone) {
    const bool unsent = bundle.stage == Stage::kReady;
    ++(unsent ? parts_.counters.lost : parts_.counters.evicted);
    parts_.log.Write(unsent ? Level::kWarning : Level::kInfo, "evicted",
                     {{"bundle", bundle.name},
                      {"from", std::string(FolderOf(bundle.stage))}});
  }
}

void Pipeline::UploadNext() {
  const uint64_t now_ms = parts_.clock.MonotonicMs();
  if (upload_ == nullptr || !uploading_.empty()) {
    return;
  }
  const auto ready = parts_.spool.List(Stage::kReady);
  const auto is_gone = [&](const auto& entry) {
    return std::ranges::find(ready, entry.first) == ready.end();
  };
  std::erase_if(attempts_, is_gone);
  std::erase_if(declines_, is_gone);
  if (ready.empty()) {
    return;
  }
  if (now_ms < retry_at_ms_) {
    Later(retry_at_ms_ - now_ms);
    return;
  }
  // min_element takes the first of equals, which is the oldest.
  const std::string name =
      *std::ranges::min_element(ready, {}, [&](const std::string& bundle) {
        const auto at = attempts_.find(bundle);
        return at == attempts_.end() ? 0 : at->second;
      });
  uploading_ = name;
  const Status started =
      upload_->Start(parts_.spool.Path(Stage::kReady, name),
                     [this, name](const WorkEnd& end) { Uploaded(name, end); });
  if (!started) {
    Uploaded(name, {WorkEnd::What::kRetry, started.error().message});
  }
}

void Pipeline::Uploaded(const std::string& name, const WorkEnd& end) {
  uploading_.clear();
  bool again = end.what == WorkEnd::What::kRetry;
  if (end.what == WorkEnd::What::kDeclined) {
    again = ++declines_[name] < kDeclinesMax;
  }
  if (again) {
    ++parts_.counters.upload_failures;
    ++attempts_[name];
    Trouble("upload-failed", name, end.why);
    retry_at_ms_ = parts_.clock.MonotonicMs() + retry_ms_;
    retry_ms_ = std::min(retry_ms_ * 2, kRetryMsMax);
    UploadNext();
    return;
  }
  retry_ms_ = retry_ms_first_;
  retry_at_ms_ = 0;
  if (end.what != WorkEnd::What::kDone) {
    if (!Park(name, Stage::kReady, end.why)) {
      retry_at_ms_ = parts_.clock.MonotonicMs() + kDiskRetryMs;
      return;
    }
  } else if (const Status moved =
                 parts_.spool.Move(name, Stage::kReady, Stage::kUploaded);
             !moved) {
    // It is sent again, which changes nothing there.
    Trouble("spool-failed", name, moved.error().message);
    retry_at_ms_ = parts_.clock.MonotonicMs() + kDiskRetryMs;
    Later(kDiskRetryMs);
    return;
  } else {
    ++parts_.counters.uploaded;
    parts_.log.Write(Level::kInfo, "uploaded", {{"bundle", name}});
  }
  UploadNext();
}

}  // namespace clew::daemon
