#include "collector/collector.h"

#include <sys/statvfs.h>
#include <time.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "collector/catalogue/catalogue.h"
#include "collector/catalogue/host_table.h"
#include "collector/clocks.h"
#include "collector/jobs/jobs.h"
#include "collector/service/auth.h"
#include "collector/service/daily_usage.h"
#include "collector/service/grpc_server.h"
#include "collector/service/intake.h"
#include "collector/service/service.h"
#include "collector/service/store_reader.h"
#include "collector/service_metrics.h"
#include "collector/socket.h"
#include "collector/start_notifier.h"
#include "collector/store/bundle_store.h"
#include "collector/store/schedule_store.h"
#include "collector/upkeep/retention.h"
#include "collector/upkeep/retention_clock.h"
#include "collector/upkeep/scrubber.h"
#include "collector/web/server.h"
#include "common/os/file.h"
#include "common/text/shell_quote.h"
#include "transfer/protocol.h"

namespace clew::collector {
namespace {

constexpr std::chrono::seconds kHousekeepingPeriod{5};
constexpr uint64_t kRetentionPeriod_s = 300;
constexpr uint64_t kWorkingPeriod_s = 5;
constexpr unsigned kGrace_s = 5;
constexpr std::chrono::seconds kFreeAgain{5};
constexpr std::chrono::milliseconds kFreeAgainPause{20};

uint64_t FreeBytes(const std::string& folder) {
  struct statvfs disk{};
  if (statvfs(folder.c_str(), &disk) != 0) {
    return 0;
  }
  return static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
}

BundleStore::Options StoreOptions(const CollectorConfig& config) {
  return {.folder = config.data,
          .budget_bytes = config.store_bytes_max,
          .keep_s = config.chunk_keep_s,
          .now_s = Steady_s,
          .limits = {.bundle_bytes_max = config.bundle_bytes_max},
          .read_later = false};
}

// Another process has the lock of the folder, or the port.
bool IsTaken(const Error& error) {
  return error.sys_errno == EWOULDBLOCK || error.sys_errno == EADDRINUSE;
}

Status CheckWeb(const std::string& web) {
  if (web.empty() || transfer::IsLoopback(web)) {
    return {};
  }
  return InvalidArgument(
      "web is {:?}: the page has neither login nor TLS, so only 127.0.0.1, "
      "[::1] or localhost may be listened on; put a proxy with a login before "
      "it and name it in web_names, or look through 'ssh -L'",
      web);
}

// What `clew get` needs to reach this collector.
std::string ClientOptionsFor(const CollectorConfig& config) {
  std::string options;
  if (!config.address.empty()) {
    options += "--collector " + ShellQuote(config.address) + " ";
  }
  if (config.insecure_loopback) {
    options += "--insecure-loopback ";
  }
  return options;
}

// What the store, the catalogue and the rest of the folder hold.
struct Storage {
  std::unique_ptr<BundleStore> store;
  std::unique_ptr<Catalogue> catalogue;
  std::unique_ptr<ScheduleStore> schedules;
};

Result<Storage> OpenStorage(const CollectorConfig& config,
                            const BundleStore::Options& options) {
  Storage storage;
  CLEW_ASSIGN_OR_RETURN(store, BundleStore::Open(PosixFileSystem(), options));
  CLEW_ASSIGN_OR_RETURN(
      catalogue,
      Catalogue::Open(config.data + "/catalogue.sqlite",
                      options.read_later ? Catalogue::Check::kSchema
                                         : Catalogue::Check::kPages));
  CLEW_ASSIGN_OR_RETURN(
      schedules,
      ScheduleStore::Open(PosixFileSystem(), config.data + "/schedules"));
  storage.store = std::move(store);
  storage.catalogue = std::move(catalogue);
  storage.schedules = std::move(schedules);
  return storage;
}

}  // namespace

// In the order of their making; each uses those above it.
struct Collector::Parts {
  Parts(const CollectorConfig& used_config, Log& used_log)
      : config(used_config), log(used_log) {}

