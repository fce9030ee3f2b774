// Goal: the memory of a process is listed whichever of its threads are left.
// Method: a child whose first thread ends first. Oracle: this process, whose
// mappings the child has.
#include "recorder/qemu/guest_memory.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "common/inputs.h"
#include "common/os/child_process.h"
#include "common/os/process_state.h"

namespace clew::recorder {
namespace {

// Ends its first thread.
[[noreturn]] void LeaveOneThread() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pthread_t thread;
  pthread_create(
      &thread, nullptr, [](void* given) { return pause(), given; }, nullptr);
  for (;;) {
    syscall(SYS_exit, 0);  // not pthread_exit: that unwinds into the test
  }
}

TEST(GuestMemoryTest, IsListedOfAProcessWhoseFirstThreadHasEnded) {
  void* const shared =
      mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  const auto addr = reinterpret_cast<uint64_t>(shared);
  const pid_t child = fork();
  if (child == 0) {
    LeaveOneThread();
  }
  ASSERT_GT(child, 0);
  while (ProcessState(fmt::format("/proc/{}/stat", child)) != 'Z') {
    std::this_thread::yield();
  }
  const auto regions = ListRegionsOf(child, 0, 0);
  EXPECT_TRUE(regions.has_value()) << regions.error().message;
  if (regions) {
    const auto found = std::ranges::find(*regions, addr, &GuestRegion::addr);
    ASSERT_NE(found, regions->end());
    EXPECT_TRUE(found->shared);
    EXPECT_EQ(found->prot, kProtRead);
  }
  EXPECT_TRUE(IsSharedMapping(addr, child));
  kill(child, SIGKILL);
  (void)WaitForChild(child);
  EXPECT_FALSE(ListRegionsOf(child, 0, 0).has_value());
  EXPECT_FALSE(IsSharedMapping(addr, child));
  munmap(shared, kPageBytes);
}

}  // namespace
}  // namespace clew::recorder
