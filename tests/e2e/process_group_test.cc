// Goal: what a program does to its process group or its terminal ends neither
// the recorder nor the recording, and what it started is ended or named.
// Method: a program that does it, recorded by the built program; on a terminal
// made for the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "common/os/child_process.h"
#include "common/os/exec_arguments.h"
#include "common/os/process_state.h"
#include "common/result.h"
#include "tests/e2e/clew_command.h"
#include "tests/support/wait_until.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;

std::string Groups() {
  return Built("tests/recorder/programs/recorder_tracee_groups");
}

// By the source that records.
class ProcessGroupTest : public testing::TestWithParam<std::string> {
 protected:
  ProgramOutput Record(const std::string& how) {
    return Clew({"record", "--source", GetParam(), "-o", scratch_.Path("b"),
                 "--", Groups(), how});
  }
  std::string Recording(const std::string& how) const {
    return Binary() + " record --source " + GetParam() + " -o " +
           scratch_.Path("b") + " -- " + Groups() + " " + how;
  }
  // The process that the program says it started.
  static pid_t SleeperIn(const std::string& text) {
    const size_t at = text.find("sleeper ");
    return at == text.npos ? 0 : std::atoi(text.c_str() + at + 8);
  }
  static bool IsAlive(pid_t process) {
    const char state =
        ProcessState("/proc/" + std::to_string(process) + "/stat");
    return state != 0 && state != 'Z';
  }

  const Scratch scratch_;
};

TEST_P(ProcessGroupTest, ASignalToTheGroupEndsTheProgramAlone) {
  for (const auto& [how, signal] :
       {std::pair("abort", "SIGABRT"), std::pair("trap", "SIGTRAP"),
        std::pair("kill", "SIGKILL")}) {
    const ProgramOutput recorded = Record(how);
    EXPECT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
    EXPECT_THAT(recorded.text, HasSubstr(std::string("failed: signal ")));
    EXPECT_THAT(recorded.text, HasSubstr(signal));
    const ProgramOutput solved = ClewAtLeisure("solve", {scratch_.Path("b")});
    EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
    (void)e2e::Run({"rm", "-r", scratch_.Path("b")});
  }
}

TEST_P(ProcessGroupTest, ASignalToTheGroupReachesTheOthersOfIt) {
  const ProgramOutput recorded = Record("term");
  EXPECT_THAT(recorded.text, HasSubstr("SIGTERM"));
  const pid_t sleeper = SleeperIn(recorded.text);
  ASSERT_GT(sleeper, 0) << recorded.text;
  EXPECT_TRUE(test::WaitUntil([&] { return !IsAlive(sleeper); }));
}

TEST_P(ProcessGroupTest, ASessionCanBeMadeWhereTheRecorderLeadsNoGroup) {
  const ProgramOutput recorded = Record("session");
  EXPECT_EQ(recorded.exit_status, kExitOk) << recorded.text;
}

TEST_P(ProcessGroupTest, WhatIsLeftOfAProgramThatHangsIsEnded) {
  const ProgramOutput recorded = Record("hang");
  EXPECT_THAT(recorded.text, HasSubstr("failed: hang"));
  const pid_t sleeper = SleeperIn(recorded.text);
  ASSERT_GT(sleeper, 0) << recorded.text;
  EXPECT_TRUE(test::WaitUntil([&] { return !IsAlive(sleeper); }));
}

TEST_P(ProcessGroupTest, WhatIsLeftOfAProgramThatEndsIsNamed) {
  const ProgramOutput recorded = Record("leave");
  EXPECT_EQ(recorded.exit_status, kExitOk) << recorded.text;
  const pid_t sleeper = SleeperIn(recorded.text);
  ASSERT_GT(sleeper, 0) << recorded.text;
  EXPECT_TRUE(IsAlive(sleeper));
  EXPECT_THAT(recorded.text,
              HasSubstr("still run: " + std::to_string(sleeper)));
  kill(sleeper, SIGKILL);
}

