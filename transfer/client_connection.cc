#include "transfer/client_connection.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <random>
#include <utility>

#include "common/bytes.h"
#include "common/os/file.h"
#include "transfer/certificate.h"
#include "transfer/grpc_log.h"
#include "transfer/protocol.h"

namespace clew::transfer {
namespace {

constexpr int kKeepaliveMs = 20'000;
constexpr int kMessageBytesMax = 8 << 20;

Status CheckAddress(const ClientOptions& options) {
  const size_t colon = options.address.rfind(':');
  if (colon == std::string::npos || colon == 0 ||
      colon + 1 == options.address.size()) {
    return InvalidArgument("collector {:?}: wanted host:port", options.address);
  }
  if (options.insecure_loopback && !IsLoopback(options.address)) {
    return InvalidArgument(
        "collector {:?}: without TLS only 127.0.0.1, [::1] or localhost may be "
        "called",
        options.address);
  }
  if (options.cert_file.empty() != options.key_file.empty()) {
    return InvalidArgument("cert and key are wanted together, or neither");
  }
  return {};
}

Result<std::string> ReadToken(const std::string& path) {
  if (path.empty()) {
    return "";
  }
  CLEW_ASSIGN_OR_RETURN(text, ReadWholeText(path));
  struct stat status{};
  if (stat(path.c_str(), &status) == 0 && (status.st_mode & S_IROTH) != 0) {
    return InvalidArgument(
        "token file {:?} can be read by everybody; chmod 640 or 600", path);
  }
  std::string token = text.substr(0, text.find_first_of("\r\n"));
  if (token.empty() ||
      !std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7f; })) {
    return InvalidArgument(
        "token file {:?}: the first line is no token, as 'clew-collector token "
        "HOST' makes it",
        path);
  }
  return token;
}

Result<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const ClientOptions& options) {
  if (options.insecure_loopback) {
    return grpc::InsecureChannelCredentials();
  }
  grpc::SslCredentialsOptions tls;
  if (!options.ca_file.empty()) {
    CLEW_ASSIGN_OR_RETURN(ca, ReadWholeText(options.ca_file));
    tls.pem_root_certs = ca;
  }
  if (!options.cert_file.empty()) {
    CLEW_ASSIGN_OR_RETURN(cert, ReadWholeText(options.cert_file));
    CLEW_ASSIGN_OR_RETURN(key, ReadWholeText(options.key_file));
    const Status pair =
        CheckKeyPair(cert, options.cert_file, key, options.key_file);
    // An expired one is the collector's to refuse: its clock counts.
    if (!pair && pair.error().code != ErrorCode::kUnsupported) {
      return std::unexpected(pair.error());
    }
    tls.pem_cert_chain = cert;
    tls.pem_private_key = key;
  }
  return grpc::SslCredentials(tls);
}

ErrorCode CodeOf(pb::Refusal::Reason reason) {
  switch (reason) {
    case pb::Refusal::REASON_REQUEST:
      return ErrorCode::kInvalidArgument;
    case pb::Refusal::REASON_DATA:
      return ErrorCode::kCorruptInput;
    case pb::Refusal::REASON_LIMIT:
      return ErrorCode::kLimit;
    default:
      return ErrorCode::kUnsupported;
  }
}

// What the text of a broken connection says about certificates.
bool IsAboutCertificates(const std::string& message) {
  return message.find("CERTIFICATE_VERIFY_FAILED") != std::string::npos ||
         message.find("certificate verify failed") != std::string::npos ||
         message.find("Peer name") != std::string::npos;
}

// One line, without what breaks lines.
std::string OneLine(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

}  // namespace

Client::Connection::Call::Call(Connection& connection, uint64_t ms_max)
    : connection_(connection) {
  context_.AddMetadata(kProtocolKey, fmt::to_string(kProtocol));
  if (!connection.token_.empty()) {
    context_.AddMetadata(kAuthorizationKey, "Bearer " + connection.token_);
  }
  context_.set_deadline(std::chrono::system_clock::now() +
                        std::chrono::milliseconds(ms_max));
  const std::lock_guard lock(connection.mutex_);
  connection.running_.insert(&context_);
  if (connection.cancelled_) {
    context_.TryCancel();
  }
}

