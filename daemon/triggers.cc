#include "daemon/triggers.h"

#include <algorithm>
#include <utility>

namespace clew::daemon {
namespace {

// Less is not worth a bundle.
constexpr uint64_t kCoreRoomMin = 1 << 20;
// Headers, registers, and mapped files that a core dump may have, too.
constexpr uint64_t kCoreBesidesMemory = 64 << 20;

}  // namespace

Status Triggers::MayBegin(const TriggerEvent& event, const FailureKey& key) {
  const uint64_t now_ms = parts_.clock.MonotonicMs();
  const bool asked_for = event.kind == TriggerKind::kRequest;
  const Admitted admitted =
      asked_for ? Admitted::kYes
                : parts_.admission.Ask(key, event.process, now_ms);
  const auto refuse = [&](uint64_t& counter, Error error) -> Status {
    ++counter;
    if (!asked_for && admitted != Admitted::kDuplicate) {
      parts_.admission.NotSaved(key, event.process, now_ms);
    }
    return std::unexpected(std::move(error));
  };
  Counters& counters = parts_.counters;
  if (admitted != Admitted::kYes) {
    return refuse(admitted == Admitted::kDuplicate ? counters.duplicates
                                                   : counters.refused_rate,
                  {ErrorCode::kLimit, std::string(ToString(admitted))});
  }
  if (const Status source = NeedsSource(event); !source) {
    return refuse(counters.refused_no_source, source.error());
  }
  if (IsBusyFor(key.user)) {
    return refuse(counters.refused_busy,
                  {ErrorCode::kLimit,
                   fmt::format("{} bundles are being saved (saves in "
                               "clewd.conf; half of them for one user)",
                               at_work_.count())});
  }
  return {};
}

// Fails with kUnsupported if there is no source that would do.
Status Triggers::NeedsSource(const TriggerEvent& event) {
  SourceKeeper& source = parts_.source;
  if (source.source() == nullptr && event.with_core_dump &&
      config_.source == SourceKind::kNone) {
    CLEW_RETURN_IF_ERROR(source.OpenForOneSave());
  }
  if (source.source() == nullptr) {
    return std::unexpected(Error{
        ErrorCode::kUnsupported,
        source.error().empty()
            ? "no trace is being recorded: source = none in clewd.conf, and "
              "no unit of that name runs under clewd-run"
            : "no trace is being recorded: " + source.error()});
  }
  if (!source.source()->has_pt() && !config_.sideband_only &&
      !source.is_for_one_save()) {
    return Unsupported(
        "the source has no PT; sideband_only = yes in clewd.conf saves "
        "without");
  }
  return {};
}

// Nothing begins that would keep a new source, or the end, waiting.
bool Triggers::IsBusyFor(uint32_t user) const {
  return stopped_ || parts_.source.waits_to_reopen() ||
         at_work_.IsFullFor(user, config_.saves);
}

// What a core dump may take. Of a process that was killed in its dump there is
// only what is on the way already: others are not to make room for more. The
// first thread may have ended, and has no memory then (proc_pid_status(5)).
uint64_t Triggers::CoreBytesOf(const TriggerEvent& event,
                               const ProcessFacts& facts) const {
  if (!event.with_core_dump) {
    return 0;
  }
  if (!facts.exists) {
    return kCoreBesidesMemory;
  }
  const uint64_t memory_bytes =
      facts.memory_bytes != 0
          ? facts.memory_bytes
          : ReadProcessFacts(parts_.proc, event.failure.thread.as_int())
                .memory_bytes;
  return memory_bytes == 0
             ? config_.core_bytes
             : std::min(config_.core_bytes, memory_bytes + kCoreBesidesMemory);
}

// Room for the trace is needed, a core dump gets what is left.
Result<Triggers::Room> Triggers::MakeRoomFor(uint64_t core_bytes) {
  const uint64_t trace_bytes = parts_.source.source()->save_bytes_max();
  const uint64_t wanted = trace_bytes + core_bytes;
  const uint64_t promised = at_work_.bytes_max();
  CLEW_RETURN_IF_ERROR(parts_.pipeline.MakeRoom(wanted + promised));
  uint64_t room = parts_.spool.Room();
  room -= std::min(room, promised);
  if (room < trace_bytes) {
    return LimitReached(
        "the spool has room for {} bytes, a trace may need {}; raise "
        "spool_bytes or make room on the disk",
        room, trace_bytes);
  }
  return Room{
      .core_bytes_max = std::min(config_.core_bytes, room - trace_bytes),
      .bytes = std::min(wanted, room)};
}

Result<StartedSave> Triggers::Begin(const TriggerEvent& event) {
  auto save = TryBegin(event);
  if (!save && !saver_.busy()) {
    parts_.source.SavesEnded();
  }
  return save;
}

Result<StartedSave> Triggers::TryBegin(const TriggerEvent& event) {
  const ProcessFacts facts = event.process == 0
                                 ? ProcessFacts()
                                 : ReadProcessFacts(parts_.proc, event.process);
  const uint64_t now_ns = parts_.clock.MonotonicNs();
  const std::string unit = event.unit.empty() ? facts.unit : event.unit;
  const std::string program = facts.program.empty() ? unit : facts.program;
  const FailureKey key{program, event.failure.signal, facts.user};
  ++parts_.counters.triggers;
  CLEW_RETURN_IF_ERROR(MayBegin(event, key));
  const auto room = MakeRoomFor(CoreBytesOf(event, facts));
  if (!room) {
    ++parts_.counters.refused_budget;
    parts_.admission.NotSaved(key, event.process, now_ns / 1'000'000);
    parts_.incidents.Add("no-room", room.error());
    return std::unexpected(room.error());
  }
  SaveJob job;
  job.triggered_ns = now_ns;
  job.order = {.trigger = {.kind = event.kind,
                           .unit = unit,
                           .process = event.process,
                           .at_ns = parts_.clock.WallNs(),
                           .not_saved = 0},
               .program = program,
               .failure = event.failure};
  return Start(event, key, std::move(job), *room);
}

Result<StartedSave> Triggers::Start(const TriggerEvent& event,
                                    const FailureKey& key, SaveJob job,
                                    const Room& room) {
  Trigger& trigger = job.order.trigger;
  const std::string name =
      FormatName({job.order.program.empty() ? "process" : job.order.program,
                  trigger.at_ns, event.process});
  job.bundle = parts_.spool.Path(Stage::kIncoming, name);
  job.expect_core = event.with_core_dump && room.core_bytes_max >= kCoreRoomMin;
  if (event.kind != TriggerKind::kRequest) {
    trigger.not_saved = parts_.admission.Saved(key, event.process,
                                               job.triggered_ns / 1'000'000);
  }
  PtSource& source = *parts_.source.source();
  auto started = saver_.Start(
      source, std::move(job),
      [this, name](Saver::Id id, const SaveEnd& end) { Ended(id, name, end); });
  if (!started) {
    ++parts_.counters.save_failures;
    parts_.incidents.Add("save-failed", started.error());
    return std::unexpected(started.error());
  }
  at_work_.Add(started->id, key.user, room.bytes);
  StartedSave save{name, started->id, std::move(started->core_dump),
                   room.core_bytes_max, Fd()};
  if (event.process != 0) {
    save.noted = source.NoteProcess(event.process, key.user);
  }
  return save;
}

void Triggers::EndCoreCopy(ControlHandler::ConnectionId connection,
                           bool whole) {
  const auto copy = core_copies_.find(connection);
  if (copy != core_copies_.end()) {
    saver_.CoreEnded(copy->second, whole);
    core_copies_.erase(copy);
  }
}

void Triggers::Ended(Saver::Id id, const std::string& name,
                     const SaveEnd& end) {
  at_work_.Remove(id);
  std::erase_if(core_copies_,
                [&](const auto& copy) { return copy.second == id; });
  parts_.counters.cores_cut += end.core_cut ? 1 : 0;
  parts_.counters.unanswered += end.report.unanswered;
  if (end.status) {
    times_ = {.first_byte_us = end.first_byte_us,
              .first_byte_us_max =
                  std::max(times_.first_byte_us_max, end.first_byte_us),
              .saved_us = end.saved_us,
              .saved_us_max = std::max(times_.saved_us_max, end.saved_us)};
    parts_.log.Write(Priority::kInfo, "saved",
                     {{"bundle", name},
                      {"first_byte_us", fmt::format("{}", end.first_byte_us)},
                      {"saved_us", fmt::format("{}", end.saved_us)},
                      {"core", end.core_cut ? "cut" : "whole"}});
  } else {
    ++parts_.counters.save_failures;
    parts_.incidents.Add("save-failed", end.status.error());
  }
  if (!saver_.busy()) {
    parts_.source.SavesEnded();
  }
  ended_();
}

}  // namespace clew::daemon
