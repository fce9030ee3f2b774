#include "recorder/qemu/page_content.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace clew::recorder {
namespace {

constexpr uint64_t kEntriesAtOnce = 8192;
constexpr uint64_t kPresentOrSwapped = uint64_t{3} << 62;

Fd OpenPagemap(int32_t process) {
  return Fd(process == 0
                ? -1
                : open(fmt::format("/proc/{}/pagemap", process).c_str(),
                       O_RDONLY | O_CLOEXEC));
}

// Each byte is 0 as the one before it is: memcmp takes many at a time.
bool IsZero(const std::array<char, kPageBytes>& page) {
  return page[0] == 0 &&
         std::memcmp(page.data(), &page[1], page.size() - 1) == 0;
}

}  // namespace

PageContent::PageContent(const GuestMemory& memory)
    : memory_(memory), pagemap_(OpenPagemap(memory.process())) {}

bool PageContent::Has(const GuestRegion& region, uint64_t at) {
  const uint64_t addr = region.addr + at;
  if (region.was_zero && !IsThere(addr)) {
    return false;
  }
  std::array<char, kPageBytes> page;
  return memory_.Read(addr, page.data(), page.size()) && !IsZero(page);
}

bool PageContent::IsThere(uint64_t addr) {
  if (pagemap_.get() < 0) {
    return true;
  }
  const uint64_t page = addr / kPageBytes;
  if (page - known_page_ >= known_.size()) {
    known_page_ = page / kEntriesAtOnce * kEntriesAtOnce;
    known_.resize(kEntriesAtOnce);
    const ssize_t bytes =
        pread(pagemap_.get(), known_.data(), kEntriesAtOnce * sizeof(uint64_t),
              static_cast<off_t>(known_page_ * sizeof(uint64_t)));
    known_.resize(static_cast<size_t>(std::max<ssize_t>(bytes, 0)) /
                  sizeof(uint64_t));
  }
  const uint64_t index = page - known_page_;
  return index >= known_.size() || (known_[index] & kPresentOrSwapped) != 0;
}

}  // namespace clew::recorder
