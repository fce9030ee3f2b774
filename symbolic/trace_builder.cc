#include "symbolic/trace_builder.h"

#include <asm/unistd_64.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "common/linux/argument_bits.h"
#include "common/linux/futex_command.h"
#include "common/linux/syscall_result.h"
#include "common/linux/syscall_table.h"
#include "follower/engine.h"
#include "follower/guessed_turns.h"
#include "follower/kernel/call_check.h"
#include "machine/shadow.h"
#include "symbolic/shadow_machines.h"

namespace clew::symbolic {

using constraints::ConstraintTrace;
using constraints::EvidenceKind;
using constraints::Expr;
using constraints::ExprPool;
using constraints::GroupId;
using constraints::PathCondition;
using constraints::TraceAccess;
using machine::ConcretiseCause;
using machine::ObservedAccess;

namespace {

// Each pass adds the words through which values came from another thread; what
// these carry on can show further ones.
constexpr int kPassesMax = 8;
constexpr uint64_t kAdvancesPerLook = 256;  // at the clock

// Runs all threads on shadow machines and collects the trace.
class Builder final : public follower::Engine, public machine::ShadowObserver {
 public:
  Builder(const follower::Process& start,
          const std::unordered_set<uint64_t>& words, ExprPool& pool,
          const TraceBuilderOptions& options)
      : process_(start.Forced()),
        words_(words),
        sorted_words_(words.begin(), words.end()),
        pool_(pool),
        options_(options),
        machines_(process_, pool_, *this),
        running_(process_.thread_count()),
        path_groups_(process_.thread_count()),
        syscall_groups_(process_.thread_count()),
        pending_rmw_(process_.thread_count()) {
    std::ranges::sort(sorted_words_);
    built_.insns.resize(process_.thread_count());
    AddGroups();
    AddSlices();
    AddInitialValues();
  }

  Result<BuiltTrace> Build() {
    process_.set_engine(this);
    CLEW_ASSIGN_OR_RETURN(followed, FollowOrder());
    if (followed == follower::Followed::kAsRecorded) {
      CLEW_RETURN_IF_ERROR(FollowGuess());
    }
    DropDanglingFacts();
    built_.insns_run = process_.retired_total();
    return std::move(built_);
  }

  const std::unordered_set<uint64_t>& crossings() const { return crossings_; }

  // --- Engine
  // The last instruction has a run of its own, so that a condition is known to
  // be that of the branch at the end.
  machine::Stop Run(size_t thread, uint64_t max_insns) override {
    thread_ = thread;
    running_[thread] = NextPlace(thread);
    run_before_ = 0;
    if (max_insns > 1) {
      machine::Stop stop = machines_.Of(thread).Run(max_insns - 1);
      if (stop.kind != machine::StopKind::kBudget) {
        last_condition_ = {};
        return stop;
      }
      run_before_ = stop.insns_retired;
    }
    last_condition_ = {};
    machine::Stop stop = machines_.Of(thread).Run(1);
    stop.insns_retired += run_before_;
    return stop;
  }
  void CompleteInsn(size_t thread, const InsnInput& input) override {
    machines_.Of(thread).CompleteInsn(input);
  }
  void OnDeparted(size_t /*thread*/) override { built_.consistent = false; }
  void OnSyscall(size_t thread, const SyscallInput& call) override {
    running_[thread].in_call =
        call.number == __NR_futex
            ? !IsFutexWait(call.args[1])
            : !SyscallMayBlock(call.number) && call.number != __NR_rt_sigreturn;
    NoteOtherCall(thread, call);
    machine::ShadowMachine& cpu = machines_.Of(thread);
    Demand(thread, cpu.GprShadow(kRax), SyscallNumber(call.number), 32);
    const ArgumentBits bits = BitsOfArguments(call.number, call.args);
    for (size_t i = 0; i < bits.size(); ++i) {
      Demand(thread, cpu.GprShadow(follower::kSyscallArguments[i]),
             call.args[i], bits[i]);
    }
    if (call.number == __NR_futex && IsFutexWait(call.args[1]) &&
        words_.contains(call.args[0] / 8)) {
      AddFutexRead(thread, call);
    }
  }
  void OnKernelWrite(size_t thread, uint64_t addr,
                     uint64_t size_bytes) override {
    // What the kernel wrote is as recorded, whatever was stored there before.
    machines_.memory().Forget(addr, size_bytes);
    // Of a long buffer only some words may be traced.
    const uint64_t end = addr + size_bytes;
    for (auto word = std::ranges::lower_bound(sorted_words_, addr / 8);
         word != sorted_words_.end() && *word * 8 < end; ++word) {
      const uint64_t begin = std::max(addr, *word * 8);
      AddKernelWrite(thread, begin, std::min(end, *word * 8 + 8) - begin);
    }
  }
  void OnReturn(size_t thread, const SyscallInput&) override {
    running_[thread].in_call = false;
  }
  void OnThreadCreated(size_t parent, size_t child) override {
    // The parent's last access is before the child's first, which is not known
    // to exist yet: see DropDanglingFacts.
    const auto& accesses = trace().threads[parent].accesses;
    if (!accesses.empty()) {
      trace().order.push_back(
          {.before = {static_cast<uint32_t>(parent),
                      static_cast<uint32_t>(accesses.size() - 1)},
           .after = {static_cast<uint32_t>(child), 0},
           .group = sync_group_});
    }
  }
  // The last branch went the other way in the recorded run.
  void OnForced(size_t thread) override {
    built_.consistent = false;
    if (last_condition_.thread != thread) {
      return;  // what the branch depends on was lost track of
    }
    PathCondition& condition = trace().path[last_condition_.index];
    const uint64_t rip = process_.thread(thread).registers.rip;
    condition.condition =
        last_condition_.target == nullptr
            ? pool_.Not(condition.condition)
            : pool_.Eq(last_condition_.target,
                       pool_.Const(rip, last_condition_.target->width));
  }

