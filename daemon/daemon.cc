#include "daemon/daemon.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <variant>

#include "daemon/notify.h"
#include "daemon/rules.h"

namespace clew::daemon {
namespace {

// qemu-user's program, as the kernel cuts its name (comm, 15 bytes).
constexpr const char* kQemuName = "qemu-x86_64";

AdmissionLimits LimitsOf(const Config& config) {
  return {.per_failure = config.rate_failure,
          .all = config.rate_all,
          .period_ms = config.rate_period_s * 1000,
          .merge_ms = config.merge_s * 1000};
}

// Another one in each process and on each host.
uint64_t Seed(Clock& clock) {
  uint64_t seed = static_cast<uint64_t>(clock.WallNs());
  // Without it (getrandom(2): a signal, or early at boot) the clock must do.
  (void)!getrandom(&seed, sizeof(seed), GRND_NONBLOCK);
  return seed;
}

bool SameSource(const Config& a, const Config& b) {
  return a.source == b.source && a.pt_buffer_bytes == b.pt_buffer_bytes &&
         a.data_buffer_bytes == b.data_buffer_bytes;
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::Start(DaemonParts parts,
                                              const Config& config) {
  CLEW_ASSIGN_OR_RETURN(
      spool, Spool::Open(PosixFileSystem(), parts.paths.spool,
                         {config.spool_bytes, config.disk_free_bytes}));
  std::unique_ptr<Daemon> daemon(
      new Daemon(std::move(parts), config, std::move(spool)));
  CLEW_RETURN_IF_ERROR(daemon->Open());
  return daemon;
}

Daemon::Daemon(DaemonParts parts, const Config& config, Spool spool)
    : parts_(std::move(parts)),
      config_(config),
      spool_(std::move(spool)),
      admission_(LimitsOf(config)),
      random_(Seed(parts_.clock)),
      prepare_(parts_.loop),
      upload_(parts_.loop),
      pipeline_(
          {parts_.loop, parts_.clock, spool_, admission_, parts_.log, counters_,
           last_error_, [this](uint64_t bound) { return random_.Below(bound); },
           parts_.proc},
          prepare_, nullptr, config_.upload_retry_s * 1000),
      reporter_(
          parts_.loop, [this](uint64_t bound) { return random_.Below(bound); },
          [this](const std::string& why) { Reported(why); }),
      units_(parts_.units, parts_.paths.cgroup),
      started_ns_(parts_.clock.MonotonicNs()),
      late_answers_(parts_.loop,
                    [this](ConnectionId connection, Answer answer) {
                      control_->Send(connection, std::move(answer));
                    }),
      saver_(parts_.loop, parts_.clock) {}

Daemon::~Daemon() {
  for (const Loop::TimerId timer : {tend_timer_, unit_timer_, source_timer_}) {
    parts_.loop.Cancel(timer);
  }
  if (inotify_.get() >= 0) {
    parts_.loop.Forget(inotify_.get());
  }
}

Status Daemon::Open() {
  CLEW_RETURN_IF_ERROR(WatchIncoming());
  auto control =
      ControlServer::Open(parts_.loop, *this, {.path = parts_.paths.socket});
  if (!control) {
    return std::unexpected(control.error());
  }
  control_ = std::move(*control);
  Apply(config_);
  OpenTheSource();
  pipeline_.Kick();
  Tend();
  LookAtUnits();
  return {};
}

Status Daemon::WatchIncoming() {
  inotify_ = Fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (inotify_.get() < 0 ||
      inotify_add_watch(inotify_.get(), spool_.Folder(Stage::kIncoming).c_str(),
                        IN_MOVED_TO | IN_CREATE | IN_ONLYDIR) < 0) {
    return SystemError(errno, fmt::format("cannot watch {:?}",
                                          spool_.Folder(Stage::kIncoming)));
  }
  return parts_.loop.Watch(inotify_.get(), EPOLLIN, [this](uint32_t) {
    std::array<char, 4096> events = {};
    // What came is looked up in the folder.
    while (read(inotify_.get(), events.data(), events.size()) > 0) {
    }
    pipeline_.Kick();
  });
}

void Daemon::Apply(const Config& config) {
  config_ = config;
  for (const std::string& warning : config.warnings) {
    parts_.log.Write(Priority::kWarning, "config", {{"why", warning}});
    last_error_ = {parts_.clock.WallNs(), warning};
  }
  spool_.SetLimits({config.spool_bytes, config.disk_free_bytes});
  admission_.SetLimits(LimitsOf(config));
  units_.SetUnits(config.units);
  prepare_.SetOptions({.clew = config.clew,
                       .clewd = parts_.clewd,
                       .redact = RedactProgram(parts_.clewd),
                       .redaction = config.redaction,
                       .journalctl = config.journalctl,
                       .limits = {.memory_bytes = config.check_memory_bytes,
                                  .cpu_s = config.check_s,
                                  .time_ms = config.check_s * 1000}});
  upload_.SetOptions({.clew = config.clew,
                      .config = config.upload_config,
                      .time_ms = config.upload_s * 1000});
  pipeline_.SetUpload(config.upload ? &upload_ : nullptr,
                      config.upload_retry_s * 1000);
  reporter_.SetOptions(
      {.arguments = {config.clew, "daemon", "report", "--root",
                     parts_.paths.root + "/", "--client-config",
                     config.upload_config},
       .period_ms = config.upload ? config.report_s * 1000 : 0});
}

Status Daemon::Reload() {
  const auto config = ReadCheckedConfig(parts_.paths.config);
  if (!config) {
    Note("reload-refused", config.error());
    return std::unexpected(config.error());
  }
  const bool same = SameSource(*config, config_);
  Apply(*config);
  parts_.log.Write(Priority::kInfo, "reloaded",
                   {{"ring", same ? "kept" : "new"}});
  if (!same) {
    reopen_source_ = saver_.busy();
    if (!reopen_source_) {
      OpenTheSource();
    }
  }
  pipeline_.Kick();
  ShowState();
  return {};
}

void Daemon::OpenTheSource() {
  parts_.loop.Cancel(std::exchange(source_timer_, 0));
  for_one_save_ = false;
  source_.reset();  // first: two sessions would lock twice the memory
  source_error_.clear();
  if (config_.source != SourceKind::kNone) {
    auto source = parts_.open_source(config_);
    if (source) {
      source_ = std::move(*source);
      parts_.log.Over("source-failed", "");
      parts_.log.Write(Priority::kInfo, "recording",
                       {{"source", std::string(ToString(config_.source))}});
    } else {
      source_error_ = source.error().message;
      last_error_ = {parts_.clock.WallNs(), source_error_};
      parts_.log.Once(Priority::kError, "source-failed", "",
                      {{"why", source_error_}});
      source_timer_ = parts_.loop.After(config_.source_retry_s * 1000,
                                        [this] { OpenTheSource(); });
    }
  }
  ShowState();
}

// With source = none nothing is recorded, but a core dump is worth a bundle:
// the sideband, opened for as long as the save takes, brings its mappings, and
// so the images without which nobody reads it.
Status Daemon::OpenForOneSave() {
  Config config = config_;
  config.source = SourceKind::kSideband;
  auto source = parts_.open_source(config);
  if (!source) {
    return std::unexpected(source.error());
  }
  source_ = std::move(*source);
  for_one_save_ = true;
  return {};
}

void Daemon::CloseAfterOneSave() {
  if (for_one_save_ && !saver_.busy()) {
    for_one_save_ = false;
    source_.reset();
  }
}

void Daemon::Tend() {
  tend_timer_ = parts_.loop.After(kTendMs, [this] { Tend(); });
  TendIncoming();
  // Also what an inotify queue that ran over did not tell.
  pipeline_.Kick();
  if (source_ != nullptr && !saver_.busy()) {
    if (const Status tended = source_->Tend(); !tended) {
      Note("source-failed", tended.error());
      OpenTheSource();
    }
  }
  ShowState();
}

void Daemon::TendIncoming() {
  if (const Status cleaned = spool_.RemoveDeadWriters(); !cleaned) {
    Note("spool-failed", cleaned.error());
  }
  (void)spool_.SweepTrash();
  if (spool_.IsIncomingTooLarge()) {
    Note("incoming-too-large",
         {ErrorCode::kLimit,
          fmt::format("{:?} has more than {} entries: some are not looked at "
                      "until others are removed",
                      spool_.Folder(Stage::kIncoming), Spool::kWalkMax)});
  }
  if (const auto gone = spool_.EnforceQuota(config_.incoming_user_bytes);
      !gone) {
    Note("spool-failed", gone.error());
  } else if (!gone->empty()) {
    counters_.over_quota += gone->size();
    parts_.log.Write(Priority::kWarning, "over-quota",
                     {{"count", fmt::format("{}", gone->size())},
                      {"oldest", gone->front()}});
  }
  if (const auto junk = spool_.RemoveOldJunk(parts_.clock.WallNs()); !junk) {
    Note("spool-failed", junk.error());
  } else if (*junk > 0) {
    counters_.junk += *junk;
    parts_.log.Write(Priority::kInfo, "junk-removed",
                     {{"count", fmt::format("{}", *junk)}});
  }
}

void Daemon::LookAtUnits() {
  unit_timer_ =
      parts_.loop.After(config_.unit_poll_s * 1000, [this] { LookAtUnits(); });
  for (const UnitEvent& event : units_.Look(parts_.clock.MonotonicMs())) {
    const Noticed noticed{.kind = event.kind,
                          .process = event.process,
                          .unit = event.unit,
                          .failure = event.failure,
                          .core = false};
    if (const auto begun = Begin(noticed); !begun) {
      parts_.log.Once(Priority::kWarning, "not-saved", event.unit,
                      {{"unit", event.unit}, {"why", begun.error().message}});
    }
  }
  TellUnitErrors();
}

// Of the manager, or else of each unit; once while it lasts.
void Daemon::TellUnitErrors() {
  if (units_.error().empty()) {
    parts_.log.Over("units-not-watched", "");
  } else {
    last_error_ = {parts_.clock.WallNs(), units_.error()};
    parts_.log.Once(Priority::kError, "units-not-watched", "",
                    {{"why", units_.error()}});
    return;
  }
  for (const UnitReport& report : units_.Report(parts_.clock.MonotonicMs())) {
    if (report.error.empty()) {
      parts_.log.Over("unit-not-watched", report.watched.name);
      continue;
    }
    last_error_ = {parts_.clock.WallNs(), report.error};
    parts_.log.Once(Priority::kWarning, "unit-not-watched", report.watched.name,
                    {{"unit", report.watched.name}, {"why", report.error}});
  }
}

void Daemon::ShowState() {
  const DaemonStatus now = status();
  std::string line =
      fmt::format("STATUS={}, {} bundles waiting, {} recorded", now.state,
                  now.spool.at(Stage::kReady).bundles, now.counters.saved);
  if (!now.source_error.empty()) {
    line += "; " + now.source_error;
  }
  Notify(line);
}

void Daemon::Note(std::string_view event, const Error& error) {
  last_error_ = {parts_.clock.WallNs(), error.message};
  parts_.log.Once(Priority::kError, event, error.message,
                  {{"why", error.message}});
}

// No error of this host's: bundles that cannot be sent tell of those.
void Daemon::Reported(const std::string& why) {
  if (why.empty()) {
    parts_.log.Over("report-failed", "");
    return;
  }
  parts_.log.Once(Priority::kInfo, "report-failed", "", {{"why", why}});
}

void Daemon::Stop() {
  stopping_ = true;
  Notify("STOPPING=1");
  if (!saver_.busy()) {
    parts_.loop.Stop();
    return;
  }
  parts_.loop.After(kStopMs, [this] { parts_.loop.Stop(); });
}

DaemonStatus Daemon::status() const {
  DaemonStatus status;
  status.state = source_ == nullptr ? "off"
                 : saver_.busy()    ? "saving"
                                    : "recording";
  status.version = CLEW_VERSION;
  status.uptime_s = (parts_.clock.MonotonicNs() - started_ns_) / 1'000'000'000;
  status.source_kind = ToString(config_.source);
  status.source_error = source_error_;
  if (source_ != nullptr && !saver_.busy()) {
    status.source = source_->status();
  }
  status.times = times_;
  for (const Stage stage : kStages) {
    status.spool[stage] = spool_.Use(stage);
  }
  for (const std::string& name : spool_.List(Stage::kStuck)) {
    status.stuck.emplace_back(name, spool_.WhyAside(name, Stage::kStuck));
  }
  status.junk = spool_.Junk();
  status.units_error = units_.error();
  status.writing = spool_.Writing();
  status.spool_bytes = spool_.UsedBytes();
  status.spool_bytes_max = config_.spool_bytes;
  status.disk_free_bytes = spool_.FreeBytes();
  status.upload = config_.upload;
  status.preparing = pipeline_.preparing();
  status.uploading = pipeline_.uploading();
  status.retry_in_ms = pipeline_.retry_in_ms();
  status.clients_refused = control_ == nullptr ? 0 : control_->refused();
  status.counters = counters_;
  status.last_error = last_error_;
  return status;
}

// --- Requests ---

Answer Daemon::OnRequest(ConnectionId connection, const Peer& peer,
                         const Request& request) {
  Answer answer;
  if (std::holds_alternative<StatusRequest>(request)) {
    answer.line = FormatStatus(status());
  } else if (std::holds_alternative<UnitsRequest>(request)) {
    answer.line = FormatUnits(units_.Report(parts_.clock.MonotonicMs()),
                              spool_.Writing());
  } else if (std::holds_alternative<ReloadRequest>(request)) {
    const Status reloaded = Reload();
    answer.line = reloaded ? OkReply() : ErrorReply(reloaded.error());
  } else if (const auto* snapshot = std::get_if<SnapshotRequest>(&request)) {
    auto reply = Snapshot(*snapshot);
    answer.line = reply ? *reply : ErrorReply(reply.error());
  } else if (const auto* retry = std::get_if<RetryRequest>(&request)) {
    const auto count = pipeline_.BringBack(retry->bundle);
    answer.line =
        count ? OkReply("bundles", *count) : ErrorReply(count.error());
  } else if (const auto* core = std::get_if<CoreRequest>(&request)) {
    answer = Handle(peer, connection, *core);
  } else if (const auto* done = std::get_if<CoreDoneRequest>(&request)) {
    EndCoreCopy(connection, done->whole);
    answer.line = OkReply();
  }
  return answer;
}

void Daemon::OnClosed(ConnectionId connection) {
  late_answers_.Forget(connection);
  EndCoreCopy(connection, false);
}

void Daemon::EndCoreCopy(ConnectionId connection, bool whole) {
  const auto copy = core_copies_.find(connection);
  if (copy != core_copies_.end()) {
    saver_.CoreEnded(copy->second, whole);
    core_copies_.erase(copy);
  }
}

Answer Daemon::Handle(const Peer& peer, ConnectionId connection,
                      const CoreRequest& request) {
  Answer answer;
  if (peer.user != 0 && peer.user != geteuid()) {
    answer.line = ErrorReply({ErrorCode::kUnsupported,
                              "core dumps are taken from the kernel's handler "
                              "alone, which is root"});
    return answer;
  }
  Noticed noticed{.kind = TriggerKind::kCore,
                  .process = request.process,
                  .unit = "",
                  .failure = {},
                  .core = true};
  noticed.failure.kind = FailureKind::kSignal;
  noticed.failure.signal = request.signal;
  noticed.failure.thread = Tid(request.thread);
  auto begun = Begin(noticed);
  if (!begun) {
    CloseAfterOneSave();
    parts_.log.Once(
        Priority::kWarning, "not-saved", request.comm,
        {{"program", request.comm}, {"why", begun.error().message}});
    answer.line = ErrorReply(begun.error());
    return answer;
  }
  core_copies_[connection] = begun->id;
  answer.line = OkReply("bytes_max", begun->core_bytes_max);
  answer.descriptor = std::move(begun->core);
  answer.hold = true;
  if (!begun->witnessed.is_open()) {
    return answer;
  }
  // The process is there until the handler has its answer.
  late_answers_.Add(connection, std::move(begun->witnessed), std::move(answer));
  return {};
}

Result<std::string> Daemon::Snapshot(const SnapshotRequest& request) {
  const auto writing = spool_.Writing();
  const auto recorded =
      std::ranges::find_if(writing, [&](const std::string& name) {
        const auto parsed = ParseName(name);
        return parsed &&
               (request.unit.empty() ? parsed->process == request.process
                                     : parsed->subject == request.unit);
      });
  if (recorded != writing.end()) {
    return EndSoftwareUnit(*recorded, request.end);
  }
  if (request.process != 0 && !LookAt(parts_.proc, request.process).exists) {
    return InvalidArgument("there is no process {}", request.process);
  }
  parts_.log.Write(Priority::kInfo, "snapshot",
                   {{"unit", request.unit},
                    {"process", fmt::format("{}", request.process)},
                    {"reason", request.reason}});
  CLEW_ASSIGN_OR_RETURN(begun, Begin({.kind = TriggerKind::kRequest,
                                      .process = request.process,
                                      .unit = request.unit,
                                      .failure = {},
                                      .core = false}));
  return OkReply("bundle", begun.name);
}

Result<std::string> Daemon::EndSoftwareUnit(const std::string& partial,
                                            bool end) {
  const BundleName name = ParseName(partial).value_or(BundleName());
  if (!end) {
    return Unsupported(
        "{} is recorded in software, which can only be ended: --end makes it "
        "abort and saves that; systemd starts it again if its Restart= says so",
        name.subject);
  }
  // Written at the program's first instruction; before that nobody would turn
  // the signal into a bundle.
  const std::string begun =
      spool_.Path(Stage::kIncoming, partial) + "/start.pb";
  if (access(begun.c_str(), F_OK) != 0) {
    return LimitReached("the program of {} is being started; try again",
                        name.subject);
  }
  // Whoever writes to incoming/ may name any process.
  if (spool_.OwnerOf(Stage::kIncoming, partial) !=
      LookAt(parts_.proc, name.process).user) {
    return InvalidArgument("process {} is not of the user who records {}",
                           name.process, partial);
  }
  const auto programs = ChildrenNamed(parts_.proc, name.process, kQemuName);
  if (programs.size() != 1) {
    return InvalidArgument("process {} of {} runs {} recorded programs, not 1",
                           name.process, name.subject, programs.size());
  }
  if (kill(programs.front(), SIGABRT) != 0) {
    return SystemError(errno,
                       fmt::format("cannot end process {}", programs.front()));
  }
  pipeline_.ExpectRequested(name.process);
  parts_.log.Write(Priority::kInfo, "ended", {{"unit", name.subject}});
  return OkReply("bundle", partial.substr(0, partial.rfind(".partial")));
}

}  // namespace clew::daemon
