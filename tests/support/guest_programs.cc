#include "tests/support/guest_programs.h"

#include <atomic>

#include "tests/support/guest_recorder.h"

namespace clew::testing {
namespace {

alignas(16) char stacks[kGuestThreads][16384];
std::atomic<uint32_t> finished;
std::atomic<uint32_t> spin_lock;
std::atomic<uint32_t> mutexes[2];
uint64_t* volatile shared_pointer;

constexpr uint64_t kFutex = 202;
constexpr uint64_t kYield = 24;
constexpr uint64_t kExitGroup = 231;
constexpr uint64_t kFutexWait = 128;  // FUTEX_WAIT | FUTEX_PRIVATE_FLAG
constexpr uint64_t kFutexWake = 129;

void Finish() {
  finished.fetch_add(1);
  GuestSyscall(kFutex, reinterpret_cast<uint64_t>(&finished), kFutexWake, 1);
}

void RunAll(void (*worker)(uint64_t), uint64_t rounds) {
  for (auto& stack : stacks) {
    GuestSpawn(worker, rounds, stack + sizeof(stack) - 64);
  }
}

void WaitForAll() {
  uint32_t seen = finished.load();
  while (seen != kGuestThreads) {
    GuestSyscall(kFutex, reinterpret_cast<uint64_t>(&finished), kFutexWait,
                 seen);
    seen = finished.load();
  }
}

[[noreturn]] void Exit(uint64_t status) {
  GuestSyscall(kExitGroup, status, 0, 0);
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
    GuestSyscall(kFutex, reinterpret_cast<uint64_t>(&mutex), kFutexWait, 2);
    state = mutex.exchange(2);
  }
}

void Unlock(std::atomic<uint32_t>& mutex) {
  if (mutex.exchange(0) == 2) {
    GuestSyscall(kFutex, reinterpret_cast<uint64_t>(&mutex), kFutexWake, 1);
  }
}

void SpinWorker(uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) {
    while (spin_lock.exchange(1) != 0) {
      GuestSyscall(kYield, 0, 0, 0);
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

}  // namespace clew::testing
