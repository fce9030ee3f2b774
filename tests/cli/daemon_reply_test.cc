// Goal: what clewd answers is shown; an answer that is none, or of another
// version, is one line and no crash.
// Method: the built program against a socket that gives one fixed answer.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "cli/run_program.h"
#include "common/os/fd.h"

namespace clew::cli {
namespace {

// Only a clew that hangs takes so long.
constexpr const char* kHangS = "120";

class DaemonReplyTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* build = std::getenv("CLEW_BINARY_DIR");
    if (build == nullptr) {
      GTEST_SKIP() << "run by ctest, which sets CLEW_BINARY_DIR";
    }
    clew_ = std::string(build) + "/bin/clew ";
    root_ = testing::TempDir() + "clew-reply-XXXXXX";
    ASSERT_NE(mkdtemp(root_.data()), nullptr);
    std::filesystem::create_directories(root_ + "/run/clew");
    Listen(root_ + "/run/clew/clewd.sock");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Listen(const std::string& path) {
    listener_ = Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path.size(), sizeof(address.sun_path));
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address),
                   sizeof(address)),
              0);
    ASSERT_EQ(listen(listener_.get(), 1), 0);
  }

  // What `clew <line>` prints, with both outputs in one, if that is clewd's
  // answer.
  ProgramOutput Run(const std::string& line, const std::string& answer) {
    std::thread clewd([&] {
      const Fd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      char request[4096];
      recv(client.get(), request, sizeof(request), 0);
      send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    });
    const auto output =
        RunProgram({"timeout", kHangS, "sh", "-c",
                    clew_ + line + " --root " + root_ + " 2>&1"});
    shutdown(listener_.get(), SHUT_RDWR);  // if nobody came
    clewd.join();
    listener_.Close();
    std::filesystem::remove(root_ + "/run/clew/clewd.sock");
    Listen(root_ + "/run/clew/clewd.sock");
    return output.value_or(ProgramOutput{.exit_status = -1, .text = ""});
  }

  std::string clew_;
  std::string root_;
  Fd listener_;
};

TEST_F(DaemonReplyTest, WhatIsNoReplyIsAnErrorThatSaysSo) {
  for (const char* command :
       {"snapshot 1", "snapshot 1 --json", "daemon status",
        "daemon status --json", "daemon units", "daemon reload"}) {
    for (const char* answer : {"", "hello\n", "[]\n", "{\"ok\":\n", "{}\n"}) {
      const ProgramOutput output = Run(command, answer);
      EXPECT_EQ(output.exit_status, 4) << command << ": " << answer;
      EXPECT_EQ(output.text.find("clew: clewd"), 0u) << output.text;
      EXPECT_EQ(output.text.find('\n'), output.text.size() - 1) << output.text;
    }
  }
}

TEST_F(DaemonReplyTest, AReplyIsShownOrPassedOn) {
  const std::string reply = R"({"ok":true,"bundle":"a.clew"})";
  EXPECT_EQ(Run("snapshot 1", reply + "\n").text, "a.clew\n");
  EXPECT_EQ(Run("snapshot 1 --json", reply + "\n").text,
            "{\n  \"ok\": true,\n  \"bundle\": \"a.clew\"\n}\n");
  EXPECT_EQ(Run("daemon reload", "{\"ok\":true}\n").text, "reloaded\n");
}

TEST_F(DaemonReplyTest, FieldsOfAnotherTypeAreNotShown) {
  const ProgramOutput snapshot =
      Run("snapshot 1", "{\"ok\":true,\"bundle\":7}\n");
  EXPECT_EQ(snapshot.exit_status, 0) << snapshot.text;
  EXPECT_EQ(snapshot.text, "\n");
  const ProgramOutput status =
      Run("daemon status", "{\"ok\":true,\"source\":7,\"version\":[]}\n");
  EXPECT_EQ(status.exit_status, 0) << status.text;
}

}  // namespace
}  // namespace clew::cli
