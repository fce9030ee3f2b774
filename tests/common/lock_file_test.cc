// Goal: the promises of common/os/lock_file.h. Method: two descriptors of one
// file, and a child that holds the lock and dies.

#include "common/os/lock_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "common/os/child_process.h"
#include "common/os/scratch_folder.h"

namespace clew {
namespace {

using std::chrono::milliseconds;

class LockFileTest : public testing::Test {
 protected:
  const ScratchFolder folder_ = *ScratchFolder::Make("clew-lock");
  const std::string path_ = folder_.path() + "/lock";
};

TEST_F(LockFileTest, OneHoldsItAndItsEndGivesItBack) {
  auto first = TryLockFile(path_);
  ASSERT_TRUE(first && first->is_open());
  struct stat info = {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const auto second = TryLockFile(path_);
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->is_open());
  first->Close();
  const auto third = TryLockFile(path_);
  EXPECT_TRUE(third && third->is_open());
}

TEST_F(LockFileTest, WaitsForAHolderThatDies) {
  auto lock = TryLockFile(path_);
  ASSERT_TRUE(lock && lock->is_open());
  auto pipe = MakePipe();
  ASSERT_TRUE(pipe);
  const pid_t child = fork();
  if (child == 0) {
    pipe->write_end.Close();
    char byte = 0;
    (void)!read(pipe->read_end.get(), &byte, 1);
    usleep(200'000);  // so that it mostly dies while it is waited for
    _exit(0);
  }
  lock->Close();  // the child's copy holds it on
  const auto early = TryLockFile(path_, milliseconds(60));
  EXPECT_TRUE(early && !early->is_open());
  pipe->write_end.Close();
  const auto late = TryLockFile(path_, milliseconds(120'000));
  EXPECT_TRUE(late && late->is_open());
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST_F(LockFileTest, WhatCannotBeOpenedIsAnError) {
  const auto lock = TryLockFile(folder_.path() + "/none/lock");
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::kSystem);
}

}  // namespace
}  // namespace clew
