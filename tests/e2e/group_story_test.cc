// Goal: the life of a defect as people see it. It is found in one version of a
// program, found again in the next one, resolved, met on a host that still runs
// an old version, and comes back in a later one; who is on call hears of it
// when it is new and when it comes back, and not in between. Method: one story
// by the built programs alone: `clew record`, `clew upload`, `clew group`, the
// collector, its web page, and a receiver of its webhook, which in tools/test
// --all refuses the first attempt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/clew_command.h"
#include "tests/support/wait_until.h"
#include "tests/transfer/collector_process.h"

namespace clew::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

constexpr const char* kSecret = "0123456789abcdef0123456789abcdef";

// What came to the receiver.
struct Call {
  std::string timestamp;
  std::string signature;
  std::string body;
  Json event() const { return Json::parse(body, nullptr, false); }
};

// HMAC-SHA256 over timestamp, dot and body, as the operator guide says; by a
// program that shares nothing with ours but the library.
std::string Signature(const std::string& folder, const Call& call) {
  const std::string file = folder + "/signed";
  std::ofstream(file) << call.timestamp << "." << call.body;
  const ProgramOutput output =
      Run({"openssl", "dgst", "-sha256", "-hmac", kSecret, "-r", file});
  return "v1=" + output.text.substr(0, output.text.find(' '));
}

// Who is on call. Answers at once: who waits too long tries again.
class Receiver {
 public:
  explicit Receiver(bool refuses_first) : refuses_first_(refuses_first) {
    server_.set_read_timeout(kLimitSeconds);
    server_.set_write_timeout(kLimitSeconds);
    server_.Post("/hook", [this](const httplib::Request& request,
                                 httplib::Response& response) {
      response.status = Take(request);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) {
      std::this_thread::yield();
    }
  }
  ~Receiver() {
    server_.stop();
    thread_.join();
  }
  int port() const { return port_; }
  // All of them, with the one that was refused.
  std::vector<Call> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  int Take(const httplib::Request& request) {
    const std::lock_guard lock(mutex_);
    calls_.push_back({.timestamp = request.get_header_value("Clew-Timestamp"),
                      .signature = request.get_header_value("Clew-Signature"),
                      .body = request.body});
    return refuses_first_ && calls_.size() == 1 ? 503 : 200;
  }

  const bool refuses_first_;
  mutable std::mutex mutex_;
  std::vector<Call> calls_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

// Whether the first attempt is refused: the second one is some seconds later.
class GroupStoryTest : public testing::TestWithParam<bool> {
 protected:
  GroupStoryTest()
      : web_port_(transfer::FreePort()),
        collector_(scratch_.Path("."), Configuration()) {}

  std::vector<std::string> Configuration() const {
    std::ofstream(scratch_.Path("secret")) << kSecret << "\n";
    std::filesystem::permissions(scratch_.Path("secret"),
                                 std::filesystem::perms::owner_read);
    return {"insecure_loopback = yes",
            "solvers = 0",
            "disk_free_bytes_min = 0",
            "engineers = localhost",
            fmt::format("analysis_time_max = {}", kOwnLimitSeconds),
            "clew = " + Binary(),
            fmt::format("web = 127.0.0.1:{}", web_port_),
            fmt::format("webhook = http://127.0.0.1:{}/hook", on_call_.port()),
            "webhook_secret = " + scratch_.Path("secret"),
            std::string("webhook_program = ") + CLEW_WEBHOOK};
  }

  ProgramOutput Ask(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--collector", collector_.address(),
                                       "--insecure-loopback"});
    return Clew(arguments);
  }
  Json AskJson(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    const ProgramOutput output = Ask(std::move(arguments));
    EXPECT_EQ(output.exit_status, 0) << output.text;
    return Json::parse(output.text, nullptr, false);
  }
  // The program fails on a host, which sends what it recorded; the collector
  // looks into it.
  void Fail(const std::string& program, int seed) {
    const std::string bundle =
        scratch_.Path(fmt::format("{}.clew", ++bundles_));
    ASSERT_NO_FATAL_FAILURE(RecordFailure(bundle, program, seed));
    ASSERT_EQ(Ask({"upload", bundle}).exit_status, 0);
    ASSERT_TRUE(test::WaitUntil([&] { return Group()["bundles"] == bundles_; }))
        << collector_.log();
  }
  // The one group there is.
  Json Group() const {
    const Json list = AskJson({"group", "list"});
    EXPECT_LE(list["total"], 1) << list;
    return list["total"] == 0 ? Json{{"bundles", 0}} : list["groups"][0];
  }
  std::string Id() const { return Group()["signature"]; }
  std::string Page() const {
    httplib::Client client("127.0.0.1", web_port_);
    client.set_read_timeout(kLimitSeconds);
    const auto page = client.Get(("/groups/" + Id()).c_str());
    return page ? page->body : "";
  }