Client::Connection::Call::~Call() {
  const std::lock_guard lock(connection_.mutex_);
  connection_.running_.erase(&context_);
}

Client::Connection::Connection(
    const ClientOptions& options,
    std::shared_ptr<grpc::ChannelCredentials> credentials, std::string token)
    : options_(options),
      credentials_(std::move(credentials)),
      token_(std::move(token)) {}

Result<std::unique_ptr<Client::Connection>> Client::Connection::Create(
    const ClientOptions& options) {
  SilenceGrpc();
  CLEW_RETURN_IF_ERROR(CheckAddress(options));
  CLEW_ASSIGN_OR_RETURN(token, ReadToken(options.token_file));
  CLEW_ASSIGN_OR_RETURN(credentials, MakeCredentials(options));
  return std::unique_ptr<Connection>(
      new Connection(options, credentials, token));
}

void Client::Connection::Connect() {
  grpc::ChannelArguments arguments;
  // Ours to wait: a channel would remember that it failed.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  stub_ = pb::Collector::NewStub(
      grpc::CreateCustomChannel(options_.address, credentials_, arguments));
}

Status Client::Connection::SayHello() {
  Connect();
  pb::HelloRequest request;
  request.set_protocol_min(kProtocol);
  request.set_protocol_max(kProtocol);
  request.set_client(options_.program);
  CLEW_ASSIGN_OR_RETURN(reply, Ask(&Stub::Hello, request));
  hello_ = std::move(reply);
  return {};
}

bool Client::Connection::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

void Client::Connection::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* context : running_) {
    context->TryCancel();
  }
  cancel_asked_.notify_all();
}

bool Client::Connection::Pause(uint64_t ms) {
  // Of many clients that lost the collector at once, not all come back at once.
  thread_local std::minstd_rand random{std::random_device{}()};
  std::uniform_int_distribution<uint64_t> some(ms / 2, ms);
  std::unique_lock lock(mutex_);
  return !cancel_asked_.wait_for(lock, std::chrono::milliseconds(some(random)),
                                 [&] { return cancelled_; });
}

Status Client::Connection::ToStatus(const grpc::Status& status) const {
  if (status.ok()) {
    return {};
  }
  if (cancelled()) {
    return SystemError(ECANCELED,
                       fmt::format("collector {}", options_.address));
  }
  const std::string said = fmt::format("collector {}: {}", options_.address,
                                       OneLine(status.error_message()));
  pb::Refusal refusal;
  if (!status.error_details().empty() &&
      refusal.ParseFromString(status.error_details())) {
    return std::unexpected(Error{CodeOf(refusal.reason()), said});
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return Unsupported(
        "{}; is that a clew-collector, and of this version of clew?", said);
  }
  if (IsAboutCertificates(status.error_message())) {
    return Unsupported(
        "{}; the collector's certificate must be valid now, name the host that "
        "was called, and be signed by an authority in 'ca'",
        said);
  }
  return std::unexpected(Error{ErrorCode::kSystem, said, EAGAIN});
}

Status Client::Connection::Retry(
    const std::function<Status(Attempt* told)>& attempt, uint64_t* attempts) {
  uint64_t pause_ms = options_.pause_ms_first;
  for (uint32_t failed = 0;;) {
    ++*attempts;
    Attempt told;
    Status done = SayHello();
    if (done) {
      done = attempt(&told);
    }
    if (done || done.error().code != ErrorCode::kSystem || told.local ||
        cancelled()) {
      return done;
    }
    if (told.advanced) {
      failed = 0;
      pause_ms = options_.pause_ms_first;
    }
    if (++failed >= options_.attempts_max) {
      return std::unexpected(Error{ErrorCode::kSystem,
                                   fmt::format("gave up after {} attempts: {}",
                                               *attempts, done.error().message),
                                   done.error().sys_errno});
    }
    if (!Pause(pause_ms)) {
      return SystemError(ECANCELED,
                         fmt::format("collector {}", options_.address));
    }
    pause_ms = std::min(2 * pause_ms, options_.pause_ms_max);
  }
}

}  // namespace clew::transfer