  // --- ShadowObserver
  const Expr* OnRead(const ObservedAccess& access,
                     const Expr* loaded) override {
    // What a read at another address would have returned is not known, nor
    // that it was this one.
    const bool elsewhere = AddressIsSymbolic(access) && !built_.consistent;
    if (!Traced(access)) {
      NoteCrossing(access, loaded);
      return elsewhere ? pool_.NewVar(8 * access.size_bytes, "elsewhere")
                       : loaded;
    }
    const Part part = TracedPart(access);
    TraceAccess traced = NewAccess(running_[thread_], access.addr + part.offset,
                                   part.size_bytes, access.ip);
    traced.kind = access.kind;
    const Expr* variable = pool_.NewVar(
        8 * part.size_bytes,
        fmt::format("t{}_{:x}", process_.tid(thread_), access.addr));
    traced.read_value = variable;
    if (access.kind == AccessKind::kReadModifyWrite) {
      // Until the writing half comes: it stays as it is.
      traced.written_value = variable;
      pending_rmw_[thread_] = Add(thread_, traced, InsnOf(access));
    } else {
      Add(thread_, traced, InsnOf(access));
    }
    const Expr* whole = loaded != nullptr
                            ? loaded
                            : pool_.Const(access.value, 8 * access.size_bytes);
    return Replace(whole, part, variable);
  }
  void OnWrite(const ObservedAccess& access, const Expr* stored) override {
    if (!Traced(access)) {
      NoteAuthor(access, stored);
      return;
    }
    const Expr* value = stored != nullptr
                            ? stored
                            : pool_.Const(access.value, 8 * access.size_bytes);
    const Part part = TracedPart(access);
    value = pool_.Extract(value, 8 * part.offset, 8 * part.size_bytes);
    auto& pending = pending_rmw_[thread_];
    if (access.kind == AccessKind::kReadModifyWrite && pending) {
      trace().threads[thread_].accesses[*pending].written_value = value;
      pending.reset();
      return;
    }
    TraceAccess traced = NewAccess(running_[thread_], access.addr + part.offset,
                                   part.size_bytes, access.ip);
    traced.kind = AccessKind::kWrite;
    traced.written_value = value;
    Add(thread_, traced, InsnOf(access));
  }
  void OnBranch(uint64_t ip, const Expr* condition, bool taken) override {
    AddCondition(thread_, taken ? condition : pool_.Not(condition), nullptr,
                 path_groups_[thread_], ip);
  }
  void OnConcretised(uint64_t ip, const Expr* expr, uint64_t value,
                     ConcretiseCause cause) override {
    if (cause == ConcretiseCause::kAddress) {
      symbolic_address_ip_ = ip;
    }
    // Behind a departure this run's values are those of no run that is looked
    // for.
    if (!built_.consistent) {
      return;
    }
    AddCondition(thread_, pool_.Eq(expr, pool_.Const(value, expr->width)),
                 cause == ConcretiseCause::kAddress ? expr : nullptr,
                 built_.assumed[thread_], ip);
  }

 private:
  struct LastCondition {
    size_t thread = ~size_t{0};
    size_t index = 0;              // into trace().path
    const Expr* target = nullptr;  // a jump target or address
  };

