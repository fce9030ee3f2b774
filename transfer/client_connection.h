#ifndef CLEW_TRANSFER_CLIENT_CONNECTION_H_
#define CLEW_TRANSFER_CLIENT_CONNECTION_H_

// Included by client*.cc only: the only header of transfer/ with gRPC types.

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "common/result.h"
#include "proto/collector.grpc.pb.h"
#include "transfer/client.h"

namespace clew::transfer {

// A channel to the collector, made anew for each attempt, and what Cancel
// needs. Cancel from any thread; all else from one.
class Client::Connection {
 public:
  using Stub = pb::Collector::Stub;
  // A call's context while the call runs; Cancel ends it.
  class Call {
   public:
    // Ends by itself after `ms_max`.
    Call(Connection& connection, uint64_t ms_max);
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call();
    grpc::ClientContext* context() { return &context_; }

   private:
    Connection& connection_;
    grpc::ClientContext context_;
  };

  [[nodiscard]] static Result<std::unique_ptr<Connection>> Create(
      const ClientOptions& options);

  const ClientOptions& options() const { return options_; }
  Stub& stub() { return *stub_; }
  // Returns the answer to Hello, the first call of each attempt.
  const pb::HelloReply& hello() const { return hello_; }
  bool cancelled() const;
  void Cancel();

  // Makes one unary call.
  template <class Request, class Reply>
  [[nodiscard]] Result<Reply> Ask(
      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                   Reply*),
      const Request& request) {
    Call call(*this, options_.call_ms_max);
    Reply reply;
    CLEW_RETURN_IF_ERROR(
        ToStatus(((*stub_).*method)(call.context(), request, &reply)));
    return reply;
  }
  // Returns what the end of a call means for us; kSystem is worth another
  // attempt.
  [[nodiscard]] Status ToStatus(const grpc::Status& status) const;

  // What an attempt tells beside its status.
  struct Attempt {
    bool advanced = false;  // it brought the work further
    bool local = false;     // it failed on this host: no use to try again
  };
  // Asks as Ask does, and again as Retry does.
  template <class Request, class Reply>
  [[nodiscard]] Result<Reply> AskAgain(
      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                   Reply*),
      const Request& request) {
    Reply reply;
    uint64_t attempts = 0;
    CLEW_RETURN_IF_ERROR(Retry(
        [&](Attempt*) -> Status {
          CLEW_ASSIGN_OR_RETURN(got, Ask(method, request));
          reply = std::move(got);
          return {};
        },
        &attempts));
    return reply;
  }
  // Runs `attempt` until it succeeds, is refused, or has failed attempts_max
  // times in a row without an advance. `*attempts` counts them.
  [[nodiscard]] Status Retry(
      const std::function<Status(Attempt* told)>& attempt, uint64_t* attempts);

 private:
  Connection(const ClientOptions& options,
             std::shared_ptr<grpc::ChannelCredentials> credentials,
             std::string token);
  void Connect();
  [[nodiscard]] Status SayHello();
  // Waits. Returns false if it was cancelled meanwhile.
  bool Pause(uint64_t ms);

  const ClientOptions options_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;  // gRPC's
  const std::string token_;
  std::unique_ptr<Stub> stub_;
  pb::HelloReply hello_;

  mutable std::mutex mutex_;
  std::condition_variable cancel_asked_;
  bool cancelled_ = false;
  std::set<grpc::ClientContext*> running_;
};

}  // namespace clew::transfer

#endif  // CLEW_TRANSFER_CLIENT_CONNECTION_H_
