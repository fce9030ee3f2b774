// Goal: pages with content are told from zero pages, whether or not the process
// ever touched them. Method: property; random pages of a child's memory, some
// never touched, some touched and zero, some not zero. Oracle: what was
// written.
#include "recorder/qemu/page_content.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "common/digest.h"
#include "common/inputs.h"
#include "common/os/child_process.h"
#include "common/x86/page.h"

namespace clew::recorder {
namespace {

constexpr uint64_t kPages = 20'000;  // more than are asked for at once

class PageContentTest : public testing::Test {
 protected:
  void SetUp() override {
    bytes_ = static_cast<char*>(mmap(nullptr, kPages * kPageBytes,
                                     PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(bytes_, MAP_FAILED);
    ASSERT_EQ(madvise(bytes_, kPages * kPageBytes, MADV_NOHUGEPAGE), 0);
    Random random(7);
    for (uint64_t page = 0; page < kPages; ++page) {
      const uint64_t kind = random.Below(20);
      has_content_.push_back(kind == 1);
      if (kind < 2) {
        bytes_[page * kPageBytes + random.Below(kPageBytes)] =
            static_cast<char>(kind);
      }
    }
    child_ = fork();
    if (child_ == 0) {
      pause();
      _exit(0);
    }
    ASSERT_GT(child_, 0);
  }
  void TearDown() override {
    kill(child_, SIGKILL);
    (void)WaitForChild(child_);
    munmap(bytes_, kPages * kPageBytes);
  }
  void ExpectTold(PageContent& content, const GuestRegion& region) const {
    for (uint64_t page = 0; page < kPages; ++page) {
      ASSERT_EQ(content.Has(region, page * kPageBytes), has_content_[page])
          << "page " << page;
    }
    for (uint64_t page = kPages; page-- > 0;) {
      ASSERT_EQ(content.Has(region, page * kPageBytes), has_content_[page])
          << "page " << page;
    }
  }

  char* bytes_ = nullptr;
  std::vector<bool> has_content_;
  pid_t child_ = 0;
};

TEST_F(PageContentTest, OfAnotherProcessAndOfThisOne) {
  const GuestRegion region = {.addr = reinterpret_cast<uint64_t>(bytes_),
                              .size_bytes = kPages * kPageBytes,
                              .prot = kProtRead | kProtWrite,
                              .name = "",
                              .was_zero = true};
  const auto others = GuestMemory::OpenOf(child_);
  ASSERT_TRUE(others.has_value()) << others.error().message;
  PageContent of_child(*others);
  ExpectTold(of_child, region);

  const auto own = GuestMemory::Open(
      [](uint64_t) { return std::optional<uint32_t>(kProtRead); });
  ASSERT_TRUE(own.has_value()) << own.error().message;
  PageContent of_this(*own);
  ExpectTold(of_this, region);
}

// What the kernel shows a process without its having touched it: the vDSO of a
// process that did not ask for the time yet.
TEST_F(PageContentTest, OfWhatTheKernelMapped) {
  const auto memory = GuestMemory::OpenOf(child_);
  ASSERT_TRUE(memory.has_value()) << memory.error().message;
  const uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
  const auto regions = ListRegionsOf(child_, 0, 0);
  ASSERT_TRUE(regions.has_value()) << regions.error().message;
  const auto found = std::ranges::find(*regions, vdso, &GuestRegion::addr);
  ASSERT_NE(found, regions->end());
  PageContent content(*memory);
  EXPECT_TRUE(content.Has(*found, 0));
  EXPECT_FALSE(found->was_zero);
}

}  // namespace
}  // namespace clew::recorder
