// Goal: notifications arrive signed, once they can; what the receiver does
// holds nobody up, and nothing goes where the url does not say.
// Method: hand-picked; receivers on loopback that check the signature, refuse,
// redirect, talk without end or never answer; the built clew-webhook sends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "collector/notify/notifier.h"
#include "common/check.h"
#include "common/text/hex.h"
#include "tests/collector/catalogue/catalogue_model.h"
#include "tests/collector/samples.h"
#include "tests/support/loopback.h"
#include "tests/support/wait_until.h"
#include "tests/transfer/certificates.h"

namespace clew::collector {
namespace {

using clew::test::kWaitMax;
using clew::test::WaitUntil;
using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kSecret = "a secret of this test";
constexpr int64_t kClockStart_s = 1'800'000'000;

struct Received {
  std::string body;
  std::string signature;
  int64_t time_s = 0;
};

// Confined children have low priority and may be slow to speak.
void WaitForSlowClients(httplib::Server& server) {
  server.set_read_timeout(kWaitMax);
  server.set_write_timeout(kWaitMax);
  server.set_keep_alive_timeout(kWaitMax.count());
}

// A server of HTTP on loopback that notes what is posted to /hook.
class Receiver {
 public:
  using Answer = std::function<void(size_t number, const Received& got,
                                    httplib::Response& response)>;
  explicit Receiver(Answer answer) : answer_(std::move(answer)) {
    WaitForSlowClients(server_);
    server_.Post("/hook", [this](const httplib::Request& request,
                                 httplib::Response& response) {
      const Received got{
          .body = request.body,
          .signature = request.get_header_value("Clew-Signature"),
          .time_s =
              std::atoll(request.get_header_value("Clew-Timestamp").c_str())};
      const std::lock_guard lock(mutex_);
      received_.push_back(got);
      answer_(received_.size(), got, response);
    });
    server_.Post("/elsewhere", [this](const httplib::Request&,
                                      httplib::Response&) { ++elsewhere_; });
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
  std::string url() const {
    return fmt::format("http://127.0.0.1:{}/hook", port_);
  }
  std::vector<Received> received() const {
    const std::lock_guard lock(mutex_);
    return received_;
  }
  int elsewhere() const { return elsewhere_; }

 private:
  const Answer answer_;
  httplib::Server server_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<Received> received_;
  std::atomic<int> elsewhere_ = 0;
  std::thread thread_;
};

// A catalogue whose events are sent to a url by a notifier whose clock is the
// test's.
class WebhookTest : public testing::Test {
 protected:
  WebhookTest() { Open(); }

  std::string path() const { return folder_ / "catalogue.sqlite"; }
  void Open() {
    catalogue_.reset();
    auto opened = Catalogue::Open(path());
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    catalogue_ = *std::move(opened);
  }
  NotificationQueue Queue(uint64_t most = 10) {
    auto queue = NotificationQueue::Open(path(), most);
    CLEW_CHECK(queue.has_value(), "{}", queue.error().message);
    return *std::move(queue);
  }
  uint64_t Waiting() { return Queue().Count()->waiting; }

  // The first bundle of a group, received now or `age_s` ago.
  void MakeGroup(uint64_t number, int64_t age_s = 0) {
    NewBundle bundle = BundleOf(number);
    bundle.received_at_s = time(nullptr) - age_s;
    bundle.command = "/usr/bin/bank --fast";
    bundle.failure = "signal 6 (Aborted)";
    ASSERT_TRUE(catalogue_->Add(bundle));
    Analyse(number, number);
  }
  void Analyse(uint64_t bundle, uint64_t group) {
    ASSERT_TRUE(
        catalogue_->SetAnalysis(IdOf(bundle), {.signature = SignatureOf(group),
                                               .title = "SIGABRT in Deposit",
                                               .backtraces = ""}));
  }

