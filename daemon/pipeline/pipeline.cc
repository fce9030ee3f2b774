#include "daemon/pipeline/pipeline.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "bundle/manifest/manifest_edit.h"
#include "daemon/spool/facts.h"
#include "daemon/spool/process_facts.h"
#include "daemon/spool/takeover.h"

namespace clew::daemon {
namespace {

using bundle::EditManifest;
using bundle::ManifestEdits;

constexpr size_t kRequestedMax = 64;

}  // namespace

Pipeline::Pipeline(Parts parts, BundleJob& prepare, BundleJob* upload,
                   uint64_t retry_ms)
    : parts_(std::move(parts)),
      prepare_(prepare),
      upload_(upload),
      retry_ms_first_(retry_ms),
      retry_ms_(retry_ms) {}

Pipeline::~Pipeline() { parts_.loop.Cancel(timer_); }

void Pipeline::SetUpload(BundleJob* upload, uint64_t retry_ms) {
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

void Pipeline::LookForWork() {
  NoteWriters();
  PrepareNext();
  UploadNext();
}

// Who records a bundle of an own name tells its unit by its cgroup, and is gone
// when the bundle is whole.
void Pipeline::NoteWriters() {
  for (const std::string& partial : parts_.spool.Writing()) {
    const auto parsed = ParseName(partial);
    const auto owner = parts_.spool.OwnerOf(Stage::kIncoming, partial);
    const std::string name = partial.substr(0, partial.rfind(".partial"));
    if (!parsed || !owner || *owner == geteuid() ||
        of_their_unit_.contains(name) ||
        of_their_unit_.size() >= kRequestedMax) {
      continue;
    }
    const ProcessFacts facts = ReadProcessFacts(parts_.proc, parsed->process);
    if (facts.exists && facts.user == *owner && facts.unit == parsed->subject) {
      of_their_unit_.insert(name);
    }
  }
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
    LookForWork();
  });
}

void Pipeline::Trouble(std::string_view event, const std::string& name,
                       const std::string& why) {
  parts_.last_error = {parts_.clock.WallNs(), fmt::format("{}: {}", name, why)};
  parts_.log.Once(Priority::kWarning, event, why,
                  {{"bundle", name}, {"why", why}});
}

// Each turn starts a preparation, ends a bundle's way or puts it off, so that
// no bundle keeps the others waiting.
void Pipeline::PrepareNext() {
  while (preparing_.empty()) {
    auto next = NextToPrepare();
    if (!next) {
      return;
    }
    if (next->stage == Stage::kIncoming) {
      auto moved =
          parts_.spool.Move(next->name, Stage::kIncoming, Stage::kChecking);
      if (!moved) {
        PutOff(*next, "spool-failed", moved.error().message);
        continue;
      }
      next->name = *moved;
    }
    if (!Adopt(next->name)) {
      return;
    }
  }
}

// The oldest that is not put off, of those begun first.
std::optional<Pipeline::Place> Pipeline::NextToPrepare() {
  const uint64_t now_ms = parts_.clock.MonotonicMs();
  std::map<Place, Delay> kept;
  std::optional<Place> next;
  uint64_t soonest_ms = UINT64_MAX;
  for (const Stage stage : {Stage::kChecking, Stage::kIncoming}) {
    for (const std::string& name : parts_.spool.List(stage)) {
      const Place place{stage, name};
      const auto delay = delays_.find(place);
      if (delay != delays_.end()) {
        kept.insert(*delay);
      }
      if (delay != delays_.end() && delay->second.until_ms > now_ms) {
        soonest_ms = std::min(soonest_ms, delay->second.until_ms);
      } else if (!next) {
        next = place;
      }
    }
  }
  delays_ = std::move(kept);
  if (soonest_ms != UINT64_MAX) {
    Later(soonest_ms - now_ms);
  }
  return next;
}

// Later again, and after kPrepareTriesMax tries set aside. What cannot even be
// set aside (the disk fails) stays and is tried after the longest pause.
void Pipeline::PutOff(const Place& place, std::string_view event,
                      const std::string& why) {
  Trouble(event, place.name, why);
  Delay& delay = delays_[place];
  ++delay.tries;
  if (delay.tries >= kPrepareTriesMax) {
    const std::string reason =
        fmt::format("{} tries failed, the last: {}", delay.tries, why);
    const auto stuck =
        parts_.spool.SetAside(place.name, place.stage, Stage::kStuck, reason);
    if (stuck) {
      ++parts_.counters.stuck;
      Trouble("stuck", *stuck, reason);
      delays_.erase(place);
      return;
    }
    Trouble("spool-failed", place.name, stuck.error().message);
  }
  const uint64_t doublings = std::min(delay.tries, kPrepareTriesMax) - 1;
  const uint64_t pause_ms = std::min(kDiskRetryMs << doublings, kRetryMsMax);
  delay.until_ms = parts_.clock.MonotonicMs() + pause_ms;
  Later(pause_ms);
}

