// Prints how fast the machine runs compiled code, in million instructions per
// second: a guest function of this program (bench/machine_guest.c) on the
// machine, with its result checked against the direct call.
//
//   build/bench/bench_machine [--json]
//
// Rows: one long run; short runs of 5 instructions as the follower makes them;
// with an access observer; with the undo log; with the memory digest; the
// shadow domain without any symbolic value.

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>

#include "machine/shadow.h"
#include "tests/machine/guest_call.h"

extern "C" uint64_t Guest(uint64_t rounds);

namespace clew::machine {
namespace {

constexpr uint64_t kRounds = 4;

class CountingObserver final : public AccessObserver {
 public:
  bool OnAccess(const ObservedAccess&) override {
    ++count_;
    return false;
  }

 private:
  uint64_t count_ = 0;
};

struct Run {
  uint64_t insns = 0;
  double seconds = 0;
  bool correct = false;
};

// `slice`: instructions per Machine::Run.
Run Measure(uint64_t slice, AccessObserver* observer,
            const std::function<void(Memory&)>& prepare) {
  GuestCall guest;
  CodeCache code;
  Registers regs = guest.Prepare(reinterpret_cast<uint64_t>(&Guest), {kRounds});
  prepare(guest.memory());
  Machine machine(regs, guest.memory(), code);
  machine.set_observer(observer);
  Run run;
  const auto start = std::chrono::steady_clock::now();
  Stop stop;
  do {
    stop = machine.Run(slice);
    run.insns += stop.insns_retired;
  } while (stop.kind == StopKind::kBudget);
  run.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  run.correct =
      regs.rip == GuestCall::kReturnTo && regs.gpr[kRax] == Guest(kRounds);
  return run;
}

class NullObserver final : public ShadowObserver {
 public:
  const Expr* OnRead(const ObservedAccess&, const Expr* loaded) override {
    return loaded;
  }
  void OnWrite(const ObservedAccess&, const Expr*) override {}
  void OnBranch(uint64_t, const Expr*, bool) override {}
  void OnConcretised(uint64_t, const Expr*, uint64_t,
                     ConcretiseCause) override {}
};

// The shadow domain where nothing is symbolic: what following costs.
Run MeasureShadow() {
  GuestCall guest;
  ShadowCodeCache code;
  ExprPool pool;
  ShadowMemory shadow(pool);
  NullObserver observer;
  Registers regs = guest.Prepare(reinterpret_cast<uint64_t>(&Guest), {kRounds});
  ShadowMachine machine(regs, guest.memory(), shadow, code, pool, observer);
  Run run;
  const auto start = std::chrono::steady_clock::now();
  run.insns = machine.Run(~uint64_t{0}).insns_retired;
  run.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  run.correct =
      regs.rip == GuestCall::kReturnTo && regs.gpr[kRax] == Guest(kRounds);
  return run;
}

bool Print(const std::string& name, const Run& run, bool json) {
  const double rate = static_cast<double>(run.insns) / run.seconds / 1e6;
  if (json) {
    fmt::print(
        "{{\"case\":\"{}\",\"insns\":{},\"m_insn_per_s\":{:.1f},"
        "\"correct\":{}}}\n",
        name, run.insns, rate, run.correct);
  } else {
    fmt::print("{:<24} {:>11} insn {:>8.1f} M insn/s  {}\n", name, run.insns,
               rate, run.correct ? "result as native" : "WRONG RESULT");
  }
  return run.correct;
}

int Main(bool json) {
  CountingObserver observer;
  const auto nothing = [](Memory&) {};
  bool ok = true;
  ok &= Print("long run", Measure(~uint64_t{0}, nullptr, nothing), json);
  ok &= Print("runs of 5", Measure(5, nullptr, nothing), json);
  ok &= Print("observer", Measure(~uint64_t{0}, &observer, nothing), json);
  ok &= Print("undo log",
              Measure(~uint64_t{0}, nullptr, [](Memory& m) { m.SetMark(); }),
              json);
  ok &=
      Print("digest",
            Measure(~uint64_t{0}, nullptr, [](Memory& m) { m.EnableDigest(); }),
            json);
  ok &= Print("shadow, no symbols", MeasureShadow(), json);
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace clew::machine

int main(int argc, char** argv) {
  return clew::machine::Main(argc > 1 && std::strcmp(argv[1], "--json") == 0);
}
