// Goal: a client that holds on to transfers keeps no other client waiting: so
// many a host at once, and one that stands still is ended, with what came kept.
// Method: calls by hand against the built clew-collector, then a good client.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/os/fd.h"
#include "proto/bundle.pb.h"
#include "proto/collector.grpc.pb.h"
#include "tests/collector/samples.h"
#include "tests/support/loopback.h"
#include "tests/support/wait_until.h"
#include "tests/transfer/collector_process.h"
#include "transfer/client.h"

namespace clew::transfer {
namespace {

using test::kNeverInATest;
using test::WaitUntil;
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
  explicit LimitsTest(std::chrono::seconds idle_time_max = kNeverInATest)
      : collector_(folder_.path(),
                   {"insecure_loopback = yes", "solvers = 0",
                    "clew = /bin/false", "disk_free_bytes_min = 0",
                    fmt::format("idle_time_max = {}", idle_time_max.count()),
                    "host_streams_max = 3", "threads_max = 8",
                    "address_connections_max = 100"}) {
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
    put->context.set_deadline(std::chrono::system_clock::now() + kNeverInATest);
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

// Transfers that stand still are soon ended.
class IdleLimitsTest : public LimitsTest {
 protected:
  IdleLimitsTest() : LimitsTest(std::chrono::seconds(2)) {}
};

TEST_F(IdleLimitsTest, ATransferThatStandsStillIsEndedAndItsBytesAreKept) {
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
  pb::PutPart half;
  const ChunkId chunk = list->files()[1].chunks[0];
  half.set_chunk(chunk.bytes().data(), chunk.bytes().size());
  half.set_data(std::string(1'000'000, 'p'));
  const auto idle = Open(*stub);
  ASSERT_TRUE(idle->stream->Write(half));
  pb::PutAck ack;
  EXPECT_FALSE(idle->stream->Read(&ack));
  const grpc::Status ended = idle->stream->Finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::CANCELLED)
      << "by the collector, not at the client's deadline: "
      << ended.error_message();
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
  // Those that are at work end when the test says so.
  std::vector<grpc::Status> statuses(open.size());
  std::atomic<int> ended = 0;
  std::vector<std::thread> readers;
  for (size_t i = 0; i < open.size(); ++i) {
    readers.emplace_back([&, i] {
      pb::PutAck ack;
      EXPECT_FALSE(open[i]->stream->Read(&ack));
      statuses[i] = open[i]->stream->Finish();
      ++ended;
    });
  }
  EXPECT_TRUE(WaitUntil([&] { return ended >= 2; }));
  for (const auto& put : open) {
    put->context.TryCancel();
  }
  for (std::thread& reader : readers) {
    reader.join();
  }
  for (const grpc::Status& status : statuses) {
    if (status.error_message().find("transfers at work") != std::string::npos) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
      EXPECT_TRUE(status.error_details().empty()) << "of the moment";
      ++refused;
    }
  }
  EXPECT_EQ(refused, 2);
}

// More strangers than the collector may have descriptors, and then an upload.
class StrangersTest : public LimitsTest {
 protected:
  void ExpectNoneIsKeptWaiting(const std::string& greeting) {
    const rlimit few{.rlim_cur = 256, .rlim_max = 256};
    ASSERT_TRUE(collector_.Start());
    ASSERT_EQ(prlimit(collector_.pid(), RLIMIT_NOFILE, &few, nullptr), 0);
    // A host that is known, of the same address, says nothing more.
    const auto channel = grpc::CreateChannel(
        collector_.address(), grpc::InsecureChannelCredentials());
    grpc::ClientContext context;
    pb::HelloRequest hello;
    hello.set_protocol_min(1);
    hello.set_protocol_max(1);
    pb::HelloReply reply;
    ASSERT_TRUE(
        pb::Collector::NewStub(channel)->Hello(&context, hello, &reply).ok());
    std::vector<Fd> strangers;
    for (int i = 0; i < 500; ++i) {
      strangers.push_back(test::TcpSocket());
      const Fd& fd = strangers.back();
      ASSERT_TRUE(test::Connect(fd, collector_.port()));
      (void)!send(fd.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL);
    }
    const auto sent = Upload();
    EXPECT_TRUE(sent.has_value()) << sent.error().message;
    EXPECT_EQ(channel->GetState(false), GRPC_CHANNEL_READY);
  }
};

TEST_F(StrangersTest, ThoseThatSayNothingTakeNoDescriptors) {
  ExpectNoneIsKeptWaiting("");
}

// They have two minutes each, where those that say nothing have ten seconds: an
// upload that waited until they have had them would take longer than that.
// Source: RFC 9113, "HTTP/2 Connection Preface" and "SETTINGS".
TEST_F(StrangersTest, ThoseThatGreetAndCallNothingTakeNoDescriptors) {
  const auto begin = Clock::now();
  ExpectNoneIsKeptWaiting("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
                          std::string("\0\0\0\4\0\0\0\0\0", 9));
  EXPECT_LT(Clock::now() - begin, test::kWaitMax);
}

TEST_F(IdleLimitsTest, ThreadsThatAreAllTakenDelayOthersAndNoMore) {
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
