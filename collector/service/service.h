#ifndef CLEW_COLLECTOR_SERVICE_SERVICE_H_
#define CLEW_COLLECTOR_SERVICE_SERVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/catalogue/catalogue.h"
#include "collector/catalogue/host_table.h"
#include "collector/service/call_pace.h"
#include "collector/service/clients.h"
#include "collector/service/daily_usage.h"
#include "collector/store/bundle_store.h"
#include "collector/store/schedule_store.h"
#include "common/result.h"

namespace clew::pb {
class BeginReply;
class BeginRequest;
class ChangeGroupReply;
class ChangeGroupRequest;
class CheckReply;
class CheckRequest;
class CommitReply;
class CommitRequest;
class DeleteReply;
class DeleteRequest;
class GetGroupReply;
class GetGroupRequest;
class GetPart;
class GetRequest;
class HelloReply;
class HelloRequest;
class ListGroupsReply;
class ListGroupsRequest;
class ListHostsReply;
class ListHostsRequest;
class ListReply;
class ListRequest;
class PutAck;
class PutPart;
class ReportReply;
class ReportRequest;
class StatusReply;
}  // namespace clew::pb

namespace clew::collector {

// Who calls; from the certificate or the token, never from a message.
struct Caller {
  std::string host;
  bool reads_all = false;  // sees the bundles of other hosts, too
  bool engineer = false;   // may delete and check what it sees, change groups
  std::string peer{};      // its address, for the journal
};

// Who did what to what.
struct AuditEvent {
  // Of a bundle "committed", "fetched", "deleted", "checked"; of a group
  // "resolved", "reopened", "noted".
  std::string_view what;
  const Caller& caller;
  std::string_view of;  // "bundle", "group"
  std::string id;
  std::string version{};  // in which a group was resolved; empty: none
};

// What was done since the start. For /metrics.
struct ServiceCounts {
  std::atomic<uint64_t> begins = 0;
  std::atomic<uint64_t> commits = 0;  // that made a bundle
  std::atomic<uint64_t> chunks = 0;   // acknowledged
  std::atomic<uint64_t> bytes_received = 0;
  std::atomic<uint64_t> bytes_sent = 0;
  std::atomic<uint64_t> refusals = 0;
};

// The handlers of proto/collector.proto, without the network. Thread-safe; a
// session is one thread's. An Error of kSystem is of the moment, and the client
// tries again; all others are refusals, and their messages say what to do.
class Service {
 public:
  struct Options {
    ClientLimits clients;
    FileListLimits lists;
    uint64_t part_bytes_max = uint64_t{1} << 20;
    uint32_t list_rows_max = 1000;
    // Bytes of the disk that stay free, and how many are free now.
    uint64_t disk_free_bytes_min = 0;
    std::function<uint64_t()> disk_free_bytes;
    std::string program = "clew-collector";  // and version
    std::function<int64_t()> wall_s;         // since 1970
    std::function<uint64_t()> steady_s;      // never goes back
    std::function<void()> committed;         // a bundle is in the catalogue
    HostTable* hosts = nullptr;  // nullptr: reports of hosts are not kept
    std::function<void(const AuditEvent& event)> audit;
  };

  // All must outlive the service.
  Service(const Options& options, BundleStore& store, Catalogue& catalogue,
          ScheduleStore& schedules, DailyUsage& usage);

  [[nodiscard]] Result<pb::HelloReply> Hello(const Caller& caller,
                                             const pb::HelloRequest& request);
  // `version` is of a call's metadata; nullopt: it says none.
  [[nodiscard]] Status CheckProtocol(std::optional<std::string> version) const;
  // Reads what it says need not be sent, as ChunkStore::Verify does.
  [[nodiscard]] Result<pb::BeginReply> Begin(const Caller& caller,
                                             const pb::BeginRequest& request);
  [[nodiscard]] Result<pb::CommitReply> Commit(
      const Caller& caller, const pb::CommitRequest& request);
  [[nodiscard]] Result<pb::ListReply> List(const Caller& caller,
                                           const pb::ListRequest& request);
  [[nodiscard]] Result<pb::StatusReply> GetStatus();
  [[nodiscard]] Result<pb::DeleteReply> Delete(
      const Caller& caller, const pb::DeleteRequest& request);
  [[nodiscard]] Result<pb::CheckReply> Check(const Caller& caller,
                                             const pb::CheckRequest& request);

  // collector/service/service_groups.cc.
  [[nodiscard]] Result<pb::ListGroupsReply> ListGroups(
      const Caller& caller, const pb::ListGroupsRequest& request);
  [[nodiscard]] Result<pb::GetGroupReply> GetGroup(
      const Caller& caller, const pb::GetGroupRequest& request);
  [[nodiscard]] Result<pb::ChangeGroupReply> ChangeGroup(
      const Caller& caller, const pb::ChangeGroupRequest& request);

