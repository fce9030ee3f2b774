#include "transfer/client.h"

#include <utility>

#include "transfer/client_connection.h"

namespace clew::transfer {
namespace {

// A row, or what is wrong with it.
Result<RemoteBundle> ToRow(const pb::StoredBundle& from) {
  if (from.id().size() != Sha256::kBytes) {
    return CorruptInput("the collector's list has an id of {} bytes, wanted {}",
                        from.id().size(), Sha256::kBytes);
  }
  return RemoteBundle{.id = BundleId(ToSpan(from.id())),
                      .host = from.host(),
                      .unit = from.unit(),
                      .command = from.command(),
                      .source = from.source(),
                      .failure = from.failure(),
                      .recorded_at_s = from.recorded_at_s(),
                      .received_at_s = from.received_at_s(),
                      .size_bytes = from.size_bytes(),
                      .sufficiency = from.has_sufficiency()
                                         ? std::optional(from.sufficiency())
                                         : std::nullopt,
                      .state = from.state(),
                      .damaged = from.damaged(),
                      .signature = from.signature(),
                      .grade = from.grade(),
                      .why = from.why()};
}

pb::ReportRequest RequestOf(const HostReport& report) {
  pb::ReportRequest request;
  request.set_version(report.version);
  request.set_state(report.state);
  request.set_source(report.source);
  request.set_source_error(report.source_error);
  request.set_units_error(report.units_error);
  request.set_uptime_s(report.uptime_s);
  request.set_spool_bundles(report.spool_bundles);
  request.set_spool_bytes(report.spool_bytes);
  request.set_spool_bytes_max(report.spool_bytes_max);
  request.set_stuck(report.stuck);
  request.set_refused(report.refused);
  request.set_saved(report.saved);
  request.set_not_saved(report.not_saved);
  request.set_uploaded(report.uploaded);
  request.set_lost(report.lost);
  request.set_last_error(report.last_error);
  request.set_last_error_at_s(report.last_error_at_s);
  return request;
}

Result<BundleId> IdOf(const std::string& bytes) {
  if (bytes.size() != Sha256::kBytes) {
    return CorruptInput(
        "the collector's reply has an id of {} bytes, wanted {}", bytes.size(),
        Sha256::kBytes);
  }
  return BundleId(ToSpan(bytes));
}

}  // namespace

Client::Client(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::Create(const ClientOptions& options) {
  CLEW_ASSIGN_OR_RETURN(connection, Connection::Create(options));
  return std::unique_ptr<Client>(new Client(std::move(connection)));
}

void Client::Cancel() { connection_->Cancel(); }

Result<RemotePage> Client::List(const RemoteQuery& query) {
  pb::ListRequest request;
  request.set_offset(query.offset);
  request.set_limit(query.limit);
  request.set_host(query.host);
  request.set_signature(query.signature);
  pb::ListReply reply;
  uint64_t attempts = 0;
  CLEW_RETURN_IF_ERROR(connection_->Retry(
      [&](Connection::Attempt*) -> Status {
        CLEW_ASSIGN_OR_RETURN(
            got, connection_->Ask(&Connection::Stub::List, request));
        reply = std::move(got);
        return {};
      },
      &attempts));
  RemotePage page;
  page.total = reply.total();
  for (const pb::StoredBundle& from : reply.bundles()) {
    CLEW_ASSIGN_OR_RETURN(row, ToRow(from));
    page.bundles.push_back(std::move(row));
  }
  return page;
}

Result<RemoteStatus> Client::GetStatus() {
  pb::StatusReply reply;
  uint64_t attempts = 0;
  CLEW_RETURN_IF_ERROR(connection_->Retry(
      [&](Connection::Attempt*) -> Status {
        CLEW_ASSIGN_OR_RETURN(got, connection_->Ask(&Connection::Stub::Status,
                                                    pb::StatusRequest()));
        reply = std::move(got);
        return {};
      },
      &attempts));
  return RemoteStatus{
      .collector = reply.collector(),
      .host = connection_->hello().host(),
      .bytes_left_today = connection_->hello().bytes_left_today(),
      .uptime_s = reply.uptime_s(),
      .bundles = reply.bundles(),
      .groups = reply.groups(),
      .hosts = reply.hosts(),
      .bundle_bytes = reply.bundle_bytes(),
      .disk_bytes = reply.disk_bytes(),
      .disk_bytes_max = reply.disk_bytes_max()};
}

Result<BundleId> Client::Delete(std::string_view prefix) {
  pb::DeleteRequest request;
  request.set_id(std::string(prefix));
  pb::DeleteReply reply;
  uint64_t attempts = 0;
  CLEW_RETURN_IF_ERROR(connection_->Retry(
      [&](Connection::Attempt*) -> Status {
        CLEW_ASSIGN_OR_RETURN(
            got, connection_->Ask(&Connection::Stub::Delete, request));
        reply = std::move(got);
        return {};
      },
      &attempts));
  return IdOf(reply.bundle());
}

Result<RemoteCheck> Client::Check(std::string_view prefix) {
  pb::CheckRequest request;
  request.set_id(std::string(prefix));
  pb::CheckReply reply;
  uint64_t attempts = 0;
  CLEW_RETURN_IF_ERROR(connection_->Retry(
      [&](Connection::Attempt*) -> Status {
        CLEW_ASSIGN_OR_RETURN(
            got, connection_->Ask(&Connection::Stub::Check, request));
        reply = std::move(got);
        return {};
      },
      &attempts));
  CLEW_ASSIGN_OR_RETURN(id, IdOf(reply.bundle()));
  return RemoteCheck{.id = id,
                     .bytes_read = reply.bytes_read(),
                     .faults = {reply.faults().begin(), reply.faults().end()}};
}

Result<bool> Client::Report(const HostReport& report) {
  const pb::ReportRequest request = RequestOf(report);
  bool taken = false;
  uint64_t attempts = 0;
  CLEW_RETURN_IF_ERROR(connection_->Retry(
      [&](Connection::Attempt*) -> Status {
        Connection::Call call(*connection_, connection_->options().call_ms_max);
        pb::ReportReply reply;
        const grpc::Status status =
            connection_->stub().Report(call.context(), request, &reply);
        taken = status.error_code() != grpc::StatusCode::UNIMPLEMENTED;
        return taken ? connection_->ToStatus(status) : Status();
      },
      &attempts));
  return taken;
}

}  // namespace clew::transfer
