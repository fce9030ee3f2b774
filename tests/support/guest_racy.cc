#include "tests/support/guest_racy.h"

#include <array>
#include <atomic>

#include "tests/support/guest_recorder.h"

namespace clew::test {
namespace {

constexpr uint64_t kYield = 24;
constexpr uint64_t kExitGroup = 231;
constexpr uint64_t kThreads = 2;
constexpr uint64_t kCells = 16;

alignas(16) char stacks[kThreads][4096];
std::atomic<uint64_t> finished;
volatile uint64_t cells[kCells];
volatile uint64_t odd[kThreads];
volatile uint64_t results[8 * kThreads];
std::atomic<uint64_t> top;
std::atomic<uint64_t> inside;
std::atomic<uint64_t> violations;
volatile uint64_t below[256 * kThreads];
volatile uint64_t flag;
volatile uint64_t message;
volatile uint64_t own[kThreads];
volatile uint64_t seen[kThreads];

uint64_t Mix(uint64_t value) {
  value *= 0x9e3779b97f4a7c15u;
  return value ^ (value >> 29);
}

void Pause(uint64_t turns) {
  for (uint64_t i = 0; i < turns; ++i) {
    asm volatile("");
  }
}

void RunAll(void (*worker)(uint64_t), uint64_t rounds) {
  for (uint64_t id = 0; id < kThreads; ++id) {
    GuestSpawn(worker, rounds * kThreads + id,
               stacks[id] + sizeof(stacks[id]) - 64);
  }
  while (finished.load() != kThreads) {
    GuestSyscall(kYield, 0, 0, 0);
  }
}

[[noreturn]] void Exit(uint64_t status) {
  GuestSyscall(kExitGroup, status, 0, 0);
  __builtin_unreachable();
}

void StoreWorker(uint64_t argument) {
  const uint64_t id = argument % kThreads;
  const auto between = static_cast<StoreBarrier>(argument / kThreads);
  own[id] = 1;
  if (between == StoreBarrier::kFence) {
    asm volatile("mfence" ::: "memory");
  } else if (between == StoreBarrier::kLocked) {
    top.fetch_add(1);
  } else if (between == StoreBarrier::kCall) {
    GuestSyscall(kYield, 0, 0, 0);
  }
  seen[id] = own[1 - id];
  finished.fetch_add(1);
}

void IncrementWorker(uint64_t argument) {
  for (uint64_t i = 0; i < argument / kThreads; ++i) {
    asm volatile("addq $1, %0" : "+m"(cells[0])::"cc");
  }
  finished.fetch_add(1);
}

// What is exclusive. Locked, so that the test itself finds what it looks for.
void StayInside() {
  if (inside.fetch_add(1) != 0) {
    violations.fetch_add(1);
  }
  inside.fetch_sub(1);
}

void DekkerWorker(uint64_t argument) {
  const uint64_t id = argument % kThreads;
  for (uint64_t i = 0; i < argument / kThreads; ++i) {
    own[id] = 1;
    while (own[1 - id] != 0) {
      if (flag != id) {
        own[id] = 0;
        while (flag != id) {
        }
        own[id] = 1;
      }
    }
    StayInside();
    flag = 1 - id;
    own[id] = 0;
  }
  finished.fetch_add(1);
}

void PetersonWorker(uint64_t argument) {
  const uint64_t id = argument % kThreads;
  for (uint64_t i = 0; i < argument / kThreads; ++i) {
    own[id] = 1;
    flag = 1 - id;
    while (own[1 - id] != 0 && flag == 1 - id) {
    }
    StayInside();
    own[id] = 0;
  }
  finished.fetch_add(1);
}

void IndexWorker(uint64_t argument) {
  const uint64_t id = argument % kThreads;
  uint64_t value = id + 1;
  for (uint64_t i = 0; i < argument / kThreads; ++i) {
    value = Mix(value + cells[value % kCells]);
    if ((value & 64) != 0) {
      odd[id] = odd[id] + 1;
    }
    const uint64_t cell = value % kCells;
    value = Mix(value + cells[cell]);
    cells[cell] = value;
  }
  finished.fetch_add(1);
}

void PushWorker(uint64_t argument) {
  const uint64_t id = argument % kThreads;
  for (uint64_t i = 0; i < argument / kThreads; ++i) {
    const uint64_t mine = 1 + i * kThreads + id;
    uint64_t old = top.load();
    do {
      below[mine] = old;
    } while (!top.compare_exchange_strong(old, mine));
    Pause(4);
  }
  finished.fetch_add(1);
}

void PollWorker(uint64_t argument) {
  const uint64_t rounds = argument / kThreads;
  if (argument % kThreads == 0) {
    for (uint64_t i = 1; i <= rounds; ++i) {
      Pause(40);
      flag = i;
      message = i;
    }
  } else {
    for (uint64_t i = 1; i <= rounds; ++i) {
      while (flag < i) {
      }
      if (message != i) {
        odd[0] = odd[0] + 1;
      }
    }
  }
  finished.fetch_add(1);
}

void CopyWorker(uint64_t argument) {
  const bool writes = argument % kThreads == 0;
  for (uint64_t i = 1; i <= argument / kThreads; ++i) {
    if (writes) {
      for (volatile uint64_t& cell : cells) {
        cell = i;
      }
    } else {
      std::array<uint64_t, kCells> copy;
      for (uint64_t cell = 0; cell < kCells; ++cell) {
        copy[cell] = cells[cell];
      }
      // As memcmp does: from the first word that differs a path of its own.
      uint64_t same = 1;
      while (same < kCells && copy[same] == copy[0]) {
        ++same;
      }
      if (same != kCells) {
        odd[0] = odd[0] + 1;
      }
    }
    Pause(20);
  }
  finished.fetch_add(1);
}

void ResultWorker(uint64_t argument) {
  const uint64_t id = argument % kThreads;
  for (uint64_t i = 0; i < argument / kThreads; ++i) {
    cells[0] = cells[0] + 1;
  }
  results[8 * id] = cells[0] * 3;
  finished.fetch_add(1);
}

}  // namespace

void GuestPushes(uint64_t rounds) {
  RunAll(PushWorker, rounds);
  Exit(0);
}

void GuestRacyIndex(uint64_t rounds) {
  RunAll(IndexWorker, rounds);
  Exit(0);
}

void GuestPolling(uint64_t rounds) {
  RunAll(PollWorker, rounds);
  Exit(odd[0] == 0 ? 0 : 1);
}

void GuestStoreBuffering(uint64_t between) {
  RunAll(StoreWorker, between);
  Exit(0);
}

void GuestCopies(uint64_t rounds) {
  RunAll(CopyWorker, rounds);
  Exit(odd[0] == 0 ? 0 : 1);
}

void GuestIncrements(uint64_t rounds) {
  RunAll(IncrementWorker, rounds);
  Exit(cells[0] == kThreads * rounds ? 0 : 1);
}

void GuestDekker(uint64_t rounds) {
  RunAll(DekkerWorker, rounds);
  Exit(violations.load() == 0 ? 0 : 1);
}

void GuestPeterson(uint64_t rounds) {
  RunAll(PetersonWorker, rounds);
  Exit(violations.load() == 0 ? 0 : 1);
}

void GuestLeavesResults(uint64_t rounds) {
  RunAll(ResultWorker, rounds);
  Pause(2000);
  uint64_t status = 0;
  for (uint64_t id = 0; id < kThreads; ++id) {
    if ((results[8 * id] & 1) != 0) {
      ++status;
    }
  }
  Exit(status);
}

}  // namespace clew::test
