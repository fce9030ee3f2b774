// Goal: pages with content are told from zero pages, whether or not the process
// ever touched them, by both ways in which the kernel tells. Method: property;
// random pages of a child's memory, some never touched, some touched and zero,
// some not zero; of 80 MB, of 1 TB that is reserved alone (by entry: 64 GB),
// of a file that ends long before its mapping. Oracle: what was written.
#include "recorder/qemu/page_content.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/digest.h"
#include "common/inputs.h"
#include "common/os/child_process.h"
#include "common/x86/page.h"

namespace clew::recorder {
namespace {

constexpr uint64_t kPages = 20'000;  // more than are asked for at once

using testing::ElementsAre;
using Method = PageContent::Method;

// A child that has what this process has.
class Waiting {
 public:
  Waiting() : child_(fork()) {
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      pause();
      _exit(0);
    }
  }
  ~Waiting() {
    kill(child_, SIGKILL);
    (void)WaitForChild(child_);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  pid_t process() const { return child_; }

 private:
  pid_t child_;
};

// Memory of this process, reserved alone.
class Reserved {
 public:
  explicit Reserved(uint64_t pages, int flags = MAP_ANONYMOUS, int fd = -1)
      : pages_(pages),
        bytes_(static_cast<char*>(
            mmap(nullptr, pages * kPageBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_NORESERVE | flags, fd, 0))) {
    EXPECT_NE(bytes_, MAP_FAILED);
    EXPECT_EQ(madvise(bytes_, pages * kPageBytes, MADV_NOHUGEPAGE), 0);
  }
  ~Reserved() { munmap(bytes_, pages_ * kPageBytes); }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  // Writes to a byte of the page.
  void Touch(uint64_t page, uint64_t at, uint64_t value) {
    bytes_[page * kPageBytes + at] = static_cast<char>(value);
  }
  GuestRegion Region(bool was_zero = true, std::string name = "") const {
    return {.addr = reinterpret_cast<uint64_t>(bytes_),
            .size_bytes = pages_ * kPageBytes,
            .prot = kProtRead | kProtWrite,
            .name = std::move(name),
            .was_zero = was_zero};
  }

 private:
  uint64_t pages_;
  char* bytes_;
};

// The pages that Next() finds.
std::vector<uint64_t> Found(PageContent& content, const GuestRegion& region) {
  std::vector<uint64_t> pages;
  for (uint64_t at = content.Next(region, 0); at < region.size_bytes;
       at = content.Next(region, at + kPageBytes)) {
    pages.push_back(at / kPageBytes);
  }
  return pages;
}

// The pages between NextThere() and NextAbsent().
std::vector<uint64_t> There(PageContent& content, const GuestRegion& region) {
  std::vector<uint64_t> pages;
  uint64_t at = content.NextThere(region, 0);
  while (at < region.size_bytes) {
    const uint64_t end = content.NextAbsent(region, at);
    EXPECT_GT(end, at);
    for (; at < end; at += kPageBytes) {
      pages.push_back(at / kPageBytes);
    }
    at = content.NextThere(region, end);
  }
  return pages;
}

class PageContentTest : public testing::TestWithParam<Method> {};

TEST_P(PageContentTest, OfAnotherProcessAndOfThisOne) {
  Reserved memory(kPages);
  std::vector<uint64_t> touched;
  std::vector<uint64_t> with_content;
  Random random(7);
  for (uint64_t page = 0; page < kPages; ++page) {
    const uint64_t kind = random.Below(20);
    if (kind < 2) {
      memory.Touch(page, random.Below(kPageBytes), kind);
      touched.push_back(page);
    }
    if (kind == 1) {
      with_content.push_back(page);
    }
  }
  const Waiting child;
  const GuestRegion region = memory.Region();
  const auto others = GuestMemory::OpenOf(child.process());
  ASSERT_TRUE(others.has_value()) << others.error().message;
  PageContent of_child(*others, GetParam());
  EXPECT_EQ(Found(of_child, region), with_content);
  EXPECT_EQ(There(of_child, region), touched);
  for (uint64_t page = kPages; page-- > 0;) {
    ASSERT_EQ(of_child.Has(region, page * kPageBytes),
              std::ranges::binary_search(with_content, page))
        << "page " << page;
  }

  const auto own = GuestMemory::Open(
      [](uint64_t) { return std::optional<uint32_t>(kProtRead); });
  ASSERT_TRUE(own.has_value()) << own.error().message;
  PageContent of_this(*own, GetParam());
  EXPECT_EQ(Found(of_this, region), with_content);
  EXPECT_EQ(There(of_this, region).size(), kPages);
}

// With the map's entries alone, gigabytes.
TEST_P(PageContentTest, OfWhatIsReservedAlone) {
  const uint64_t pages = uint64_t{1} << (GetParam() == Method::kScan ? 28 : 24);
  Reserved memory(pages);
  std::vector<uint64_t> touched = {0, 1, pages / 2, pages - 1};
  Random random(11);
  for (int i = 0; i < 200; ++i) {
    touched.push_back(random.Below(pages));
  }
  std::ranges::sort(touched);
  const auto twice = std::ranges::unique(touched);
  touched.erase(twice.begin(), twice.end());
  for (const uint64_t page : touched) {
    memory.Touch(page, 9, 1);
  }
  const Waiting child;
  const auto others = GuestMemory::OpenOf(child.process());
  ASSERT_TRUE(others.has_value()) << others.error().message;
  PageContent content(*others, GetParam());
  EXPECT_EQ(Found(content, memory.Region()), touched);
  EXPECT_EQ(There(content, memory.Region()), touched);
}

TEST_P(PageContentTest, OfAFileThatEndsBeforeItsMapping) {
  constexpr uint64_t kFilePages = 3;
  const Fd file(memfd_create("pages", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), kFilePages * kPageBytes - 100), 0);
  ASSERT_EQ(pwrite(file.get(), "text", 4, kPageBytes), 4);
  Reserved memory(uint64_t{1} << 28, 0, file.get());
  memory.Touch(2, 0, 1);
  const Waiting child;
  const auto others = GuestMemory::OpenOf(child.process());
  ASSERT_TRUE(others.has_value()) << others.error().message;
  PageContent content(*others, GetParam());
  const GuestRegion region = memory.Region(false, "/memfd:pages");
  EXPECT_THAT(Found(content, region), ElementsAre(1, 2));
  EXPECT_THAT(There(content, region), ElementsAre(0, 1, 2));
}

INSTANTIATE_TEST_SUITE_P(Methods, PageContentTest,
                         testing::Values(Method::kScan, Method::kByEntry),
                         [](const auto& tested) {
                           return tested.param == Method::kScan
                                      ? std::string("Scan")
                                      : std::string("ByEntry");
                         });

// What the kernel shows a process without its having touched it: the vDSO of a
// process that did not ask for the time yet.
TEST(PageContentOfKernelTest, OfWhatTheKernelMapped) {
  const Waiting child;
  const auto memory = GuestMemory::OpenOf(child.process());
  ASSERT_TRUE(memory.has_value()) << memory.error().message;
  const uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
  const auto regions = ListRegionsOf(child.process(), 0, 0);
  ASSERT_TRUE(regions.has_value()) << regions.error().message;
  const auto found = std::ranges::find(*regions, vdso, &GuestRegion::addr);
  ASSERT_NE(found, regions->end());
  PageContent content(*memory);
  EXPECT_TRUE(content.Has(*found, 0));
  EXPECT_FALSE(found->was_zero);
}

}  // namespace
}  // namespace clew::recorder
