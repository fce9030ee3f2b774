#include "recorder/tracer/free/free_threads.h"

#include <algorithm>

namespace clew::tracer {

using recorder::NativeThread;
using recorder::SyscallCall;

Status FreeThreads::Read() {
  const uint32_t slots = shared_.slot_count();
  for (uint32_t slot = 0; slot < slots; ++slot) {
    CLEW_RETURN_IF_ERROR(ReadSlot(slot));
  }
  return {};
}

bool FreeThreads::HasChild() const {
  return std::ranges::any_of(
      threads_, [](const auto& each) { return each.second.is_child; });
}

Status FreeThreads::ReadSlot(uint32_t number) {
  ThreadSlot& slot = shared_.slot(number);
  const SlotUse use = slot.use.load();
  if (use == SlotUse::kFree) {
    return {};
  }
  const bool has_ended = use == SlotUse::kEnded;
  const Tid tid(__atomic_load_n(&slot.tid, __ATOMIC_ACQUIRE));
  if (tid != Tid(0) && slot.state.tell.is_recorded != 0) {
    CLEW_ASSIGN_OR_RETURN(thread, OfSlot(number));
    CLEW_RETURN_IF_ERROR(
        SharedMemory::TakeBatches(slot, [&](const Batch& batch) {
          has_news_ = true;
          return thread->log->Take(batch);
        }));
    if (has_ended) {
      thread->is_read = true;
      CLEW_RETURN_IF_ERROR(thread->is_child ? EndChild(tid, *thread)
                                            : CloseIfGone(tid, *thread));
    }
  }
  if (has_ended) {
    SharedMemory::Free(slot);
  }
  return {};
}

Status FreeThreads::NoteGone(Tid tid, uint64_t tsc) {
  Thread* const thread = Find(tid);
  if (thread == nullptr) {
    return {};
  }
  thread->gone_tsc = tsc;
  return CloseIfGone(tid, *thread);
}

// It has ended, or runs another program: then it is in that call.
Status FreeThreads::EndChild(Tid tid, Thread& thread) {
  if (StateOf(thread).tell.is_in_call != 0) {
    NoteCall(thread);
  }
  return NoteGone(tid, __rdtsc());
}

SyscallCall FreeThreads::NoteCall(Thread& thread) {
  const ThreadState& state = StateOf(thread);
  SyscallCall call;
  call.number = state.gpr[0];
  call.row = FindSyscall(call.number);
  call.args = ArgumentsOf(state);
  thread.native->call = call;
  thread.native->call_ip = state.last_call;
  thread.native->ip = state.last_call + kSyscallBytes;
  return call;
}

Status FreeThreads::CloseIfGone(Tid tid, Thread& thread) {
  if (!thread.is_read || thread.gone_tsc == 0) {
    return {};
  }
  CLEW_RETURN_IF_ERROR(thread.log->End(thread.gone_tsc));
  free_cores_[thread.native->core] = thread.log->last_tsc();
  threads_.erase(tid);
  return {};
}

// For a thread that began then: it may have, before one was gone that is known
// to be by now.
Result<uint32_t> FreeThreads::TakeCore(uint64_t since) {
  const auto free = std::ranges::find_if(
      free_cores_, [since](const auto& each) { return each.second < since; });
  if (free != free_cores_.end()) {
    const uint32_t core = free->first;
    free_cores_.erase(free);
    return core;
  }
  // The trace has one from the start.
  return cores_used_++ == 0 ? Result<uint32_t>(0u) : state_.tracer->AddCore();
}

Result<FreeThreads::Thread*> FreeThreads::OfSlot(uint32_t number) {
  const ThreadSlot& slot = shared_.slot(number);
  const Tid tid(slot.tid);
  if (Thread* const known = Find(tid)) {
    return known;
  }
  has_news_ = true;
  const auto begun = std::ranges::find_if(
      state_.threads, [tid](const std::unique_ptr<NativeThread>& native) {
        return native->tid == tid &&
               native->state != NativeThread::State::kGone;
      });
  const bool is_new = begun == state_.threads.end();
  if (is_new) {
    auto native = std::make_unique<NativeThread>();
    native->tid = tid;
    native->slot = static_cast<uint32_t>(state_.threads.size());
    state_.threads.push_back(std::move(native));
  }
  Thread thread;
  thread.slot = number;
  thread.is_child = slot.state.tell.is_child != 0;
  thread.native = is_new ? state_.threads.back().get() : begun->get();
  CLEW_ASSIGN_OR_RETURN(core, TakeCore(slot.begun_tsc));
  thread.native->core = core;
  CLEW_RETURN_IF_ERROR(state_.OpenInputs(*thread.native));
  thread.log =
      std::make_unique<FreeThread>(state_, code_, legs_, *thread.native,
                                   PathReader(shared_, index_, slot.space));
  thread.log->Begin(slot.begun_tsc,
                    is_new ? state_.process.first_thread() : Tid(0));
  return &threads_.emplace(tid, std::move(thread)).first->second;
}

}  // namespace clew::tracer
