#include "collector/service/grpc_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "collector/service/call_slots.h"
#include "collector/service/connections.h"
#include "collector/socket.h"
#include "common/os/file.h"
#include "proto/collector.grpc.pb.h"
#include "transfer/certificate.h"
#include "transfer/grpc_log.h"
#include "transfer/protocol.h"

namespace clew::collector {
namespace {

using grpc::ServerContext;
using transfer::kAuthorizationKey;
using transfer::kProtocolKey;

constexpr int kKeepaliveMs = 30'000;
constexpr int kPingIntervalMinMs = 5'000;
constexpr std::chrono::milliseconds kShortCall{200};
// TLS and the first frame of HTTP/2.
constexpr int kHandshakeMsMax = 10'000;
// A connection without a call.
constexpr int kUnusedMsMax = 120'000;
// Calls without a stream, of one host and at once, for each of its streams.
constexpr size_t kShortCallsAStream = 4;

std::optional<std::string> Metadata(const ServerContext& context,
                                    const char* key) {
  const auto at = context.client_metadata().find(key);
  if (at == context.client_metadata().end()) {
    return std::nullopt;
  }
  return std::string(at->second.data(), at->second.size());
}

std::string Property(const ServerContext& context, const char* name) {
  const auto values = context.auth_context()->FindPropertyValues(name);
  return values.empty() ? "" : std::string(values[0].data(), values[0].size());
}

Credentials CredentialsOf(const ServerContext& context) {
  return {.encrypted =
              Property(context, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME) ==
              GRPC_SSL_TRANSPORT_SECURITY_TYPE,
          .chain_pem_untrusted =
              Property(context, GRPC_X509_PEM_CERT_PROPERTY_NAME) +
              Property(context, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME),
          .authorization_untrusted = Metadata(context, kAuthorizationKey)};
}

struct Code {
  grpc::StatusCode code;
  pb::Refusal::Reason reason;
};

Code CodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return {grpc::StatusCode::INVALID_ARGUMENT, pb::Refusal::REASON_REQUEST};
    case ErrorCode::kCorruptInput:
      return {grpc::StatusCode::DATA_LOSS, pb::Refusal::REASON_DATA};
    case ErrorCode::kUnsupported:
      return {grpc::StatusCode::FAILED_PRECONDITION,
              pb::Refusal::REASON_VERSION};
    case ErrorCode::kLimit:
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, pb::Refusal::REASON_LIMIT};
    case ErrorCode::kSystem:
      break;
  }
  return {grpc::StatusCode::UNAVAILABLE, pb::Refusal::REASON_UNKNOWN};
}

grpc::Status ToGrpc(const Error& error, Code code) {
  std::string details;
  if (code.reason != pb::Refusal::REASON_UNKNOWN) {
    pb::Refusal refusal;
    refusal.set_reason(code.reason);
    details = refusal.SerializeAsString();
  }
  return {code.code, error.message, details};
}

}  // namespace

namespace {

CallLimits TransferLimits(const GrpcServer::Options& options) {
  const size_t total = options.threads_max / 2;
  return {.what = "transfers",
          .host_max = options.streams_per_host_max,
          .total_max = total,
          .reserved = total / 4,
          .idle_s_max = options.idle_s_max,
          .bytes_per_s_min = options.bytes_per_s_min};
}

CallLimits ShortCallLimits(const GrpcServer::Options& options) {
  const size_t total = options.threads_max / 2;
  return {.what = "short calls",
          .host_max = kShortCallsAStream * options.streams_per_host_max,
          .total_max = total,
          .reserved = total / 4,
          .idle_s_max = 0,
          .bytes_per_s_min = 0};
}

}  // namespace

// One method a call of the protocol: who calls, the handler, the status.
class Endpoint final : public pb::Collector::Service {
 public:
  Endpoint(const GrpcServer::Options& options, collector::Service& service,
           const Authenticator& authenticator)
      : options_(options),
        service_(service),
        authenticator_(authenticator),
        transfers_(TransferLimits(options), options.steady_s),
        short_calls_(ShortCallLimits(options), options.steady_s) {}

  size_t transfers() const { return transfers_.running(); }
  // `peer` as ServerContext has it.
  void TellIdentified(std::function<void(const std::string& peer)> identified) {
    identified_ = std::move(identified);
  }

