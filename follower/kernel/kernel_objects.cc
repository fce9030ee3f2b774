#include "follower/kernel/kernel_objects.h"

namespace clew::follower {

Wait KernelObjects::Enter(const SyscallInput& call,
                          const machine::Memory& memory) {
  if (SentSignals::Concerns(call.number)) {
    signals_.Change().Enter(call.number, call.args);
  }
  if (!Channels::Concerns(call.number)) {
    return {};
  }
  channels_.Change().Enter(call, memory);
  const Channels::Taking taking = channels_->Source(call);
  if (taking.channel == Channels::kNone) {
    return {};
  }
  return {.needs_wake = true,
          .addr = Channels::WaitAddr(taking.channel),
          .taking = taking};
}

void KernelObjects::Leave(const SyscallInput& call) {
  if (Channels::Concerns(call.number)) {
    channels_.Change().Return(call);
  }
}

Wait KernelObjects::Sleep(uint64_t addr, bool needs_wake,
                          FutexTable::Match match) {
  futexes_.Change().Wait(addr, needs_wake, match);
  return {.needs_wake = needs_wake, .addr = addr};
}

void KernelObjects::WakeOnExit(uint64_t addr) {
  futexes_.Change().WakeOnExit(addr);
}

bool KernelObjects::MayReturn(const Wait& wait) const {
  if (wait.taking.channel != Channels::kNone) {
    return channels_->MayTake(wait.taking);
  }
  return !wait.needs_wake || futexes_->MayReturn(wait.addr);
}

void KernelObjects::EndWait(const Wait& wait) {
  if (wait.taking.channel != Channels::kNone) {
    channels_.Change().Take(wait.taking);
  } else if (wait.addr != 0) {
    futexes_.Change().Return(wait.addr, wait.needs_wake);
  }
}

bool KernelObjects::MayHandle(
    Tid thread, std::span<const SentSignals::Signal> signals) const {
  SentSignals then = *signals_;
  for (const SentSignals::Signal& signal : signals) {
    if (!then.MayHandle(thread, signal)) {
      return false;
    }
    then.Handle(thread, signal);
  }
  return true;
}

void KernelObjects::Handle(Tid thread, const SentSignals::Signal& signal) {
  signals_.Change().Handle(thread, signal);
}

KernelObjects::Mark KernelObjects::SetMark() {
  futexes_.SetMark();
  channels_.SetMark();
  return signals_.SetMark();
}

void KernelObjects::RollBack(Mark mark) {
  futexes_.RollBack(mark);
  channels_.RollBack(mark);
  signals_.RollBack(mark);
}

void KernelObjects::DropMarks() {
  futexes_.DropMarks();
  channels_.DropMarks();
  signals_.DropMarks();
}

uint64_t KernelObjects::Digest() const {
  return futexes_->Digest() + channels_->Digest();
}

}  // namespace clew::follower
