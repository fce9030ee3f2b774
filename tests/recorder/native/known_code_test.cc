// Goal: what a stepper has to know of an instruction is right; a file's is read
// once, and forgotten when its mapping changes; code of no file is recorded
// before it is executed first and whenever it is another; what cannot be
// executed at all is left to the CPU.
// Method: a child process, stopped, with a page of known code.
#include "recorder/native/known_code.h"

#include <asm/unistd_64.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "common/os/file.h"
#include "recorder/qemu/raw_code.h"

namespace clew::recorder {
namespace {

constexpr uint64_t kCode = 0x30000000;
constexpr uint64_t kPage = 4096;
constexpr uint8_t kBytes[] = {
    0x0f, 0x05,        // syscall
    0x9c,              // pushfq
    0x66, 0x9c,        // pushfw
    0x0f, 0xa2,        // cpuid
    0x0f, 0x31,        // rdtsc
    0x74, 0x10,        // je
    0xf3, 0xa4,        // rep movsb
    0xcc,              // int3
    0x0f, 0x01, 0xd0,  // xgetbv
    0x0f, 0x01, 0xf9,  // rdtscp
    0x0f, 0xae, 0x20,  // xsave [rax]
    0x0f, 0xae, 0xe8,  // lfence
};

// The child is traced, so that its memory may be read and written.
class KnownCodeTest : public testing::Test {
 protected:
  void SetUp() override {
    child_ = fork();
    if (child_ == 0) {
      void* const code =
          mmap(reinterpret_cast<void*>(kCode), kPage,
               PROT_READ | PROT_WRITE | PROT_EXEC,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (code != MAP_FAILED) {
        std::memcpy(code, kBytes, sizeof(kBytes));
      }
      ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      raise(SIGSTOP);
      _exit(0);
    }
    ASSERT_GT(child_, 0);
    ASSERT_EQ(waitpid(child_, nullptr, 0), child_);
    char folder[] = "/tmp/clew-known-code-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    auto list = RawFile::Create(folder_ + "/list");
    ASSERT_TRUE(list) << list.error().message;
    auto generated = RawFile::Create(folder_ + "/generated");
    ASSERT_TRUE(generated) << generated.error().message;
    code_.emplace(std::move(*list), std::move(*generated));
    auto memory = GuestMemory::OpenOf(child_);
    ASSERT_TRUE(memory) << memory.error().message;
    memory_.emplace(std::move(*memory));
  }
  void TearDown() override {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    (void)PosixFileSystem().RemoveAll(folder_);
  }

  void Map() {
    code_->Map({.addr = kCode, .size_bytes = kPage, .path = "/of/a/file"});
  }
  std::vector<RawCode> Generated();
  NativeInsn At(uint64_t offset, uint64_t now = 0) {
    return code_->At(kCode + offset, *memory_, now);
  }

  pid_t child_ = -1;
  std::string folder_;
  std::optional<KnownCode> code_;
  std::optional<GuestMemory> memory_;
};

TEST_F(KnownCodeTest, InstructionsAreTold) {
  Map();
  EXPECT_TRUE(At(0).is_syscall);
  EXPECT_EQ(At(0).branch_class, x86::BranchClass::kFar);
  EXPECT_EQ(At(0).fall_through, TraceeAddr(kCode + 2));
  EXPECT_EQ(At(2).pushes_flags_bytes, 8);
  EXPECT_EQ(At(3).pushes_flags_bytes, 2);
  EXPECT_EQ(At(5).input, x86::InputInsn::kCpuid);
  EXPECT_EQ(At(7).input, x86::InputInsn::kRdtsc);
  EXPECT_EQ(At(9).branch_class, x86::BranchClass::kConditional);
  EXPECT_EQ(At(11).branch_class, x86::BranchClass::kRepString);
  EXPECT_EQ(At(13).branch_class, x86::BranchClass::kFar);
  EXPECT_FALSE(At(13).is_syscall);
  EXPECT_EQ(At(14).input, x86::InputInsn::kXgetbv);
  EXPECT_EQ(At(17).input, x86::InputInsn::kRdtscp);
  EXPECT_FALSE(At(17).chooses_components);
  EXPECT_TRUE(At(20).chooses_components);
  EXPECT_FALSE(At(23).chooses_components);
}

// The records of code that no file holds.
std::vector<RawCode> KnownCodeTest::Generated() {
  EXPECT_TRUE(code_->Close());
  std::ifstream file(folder_ + "/generated", std::ios::binary);
  std::vector<RawCode> records;
  RawCode head;
  while (file.read(reinterpret_cast<char*>(&head), sizeof(head))) {
    records.push_back(head);
    file.ignore(static_cast<std::streamsize>(head.size_bytes));
  }
  return records;
}

TEST_F(KnownCodeTest, CodeOfAFileIsNotRecorded) {
  Map();
  (void)At(0);
  (void)At(2);
  EXPECT_TRUE(Generated().empty());
}

// At its second look it is known, until it is another.
TEST_F(KnownCodeTest, CodeOfNoFileIsRecordedWheneverItIsAnother) {
  EXPECT_TRUE(At(0).is_syscall);
  EXPECT_EQ(At(0).version, 0u);
  const uint8_t cpuid[] = {0x0f, 0xa2};
  ASSERT_TRUE(memory_->Write(kCode, cpuid, sizeof(cpuid)));
  EXPECT_EQ(At(0, 7).input, x86::InputInsn::kCpuid);
  EXPECT_EQ(At(0).version, 1u);
  EXPECT_EQ(code_->latest_version(), 1u);
  const auto records = Generated();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].addr, kCode);
  EXPECT_EQ(records[0].size_bytes, 2u);
  EXPECT_EQ(records[0].replaces, 0u);
  EXPECT_EQ(records[1].replaces, 1u);
  EXPECT_EQ(records[1].time, 7u);
}

TEST_F(KnownCodeTest, WhatIsUnmappedIsOfNoFile) {
  Map();
  EXPECT_TRUE(At(0).is_syscall);
  SyscallCall call;
  call.number = __NR_munmap;
  call.args = {kCode, kPage};
  code_->Release(call, 0);
  EXPECT_TRUE(At(2).pushes_flags_bytes == 8);
  EXPECT_EQ(Generated().size(), 1u);
}

TEST_F(KnownCodeTest, WhatIsMappedAnewIsReadAnew) {
  Map();
  EXPECT_TRUE(At(0).is_syscall);
  const uint8_t cpuid[] = {0x0f, 0xa2};
  ASSERT_TRUE(memory_->Write(kCode, cpuid, sizeof(cpuid)));
  Map();
  EXPECT_EQ(At(0).input, x86::InputInsn::kCpuid);
}

TEST_F(KnownCodeTest, WhatCannotBeExecutedIsLeftToTheCpu) {
  EXPECT_EQ(code_->At(0x1000, *memory_, 0).branch_class,
            x86::BranchClass::kNone);
}

}  // namespace
}  // namespace clew::recorder