  grpc::Status Hello(ServerContext* context, const pb::HelloRequest* request,
                     pb::HelloReply* reply) override {
    return Unary(*context, "Hello", reply, [&](const Caller& caller) {
      return service_.Hello(caller, *request);
    });
  }
  grpc::Status Begin(ServerContext* context, const pb::BeginRequest* request,
                     pb::BeginReply* reply) override {
    return Unary(*context, "Begin", reply, [&](const Caller& caller) {
      return service_.Begin(caller, *request);
    });
  }
  grpc::Status Commit(ServerContext* context, const pb::CommitRequest* request,
                      pb::CommitReply* reply) override {
    return Unary(*context, "Commit", reply, [&](const Caller& caller) {
      return service_.Commit(caller, *request);
    });
  }
  grpc::Status List(ServerContext* context, const pb::ListRequest* request,
                    pb::ListReply* reply) override {
    return Unary(*context, "List", reply, [&](const Caller& caller) {
      return service_.List(caller, *request);
    });
  }
  grpc::Status Status(ServerContext* context, const pb::StatusRequest*,
                      pb::StatusReply* reply) override {
    return Unary(*context, "Status", reply,
                 [&](const Caller&) { return service_.GetStatus(); });
  }

  grpc::Status Delete(ServerContext* context, const pb::DeleteRequest* request,
                      pb::DeleteReply* reply) override {
    return Unary(*context, "Delete", reply, [&](const Caller& caller) {
      return service_.Delete(caller, *request);
    });
  }
  grpc::Status Check(ServerContext* context, const pb::CheckRequest* request,
                     pb::CheckReply* reply) override {
    return Unary(*context, "Check", reply, [&](const Caller& caller) {
      return service_.Check(caller, *request);
    });
  }

  grpc::Status ListGroups(ServerContext* context,
                          const pb::ListGroupsRequest* request,
                          pb::ListGroupsReply* reply) override {
    return Unary(*context, "ListGroups", reply, [&](const Caller& caller) {
      return service_.ListGroups(caller, *request);
    });
  }
  grpc::Status GetGroup(ServerContext* context,
                        const pb::GetGroupRequest* request,
                        pb::GetGroupReply* reply) override {
    return Unary(*context, "GetGroup", reply, [&](const Caller& caller) {
      return service_.GetGroup(caller, *request);
    });
  }
  grpc::Status ChangeGroup(ServerContext* context,
                           const pb::ChangeGroupRequest* request,
                           pb::ChangeGroupReply* reply) override {
    return Unary(*context, "ChangeGroup", reply, [&](const Caller& caller) {
      return service_.ChangeGroup(caller, *request);
    });
  }

  grpc::Status Report(ServerContext* context, const pb::ReportRequest* request,
                      pb::ReportReply* reply) override {
    return Unary(*context, "Report", reply, [&](const Caller& caller) {
      return service_.Report(caller, *request);
    });
  }

  grpc::Status ListHosts(ServerContext* context,
                         const pb::ListHostsRequest* request,
                         pb::ListHostsReply* reply) override {
    return Unary(*context, "ListHosts", reply, [&](const Caller& caller) {
      return service_.ListHosts(caller, *request);
    });
  }

  grpc::Status Put(
      ServerContext* context,
      grpc::ServerReaderWriter<pb::PutAck, pb::PutPart>* stream) override {
    return Streaming(*context, "Put",
                     [&](const Caller& caller, CallSlots::Call& call) {
                       return PutAll(caller, call, stream);
                     });
  }
  grpc::Status Get(ServerContext* context, const pb::GetRequest* request,
                   grpc::ServerWriter<pb::GetPart>* stream) override {
    return Streaming(*context, "Get",
                     [&](const Caller& caller, CallSlots::Call& call) {
                       return GetAll(caller, call, *request, stream);
                     });
  }

 private:
  grpc::Status Fail(const ServerContext& context, const char* call,
                    const std::string& host, const Error& error, Code code) {
    if (options_.failed) {
      options_.failed({.call = call,
                       .peer = context.peer(),
                       .host = host,
                       .refused = code.reason != pb::Refusal::REASON_UNKNOWN,
                       .message = error.message});
    }
    return ToGrpc(error, code);
  }
  grpc::Status Fail(const ServerContext& context, const char* call,
                    const std::string& host, const Error& error) {
    return Fail(context, call, host, error, CodeOf(error.code));
  }

