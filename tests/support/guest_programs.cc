#include "tests/support/guest_programs.h"

#include <asm/unistd_64.h>
#include <linux/futex.h>

#include <atomic>

#include "tests/support/guest_recorder.h"

namespace clew::test {
namespace {

alignas(16) char stacks[kGuestThreads][16384];
std::atomic<uint32_t> finished;
std::atomic<uint32_t> spin_lock;
std::atomic<uint32_t> mutexes[2];
uint64_t* volatile shared_pointer;

void Finish() {
  finished.fetch_add(1);
  GuestSyscall(__NR_futex, reinterpret_cast<uint64_t>(&finished),
               FUTEX_WAKE_PRIVATE, 1);
}

void RunAll(void (*worker)(uint64_t), uint64_t rounds) {
  for (auto& stack : stacks) {
    GuestSpawn(worker, rounds, stack + sizeof(stack) - 64);
  }
}

void WaitForAll() {
  uint32_t seen = finished.load();
  while (seen != kGuestThreads) {
    GuestSyscall(__NR_futex, reinterpret_cast<uint64_t>(&finished),
                 FUTEX_WAIT_PRIVATE, seen);
    seen = finished.load();
  }
}

[[noreturn]] void Exit(uint64_t status) {
  GuestSyscall(__NR_exit_group, status, 0, 0);
  __builtin_unreachable();
}

// The futex mutex of Drepper, "Futexes Are Tricky", second version: 0 free,
// 1 locked, 2 locked with waiters.
void Lock(std::atomic<uint32_t>& mutex) {
  uint32_t state = 0;
  if (mutex.compare_exchange_strong(state, 1)) {
    return;
  }
  if (state != 2) {
    state = mutex.exchange(2);
  }
  while (state != 0) {
    GuestSyscall(__NR_futex, reinterpret_cast<uint64_t>(&mutex),
                 FUTEX_WAIT_PRIVATE, 2);
    state = mutex.exchange(2);
  }
}

void Unlock(std::atomic<uint32_t>& mutex) {
  if (mutex.exchange(0) == 2) {
    GuestSyscall(__NR_futex, reinterpret_cast<uint64_t>(&mutex),
                 FUTEX_WAKE_PRIVATE, 1);
  }
}

void SpinWorker(uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) {
    while (spin_lock.exchange(1) != 0) {
      GuestSyscall(__NR_sched_yield, 0, 0, 0);
    }
    guest_counter = guest_counter + 1;
    spin_lock.store(0, std::memory_order_release);
  }
  Finish();
}

void MutexWorker(uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) {
    Lock(mutexes[0]);
    guest_counter = guest_counter + 1;
    Unlock(mutexes[0]);
  }
  Finish();
}

void NeighbourWorker(uint64_t rounds) {
  static std::atomic<uint32_t> taken;
  const uint32_t own = taken.fetch_add(1);
  for (uint64_t i = 0; i < rounds; ++i) {
    guest_neighbours[own] = guest_neighbours[own] + 1;
  }
  Finish();
}

void LostUpdateWorker(uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) {
    guest_counter = guest_counter + 1;
  }
  Finish();
}

void OrderWorker(uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) {
    guest_counter = guest_counter + 1;
  }
  *shared_pointer = guest_counter;
  Finish();
}

void DeadlockWorker(uint64_t rounds) {
  const uint64_t self = finished.load() % 2;
  for (uint64_t i = 0; i < rounds; ++i) {
    const uint64_t first = (i + self) % 2;
    Lock(mutexes[first]);
    Lock(mutexes[1 - first]);
    guest_counter = guest_counter + 1;
    Unlock(mutexes[1 - first]);
    Unlock(mutexes[first]);
  }
  Finish();
}

void Check(uint64_t rounds) {
  WaitForAll();
  Exit(guest_counter == rounds * kGuestThreads ? 0 : 1);
}

}  // namespace

volatile uint64_t guest_counter;
volatile uint32_t guest_neighbours[kGuestThreads];

void GuestSpinLockCounter(uint64_t rounds) {
  RunAll(SpinWorker, rounds);
  Check(rounds);
}

void GuestMutexCounter(uint64_t rounds) {
  RunAll(MutexWorker, rounds);
  Check(rounds);
}

void GuestLostUpdate(uint64_t rounds) {
  RunAll(LostUpdateWorker, rounds);
  Check(rounds);
}

void GuestTellsSum(uint64_t rounds) {
  RunAll(LostUpdateWorker, rounds);
  WaitForAll();
  Exit(guest_counter);
}

void GuestNeighbours(uint64_t rounds) {
  RunAll(NeighbourWorker, rounds);
  WaitForAll();
  Exit(0);
}

void GuestOrderViolation(uint64_t rounds) {
  RunAll(OrderWorker, rounds);
  for (uint64_t i = 0; i < rounds * 4; ++i) {
    guest_counter = guest_counter + 1;
  }
  static uint64_t target;
  shared_pointer = &target;
  WaitForAll();
  Exit(0);
}

void GuestDeadlock(uint64_t rounds) {
  RunAll(DeadlockWorker, rounds);
  WaitForAll();
  Exit(0);
}

}  // namespace clew::test
