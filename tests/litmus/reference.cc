#include "tests/litmus/reference.h"

#include <algorithm>

namespace clew::test {
namespace {

using Kind = LitmusOp::Kind;

struct Waiting {
  uint32_t at;
  uint32_t size_bytes;
  uint64_t value;
  auto operator<=>(const Waiting&) const = default;
};

struct ThreadNow {
  size_t position = 0;
  bool half_done = false;  // the load of a load and a store
  uint64_t loaded = 0;
  std::vector<uint64_t> results;
  std::vector<Waiting> waiting;
  auto operator<=>(const ThreadNow&) const = default;
};

struct State {
  std::vector<uint8_t> memory = std::vector<uint8_t>(kLitmusBytes);
  std::vector<ThreadNow> threads;
  auto operator<=>(const State&) const = default;
};

void Put(std::vector<uint8_t>& memory, const Waiting& store) {
  for (uint32_t i = 0; i < store.size_bytes; ++i) {
    memory[store.at + i] = static_cast<uint8_t>(store.value >> (8 * i));
  }
}

uint64_t Get(const State& state, const ThreadNow& thread, const LitmusOp& op) {
  std::vector<uint8_t> seen = state.memory;
  for (const Waiting& store : thread.waiting) {
    Put(seen, store);
  }
  uint64_t value = 0;
  for (uint32_t i = 0; i < op.size_bytes; ++i) {
    value |= uint64_t{seen[op.at + i]} << (8 * i);
  }
  return value;
}

// What an instruction that reads and writes makes of a value.
uint64_t Changed(const LitmusOp& op, uint64_t old) {
  switch (op.kind) {
    case Kind::kIncrement:
      return old + 1;
    case Kind::kAdd:
      return old + op.value;
    case Kind::kSwapIfZero:
      return old == 0 ? op.value : old;
    default:
      return op.value;
  }
}

bool SameWords(const Waiting& a, const Waiting& b) {
  return a.at / 8 <= (b.at + b.size_bytes - 1) / 8 &&
         b.at / 8 <= (a.at + a.size_bytes - 1) / 8;
}

class Reference {
 public:
  Reference(const LitmusProgram& program, MemoryModelKind model)
      : program_(program), model_(model) {
    State first;
    first.threads.resize(program.size());
    Visit(first);
  }
  std::set<LitmusOutcome> TakeOutcomes() { return std::move(outcomes_); }

 private:
  void Visit(const State& state) {
    if (!visited_.insert(state).second) {
      return;
    }
    bool over = true;
    for (size_t t = 0; t < program_.size(); ++t) {
      const ThreadNow& thread = state.threads[t];
      if (thread.position < program_[t].size()) {
        over = false;
        Step(state, t);
      }
      for (size_t i = 0; i < thread.waiting.size(); ++i) {
        over = false;
        if (MayLeave(thread.waiting, i)) {
          State next = state;
          auto& waiting = next.threads[t].waiting;
          Put(next.memory, waiting[i]);
          waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
          Visit(next);
        }
      }
    }
    if (over) {
      LitmusOutcome outcome = {.results = {}, .memory = state.memory};
      for (const ThreadNow& thread : state.threads) {
        outcome.results.push_back(thread.results);
      }
      outcomes_.insert(std::move(outcome));
    }
  }

  bool MayLeave(const std::vector<Waiting>& waiting, size_t i) const {
    return model_ == MemoryModelKind::kTso
               ? i == 0
               : std::none_of(waiting.begin(),
                              waiting.begin() + static_cast<std::ptrdiff_t>(i),
                              [&](const Waiting& older) {
                                return SameWords(older, waiting[i]);
                              });
  }

  void Step(State next, size_t t) {
    ThreadNow& thread = next.threads[t];
    const LitmusOp& op = program_[t][thread.position];
    const bool changes = op.kind == Kind::kIncrement || op.kind == Kind::kAdd ||
                         op.kind == Kind::kSwapIfZero;
    const bool one_step = op.kind == Kind::kExchange || (changes && op.locked);
    const bool fences =
        one_step || op.kind == Kind::kFence || op.kind == Kind::kStoreFence;
    if (fences && !thread.waiting.empty()) {
      return;
    }
    if (op.kind == Kind::kLoad) {
      thread.results.push_back(Get(next, thread, op));
    } else if (op.kind == Kind::kStore) {
      Write(next, thread, op, op.value);
    } else if (op.kind == Kind::kCopy) {
      Write(next, thread, op, thread.results.at(op.value));
    } else if (one_step || changes) {
      const bool split = !one_step && model_ != MemoryModelKind::kSc;
      if (!thread.half_done) {
        thread.loaded = Get(next, thread, op);
        thread.half_done = true;
        if (split) {
          Visit(next);
          return;
        }
      }
      const uint64_t old = thread.loaded;
      thread.half_done = false;
      thread.loaded = 0;
      if (HasResult(op.kind)) {
        thread.results.push_back(old);
      }
      Write(next, thread, op, Changed(op, old));
      if (one_step && !thread.waiting.empty()) {
        Put(next.memory, thread.waiting.back());
        thread.waiting.clear();
      }
    }
    ++thread.position;
    Visit(next);
  }

  void Write(State& state, ThreadNow& thread, const LitmusOp& op,
             uint64_t value) const {
    const Waiting store = {op.at, op.size_bytes, value};
    if (model_ == MemoryModelKind::kSc) {
      Put(state.memory, store);
    } else {
      thread.waiting.push_back(store);
    }
  }

  const LitmusProgram& program_;
  MemoryModelKind model_;
  std::set<State> visited_;
  std::set<LitmusOutcome> outcomes_;
};

}  // namespace

std::set<LitmusOutcome> AllOutcomes(const LitmusProgram& program,
                                    MemoryModelKind model) {
  return Reference(program, model).TakeOutcomes();
}

}  // namespace clew::test