  // Who calls, in our version of the protocol; or the status that says why not.
  Result<Caller> Admit(const ServerContext& context, const char* call,
                       grpc::Status* status) {
    auto caller = authenticator_.Identify(CredentialsOf(context));
    if (!caller) {
      *status = Fail(
          context, call, "", caller.error(),
          {grpc::StatusCode::UNAUTHENTICATED, pb::Refusal::REASON_IDENTITY});
      return caller;
    }
    identified_(context.peer());
    caller->peer = context.peer();
    if (std::string_view(call) != "Hello") {
      const auto spoken =
          service_.CheckProtocol(Metadata(context, kProtocolKey));
      if (!spoken) {
        *status = Fail(context, call, caller->host, spoken.error());
        return std::unexpected(spoken.error());
      }
    }
    return caller;
  }

  template <class Reply, class Handler>
  grpc::Status Unary(const ServerContext& context, const char* call,
                     Reply* reply, const Handler& handler) {
    grpc::Status status;
    const auto caller = Admit(context, call, &status);
    if (!caller) {
      return status;
    }
    const auto slot = short_calls_.Begin(*caller, [] {});
    if (!slot) {
      return Fail(context, call, caller->host, slot.error());
    }
    auto done = handler(*caller);
    if (!done) {
      return Fail(context, call, caller->host, done.error());
    }
    *reply = *std::move(done);
    return grpc::Status::OK;
  }

  template <class Handler>
  grpc::Status Streaming(ServerContext& context, const char* name,
                         const Handler& handler) {
    grpc::Status status;
    const auto caller = Admit(context, name, &status);
    if (!caller) {
      return status;
    }
    auto call = transfers_.Begin(*caller, [&context] { context.TryCancel(); });
    if (!call) {
      return Fail(context, name, caller->host, call.error());
    }
    if (const clew::Status done = handler(*caller, *call); !done) {
      return Fail(context, name, caller->host, done.error());
    }
    return grpc::Status::OK;
  }

  clew::Status PutAll(
      const Caller& caller, CallSlots::Call& call,
      grpc::ServerReaderWriter<pb::PutAck, pb::PutPart>* stream) {
    collector::Service::PutSession session(service_, caller);
    pb::PutPart part;
    while (stream->Read(&part)) {
      call.Moved(part.data().size());
      CLEW_ASSIGN_OR_RETURN(ack, session.Put(part));
      if (ack && !stream->Write(*ack)) {
        break;  // the client is gone
      }
    }
    return {};
  }

  clew::Status GetAll(const Caller& caller, CallSlots::Call& call,
                      const pb::GetRequest& request,
                      grpc::ServerWriter<pb::GetPart>* stream) {
    CLEW_ASSIGN_OR_RETURN(session, service_.Get(caller, request));
    pb::GetPart part;
    while (true) {
      CLEW_ASSIGN_OR_RETURN(more, session.Next(&part));
      if (!more || !stream->Write(part)) {
        return {};
      }
      call.Moved(part.ByteSizeLong());
    }
  }

  const GrpcServer::Options options_;
  collector::Service& service_;
  const Authenticator& authenticator_;
  CallSlots transfers_;
  CallSlots short_calls_;
  std::function<void(const std::string& peer)> identified_;
};

