#include "solver/lock_watch.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

namespace clew::solver {
namespace {

constexpr uint64_t kFree = 0;  // what a lock's word has that nobody holds
constexpr size_t kSetsMax = 1 << 16;  // later ones count as no lock

bool IsWord(const machine::ObservedAccess& access) {
  return access.size_bytes == 1 || access.size_bytes == 4 ||
         access.size_bytes == 8;
}

// A mutex whose owner died is taken, too.
bool Took(uint64_t result) {
  const auto error = static_cast<int32_t>(result);
  return error == 0 || error == EOWNERDEAD;
}

bool IsShared(LockCall call) { return call == LockCall::kReadLock; }

}  // namespace

LockWatch::Thread& LockWatch::Of(size_t thread) {
  if (thread >= threads_.size()) {
    threads_.resize(thread + 1);
  }
  return threads_[thread];
}

bool LockWatch::Note(const Moment& moment) {
  Settle();
  Thread& thread = Of(moment.thread);
  if (thread.in_call && moment.stack.Returns(moment.access) &&
      moment.access.addr == thread.in_call->slot) {
    Return(thread, moment.registers.gpr[kRax]);
    return true;
  }
  if (thread.in_call && moment.registers.gpr[kRsp] > thread.in_call->slot) {
    thread.in_call.reset();  // left by a jump
  }
  if (!thread.in_call && moment.call != LockCall::kNone &&
      !moment.stack.empty()) {
    Enter(moment);
  }
  if (thread.in_call) {
    return true;
  }
  const bool held = holders_.contains(moment.access.addr);
  NoteWord(moment);
  return held;
}

// Its first instructions leave the arguments where they are.
void LockWatch::Enter(const Moment& moment) {
  Thread& thread = Of(moment.thread);
  const CallStack::Frame& frame = moment.stack.top();
  const auto& gpr = moment.registers.gpr;
  thread.in_call = {.call = moment.call,
                    .addr = gpr[kRdi],
                    .slot = frame.slot,
                    .site = frame.caller};
  switch (moment.call) {
    case LockCall::kUnlock:
    case LockCall::kReadWriteFree:
      Give(thread, gpr[kRdi]);
      break;
    case LockCall::kWaitCondition:
      thread.in_call->mutex = Give(thread, gpr[kRsi]);
      break;
    default:
      break;
  }
}

void LockWatch::Return(Thread& thread, uint64_t result) {
  const LockWait call =
      std::exchange(thread.in_call, std::nullopt).value_or(LockWait());
  switch (call.call) {
    case LockCall::kLock:
    case LockCall::kReadLock:
    case LockCall::kWriteLock:
      if (Took(result)) {
        Take(thread, {.addr = call.addr,
                      .shared = IsShared(call.call),
                      .site = call.site});
      }
      break;
    case LockCall::kWaitCondition:
      if (call.mutex) {
        Take(thread, *call.mutex);
      }
      break;
    default:
      break;
  }
}

void LockWatch::Take(Thread& thread, const HeldLock& lock) {
  const auto held = std::ranges::find(thread.held, lock.addr, &HeldLock::addr);
  if (held != thread.held.end()) {
    ++held->depth;
    return;
  }
  const auto index = static_cast<size_t>(&thread - threads_.data());
  if (!lock.shared) {
    holders_[lock.addr] = index;
  }
  changes_.push_back({.thread = index, .addr = lock.addr, .taken = true});
  thread.held.push_back(lock);
  Number(thread);
}

std::optional<HeldLock> LockWatch::Give(Thread& thread, uint64_t addr) {
  const auto held = std::ranges::find(thread.held, addr, &HeldLock::addr);
  if (held == thread.held.end()) {
    return std::nullopt;
  }
  if (held->depth > 1) {
    --held->depth;
    return std::nullopt;
  }
  const HeldLock lock = *held;
  thread.held.erase(held);
  holders_.erase(addr);
  changes_.push_back({.thread = static_cast<size_t>(&thread - threads_.data()),
                      .addr = addr,
                      .taken = false});
  Number(thread);
  return lock;
}

// Whoever holds it: the word says that nobody does.
void LockWatch::GiveWord(uint64_t addr) {
  const auto holder = holders_.find(addr);
  if (holder != holders_.end()) {
    Thread& thread = threads_[holder->second];
    const auto held = std::ranges::find(thread.held, addr, &HeldLock::addr);
    if (held != thread.held.end()) {
      held->depth = 1;
    }
    Give(thread, addr);
  }
}

// A lock's word stays as its holder left it until it is given back; others may
// write there that they wait.
void LockWatch::NoteChange(size_t thread, uint64_t addr) {
  const auto holder = holders_.find(addr);
  if (holder != holders_.end() && holder->second == thread) {
    GiveWord(addr);
    counters_.insert(addr);
  }
}

void LockWatch::NoteWord(const Moment& moment) {
  const machine::ObservedAccess& access = moment.access;
  if (!IsWord(access)) {
    return;
  }
  if (access.kind == AccessKind::kReadModifyWrite && access.ip != 0) {
    update_ = {.thread = moment.thread,
               .addr = access.addr,
               .size_bytes = access.size_bytes,
               .before = access.value,
               .of_program = moment.of_program,
               .site = moment.site};
  } else if (access.kind == AccessKind::kWrite) {
    if (access.value == kFree) {
      GiveWord(access.addr);
    } else {
      NoteChange(moment.thread, access.addr);
    }
  }
}

void LockWatch::Settle() {
  if (!update_) {
    return;
  }
  const Update update = *update_;
  update_.reset();
  uint64_t after = 0;
  const bool read = memory_.Peek(
      update.addr,
      std::as_writable_bytes(std::span(&after, 1)).first(update.size_bytes));
  if (!read || after == update.before) {
    return;
  }
  if (after == kFree) {
    GiveWord(update.addr);
  } else if (update.before != kFree) {
    NoteChange(update.thread, update.addr);
  } else if (update.of_program && !holders_.contains(update.addr) &&
             !counters_.contains(update.addr)) {
    Take(Of(update.thread), {.addr = update.addr, .site = update.site});
  }
}

// Equal sets have equal numbers.
void LockWatch::Number(Thread& thread) {
  Set set;
  for (const HeldLock& lock : thread.held) {
    set.emplace_back(lock.addr, lock.shared);
  }
  std::ranges::sort(set);
  const auto found = numbers_.find(set);
  if (found != numbers_.end()) {
    thread.set = found->second;
  } else if (sets_.size() == kSetsMax) {
    thread.set = 0;
  } else {
    thread.set = static_cast<uint32_t>(sets_.size());
    sets_.push_back(set);
    numbers_.emplace(std::move(set), thread.set);
  }
}

uint32_t LockWatch::HeldBy(size_t thread) const {
  return thread < threads_.size() ? threads_[thread].set : 0;
}

bool LockWatch::Exclude(uint32_t held, uint32_t other) const {
  return std::ranges::any_of(sets_[held], [&](const auto& lock) {
    return std::ranges::any_of(sets_[other], [&](const auto& its) {
      return its.first == lock.first && !(its.second && lock.second);
    });
  });
}

}  // namespace clew::solver
