#include "common/sent_signals.h"

#include <sys/syscall.h>

#include "common/check.h"

namespace clew {
namespace {

// Of what a descriptor stands for nothing is known.
constexpr uint64_t kAnyProcess = 0;

template <class Map>
uint64_t CountOf(const Map& counts, const typename Map::key_type& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

bool SentSignals::Concerns(uint64_t number) {
  switch (number) {
    case SYS_kill:
    case SYS_tkill:
    case SYS_tgkill:
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
    case SYS_pidfd_send_signal:
      return true;
    default:
      return false;
  }
}

void SentSignals::Enter(uint64_t number, const std::array<uint64_t, 6>& args) {
  switch (number) {
    case SYS_kill:
    case SYS_rt_sigqueueinfo:
      return Send(SentTo::kProcess, args[0], args[1]);
    case SYS_tkill:
      return Send(SentTo::kThread, args[0], args[1]);
    case SYS_tgkill:
    case SYS_rt_tgsigqueueinfo:
      return Send(SentTo::kThread, args[1], args[2]);
    case SYS_pidfd_send_signal:
      return Send(SentTo::kProcess, kAnyProcess, args[1]);
    default:
      return;
  }
}

// Targets up to 0 are groups of processes, to which this one may belong.
void SentSignals::Send(SentTo sent_to, uint64_t target, uint64_t signal) {
  const Tid thread(static_cast<int32_t>(target));
  const bool to_process = sent_to == SentTo::kProcess;
  if (!to_process || thread == process_ || thread <= Tid(0)) {
    ++sent_[{.thread = to_process ? process_ : thread,
             .signal = static_cast<int32_t>(signal),
             .sent_to = sent_to}];
  }
}

SentSignals::Key SentSignals::SentKey(Tid thread, const Signal& signal) const {
  return {.thread = signal.sent_to == SentTo::kProcess ? process_ : thread,
          .signal = signal.number,
          .sent_to = signal.sent_to};
}

bool SentSignals::MayHandle(Tid thread, const Signal& signal) const {
  return signal.sent_to == SentTo::kUnknown ||
         CountOf(handled_, {thread, signal.number, signal.sent_to}) <
             CountOf(sent_, SentKey(thread, signal));
}

void SentSignals::Handle(Tid thread, const Signal& signal) {
  CLEW_CHECK(MayHandle(thread, signal), "signal {} of thread {} was not sent",
             signal.number, thread);
  if (signal.sent_to != SentTo::kUnknown) {
    ++handled_[{thread, signal.number, signal.sent_to}];
  }
}

}  // namespace clew