  // collector/service/service_hosts.cc.
  [[nodiscard]] Result<pb::ReportReply> Report(
      const Caller& caller, const pb::ReportRequest& request);
  [[nodiscard]] Result<pb::ListHostsReply> ListHosts(
      const Caller& caller, const pb::ListHostsRequest& request);

  // One Put call. What was received of a chunk when it ends is kept for the
  // next call of that host.
  class PutSession {
   public:
    PutSession(Service& service, Caller caller)
        : service_(service), caller_(std::move(caller)) {}
    PutSession(const PutSession&) = delete;
    PutSession& operator=(const PutSession&) = delete;
    ~PutSession();

    // The acknowledgement, where `part` made its chunk whole.
    [[nodiscard]] Result<std::optional<pb::PutAck>> Put(
        const pb::PutPart& part);

   private:
    // Makes `chunk` the current one; nullptr: it is stored already.
    [[nodiscard]] Result<ChunkUpload*> Select(const ChunkId& chunk);
    pb::PutAck Acknowledge(const ChunkId& chunk);
    [[nodiscard]] Status Take(const pb::PutPart& part, ChunkUpload& upload);
    void ParkCurrent();

    Service& service_;
    const Caller caller_;
    std::optional<ChunkUpload> current_;
    std::optional<ChunkId> acknowledged_;  // parts of it are skipped
  };

  // One Get call.
  class GetSession {
   public:
    GetSession(GetSession&& other) noexcept;
    GetSession& operator=(GetSession&&) = delete;
    ~GetSession();
    // The next message; false at the end.
    [[nodiscard]] Result<bool> Next(pb::GetPart* part);

   private:
    friend class Service;
    GetSession(Service& service, FileList list, size_t first_chunk);
    void Head(pb::GetPart* part);
    [[nodiscard]] Result<bool> NextData(pb::GetPart* part);

    Service* service_;  // nullptr: moved from
    FileList list_;
    std::vector<ChunkRef> held_;   // each once
    std::vector<ChunkRef> order_;  // as sent
    std::vector<std::byte> schedule_;
    bool head_sent_ = false;
    size_t next_chunk_ = 0;
    size_t chunk_offset_ = 0;  // in bytes_
    std::vector<std::byte> bytes_;
    size_t schedule_offset_ = 0;
  };
  [[nodiscard]] Result<GetSession> Get(const Caller& caller,
                                       const pb::GetRequest& request);

  // Forgets what clients left behind, removes expired chunks, and saves
  // what hosts have sent today. To be called every few seconds.
  [[nodiscard]] Status Housekeeping();

  // Who calls the handlers tells what came of a call.
  void CountRefusal() { ++counts_.refusals; }
  const ServiceCounts& counts() const { return counts_; }
  const Clients& clients() const { return clients_; }

 private:
  [[nodiscard]] Status CheckRoom(const Caller& caller, uint64_t bytes);
  void AddMissing(const Caller& caller, const std::vector<ChunkRef>& missing,
                  auto* reply) const;
  // REQUIRES: no chunk of it was missing.
  [[nodiscard]] Status Store(const Caller& caller, const FileList& list);
  // Makes sure that a stored bundle has a row, and one with a host.
  [[nodiscard]] Status Enter(const FileList& list, const std::string& host);
  [[nodiscard]] Result<BundleId> Find(const Caller& caller,
                                      const std::string& prefix) const;
  void Audit(std::string_view what, const Caller& caller,
             const BundleId& bundle) const {
    Audit({.what = what, .caller = caller, .of = "bundle", .id = bundle.hex()});
  }
  void Audit(const AuditEvent& event) const {
    if (options_.audit) {
      options_.audit(event);
    }
  }
  // `what` they do: "delete bundles". kUnsupported.
  [[nodiscard]] static Status MustBeEngineer(const Caller& caller,
                                             std::string_view what);
  // `what` they see: "groups". kUnsupported.
  [[nodiscard]] static Status MustReadAll(const Caller& caller,
                                          std::string_view what);
  // Rows of a page, where `asked` says how many; 0: as many as usual.
  [[nodiscard]] static Result<uint64_t> RowsOfPage(uint32_t asked,
                                                   uint32_t most);
  // The one group whose signature begins so.
  [[nodiscard]] Result<GroupRow> FindGroup(const std::string& prefix) const;
  [[nodiscard]] Result<bool> MaySee(const Caller& caller,
                                    const BundleId& id) const;

  const Options options_;
  BundleStore& store_;
  Catalogue& catalogue_;
  ScheduleStore& schedules_;
  DailyUsage& usage_;
  Clients clients_;
  CallPace reports_;
  ServiceCounts counts_;
  const uint64_t started_s_;
  std::atomic<uint64_t> expired_s_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_SERVICE_SERVICE_H_
