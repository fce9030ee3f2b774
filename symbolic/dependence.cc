#include "symbolic/dependence.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>

#include "common/linux/argument_bits.h"
#include "common/linux/syscall_table.h"
#include "common/x86/branch.h"
#include "follower/engine.h"
#include "follower/kernel/call_check.h"
#include "machine/shadow.h"
#include "symbolic/shadow_machines.h"

namespace clew::symbolic {

using constraints::Expr;
using constraints::ExprPool;
using follower::kSyscallArguments;
using machine::ConcretiseCause;
using machine::ObservedAccess;

namespace {

constexpr uint64_t kTurnsPerLook = 256;  // at the clock

bool IsIndirectCall(const machine::Memory& memory, uint64_t ip) {
  std::array<uint8_t, x86::kInsnBytesMax> bytes;
  const size_t size =
      memory.Fetch(ip, std::as_writable_bytes(std::span(bytes)));
  return x86::ClassifyBranch(std::span(bytes).first(size)).branch_class ==
         x86::BranchClass::kIndirectCall;
}

// Marks what depends on contested words by an expression. Which one it is does
// not matter: no variable stands for two values, so that none cancel out.
class Marker final : public follower::Engine, public machine::ShadowObserver {
 public:
  Marker(const follower::Process& from, const follower::GuessedTurns& turns,
         const DepartureStep& step, const std::unordered_set<uint64_t>& words,
         const DependenceOptions& options)
      : process_(from),
        turns_(turns),
        step_(step),
        words_(words),
        options_(options),
        machines_(process_, pool_, *this) {}

  Result<bool> Run() {
    process_.set_engine(this);
    const auto limit_of = [this](size_t thread) {
      return thread == step_.thread ? step_.insn
                                    : std::numeric_limits<uint64_t>::max();
    };
    for (uint64_t turn = 0; !unknown_; ++turn) {
      CLEW_ASSIGN_OR_RETURN(next, turns_.Next(process_, limit_of));
      if (!next) {
        return departs_ && !unknown_ && !HandledSignal();
      }
      CLEW_ASSIGN_OR_RETURN(advance,
                            process_.Run(next->thread, next->until_insn));
      if (advance.stop == follower::Advance::Stop::kContradiction ||
          OverLimit(turn)) {
        return false;
      }
    }
    return false;
  }

  // --- Engine
  // The last instruction has a run of its own: what it depends on is known.
  machine::Stop Run(size_t thread, uint64_t max_insns) override {
    machine::ShadowMachine& cpu = machines_.Of(thread);
    thread_ = thread;
    marked_at_ = 0;
    uint64_t before = 0;
    if (max_insns > 1) {
      machine::Stop stop = cpu.Run(max_insns - 1);
      if (stop.kind != machine::StopKind::kBudget) {
        return stop;
      }
      before = stop.insns_retired;
    }
    last_is_marked_ = false;
    machine::Stop stop = cpu.Run(1);
    stop.insns_retired += before;
    return stop;
  }
  void CompleteInsn(size_t thread, const InsnInput& input) override {
    machines_.Of(thread).CompleteInsn(input);
  }
  void OnSyscall(size_t thread, const SyscallInput& call) override {
    departs_ |= IsStep(thread) && MakesOtherCall(thread, call);
  }
  void OnKernelWrite(size_t /*thread*/, uint64_t addr,
                     uint64_t size_bytes) override {
    machines_.memory().Forget(addr, size_bytes);  // as recorded, in every order
  }
  void OnReturn(size_t thread, const SyscallInput& /*call*/) override {
    machines_.Of(thread).SetGprShadow(kRax, nullptr);
  }
  void OnThreadCreated(size_t parent, size_t child) override {
    machines_.Of(child).InheritFrom(machines_.Of(parent));
  }
  void OnForced(size_t thread) override {
    departs_ |= IsStep(thread) && !last_is_marked_;
  }
  void OnDeparted(size_t /*thread*/) override { unknown_ = true; }