namespace {

using grpc::experimental::FileWatcherCertificateProvider;
using grpc::experimental::TlsServerCredentials;
using grpc::experimental::TlsServerCredentialsOptions;

// A shared_ptr because gRPC wants one, here and below.
Result<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(
    const GrpcServer::Options& options) {
  if (options.insecure_loopback) {
    if (!transfer::IsLoopback(options.listen)) {
      return InvalidArgument(
          "insecure_loopback with {:?}: without TLS only 127.0.0.1, [::1] or "
          "localhost may be listened on; give cert and key",
          options.listen);
    }
    return grpc::InsecureServerCredentials();
  }
  if (options.cert_file.empty() || options.key_file.empty()) {
    return InvalidArgument(
        "cert and key are wanted: the collector speaks TLS; for a try on one "
        "host there is insecure_loopback = yes");
  }
  CLEW_ASSIGN_OR_RETURN(cert, ReadWholeText(options.cert_file));
  CLEW_ASSIGN_OR_RETURN(key, ReadWholeText(options.key_file));
  CLEW_RETURN_IF_ERROR(
      transfer::CheckKeyPair(cert, options.cert_file, key, options.key_file));
  TlsServerCredentialsOptions tls(
      std::make_shared<FileWatcherCertificateProvider>(
          options.key_file, options.cert_file, options.reload_s));
  tls.watch_identity_key_cert_pairs();
  // Authenticator checks it, and can say what is wrong with it.
  tls.set_cert_request_type(
      GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  return TlsServerCredentials(tls);
}

// "localhost" is what gRPC's clients say, too.
Result<Fd> Listen(const std::string& listen) {
  CLEW_ASSIGN_OR_RETURN(address, ParseAddress("listen", listen));
  if (address.host == "localhost") {
    address.host = "127.0.0.1";
  }
  return ListenOn(address);
}

void SetLimits(const GrpcServer::Options& options,
               grpc::ServerBuilder* builder) {
  grpc::ResourceQuota quota("clew-collector");
  quota.Resize(options.memory_bytes);
  quota.SetMaxThreads(static_cast<int>(options.threads_max));
  builder->SetResourceQuota(quota);
  builder->SetMaxReceiveMessageSize(
      static_cast<int>(options.message_bytes_max));
  builder->AddChannelArgument(
      GRPC_ARG_MAX_CONCURRENT_STREAMS,
      static_cast<int>(options.streams_per_connection_max));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      kPingIntervalMinMs);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                              kHandshakeMsMax);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kUnusedMsMax);
}

}  // namespace

struct GrpcServer::Parts {
  Parts(const Options& options, Service& service,
        const Authenticator& authenticator)
      : endpoint(options, service, authenticator) {}
  Endpoint endpoint;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<Connections> connections;  // ends before what it gives to
  uint16_t port = 0;
};

GrpcServer::GrpcServer(std::unique_ptr<Parts> parts)
    : parts_(std::move(parts)) {}
GrpcServer::~GrpcServer() { Stop(0); }

Result<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    const Options& options, Service& service,
    const Authenticator& authenticator) {
  transfer::SilenceGrpc();
  CLEW_ASSIGN_OR_RETURN(credentials, MakeCredentials(options));
  auto parts = std::make_unique<Parts>(options, service, authenticator);
  grpc::ServerBuilder builder;
  SetLimits(options, &builder);
  CLEW_ASSIGN_OR_RETURN(listening, Listen(options.listen));
  CLEW_ASSIGN_OR_RETURN(port, PortOf(listening));
  parts->port = port;
  parts->acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      credentials);
  builder.RegisterService(&parts->endpoint);
  parts->endpoint.TellIdentified([at = parts.get()](const std::string& peer) {
    at->connections->Identified(peer);
  });
  parts->server = builder.BuildAndStart();
  if (parts->server == nullptr) {
    return SystemError(EIO,
                       fmt::format("cannot serve on {:?}", options.listen));
  }
  const auto take = [acceptor = parts->acceptor.get()](Fd fd) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters to;
    to.fd = fd.Release();
    acceptor->HandleNewConnection(&to);
  };
  CLEW_ASSIGN_OR_RETURN(
      connections,
      Connections::Make(std::move(listening),
                        {.total_max = options.connections_max,
                         .address_max = options.connections_per_address_max},
                        take));
  parts->connections = std::move(connections);
  parts->connections->Begin();
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(parts)));
}

uint16_t GrpcServer::port() const { return parts_->port; }

void GrpcServer::Stop(unsigned grace_s) {
  if (parts_->server != nullptr) {
    parts_->connections->Stop();
    // gRPC waits for idle connections, too: no longer than short calls need.
    const auto grace = parts_->endpoint.transfers() > 0
                           ? std::chrono::milliseconds(grace_s * 1000)
                           : kShortCall;
    parts_->server->Shutdown(std::chrono::system_clock::now() + grace);
    parts_->server->Wait();
    parts_->server.reset();
  }
}

}  // namespace clew::collector