// False: nothing can be prepared now.
bool Pipeline::Adopt(const std::string& name) {
  const Place place{Stage::kChecking, name};
  const auto fate = Judge(name);
  if (!fate) {
    const Error& error = fate.error();
    Status parked;
    if (error.code == ErrorCode::kInvalidArgument ||
        error.code == ErrorCode::kCorruptInput) {
      parked = Park(place, error.message);
    } else {
      parked = std::unexpected(error);
    }
    if (!parked) {
      PutOff(place, "spool-failed", parked.error().message);
    }
    return true;
  }
  if (*fate == Fate::kRemove) {
    const Status removed = parts_.spool.Remove(name, Stage::kChecking);
    if (!removed) {
      PutOff(place, "spool-failed", removed.error().message);
    }
    return true;
  }
  preparing_ = name;
  const Status started =
      prepare_.Start(parts_.spool.Path(Stage::kChecking, name),
                     [this, name](const JobEnd& end) { Prepared(name, end); });
  if (!started) {
    preparing_.clear();
    Trouble("prepare-failed", name, started.error().message);
    Later(kDiskRetryMs);
  }
  return started.has_value();
}

Result<Pipeline::Fate> Pipeline::Judge(const std::string& name) {
  const std::string folder = parts_.spool.Path(Stage::kChecking, name);
  const auto origin = parts_.spool.OriginOf(name);
  CLEW_RETURN_IF_ERROR(TakeOver(folder));
  CLEW_ASSIGN_OR_RETURN(facts, ReadFacts(folder));
  if (facts.trigger && !origin) {
    return Fate::kPrepare;  // ours, or adopted before we were killed
  }
  CLEW_ASSIGN_OR_RETURN(fate, Admit(name, facts, origin));
  CLEW_RETURN_IF_ERROR(parts_.spool.ForgetOrigin(name));
  return fate;
}

// Admits the bundle of a software unit, of which nothing was known before. The
// trigger that another user wrote into it is ignored, and the unit counts only
// if its recorder was seen there.
Result<Pipeline::Fate> Pipeline::Admit(const std::string& name,
                                       const BundleFacts& facts,
                                       std::optional<uid_t> origin) {
  const BundleName parsed = ParseName(name).value_or(BundleName());
  const bool of_unit = of_their_unit_.erase(name) > 0 || !origin;
  const FailureKey key{parsed.subject, facts.signal, origin.value_or(0)};
  const uint64_t now_ms = parts_.clock.MonotonicMs();
  const bool requested = of_unit && requested_.erase(parsed.process) > 0;
  ++parts_.counters.triggers;
  // Names are unique, so no other bundle of this process is its duplicate.
  const Admitted admitted =
      requested ? Admitted::kYes : parts_.admission.Ask(key, 0, now_ms);
  if (admitted != Admitted::kYes) {
    ++parts_.counters.refused_rate;
    parts_.admission.NotSaved(key, 0, now_ms);
    parts_.log.Once(Priority::kWarning, "not-saved", parsed.subject,
                    {{"subject", parsed.subject},
                     {"why", std::string(ToString(admitted))}});
    return Fate::kRemove;
  }
  const Trigger trigger{.kind = requested    ? TriggerKind::kRequest
                                : facts.hang ? TriggerKind::kHang
                                             : TriggerKind::kUnitFailed,
                        .unit = of_unit ? parsed.subject : "",
                        .process = parsed.process,
                        .at_ns = parts_.clock.WallNs(),
                        .not_saved = parts_.admission.Saved(key, 0, now_ms)};
  ManifestEdits edits;
  edits.trigger = trigger;
  CLEW_RETURN_IF_ERROR(EditManifest(
      PosixFileSystem(), parts_.spool.Path(Stage::kChecking, name), edits));
  return Fate::kPrepare;
}

Status Pipeline::Park(const Place& place, const std::string& why) {
  Trouble("bundle-refused", place.name, why);
  CLEW_RETURN_IF_ERROR(
      parts_.spool.SetAside(place.name, place.stage, Stage::kRefused, why));
  ++parts_.counters.refused_bundles;
  return {};
}

