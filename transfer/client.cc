#include "transfer/client.h"

#include <utility>

#include "common/bytes.h"
#include "transfer/client_connection.h"

namespace clew::transfer {
namespace {

// A row, or what is wrong with it.
Result<RemoteBundle> ToRow(const pb::StoredBundle& from) {
  if (from.id().size() != Sha256::kBytes) {
    return CorruptInput("the collector's list has an id of {} bytes, wanted {}",
                        from.id().size(), Sha256::kBytes);
  }
  return RemoteBundle{.id = BundleId(AsBytes(from.id())),
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

Result<BundleId> IdOf(const std::string& bytes) {
  if (bytes.size() != Sha256::kBytes) {
    return CorruptInput(
        "the collector's reply has an id of {} bytes, wanted {}", bytes.size(),
        Sha256::kBytes);
  }
  return BundleId(AsBytes(bytes));
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

Result<RemotePage<RemoteBundle>> Client::List(const RemoteQuery& query) {
  pb::ListRequest request;
  request.set_offset(query.offset);
  request.set_limit(query.limit);
  request.set_host(query.host);
  request.set_signature(query.signature);
  CLEW_ASSIGN_OR_RETURN(
      reply, connection_->AskAgain(&Connection::Stub::List, request));
  RemotePage<RemoteBundle> page;
  page.total = reply.total();
  for (const pb::StoredBundle& from : reply.bundles()) {
    CLEW_ASSIGN_OR_RETURN(row, ToRow(from));
    page.rows.push_back(std::move(row));
  }
  return page;
}

Result<RemoteStatus> Client::GetStatus() {
  CLEW_ASSIGN_OR_RETURN(reply, connection_->AskAgain(&Connection::Stub::Status,
                                                     pb::StatusRequest()));
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
  CLEW_ASSIGN_OR_RETURN(
      reply, connection_->AskAgain(&Connection::Stub::Delete, request));
  return IdOf(reply.bundle());
}

Result<RemoteCheck> Client::Check(std::string_view prefix) {
  pb::CheckRequest request;
  request.set_id(std::string(prefix));
  CLEW_ASSIGN_OR_RETURN(
      reply, connection_->AskAgain(&Connection::Stub::Check, request));
  CLEW_ASSIGN_OR_RETURN(id, IdOf(reply.bundle()));
  return RemoteCheck{.id = id,
                     .bytes_read = reply.bytes_read(),
                     .faults = {reply.faults().begin(), reply.faults().end()}};
}

Result<ReportAnswer> Client::Report(const HostReport& report) {
  pb::ReportRequest request;
  ToProto(report, &request);
  auto answer = ReportAnswer::kUnknownCall;
  uint64_t attempts = 0;
  CLEW_RETURN_IF_ERROR(connection_->Retry(
      [&](Connection::Attempt*) -> Status {
        Connection::Call call(*connection_, connection_->options().call_ms_max);
        pb::ReportReply reply;
        const grpc::Status status =
            connection_->stub().Report(call.context(), request, &reply);
        if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
          answer = ReportAnswer::kUnknownCall;
          return {};
        }
        answer = ReportAnswer::kTaken;
        return connection_->ToStatus(status);
      },
      &attempts));
  return answer;
}

}  // namespace clew::transfer
