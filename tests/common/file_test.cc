// Goal: what is written is read back; every failure names the operation, the
// path and the system's reason, and has the code that leads to exit 3.
// Method: a temporary directory; failures provoked with missing names, wrong
// kinds of file, and /dev/full.
#include "common/os/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "common/bytes.h"

namespace clew {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "clew-file-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::string Path(const std::string& name) const { return root_ + "/" + name; }

  // A kSystem error with this errno whose message begins so.
  static void ExpectFails(const Status& status, int sys_errno,
                          const std::string& prefix) {
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kSystem);
    EXPECT_EQ(status.error().sys_errno, sys_errno);
    EXPECT_EQ(status.error().message.substr(0, prefix.size()), prefix);
  }

  std::string root_;
  FileSystem& files_ = PosixFileSystem();
};

TEST_F(FileTest, WhatIsWrittenIsReadBack) {
  for (const std::string_view text : {"", "x", "two\nlines\n"}) {
    ASSERT_TRUE(WriteWholeFile(files_, Path("f"), ToBytes(text)));
    EXPECT_EQ(ReadWholeFile(Path("f")).value(), ToBytes(text));
    EXPECT_EQ(MappedFile::Open(Path("f"))->bytes().size(), text.size());
  }
}

TEST_F(FileTest, AppendsFollowOneAnotherAndCreateTruncates) {
  for (int round = 0; round < 2; ++round) {
    auto file = files_.Create(Path("f"));
    ASSERT_TRUE(file.has_value());
    ASSERT_TRUE((*file)->Append(ToBytes("ab")));
    ASSERT_TRUE((*file)->Append({}));
    ASSERT_TRUE((*file)->Append(ToBytes("c")));
    ASSERT_TRUE((*file)->Sync());
  }
  EXPECT_EQ(ReadWholeFile(Path("f")).value(), ToBytes("abc"));
}

TEST_F(FileTest, AFullDiskIsAnError) {
  auto file = files_.Create("/dev/full");
  ASSERT_TRUE(file.has_value());
  ExpectFails((*file)->Append(ToBytes("x")), ENOSPC,
              "cannot write \"/dev/full\": No space left");
}

// The error of a Result, as a Status.
template <class T>
Status StatusOf(const Result<T>& result) {
  return result ? Status() : std::unexpected(result.error());
}

TEST_F(FileTest, EveryOperationOnAMissingNameSaysSo) {
  const std::string none = Path("none");
  const std::string within = Path("none/f");
  ExpectFails(StatusOf(files_.Create(within)), ENOENT,
              fmt::format("cannot create {:?}: No such file", within));
  ExpectFails(files_.CreateDirectory(within), ENOENT,
              fmt::format("cannot create directory {:?}: No such", within));
  ExpectFails(files_.Rename(none, Path("g")), ENOENT,
              fmt::format("cannot rename {:?} to {:?}: ", none, Path("g")));
  ExpectFails(files_.SyncDirectory(none), ENOENT,
              fmt::format("cannot open {:?}: ", none));
  ExpectFails(files_.SyncFile(none), ENOENT,
              fmt::format("cannot open {:?}: ", none));
  ExpectFails(StatusOf(ReadWholeFile(none)), ENOENT,
              fmt::format("cannot open {:?}: ", none));
  ExpectFails(WriteWholeFile(files_, within, {}), ENOENT,
              fmt::format("cannot create {:?}: ", within));
  EXPECT_TRUE(files_.RemoveAll(none)) << "absent is fine";
}

TEST_F(FileTest, AWrongKindOfFileIsRefused) {
  ASSERT_TRUE(WriteWholeFile(files_, Path("f"), {}));
  ExpectFails(files_.CreateDirectory(Path("f")), EEXIST, "cannot create dir");
  ExpectFails(files_.SyncDirectory(Path("f")), ENOTDIR, "cannot open");
  ExpectFails(files_.RemoveAll(Path("f/g")), ENOTDIR, "cannot remove");
  const auto directory = MappedFile::Open(root_);
  ASSERT_FALSE(directory.has_value());
  EXPECT_EQ(directory.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(directory.error().message,
            fmt::format("{:?} is not a regular file", root_));
}

// /proc/PID/mem is a regular file whose first page is not mapped: proc(5).
TEST_F(FileTest, AReadErrorIsAnError) {
  const auto read = ReadWholeFile("/proc/self/mem");
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().sys_errno, EIO);
}

// What was mapped and cut is SIGBUS; what is read is as long as it is.
TEST_F(FileTest, AFileThatGrowsOrShrinksIsReadAsFarAsItGoes) {
  const std::string path = Path("changing");
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) {
      const auto file = files_.Create(path);
      ASSERT_TRUE(file.has_value());
      ASSERT_TRUE((*file)->Append(std::vector<std::byte>(1 << 20)));
    }
  });
  for (int cut = 0; cut < 100;) {
    const auto read = ReadWholeFile(path);
    cut += read && !read->empty() ? 1 : 0;
  }
  stop = true;
  writer.join();
}

TEST_F(FileTest, DirectoriesAreMadeSyncedRenamedAndRemoved) {
  ASSERT_TRUE(files_.CreateDirectory(Path("d")));
  ASSERT_TRUE(WriteWholeFile(files_, Path("d/f"), ToBytes("x")));
  ASSERT_TRUE(files_.SyncFile(Path("d/f")));
  ASSERT_TRUE(files_.SyncDirectory(Path("d")));
  ASSERT_TRUE(files_.Rename(Path("d"), Path("e")));
  EXPECT_EQ(ReadWholeFile(Path("e/f")).value(), ToBytes("x"));
  ASSERT_TRUE(files_.RemoveAll(Path("e")));
  EXPECT_FALSE(std::filesystem::exists(Path("e")));
}

TEST_F(FileTest, AMappingMovesWithItsOwner) {
  ASSERT_TRUE(WriteWholeFile(files_, Path("f"), ToBytes("one")));
  ASSERT_TRUE(WriteWholeFile(files_, Path("g"), ToBytes("second")));
  auto first = MappedFile::Open(Path("f")).value();
  auto second = MappedFile::Open(Path("g")).value();
  const auto* data = second.bytes().data();
  first = std::move(second);
  EXPECT_EQ(first.bytes().data(), data);
  EXPECT_EQ(first.bytes().size(), 6u);
  EXPECT_EQ(first.path(), Path("g"));
  const MappedFile third(std::move(first));
  EXPECT_EQ(third.bytes().data(), data);
}

}  // namespace
}  // namespace clew
