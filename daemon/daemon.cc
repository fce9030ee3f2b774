#include "daemon/daemon.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <utility>
#include <variant>

#include "daemon/config/rules.h"
#include "daemon/loop/notify.h"

namespace clew::daemon {
namespace {

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

// Logs no error: if there is one, bundles that cannot be sent show it. `why` is
// empty if the report was sent.
void LogReport(Log& log, const std::string& why) {
  if (why.empty()) {
    log.Over("report-failed", "");
    return;
  }
  log.Once(Priority::kInfo, "report-failed", "", {{"why", why}});
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
      incidents_(parts_.log, parts_.clock, last_error_),
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
          [this](const std::string& why) { LogReport(parts_.log, why); }),
      incoming_({parts_.loop, parts_.clock, spool_, parts_.log, counters_,
                 incidents_},
                config_),
      software_units_(spool_, pipeline_, parts_.log, parts_.proc),
      source_({parts_.loop, parts_.log, incidents_, parts_.open_source},
              config_, [this] { ShowState(); }),
      started_ns_(parts_.clock.MonotonicNs()),
      late_answers_(parts_.loop,
                    [this](ConnectionId connection, Answer answer) {
                      control_->Send(connection, std::move(answer));
                    }),
      triggers_({parts_.loop, parts_.clock, spool_, admission_, pipeline_,
                 source_, parts_.log, counters_, incidents_, parts_.proc},
                config_, [this] { SaveEnded(); }),
      units_({parts_.loop, parts_.clock, parts_.log, incidents_, triggers_},
             config_, parts_.units, parts_.paths.cgroup) {}

Daemon::~Daemon() { parts_.loop.Cancel(period_timer_); }

Status Daemon::Open() {
  CLEW_RETURN_IF_ERROR(incoming_.Watch([this] { pipeline_.LookForWork(); }));
  CLEW_ASSIGN_OR_RETURN(
      control,
      ControlServer::Open(parts_.loop, *this, {.path = parts_.paths.socket}));
  control_ = std::move(control);
  Apply(config_);
  source_.Open();
  pipeline_.LookForWork();
  RunPeriodicWork();
  units_.Poll();
  return {};
}

void Daemon::Apply(const Config& config) {
  config_ = config;
  for (const std::string& warning : config.warnings) {
    parts_.log.Write(Priority::kWarning, "config", {{"why", warning}});
    incidents_.SetLast(warning);
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
    incidents_.Add("reload-refused", config.error());
    return std::unexpected(config.error());
  }
  const bool same = SameSource(*config, config_);
  Apply(*config);
  parts_.log.Write(Priority::kInfo, "reloaded",
                   {{"ring", same ? "kept" : "new"}});
  if (!same) {
    source_.Reopen(triggers_.is_saving());
  }
  pipeline_.LookForWork();
  ShowState();
  return {};
}

void Daemon::RunPeriodicWork() {
  period_timer_ = parts_.loop.After(kPeriodMs, [this] { RunPeriodicWork(); });
  incoming_.CleanUp();
  // Also what an inotify queue that ran over did not tell.
  pipeline_.LookForWork();
  if (!triggers_.is_saving()) {
    source_.RunPeriodicWork();
  }
  ShowState();
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

void Daemon::SaveEnded() {
  if (stopping_ && !triggers_.is_saving()) {
    parts_.loop.Stop();
    return;
  }
  pipeline_.LookForWork();
  ShowState();
}

void Daemon::Stop() {
  stopping_ = true;
  triggers_.Stop();
  Notify("STOPPING=1");
  if (!triggers_.is_saving()) {
    parts_.loop.Stop();
    return;
  }
  parts_.loop.After(kStopMs, [this] { parts_.loop.Stop(); });
}

DaemonStatus Daemon::status() const {
  DaemonStatus status;
  const PtSource* const source = source_.source();
  const bool saving = triggers_.is_saving();
  status.state = source == nullptr ? "off" : saving ? "saving" : "recording";
  status.version = CLEW_VERSION;
  status.uptime_s = (parts_.clock.MonotonicNs() - started_ns_) / 1'000'000'000;
  status.source_kind = ToString(config_.source);
  status.source_error = source_.error();
  if (source != nullptr && !saving) {
    status.source = source->status();
  }
  status.times = triggers_.times();
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
    answer.line = FormatUnits(units_.Report(), spool_.Writing());
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
    triggers_.EndCoreCopy(connection, done->whole);
    answer.line = OkReply();
  }
  return answer;
}

void Daemon::OnClosed(ConnectionId connection) {
  late_answers_.Forget(connection);
  triggers_.EndCoreCopy(connection, false);
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
  TriggerEvent event{.kind = TriggerKind::kCore,
                     .process = request.process,
                     .unit = "",
                     .failure = {},
                     .with_core_dump = true};
  event.failure.kind = FailureKind::kSignal;
  event.failure.signal = request.signal;
  event.failure.thread = Tid(request.thread);
  auto save = triggers_.Begin(event);
  if (!save) {
    parts_.log.Once(Priority::kWarning, "not-saved", request.comm,
                    {{"program", request.comm}, {"why", save.error().message}});
    answer.line = ErrorReply(save.error());
    return answer;
  }
  triggers_.AddCoreCopy(connection, save->id);
  answer.line = OkReply("bytes_max", save->core_bytes_max);
  answer.descriptor = std::move(save->core_dump);
  answer.hold = true;
  if (!save->noted.is_open()) {
    return answer;
  }
  // The process is there until the handler has its answer.
  late_answers_.Add(connection, std::move(save->noted), std::move(answer));
  return {};
}

Result<std::string> Daemon::Snapshot(const SnapshotRequest& request) {
  if (const auto partial = software_units_.Find(request)) {
    if (!request.end) {
      return Unsupported(
          "{} is recorded in software, which can only be ended: --end makes it "
          "abort and saves that; systemd starts it again if its Restart= says "
          "so",
          ParseName(*partial).value_or(BundleName()).subject);
    }
    CLEW_ASSIGN_OR_RETURN(bundle, software_units_.End(*partial));
    return OkReply("bundle", bundle);
  }
  if (request.process != 0 &&
      !ReadProcessFacts(parts_.proc, request.process).exists) {
    return InvalidArgument("there is no process {}", request.process);
  }
  parts_.log.Write(Priority::kInfo, "snapshot",
                   {{"unit", request.unit},
                    {"process", fmt::format("{}", request.process)},
                    {"reason", request.reason}});
  CLEW_ASSIGN_OR_RETURN(save, triggers_.Begin({.kind = TriggerKind::kRequest,
                                               .process = request.process,
                                               .unit = request.unit,
                                               .failure = {},
                                               .with_core_dump = false}));
  return OkReply("bundle", save.name);
}

}  // namespace clew::daemon
