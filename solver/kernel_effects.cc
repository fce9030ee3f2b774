#include "solver/kernel_effects.h"

#include <asm/unistd_64.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/linux/syscall_result.h"
#include "common/linux/syscall_table.h"

namespace clew::solver {
namespace {

using follower::Tape;

constexpr uint64_t kReadWrite = kProtRead | kProtWrite;

struct KernelEffect {
  enum class Kind : uint8_t {
    kUnmaps,    // munmap, mremap, a fixed mmap, a smaller heap
    kProtects,  // mprotect that takes a right away
    kDiscards,  // madvise after which the pages read as zero
    kWrites,    // by a call that may sleep, at some moment before it returned
    kSignal,    // a signal's frame
  };
  Kind kind = Kind::kUnmaps;
  size_t thread = 0;
  uint64_t input = 0;  // position among the thread's inputs
  uint64_t addr = 0;
  uint64_t end = 0;
};

using Kind = KernelEffect::Kind;

bool Discards(uint64_t advice) {
  return advice == MADV_DONTNEED || advice == MADV_FREE ||
         advice == MADV_REMOVE;
}

// Where each thread comes from: who created it, with which of its inputs.
struct Origin {
  size_t parent = 0;
  uint64_t input = 0;
};
using Origins = std::map<size_t, Origin>;

// Reads one thread's inputs.
class Reader {
 public:
  Reader(Tape& tape, size_t thread, std::vector<KernelEffect>& effects,
         Origins& origins)
      : tape_(tape), thread_(thread), effects_(effects), origins_(origins) {}

  Status Read() {
    for (at_ = 0;; ++at_) {
      CLEW_ASSIGN_OR_RETURN(record, tape_.Input(thread_, at_));
      if (record == nullptr) {
        KeepDiscarded();
        return {};
      }
      if (const auto* const call = std::get_if<SyscallInput>(record)) {
        OnCall(*call);
      } else if (const auto* const signal = std::get_if<SignalInput>(record)) {
        AddWrites(Kind::kSignal, signal->writes);
      }
    }
  }

 private:
  void Add(Kind kind, uint64_t addr, uint64_t size_bytes) {
    if (size_bytes != 0) {
      effects_.push_back({.kind = kind,
                          .thread = thread_,
                          .input = at_,
                          .addr = addr,
                          .end = addr + size_bytes});
    }
  }
  void AddWrites(Kind kind, const std::vector<MemoryWrite>& writes) {
    for (const MemoryWrite& write : writes) {
      Add(kind, write.addr.as_int(), write.bytes.size());
    }
  }
  void KeepDiscarded() {
    if (discarded_) {
      effects_.push_back(*discarded_);
      discarded_.reset();
    }
  }
  void OnCall(const SyscallInput& call) {
    // A thread that exits reads nothing of what it has discarded.
    if (call.number == __NR_exit) {
      discarded_.reset();
    }
    KeepDiscarded();
    if (SyscallMayBlock(call.number)) {
      AddWrites(Kind::kWrites, call.writes);
    }
    if (IsErrorResult(call.result.value_or(-1))) {
      return;
    }
    if (call.number == __NR_clone || call.number == __NR_clone3 ||
        call.number == __NR_vfork) {
      if (const auto child = tape_.IndexOf(
              Tid(static_cast<int32_t>(call.result.value_or(0))))) {
        origins_[*child] = {.parent = thread_, .input = at_};
      }
    }
    OnMapping(call);
  }
  void OnMapping(const SyscallInput& call) {
    const auto& args = call.args;
    switch (call.number) {
      case __NR_munmap:
        return Add(Kind::kUnmaps, args[0], args[1]);
      case __NR_mremap:
        return Add(Kind::kUnmaps, args[0], args[1]);
      case __NR_mmap:
        return Add(Kind::kUnmaps, args[0],
                   (args[3] & MAP_FIXED) != 0 ? args[1] : 0);
      case __NR_mprotect:
        return Add(Kind::kProtects, args[0],
                   (args[2] & kReadWrite) == kReadWrite ? 0 : args[1]);
      case __NR_brk: {
        const auto brk = static_cast<uint64_t>(call.result.value_or(0));
        Add(Kind::kUnmaps, brk, brk_ > brk ? brk_ - brk : 0);
        brk_ = brk;
        return;
      }
      case __NR_madvise:
        if (Discards(args[2])) {
          discarded_ = KernelEffect{.kind = Kind::kDiscards,
                                    .thread = thread_,
                                    .input = at_,
                                    .addr = args[0],
                                    .end = args[0] + args[1]};
        }
        return;
      default:
        return;
    }
  }

  Tape& tape_;
  size_t thread_;
  std::vector<KernelEffect>& effects_;
  Origins& origins_;
  uint64_t at_ = 0;
  uint64_t brk_ = 0;
  std::optional<KernelEffect> discarded_;
};

Result<std::vector<KernelEffect>> ReadAll(Tape& tape, Origins& origins) {
  std::vector<KernelEffect> effects;
  for (size_t thread = 0; thread < tape.thread_count(); ++thread) {
    CLEW_RETURN_IF_ERROR(Reader(tape, thread, effects, origins).Read());
  }
  return effects;
}

// Whether `thread` was created by one that had the effect behind it.
bool CreatedAfter(const Origins& origins, size_t thread,
                  const KernelEffect& effect) {
  for (size_t i = 0; i <= origins.size(); ++i) {
    const auto origin = origins.find(thread);
    if (origin == origins.end()) {
      return false;
    }
    if (origin->second.parent == effect.thread) {
      return origin->second.input > effect.input;
    }
    thread = origin->second.parent;
  }
  return false;
}

// The threads that may touch the range at another moment than was searched.
std::set<size_t> Unordered(const Tape& tape, const Origins& origins,
                           const KernelEffect& effect) {
  std::set<size_t> threads;
  for (size_t thread = 0; thread < tape.thread_count(); ++thread) {
    const bool own = thread == effect.thread && effect.kind != Kind::kDiscards;
    if (!own && !CreatedAfter(origins, thread, effect)) {
      threads.insert(thread);
    }
  }
  return threads;
}

const char* ToString(Kind kind) {
  switch (kind) {
    case Kind::kUnmaps:
      return "gave back or replaced memory";
    case Kind::kProtects:
      return "took away rights to memory";
    case Kind::kDiscards:
      return "discarded the contents of memory";
    case Kind::kWrites:
      return "slept in a call that wrote memory";
    case Kind::kSignal:
      return "got a signal whose frame is in memory";
  }
  return "?";
}

}  // namespace

Result<std::vector<std::string>> UnorderedKernelEffects(
    Tape& tape, const WordTable& words) {
  Origins origins;
  CLEW_ASSIGN_OR_RETURN(effects, ReadAll(tape, origins));
  std::map<std::pair<size_t, Kind>, std::string> found;
  for (const KernelEffect& effect : effects) {
    const auto threads = Unordered(tape, origins, effect);
    if (threads.empty() || found.contains({effect.thread, effect.kind}) ||
        !words.IsTouched(WordOf(effect.addr), WordOf(effect.end - 1),
                         threads)) {
      continue;
    }
    found[{effect.thread, effect.kind}] = fmt::format(
        "thread {} {} at {:#x} that other threads use, and when it did so is "
        "not searched over",
        tape.tid(effect.thread), ToString(effect.kind), effect.addr);
  }
  std::vector<std::string> phrases;
  phrases.reserve(found.size());
  for (auto& [key, phrase] : found) {
    phrases.push_back(std::move(phrase));
  }
  return phrases;
}

}  // namespace clew::solver
