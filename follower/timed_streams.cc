#include "follower/timed_streams.h"

#include <algorithm>
#include <utility>

namespace clew::follower {
namespace {

bool Contains(TscInterval time, TscTicks tick) {
  return time.lo <= tick && tick <= time.hi;
}

// A call that is entered at or after `tick` does not narrow it.
bool IsOverBefore(const StreamItem& item, TscTicks tick) {
  return std::get<StreamBlock>(item).time.hi <= tick;
}

}  // namespace

Result<std::optional<StreamItem>> TimedStreams::Next(Tid tid) {
  Thread& thread = threads_[tid];
  while (thread.final_count == 0 && !thread.ended) {
    if (!thread.held.empty() &&
        IsOverBefore(thread.held.front(), streams_.NotBefore(tid))) {
      ++thread.final_count;
    } else {
      CLEW_RETURN_IF_ERROR(Pull(tid, thread));
    }
  }
  if (thread.held.empty()) {
    return PullOne(tid, thread);
  }
  std::optional<StreamItem> item = std::move(thread.held.front());
  thread.held.pop_front();
  thread.final_count -= thread.final_count > 0 ? 1 : 0;
  return item;
}

TscTicks TimedStreams::NotBefore(Tid tid) {
  const auto thread = threads_.find(tid);
  if (thread == threads_.end() || thread->second.held.empty()) {
    return streams_.NotBefore(tid);
  }
  const auto* const block =
      std::get_if<StreamBlock>(&thread->second.held.front());
  return block == nullptr ? TscTicks(0) : block->time.lo;
}

// What comes after a call does so behind gaps, too.
Result<std::optional<StreamItem>> TimedStreams::PullOne(Tid tid,
                                                        const Thread& thread) {
  CLEW_ASSIGN_OR_RETURN(item, streams_.Next(tid));
  if (auto* const block = item ? std::get_if<StreamBlock>(&*item) : nullptr) {
    for (const TscTicks tick : {thread.entered_tsc, thread.left_tsc}) {
      if (Contains(block->time, tick)) {
        block->time.lo = tick;
      }
    }
  }
  return item;
}

Status TimedStreams::Pull(Tid tid, Thread& thread) {
  CLEW_ASSIGN_OR_RETURN(item, PullOne(tid, thread));
  if (!item) {
    thread.ended = true;
    return {};
  }
  auto* const block = std::get_if<StreamBlock>(&*item);
  if (block == nullptr) {  // which call is which is not known behind a gap
    thread.ended = true;
    thread.held.push_back(std::move(*item));
    return {};
  }
  const bool is_syscall = block->is_syscall;
  const TscTicks lo = block->time.lo;
  thread.held.push_back(std::move(*item));
  if (is_syscall) {
    return NarrowBySyscall(tid, thread);
  }
  // A call that comes now has been entered after `lo`.
  while (thread.final_count < thread.held.size() &&
         IsOverBefore(thread.held[thread.final_count], lo)) {
    ++thread.final_count;
  }
  if (thread.held.size() > kHeldMax) {
    ++thread.final_count;
  }
  return {};
}

Status TimedStreams::NarrowBySyscall(Tid tid, Thread& thread) {
  CLEW_ASSIGN_OR_RETURN(call, NextSyscall(tid));
  if (!call) {
    thread.ended = true;
    return {};
  }
  const TscTicks entered = call->entered_tsc;
  TscInterval& own = std::get<StreamBlock>(thread.held.back()).time;
  if (Contains(own, entered)) {
    const TscInterval effect = EffectOf(*call, own);
    for (StreamItem& item : thread.held) {
      TscInterval& time = std::get<StreamBlock>(item).time;
      if (Contains(time, entered)) {
        time.hi = entered;
      }
    }
    own = effect;
    thread.entered_tsc = entered;
    thread.left_tsc = call->left_tsc;
  }
  thread.final_count = thread.held.size();
  return {};
}

// When `call`, which was made in `own`, took effect.
TscInterval TimedStreams::EffectOf(const SyscallInput& call,
                                   TscInterval own) const {
  const TscTicks entered = call.entered_tsc;
  if (!ran_at_once_) {
    return {entered, entered};
  }
  const bool left = call.result && Contains(own, call.left_tsc);
  return {entered, left ? std::max(entered, call.left_tsc) : own.hi};
}

Result<std::optional<SyscallInput>> TimedStreams::NextSyscall(Tid tid) {
  while (true) {
    CLEW_ASSIGN_OR_RETURN(record, inputs_.Next(tid));
    // Behind an unknown one it is not known which call is which.
    if (!record || std::holds_alternative<UnknownInput>(*record)) {
      return std::optional<SyscallInput>();
    }
    if (auto* const call = std::get_if<SyscallInput>(&*record)) {
      return std::optional(std::move(*call));
    }
  }
}

}  // namespace clew::follower