  // What is known of when an instruction retired.
  struct Place {
    TscInterval time = TraceAccess().time;
    uint32_t slice = constraints::kNoSlice;
    // It is a SYSCALL whose effects come with it. Those of calls that may sleep
    // come with the thread's next instruction, as a signal's do.
    bool in_call = false;
  };

  ConstraintTrace& trace() { return built_.trace; }

  // Along options_.along, until not even the forced path goes on.
  Result<follower::Followed> FollowOrder() {
    for (const ScheduleStep& step : options_.along) {
      const auto thread = process_.tape().IndexOf(step.thread);
      if (thread) {
        CLEW_ASSIGN_OR_RETURN(followed, Advance(*thread, step.until_insn));
        if (followed == follower::Followed::kContradiction) {
          return followed;
        }
      }
    }
    return follower::Followed::kAsRecorded;
  }

  Status FollowGuess() {
    follower::GuessedTurns turns(process_, options_.clock_slack_ticks);
    const auto no_limit = [](size_t) {
      return std::numeric_limits<uint64_t>::max();
    };
    while (true) {
      CLEW_ASSIGN_OR_RETURN(next, turns.Next(process_, no_limit));
      if (!next) {
        return {};
      }
      CLEW_ASSIGN_OR_RETURN(followed, Advance(next->thread, next->until_insn));
      if (followed == follower::Followed::kContradiction) {
        return {};
      }
    }
  }

  Result<follower::Followed> Advance(size_t thread, uint64_t until_insn) {
    CLEW_ASSIGN_OR_RETURN(advance, process_.Run(thread, until_insn));
    if (access_count_ > options_.accesses_max || pool_.full()) {
      return LimitReached(
          "more than {} contested accesses or {} expressions; too large for a "
          "formula",
          options_.accesses_max, pool_.node_count());
    }
    if (++advances_ % kAdvancesPerLook == 0 &&
        std::chrono::steady_clock::now() >= options_.deadline) {
      return LimitReached("no time left to write down a formula");
    }
    return advance.stop == follower::Advance::Stop::kContradiction
               ? follower::Followed::kContradiction
               : follower::Followed::kAsRecorded;
  }

  // The address of this access depends on traced words. (An indirect jump's
  // target counts too where it comes from memory; that errs on the safe side.)
  bool AddressIsSymbolic(const ObservedAccess& access) const {
    return symbolic_address_ip_ == access.ip;
  }

  // Who wrote an expression into a word that is not traced.
  void NoteAuthor(const ObservedAccess& access, const Expr* stored) {
    for (const uint64_t word : WordsOf(access)) {
      if (stored != nullptr) {
        authors_[word] = thread_;
      } else {
        authors_.erase(word);
      }
    }
  }
  // A word through which an expression comes from another thread has to be
  // traced: what one thread has read another does not know.
  void NoteCrossing(const ObservedAccess& access, const Expr* loaded) {
    if (loaded == nullptr) {
      return;
    }
    for (const uint64_t word : WordsOf(access)) {
      const auto author = authors_.find(word);
      if (author != authors_.end() && author->second != thread_) {
        crossings_.insert(word);
      }
    }
  }
  static std::set<uint64_t> WordsOf(const ObservedAccess& access) {
    return {access.addr / 8, (access.addr + access.size_bytes - 1) / 8};
  }

  // The machine makes another call than the one recorded.
  void NoteOtherCall(size_t thread, const SyscallInput& call) {
    built_.consistent =
        built_.consistent &&
        !follower::OtherArguments(process_.thread(thread).registers, call);
  }

  void AddGroups() {
    for (size_t i = 0; i < process_.thread_count(); ++i) {
      trace().threads.push_back({.tid = process_.tid(i), .accesses = {}});
      path_groups_[i] = trace().AddGroup(
          EvidenceKind::kPath,
          fmt::format("branches of thread {}", process_.tid(i)));
      built_.assumed.push_back(trace().AddGroup(
          EvidenceKind::kPath,
          fmt::format("addresses and values of thread {}, as in one run",
                      process_.tid(i))));
      syscall_groups_[i] = trace().AddGroup(
          EvidenceKind::kSyscall,
          fmt::format("system calls of thread {}", process_.tid(i)));
    }
    sync_group_ = trace().AddGroup(EvidenceKind::kSync, "thread creation");
    trace().time_group =
        trace().AddGroup(EvidenceKind::kTime, "timing packets");
    trace().core_group =
        trace().AddGroup(EvidenceKind::kCore, "order of slices on a core");
    trace().clock_slack_ticks = options_.clock_slack_ticks;
  }