  void Start(const std::string& url, uint64_t attempts_max = 5) {
    Notifier::Options options;
    options.webhook.url = url;
    options.webhook.program = CLEW_WEBHOOK;
    options.webhook.folder = folder_ / "request";
    options.webhook.ca_file = ca_file_;
    options.webhook.time_limit_s = time_limit_s_;
    options.secret = kSecret;
    options.page_url = "https://clew.example.com/";
    options.attempts_max = attempts_max;
    options.look_s = 0.01;
    options.wall_s = [this] { return now_s_.load(); };
    options.failed = [this](const Notification&, std::string_view why,
                            bool given_up) {
      const std::lock_guard lock(mutex_);
      failures_.push_back(std::string(why) + (given_up ? ", given up" : ""));
    };
    options.trouble = [](std::string_view why) { ADD_FAILURE() << why; };
    auto started = Notifier::Start(options, Queue());
    ASSERT_TRUE(started.has_value()) << started.error().message;
    notifier_ = *std::move(started);
  }
  std::vector<std::string> failures() const {
    const std::lock_guard lock(mutex_);
    return failures_;
  }
  // The only notification has failed so often and was put off: from here on the
  // clock may go on.
  bool IsPutOffAfter(uint64_t attempts) {
    const auto next = Queue().Next(now_s_ + int64_t{kNotificationPauseMax_s});
    return failures().size() == attempts && next && *next &&
           (*next)->attempts == attempts;
  }

