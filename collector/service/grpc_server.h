#ifndef CLEW_COLLECTOR_SERVICE_GRPC_SERVER_H_
#define CLEW_COLLECTOR_SERVICE_GRPC_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "collector/service/auth.h"
#include "collector/service/service.h"
#include "common/result.h"

namespace clew::collector {

// A call that failed. For logs and figures.
struct FailedCall {
  std::string call;      // "Begin"
  std::string peer;      // address
  std::string host;      // empty: not known
  bool refused = false;  // for good; else the client tries again
  std::string message;
};

// The service on the network. A stranger costs no more than the limits: calls
// run in at most `threads_max` threads, shared out as CallSlots does, buffers
// take at most `memory_bytes`, and connections are bounded as Connections does.
// A connection on which nothing is said, or no call runs, is ended.
class GrpcServer {
 public:
  struct Options {
    std::string listen = "127.0.0.1:0";  // port 0: any that is free
    // PEM. Both are read again within `reload_s` when they change.
    std::string cert_file;
    std::string key_file;
    unsigned reload_s = 10;
    // No TLS. Refused unless `listen` is a loopback address.
    bool insecure_loopback = false;
    // Half of them are for transfers, a quarter of each half for engineers.
    size_t threads_max = 128;
    size_t streams_per_host_max = 4;  // Put and Get at once
    size_t connections_max = 4096;
    size_t connections_per_address_max = 256;
    size_t streams_per_connection_max = 16;
    uint64_t memory_bytes = uint64_t{64} << 20;
    uint64_t message_bytes_max = uint64_t{3} << 20;
    uint64_t idle_s_max = 60;
    uint64_t bytes_per_s_min = 1024;     // of a transfer, over idle_s_max
    std::function<uint64_t()> steady_s;  // never goes back
    std::function<void(const FailedCall&)> failed;  // from any thread
  };

  // Both must outlive the server. kInvalidArgument: options. kUnsupported: an
  // expired certificate. kSystem: files, or cannot listen there.
  [[nodiscard]] static Result<std::unique_ptr<GrpcServer>> Start(
      const Options& options, Service& service,
      const Authenticator& authenticator);
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;
  ~GrpcServer();  // stops

  uint16_t port() const;
  // Takes no more calls; ends those that run after `grace_s`. Twice is once.
  void Stop(unsigned grace_s);

 private:
  struct Parts;
  explicit GrpcServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_SERVICE_GRPC_SERVER_H_
