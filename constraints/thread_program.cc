#include "constraints/thread_program.h"

#include <algorithm>
#include <unordered_map>

#include "constraints/expr_eval.h"

namespace clew::constraints {

namespace {

class Compiler {
 public:
  Compiler(const ConstraintTrace& trace, uint32_t thread)
      : trace_(trace),
        thread_(thread),
        accesses_(trace.threads[thread].accesses) {}

  Result<ThreadProgram> Compile() {
    CollectNodes();
    CLEW_RETURN_IF_ERROR(FindReadyTimes());
    FindLastUses();
    program_.accesses.resize(accesses_.size());
    EmitSlots();
    EmitOps();
    EmitChecks();
    EmitLifetimes();
    MarkPureTests();
    return std::move(program_);
  }

 private:
  struct Node {
    const Expr* e;
    int64_t ready;     // access after which it is known; -1: from the start
    int64_t last_use;  // last access that needs it
  };

  void CollectNodes() {
    std::vector<const Expr*> roots;
    for (uint32_t i = 0; i < accesses_.size(); ++i) {
      if (accesses_[i].read_value != nullptr) {
        roots.push_back(accesses_[i].read_value);
        read_at_[accesses_[i].read_value] = i;
      }
      if (accesses_[i].written_value != nullptr) {
        roots.push_back(accesses_[i].written_value);
      }
    }
    for (const auto& path : trace_.path) {
      if (path.thread == thread_) {
        roots.push_back(path.condition);
      }
    }
    for (const Expr* e : ReachableNodes(roots)) {
      slots_[e] = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({e, -1, -1});
    }
  }

  Node& NodeOf(const Expr* e) { return nodes_[slots_.at(e)]; }

  Status FindReadyTimes() {
    for (Node& node : nodes_) {
      if (node.e->op == ExprOp::kVar) {
        const auto read = read_at_.find(node.e);
        if (read == read_at_.end()) {
          return Unsupported("thread {} depends on unknown value v{}", thread_,
                             node.e->value);
        }
        node.ready = read->second;
      }
      for (size_t i = 0; i < OperandCount(node.e->op); ++i) {
        node.ready = std::max(node.ready, NodeOf(node.e->operands[i]).ready);
      }
    }
    return {};
  }

  void FindLastUses() {
    for (const Node& node : nodes_) {
      for (size_t i = 0; i < OperandCount(node.e->op); ++i) {
        Node& operand = NodeOf(node.e->operands[i]);
        operand.last_use = std::max(operand.last_use, node.ready);
      }
    }
    for (uint32_t i = 0; i < accesses_.size(); ++i) {
      if (accesses_[i].written_value != nullptr) {
        Node& written = NodeOf(accesses_[i].written_value);
        written.last_use = std::max(written.last_use, int64_t{i});
      }
    }
  }

  void EmitSlots() {
    program_.start.assign(nodes_.size(), 0);
    for (const Node& node : nodes_) {
      if (node.e->is_const()) {
        program_.start[slots_.at(node.e)] = node.e->value;
      }
    }
    for (uint32_t i = 0; i < accesses_.size(); ++i) {
      AccessProgram& at = program_.accesses[i];
      if (accesses_[i].read_value != nullptr) {
        at.read_slot = slots_.at(accesses_[i].read_value);
      }
      if (accesses_[i].written_value != nullptr) {
        at.written_slot = slots_.at(accesses_[i].written_value);
      }
    }
  }

  // Nodes are in topological order, so a stable order by time keeps it.
  void EmitOps() {
    std::vector<uint32_t> order;
    for (uint32_t slot = 0; slot < nodes_.size(); ++slot) {
      if (OperandCount(nodes_[slot].e->op) > 0) {
        order.push_back(slot);
      }
    }
    std::ranges::stable_sort(order, {},
                             [&](uint32_t slot) { return nodes_[slot].ready; });
    size_t next = 0;
    for (uint32_t i = 0; i < accesses_.size(); ++i) {
      program_.accesses[i].ops_begin =
          static_cast<uint32_t>(program_.ops.size());
      for (; next < order.size() && nodes_[order[next]].ready == i; ++next) {
        program_.ops.push_back(MakeOp(order[next]));
      }
      program_.accesses[i].ops_end = static_cast<uint32_t>(program_.ops.size());
    }
  }

  SlotOp MakeOp(uint32_t slot) const {
    SlotOp op{nodes_[slot].e, slot, {kNoSlot, kNoSlot, kNoSlot}};
    for (size_t i = 0; i < OperandCount(op.e->op); ++i) {
      op.operands[i] = slots_.at(op.e->operands[i]);
    }
    return op;
  }

  // A condition over constants only is checked at the first access; without
  // any access it is checked by the executor's start.
  void EmitChecks() {
    std::vector<std::vector<ThreadProgram::Check>> at(accesses_.size() + 1);
    for (uint32_t i = 0; i < trace_.path.size(); ++i) {
      if (trace_.path[i].thread == thread_) {
        const uint32_t slot = slots_.at(trace_.path[i].condition);
        const int64_t ready = std::max<int64_t>(nodes_[slot].ready, 0);
        at[static_cast<size_t>(ready)].push_back({slot, i});
      }
    }
    for (uint32_t i = 0; i < accesses_.size(); ++i) {
      program_.accesses[i].checks_begin =
          static_cast<uint32_t>(program_.checks.size());
      program_.checks.insert(program_.checks.end(), at[i].begin(), at[i].end());
      program_.accesses[i].checks_end =
          static_cast<uint32_t>(program_.checks.size());
    }
  }

  void EmitLifetimes() {
    std::vector<std::vector<uint32_t>> born(accesses_.size());
    std::vector<std::vector<uint32_t>> dead(accesses_.size());
    for (uint32_t slot = 0; slot < nodes_.size(); ++slot) {
      const Node& node = nodes_[slot];
      if (node.ready >= 0 && node.last_use > node.ready) {
        born[static_cast<size_t>(node.ready)].push_back(slot);
        dead[static_cast<size_t>(node.last_use)].push_back(slot);
      }
    }
    for (uint32_t i = 0; i < accesses_.size(); ++i) {
      AccessProgram& at = program_.accesses[i];
      at.born_begin = static_cast<uint32_t>(program_.born.size());
      at.dead_begin = static_cast<uint32_t>(program_.dead.size());
      program_.born.insert(program_.born.end(), born[i].begin(), born[i].end());
      program_.dead.insert(program_.dead.end(), dead[i].begin(), dead[i].end());
      at.born_end = static_cast<uint32_t>(program_.born.size());
      at.dead_end = static_cast<uint32_t>(program_.dead.size());
    }
  }

  void MarkPureTests() {
    for (uint32_t i = 0; i < accesses_.size(); ++i) {
      AccessProgram& at = program_.accesses[i];
      at.pure_test = accesses_[i].kind == AccessKind::kRead &&
                     at.born_begin == at.born_end;
    }
  }

  const ConstraintTrace& trace_;
  uint32_t thread_;
  const std::vector<TraceAccess>& accesses_;
  std::unordered_map<const Expr*, uint32_t> slots_;
  std::unordered_map<const Expr*, uint32_t> read_at_;
  std::vector<Node> nodes_;
  ThreadProgram program_;
};

}  // namespace

Result<ThreadProgram> CompileThread(const ConstraintTrace& trace,
                                    uint32_t thread) {
  return Compiler(trace, thread).Compile();
}

}  // namespace clew::constraints
