// Goal: the bytes that a mapping of a file began with are told, or nothing is:
// never those of another file, nor of a later moment.
// Method: files of this process, changed, replaced and removed behind its back;
// on the kernel, programs as they are loaded, against the files themselves.
#include "recorder/bpf/mapped_file.h"

#include <asm/unistd_64.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "bundle/input_log.h"
#include "common/os/file.h"
#include "common/x86/page.h"
#include "recorder/bpf/input_recording.h"
#include "tests/recorder/bpf/watched_program.h"
#include "tests/support/wait_until.h"

namespace clew::recorder::bpf {
namespace {

namespace fs = std::filesystem;

uint64_t Now(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

class MappedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path_) << std::string(kPageBytes, 'a')
                         << std::string(100, 'b');
    LetTimePass();
  }
  // What is done later has a later time as files have it, too.
  static void LetTimePass() {
    const uint64_t begun = Now(CLOCK_REALTIME_COARSE);
    ASSERT_TRUE(test::WaitUntil(
        [&] { return Now(CLOCK_REALTIME_COARSE) > begun + 20'000'000; }));
  }
  InputCall Mmap(uint64_t size_bytes, uint64_t offset = 0,
                 uint64_t flags = MAP_PRIVATE, uint64_t prot = PROT_READ) {
    struct stat info = {};
    EXPECT_EQ(stat(path_.c_str(), &info), 0);
    InputCall call;
    call.number = __NR_mmap;
    call.args = {0, size_bytes, prot, flags, 3, offset};
    call.result = 0x10000;
    call.file = {.path = path_, .inode = info.st_ino};
    call.left = MonotonicNanos(Now(CLOCK_MONOTONIC));
    return call;
  }
  std::string Bytes(const InputCall& call) const {
    const auto bytes = reader_.Read(call);
    return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()),
                               bytes->size())
                 : "unknown";
  }

  ScratchFolder folder_;
  std::string path_ = folder_.path() + "/file";
  MappedFileReader reader_{getpid()};
};

TEST_F(MappedFileTest, TheBytesOfTheMappingUpToTheEndOfTheFile) {
  const std::string whole =
      std::string(kPageBytes, 'a') + std::string(100, 'b');
  EXPECT_EQ(Bytes(Mmap(10)), whole.substr(0, kPageBytes)) << "whole pages";
  EXPECT_EQ(Bytes(Mmap(1 << 20)), whole);
  EXPECT_EQ(Bytes(Mmap(1 << 20, kPageBytes)), std::string(100, 'b'));
  EXPECT_EQ(Bytes(Mmap(1 << 20, 8 * kPageBytes)), "") << "behind the end";
  EXPECT_EQ(Bytes(Mmap(1 << 20, 0, MAP_PRIVATE, PROT_READ | PROT_WRITE)), whole)
      << "the file stays as it is";
}

TEST_F(MappedFileTest, WhatWasChangedSinceIsUnknown) {
  const InputCall call = Mmap(100);
  LetTimePass();
  std::ofstream(path_, std::ios::in) << 'x';
  EXPECT_EQ(Bytes(call), "unknown");
  LetTimePass();
  EXPECT_EQ(Bytes(Mmap(100))[0], 'x') << "a mapping of now";
}

TEST_F(MappedFileTest, AnotherFileInItsPlaceIsNotTakenForIt) {
  const InputCall call = Mmap(100);
  fs::rename(path_, path_ + ".old");
  std::ofstream(path_) << std::string(kPageBytes, 'c');
  EXPECT_EQ(Bytes(call), "unknown");
}

TEST_F(MappedFileTest, AFolderThatIsALinkByNowIsNotFollowed) {
  InputCall call = Mmap(100);
  const std::string link = folder_.path() + ".link";
  fs::create_directory_symlink(folder_.path(), link);
  const std::string through = link + "/file";
  call.file->path = through;
  EXPECT_EQ(Bytes(call), "unknown");
  fs::remove(link);
}

TEST_F(MappedFileTest, AFileWithoutANameIsFoundByItsMapping) {
  const int fd = open(path_.c_str(), O_RDONLY);
  void* const mapped = mmap(nullptr, 100, PROT_READ, MAP_PRIVATE, fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  close(fd);
  InputCall call = Mmap(100);
  call.result = reinterpret_cast<int64_t>(mapped);
  LetTimePass();
  unlink(path_.c_str());
  // That changes its time: how many names it has is a part of it.
  EXPECT_EQ(Bytes(call), "unknown");
  call.left = MonotonicNanos(Now(CLOCK_MONOTONIC) + 20'000'000);
  if (geteuid() == 0) {
    EXPECT_EQ(Bytes(call), std::string(kPageBytes, 'a'));
  }
  munmap(mapped, 100);
  EXPECT_EQ(Bytes(call), "unknown");
}

TEST_F(MappedFileTest, WhatOthersMayWriteIsUnknown) {
  EXPECT_EQ(Bytes(Mmap(100, 0, MAP_SHARED, PROT_READ | PROT_WRITE)), "unknown");
  chmod(path_.c_str(), 0666);
  LetTimePass();
  EXPECT_EQ(Bytes(Mmap(100, 0, MAP_SHARED)), "unknown");
  EXPECT_NE(Bytes(Mmap(100, 0, MAP_PRIVATE)), "unknown");
}

TEST_F(MappedFileTest, AMappingThatIsTooLargeIsUnknown) {
  fs::resize_file(path_, uint64_t{1} << 30);
  LetTimePass();
  EXPECT_EQ(Bytes(Mmap(uint64_t{1} << 30)), "unknown");
  EXPECT_EQ(Bytes(Mmap(1)).size(), kPageBytes);
}

TEST_F(MappedFileTest, ACallWithoutAFileIsUnknown) {
  InputCall call = Mmap(100);
  call.file->path = "/";
  EXPECT_EQ(Bytes(call), "unknown");
  call.file.reset();
  EXPECT_EQ(Bytes(call), "unknown");
}

// The libraries of a program, as it is loaded.
TEST(MappedFilesOfProgramTest, EveryMappingHasItsBytes) {
  CLEW_NEEDS_BPF();
  const ScratchFolder folder;
  const std::string path = folder.path() + "/inputs.pb";
  WaitingProgram program({"/bin/sh", "-c", "exit 3"});
  auto recording = RecordProgram(program, path, {});
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_TRUE(test::WaitUntil([&] { return program.Ended(); }));
  const auto summary = recording->Finish();
  ASSERT_TRUE(summary) << summary.error().message;
  auto log = bundle::InputLog::Open(path);
  ASSERT_TRUE(log) << log.error().message;
  size_t mapped = 0;
  while (true) {
    const auto next = (*log)->Next(Tid(program.process()));
    ASSERT_TRUE(next) << next.error().message;
    if (!*next) {
      break;
    }
    const auto* const call = std::get_if<SyscallInput>(&**next);
    ASSERT_NE(call, nullptr) << std::get<UnknownInput>(**next).cause;
    if (call->number == __NR_mmap && (call->args[3] & MAP_ANONYMOUS) == 0) {
      ++mapped;
      ASSERT_EQ(call->writes.size(), 1u);
      EXPECT_EQ(call->writes[0].addr.as_int(),
                static_cast<uint64_t>(call->result.value_or(0)));
      EXPECT_GT(call->writes[0].bytes.size(), 0u);
    }
  }
  EXPECT_GT(mapped, 3u) << "of libc alone";
}

}  // namespace
}  // namespace clew::recorder::bpf
