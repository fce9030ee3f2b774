// Goal: a collector that was killed comes up again at once, although children
// of its last moment still live; and what is taken for good is said.
// Method: hand-picked; the test, or a child that is held between fork and exec,
// has the lock of the folder or the port.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "collector/socket.h"
#include "common/os/fd.h"
#include "proto/bundle.pb.h"
#include "tests/collector/samples.h"
#include "tests/support/wait_until.h"
#include "tests/transfer/collector_process.h"
#include "transfer/client.h"

namespace clew::transfer {
namespace {

namespace fs = std::filesystem;
using collector::TempFolder;
using test::WaitUntil;
using testing::HasSubstr;
using testing::Not;

Fd TakeLock(const std::string& data) {
  Fd fd(open((data + "/lock").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(flock(fd.get(), LOCK_EX | LOCK_NB), 0);
  return fd;
}

Fd TakePort(uint16_t port) {
  auto fd = collector::ListenOn({.host = "127.0.0.1", .port = port});
  EXPECT_TRUE(fd.has_value()) << fd.error().message;
  return fd ? *std::move(fd) : Fd();
}

class RestartTest : public testing::Test {
 protected:
  // A bundle, of which the collector then wants a backtrace from a child.
  void Upload() {
    pb::Manifest manifest;
    manifest.set_format_version(1);
    collector::WriteFiles(
        folder_ / "bundle",
        {{"manifest.pb", manifest.SerializeAsString()}, {"perf.data", "p"}});
    ClientOptions options;
    options.address = process_.address();
    options.insecure_loopback = true;
    const auto client = Client::Create(options);
    ASSERT_TRUE(client.has_value()) << client.error().message;
    const auto sent = (*client)->Upload(folder_ / "bundle", nullptr, nullptr);
    ASSERT_TRUE(sent.has_value()) << sent.error().message;
  }
  // The collector says so in its log.
  bool Says(const std::string& what) const {
    return process_.log().find(what) != std::string::npos;
  }

  TempFolder folder_;
  CollectorProcess process_{folder_.path(),
                            {"insecure_loopback = yes", "clew = /bin/false"}};
};

TEST_F(RestartTest, WhatIsTakenForAMomentIsWaitedFor) {
  ASSERT_TRUE(process_.Start());
  process_.Kill();
  Fd lock = TakeLock(process_.data());
  Fd port = TakePort(process_.port());
  // Each goes when the collector has met it; it waits 5 s.
  std::thread release([&] {
    EXPECT_TRUE(WaitUntil([&] { return Says("open in another collector"); }));
    lock.Close();
    EXPECT_TRUE(
        WaitUntil([&] { return Says("cannot listen on 127.0.0.1 port"); }));
    port.Close();
  });
  EXPECT_TRUE(process_.Start());
  release.join();
}

// Two collectors at once: each waits 5 s.
TEST_F(RestartTest, APortOrAFolderThatIsTakenForGoodIsSaid) {
  const TempFolder folder;
  CollectorProcess without_port(
      folder.path(), {"insecure_loopback = yes", "clew = /bin/false"});
  const Fd port = TakePort(without_port.port());
  ASSERT_TRUE(process_.Start());
  process_.Kill();
  const Fd lock = TakeLock(process_.data());
  std::thread other([&] { EXPECT_FALSE(without_port.Start()); });
  EXPECT_FALSE(process_.Start());
  other.join();
  EXPECT_THAT(without_port.log(),
              HasSubstr("cannot listen on 127.0.0.1 port " +
                        std::to_string(without_port.port()) +
                        ": Address already in use"));
  EXPECT_THAT(process_.log(), HasSubstr("open in another collector; stop"));
}

TEST_F(RestartTest, AChildBeforeExecHoldsNothing) {
  if (std::string_view(CLEW_HELD_SETSID).empty()) {
    GTEST_SKIP() << "a sanitizer's library must be the first";
  }
  const std::string held = folder_ / "held";
  setenv("LD_PRELOAD", CLEW_HELD_SETSID, 1);
  setenv("CLEW_HELD_SETSID", held.c_str(), 1);
  const bool started = process_.Start();
  unsetenv("LD_PRELOAD");
  unsetenv("CLEW_HELD_SETSID");
  ASSERT_TRUE(started);
  Upload();
  pid_t child = 0;
  ASSERT_TRUE(WaitUntil([&] {
    std::ifstream(held) >> child;
    return child > 0;
  }));
  process_.Kill();
  ASSERT_TRUE(process_.Start());
  EXPECT_THAT(process_.log(), Not(HasSubstr("event=waiting")));
  EXPECT_EQ(kill(child, 0), 0) << "it was there all the time";
  fs::remove(held);
}

}  // namespace
}  // namespace clew::transfer