  void AddSlices() {
    for (const Slice& slice : process_.tape().slices()) {
      trace().slices.push_back({.core = slice.core, .on_core = slice.on_core});
    }
  }

  // REQUIRES: the bytes are in one traced word.
  void AddKernelWrite(size_t thread, uint64_t addr, uint64_t size_bytes) {
    uint64_t value = 0;
    process_.memory().Peek(
        addr, std::as_writable_bytes(std::span(&value, 1)).first(size_bytes));
    const Place place =
        running_[thread].in_call ? running_[thread] : NextPlace(thread);
    TraceAccess access =
        NewAccess(place, addr, static_cast<uint32_t>(size_bytes), 0);
    access.kind = AccessKind::kWrite;
    access.written_value =
        pool_.Const(value, static_cast<uint32_t>(8 * size_bytes));
    Add(thread, access,
        place.in_call ? InsnBefore(thread) : process_.thread(thread).retired);
  }

  void AddInitialValues() {
    for (const uint64_t word : words_) {
      uint64_t value = 0;
      if (process_.memory().Peek(
              word * 8, std::as_writable_bytes(std::span(&value, 1))) &&
          value != 0) {
        trace().initial.push_back({.addr = TraceeAddr(word * 8),
                                   .size_bytes = 8,
                                   .value = pool_.Const(value, 64)});
      }
    }
  }

  uint64_t InsnOf(const ObservedAccess& access) const {
    return process_.thread(thread_).retired + run_before_ + access.insn_offset;
  }
  // The SYSCALL that has just retired.
  uint64_t InsnBefore(size_t thread) const {
    const uint64_t retired = process_.thread(thread).retired;
    return retired == 0 ? 0 : retired - 1;
  }
  bool Traced(const ObservedAccess& access) const {
    return words_.contains(access.addr / 8) ||
           words_.contains((access.addr + access.size_bytes - 1) / 8);
  }

  // The bytes of an access that lie in traced words; the others are private to
  // the thread, or as in this run. REQUIRES: there are some.
  struct Part {
    uint32_t offset = 0;
    uint32_t size_bytes = 0;
  };
  Part TracedPart(const ObservedAccess& access) const {
    const uint64_t last_word = (access.addr + access.size_bytes - 1) / 8;
    const auto first_bytes =
        std::min(static_cast<uint32_t>(8 - access.addr % 8), access.size_bytes);
    const bool first = words_.contains(access.addr / 8);
    const bool last = words_.contains(last_word);
    if (first && last) {
      return {.offset = 0, .size_bytes = access.size_bytes};
    }
    return first ? Part{.offset = 0, .size_bytes = first_bytes}
                 : Part{.offset = first_bytes,
                        .size_bytes = access.size_bytes - first_bytes};
  }
  // `whole` with that part of it, its beginning or its end, replaced.
  const Expr* Replace(const Expr* whole, Part part, const Expr* by) {
    const uint32_t end = 8 * (part.offset + part.size_bytes);
    if (part.offset != 0) {
      return pool_.Concat(by, pool_.Extract(whole, 0, 8 * part.offset));
    }
    return end == whole->width
               ? by
               : pool_.Concat(pool_.Extract(whole, end, whole->width - end),
                              by);
  }

  Place NextPlace(size_t thread) const {
    Place place;
    const auto block = process_.NextBlock(thread);
    if (block && *block != nullptr) {
      place.time = (*block)->time;
      place.slice = (*block)->slice;
    }
    return place;
  }
  static TraceAccess NewAccess(const Place& place, uint64_t addr,
                               uint32_t size_bytes, uint64_t ip) {
    TraceAccess access;
    access.addr = TraceeAddr(addr);
    access.size_bytes = size_bytes;
    access.ip = TraceeAddr(ip);
    access.time = place.time;
    access.slice = place.slice;
    return access;
  }

  size_t Add(size_t thread, const TraceAccess& access, uint64_t insn) {
    auto& accesses = trace().threads[thread].accesses;
    accesses.push_back(access);
    built_.insns[thread].push_back(insn);
    ++access_count_;
    return accesses.size() - 1;
  }

  void AddCondition(size_t thread, const Expr* condition, const Expr* target,
                    GroupId group, uint64_t ip) {
    if (condition->is_const()) {
      return;
    }
    last_condition_ = {
        .thread = thread, .index = trace().path.size(), .target = target};
    trace().path.push_back({.condition = condition,
                            .thread = static_cast<uint32_t>(thread),
                            .after_accesses = static_cast<uint32_t>(
                                trace().threads[thread].accesses.size()),
                            .group = group,
                            .ip = TraceeAddr(ip)});
  }

