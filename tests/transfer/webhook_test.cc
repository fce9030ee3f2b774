// Goal: an operator who configures a webhook is told of a new group by the
// built collector, before and after a restart, and can try it.
// Method: the built programs, a receiver on loopback, hand-picked.
#include "collector/notify/webhook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "cli/run_program.h"
#include "proto/bundle.pb.h"
#include "tests/collector/samples.h"
#include "tests/support/wait_until.h"
#include "tests/transfer/collector_process.h"
#include "transfer/client.h"

namespace clew::transfer {
namespace {

using collector::TempFolder;
using test::kWaitMax;
using test::WaitUntil;
using testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kSecret = "0123456789abcdef0123456789abcdef";
constexpr const char* kOtherSecret = "another secret, as the receiver has it";

class CollectorWebhookTest : public testing::Test {
 protected:
  CollectorWebhookTest() {
    // The confined child that calls has low priority.
    server_.set_read_timeout(kWaitMax);
    server_.set_write_timeout(kWaitMax);
    server_.set_keep_alive_timeout(kWaitMax.count());
    server_.Post("/hook", [this](const httplib::Request& request,
                                 httplib::Response& response) {
      const std::lock_guard lock(mutex_);
      const std::string signature = collector::WebhookSignature(
          secret_,
          std::atoll(request.get_header_value("Clew-Timestamp").c_str()),
          request.body);
      response.status =
          request.get_header_value("Clew-Signature") == signature ? 200 : 401;
      if (response.status == 200) {
        events_.push_back(Json::parse(request.body, nullptr, false));
      }
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) {
      std::this_thread::yield();
    }
    WriteSecret(kSecret);
    process_ = std::make_unique<CollectorProcess>(
        folder_.path(),
        std::vector<std::string>{
            "insecure_loopback = yes", "solvers = 0", "clew = /bin/false",
            "disk_free_bytes_min = 0", "web_url = https://clew.example.com",
            fmt::format("webhook = http://127.0.0.1:{}/hook", port_),
            "webhook_secret = " + folder_ / "secret",
            std::string("webhook_program = ") + CLEW_WEBHOOK});
  }
  ~CollectorWebhookTest() override {
    process_.reset();
    server_.stop();
    thread_.join();
  }

  void WriteSecret(const char* secret) {
    std::ofstream(folder_ / "secret") << secret << "\n";
    chmod((folder_ / "secret").c_str(), 0600);
  }
  void ReceiverHas(const char* secret) {
    const std::lock_guard lock(mutex_);
    secret_ = secret;
  }
  // A group of its own for each program.
  void Upload(const std::string& program) {
    pb::Manifest manifest;
    manifest.set_format_version(1);
    manifest.add_command(program);
    collector::WriteFiles(
        folder_ / program,
        {{"manifest.pb", manifest.SerializeAsString()}, {"perf.data", "p"}});
    ClientOptions options;
    options.address = process_->address();
    options.insecure_loopback = true;
    const auto client = Client::Create(options);
    ASSERT_TRUE(client.has_value()) << client.error().message;
    const auto sent = (*client)->Upload(folder_ / program, nullptr, nullptr);
    ASSERT_TRUE(sent.has_value()) << sent.error().message;
  }
  std::vector<Json> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  cli::ProgramOutput TestWebhook() const {
    return cli::RunProgram({"sh", "-c",
                            CollectorBinary() + " --config " +
                                process_->config_file() + " test-webhook 2>&1"})
        .value_or(cli::ProgramOutput{.exit_status = -1, .text = ""});
  }

  TempFolder folder_;
  mutable std::mutex mutex_;
  std::string secret_ = kSecret;
  std::vector<Json> events_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  std::unique_ptr<CollectorProcess> process_;
};

TEST_F(CollectorWebhookTest, ANewGroupIsTold) {
  ASSERT_TRUE(process_->Start());
  Upload("bank");
  ASSERT_TRUE(WaitUntil([&] { return events().size() == 1; }))
      << process_->log();
  const Json event = events()[0];
  EXPECT_EQ(event["event"], "new_group");
  EXPECT_EQ(event["program"], "bank");
  EXPECT_EQ(event["host"], "localhost");
  EXPECT_EQ(event["url"], "https://clew.example.com/groups/" +
                              event["group"].get<std::string>());
}

// It waits for as long as a collector does before the second attempt.
class MoreCollectorWebhookTest : public CollectorWebhookTest {};

TEST_F(MoreCollectorWebhookTest, WhatCouldNotBeSentIsAfterTheNextStart) {
  ReceiverHas(kOtherSecret);
  ASSERT_TRUE(process_->Start());
  Upload("bank");
  EXPECT_TRUE(WaitUntil([&] {
    return process_->log().find("event=notification_failed") !=
           std::string::npos;
  }));
  EXPECT_THAT(process_->log(), HasSubstr("the receiver answered 401"));
  process_->Kill();
  WriteSecret(kOtherSecret);
  ASSERT_TRUE(process_->Start());
  EXPECT_TRUE(WaitUntil([&] { return events().size() == 1; }))
      << process_->log();
}

TEST_F(CollectorWebhookTest, ASecretIsReadAgainOnSighup) {
  ASSERT_TRUE(process_->Start());
  ReceiverHas(kOtherSecret);
  WriteSecret(kOtherSecret);
  process_->Signal(SIGHUP);
  ASSERT_TRUE(WaitUntil([&] {
    return process_->log().find("event=reloaded") != std::string::npos;
  }));
  Upload("bank");
  EXPECT_TRUE(WaitUntil([&] { return events().size() == 1; }))
      << process_->log();
}

TEST_F(CollectorWebhookTest, AnOperatorCanTryIt) {
  const auto sent = TestWebhook();
  EXPECT_EQ(sent.exit_status, 0) << sent.text;
  ASSERT_EQ(events().size(), 1u) << sent.text;
  EXPECT_EQ(events()[0]["event"], "test");
  ReceiverHas(kOtherSecret);
  const auto refused = TestWebhook();
  EXPECT_EQ(refused.exit_status, 3) << refused.text;
  EXPECT_THAT(refused.text, HasSubstr("the receiver answered 401"));
  chmod((folder_ / "secret").c_str(), 0644);
  EXPECT_EQ(TestWebhook().exit_status, 2);
  EXPECT_FALSE(process_->Start());
}

}  // namespace
}  // namespace clew::transfer