Result<uint64_t> Pipeline::BringBack(const std::string& name) {
  uint64_t count = 0;
  for (const Stage stage : {Stage::kStuck, Stage::kRefused}) {
    for (const std::string& bundle : parts_.spool.List(stage)) {
      if (bundle != name && (!name.empty() || stage != Stage::kStuck)) {
        continue;
      }
      CLEW_RETURN_IF_ERROR(parts_.spool.Move(bundle, stage, Stage::kChecking));
      ++count;
    }
  }
  if (count == 0 && !name.empty()) {
    return InvalidArgument(
        "no bundle {:?} in stuck/ or refused/; clew daemon status lists what "
        "is stuck",
        name);
  }
  LookForWork();
  return count;
}

void Pipeline::Prepared(const std::string& name, const JobEnd& end) {
  preparing_.clear();
  const Place place{Stage::kChecking, name};
  if (end.what == JobEnd::What::kRetry) {
    PutOff(place, "prepare-failed", end.why);
  } else if (end.what == JobEnd::What::kRefuse) {
    if (const Status parked = Park(place, end.why); !parked) {
      PutOff(place, "spool-failed", parked.error().message);
    }
  } else {
    Ready(place, end);
  }
  LookForWork();
}

void Pipeline::Ready(const Place& place, const JobEnd& end) {
  if (end.what == JobEnd::What::kUnchecked) {
    ++parts_.counters.unchecked;
    Trouble("unchecked", place.name, end.why);
  }
  const auto moved = parts_.spool.Move(place.name, place.stage, Stage::kReady);
  if (!moved) {
    PutOff(place, "spool-failed", moved.error().message);
    return;
  }
  ++parts_.counters.saved;
  parts_.log.Write(Priority::kInfo, "ready", {{"bundle", *moved}});
  if (const Status room = MakeRoom(1); !room) {
    Trouble("spool-failed", "", room.error().message);
  }
}

Status Pipeline::MakeRoom(uint64_t bytes) {
  CLEW_ASSIGN_OR_RETURN(gone, parts_.spool.MakeRoom(bytes, uploading_));
  for (const Evicted& bundle : gone) {
    const bool unsent =
        bundle.stage == Stage::kReady || bundle.stage == Stage::kStuck;
    ++(unsent ? parts_.counters.lost : parts_.counters.evicted);
    parts_.log.Write(unsent ? Priority::kWarning : Priority::kInfo, "evicted",
                     {{"bundle", bundle.name},
                      {"from", std::string(FolderOf(bundle.stage))}});
  }
  return {};
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
                     [this, name](const JobEnd& end) { Uploaded(name, end); });
  if (!started) {
    Uploaded(name, {JobEnd::What::kRetry, started.error().message});
  }
}

void Pipeline::Uploaded(const std::string& name, const JobEnd& end) {
  uploading_.clear();
  bool again = end.what == JobEnd::What::kRetry;
  if (end.what == JobEnd::What::kDeclined) {
    again = ++declines_[name] < kDeclinesMax;
  }
  if (again) {
    ++parts_.counters.upload_failures;
    ++attempts_[name];
    Trouble("upload-failed", name, end.why);
    const uint64_t jitter_ms = parts_.below(retry_ms_ / kJitterDivisor + 1);
    retry_at_ms_ = parts_.clock.MonotonicMs() + retry_ms_ - jitter_ms;
    retry_ms_ = std::min(retry_ms_ * 2, kRetryMsMax);
    UploadNext();
    return;
  }
  retry_ms_ = retry_ms_first_;
  retry_at_ms_ = 0;
  if (const Status filed = FileSent({Stage::kReady, name}, end); !filed) {
    // It is sent again, which changes nothing there, after the others.
    ++attempts_[name];
    Trouble("spool-failed", name, filed.error().message);
    retry_at_ms_ = parts_.clock.MonotonicMs() + kDiskRetryMs;
  }
  UploadNext();
}

Status Pipeline::FileSent(const Place& place, const JobEnd& end) {
  if (end.what != JobEnd::What::kDone) {
    return Park(place, end.why);
  }
  CLEW_RETURN_IF_ERROR(
      parts_.spool.Move(place.name, place.stage, Stage::kUploaded));
  ++parts_.counters.uploaded;
  parts_.log.Write(Priority::kInfo, "uploaded", {{"bundle", place.name}});
  return {};
}

}  // namespace clew::daemon
