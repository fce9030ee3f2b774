#ifndef CLEW_SYMBOLIC_SHADOW_MACHINES_H_
#define CLEW_SYMBOLIC_SHADOW_MACHINES_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "constraints/expr.h"
#include "follower/process.h"
#include "machine/shadow.h"

namespace clew::symbolic {

// The shadow machines of a process's threads, each made when its thread runs
// first, over one shadow memory.
class ShadowMachines {
 public:
  // All of them outlive this.
  ShadowMachines(follower::Process& process, constraints::ExprPool& pool,
                 machine::ShadowObserver& observer)
      : process_(process),
        pool_(pool),
        observer_(observer),
        memory_(pool),
        code_(process.cpu_features()),
        machines_(process.thread_count()) {}

  machine::ShadowMachine& Of(size_t thread) {
    auto& cpu = machines_[thread];
    if (!cpu) {
      cpu = std::make_unique<machine::ShadowMachine>(
          process_.mutable_registers(thread), process_.mutable_memory(),
          memory_, code_, pool_, observer_);
    }
    return *cpu;
  }
  machine::ShadowMemory& memory() { return memory_; }

 private:
  follower::Process& process_;
  constraints::ExprPool& pool_;
  machine::ShadowObserver& observer_;
  machine::ShadowMemory memory_;
  machine::ShadowCodeCache code_;
  std::vector<std::unique_ptr<machine::ShadowMachine>> machines_;
};

}  // namespace clew::symbolic

#endif  // CLEW_SYMBOLIC_SHADOW_MACHINES_H_
