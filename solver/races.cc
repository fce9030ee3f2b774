#include "solver/races.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "follower/process.h"
#include "follower/run_schedule.h"

namespace clew::solver {
namespace {

struct Seen {
  RaceAccess what;
  uint64_t order = 0;  // in the witness; 0: none
};

bool IsWrite(const Seen& seen) { return Writes(seen.what.access.kind); }

// What one thread did to a word last, and others since.
struct ThreadHistory {
  size_t thread = 0;
  Seen last = {};
  Seen read_since = {};   // by another thread
  Seen write_since = {};  // the same
};

// Better candidates compare less.
struct Candidate {
  bool is_triple = false;
  bool loses_write = false;
  uint64_t distance_insns = 0;  // of the outer accesses
  uint64_t order = 0;           // of the last access
  std::vector<Seen> accesses = {};

  auto Key() const {
    return std::tuple(!is_triple, !loses_write, distance_insns, ~order);
  }
};

struct Word {
  bool atomic = false;  // somebody's read-modify-write
  std::vector<ThreadHistory> threads = {};
  std::optional<Candidate> best = {};
};

// Which access in between makes the pair what no order of the two threads'
// pairs could; nullptr: none.
const Seen* Intruder(const ThreadHistory& history, const Seen& second) {
  const bool reads_intrude = IsWrite(history.last) && IsWrite(second);
  const Seen& intruder =
      reads_intrude ? history.read_since : history.write_since;
  return intruder.order == 0 ? nullptr : &intruder;
}

class Watcher final : public machine::AccessObserver {
 public:
  Watcher(const follower::Process& process, const RaceLimits& limits)
      : process_(process), limits_(limits) {}

  void set_thread(size_t thread) { thread_ = thread; }

  // A store that waits is one of the order when it has left its buffer, and
  // what its thread reads there meets no other thread.
  bool OnAccess(const machine::ObservedAccess& access) override {
    Settle();
    Seen seen = {
        .what = {.access = {.thread = process_.tid(thread_),
                            .insn_index = process_.thread(thread_).retired +
                                          access.insn_offset,
                            .ip = TraceeAddr(access.ip),
                            .addr = TraceeAddr(access.addr),
                            .size_bytes = access.size_bytes,
                            .kind = access.kind},
                 .value = access.value}};
    const machine::StoreBuffer* const buffer =
        process_.thread(thread_).buffer.get();
    if (buffer != nullptr && access.kind == AccessKind::kWrite &&
        buffer->Waits(StoreOf(seen))) {
      waiting_.push_back({.thread = thread_, .seen = seen});
    } else if (buffer == nullptr || !IsForwarded(seen)) {
      Add(thread_, seen);
    }
    return false;
  }

  // Notes the stores that have left their buffers.
  void Settle() {
    std::erase_if(waiting_, [this](Waiting& store) {
      const auto* const buffer = process_.thread(store.thread).buffer.get();
      if (buffer->Waits(StoreOf(store.seen))) {
        return false;
      }
      Add(store.thread, store.seen);
      return true;
    });
  }

  // The best ones.
  std::vector<Race> Races() const {
    struct Raced {
      bool atomic;
      const Candidate* best;
      auto Key() const { return std::pair(atomic, best->Key()); }
    };
    std::vector<Raced> raced;
    for (const auto& [number, word] : words_) {
      if (word.best) {
        raced.push_back({word.atomic, &*word.best});
      }
    }
    std::ranges::sort(raced, {}, &Raced::Key);
    std::vector<Race> races;
    for (const Raced& word : raced) {
      if (races.size() == limits_.races_max) {
        break;
      }
      Race& race = races.emplace_back();
      for (const Seen& seen : word.best->accesses) {
        race.push_back(seen.what);
      }
    }
    return races;
  }

 private:
  struct Waiting {
    size_t thread = 0;
    Seen seen;
  };

  static machine::WaitingStore StoreOf(const Seen& seen) {
    const Access& access = seen.what.access;
    return {.insn = access.insn_index,
            .addr = access.addr.as_int(),
            .size_bytes = access.size_bytes};
  }

  bool IsForwarded(const Seen& seen) const {
    const Access& access = seen.what.access;
    return access.kind == AccessKind::kRead &&
           std::ranges::any_of(waiting_, [&](const Waiting& store) {
             const Access& stored = store.seen.what.access;
             return store.thread == thread_ &&
                    stored.addr.as_int() <
                        access.addr.as_int() + access.size_bytes &&
                    access.addr.as_int() <
                        stored.addr.as_int() + stored.size_bytes;
           });
  }

  void Add(size_t thread, Seen seen) {
    seen.order = ++order_;
    const uint64_t number = seen.what.access.addr.as_int() / 8;
    const auto found = words_.find(number);
    if (found != words_.end()) {
      Note(found->second, thread, seen);
    } else if (words_.size() < limits_.words_max) {
      Note(words_[number], thread, seen);
    }
  }

  static void Note(Word& word, size_t thread, const Seen& seen) {
    word.atomic =
        word.atomic || seen.what.access.kind == AccessKind::kReadModifyWrite;
    auto own = std::ranges::find(word.threads, thread, &ThreadHistory::thread);
    if (own == word.threads.end()) {
      word.threads.push_back({.thread = thread});
      own = word.threads.end() - 1;
    }
    Compare(word, *own, seen);
    *own = {.thread = thread, .last = seen};
    for (ThreadHistory& other : word.threads) {
      if (other.thread != thread) {
        (IsWrite(seen) ? other.write_since : other.read_since) = seen;
      }
    }
  }

  static void Compare(Word& word, const ThreadHistory& own, const Seen& seen) {
    const Seen* intruder = own.last.order == 0 ? nullptr : Intruder(own, seen);
    if (intruder != nullptr) {
      Offer(word, {.is_triple = true,
                   .loses_write = !IsWrite(own.last) && IsWrite(seen),
                   .distance_insns = seen.what.access.insn_index -
                                     own.last.what.access.insn_index,
                   .order = seen.order,
                   .accesses = {own.last, *intruder, seen}});
    }
    for (const ThreadHistory& other : word.threads) {
      if (other.thread != own.thread && other.last.order != 0 &&
          (IsWrite(other.last) || IsWrite(seen))) {
        Offer(word, {.order = seen.order, .accesses = {other.last, seen}});
      }
    }
  }

  static void Offer(Word& word, Candidate candidate) {
    if (!word.best || candidate.Key() < word.best->Key()) {
      word.best = std::move(candidate);
    }
  }

  const follower::Process& process_;
  const RaceLimits& limits_;
  size_t thread_ = 0;
  uint64_t order_ = 0;
  std::vector<Waiting> waiting_;
  std::unordered_map<uint64_t, Word> words_;  // by address / 8
};

}  // namespace

Result<std::vector<Race>> FindRaces(const follower::Recording& recording,
                                    const std::vector<ScheduleStep>& steps,
                                    const RaceLimits& limits) {
  CLEW_ASSIGN_OR_RETURN(session, follower::OpenedRecording::Open(recording));
  follower::Process process = session->start();
  Watcher watcher(process, limits);
  process.set_observer(&watcher);
  CLEW_ASSIGN_OR_RETURN(
      wrong, follower::RunSchedule(process, steps,
                                   {.before_step = [&watcher](size_t thread) {
                                     watcher.Settle();
                                     watcher.set_thread(thread);
                                   }}));
  watcher.Settle();
  if (wrong) {
    return InvalidArgument("no witness: {}", *wrong);
  }
  return watcher.Races();
}

}  // namespace clew::solver
