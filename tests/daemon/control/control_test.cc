// Goal: the socket answers what it is asked, hands descriptors over, and cuts
// off clients that are too slow, too many or send what is not a request;
// nothing of that disturbs another client.
// Method: real sockets in one loop; clients in a thread.
#include "daemon/control/control.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <future>
#include <string>
#include <thread>

#include "common/check.h"
#include "tests/daemon/support.h"

namespace clew::daemon {
namespace {

using test::kHangMs;
using test::RunUntil;
using test::Scratch;

constexpr uint64_t kShortMs = 100;

class Handler final : public ControlHandler {
 public:
  Answer OnRequest(ConnectionId, const Peer& peer,
                   const Request& request) override {
    EXPECT_EQ(peer.user, geteuid());
    EXPECT_EQ(peer.process, getpid());
    Answer answer{.line = OkReply(), .descriptor = {}, .hold = false};
    if (std::holds_alternative<CoreRequest>(request)) {
      answer.descriptor = Fd(dup(core));
      answer.hold = true;
    }
    if (std::holds_alternative<UnitsRequest>(request)) {
      answer.line =
          "{\"ok\":true,\"x\":\"" + std::string(200'000, 'x') + "\"}\n";
    }
    ++requests;
    return answer;
  }
  void OnClosed(ConnectionId) override { ++closed; }
  int core = -1;
  int requests = 0;
  int closed = 0;
};

class ControlTest : public testing::Test {
 protected:
  void SetUp() override { Open(kHangMs); }
  // In place of the one before.
  void Open(uint64_t patience_ms) {
    server_.reset();
    auto server = ControlServer::Open(
        *loop_, handler_,
        {.path = path(), .group = "clew", .patience_ms = patience_ms});
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = std::move(*server);
  }
  std::string path() const { return scratch_.Path("run/clewd.sock"); }

  Fd Connect() const {
    Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = test::SocketAddress(path());
    CLEW_CHECK(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                       sizeof(address)) == 0,
               "no server");
    return fd;
  }
  // All that comes until the end or a newline.
  static std::string ReadLine(int fd) {
    std::string line;
    char c = 0;
    while (!line.ends_with('\n') && recv(fd, &c, 1, 0) == 1) {
      line += c;
    }
    return line;
  }
  // Runs the loop while `client` works in another thread.
  template <class Client>
  auto Serve(const Client& client) {
    auto result = std::async(std::launch::async, client);
    EXPECT_TRUE(RunUntil(*loop_, [&] {
      return result.wait_for(std::chrono::seconds(0)) ==
             std::future_status::ready;
    }));
    return result.get();
  }

  Scratch scratch_;
  std::unique_ptr<Loop> loop_ = *Loop::Make(SystemClock());
  Handler handler_;
  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlTest, AnswersAlsoWhatIsLong) {
  const auto short_reply =
      Serve([&] { return Ask(path(), StatusRequest(), kHangMs); });
  ASSERT_TRUE(short_reply.has_value()) << short_reply.error().message;
  const auto long_reply =
      Serve([&] { return Ask(path(), UnitsRequest(), kHangMs); });
  ASSERT_TRUE(long_reply.has_value()) << long_reply.error().message;
  EXPECT_GT(long_reply->size(), 200'000u);
}

TEST_F(ControlTest, NoDaemonIsAnErrorThatSaysWhatToDo) {
  server_.reset();
  const auto reply = Ask(path(), StatusRequest(), kHangMs);
  ASSERT_FALSE(reply.has_value());
  EXPECT_NE(reply.error().message.find("systemctl status clewd"),
            std::string::npos)
      << reply.error().message;
}

TEST_F(ControlTest, ASecondServerIsRefusedAndADeadOnesSocketReplaced) {
  const auto second = ControlServer::Open(*loop_, handler_, {.path = path()});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kInvalidArgument);
  server_.reset();
  test::WriteText(path(), "");  // as a killed one leaves it
  EXPECT_TRUE(
      ControlServer::Open(*loop_, handler_, {.path = path()}).has_value());
}

TEST_F(ControlTest, HandsADescriptorOver) {
  Open(kShortMs);
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe(ends.data()), 0);
  handler_.core = ends[1];
  Fd client = Connect();
  const std::string line = FormatRequest(CoreRequest{1, 1, 6, 0, "a"});
  ASSERT_EQ(send(client.get(), line.data(), line.size(), 0),
            static_cast<ssize_t>(line.size()));
  ASSERT_TRUE(RunUntil(*loop_, [&] { return handler_.requests == 1; }));
  std::array<char, 256> bytes = {};
  iovec part = {bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ASSERT_GT(recvmsg(client.get(), &message, 0), 0);
  ASSERT_NE(CMSG_FIRSTHDR(&message), nullptr);
  int passed = -1;
  std::memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(passed));
  EXPECT_EQ(write(passed, "core", 4), 4);
  EXPECT_EQ(read(ends[0], bytes.data(), 10), 4);
  close(passed);
  // Held: no time limit, until it goes by itself.
  EXPECT_FALSE(
      RunUntil(*loop_, [&] { return handler_.closed > 0; }, 2 * kShortMs));
  client.Close();
  EXPECT_TRUE(RunUntil(*loop_, [&] { return handler_.closed == 1; }));
}

TEST_F(ControlTest, WhoSendsNothingOrHalfALineIsCutOff) {
  Open(kShortMs);
  const Fd silent = Connect();
  const Fd half = Connect();
  ASSERT_EQ(send(half.get(), "{\"do\"", 5, 0), 5);
  EXPECT_TRUE(RunUntil(*loop_, [&] { return handler_.closed == 2; }));
  EXPECT_EQ(ReadLine(half.get()), "");
}

TEST_F(ControlTest, WhatIsNoRequestIsAnsweredAndEndsTheConnection) {
  for (const std::string& sent :
       {std::string("nonsense\n"), std::string(kRequestBytesMax + 1, 'x')}) {
    const Fd client = Connect();
    ASSERT_EQ(send(client.get(), sent.data(), sent.size(), 0),
              static_cast<ssize_t>(sent.size()));
    const std::string reply = Serve([&] { return ReadLine(client.get()); });
    EXPECT_NE(reply.find("\"code\":\"invalid\""), std::string::npos) << reply;
    EXPECT_EQ(Serve([&] { return ReadLine(client.get()); }), "");
  }
  EXPECT_EQ(handler_.requests, 0);
}

TEST_F(ControlTest, TooManyAreToldSoAndTheOthersGoOn) {
  std::vector<Fd> held;
  held.reserve(ControlServer::kClientsMax);
  for (size_t i = 0; i < ControlServer::kClientsMax; ++i) {
    held.push_back(Connect());
  }
  const Fd more = Connect();
  const std::string reply = Serve([&] { return ReadLine(more.get()); });
  EXPECT_NE(reply.find("too many"), std::string::npos) << reply;
  EXPECT_EQ(server_->refused(), 1u);
  const std::string line = FormatRequest(StatusRequest());
  ASSERT_GT(send(held[0].get(), line.data(), line.size(), 0), 0);
  EXPECT_EQ(Serve([&] { return ReadLine(held[0].get()); }), OkReply());
}

}  // namespace
}  // namespace clew::daemon
