// Goal: a client that holds on to transfers keeps no other client waiting: so
// many a host at once, and one that stands still is ended, with what came kept.
// Method: calls by hand against the built clew-collector, then a good client.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "common/fd.h"
#include "proto/bundle.pb.h"
#include "proto/collector.grpc.pb.h"
#include "tests/collector/samples.h"
#include "tests/transfer/collector_process.h"
#include "transfer/client.h"

namespace clew::transfer {
namespace {

using Clock = std::chrono::steady_clock;
using Stream = grpc::ClientReaderWriter<pb::PutPart, pb::PutAck>;

constexpr size_t kThreads = 8;

// A Put call that is open.
struct OpenPut {
  grpc::ClientContext context;
  std::unique_ptr<Stream> stream;
};

class LimitsTest : public testing::Test {
 protected:
  LimitsTest()
      : collector_(folder_.path(),
                   {"insecure_loopback = yes", "solvers = 0",
                    "clew = /bin/false", "disk_free_bytes_min = 0",
                    "idle_time_max = 2", "host_streams_max = 3",
                    "threads_max = 8", "address_connections_max = 100"}) {
    pb::Manifest manifest;
    manifest.set_format_version(1);
    collector::WriteFiles(folder_ / "bundle",
                          {{"manifest.pb", manifest.SerializeAsString()},
                           {"perf.data", std::string(2'000'000, 'p')}});
  }

  std::unique_ptr<pb::Collector::Stub> Stub() const {
    return pb::Collector::NewStub(grpc::CreateChannel(
        collector_.address(), grpc::InsecureChannelCredentials()));
  }
  static std::unique_ptr<OpenPut> Open(pb::Collector::Stub& stub) {
    auto put = std::make_unique<OpenPut>();
    put->context.AddMetadata("clew-protocol", "1");
    put->context.set_deadline(std::chrono::system_clock::now() +
                              std::chrono::seconds(60));
    put->stream = stub.Put(&put->context);
    return put;
  }
  Result<UploadStats> Upload() const {
    ClientOptions options;
    options.address = collector_.address();
    options.insecure_loopback = true;
    options.attempts_max = 1000;
    options.pause_ms_first = 20;
    options.pause_ms_max = 100;
    CLEW_ASSIGN_OR_RETURN(client, Client::Create(options));
    UploadStats stats;
    CLEW_RETURN_IF_ERROR(client->Upload(folder_ / "bundle", nullptr, &stats));
    return stats;
  }

  collector::TempFolder folder_;
  CollectorProcess collector_;
};

TEST_F(LimitsTest, ATransferThatStandsStillIsEndedAndItsBytesAreKept) {
  ASSERT_TRUE(collector_.Start());
  const auto list = FileList::OfBundle(folder_ / "bundle");
  ASSERT_TRUE(list.has_value()) << list.error().message;
  const auto stub = Stub();
  pb::BeginRequest begin;
  const auto encoded = list->Encode();
  begin.set_files(encoded.data(), encoded.size());
  grpc::ClientContext context;
  context.AddMetadata("clew-protocol", "1");
  pb::BeginReply begun;
  ASSERT_TRUE(stub->Begin(&context, begin, &begun).ok());
  const auto idle = Open(*stub);
  pb::PutPart half;
  const ChunkId chunk = list->files()[1].chunks[0];
  half.set_chunk(chunk.bytes().data(), chunk.bytes().size());
  half.set_data(std::string(1'000'000, 'p'));
  ASSERT_TRUE(idle->stream->Write(half));
  const auto from = Clock::now();
  pb::PutAck ack;
  EXPECT_FALSE(idle->stream->Read(&ack));
  EXPECT_FALSE(idle->stream->Finish().ok());
  EXPECT_LT(Clock::now() - from, std::chrono::seconds(30));
  const auto sent = Upload();
  ASSERT_TRUE(sent.has_value()) << sent.error().message;
  grpc::ClientContext again;
  again.AddMetadata("clew-protocol", "1");
  ASSERT_TRUE(stub->Begin(&again, begin, &begun).ok());
  EXPECT_TRUE(begun.stored());
}

TEST_F(LimitsTest, TransfersBeyondTheHostsShareAreToldToComeAgain) {
  ASSERT_TRUE(collector_.Start());
  const auto stub = Stub();
  std::vector<std::unique_ptr<OpenPut>> open;
  open.reserve(5);
  int refused = 0;
  for (size_t i = 0; i < 5; ++i) {
    open.push_back(Open(*stub));
  }
  for (const auto& put : open) {
    pb::PutAck ack;
    EXPECT_FALSE(put->stream->Read(&ack));  // refused, or ended when idle
    const grpc::Status status = put->stream->Finish();
    if (status.error_message().find("transfers at work") != std::string::npos) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
      EXPECT_TRUE(status.error_details().empty()) << "of the moment";
      ++refused;
    }
  }
  EXPECT_EQ(refused, 2);
}

TEST_F(LimitsTest, StrangersThatSayNothingTakeNoDescriptors) {
  const rlimit few{.rlim_cur = 256, .rlim_max = 256};
  ASSERT_TRUE(collector_.Start());
  ASSERT_EQ(prlimit(collector_.pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  // A host that is known, of the same address, says nothing more.
  const auto channel = grpc::CreateChannel(collector_.address(),
                                           grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  pb::HelloRequest hello;
  hello.set_protocol_min(1);
  hello.set_protocol_max(1);
  pb::HelloReply reply;
  ASSERT_TRUE(
      pb::Collector::NewStub(channel)->Hello(&context, hello, &reply).ok());
  const auto from = Clock::now();
  std::vector<Fd> strangers;
  for (int i = 0; i < 500; ++i) {
    auto& fd = strangers.emplace_back(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(collector_.port());
    ASSERT_EQ(
        connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to),
        0);
  }
  const auto sent = Upload();
  EXPECT_TRUE(sent.has_value()) << sent.error().message;
  // Otherwise it waits until the first of them have had their time.
  EXPECT_LT(Clock::now() - from, std::chrono::seconds(9));
  EXPECT_EQ(channel->GetState(false), GRPC_CHANNEL_READY);
}

TEST_F(LimitsTest, ThreadsThatAreAllTakenDelayOthersAndNoMore) {
  ASSERT_TRUE(collector_.Start());
  // More calls than threads, from connections of their own; most are refused.
  std::vector<std::unique_ptr<pb::Collector::Stub>> stubs;
  std::vector<std::unique_ptr<OpenPut>> open;
  for (size_t i = 0; i < 3 * kThreads; ++i) {
    stubs.push_back(Stub());
    open.push_back(Open(*stubs.back()));
  }
  const auto sent = Upload();
  EXPECT_TRUE(sent.has_value()) << sent.error().message;
  for (const auto& put : open) {
    put->context.TryCancel();
    (void)put->stream->Finish();
  }
  EXPECT_EQ(collector_.Stop(), 0);
}

}  // namespace
}  // namespace clew::transfer
