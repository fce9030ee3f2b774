// Goal: so many connections are held of one address and in all; strangers push
// out strangers, the oldest first, and never somebody who is known.
// Method: hand-picked; sockets of the addresses 127.0.0.x.
#include "collector/service/connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collector/socket.h"
#include "tests/support/wait_until.h"

namespace clew::collector {
namespace {

sockaddr_in AddressOf(int last, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x7f000000U + static_cast<unsigned>(last));
  address.sin_port = htons(port);
  return address;
}

class ConnectionsTest : public testing::Test {
 protected:
  // What is handed on stays open, as with gRPC, until its client ends it.
  void Start(const ConnectionLimits& limits) {
    auto listening = ListenOn({.host = "127.0.0.1", .port = 0});
    ASSERT_TRUE(listening.has_value()) << listening.error().message;
    port_ = *PortOf(*listening);
    // One that is there already is handed on once it is known by what.
    const Fd early(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in to = AddressOf(1, port_);
    ASSERT_EQ(
        connect(early.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to),
        0);
    auto made = Connections::Make(*std::move(listening), limits, [&](Fd fd) {
      const std::lock_guard lock(mutex_);
      EXPECT_NE(connections_, nullptr);
      taken_.push_back(std::move(fd));
      changed_.notify_all();
    });
    ASSERT_TRUE(made.has_value()) << made.error().message;
    connections_ = std::move(*made);
    std::unique_lock lock(mutex_);
    connections_->Begin();
    ASSERT_TRUE(changed_.wait_for(lock, clew::test::kWaitMax,
                                  [&] { return taken_.size() == 1; }));
    taken_.clear();
  }
  // From 127.0.0.`last`; returns when the other side has taken or ended it.
  Fd Connect(int last, bool is_taken = true) {
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in from = AddressOf(last, 0);
    const sockaddr_in to = AddressOf(1, port_);
    EXPECT_EQ(
        bind(fd.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from),
        0);
    std::unique_lock lock(mutex_);
    const size_t before = taken_.size();
    EXPECT_EQ(
        connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to),
        0);
    if (is_taken) {
      EXPECT_TRUE(changed_.wait_for(lock, clew::test::kWaitMax, [&] {
        return taken_.size() == before + 1;
      }));
    } else {
      lock.unlock();
      EXPECT_TRUE(Ends(fd));
    }
    return fd;
  }
  void Identify(const Fd& client) const {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    ASSERT_EQ(
        getsockname(client.get(), reinterpret_cast<sockaddr*>(&from), &size),
        0);
    const unsigned last = ntohl(from.sin_addr.s_addr) & 255;
    connections_->Identified("ipv4:127.0.0." + std::to_string(last) + ":" +
                             std::to_string(ntohs(from.sin_port)));
  }
  static bool IsEnded(const Fd& client) {
    pollfd wait{.fd = client.get(), .events = POLLIN, .revents = 0};
    return poll(&wait, 1, 0) == 1;
  }
  // The other side has ended it; this one may hear of that later.
  static bool Ends(const Fd& client) {
    return clew::test::WaitUntil([&] { return IsEnded(client); });
  }

  uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Fd> taken_;
  std::unique_ptr<Connections> connections_;  // last: its thread uses the rest
};

TEST_F(ConnectionsTest, OfOneAddressTheOldestStrangerMakesWay) {
  Start({.total_max = 100, .address_max = 3});
  std::vector<Fd> mine;
  const Fd other = Connect(2);
  for (int i = 0; i < 3; ++i) {
    mine.push_back(Connect(1));
  }
  Identify(mine[0]);
  mine.push_back(Connect(1));
  EXPECT_FALSE(IsEnded(mine[0])) << "known";
  EXPECT_TRUE(Ends(mine[1]));
  EXPECT_FALSE(IsEnded(mine[2]) || IsEnded(mine[3]) || IsEnded(other));
}

TEST_F(ConnectionsTest, InAllTheOldestStrangerMakesWay) {
  Start({.total_max = 3, .address_max = 2});
  const Fd first = Connect(1);
  const Fd second = Connect(2);
  Identify(first);
  const Fd third = Connect(3);
  const Fd fourth = Connect(4);
  EXPECT_FALSE(IsEnded(first)) << "known";
  EXPECT_TRUE(Ends(second));
  EXPECT_FALSE(IsEnded(third) || IsEnded(fourth));
}

TEST_F(ConnectionsTest, WhereAllAreKnownANewcomerIsRefused) {
  Start({.total_max = 100, .address_max = 2});
  Fd first = Connect(1);
  const Fd second = Connect(1);
  Identify(first);
  Identify(second);
  Connect(1, /*is_taken=*/false);
  EXPECT_FALSE(IsEnded(first) || IsEnded(second));
  // One that was closed is no longer counted.
  first.Close();
  {
    const std::lock_guard lock(mutex_);
    taken_[0].Close();
  }
  const Fd third = Connect(1);
  EXPECT_FALSE(IsEnded(third) || IsEnded(second));
}

TEST_F(ConnectionsTest, AfterStopNobodyIsTaken) {
  Start({});
  const Fd first = Connect(1);
  connections_->Stop();
  EXPECT_FALSE(IsEnded(first));
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = AddressOf(1, port_);
  EXPECT_NE(
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
}

}  // namespace
}  // namespace clew::collector