  TempFolder folder_;
  std::unique_ptr<Catalogue> catalogue_;
  std::atomic<int64_t> now_s_ = kClockStart_s;
  std::string ca_file_;
  double time_limit_s_ = kWaitMax.count();
  mutable std::mutex mutex_;
  std::vector<std::string> failures_;
  std::unique_ptr<Notifier> notifier_;
};

// Source: RFC 4231, "Test Case 2".
TEST(WebhookSignatureTest, IsHmacSha256OfTimeAndBody) {
  const auto bytes = [](std::string_view text) {
    return std::as_bytes(std::span(text));
  };
  EXPECT_EQ(ToHex(transfer::HmacSha256(bytes("Jefe"),
                                       bytes("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c7"
            "5a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(WebhookSignature("key", 17, "{}"),
            "v1=" + ToHex(transfer::HmacSha256(bytes("key"), bytes("17.{}"))));
}

TEST(WebhookUrlTest, IsHttpAndNothingElse) {
  for (const char* url :
       {"http://a", "https://a.example.com:8443/b?c=d@e", "http://[::1]:80/"}) {
    EXPECT_TRUE(CheckWebhookUrl(url)) << url;
  }
  for (const char* url : {"", "http://", "ftp://a/", "file:///etc/passwd",
                          "//a", "a", "https://user:password@a/", "http://a b",
                          "http://a\r\nb: c", "gopher://a", "http:a"}) {
    EXPECT_FALSE(CheckWebhookUrl(url)) << url;
  }
  EXPECT_FALSE(CheckWebhookUrl("http://" + std::string(5000, 'a')));
}

TEST(WebhookSecretTest, IsOfAFileThatOthersCannotRead) {
  const TempFolder folder;
  const std::string path = folder / "secret";
  WriteFiles(folder.path(), {{"secret", "0123456789abcdef0123\n"}});
  chmod(path.c_str(), 0640);
  EXPECT_EQ(ReadWebhookSecret(path).value_or(""), "0123456789abcdef0123");
  chmod(path.c_str(), 0644);
  EXPECT_THAT(ReadWebhookSecret(path).error().message, HasSubstr("mode is"));
  WriteFiles(folder.path(), {{"secret", "short\n"}});
  chmod(path.c_str(), 0600);
  EXPECT_THAT(ReadWebhookSecret(path).error().message,
              HasSubstr("a secret of 5 bytes"));
  EXPECT_FALSE(ReadWebhookSecret(folder.path()).has_value());
  EXPECT_FALSE(ReadWebhookSecret(folder / "none").has_value());
}

TEST(WebhookPauseTest, GrowsToALimitAndVaries) {
  Random random(1);
  std::set<uint64_t> seen;
  for (uint64_t attempts = 1; attempts < 100; ++attempts) {
    const uint64_t longest =
        attempts < 10
            ? std::min(uint64_t{10} << (attempts - 1), kNotificationPauseMax_s)
            : kNotificationPauseMax_s;
    const uint64_t pause_s = PauseAfter(attempts, 10, random);
    EXPECT_LE(pause_s, longest) << attempts;
    EXPECT_GE(pause_s, longest / 2) << attempts;
    seen.insert(pause_s);
  }
  EXPECT_GT(seen.size(), 20u);
}

TEST_F(WebhookTest, NothingIsQueuedUnlessSomebodyWantsToKnow) {
  MakeGroup(1);
  EXPECT_EQ(Queue(10).Count()->waiting, 0u);
  MakeGroup(2);
  EXPECT_EQ(Queue(10).Count()->waiting, 1u);
  EXPECT_EQ(Queue(0).Count()->waiting, 0u);
  MakeGroup(3);
  EXPECT_EQ(Queue(10).Count()->waiting, 0u);
}

TEST_F(WebhookTest, OnlyTheFirstBundleOfAGroupIsNews) {
  (void)Queue();
  MakeGroup(1);
  NewBundle second = BundleOf(2);
  second.received_at_s = time(nullptr);
  ASSERT_TRUE(catalogue_->Add(second));
  Analyse(2, 1);
  Analyse(1, 1);  // once more
  EXPECT_EQ(Waiting(), 1u);
  // The catalogue was lost: its bundles come from the store again.
  MakeGroup(3, kNewsAgeMax_s + 10);
  EXPECT_EQ(Waiting(), 1u);
}

TEST_F(WebhookTest, TheQueueIsBoundedAndCountsWhatHadNoRoom) {
  (void)Queue(2);
  for (uint64_t i = 1; i <= 5; ++i) {
    MakeGroup(i);
  }
  MakeGroup(6, kNewsAgeMax_s + 10);
  const auto counts = Queue(2).Count();
  EXPECT_EQ(counts->waiting, 2u);
  EXPECT_EQ(counts->dropped, 3u);
}

TEST_F(WebhookTest, ArrivesSignedAfterTheReceiverFailedTwice) {
  const Receiver receiver(
      [](size_t number, const Received&, httplib::Response& response) {
        response.status = number <= 2 ? 500 : 204;
      });
  Start(receiver.url());
  MakeGroup(1);
  ASSERT_TRUE(WaitUntil([&] { return IsPutOffAfter(1); }));
  // One that is sent before its time would come now.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(receiver.received().size(), 1u);
  now_s_ += 10;
  ASSERT_TRUE(WaitUntil([&] { return IsPutOffAfter(2); }));
  now_s_ += 20;
  ASSERT_TRUE(WaitUntil([&] { return notifier_->counts().sent == 1; }));
  ASSERT_TRUE(WaitUntil([&] { return notifier_->counts().waiting == 0; }));

  const auto received = receiver.received();
  ASSERT_EQ(received.size(), 3u);
  for (const Received& each : received) {
    EXPECT_EQ(each.signature,
              WebhookSignature(kSecret, each.time_s, each.body));
    EXPECT_EQ(each.body, received[0].body);
  }
  EXPECT_EQ(received[2].time_s, kClockStart_s + 30);
  EXPECT_EQ(notifier_->counts().failed, 2u);
  const Json body = Json::parse(received[0].body, nullptr, false);
  EXPECT_EQ(body["event"], "new_group");
  EXPECT_EQ(body["group"], SignatureOf(1));
  EXPECT_EQ(body["title"], "SIGABRT in Deposit");
  EXPECT_EQ(body["program"], "bank");
  EXPECT_EQ(body["signal"], "signal 6 (Aborted)");
  EXPECT_EQ(body["host"], BundleOf(1).host);
  EXPECT_EQ(body["bundle"], IdOf(1).hex());
  EXPECT_EQ(body["bundles"], 1);
  EXPECT_TRUE(body["version"].is_null());
  EXPECT_EQ(body["url"], "https://clew.example.com/groups/" + SignatureOf(1));
  EXPECT_EQ(body["id"].get<std::string>().size(), 64u);
}

TEST_F(WebhookTest, AWrongSecretIsNoticedAndGivenUpInTheEnd) {
  const Receiver receiver([](size_t, const Received& got,
                             httplib::Response& response) {
    const bool right =
        got.signature == WebhookSignature("another one", got.time_s, got.body);
    response.status = right ? 200 : 401;
  });
  Start(receiver.url(), /*attempts_max=*/2);
  MakeGroup(1);
  ASSERT_TRUE(WaitUntil([&] { return IsPutOffAfter(1); }));
  now_s_ += 10;
  ASSERT_TRUE(WaitUntil([&] { return failures().size() == 2; }));
  EXPECT_THAT(failures(),
              ElementsAre("the receiver answered 401, wanted 200 to 299",
                          "the receiver answered 401, wanted 200 to 299, "
                          "given up"));
  ASSERT_TRUE(WaitUntil([&] { return notifier_->counts().waiting == 0; }));
  EXPECT_EQ(notifier_->counts().given_up, 1u);
  EXPECT_EQ(notifier_->counts().sent, 0u);

  notifier_->SetSecret("another one");
  MakeGroup(2);
  EXPECT_TRUE(WaitUntil([&] { return notifier_->counts().sent == 1; }));
}

TEST_F(WebhookTest, AReceiverThatNeverAnswersHoldsNobodyUp) {
  uint16_t port = 0;
  const Fd listening = clew::test::ListenAnywhere(port);
  const std::string url = fmt::format("http://127.0.0.1:{}/", port);
  Start(url);
  MakeGroup(1);
  pollfd called{.fd = listening.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&called, 1, static_cast<int>(kWaitMax.count() * 1000)), 1);
  for (uint64_t i = 2; i < 10; ++i) {
    MakeGroup(i);
  }
  EXPECT_EQ(failures().size(), 0u) << "the first attempt is at work";
  notifier_->Stop();
  EXPECT_EQ(failures().size(), 0u) << "it was broken off";
  EXPECT_EQ(notifier_->counts().sent, 0u);
  notifier_.reset();

  // All are still there for the next start.
  Open();
  EXPECT_EQ(Waiting(), 9u);
  time_limit_s_ = 0.3;
  Start(url);
  ASSERT_TRUE(WaitUntil([&] { return !failures().empty(); }));
  EXPECT_THAT(failures()[0], HasSubstr("wall-clock limit"));
}

TEST_F(WebhookTest, GoesNowhereElse) {
  const Receiver receiver(
      [](size_t, const Received&, httplib::Response& response) {
        response.set_redirect("/elsewhere", 307);
      });
  Start(receiver.url());
  MakeGroup(1);
  ASSERT_TRUE(WaitUntil([&] { return !failures().empty(); }));
  EXPECT_EQ(failures()[0], "the receiver answered 307, wanted 200 to 299");
  EXPECT_EQ(receiver.elsewhere(), 0);
}

TEST_F(WebhookTest, AnAnswerWithoutEndIsAnAnswer) {
  const Receiver receiver(
      [](size_t, const Received&, httplib::Response& response) {
        response.set_chunked_content_provider(
            "text/plain", [](size_t, httplib::DataSink& sink) {
              const std::string part(1000, 'x');
              return sink.write(part.data(), part.size());
            });
      });
  Start(receiver.url());
  MakeGroup(1);
  EXPECT_TRUE(WaitUntil([&] { return notifier_->counts().sent == 1; }));
}

TEST_F(WebhookTest, OverTlsOnlyToWhomAnAuthorityVouchesFor) {
  const transfer::TestAuthority authority(folder_.path(), "ca");
  const transfer::TestAuthority other(folder_.path(), "other");
  authority.Issue("receiver", "receiver", "subjectAltName=IP:127.0.0.1");
  httplib::SSLServer server(authority.PathOf("receiver", "crt").c_str(),
                            authority.PathOf("receiver", "key").c_str());
  WaitForSlowClients(server);
  std::atomic<int> posted = 0;
  server.Post("/hook",
              [&](const httplib::Request&, httplib::Response&) { ++posted; });
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread thread([&] { server.listen_after_bind(); });
  while (!server.is_running()) {
    std::this_thread::yield();
  }
  const std::string url = fmt::format("https://127.0.0.1:{}/hook", port);
  ca_file_ = other.cert();
  Start(url);
  MakeGroup(1);
  EXPECT_TRUE(WaitUntil([&] { return !failures().empty(); }));
  EXPECT_THAT(failures(), ElementsAre(HasSubstr("certificate")));
  EXPECT_EQ(posted, 0);
  notifier_.reset();  // it has put that off

  ca_file_ = authority.cert();
  Start(url);
  now_s_ += kNotificationPauseMax_s;
  EXPECT_TRUE(WaitUntil([&] { return notifier_->counts().sent == 1; }));
  EXPECT_EQ(posted, 1);
  server.stop();
  thread.join();
}

TEST_F(WebhookTest, SaysThatNobodyListens) {
  uint16_t port = 0;
  const Fd nobody = clew::test::BindAnywhere(port);
  Start(fmt::format("http://127.0.0.1:{}/", port));
  MakeGroup(1);
  ASSERT_TRUE(WaitUntil([&] { return !failures().empty(); }));
  EXPECT_THAT(failures()[0], HasSubstr(fmt::format("127.0.0.1 port {}", port)));
}

}  // namespace
}  // namespace clew::collector