  // --- ShadowObserver
  const Expr* OnRead(const ObservedAccess& access,
                     const Expr* loaded) override {
    const bool marked =
        loaded != nullptr || Contested(access) || access.ip == marked_at_;
    return marked ? pool_.NewVar(8 * access.size_bytes, "") : nullptr;
  }
  void OnWrite(const ObservedAccess& access, const Expr* /*stored*/) override {
    unknown_ |= access.ip == marked_at_ && !OnlyTargetIsMarked(access);
  }
  void OnBranch(uint64_t, const Expr*, bool) override {
    last_is_marked_ = true;
  }
  void OnConcretised(uint64_t ip, const Expr*, uint64_t,
                     ConcretiseCause cause) override {
    last_is_marked_ = true;
    unknown_ |= cause == ConcretiseCause::kValue;
    marked_at_ = ip;
  }

 private:
  bool OverLimit(uint64_t turn) const {
    return pool_.full() || process_.retired_total() > options_.insns_max ||
           (turn % kTurnsPerLook == 0 &&
            std::chrono::steady_clock::now() >= options_.deadline);
  }
  // What its handler finds is partly what the thread had in its registers.
  bool HandledSignal() const {
    for (size_t thread = 0; thread < process_.thread_count(); ++thread) {
      for (uint64_t i = 0; i < process_.thread(thread).input; ++i) {
        const auto record = process_.tape().Input(thread, i);
        if (!record || *record == nullptr ||
            std::holds_alternative<SignalInput>(**record)) {
          return true;
        }
      }
    }
    return false;
  }
  bool IsStep(size_t thread) const {
    return thread == step_.thread &&
           process_.thread(thread).retired == step_.insn;
  }
  // By its number, or by an argument that is not marked.
  bool MakesOtherCall(size_t thread, const SyscallInput& call) {
    const machine::ShadowMachine& cpu = machines_.Of(thread);
    const auto& gpr = process_.thread(thread).registers.gpr;
    if (cpu.GprShadow(kRax) != nullptr) {
      return false;
    }
    if (SyscallNumber(gpr[kRax]) != SyscallNumber(call.number)) {
      return true;
    }
    const ArgumentBits bits = BitsOfArguments(call.number, call.args);
    for (size_t i = 0; i < bits.size(); ++i) {
      const Gpr number = kSyscallArguments[i];
      if (bits[i] != 0 && cpu.GprShadow(number) == nullptr &&
          (gpr[number] ^ call.args[i]) << (64 - bits[i]) != 0) {
        return true;
      }
    }
    return false;
  }
  bool Contested(const ObservedAccess& access) const {
    return words_.contains(access.addr / 8) ||
           words_.contains((access.addr + access.size_bytes - 1) / 8);
  }
  // A call stores its return address where the stack pointer says.
  bool OnlyTargetIsMarked(const ObservedAccess& access) {
    return machines_.Of(thread_).GprShadow(kRsp) == nullptr &&
           IsIndirectCall(process_.memory(), access.ip);
  }
  follower::Process process_;
  follower::GuessedTurns turns_;
  DepartureStep step_;
  const std::unordered_set<uint64_t>& words_;
  DependenceOptions options_;
  ExprPool pool_;
  ShadowMachines machines_;
  bool last_is_marked_ = false;  // what the last instruction decides
  bool departs_ = false;
  bool unknown_ = false;
  size_t thread_ = 0;       // the one that runs
  uint64_t marked_at_ = 0;  // the last to have a marked address or target
};

}  // namespace

Result<bool> DepartsInEveryOrder(const follower::Process& from,
                                 const follower::GuessedTurns& turns,
                                 const DepartureStep& step,
                                 const std::unordered_set<uint64_t>& words,
                                 const DependenceOptions& options) {
  return Marker(from, turns, step, words, options).Run();
}

}  // namespace clew::symbolic