  const Scratch scratch_;
  Receiver on_call_{GetParam()};
  const uint16_t web_port_;
  transfer::CollectorProcess collector_;
  int bundles_ = 0;
};

TEST_P(GroupStoryTest, ADefectIsFoundResolvedAndComesBack) {
  ASSERT_TRUE(collector_.Start());
  Fail("bank", 1);
  const std::string first = Group()["first_version"];
  EXPECT_EQ(first.size(), 40u) << "its build-id";
  EXPECT_THAT(Group()["title"], HasSubstr("SIGABRT"));

  Fail("next/bank", 1);
  const std::string second = Group()["last_version"];
  EXPECT_NE(second, first);
  EXPECT_EQ(Group()["first_version"], first);
  EXPECT_THAT(Page(), AllOf(HasSubstr("first seen in version"),
                            HasSubstr("title=\"" + first + "\""),
                            HasSubstr("clew group resolve ")));

  const std::string id = Id().substr(0, 10);
  const ProgramOutput resolved =
      Ask({"group", "resolve", id, "--note", "takes the lock, see #12"});
  EXPECT_EQ(resolved.exit_status, 0) << resolved.text;
  EXPECT_THAT(resolved.text, AllOf(HasSubstr("resolved"), HasSubstr("see #12"),
                                   HasSubstr("by localhost")));
  EXPECT_THAT(collector_.log(),
              HasSubstr("event=resolved host=localhost peer="));
  EXPECT_THAT(Page(), AllOf(HasSubstr("class=\"mark resolved\""),
                            HasSubstr("see #12")));

  Fail("bank", 2);
  EXPECT_EQ(Group()["resolved"], true) << "a host that still runs the first";
  EXPECT_EQ(AskJson({"group", "list", "--open"})["total"], 0);

  Fail("later/bank", 1);
  const Json group = Group();
  EXPECT_EQ(group["resolved"], false);
  EXPECT_EQ(group["reopened_in"], group["last_version"]);
  EXPECT_EQ(group["first_version"], first);
  EXPECT_EQ(group["note"], "takes the lock, see #12");
  EXPECT_EQ(AskJson({"group", "show", id})["versions"].size(), 3u);
  EXPECT_THAT(Ask({"group", "list"}).text, HasSubstr("seen again"));
  EXPECT_THAT(Page(), AllOf(HasSubstr("seen again in"),
                            Not(HasSubstr("class=\"mark resolved\""))));

  const size_t refused = GetParam() ? 1 : 0;
  ASSERT_TRUE(test::WaitUntil([&] {
    return on_call_.calls().size() == 2 + refused;
  })) << collector_.log();
  const std::vector<Call> calls = on_call_.calls();
  std::vector<std::string> events;
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].signature, Signature(scratch_.Path("."), calls[i]));
    const Json event = calls[i].event();
    if (i < refused) {
      continue;
    }
    EXPECT_EQ(event["group"], Id());
    events.push_back(event["event"].get<std::string>() + " " +
                     event["version"].get<std::string>());
    if (event["event"] == "new_group") {
      EXPECT_EQ(event["id"], calls[0].event()["id"]) << "the same, tried again";
    }
  }
  EXPECT_THAT(events,
              testing::UnorderedElementsAre(
                  "new_group " + first,
                  "reopened " + group["reopened_in"].get<std::string>()));
}

INSTANTIATE_TEST_SUITE_P(Taken, GroupStoryTest, testing::Values(false));
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, GroupStoryTest, testing::Values(true));

}  // namespace
}  // namespace clew::e2e
