// Goal: a collector knows how the daemons of its hosts do, by the name in their
// certificate or token; one of an earlier version is left alone.
// Method: the built clewd, clew and clew-collector; a server of gRPC that has
// no such call.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/run_program.h"
#include "collector/catalogue/host_table.h"
#include "common/check.h"
#include "proto/collector.grpc.pb.h"
#include "tests/daemon/support.h"
#include "tests/support/wait_until.h"
#include "tests/transfer/collector_process.h"
#include "transfer/client.h"

namespace clew::transfer {
namespace {

using cli::ProgramOutput;
using collector::HostRow;
using daemon::test::Process;
using daemon::test::Program;
using daemon::test::ReadText;
using daemon::test::Scratch;
using daemon::test::WriteText;
using test::WaitUntil;
using testing::HasSubstr;
using testing::Not;

class HostReportTest : public testing::Test {
 protected:
  // A daemon that reports each second or so to `address`.
  void StartDaemon(const std::string& address) {
    for (const char* folder : {"etc/clew", "run/clew", "var/lib/clew/spool"}) {
      std::filesystem::create_directories(host_.Path(folder));
    }
    WriteText(host_.Path("client.conf"),
              "collector = " + address + "\ninsecure_loopback = yes\n");
    WriteText(host_.Path("etc/clew/clewd.conf"),
              "clew = " + Program("clew") +
                  "\ndisk_free_bytes = 0\nupload = yes\nupload_config = " +
                  host_.Path("client.conf") + "\nreport_period = 1s\n");
    clewd_ = std::make_unique<Process>(
        std::vector<std::string>{Program("clewd"), "--root", host_.root()},
        host_.Path("log"));
  }

  // `clew <line>` to that collector.
  static ProgramOutput Clew(const CollectorProcess& collector,
                            const std::string& line) {
    return cli::RunProgram(
               {"sh", "-c",
                fmt::format("{} {} --insecure-loopback "
                            "--collector {} 2>&1",
                            Program("clew"), line, collector.address())})
        .value_or(ProgramOutput{.exit_status = -1, .text = ""});
  }

  Scratch host_;
  std::unique_ptr<Process> clewd_;
};

TEST_F(HostReportTest, TheCollectorKnowsHowTheDaemonDoes) {
  CollectorProcess process(host_.root(),
                           {"insecure_loopback = yes", "solvers = 0",
                            "clew = /bin/false", "disk_free_bytes_min = 0"});
  ASSERT_TRUE(process.Start());
  StartDaemon(process.address());
  const auto table =
      collector::HostTable::Open(process.data() + "/catalogue.sqlite");
  ASSERT_TRUE(table.has_value());
  const auto rows = [&] { return (*table)->Hosts({}, time(nullptr))->rows; };
  ASSERT_TRUE(WaitUntil([&] { return rows().size() == 1; }))
      << ReadText(host_.Path("log")) << process.log();
  const HostRow row = rows()[0];
  EXPECT_EQ(row.host, "localhost");
  EXPECT_EQ(row.version, CLEW_VERSION);
  EXPECT_EQ(row.state, "off");
  EXPECT_EQ(row.source, "none");
  EXPECT_GT(row.spool_bytes_max, 0u);
  EXPECT_LE(std::abs(row.seen_s - time(nullptr)), 60);
  // As an operator asks for it.
  const ProgramOutput listed = Clew(process, "hosts --json --health fine");
  ASSERT_EQ(listed.exit_status, 0) << listed.text;
  const auto list = nlohmann::json::parse(listed.text, nullptr, false);
  ASSERT_EQ(list["total"], 1) << listed.text;
  EXPECT_EQ(list["hosts"][0]["host"], "localhost");
  EXPECT_EQ(list["hosts"][0]["version"], CLEW_VERSION);
  EXPECT_EQ(list["hosts"][0]["spool_bytes_max"], row.spool_bytes_max);
  EXPECT_THAT(Clew(process, "hosts").text, HasSubstr("1 of 1 hosts"));
  EXPECT_THAT(Clew(process, "hosts --health silent").text,
              HasSubstr("0 of 0 hosts"));
  EXPECT_EQ(Clew(process, "hosts --health ill").exit_status, 2);
  // And again.
  EXPECT_TRUE(WaitUntil([&] { return rows()[0].uptime_s > row.uptime_s; }));
  EXPECT_THAT(ReadText(host_.Path("log")), Not(HasSubstr("report-failed")));
}

TEST_F(HostReportTest, ACollectorThatIsNotThereIsNoErrorOfTheHost) {
  StartDaemon("127.0.0.1:1");
  EXPECT_TRUE(WaitUntil([&] {
    return ReadText(host_.Path("log")).find("report-failed") !=
           std::string::npos;
  }));
}

// Has the calls of the first version of the protocol, of which it answers one.
class FirstCollector final : public pb::Collector::Service {
 public:
  grpc::Status Hello(grpc::ServerContext*, const pb::HelloRequest*,
                     pb::HelloReply* reply) override {
    reply->set_protocol(1);
    ++hellos;
    return grpc::Status::OK;
  }
  std::atomic<int> hellos = 0;
};

TEST_F(HostReportTest, AnEarlierCollectorIsLeftAlone) {
  FirstCollector first;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&first);
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  StartDaemon(fmt::format("127.0.0.1:{}", port));
  EXPECT_TRUE(WaitUntil([&] { return first.hellos >= 2; }));
  EXPECT_THAT(ReadText(host_.Path("log")), Not(HasSubstr("report-failed")));

  ClientOptions options;
  options.address = fmt::format("127.0.0.1:{}", port);
  options.insecure_loopback = true;
  const auto client = Client::Create(options);
  ASSERT_TRUE(client.has_value());
  const auto answer = (*client)->Report({});
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(*answer, ReportAnswer::kUnknownCall);
  clewd_.reset();
  server->Shutdown();
}

}  // namespace
}  // namespace clew::transfer