  [[nodiscard]] Status Start(const std::function<void()>& working);
  [[nodiscard]] Status Open();
  [[nodiscard]] Status ReadWithoutCatalogue(
      const std::function<void()>& working);
  void ReadBehind();
  void StoreRead(const Result<Reconciled>& read);
  [[nodiscard]] Status StartClock();
  [[nodiscard]] Status StartService();
  [[nodiscard]] Status StartJobs();
  void StartScrubber();
  [[nodiscard]] Status StartWeb();
  [[nodiscard]] Status StartServer();
  // What a killed collector held, a child that it had just forked holds a
  // moment longer: until it is scheduled to close what is not its own.
  [[nodiscard]] Status WhenFree(const std::function<Status()>& take);
  void Audited(const AuditEvent& event);
  void Failed(const FailedCall& call);
  void KeepHouse();
  [[nodiscard]] Status Retain();

  const CollectorConfig config;
  Log& log;
  Storage storage;
  std::unique_ptr<RetentionClock> clock;
  std::unique_ptr<HostTable> hosts;
  std::unique_ptr<DailyUsage> usage;
  std::unique_ptr<Authenticator> authenticator;
  std::unique_ptr<JobRunner> jobs;
  std::unique_ptr<Notifier> notifier;  // nullptr: no webhook is configured
  std::unique_ptr<Service> service;
  std::unique_ptr<StoreReader> reader;
  std::unique_ptr<Scrubber> scrubber;
  std::unique_ptr<web::Server> web;
  std::unique_ptr<GrpcServer> server;

