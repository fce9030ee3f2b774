// Goal: a collector that was killed comes up again at once, although children
// of its last moment still live; and what is taken for good is said.
// Method: hand-picked; the test, or a child that is held between fork and exec,
// has the lock of the folder or the port.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "collector/socket.h"
#include "common/fd.h"
#include "proto/bundle.pb.h"
#include "tests/collector/samples.h"
#include "tests/transfer/collector_process.h"
#include "transfer/client.h"

namespace clew::transfer {
namespace {

namespace fs = std::filesystem;
using collector::TempFolder;
using std::chrono::milliseconds;
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

bool HasChild(pid_t parent) {
  const std::string tasks = "/proc/" + std::to_string(parent) + "/task";
  for (const auto& task : fs::directory_iterator(tasks)) {
    std::ifstream children(task.path() / "children");
    pid_t child = 0;
    if (children >> child) {
      return true;
    }
  }
  return false;
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

  TempFolder folder_;
  CollectorProcess process_{folder_.path(),
                            {"insecure_loopback = yes", "clew = /bin/false"}};
};

TEST_F(RestartTest, WhatIsTakenForAMomentIsWaitedFor) {
  ASSERT_TRUE(process_.Start());
  process_.Kill();
  Fd lock = TakeLock(process_.data());
  Fd port = TakePort(process_.port());
  std::thread release([&] {
    std::this_thread::sleep_for(milliseconds(500));
    lock.Close();
    std::this_thread::sleep_for(milliseconds(500));
    port.Close();
  });
  EXPECT_TRUE(process_.Start());
  release.join();
  EXPECT_THAT(process_.log(), HasSubstr("open in another collector"));
  EXPECT_THAT(process_.log(), HasSubstr("cannot listen on 127.0.0.1 port"));
}

TEST_F(RestartTest, APortThatIsTakenForGoodIsSaid) {
  const Fd port = TakePort(process_.port());
  EXPECT_FALSE(process_.Start());
  EXPECT_THAT(process_.log(), HasSubstr("cannot listen on 127.0.0.1 port " +
                                        std::to_string(process_.port()) +
                                        ": Address already in use"));
}

TEST_F(RestartTest, AFolderThatIsTakenForGoodIsSaid) {
  ASSERT_TRUE(process_.Start());
  process_.Kill();
  const Fd lock = TakeLock(process_.data());
  EXPECT_FALSE(process_.Start());
  EXPECT_THAT(process_.log(), HasSubstr("open in another collector; stop"));
}

TEST_F(RestartTest, AChildBeforeExecHoldsNothing) {
  if (std::string_view(CLEW_SLOW_SETSID).empty()) {
    GTEST_SKIP() << "a sanitizer's library must be the first";
  }
  setenv("LD_PRELOAD", CLEW_SLOW_SETSID, 1);
  const bool started = process_.Start();
  unsetenv("LD_PRELOAD");
  ASSERT_TRUE(started);
  Upload();
  while (!HasChild(process_.pid()) && process_.Lives()) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  // It has begun to run; it is not out of setsid for 4 s.
  std::this_thread::sleep_for(milliseconds(200));
  process_.Kill();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(process_.Start());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(3000));
  EXPECT_THAT(process_.log(), Not(HasSubstr("event=waiting")));
}

}  // namespace
}  // namespace clew::transfer
