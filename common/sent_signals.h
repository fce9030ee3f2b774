#ifndef CLEW_COMMON_SENT_SIGNALS_H_
#define CLEW_COMMON_SENT_SIGNALS_H_

#include <array>
#include <compare>
#include <cstdint>
#include <map>

#include "common/inputs.h"
#include "common/units.h"

namespace clew {

// Signals that the threads of a process send one another: a handler is entered
// after the call that sent the signal was. The n-th one of a number that a
// thread was sent by tkill, tgkill or rt_tgsigqueueinfo needs n such calls
// before it; so does, of those sent to the process by kill, rt_sigqueueinfo or
// pidfd_send_signal, whatever its descriptor is of, the n-th one that the same
// thread handles. A call counts from its entry on,
// whatever it returns. That is less than is true where sends merge, where a
// thread waits for a signal without a handler, or where several threads handle
// signals of the process; so it refuses nothing that can happen.
//
// The recorder keeps the same books: it records to whom a signal was sent
// (SignalInput::sent_to) only where they allow that.
//
// Copyable; a copy is a checkpoint. Not thread-safe.
class SentSignals {
 public:
  // `process`: its id, which is that of its first thread.
  explicit SentSignals(Tid process) : process_(process) {}

  // Whether Enter does anything with such a call.
  static bool Concerns(uint64_t number);
  void Enter(uint64_t number, const std::array<uint64_t, 6>& args);

  struct Signal {
    int32_t number = 0;
    SentTo sent_to = SentTo::kUnknown;
  };
  // Whether `thread` may enter a handler of `signal` now; always for kUnknown.
  bool MayHandle(Tid thread, const Signal& signal) const;
  // REQUIRES: MayHandle.
  void Handle(Tid thread, const Signal& signal);

 private:
  struct Key {
    Tid thread;
    int32_t signal = 0;
    SentTo sent_to = SentTo::kUnknown;
    auto operator<=>(const Key&) const = default;
  };
  void Send(SentTo sent_to, uint64_t target, uint64_t signal);
  // Of the process, those of its first thread stand for all.
  Key SentKey(Tid thread, const Signal& signal) const;

  Tid process_;
  std::map<Key, uint64_t> sent_;
  std::map<Key, uint64_t> handled_;
};

}  // namespace clew

#endif  // CLEW_COMMON_SENT_SIGNALS_H_
