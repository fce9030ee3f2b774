// Goal: the table of requests says of a request what the kernel does with it,
// and every call that has requests is found there.
// Method: exhaustive over the rows; differential against the kernel that runs
// the test, for the requests that it grants: what a request writes is what it
// changes of two different buffers.
#include "common/linux/request_table.h"

#include <asm/unistd_64.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "common/os/fd.h"

namespace clew {
namespace {

TEST(RequestTableTest, CallsWithRequestsAreThoseOfTheTableOfCalls) {
  for (const SyscallRow& row : AllSyscalls()) {
    const RequestCall* const call = FindRequestCall(row.number);
    EXPECT_EQ(call != nullptr, row.special == SpecialEffect::kRequest)
        << row.name;
    if (call != nullptr) {
      EXPECT_EQ(row.arguments[call->argument], 'i') << row.name;
      EXPECT_EQ(row.arguments[call->argument + 1], 'l') << row.name;
    }
  }
}

TEST(RequestTableTest, WidthsAreThoseOfTheCallOrFewer) {
  for (const RequestCall& call : AllRequestCalls()) {
    const std::string_view all = FindSyscall(call.number)->arguments;
    for (const RequestRow& row : call.rows) {
      const std::string_view widths = row.arguments;
      ASSERT_GT(widths.size(), call.argument) << row.name;
      ASSERT_LE(widths.size(), all.size()) << row.name;
      for (size_t i = 0; i < widths.size(); ++i) {
        const bool narrower = widths[i] == '-' || widths[i] == 'i';
        EXPECT_TRUE(widths[i] == all[i] || narrower) << row.name << " " << i;
      }
      EXPECT_EQ(widths[call.argument], 'i') << row.name;
    }
  }
}

TEST(RequestTableTest, EveryRowIsFoundByTheBitsThatTheKernelLooksAt) {
  for (const RequestCall& call : AllRequestCalls()) {
    for (const RequestRow& row : call.rows) {
      std::array<uint64_t, kSyscallArguments> args = {};
      args[call.argument] = uint64_t{7} << 32 | row.number;
      const auto found = FindRequest(call.number, args);
      EXPECT_EQ(found ? found->name : "no row", std::string_view(row.name));
      EXPECT_EQ(CallName(call.number, args),
                SyscallName(call.number) + " " + row.name);
    }
  }
}

TEST(RequestTableTest, OfOthersTheNumberSaysHowMuchIsWritten) {
  const auto written = [](uint64_t request) {
    const auto row = FindRequest(__NR_ioctl, {3, request});
    return row ? int{row->bytes} : -1;
  };
  EXPECT_EQ(written(_IOR('x', 1, int64_t)), 8);
  EXPECT_EQ(written(_IOWR('x', 1, char[300])), 300);
  EXPECT_EQ(written(_IOW('x', 1, int64_t)), 0);
  EXPECT_EQ(written(_IO('x', 1)), -1);
  EXPECT_EQ(written(_IOR(0, 200, int64_t)), -1);
  EXPECT_EQ(written(0x1234), -1);
  EXPECT_FALSE(FindRequest(__NR_prctl, {12345}));
  EXPECT_FALSE(FindRequest(__NR_read, {3, TCGETS}));
  EXPECT_EQ(CallName(__NR_ioctl, {3, _IOR('x', 1, int64_t)}), "ioctl");
  EXPECT_EQ(CallName(__NR_futex, {}), "futex");
}

// What the kernel is asked about; numbers are argument 0 of the calls.
class Objects {
 public:
  Objects() {
    int ends[2] = {-1, -1};
    if (pipe(ends) == 0) {
      Add(ends[0]);
      Add(ends[1]);
    }
    Add(open("/proc/self/exe", O_RDONLY));
    Add(socket(AF_INET, SOCK_DGRAM, 0));
    Add(socket(AF_INET, SOCK_STREAM, 0));
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    Add(terminal);
    if (terminal >= 0 && unlockpt(terminal) == 0) {
      Add(open(ptsname(terminal), O_RDWR | O_NOCTTY));
    }
  }
  ~Objects() {
    semctl(semaphores_, 0, IPC_RMID);
    msgctl(queue_, IPC_RMID, nullptr);
    shmctl(segment_, IPC_RMID, nullptr);
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  std::vector<int> Of(uint64_t call) const {
    switch (call) {
      case __NR_semctl:
        return {semaphores_};
      case __NR_msgctl:
        return {queue_};
      case __NR_shmctl:
        return {segment_};
      default:
        break;
    }
    std::vector<int> numbers(fds_.size());
    std::ranges::transform(fds_, numbers.begin(), &Fd::get);
    return numbers;
  }

 private:
  void Add(int fd) {
    if (fd >= 0) {
      fds_.emplace_back(fd);
    }
  }

  std::vector<Fd> fds_;
  int semaphores_ = semget(IPC_PRIVATE, 3, 0600);
  int queue_ = msgget(IPC_PRIVATE, 0600);
  int segment_ = shmget(IPC_PRIVATE, 4096, 0600);
};

// How many bytes the call changes at the argument behind the request, up to the
// last one; -1 if it fails.
int Changed(const RequestCall& call, const RequestRow& row, int object) {
  size_t changed = 0;
  for (const char fill : {'\x5a', '\xa5'}) {
    std::array<char, 512> buffer;
    buffer.fill(fill);
    std::array<uint64_t, 4> args = {static_cast<uint64_t>(object)};
    args[call.argument] = row.number;
    args[call.argument + 1] = reinterpret_cast<uint64_t>(buffer.data());
    if (syscall(call.number, args[0], args[1], args[2], args[3], 0) < 0) {
      return -1;
    }
    const auto last = std::ranges::find_if(
        buffer.rbegin(), buffer.rend(), [fill](char c) { return c != fill; });
    changed = std::max(changed, static_cast<size_t>(buffer.rend() - last));
  }
  return static_cast<int>(changed);
}

// Only those that ask are made: a row with bytes is one.
TEST(RequestTableTest, TheKernelWritesWhatTheRowSays) {
  const Objects objects;
  int granted = 0;
  for (const RequestCall& call : AllRequestCalls()) {
    for (const RequestRow& row : call.rows) {
      if (row.bytes == 0 || row.extent != RequestExtent::kFixed) {
        continue;
      }
      for (const int object : objects.Of(call.number)) {
        const int changed = Changed(call, row, object);
        granted += changed >= 0 ? 1 : 0;
        // asm/termios.h: of a struct termio the kernel may leave the padding.
        const int padding = std::string_view(row.name) == "TCGETA" ? 1 : 0;
        if (changed >= 0) {
          EXPECT_LE(changed, row.bytes) << row.name;
          EXPECT_GE(changed, row.bytes - padding) << row.name;
        }
      }
    }
  }
  EXPECT_GE(granted, 20);
}

}  // namespace
}  // namespace clew