  std::mutex mutex;
  std::condition_variable stop_asked;
  bool stop = false;
  uint64_t retain_at_s = 0;
  std::thread housekeeper;
};

// On the first start bundles are no older than the latest of them says.
Status Collector::Parts::StartClock() {
  CLEW_ASSIGN_OR_RETURN(latest, storage.catalogue->Bundles({.limit = 1}));
  const int64_t begin_s =
      latest.rows.empty() ? Wall_s()
                          : std::min(Wall_s(), latest.rows[0].received_at_s);
  clock = std::make_unique<RetentionClock>(
      PosixFileSystem(), config.data + "/retention-clock", begin_s, Steady_s());
  return {};
}

Status Collector::Parts::StartService() {
  CLEW_ASSIGN_OR_RETURN(
      opened_usage, DailyUsage::Open(PosixFileSystem(),
                                     {.path = config.data + "/usage",
                                      .limit_bytes = config.host_bytes_per_day,
                                      .now_s = Wall_s}));
  usage = std::move(opened_usage);
  if (!usage->damage().empty()) {
    log.Write(Log::Priority::kError, "usage_damaged",
              {{"message", usage->damage()}});
  }
  CLEW_ASSIGN_OR_RETURN(
      made_authenticator,
      Authenticator::Create(
          {.client_ca_file = config.client_ca,
           .tokens_file = config.tokens,
           .denied_file = config.denied,
           .readers = {config.readers.begin(), config.readers.end()},
           .engineers = {config.engineers.begin(), config.engineers.end()},
           .trust_loopback = config.insecure_loopback}));
  authenticator = std::move(made_authenticator);
  Service::Options options;
  options.clients.bundles_in_flight_max = config.host_bundles_max;
  options.lists.bundle_bytes_max = config.bundle_bytes_max;
  options.disk_free_bytes_min = config.disk_free_bytes_min;
  options.disk_free_bytes = [this] { return FreeBytes(config.data); };
  options.program = "clew-collector " CLEW_VERSION;
  // A clock that was set back makes no bundle look old.
  options.wall_s = [this] { return std::max(Wall_s(), clock->now_s()); };
  options.steady_s = Steady_s;
  options.committed = [this] { jobs->Wake(); };
  options.hosts = hosts.get();
  options.audit = [this](const AuditEvent& event) { Audited(event); };
  service = std::make_unique<Service>(
      options, *storage.store, *storage.catalogue, *storage.schedules, *usage);
  return {};
}

Status Collector::Parts::StartJobs() {
  JobOptions options;
  options.clew = config.clew;
  options.work_folder = config.data + "/work";
  options.analysers = static_cast<unsigned>(config.analysers);
  options.solvers = static_cast<unsigned>(config.solvers);
  options.analysis_time_limit_s = static_cast<double>(config.analysis_s_max);
  options.solve_time_limit_s = static_cast<double>(config.solve_s_max);
  options.memory_bytes = config.solve_memory_bytes;
  options.work_bytes_max = config.bundle_bytes_max;
  options.report = [this](std::string_view line) {
    log.WriteOnce(Log::Priority::kWarning, "job", std::string(line),
                  {{"message", std::string(line)}});
  };
  CLEW_ASSIGN_OR_RETURN(
      started, JobRunner::Start(options, *storage.store, *storage.catalogue,
                                *storage.schedules));
  jobs = std::move(started);
  return {};
}

void Collector::Parts::StartScrubber() {
  if (config.scrub_bytes_per_s == 0) {
    return;
  }
  Scrubber::Options options;
  options.path = config.data + "/scrub";
  options.bytes_per_s = config.scrub_bytes_per_s;
  options.period_s = config.scrub_period_s;
  options.now_s = Wall_s;
  options.report = [this](std::string_view line) {
    log.WriteOnce(Log::Priority::kError, "scrub", std::string(line),
                  {{"message", std::string(line)}});
  };
  scrubber = Scrubber::Start(PosixFileSystem(), options, *storage.store);
}

Status Collector::Parts::StartWeb() {
  if (config.web.empty()) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(address, ParseAddress("web", config.web));
  web::WebOptions options;
  options.address = address.host;
  options.port = address.port;
  options.host_names = config.web_names;
  options.client_options = ClientOptionsFor(config);
  options.store_limit_bytes = config.store_bytes_max;
  options.hosts = hosts.get();
  CLEW_ASSIGN_OR_RETURN(
      started, web::Server::Start(options, *storage.store, *storage.catalogue,
                                  [this](web::MetricsWriter& writer) {
                                    AddServiceMetrics(*service, writer);
                                    if (jobs != nullptr) {
                                      AddJobMetrics(jobs->counts(), writer);
                                    }
                                    if (notifier != nullptr) {
                                      AddNotifierMetrics(notifier->counts(),
                                                         writer);
                                    }
                                  }));
  web = std::move(started);
  return {};
}

void Collector::Parts::Audited(const AuditEvent& event) {
  std::vector<Log::Field> fields = {{"host", event.caller.host},
                                    {"peer", event.caller.peer},
                                    {event.of, event.id}};
  if (!event.version.empty()) {
    fields.emplace_back("version", event.version);
  }
  log.Write(Log::Priority::kInfo, event.what, fields);
}

void Collector::Parts::Failed(const FailedCall& call) {
  if (call.refused) {
    service->CountRefusal();
  }
  const std::vector<Log::Field> fields = {{"call", call.call},
                                          {"host", call.host},
                                          {"peer", call.peer},
                                          {"message", call.message}};
  log.WriteOnce(call.refused ? Log::Priority::kWarning : Log::Priority::kInfo,
                call.refused ? "refused" : "failed",
                fmt::format("{} {} {}", call.refused, call.call, call.host),
                fields);
}

Status Collector::Parts::StartServer() {
  GrpcServer::Options options;
  options.listen = config.listen;
  options.cert_file = config.certificate;
  options.key_file = config.key;
  options.insecure_loopback = config.insecure_loopback;
  options.threads_max = config.threads_max;
  options.streams_per_host_max = config.host_streams_max;
  options.connections_max = config.connections_max;
  options.connections_per_address_max = config.address_connections_max;
  options.bytes_per_s_min = config.transfer_bytes_per_s_min;
  options.memory_bytes = config.memory_bytes_max;
  options.idle_s_max = config.idle_s_max;
  options.steady_s = Steady_s;
  options.failed = [this](const FailedCall& call) { Failed(call); };
  CLEW_ASSIGN_OR_RETURN(started,
                        GrpcServer::Start(options, *service, *authenticator));
  server = std::move(started);
  return {};
}

Status Collector::Parts::Retain() {
  if (Steady_s() < retain_at_s || !storage.store->CheckRemovable()) {
    return {};
  }
  retain_at_s = Steady_s() + kRetentionPeriod_s;
  CLEW_RETURN_IF_ERROR(clock->Advance(Wall_s(), Steady_s()));
  RetentionOptions options;
  options.keep_last_of_group = clock->IsBehind();
  if (clock->IsBehind()) {
    log.WriteOnce(Log::Priority::kWarning, "clock_jumped", "clock_jumped",
                  {{"message",
                    "the system's clock is ahead of the time that the "
                    "collector has seen pass; bundles grow old twice as fast "
                    "until that has caught up, and the last of a group stays"},
                   {"behind_s", fmt::to_string(Wall_s() - clock->now_s())}});
  }
  options.age_limit_s = config.retention_s;
  options.bytes_limit = config.retention_bytes != 0
                            ? config.retention_bytes
                            : config.store_bytes_max / 10 * 9;
  CLEW_ASSIGN_OR_RETURN(
      done, ApplyRetention(options, *storage.store, *storage.catalogue,
                           *storage.schedules, clock->now_s()));
  if (done.too_old + done.too_much > 0) {
    log.Write(Log::Priority::kInfo, "removed",
              {{"too_old", fmt::to_string(done.too_old)},
               {"for_room", fmt::to_string(done.too_much)}});
  }
  return {};
}

void Collector::Parts::KeepHouse() {
  const auto report = [&](const char* event, const Status& status) {
    if (!status) {
      log.WriteOnce(Log::Priority::kError, event, event,
                    {{"message", status.error().message}});
    }
  };
  std::unique_lock lock(mutex);
  while (
      !stop_asked.wait_for(lock, kHousekeepingPeriod, [&] { return stop; })) {
    lock.unlock();
    report("housekeeping_failed", service->Housekeeping());
    report("retention_failed", Retain());
    lock.lock();
  }
}

Status Collector::Parts::WhenFree(const std::function<Status()>& take) {
  const auto deadline = std::chrono::steady_clock::now() + kFreeAgain;
  for (bool first = true;; first = false) {
    Status taken = take();
    if (taken || !IsTaken(taken.error()) ||
        std::chrono::steady_clock::now() >= deadline) {
      return taken;
    }
    if (first) {
      log.Write(Log::Priority::kWarning, "waiting",
                {{"message", taken.error().message}});
    }
    std::this_thread::sleep_for(kFreeAgainPause);
  }
}

Status Collector::Parts::Open() {
  BundleStore::Options options = StoreOptions(config);
  options.read_later = true;
  return WhenFree([&]() -> Status {
    CLEW_ASSIGN_OR_RETURN(opened, OpenStorage(config, options));
    storage = std::move(opened);
    return {};
  });
}

// The catalogue was lost, or never was: pages have nothing to show, and the
// clock of the retention nothing to begin at.
Status Collector::Parts::ReadWithoutCatalogue(
    const std::function<void()>& working) {
  CLEW_ASSIGN_OR_RETURN(latest, storage.catalogue->Bundles({.limit = 1}));
  if (latest.total > 0) {
    return {};
  }
  uint64_t told_s = Steady_s();
  const auto go_on = [&] {
    if (Steady_s() - told_s >= kWorkingPeriod_s) {
      told_s = Steady_s();
      working();
    }
    return true;
  };
  const auto read =
      ReadStore(*storage.store, *storage.catalogue, Wall_s(), go_on);
  CLEW_RETURN_IF_ERROR(read);
  StoreRead(read);
  return {};
}

void Collector::Parts::ReadBehind() {
  if (storage.store->IsAllRead()) {
    return;
  }
  reader = std::make_unique<StoreReader>(
      StoreReader::Options{.now_s = Wall_s,
                           .report =
                               [this](const Result<Reconciled>& read) {
                                 StoreRead(read);
                                 jobs->Wake();
                               }},
      *storage.store, *storage.catalogue);
}

void Collector::Parts::StoreRead(const Result<Reconciled>& read) {
  if (!read) {
    log.WriteOnce(Log::Priority::kError, "not_read", read.error().message,
                  {{"message", read.error().message}});
    return;
  }
  log.Write(Log::Priority::kInfo, "opened",
            {{"bundles", fmt::to_string(storage.store->List().size())},
             {"bytes", fmt::to_string(storage.store->used_bytes())},
             {"rows_added", fmt::to_string(read->added)},
             {"rows_removed", fmt::to_string(read->removed)}});
  for (const auto& [name, why] : storage.store->Damaged()) {
    log.Write(Log::Priority::kError, "damaged",
              {{"list", name}, {"message", why}});
  }
}

Status Collector::Parts::Start(const std::function<void()>& working) {
  CLEW_RETURN_IF_ERROR(CheckWeb(config.web));
  CLEW_RETURN_IF_ERROR(Open());
  CLEW_RETURN_IF_ERROR(ReadWithoutCatalogue(working));
  CLEW_RETURN_IF_ERROR(StartClock());
  CLEW_RETURN_IF_ERROR(StartJobs());
  CLEW_ASSIGN_OR_RETURN(started, StartNotifier(config, log));
  notifier = std::move(started);
  CLEW_ASSIGN_OR_RETURN(table,
                        HostTable::Open(config.data + "/catalogue.sqlite"));
  hosts = std::move(table);
  CLEW_RETURN_IF_ERROR(StartService());
  StartScrubber();
  CLEW_RETURN_IF_ERROR(WhenFree([this] { return StartWeb(); }));
  CLEW_RETURN_IF_ERROR(WhenFree([this] { return StartServer(); }));
  ReadBehind();
  housekeeper = std::thread([this] { KeepHouse(); });
  return {};
}

Collector::Collector(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Collector::~Collector() { Stop(); }

Result<std::unique_ptr<Collector>> Collector::Start(
    const CollectorConfig& config, Log& log,
    const std::function<void()>& working) {
  std::unique_ptr<Collector> collector(
      new Collector(std::make_unique<Parts>(config, log)));
  CLEW_RETURN_IF_ERROR(collector->parts_->Start(working));
  return collector;
}

uint16_t Collector::port() const { return parts_->server->port(); }
uint16_t Collector::web_port() const {
  return parts_->web != nullptr ? parts_->web->port() : uint16_t{0};
}

Status Collector::Reload() {
  CLEW_RETURN_IF_ERROR(parts_->authenticator->Reload());
  return parts_->notifier == nullptr
             ? Status()
             : ReloadSecret(parts_->config, *parts_->notifier);
}

void Collector::CheckAlive() const {
  (void)parts_->service->clients().bundles_in_flight();
  (void)parts_->storage.store->used_bytes();
}

void Collector::Stop() {
  Parts& parts = *parts_;
  {
    const std::lock_guard lock(parts.mutex);
    parts.stop = true;
  }
  parts.stop_asked.notify_all();
  if (parts.housekeeper.joinable()) {
    parts.housekeeper.join();
  }
  if (parts.reader != nullptr) {
    parts.reader->Stop();
  }
  if (parts.scrubber != nullptr) {
    parts.scrubber->Stop();
  }
  if (parts.server != nullptr) {
    parts.server->Stop(kGrace_s);
  }
  if (parts.web != nullptr) {
    parts.web->Stop();
  }
  if (parts.jobs != nullptr) {
    parts.jobs->Stop();
  }
  if (parts.notifier != nullptr) {
    parts.notifier->Stop();
  }
  if (parts.usage == nullptr) {
    return;
  }
  if (const Status saved = parts.usage->Save(); !saved) {
    parts.log.Write(Log::Priority::kError, "not_saved",
                    {{"message", saved.error().message}});
  }
}

Status CheckStore(const CollectorConfig& config) {
  CLEW_ASSIGN_OR_RETURN(storage, OpenStorage(config, StoreOptions(config)));
  const StoreReport report = storage.store->Check();
  fmt::print(
      "{} bundles, {} bytes read, {} faults, {} chunks that no bundle "
      "needs\n",
      report.bundles, report.bytes_read, report.faults.size(),
      report.orphans.size());
  for (const std::string& fault : report.faults) {
    fmt::print("{}\n", fault);
  }
  if (!report.faults.empty()) {
    return CorruptInput("{:?}: {} faults", config.data, report.faults.size());
  }
  return {};
}

Status RemoveBundle(const CollectorConfig& config, const std::string& id) {
  const auto bundle = BundleId::Parse(id);
  if (!bundle) {
    return InvalidArgument(
        "{:?} is no bundle's id, wanted 64 lower-case hexadecimal digits", id);
  }
  CLEW_ASSIGN_OR_RETURN(storage, OpenStorage(config, StoreOptions(config)));
  CLEW_RETURN_IF_ERROR(storage.store->Remove(*bundle));
  CLEW_RETURN_IF_ERROR(storage.schedules->Remove(*bundle));
  return storage.catalogue->Remove(*bundle);
}

}  // namespace clew::collector
