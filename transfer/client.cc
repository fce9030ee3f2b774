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

}  // namespace clew::transfer
