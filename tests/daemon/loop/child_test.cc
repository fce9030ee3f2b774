// Goal: a child of clewd has less power than clewd, and cannot get it back.
// Method: a shell as the child says what the kernel permits it.
#include "daemon/loop/child.h"

#include <gtest/gtest.h>
#include <linux/capability.h>

#include <fstream>
#include <string>

#include "daemon/loop/clock.h"

namespace clew::daemon {
namespace {

constexpr const char* kSets[] = {"CapEff", "CapPrm", "CapInh"};

// A set of capabilities as /proc/PID/status (proc(5)) has it.
uint64_t SetIn(const std::string& status, const std::string& name) {
  const size_t at = status.find(name + ":");
  return at == std::string::npos
             ? ~uint64_t{0}
             : std::stoull(status.substr(at + name.size() + 1), nullptr, 16);
}

std::string OwnStatus() {
  std::ifstream file("/proc/self/status");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string StatusOfChild() {
  auto loop = Loop::Make(SystemClock());
  EXPECT_TRUE(loop);
  ChildEnd seen;
  auto child = Child::Start(**loop, {"/bin/cat", "/proc/self/status"}, {},
                            [&](const ChildEnd& end) {
                              seen = end;
                              (*loop)->Stop();
                            });
  EXPECT_TRUE(child);
  EXPECT_TRUE((*loop)->Run());
  EXPECT_EQ(seen.exit_status, 0) << seen.errors;
  return seen.output;
}

TEST(Child, HasNoCapSysAdminAndKeepsTheOthers) {
  const std::string ours = OwnStatus();
  const std::string status = StatusOfChild();
  constexpr uint64_t kAdministration = uint64_t{1} << CAP_SYS_ADMIN;
  for (const char* set : kSets) {
    EXPECT_EQ(SetIn(status, set), SetIn(ours, set) & ~kAdministration) << set;
  }
  EXPECT_NE(status.find("NoNewPrivs:\t1"), std::string::npos) << status;
}

}  // namespace
}  // namespace clew::daemon
