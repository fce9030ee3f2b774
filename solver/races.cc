#include "solver/races.h"

#include <asm/unistd_64.h>
#include <sched.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "common/linux/futex_command.h"
#include "follower/kernel/call_observer.h"
#include "follower/kernel/new_thread.h"
#include "follower/process.h"
#include "follower/run_schedule.h"
#include "solver/call_stack.h"
#include "solver/descriptor_use.h"
#include "solver/last_reads.h"
#include "solver/lock_watch.h"
#include "solver/race_words.h"
#include "solver/thread_order.h"

namespace clew::solver {
namespace {

// What a thread reads while stores of it may wait.
class SeenByThread final : public ProgramMemory {
 public:
  SeenByThread(const follower::Process& process, size_t thread)
      : process_(process), thread_(thread) {}
  bool Read(uint64_t addr, std::span<std::byte> to) const override {
    if (!process_.memory().Peek(addr, to)) {
      return false;
    }
    process_.Forward(thread_, addr, to);
    return true;
  }

 private:
  const follower::Process& process_;
  size_t thread_;
};

class Watcher final : public machine::AccessObserver,
                      public follower::CallObserver {
 public:
  Watcher(const follower::Process& process, CodeGuide& guide,
          const RaceLimits& limits)
      : process_(process),
        guide_(guide),
        limits_(limits),
        locks_(process.memory()),
        stacks_(process.thread_count()),
        reads_(process.thread_count()) {}

  void set_thread(size_t thread) {
    thread_ = thread;
    futex_call_.reset();
  }

  // A store that waits is one of the order when it has left its buffer, and
  // what its thread reads there meets no other thread.
  bool OnAccess(const machine::ObservedAccess& access) override {
    Settle();
    PassAwaited();
    if (IsFutexCall(access)) {
      return false;
    }
    const CodeFacts facts = FactsAt(access);
    const Seen seen = MakeSeen(access, facts.owner);
    if (NoteLocks(access, seen, facts.lock)) {
      return false;
    }
    const machine::StoreBuffer* const buffer =
        process_.thread(thread_).buffer.get();
    if (buffer != nullptr && access.kind == AccessKind::kWrite &&
        buffer->Waits(StoreOf(seen))) {
      waiting_.push_back({.thread = thread_, .seen = seen});
    } else if (buffer == nullptr || !IsForwarded(seen)) {
      AddWords(seen);
    }
    return false;
  }

  void OnCall(uint64_t ip, uint64_t insn_offset,
              const SyscallInput& call) override {
    const Owner owner = FactsOf(TraceeAddr(ip)).owner;
    if (call.number == __NR_futex) {
      if (IsOfInheritingLock(call.args[1])) {
        lock_words_.insert(call.args[0] / kWordBytes);
      }
      futex_call_ = process_.thread(thread_).retired + insn_offset;
    }
    const auto result = call.result.value_or(0);
    for (const DescriptorUse& use : UsesOf(call)) {
      Seen seen = MakeSeen(
          {.ip = ip,
           .insn_offset = insn_offset,
           .addr = use.descriptor,
           .value = static_cast<uint64_t>(result),
           .size_bytes = 0,
           .kind = use.changes ? AccessKind::kWrite : AccessKind::kRead},
          owner);
      seen.what.call = static_cast<uint16_t>(call.number);
      seen.bytes = 1;
      Add(descriptors_, use.descriptor, seen);
    }
  }

  // The kernel writes the new thread's id before that runs.
  void OnCallObserved(const SyscallInput& call) override {
    const SeenByThread memory(process_, thread_);
    if (const auto made = follower::NewThreadOf(call, memory)) {
      NoteCreation(*made);
    } else if (call.number == __NR_wait4) {
      NoteAwaited(Tid(static_cast<int32_t>(call.result.value_or(-1))));
    }
  }

  // Notes the stores that have left their buffers.
  void Settle() {
    std::erase_if(waiting_, [this](Waiting& store) {
      const auto* const buffer = process_.thread(store.thread).buffer.get();
      if (buffer->Waits(StoreOf(store.seen))) {
        return false;
      }
      AddWords(store.seen);
      return true;
    });
  }

  // The best ones; `failed` is the thread that the failure is of.
  std::vector<Race> Races(Tid failed) const {
    std::vector<Candidate> raced;
    const auto thread = process_.tape().IndexOf(failed);
    for (const auto& [number, word] : words_) {
      if (lock_words_.contains(number)) {
        continue;
      }
      if (auto best = word.Best()) {
        best->internal = best->internal || IsLibrarys(*best);
        if (thread && (best->is_triple || !best->ordered)) {
          best->near = reads_[*thread].Since(number).value_or(best->near);
        }
        raced.push_back(*std::move(best));
      }
    }
    for (const auto& [number, word] : descriptors_) {
      if (auto best = word.Best()) {
        raced.push_back(*std::move(best));
      }
    }
    std::ranges::sort(raced, {}, &Candidate::Key);
    return BestOf(raced);
  }

  // Data of a library that not the program itself accesses.
  bool IsLibrarys(const Candidate& candidate) const {
    const RaceAccess& first = candidate.accesses.front().what;
    if (candidate.indirect == 0 || first.call) {
      return false;
    }
    const Owner owner = guide_.OwnerOfData(first.access.addr);
    return owner == Owner::kLibrary || owner == Owner::kLoader;
  }

  // Who sleeps on a futex word, at the end.
  Result<std::vector<WaitingThread>> WhoWaits() {
    std::vector<WaitingThread> threads;
    for (size_t i = 0; i < process_.thread_count(); ++i) {
      const follower::ThreadState& state = process_.thread(i);
      if (state.phase != follower::ThreadPhase::kInCall) {
        continue;
      }
      CLEW_ASSIGN_OR_RETURN(record, process_.tape().Input(i, state.input));
      const auto* const call =
          record == nullptr ? nullptr : std::get_if<SyscallInput>(record);
      if (call != nullptr && call->number == __NR_futex && !call->result) {
        threads.push_back(WhyItWaits(i, call->args[0]));
      }
    }
    OrderByCycle(threads);
    return threads;
  }

 private:
  static constexpr uint64_t kWordBytes = 8;
  static constexpr uint64_t kBytesMax = 512;  // of an access, that count
  static constexpr uint64_t kRedZoneBytes = 128;
  static constexpr uint64_t kFramesBytes = uint64_t{64} << 10;
  using Words = std::unordered_map<uint64_t, RaceWord>;
  struct Waiting {
    size_t thread = 0;
    Seen seen;
  };

  // Without those of the same instructions, at another word.
  std::vector<Race> BestOf(const std::vector<Candidate>& sorted) const {
    std::vector<Race> races;
    std::set<std::vector<uint64_t>> places;
    for (const Candidate& candidate : sorted) {
      std::vector<uint64_t> place;
      place.reserve(candidate.accesses.size());
      for (const Seen& seen : candidate.accesses) {
        place.push_back(seen.what.access.ip.as_int());
      }
      if (races.size() < limits_.races_max &&
          places.insert(std::move(place)).second) {
        races.push_back(candidate.ToRace());
      }
    }
    return races;
  }

  CodeFacts FactsOf(TraceeAddr addr) {
    const auto [found, is_new] = facts_.try_emplace(addr.as_int());
    if (is_new) {
      found->second = guide_.At(addr);
    }
    return found->second;
  }
  bool IsProgram(TraceeAddr addr) {
    return FactsOf(addr).owner == Owner::kProgram;
  }

  // An access without an instruction is the kernel's.
  CodeFacts FactsAt(const machine::ObservedAccess& access) {
    return access.ip == 0 ? CodeFacts{.owner = Owner::kNobody}
                          : FactsOf(TraceeAddr(access.ip));
  }

  Seen MakeSeen(const machine::ObservedAccess& access, Owner owner) {
    CallStack& stack = stacks_[thread_];
    stack.Drop(process_.thread(thread_).registers.gpr[kRsp]);
    return {.what = {.access = {.thread = process_.tid(thread_),
                                .insn_index = process_.thread(thread_).retired +
                                              access.insn_offset,
                                .ip = TraceeAddr(access.ip),
                                .addr = TraceeAddr(access.addr),
                                .size_bytes = access.size_bytes,
                                .kind = access.kind},
                     .value = access.value,
                     .caller = owner == Owner::kProgram ? TraceeAddr()
                                                        : stack.caller(),
                     .call = {}},
            .thread = thread_,
            .locks = locks_.HeldBy(thread_),
            .owner = owner,
            .begun = begun_.Of(thread_),
            .locked = locked_.Of(thread_)};
  }

  // The call itself neither takes a lock nor changes its word.
  bool IsFutexCall(const machine::ObservedAccess& access) const {
    return access.kind == AccessKind::kReadModifyWrite && futex_call_ &&
           *futex_call_ ==
               process_.thread(thread_).retired + access.insn_offset;
  }

  // Returns whether the access is none of the program's data.
  bool NoteLocks(const machine::ObservedAccess& access, const Seen& seen,
                 LockCall call) {
    CallStack& stack = stacks_[thread_];
    NoteEnd(access);
    const bool is_lock =
        locks_.Note({.thread = thread_,
                     .access = access,
                     .registers = process_.thread(thread_).registers,
                     .stack = stack,
                     .call = call,
                     .of_program = seen.owner == Owner::kProgram,
                     .site = seen.owner == Owner::kProgram ? seen.what.access.ip
                                                           : seen.what.caller});
    stack.Note(access, [this](TraceeAddr addr) { return IsProgram(addr); });
    for (const LockWatch::Change& change : locks_.TakeChanges()) {
      if (change.taken) {
        locked_.Take(change.thread, change.addr);
      } else {
        locked_.Give(change.thread, change.addr);
      }
    }
    return is_lock;
  }

  void NoteCreation(const follower::NewThread& made) {
    const auto child = process_.tape().IndexOf(made.tid);
    if (child) {
      begun_.Pass(thread_, *child);
      locked_.Pass(thread_, *child);
      if ((made.flags & CLONE_CHILD_CLEARTID) != 0) {
        tid_words_[made.child_tid_addr] = *child;
      }
      if ((made.flags & CLONE_VFORK) != 0) {
        NoteAwaited(made.tid);
      }
    }
  }

  // The call that the thread is in returns when that process, which has the
  // memory of this one, has left it.
  void NoteAwaited(Tid process) {
    if (const auto awaited = process_.tape().IndexOf(process)) {
      awaited_[thread_] = *awaited;
    }
  }
  void PassAwaited() {
    const auto awaited = awaited_.find(thread_);
    if (awaited != awaited_.end()) {
      begun_.Pass(awaited->second, thread_);
      locked_.Pass(awaited->second, thread_);
      awaited_.erase(awaited);
    }
  }

  // Who reads that the kernel has cleared a thread's word knows of its end.
  void NoteEnd(const machine::ObservedAccess& access) {
    const auto ended = tid_words_.find(access.addr);
    if (ended != tid_words_.end() && ended->second != thread_ &&
        process_.thread(ended->second).phase == follower::ThreadPhase::kGone) {
      begun_.Pass(ended->second, thread_);
      locked_.Pass(ended->second, thread_);
    }
  }

  WaitingThread WhyItWaits(size_t thread, uint64_t word) {
    using For = WaitingThread::For;
    WaitingThread waiting = {.thread = process_.tid(thread),
                             .addr = word,
                             .site = stacks_[thread].caller(),
                             .held = locks_.Held(thread)};
    const auto joined = tid_words_.find(word);
    const auto& in_call = locks_.InCall(thread);
    if (joined != tid_words_.end()) {
      waiting.what = For::kThread;
      waiting.joined = process_.tid(joined->second);
    } else if (in_call) {
      waiting.what = in_call->call == LockCall::kWaitCondition ? For::kCondition
                     : in_call->call == LockCall::kReadLock    ? For::kReadLock
                                                               : For::kLock;
      waiting.addr = in_call->addr;
      waiting.site = in_call->site;
    } else if (locks_.IsHeld(word)) {
      waiting.what = For::kLock;
    }
    return waiting;
  }

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

  // To each word of which the access has bytes.
  void AddWords(Seen seen) {
    const uint64_t begin = seen.what.access.addr.as_int();
    const uint64_t end =
        begin + std::min<uint64_t>(seen.what.access.size_bytes, kBytesMax);
    for (uint64_t at = begin; at < end; at = (at | (kWordBytes - 1)) + 1) {
      const uint64_t from = at % kWordBytes;
      const uint64_t to = std::min(kWordBytes, from + (end - at));
      seen.bytes = static_cast<uint8_t>((1u << to) - (1u << from));
      Add(words_, at / kWordBytes, seen);
    }
    NoteRead(seen);
  }

  // What the program reads, but not on the stack, where its own variables are.
  void NoteRead(const Seen& seen) {
    const Access& access = seen.what.access;
    const uint64_t above =
        access.addr.as_int() -
        (process_.thread(seen.thread).registers.gpr[kRsp] - kRedZoneBytes);
    if (seen.owner == Owner::kProgram && Reads(access.kind) &&
        above >= kFramesBytes) {
      reads_[seen.thread].Note(access.addr.as_int() / kWordBytes);
    }
  }

  void Add(Words& words, uint64_t number, Seen seen) {
    seen.order = ++order_;
    const RaceFacts facts = {
        .begun = begun_, .locked = locked_, .locks = locks_};
    const auto found = words.find(number);
    if (found != words.end()) {
      found->second.Note(seen, facts);
    } else if (words.size() < limits_.words_max) {
      words[number].Note(seen, facts);
    }
  }

  const follower::Process& process_;
  CodeGuide& guide_;
  RaceLimits limits_;
  size_t thread_ = 0;
  uint64_t order_ = 0;
  std::optional<uint64_t> futex_call_;  // which instruction made the last one
  std::vector<Waiting> waiting_;
  Words words_;        // by address / kWordBytes
  Words descriptors_;  // by number
  LockWatch locks_;
  ThreadOrder begun_;
  ThreadOrder locked_;
  std::vector<CallStack> stacks_;                   // by thread
  std::vector<LastReads> reads_;                    // by thread
  std::unordered_map<uint64_t, CodeFacts> facts_;   // by address
  std::unordered_map<uint64_t, size_t> tid_words_;  // thread, by address
  std::unordered_map<size_t, size_t> awaited_;      // by who waits
  // That the kernel keeps: threads read there who has the lock.
  std::set<uint64_t> lock_words_;
};

}  // namespace

Result<RaceReport> FindRaces(const follower::Recording& recording,
                             const std::vector<ScheduleStep>& steps,
                             CodeGuide& guide, const RaceLimits& limits) {
  CLEW_ASSIGN_OR_RETURN(session, follower::OpenedRecording::Open(recording));
  follower::Process process = session->start();
  Watcher watcher(process, guide, limits);
  process.set_observer(&watcher);
  process.set_call_observer(&watcher);
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
  RaceReport report = {.races = watcher.Races(recording.failure.thread),
                       .waiting = {}};
  CLEW_ASSIGN_OR_RETURN(waiting, watcher.WhoWaits());
  report.waiting = std::move(waiting);
  return report;
}

}  // namespace clew::solver
