// Goal: what execve is asked to run is found as the kernel finds it, and a QEMU
// gets the command line and environment to run it so. Method: files made by
// hand.
#include "recorder/qemu/calls/exec_call.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "common/os/file.h"
#include "recorder/qemu/program_kind.h"

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class ExecCallTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/clew-exec-XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string File(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  static ErrorCode ErrorOf(const std::string& path) {
    const auto resolved = ResolveScripts({.path = path});
    EXPECT_FALSE(resolved.has_value()) << path;
    return resolved ? ErrorCode::kSystem : resolved.error().code;
  }

  std::string folder_;
};

TEST(ProgramKindTest, EveryBeginningOfAProgramIsTold) {
  constexpr size_t kMagicBytes = 4;
  const auto self = MappedFile::Open("/proc/self/exe");
  ASSERT_TRUE(self.has_value()) << self.error().message;
  for (size_t bytes = 0; bytes <= 80; ++bytes) {
    EXPECT_EQ(ProgramKindOf(self->bytes().first(bytes)),
              bytes < kMagicBytes          ? ProgramKind::kNoElf
              : bytes < sizeof(Elf64_Ehdr) ? ProgramKind::kOtherElf
                                           : ProgramKind::kX86_64)
        << bytes;
  }
  std::vector<std::byte> of_32_bits(self->bytes().begin(),
                                    self->bytes().begin() + 64);
  of_32_bits[EI_CLASS] = std::byte{ELFCLASS32};
  EXPECT_EQ(ProgramKindOf(of_32_bits), ProgramKind::kOtherElf);
}

TEST_F(ExecCallTest, AProgramIsItself) {
  const auto call =
      ResolveScripts({.path = "/proc/self/exe", .arguments = {"a", "b"}});
  ASSERT_TRUE(call.has_value()) << call.error().message;
  EXPECT_EQ(call->path, "/proc/self/exe");
  EXPECT_THAT(call->arguments, ElementsAre("a", "b"));
}

TEST_F(ExecCallTest, AScriptIsItsInterpreter) {
  const std::string inner = File("inner", "#!  /proc/self/exe\t-x  -y \nrest");
  const std::string outer = File("outer", "#!" + inner + "\n");
  const auto call =
      ResolveScripts({.path = outer, .arguments = {"name", "1", "2"}});
  ASSERT_TRUE(call.has_value()) << call.error().message;
  EXPECT_EQ(call->path, "/proc/self/exe");
  EXPECT_THAT(call->arguments,
              ElementsAre("/proc/self/exe", "-x  -y", inner, outer, "1", "2"));
}

TEST_F(ExecCallTest, WhatTheKernelRefusesAndWhatTheRecorderDoes) {
  EXPECT_EQ(ErrorOf(folder_ + "/absent"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf(folder_), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf(File("text", "echo")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf(File("none", "#! \n")), ErrorCode::kInvalidArgument);
  const std::string loop = folder_ + "/loop";
  EXPECT_EQ(ErrorOf(File("loop", "#!" + loop)), ErrorCode::kInvalidArgument);
  fs::permissions(loop, fs::perms::owner_read);
  EXPECT_EQ(ErrorOf(loop), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf(File("elf32", "\177ELF\1\1\1")), ErrorCode::kUnsupported);
}

TEST_F(ExecCallTest, QemuGetsItsOptionsAndTheNewProgram) {
  const ExecCall call{.path = "/bin/new",
                      .arguments = {"name", "-plugin", "x"},
                      .environment = {"A=1", "LD_PRELOAD=own.so", "B="}};
  EXPECT_THAT(
      QemuCommandLine(
          {"qemu", "-cpu", "c", "-0", "old", "-E", "LD_PRELOAD=old.so",
           "-plugin", "p.so", "/bin/old", "-0", "1"},
          call),
      ElementsAre("qemu", "-cpu", "c", "-0", "name", "-E", "LD_PRELOAD=own.so",
                  "-plugin", "p.so", "/bin/new", "-plugin", "x"));
  EXPECT_THAT(
      QemuEnvironment(call, "p.so", "folder=f\n"),
      ElementsAre("A=1", "B=", "LD_PRELOAD=p.so", "CLEW_RECORDING=folder=f\n"));
}

}  // namespace
}  // namespace clew::recorder
