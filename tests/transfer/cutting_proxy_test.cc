// Goal: the proxy passes every byte on in both directions, ends included, cuts
// no later than it says, and always lets go.
// Method: peers that send at the same time, stop reading, end one direction,
// or are not there.
#include "tests/transfer/cutting_proxy.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <string>
#include <thread>

#include "tests/support/loopback.h"
#include "tests/support/wait_until.h"

namespace clew::transfer {
namespace {

constexpr size_t kManyBytes = 8'000'000;  // more than sockets hold

std::string Pattern(size_t bytes, unsigned seed) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) {
    text[i] = static_cast<char>((i * i + seed) >> 5);
  }
  return text;
}

bool SendAll(const Fd& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent =
        send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

// Sends until nobody has taken any for a while; what is then still under way is
// no matter of the tests'.
void FillUp(const Fd& fd) {
  const std::string bytes(65536, 'x');
  pollfd room{.fd = fd.get(), .events = POLLOUT, .revents = 0};
  while (poll(&room, 1, /*timeout=*/500) == 1) {
    ASSERT_GT(
        send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT),
        0);
  }
}

struct Received {
  std::string bytes;
  int error = 0;  // 0: the end
};

Received ReceiveAll(const Fd& fd) {
  Received all;
  char buffer[65536];
  ssize_t got = 0;
  while ((got = recv(fd.get(), buffer, sizeof(buffer), 0)) > 0) {
    all.bytes.append(buffer, static_cast<size_t>(got));
  }
  all.error = got < 0 ? errno : 0;
  return all;
}

class CuttingProxyTest : public testing::Test {
 protected:
  // Both sides of a connection through `proxy`; none waits for ever.
  void Open(const CuttingProxy& proxy) {
    client_ = clew::test::TcpSocket();
    ASSERT_TRUE(clew::test::Connect(client_, proxy.port()));
    server_ = Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_GE(server_.get(), 0);
    const timeval limit{.tv_sec = clew::test::kWaitMax.count(), .tv_usec = 0};
    for (const Fd* fd : {&client_, &server_}) {
      for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
        ASSERT_EQ(
            setsockopt(fd->get(), SOL_SOCKET, option, &limit, sizeof(limit)),
            0);
      }
    }
  }

  uint16_t port_ = 0;
  Fd listener_ = clew::test::ListenAnywhere(port_);
  Fd client_;
  Fd server_;
};

TEST_F(CuttingProxyTest, PassesAllAndTheEndOfEachDirection) {
  const CuttingProxy proxy(port_, 0, 1);
  Open(proxy);
  const std::string up = Pattern(kManyBytes, 1);
  const std::string down = Pattern(kManyBytes, 2);
  std::thread server([&] {
    const Received got = ReceiveAll(server_);
    EXPECT_EQ(got.error, 0);
    EXPECT_TRUE(got.bytes == up) << got.bytes.size();
    EXPECT_TRUE(SendAll(server_, down)) << "after the client's end";
    server_.Close();
  });
  EXPECT_TRUE(SendAll(client_, up));
  EXPECT_EQ(shutdown(client_.get(), SHUT_WR), 0);
  const Received got = ReceiveAll(client_);
  server.join();
  EXPECT_EQ(got.error, 0);
  EXPECT_TRUE(got.bytes == down) << got.bytes.size();
  EXPECT_EQ(proxy.cuts(), 0u);
  EXPECT_EQ(proxy.connections(), 1u);
}

TEST_F(CuttingProxyTest, AFullDirectionDoesNotStopTheOther) {
  const CuttingProxy proxy(port_, 0, 1);
  Open(proxy);
  FillUp(client_);
  const std::string down = Pattern(kManyBytes, 2);
  std::thread sender([&] { EXPECT_TRUE(SendAll(server_, down)); });
  std::string got(kManyBytes, '\0');
  EXPECT_EQ(recv(client_.get(), got.data(), got.size(), MSG_WAITALL),
            static_cast<ssize_t>(kManyBytes));
  EXPECT_TRUE(got == down);
  sender.join();
}

TEST_F(CuttingProxyTest, CutsWithAResetBeforeTwiceTheMean) {
  constexpr uint64_t kMean = 1000;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CuttingProxy proxy(port_, kMean, seed);
    Open(proxy);
    std::thread sender([&] { (void)SendAll(client_, Pattern(100'000, 1)); });
    const Received got = ReceiveAll(server_);
    sender.join();
    EXPECT_EQ(got.error, ECONNRESET) << seed;
    EXPECT_LE(got.bytes.size(), 2 * kMean) << seed;
    EXPECT_EQ(proxy.cuts(), 1u) << seed;
  }
}

TEST_F(CuttingProxyTest, WhoIsNotThereIsAResetAndNoCut) {
  uint16_t port = 0;
  const Fd nobody = clew::test::BindAnywhere(port);
  const CuttingProxy proxy(port, 1000, 1);
  const Fd client = clew::test::TcpSocket();
  ASSERT_TRUE(clew::test::Connect(client, proxy.port()));
  EXPECT_EQ(ReceiveAll(client).error, ECONNRESET);
  EXPECT_EQ(proxy.cuts(), 0u);
}

// One that waited for them would not come to its end.
TEST_F(CuttingProxyTest, LetsGoOfPeersThatNeitherReadNorEnd) {
  {
    CuttingProxy proxy(port_, 0, 1);
    Open(proxy);
    FillUp(client_);
  }
  EXPECT_EQ(ReceiveAll(client_).error, ECONNRESET);
  EXPECT_FALSE(SendAll(client_, "more"));
}

}  // namespace
}  // namespace clew::transfer