// A program that runs on a terminal of its own, as from a user's shell.
class Terminal {
 public:
  explicit Terminal(const std::vector<std::string>& command) {
    const std::vector<char*> arguments = ExecArguments(command);
    child_ = forkpty(&fd_, nullptr, nullptr, nullptr);
    if (child_ == 0) {
      execv(arguments[0], arguments.data());
      _exit(127);
    }
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() { close(fd_); }

  // Returns false if the program ended without `wanted` in what it put out.
  bool AwaitText(const std::string& wanted) {
    std::array<char, 256> piece;
    while (text_.find(wanted) == text_.npos) {
      const ssize_t got = read(fd_, piece.data(), piece.size());
      if (got <= 0) {
        return false;
      }
      text_.append(piece.data(), static_cast<size_t>(got));
    }
    return true;
  }
  void Type(const std::string& keys) const {
    EXPECT_EQ(write(fd_, keys.data(), keys.size()),
              static_cast<ssize_t>(keys.size()));
  }
  pid_t foreground() const { return tcgetpgrp(fd_); }
  pid_t child() const { return child_; }
  int Wait() const { return ExitStatusOf(WaitForChild(child_).value_or(-1)); }
  const std::string& text() const { return text_; }

 private:
  int fd_ = -1;
  pid_t child_ = -1;
  std::string text_;
};

TEST_P(ProcessGroupTest, TheTerminalIsTheProgramsWhileItRuns) {
  Terminal terminal({Binary(), "record", "--source", GetParam(), "-o",
                     scratch_.Path("b"), "--", Groups(), "terminal"});
  ASSERT_TRUE(terminal.AwaitText("ready")) << terminal.text();
  EXPECT_NE(terminal.foreground(), terminal.child());
  terminal.Type("hello\n");
  ASSERT_TRUE(terminal.AwaitText("read\r\n")) << terminal.text();
  terminal.Type("\x03");
  EXPECT_TRUE(terminal.AwaitText("interrupted")) << terminal.text();
  EXPECT_TRUE(terminal.AwaitText("did not fail")) << terminal.text();
  EXPECT_EQ(terminal.Wait(), kExitOk);
}

// A shell that controls jobs, and `command` run by it.
class JobShell : public Terminal {
 public:
  explicit JobShell(const std::string& command)
      : Terminal({"/bin/bash", "--norc", "-i"}) {
    Type("PS1=\n" + command + "\n");
  }
  int Exit() const {
    Type("exit 0\n");
    return Wait();
  }
};

// A shell that controls jobs sees the recorder stop when the program does, and
// lets both go on.
TEST_P(ProcessGroupTest, AStopFromTheTerminalStopsTheRecorderToo) {
  JobShell terminal(Recording("terminal"));
  ASSERT_TRUE(terminal.AwaitText("ready\r\n")) << terminal.text();
  terminal.Type("\x1a");
  ASSERT_TRUE(terminal.AwaitText("Stopped")) << terminal.text();
  terminal.Type("fg\n");
  terminal.Type("hello\n");
  ASSERT_TRUE(terminal.AwaitText("read\r\n")) << terminal.text();
  terminal.Type("\x03");
  EXPECT_TRUE(terminal.AwaitText("did not fail")) << terminal.text();
  EXPECT_EQ(terminal.Exit(), 0);
}

// As in `clew record ... | less`, which reads what the user types.
TEST_P(ProcessGroupTest, AnotherOfThePipelineKeepsTheTerminal) {
  const std::string file = scratch_.Path("typed");
  JobShell terminal(
      Recording("await " + file) + " 2>&1 | (sed /waits/q; read -r" +
      " line </dev/tty; touch " + file + "; cat; echo got $line)");
  ASSERT_TRUE(terminal.AwaitText("waits\r\n")) << terminal.text();
  terminal.Type("hello\n");
  EXPECT_TRUE(terminal.AwaitText("did not fail")) << terminal.text();
  EXPECT_TRUE(terminal.AwaitText("got hello")) << terminal.text();
  EXPECT_EQ(terminal.Exit(), 0);
}

TEST_P(ProcessGroupTest, AProgramInAPipelineGetsTheTerminalAsItAsks) {
  JobShell terminal(Recording("ask") + " | cat");
  terminal.Type("hello\n");
  EXPECT_TRUE(terminal.AwaitText("did not fail")) << terminal.text();
  EXPECT_THAT(terminal.text(), HasSubstr("read\r\n"));
  EXPECT_EQ(terminal.Exit(), 0);
}

// Nobody is left who could let the recorder go on, or give it the terminal.
TEST_P(ProcessGroupTest, AProgramThatAsksForATerminalItCannotHaveEnds) {
  JobShell terminal("(" + Recording("ask") + " </dev/tty &)");
  EXPECT_TRUE(terminal.AwaitText("failed: signal")) << terminal.text();
  EXPECT_THAT(terminal.text(), HasSubstr("SIGHUP"));
  EXPECT_EQ(terminal.Exit(), 0);
}

INSTANTIATE_TEST_SUITE_P(Sources, ProcessGroupTest,
                         testing::Values("tracer", "qemu"),
                         [](const auto& source) { return source.param; });

}  // namespace
}  // namespace clew::e2e
