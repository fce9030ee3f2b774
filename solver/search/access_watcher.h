#ifndef CLEW_SOLVER_SEARCH_ACCESS_WATCHER_H_
#define CLEW_SOLVER_SEARCH_ACCESS_WATCHER_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "follower/process.h"
#include "machine/cpu.h"
#include "solver/search/word_table.h"

namespace clew::solver {

// Names each access of the running thread (instruction number, word, time) and
// teaches it to the word table; a derived class sees those to shared words.
class AccessWatcher : public machine::AccessObserver {
 public:
  // Both are borrowed.
  AccessWatcher(const follower::Process& process, WordTable& words)
      : process_(process), words_(words) {}

  // Sets the running thread; called before each Process::Run.
  void set_thread(size_t thread) {
    thread_ = thread;
    last_read_.reset();
  }
  // Returns the latest instruction since set_thread that read memory, if any.
  std::optional<uint64_t> last_read() const { return last_read_; }

  bool OnAccess(const machine::ObservedAccess& access) final {
    const follower::ThreadState& state = process_.thread(thread_);
    if (thread_ != block_thread_ || state.block != block_position_) {
      RefreshBlock(state);
    }
    WordAccess seen = {.at = {static_cast<uint32_t>(thread_),
                              state.retired + access.insn_offset},
                       .word = WordOf(access.addr),
                       .kind = access.kind,
                       .lo_tick = lo_tick_,
                       .hi_tick = hi_tick_};
    if (access.kind == AccessKind::kWrite) {
      seen.hi_tick = store_hi_tick_;
    }
    if (Reads(access.kind)) {
      last_read_ = seen.at.insn;
    }
    const uint64_t last = WordOf(access.addr + access.size_bytes - 1);
    for (; seen.word <= last; ++seen.word) {
      if (words_.Note(seen)) {
        OnSharedWord(seen);
      }
    }
    return false;
  }

 private:
  // Sees the accesses to words that the table has as shared.
  virtual void OnSharedWord(const WordAccess& /*access*/) {}
  void RefreshBlock(const follower::ThreadState& state) {
    block_thread_ = thread_;
    block_position_ = state.block;
    const auto block = process_.NextBlock(thread_);
    if (block && *block != nullptr) {
      lo_tick_ = (*block)->time.lo.as_int();
      hi_tick_ = (*block)->time.hi.as_int();
      // A store that waits is seen at the latest when its slice ends.
      store_hi_tick_ =
          process_.queues() == 0
              ? hi_tick_
              : process_.tape().slices()[(*block)->slice].time.hi.as_int();
    }
  }

  const follower::Process& process_;
  WordTable& words_;
  size_t thread_ = 0;
  size_t block_thread_ = std::numeric_limits<size_t>::max();
  uint64_t block_position_ = 0;
  uint64_t lo_tick_ = 0;
  uint64_t hi_tick_ = 0;
  uint64_t store_hi_tick_ = 0;
  std::optional<uint64_t> last_read_;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SEARCH_ACCESS_WATCHER_H_
