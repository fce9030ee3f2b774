// What futex(2) does to the words and sleepers of a recorded process, and which
// of its recorded results are possible now.
#include <linux/futex.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/linux/futex_command.h"
#include "common/linux/syscall_result.h"
#include "follower/process.h"
#include "machine/memory.h"

namespace clew::follower {
namespace {

using Match = FutexTable::Match;

std::optional<uint32_t> WordAt(const machine::Memory& memory, uint64_t addr) {
  uint32_t value = 0;
  const bool mapped =
      memory.Peek(addr, std::as_writable_bytes(std::span(&value, 1)));
  return mapped ? std::optional(value) : std::nullopt;
}

uint64_t CountIn(uint64_t argument) { return static_cast<uint32_t>(argument); }

Match MatchOf(const SyscallInput& call) {
  const int command = FutexCommand(call.args[1]);
  const bool has_bits =
      command == FUTEX_WAIT_BITSET || command == FUTEX_WAKE_BITSET;
  return has_bits && CountIn(call.args[5]) != FUTEX_BITSET_MATCH_ANY
             ? Match::kBits
             : Match::kAny;
}

// The value that the call was recorded to write at `addr`.
std::optional<uint32_t> WrittenAt(const SyscallInput& call, uint64_t addr) {
  for (const MemoryWrite& write : call.writes) {
    if (write.addr.as_int() == addr && write.bytes.size() == sizeof(uint32_t)) {
      uint32_t value = 0;
      std::memcpy(&value, write.bytes.data(), sizeof(value));
      return value;
    }
  }
  return std::nullopt;
}

SyscallInput WithoutWrites(SyscallInput call) {
  call.writes.clear();
  return call;
}

}  // namespace

Result<Followed> Process::EnterFutex(size_t thread, const SyscallInput& call) {
  const uint64_t operation = call.args[1];
  if (IsFutexWait(operation)) {
    return EnterFutexWait(thread, call);
  }
  if (IsFutexRequeue(operation)) {
    return EnterFutexRequeue(thread, call);
  }
  if (IsFutexLock(operation)) {
    return EnterFutexLock(thread, call);
  }
  if (FutexCommand(operation) == FUTEX_TRYLOCK_PI) {
    return EnterFutexTryLock(thread, call);
  }
  if (!call.result || IsErrorResult(*call.result)) {
    return FinishCall(thread, call);
  }
  if (IsFutexWake(operation)) {
    return EnterFutexWake(thread, call);
  }
  switch (FutexCommand(operation)) {
    case FUTEX_WAKE_OP:
      return EnterFutexWakeOp(thread, call);
    case FUTEX_UNLOCK_PI:
      return EnterFutexUnlock(thread, call);
    default:
      break;
  }
  const char* const name = FutexCommandName(operation);
  return Unsupported("thread {}: futex command {} ({}) at {:#x}", tid(thread),
                     FutexCommand(operation), name == nullptr ? "" : name,
                     threads_[thread].registers.rip);
}

// Of a wait, and of FUTEX_CMP_REQUEUE: the call was refused because the word
// had another value than `expected`, or it was not.
Followed Process::CheckFutexWord(size_t thread, const SyscallInput& call,
                                 uint32_t expected) {
  const uint64_t addr = call.args[0];
  const auto value = WordAt(memory_, addr);
  const bool refused = call.result == -EAGAIN;
  if (!ComparedFutexWord(call.result) || (value == expected) != refused) {
    return Followed::kAsRecorded;
  }
  return Contradict(
      Contradiction::Kind::kFutex, thread,
      fmt::format("futex {} at {:#x} for value {:#x} {}, the word is {:#x}",
                  IsFutexWait(call.args[1]) ? "wait" : "requeue", addr,
                  expected, refused ? "was refused" : "was accepted",
                  value.value_or(0)));
}

Followed Process::ContradictWake(size_t thread, const SyscallInput& call) {
  return Contradict(
      Contradiction::Kind::kFutex, thread,
      fmt::format("futex {} at {:#x} woke {} of at most {}, "
                  "which is not possible now",
                  IsFutexRequeue(call.args[1]) ? "requeue" : "wake",
                  call.args[0], call.result.value_or(0),
                  CountIn(call.args[2])));
}

bool Process::IsRefusedNow(const Wait::Refusal& refusal) const {
  return WordAt(memory_, refusal.addr) != refusal.value;
}

// Called where a block begins, so that it does not depend on how a schedule
// divides one. A value that a word has only within a block is not seen.
void Process::SeeRefusals() {
  for (size_t thread = 0; thread < threads_.size(); ++thread) {
    std::optional<Wait::Refusal>& refusal = threads_[thread].wait.refusal;
    if (refusal && !refusal->was_seen && IsRefusedNow(*refusal)) {
      BeforeChange(thread);
      refusal->was_seen = true;
      --refusals_unseen_;
    }
  }
}

Result<Followed> Process::EnterFutexWait(size_t thread,
                                         const SyscallInput& call) {
  const auto expected = static_cast<uint32_t>(call.args[2]);
  const Wait::Refusal refusal = {.addr = call.args[0], .value = expected};
  if (call.result == -EAGAIN && TookTime(call) && !IsRefusedNow(refusal)) {
    threads_[thread].phase = ThreadPhase::kInCall;
    threads_[thread].wait.refusal = refusal;
    ++refusals_unseen_;
    return Followed::kAsRecorded;
  }
  if (CheckFutexWord(thread, call, expected) == Followed::kContradiction) {
    return Followed::kContradiction;
  }
  if (call.result == -EAGAIN) {
    return FinishCall(thread, call);
  }
  ThreadState& state = threads_[thread];
  state.phase = ThreadPhase::kInCall;
  state.wait = kernel_.Sleep(call.args[0], !call.result || *call.result == 0,
                             MatchOf(call));
  return Followed::kAsRecorded;
}

Result<Followed> Process::EnterFutexWake(size_t thread,
                                         const SyscallInput& call) {
  const auto woken = static_cast<uint64_t>(call.result.value_or(0));
  return kernel_.ChangeFutexes().Wake(call.args[0], CountIn(call.args[2]),
                                      woken, MatchOf(call))
             ? FinishCall(thread, call)
             : ContradictWake(thread, call);
}

// The result counts those who were woken and those who were moved.
Result<Followed> Process::EnterFutexRequeue(size_t thread,
                                            const SyscallInput& call) {
  if (FutexCommand(call.args[1]) == FUTEX_CMP_REQUEUE &&
      CheckFutexWord(thread, call, static_cast<uint32_t>(call.args[5])) ==
          Followed::kContradiction) {
    return Followed::kContradiction;
  }
  if (!call.result || IsErrorResult(*call.result)) {
    return FinishCall(thread, call);
  }
  return kernel_.ChangeFutexes().Requeue(
             call.args[0], call.args[4], CountIn(call.args[2]),
             CountIn(call.args[3]), static_cast<uint64_t>(*call.result))
             ? FinishCall(thread, call)
             : ContradictWake(thread, call);
}

Result<Followed> Process::EnterFutexWakeOp(size_t thread,
                                           const SyscallInput& call) {
  const uint64_t other = call.args[4];
  const auto word = WordAt(memory_, other);
  const auto done =
      OperateOnFutex(static_cast<uint32_t>(call.args[5]), word.value_or(0));
  const auto written = WrittenAt(call, other);
  if (!done || !word || (written && *written != done->value)) {
    return Contradict(
        Contradiction::Kind::kFutex, thread,
        fmt::format("futex wake at {:#x} with an operation on the word at "
                    "{:#x} wrote {:#x}, which is not possible now",
                    call.args[0], other, written.value_or(0)));
  }
  const uint64_t wanted_there = done->wakes ? CountIn(call.args[3]) : 0;
  return kernel_.ChangeFutexes().WakeTwo(
             call.args[0], CountIn(call.args[2]), other, wanted_there,
             static_cast<uint64_t>(call.result.value_or(0)))
             ? FinishCall(thread, call)
             : ContradictWake(thread, call);
}

// ---- Locks with priority inheritance ---------------------------------------
//
// The kernel keeps such a lock's word: the number of the thread that has it,
// and FUTEX_WAITERS, by which that one knows that it has to call to give it up.
//
//   thread 7                        thread 9                       the word
//   CMPXCHG 0 -> 7                                                 7
//                                   FUTEX_LOCK_PI, sleeps          7 | WAITERS
//   CMPXCHG 7 -> 0 fails
//   FUTEX_UNLOCK_PI                                                9 | WAITERS
//                                   returns 0
//
// So what a call writes follows from what was there and from who waits, and is
// not taken from the recording. That may say who was next, where threads run by
// turns; otherwise it is who waits longest, as among threads of one priority.
// Source: linux/kernel/futex/pi.c, futex_lock_pi_atomic and wake_futex_pi.

bool Process::IsOwnerNow(const Wait::Owning& owning) const {
  return (WordAt(memory_, owning.addr).value_or(0) & FUTEX_TID_MASK) ==
         owning.owner;
}

Status Process::WriteFutexWord(size_t thread, uint64_t addr, uint32_t value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  const MemoryWrite write = {.addr = TraceeAddr(addr),
                             .bytes = {bytes.begin(), bytes.end()}};
  return ApplyWrites(thread, std::span(&write, 1));
}

Followed Process::ContradictLock(size_t thread, const SyscallInput& call,
                                 uint32_t word) {
  const int64_t result = call.result.value_or(0);
  return Contradict(
      Contradiction::Kind::kFutex, thread,
      fmt::format("{} at {:#x} {}, the word is {:#x}",
                  FutexCommandName(call.args[1]), call.args[0],
                  !call.result            ? "never returned"
                  : IsErrorResult(result) ? fmt::format("failed ({})", result)
                                          : "succeeded",
                  word));
}

Result<Followed> Process::EnterFutexLock(size_t thread,
                                         const SyscallInput& call) {
  const uint64_t addr = call.args[0];
  const auto own = static_cast<uint32_t>(tid(thread).as_int());
  const auto word = WordAt(memory_, addr);
  const uint32_t owner = word.value_or(0) & FUTEX_TID_MASK;
  const bool may_wait = word && owner != 0 && owner != own;
  const bool has_come_before = call.result == kRestartSys;  // a signal
  if (!word || (has_come_before && !may_wait)) {
    return FinishCall(thread, call);
  }
  const bool is_taken = call.result == 0;
  if ((owner == own && call.result != -EDEADLK) || (owner == 0 && !is_taken)) {
    return ContradictLock(thread, call, *word);
  }
  if (owner == own) {
    return FinishCall(thread, call);
  }
  if (owner == 0) {
    CLEW_RETURN_IF_ERROR(
        WriteFutexWord(thread, addr, own | (*word & FUTEX_OWNER_DIED)));
    return FinishCall(thread, WithoutWrites(call));
  }
  CLEW_RETURN_IF_ERROR(WriteFutexWord(thread, addr, *word | FUTEX_WAITERS));
  ThreadState& state = threads_[thread];
  state.phase = ThreadPhase::kInCall;
  if (is_taken || !call.result) {
    uint64_t number = 1;
    for (const ThreadState& other : threads_) {
      const auto& waits = other.wait.owning;
      number = waits && waits->addr == addr
                   ? std::max(number, waits->number + 1)
                   : number;
    }
    state.wait.owning =
        Wait::Owning{.addr = addr, .owner = own, .number = number};
  }
  return Followed::kAsRecorded;
}

// One that fails leaves the mark of a waiter, too.
Result<Followed> Process::EnterFutexTryLock(size_t thread,
                                            const SyscallInput& call) {
  const uint64_t addr = call.args[0];
  const auto own = static_cast<uint32_t>(tid(thread).as_int());
  const auto word = WordAt(memory_, addr);
  const bool has_failed = call.result == -EAGAIN;
  if (!word || (call.result != 0 && !has_failed)) {
    return FinishCall(thread, call);
  }
  const uint32_t owner = *word & FUTEX_TID_MASK;
  if (owner == own || (owner != 0) != has_failed) {
    return ContradictLock(thread, call, *word);
  }
  const uint32_t value =
      owner == 0 ? own | (*word & FUTEX_OWNER_DIED) : *word | FUTEX_WAITERS;
  CLEW_RETURN_IF_ERROR(WriteFutexWord(thread, addr, value));
  return FinishCall(thread, WithoutWrites(call));
}

// Of those who wait for the lock; `recorded`: the thread that the recording
// says.
std::optional<size_t> Process::NextOwner(uint64_t addr,
                                         uint32_t recorded) const {
  std::optional<size_t> next;
  uint64_t first = UINT64_MAX;
  for (size_t i = 0; i < threads_.size(); ++i) {
    const auto& waits = threads_[i].wait.owning;
    if (!waits || waits->addr != addr) {
      continue;
    }
    if (waits->owner == recorded) {
      return i;
    }
    if (waits->number < first) {
      first = waits->number;
      next = i;
    }
  }
  return next;
}

Result<Followed> Process::EnterFutexUnlock(size_t thread,
                                           const SyscallInput& call) {
  const uint64_t addr = call.args[0];
  const auto word = WordAt(memory_, addr);
  if (!word || call.result != 0) {
    return FinishCall(thread, call);
  }
  if ((*word & FUTEX_TID_MASK) != static_cast<uint32_t>(tid(thread).as_int())) {
    return ContradictLock(thread, call, *word);
  }
  const auto next =
      NextOwner(addr, WrittenAt(call, addr).value_or(0) & FUTEX_TID_MASK);
  const uint32_t value =
      next ? FUTEX_WAITERS | static_cast<uint32_t>(tid(*next).as_int()) : 0;
  CLEW_RETURN_IF_ERROR(WriteFutexWord(thread, addr, value));
  return FinishCall(thread, WithoutWrites(call));
}

}  // namespace clew::follower
