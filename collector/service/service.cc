#include "collector/service/service.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <utility>

#include "collector/service/intake.h"
#include "common/bytes.h"
#include "proto/collector.pb.h"
#include "transfer/protocol.h"

namespace clew::collector {
namespace {

constexpr uint64_t kExpirePeriod_s = 600;
constexpr size_t kReceiptsAtOnce = 100;
constexpr uint32_t kPageRowsDefault = 50;

// The id in a message of a stranger.
template <class Id>
Result<Id> IdOf(const std::string& bytes_untrusted, std::string_view what) {
  if (bytes_untrusted.size() != Sha256::kBytes) {
    return InvalidArgument("{} has {} bytes, wanted {}", what,
                           bytes_untrusted.size(), Sha256::kBytes);
  }
  return Id(AsBytes(bytes_untrusted));
}

// A full disk will not pass by itself, so a client must not just try again.
Status NamingFullDisk(Status status) {
  if (status || status.error().code != ErrorCode::kSystem ||
      (status.error().sys_errno != ENOSPC &&
       status.error().sys_errno != EDQUOT)) {
    return status;
  }
  return LimitReached(
      "the collector's disk is full ({}); its operator must make room, for "
      "example with 'clew-collector remove', or shorten the retention",
      status.error().message);
}

void FillRow(const BundleRow& row, pb::StoredBundle* out) {
  out->set_id(ToText(row.id.bytes()));
  out->set_host(row.host);
  out->set_unit(row.unit);
  out->set_command(row.command);
  out->set_source(row.source);
  out->set_failure(row.failure);
  out->set_recorded_at_s(row.recorded_at_s);
  out->set_received_at_s(row.received_at_s);
  out->set_size_bytes(row.size_bytes);
  if (row.sufficiency) {
    out->set_sufficiency(*row.sufficiency);
  }
  out->set_state(std::string(ToString(row.state)));
  out->set_signature(row.signature);
  out->set_grade(row.grade);
  out->set_why(row.why);
}

}  // namespace

Service::Service(const Options& options, BundleStore& store,
                 Catalogue& catalogue, ScheduleStore& schedules,
                 DailyUsage& usage)
    : options_(options),
      store_(store),
      catalogue_(catalogue),
      schedules_(schedules),
      usage_(usage),
      clients_(options.clients, options.steady_s),
      started_s_(options.steady_s()),
      expired_s_(started_s_) {}

Result<pb::HelloReply> Service::Hello(const Caller& caller,
                                      const pb::HelloRequest& request) {
  if (request.protocol_max() < transfer::kProtocol) {
    return Unsupported(
        "{:?} speaks protocol {} to {}, this collector ({}) speaks {}; install "
        "a newer clew on this host",
        request.client(), request.protocol_min(), request.protocol_max(),
        options_.program, transfer::kProtocol);
  }
  if (request.protocol_min() > transfer::kProtocol) {
    return Unsupported(
        "{:?} speaks protocol {} to {}, this collector ({}) speaks {}; install "
        "a newer clew-collector",
        request.client(), request.protocol_min(), request.protocol_max(),
        options_.program, transfer::kProtocol);
  }
  pb::HelloReply reply;
  reply.set_protocol(transfer::kProtocol);
  reply.set_collector(options_.program);
  reply.set_host(caller.host);
  reply.set_part_bytes_max(options_.part_bytes_max);
  reply.set_bundle_bytes_max(options_.lists.bundle_bytes_max);
  reply.set_bytes_left_today(usage_.LeftToday(caller.host));
  return reply;
}

Status Service::CheckProtocol(std::optional<std::string> version) const {
  if (version == fmt::to_string(transfer::kProtocol)) {
    return {};
  }
  return Unsupported(
      "the call is of protocol {}, this collector ({}) speaks {}; install the "
      "same version of clew on both",
      version ? fmt::format("{:?}", *version) : "?", options_.program,
      transfer::kProtocol);
}

Status Service::CheckRoom(const Caller& caller, uint64_t bytes) {
  CLEW_RETURN_IF_ERROR(usage_.Check(caller.host, bytes));
  const uint64_t free = options_.disk_free_bytes();
  if (free < options_.disk_free_bytes_min ||
      bytes > free - options_.disk_free_bytes_min) {
    return LimitReached(
        "the collector's disk is full: {} bytes are free, {} must stay free, "
        "and the bundle needs {}; its operator must make room, for example "
        "with 'clew-collector remove', or shorten the retention",
        free, options_.disk_free_bytes_min, bytes);
  }
  const uint64_t used = store_.used_bytes();
  const uint64_t limit = store_.limit_bytes();
  if (used > limit || bytes > limit - used) {
    return LimitReached(
        "the collector's store is full: {} of {} bytes are used, the bundle "
        "needs {}; its operator must make room, for example with "
        "'clew-collector remove', or raise store_bytes_max",
        used, limit, bytes);
  }
  return {};
}

void Service::AddMissing(const Caller& caller,
                         const std::vector<ChunkRef>& missing,
                         auto* reply) const {
  for (const ChunkRef& chunk : missing) {
    pb::MissingChunk* out = reply->add_missing();
    out->set_chunk(ToText(chunk.id.bytes()));
    out->set_received_bytes(clients_.ParkedBytes(caller.host, chunk.id));
  }
}

Result<pb::BeginReply> Service::Begin(const Caller& caller,
                                      const pb::BeginRequest& request) {
  ++counts_.begins;
  CLEW_ASSIGN_OR_RETURN(
      list, FileList::Parse(AsBytes(request.files()), options_.lists));
  store_.chunks().Verify(list.Chunks());
  pb::BeginReply reply;
  reply.set_bundle(ToText(list.id().bytes()));
  if (store_.IsWhole(list.id())) {
    CLEW_RETURN_IF_ERROR(Enter(list, caller.host));
    reply.set_stored(true);
    return reply;
  }
  const std::vector<ChunkRef> missing = store_.chunks().Missing(list.Chunks());
  uint64_t bytes = 0;
  for (const ChunkRef& chunk : missing) {
    bytes += chunk.size_bytes;
  }
  CLEW_RETURN_IF_ERROR(CheckRoom(caller, bytes));
  CLEW_RETURN_IF_ERROR(clients_.Begin(caller.host, list));
  AddMissing(caller, missing, &reply);
  return reply;
}

Status Service::Enter(const FileList& list, const std::string& host) {
  CLEW_ASSIGN_OR_RETURN(row, catalogue_.Bundle(list.id()));
  if (row && row->host != kHostNotKnown) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(
      bundle, Describe(store_.chunks(), list, host, options_.wall_s()));
  if (row) {
    CLEW_RETURN_IF_ERROR(catalogue_.Remove(list.id()));
  }
  CLEW_RETURN_IF_ERROR(catalogue_.Add(bundle));
  ++counts_.commits;
  if (options_.committed) {
    options_.committed();
  }
  return {};
}

Result<pb::CommitReply> Service::Commit(const Caller& caller,
                                        const pb::CommitRequest& request) {
  CLEW_ASSIGN_OR_RETURN(id, IdOf<BundleId>(request.bundle(), "bundle"));
  const auto list = clients_.ListInFlight(caller.host, id);
  if (!list) {
    return TryLater(
        "bundle {} was not begun, or nobody sent a chunk of it for long; begin "
        "again",
        id.hex());
  }
  pb::CommitReply reply;
  const auto missing = store_.chunks().Missing(list->Chunks());
  if (!missing.empty()) {
    AddMissing(caller, missing, &reply);
    return reply;
  }
  if (Status stored = Store(caller, *list); !stored) {
    // Of a chunk that was found damaged since.
    const auto lost = store_.chunks().Missing(list->Chunks());
    if (lost.empty()) {
      return std::unexpected(stored.error());
    }
    AddMissing(caller, lost, &reply);
    return reply;
  }
  clients_.Forget(caller.host, id);
  Audit("committed", caller, id);
  return reply;
}

Status Service::Store(const Caller& caller, const FileList& list) {
  // Before it is stored: what has no manifest never becomes a bundle.
  CLEW_RETURN_IF_ERROR(
      Describe(store_.chunks(), list, caller.host, options_.wall_s()));
  // Of a list that is written again, whoever sent it first stays its owner.
  CLEW_ASSIGN_OR_RETURN(row, catalogue_.Bundle(list.id()));
  const bool is_known = row && row->host != kHostNotKnown;
  const Receipt receipt{
      .host = is_known ? row->host : caller.host,
      .received_at_s = is_known ? row->received_at_s : options_.wall_s()};
  CLEW_RETURN_IF_ERROR(NamingFullDisk(store_.Commit(list, receipt)));
  return Enter(list, caller.host);
}

Result<uint64_t> Service::RowsOfPage(uint32_t asked, uint32_t most) {
  if (asked > most) {
    return InvalidArgument("limit is {}, at most {} rows are listed at once",
                           asked, most);
  }
  return asked == 0 ? kPageRowsDefault : asked;
}

Status Service::MustReadAll(const Caller& caller, std::string_view what) {
  if (caller.reads_all) {
    return {};
  }
  return Unsupported(
      "host {:?} may not see {}, which are of all hosts; name it in 'readers' "
      "of the collector's configuration",
      caller.host, what);
}

Result<pb::ListReply> Service::List(const Caller& caller,
                                    const pb::ListRequest& request) {
  CLEW_ASSIGN_OR_RETURN(limit,
                        RowsOfPage(request.limit(), options_.list_rows_max));
  if (!caller.reads_all && !request.host().empty() &&
      request.host() != caller.host) {
    return Unsupported(
        "host {:?} may only see its own bundles, not those of {:?}; name it in "
        "'readers' of the collector's configuration",
        caller.host, request.host());
  }
  CLEW_ASSIGN_OR_RETURN(
      page,
      catalogue_.Bundles({.offset = request.offset(),
                          .limit = limit,
                          .signature = request.signature(),
                          .filter = {.host = caller.reads_all ? request.host()
                                                              : caller.host}}));
  pb::ListReply reply;
  for (const BundleRow& row : page.rows) {
    pb::StoredBundle* out = reply.add_bundles();
    FillRow(row, out);
    out->set_damaged(store_.IsDamaged(row.id));
  }
  reply.set_total(page.total);
  return reply;
}

Result<pb::StatusReply> Service::GetStatus() {
  CLEW_ASSIGN_OR_RETURN(counts, catalogue_.Counts());
  pb::StatusReply reply;
  reply.set_collector(options_.program);
  reply.set_uptime_s(options_.steady_s() - started_s_);
  reply.set_bundles(counts.bundles);
  reply.set_groups(counts.groups);
  reply.set_hosts(counts.hosts);
  reply.set_bundle_bytes(counts.bytes);
  reply.set_disk_bytes(store_.used_bytes());
  reply.set_disk_bytes_max(store_.limit_bytes());
  return reply;
}

Status Service::Housekeeping() {
  clients_.Expire();
  CLEW_RETURN_IF_ERROR(usage_.Save());
  CLEW_RETURN_IF_ERROR(AddReceipts(store_, catalogue_, kReceiptsAtOnce));
  const uint64_t now_s = options_.steady_s();
  if (now_s - expired_s_ >= kExpirePeriod_s) {
    expired_s_ = now_s;
    CLEW_RETURN_IF_ERROR(store_.Expire());
  }
  return {};
}

Service::PutSession::~PutSession() { ParkCurrent(); }

void Service::PutSession::ParkCurrent() {
  if (current_ && current_->received_bytes() > 0) {
    service_.clients_.Park(caller_.host, *std::move(current_));
  }
  current_.reset();
}

Result<ChunkUpload*> Service::PutSession::Select(const ChunkId& chunk) {
  if (current_ && current_->chunk().id == chunk) {
    return &*current_;
  }
  ParkCurrent();
  acknowledged_.reset();
  const auto wanted = service_.clients_.Wanted(caller_.host, chunk);
  if (!wanted) {
    return TryLater(
        "chunk {} is of no bundle that this host has begun; begin again",
        chunk.hex());
  }
  if (service_.store_.chunks().Missing(std::span(&*wanted, 1)).empty()) {
    return nullptr;
  }
  if (auto parked = service_.clients_.TakeParked(caller_.host, chunk)) {
    return &current_.emplace(*std::move(parked));
  }
  CLEW_ASSIGN_OR_RETURN(upload, service_.store_.chunks().Begin(*wanted));
  return &current_.emplace(std::move(upload));
}

pb::PutAck Service::PutSession::Acknowledge(const ChunkId& chunk) {
  current_.reset();
  acknowledged_ = chunk;
  ++service_.counts_.chunks;
  pb::PutAck ack;
  ack.set_chunk(ToText(chunk.bytes()));
  return ack;
}

Status Service::PutSession::Take(const pb::PutPart& part, ChunkUpload& upload) {
  const uint64_t before = upload.received_bytes();
  const uint64_t end = part.offset() + part.data().size();
  if (end > before) {
    CLEW_RETURN_IF_ERROR(
        service_.usage_.Check(caller_.host, std::min(end - before, end)));
  }
  CLEW_RETURN_IF_ERROR(
      NamingFullDisk(upload.Put(part.offset(), AsBytes(part.data()))));
  const uint64_t fresh = upload.received_bytes() - before;
  service_.usage_.Add(caller_.host, fresh);
  service_.counts_.bytes_received += fresh;
  return {};
}

Result<std::optional<pb::PutAck>> Service::PutSession::Put(
    const pb::PutPart& part) {
  CLEW_ASSIGN_OR_RETURN(chunk, IdOf<ChunkId>(part.chunk(), "chunk"));
  if (part.data().empty() ||
      part.data().size() > service_.options_.part_bytes_max ||
      part.offset() > kChunkBytes) {
    return InvalidArgument(
        "part of {} bytes at offset {}, wanted 1..{} bytes at 0..{}",
        part.data().size(), part.offset(), service_.options_.part_bytes_max,
        kChunkBytes);
  }
  if (acknowledged_ == chunk) {
    return std::nullopt;
  }
  CLEW_ASSIGN_OR_RETURN(upload, Select(chunk));
  if (upload == nullptr) {
    return Acknowledge(chunk);
  }
  CLEW_RETURN_IF_ERROR(Take(part, *upload));
  if (upload->received_bytes() < upload->chunk().size_bytes) {
    return std::nullopt;
  }
  CLEW_RETURN_IF_ERROR(NamingFullDisk(upload->Finish()));
  return Acknowledge(chunk);
}

}  // namespace clew::collector