  // The low `bits` of what a system call is given are those of `value`.
  void Demand(size_t thread, const Expr* expr, uint64_t value, uint32_t bits) {
    if (expr != nullptr && bits != 0) {
      const Expr* const part = pool_.Extract(expr, 0, bits);
      AddCondition(thread, pool_.Eq(part, pool_.Const(value, bits)), nullptr,
                   syscall_groups_[thread],
                   process_.thread(thread).registers.rip);
    }
  }

  // The kernel compares the word with the expected value.
  void AddFutexRead(size_t thread, const SyscallInput& call) {
    TraceAccess access =
        NewAccess(running_[thread], call.args[0], sizeof(uint32_t),
                  process_.thread(thread).registers.rip);
    access.kind = AccessKind::kRead;
    access.read_value =
        pool_.NewVar(32, fmt::format("t{}_futex", process_.tid(thread)));
    Add(thread, access, InsnBefore(thread));
    // A wait that took time was refused for what the word was at some moment of
    // it.
    const bool at_another_moment = call.result == -EAGAIN && TookTime(call);
    if (!ComparedFutexWord(call.result) || at_another_moment) {
      return;
    }
    // EAGAIN says that the word was another one; a call that slept, or was
    // woken, found the expected value.
    const Expr* equal =
        pool_.Eq(access.read_value, pool_.Const(call.args[2], 32));
    AddCondition(thread, call.result == -EAGAIN ? pool_.Not(equal) : equal,
                 nullptr, syscall_groups_[thread],
                 process_.thread(thread).registers.rip);
  }

  // Threads that were created and made no access.
  void DropDanglingFacts() {
    std::erase_if(trace().order, [this](const constraints::OrderFact& fact) {
      return trace().threads[fact.after.thread].accesses.empty();
    });
  }

  follower::Process process_;
  const std::unordered_set<uint64_t>& words_;
  std::vector<uint64_t> sorted_words_;
  ExprPool& pool_;
  TraceBuilderOptions options_;
  ShadowMachines machines_;
  std::vector<Place> running_;  // by thread: of the last block that ran
  std::vector<GroupId> path_groups_;
  std::vector<GroupId> syscall_groups_;
  GroupId sync_group_;
  std::vector<std::optional<size_t>> pending_rmw_;  // by thread
  LastCondition last_condition_;
  size_t thread_ = 0;        // the one that runs
  uint64_t run_before_ = 0;  // instructions it ran since `retired`
  std::optional<uint64_t> symbolic_address_ip_;
  std::unordered_map<uint64_t, size_t> authors_;  // by untraced word
  std::unordered_set<uint64_t> crossings_;
  uint64_t access_count_ = 0;
  uint64_t advances_ = 0;
  BuiltTrace built_;
};

}  // namespace

// Tracing a word may show that another has to be.
Result<BuiltTrace> BuildTrace(const follower::Process& start,
                              const std::unordered_set<uint64_t>& contested,
                              ExprPool& pool,
                              const TraceBuilderOptions& options) {
  std::unordered_set<uint64_t> words = contested;
  for (int pass = 0; pass < kPassesMax; ++pass) {
    Builder builder(start, words, pool, options);
    CLEW_ASSIGN_OR_RETURN(built, builder.Build());
    if (builder.crossings().empty()) {
      return built;
    }
    words.insert(builder.crossings().begin(), builder.crossings().end());
  }
  return LimitReached(
      "values cross threads through further words after {} passes; too "
      "entangled for a formula",
      kPassesMax);
}

constraints::AccessOrder AccessOrderOf(const BuiltTrace& built,
                                       const follower::Tape& tape,
                                       std::span<const ScheduleStep> steps) {
  std::vector<size_t> next(built.insns.size());
  constraints::AccessOrder order;
  for (const ScheduleStep& step : steps) {
    const auto thread = tape.IndexOf(step.thread);
    while (thread && next[*thread] < built.insns[*thread].size() &&
           built.insns[*thread][next[*thread]] < step.until_insn) {
      order.push_back(static_cast<uint32_t>(*thread));
      ++next[*thread];
    }
  }
  return order;
}

ConstraintTrace WithoutAssumptions(const BuiltTrace& built) {
  ConstraintTrace trace = built.trace;
  std::erase_if(trace.path, [&](const PathCondition& condition) {
    return std::ranges::find(built.assumed, condition.group) !=
           built.assumed.end();
  });
  return trace;
}

}  // namespace clew::symbolic
