#include "tests/support/guest_straddle.h"

#include <atomic>
#include <cstring>

#include "tests/support/guest_programs.h"
#include "tests/support/guest_recorder.h"

namespace clew::test {
namespace {

constexpr uint64_t kYield = 24;
constexpr uint64_t kExitGroup = 231;
constexpr uint32_t kBeyond = 0x12345678;

// A counter at the end of one word, and what never changes in the next one.
struct alignas(16) Straddled {
  uint32_t before = 1;
  uint32_t counter = 0;
  uint32_t beyond = kBeyond;
};
Straddled straddled;
alignas(16) char stacks[kGuestThreads][4096];
std::atomic<uint32_t> finished;

void Worker(uint64_t rounds) {
  const volatile char* const from =
      reinterpret_cast<const volatile char*>(&straddled) + 4;
  for (uint64_t i = 0; i < rounds; ++i) {
    uint64_t both = 0;
    std::memcpy(&both, const_cast<const char*>(from), sizeof(both));
    asm volatile("" : "+r"(both) : : "memory");
    if (both >> 32 != kBeyond) {
      GuestSyscall(kExitGroup, 2, 0, 0);
    }
    *const_cast<volatile uint32_t*>(&straddled.counter) =
        static_cast<uint32_t>(both) + 1;
  }
  finished.fetch_add(1);
}

}  // namespace

void GuestStraddle(uint64_t rounds) {
  for (auto& stack : stacks) {
    GuestSpawn(Worker, rounds, stack + sizeof(stack) - 64);
  }
  while (finished.load() != kGuestThreads) {
    GuestSyscall(kYield, 0, 0, 0);
  }
  GuestSyscall(kExitGroup, straddled.counter == rounds * kGuestThreads ? 0 : 1,
               0, 0);
}

}  // namespace clew::test
