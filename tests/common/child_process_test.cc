// Goal: a child starts with what it was given, under lower limits of the host,
// too; a program that cannot start is an error of the parent, and PATH is
// searched as documented.
// Method: real children, told to report what they see.

#include "common/os/child_process.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/os/scratch_folder.h"

namespace clew {
namespace {

std::string ReadAll(const Fd& fd) {
  std::string text;
  std::array<char, 256> buffer;
  ssize_t count = 0;
  while ((count = read(fd.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<size_t>(count));
  }
  return text;
}

std::string OutputOf(const std::string& script, SpawnOptions options) {
  auto pipe = MakePipe();
  options.output = pipe->write_end.get();
  const auto child = SpawnProgram({"sh", "-c", script}, options);
  EXPECT_TRUE(child) << child.error().message;
  pipe->write_end.Close();
  std::string text = ReadAll(pipe->read_end);
  EXPECT_TRUE(WaitForChild(*child));
  return text;
}

class Path {
 public:
  explicit Path(const std::string& path) : before_(getenv("PATH")) {
    setenv("PATH", path.c_str(), 1);
  }
  ~Path() { setenv("PATH", before_.c_str(), 1); }
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

 private:
  std::string before_;
};

TEST(SpawnProgramTest, AChildHasTheStreamsItWasGiven) {
  auto input = MakePipe();
  ASSERT_EQ(write(input->write_end.get(), "word", 4), 4);
  input->write_end.Close();
  EXPECT_EQ(
      OutputOf("cat; printf ' %s' \"$0\"", {.input = input->read_end.get()}),
      "word sh");
}

TEST(SpawnProgramTest, AProgramThatCannotStartIsTheParentsError) {
  const auto child = SpawnProgram({"/no/such/program"}, {});
  ASSERT_FALSE(child);
  EXPECT_NE(child.error().message.find("\"/no/such/program\""),
            std::string::npos);
}

TEST(SpawnProgramTest, AnIgnoredInterruptIsTheDefaultOneOnlyOnDemand) {
  const IgnoreInterrupt ignore;
  const std::string script = "kill -INT $$; echo alive";
  EXPECT_EQ(OutputOf(script, {}), "alive\n");
  EXPECT_EQ(OutputOf(script, {.default_interrupt = true}), "");
}

// A shell that tells its hard and soft limit of open files, in a child whose
// hard limit was 100 when it set these.
std::string OpenFilesUnder100(uint64_t soft, uint64_t hard) {
  auto pipe = MakePipe();
  const pid_t child = fork();
  if (child == 0) {
    const rlimit own = {100, 100};
    if (setrlimit(RLIMIT_NOFILE, &own) == 0 &&
        SetLimit(RLIMIT_NOFILE, soft, hard) &&
        dup2(pipe->write_end.get(), STDOUT_FILENO) >= 0) {
      execl("/bin/sh", "sh", "-c", "ulimit -Hn; ulimit -Sn", nullptr);
    }
    _exit(1);
  }
  pipe->write_end.Close();
  std::string text = ReadAll(pipe->read_end);
  EXPECT_EQ(WaitForChild(child).value_or(-1), 0);
  return text;
}

// Whether the kernel lets the child raise its hard limit or not.
TEST(SetLimitTest, AboveTheOwnHardLimitThatOneHolds) {
  EXPECT_EQ(OpenFilesUnder100(200, 300), "100\n100\n");
  EXPECT_EQ(OpenFilesUnder100(50, 300), "100\n50\n");
  EXPECT_EQ(OpenFilesUnder100(RLIM_INFINITY, RLIM_INFINITY), "100\n100\n");
  EXPECT_EQ(OpenFilesUnder100(20, 50), "50\n20\n");
}

TEST(ExitStatusTest, ASignalIs128AndItsNumber) {
  for (const auto& [script, wanted] :
       {std::pair("exit 3", 3), std::pair("kill -9 $$", 128 + 9)}) {
    const auto child = SpawnProgram({"sh", "-c", script}, {});
    ASSERT_TRUE(child);
    const auto status = WaitForChild(*child);
    ASSERT_TRUE(status);
    EXPECT_EQ(ExitStatusOf(*status), wanted);
  }
}

TEST(WaitForChildTest, AProcessThatIsNoChildIsAnError) {
  EXPECT_FALSE(WaitForChild(1));
}

TEST(FindProgramTest, TheFirstExecutableFileInPathIsTaken) {
  auto folder = ScratchFolder::Make("clew-path");
  ASSERT_TRUE(folder);
  const std::string root = folder->path();
  for (const char* name : {"a/tool", "b", "c"}) {
    std::filesystem::create_directories(root + "/" + name);
  }
  std::ofstream(root + "/b/tool") << "not executable";
  std::ofstream(root + "/c/tool") << "#!/bin/sh\n";
  chmod((root + "/c/tool").c_str(), 0700);
  const Path path(root + "/a:" + root + "/b::" + root + "/c");
  const auto found = FindProgram("tool");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, root + "/c/tool");
  EXPECT_FALSE(FindProgram("other"));
  EXPECT_FALSE(FindProgram(root + "/b/tool"));
}

TEST(FindProgramTest, AnEmptyElementOfPathIsNoFolder) {
  auto folder = ScratchFolder::Make("clew-path");
  ASSERT_TRUE(folder);
  std::ofstream(folder->path() + "/tool") << "#!/bin/sh\n";
  chmod((folder->path() + "/tool").c_str(), 0700);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder->path());
  const Path path(":/usr/bin:");
  EXPECT_FALSE(FindProgram("tool"));
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace clew
