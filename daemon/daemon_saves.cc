#include <algorithm>
#include <string>
#include <utility>

#include "daemon/daemon.h"

// What Daemon does with a failure: may it be saved, is there room, begin, end.

namespace clew::daemon {
namespace {

// Less is not worth a bundle.
constexpr uint64_t kCoreRoomMin = 1 << 20;
// Headers, registers, and mapped files that a core dump may have, too.
constexpr uint64_t kCoreBesidesMemory = 64 << 20;

}  // namespace

Status Daemon::MayBegin(const Noticed& noticed, const FailureKey& key) {
  const uint64_t now_ms = parts_.clock.MonotonicMs();
  const bool asked_for = noticed.kind == TriggerKind::kRequest;
  const Admitted admitted =
      asked_for ? Admitted::kYes : admission_.Ask(key, noticed.process, now_ms);
  const auto refuse = [&](uint64_t& counter, Error error) -> Status {
    ++counter;
    if (!asked_for && admitted != Admitted::kDuplicate) {
      admission_.NotSaved(key, noticed.process, now_ms);
    }
    return std::unexpected(std::move(error));
  };
  if (admitted != Admitted::kYes) {
    return refuse(admitted == Admitted::kDuplicate ? counters_.duplicates
                                                   : counters_.refused_rate,
                  {ErrorCode::kLimit, std::string(ToString(admitted))});
  }
  if (source_ == nullptr && noticed.core &&
      config_.source == SourceKind::kNone) {
    if (const Status opened = OpenForOneSave(); !opened) {
      return refuse(counters_.refused_no_source, opened.error());
    }
  }
  if (source_ == nullptr) {
    return refuse(
        counters_.refused_no_source,
        {ErrorCode::kUnsupported,
         source_error_.empty()
             ? "no trace is being recorded: source = none in clewd.conf, and "
               "no unit of that name runs under clewd-run"
             : "no trace is being recorded: " + source_error_});
  }
  if (!source_->has_pt() && !config_.sideband_only && !for_one_save_) {
    return refuse(counters_.refused_no_source,
                  {ErrorCode::kUnsupported,
                   "the source has no PT; sideband_only = yes in clewd.conf "
                   "saves without"});
  }
  if (IsBusyFor(key.user)) {
    return refuse(counters_.refused_busy,
                  {ErrorCode::kLimit,
                   fmt::format("{} bundles are being saved (saves in "
                               "clewd.conf; half of them for one user)",
                               at_work_.count())});
  }
  return {};
}

// Nothing begins that would keep a new source, or the end, waiting.
bool Daemon::IsBusyFor(uint32_t user) const {
  return stopping_ || reopen_source_ || at_work_.IsFullFor(user, config_.saves);
}

// What a core dump may take. Of a process that was killed in its dump there is
// only what is on the way already: others are not to make room for more. The
// first thread may have ended, and has no memory then (proc_pid_status(5)).
uint64_t Daemon::CoreBytesOf(const Noticed& noticed,
                             const ProcessFacts& facts) const {
  if (!noticed.core) {
    return 0;
  }
  if (!facts.exists) {
    return kCoreBesidesMemory;
  }
  const uint64_t memory_bytes =
      facts.memory_bytes != 0
          ? facts.memory_bytes
          : LookAt(parts_.proc, noticed.failure.thread.as_int()).memory_bytes;
  return memory_bytes == 0
             ? config_.core_bytes
             : std::min(config_.core_bytes, memory_bytes + kCoreBesidesMemory);
}

// Room for the trace is needed, a core dump gets what is left.
Result<Daemon::Room> Daemon::MakeRoomFor(uint64_t core_bytes) {
  const uint64_t trace_bytes = source_->save_bytes_max();
  const uint64_t wanted = trace_bytes + core_bytes;
  const uint64_t promised = at_work_.bytes_max();
  CLEW_RETURN_IF_ERROR(pipeline_.MakeRoom(wanted + promised));
  uint64_t room = spool_.Room();
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

Result<Daemon::Begun> Daemon::Begin(const Noticed& noticed) {
  const uint64_t now_ns = parts_.clock.MonotonicNs();
  const ProcessFacts facts = noticed.process == 0
                                 ? ProcessFacts()
                                 : LookAt(parts_.proc, noticed.process);
  const std::string unit = noticed.unit.empty() ? facts.unit : noticed.unit;
  const std::string program = facts.program.empty() ? unit : facts.program;
  const FailureKey key{program, noticed.failure.signal, facts.user};
  ++counters_.triggers;
  CLEW_RETURN_IF_ERROR(MayBegin(noticed, key));
  const auto room = MakeRoomFor(CoreBytesOf(noticed, facts));
  if (!room) {
    ++counters_.refused_budget;
    admission_.NotSaved(key, noticed.process, now_ns / 1'000'000);
    Note("no-room", room.error());
    return std::unexpected(room.error());
  }
  const int64_t at_ns = parts_.clock.WallNs();
  const std::string name = FormatName(
      {program.empty() ? "process" : program, at_ns, noticed.process});
  SaveJob job;
  job.bundle = spool_.Path(Stage::kIncoming, name);
  job.expect_core = noticed.core && room->core_bytes_max >= kCoreRoomMin;
  job.triggered_ns = now_ns;
  job.order = {.trigger = {.kind = noticed.kind,
                           .unit = unit,
                           .process = noticed.process,
                           .at_ns = at_ns,
                           .not_saved = 0},
               .program = program,
               .failure = noticed.failure};
  if (noticed.kind != TriggerKind::kRequest) {
    job.order.trigger.not_saved =
        admission_.Saved(key, noticed.process, now_ns / 1'000'000);
  }
  auto started = saver_.Start(
      *source_, std::move(job),
      [this, name](Saver::Id id, const SaveEnd& end) { Saved(id, name, end); });
  if (!started) {
    ++counters_.save_failures;
    Note("save-failed", started.error());
    return std::unexpected(started.error());
  }
  at_work_.Add(started->id, facts.user, room->bytes);
  Begun begun{name, started->id, std::move(started->core), room->core_bytes_max,
              Fd()};
  if (noticed.process != 0) {
    begun.witnessed = source_->Witness(noticed.process, facts.user);
  }
  return begun;
}

void Daemon::Saved(Saver::Id id, const std::string& name, const SaveEnd& end) {
  at_work_.Remove(id);
  std::erase_if(core_copies_,
                [&](const auto& copy) { return copy.second == id; });
  counters_.cores_cut += end.core_cut ? 1 : 0;
  counters_.unanswered += end.report.unanswered;
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
    ++counters_.save_failures;
    Note("save-failed", end.status.error());
  }
  CloseAfterOneSave();
  if (!saver_.busy() && std::exchange(reopen_source_, false)) {
    OpenTheSource();
  }
  if (stopping_ && !saver_.busy()) {
    parts_.loop.Stop();
    return;
  }
  pipeline_.Kick();
  ShowState();
}

}  // namespace clew::daemon
