#include "tests/support/random_traces.h"

#include <array>

#include "common/digest.h"
#include "constraints/expr_eval.h"

namespace clew::test {
namespace {

using constraints::EvidenceKind;
using constraints::Expr;
using constraints::TraceAccess;

constexpr uint64_t kBase = 0x1000;
constexpr uint32_t kBytes = 8;

class Maker {
 public:
  Maker(uint64_t seed, ToyTrace& out) : random_(seed), out_(out) {
    out_.pool = std::make_unique<constraints::ExprPool>();
  }

  void Make(bool has_unknown) {
    auto& trace = out_.trace;
    trace.time_group = trace.AddGroup(EvidenceKind::kTime, "time");
    trace.core_group = trace.AddGroup(EvidenceKind::kCore, "cores");
    path_ = trace.AddGroup(EvidenceKind::kPath, "branches");
    memory_ = trace.AddGroup(EvidenceKind::kMemory, "final memory");
    MakeInitial(has_unknown);
    const auto threads = 2 + static_cast<uint32_t>(random_.Below(2));
    for (uint32_t t = 0; t < threads; ++t) {
      trace.threads.push_back({Tid(static_cast<int32_t>(t + 1)), {}});
    }
    known_.assign(threads, nullptr);
    const uint32_t accesses = threads == 2 ? 8 : 7;
    for (uint32_t i = 0; i < accesses; ++i) {
      MakeAccess(static_cast<uint32_t>(random_.Below(threads)));
    }
    MakeDemands();
  }

 private:
  void MakeInitial(bool has_unknown) {
    for (uint32_t i = 0; i < kBytes; ++i) {
      bytes_[i] = static_cast<uint8_t>(random_.Next());
      const Expr* value = out_.pool->Const(bytes_[i], 8);
      if (has_unknown && i == 0) {
        value = out_.pool->NewVar(8, "unknown");
        values_.Set(value->var(), bytes_[0]);
      }
      out_.trace.initial.push_back({TraceeAddr(kBase + i), 1, value});
    }
  }

  const Expr* WithWidth(const Expr* e, uint32_t bits) {
    return e->width >= bits ? out_.pool->Extract(e, 0, bits)
                            : out_.pool->Zext(e, bits);
  }

  void MakeAccess(uint32_t thread) {
    TraceAccess access;
    access.kind = static_cast<AccessKind>(random_.Below(3));
    access.size_bytes = 1u << random_.Below(4);
    const auto offset =
        static_cast<uint32_t>(random_.Below(kBytes - access.size_bytes + 1));
    access.addr = TraceeAddr(kBase + offset);
    const uint32_t bits = access.size_bytes * 8;
    if (Reads(access.kind)) {
      access.read_value = out_.pool->NewVar(bits, "read");
      values_.Set(access.read_value->var(), Load(offset, access.size_bytes));
      known_[thread] = access.read_value;
    }
    if (Writes(access.kind)) {
      const Expr* number = out_.pool->Const(random_.Next(), bits);
      access.written_value =
          known_[thread] == nullptr || random_.Below(2) == 0
              ? number
              : out_.pool->Add(WithWidth(known_[thread], bits), number);
      Store(offset, access.size_bytes, Value(access.written_value));
    }
    out_.trace.threads[thread].accesses.push_back(access);
    out_.recorded.push_back(thread);
    if (Reads(access.kind) && random_.Below(3) > 0) {
      MakeCondition(thread);
    }
  }

  void MakeCondition(uint32_t thread) {
    const Expr* e = WithWidth(known_[thread], 8);
    const Expr* condition =
        random_.Below(2) == 0
            ? out_.pool->Eq(e, out_.pool->Const(Value(e), 8))
            : out_.pool->Ult(e, out_.pool->Const(random_.Next(), 8));
    condition = Value(condition) == 1 ? condition : out_.pool->Not(condition);
    if (!condition->is_const()) {
      const auto done =
          static_cast<uint32_t>(out_.trace.threads[thread].accesses.size());
      out_.trace.path.push_back(
          {condition, thread, done, path_, TraceeAddr(0x400000 + done)});
    }
  }

  void MakeDemands() {
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t size = 1u << random_.Below(4);
      const auto offset =
          static_cast<uint32_t>(random_.Below(kBytes - size + 1));
      out_.trace.final_memory.push_back(
          {TraceeAddr(kBase + offset), size, Load(offset, size), memory_});
    }
  }

  uint64_t Value(const Expr* e) {
    return constraints::Evaluator(values_).Evaluate(e).value();
  }
  uint64_t Load(uint32_t offset, uint32_t size) const {
    uint64_t value = 0;
    for (uint32_t i = 0; i < size; ++i) {
      value |= uint64_t{bytes_[offset + i]} << (8 * i);
    }
    return value;
  }
  void Store(uint32_t offset, uint32_t size, uint64_t value) {
    for (uint32_t i = 0; i < size; ++i) {
      bytes_[offset + i] = static_cast<uint8_t>(value >> (8 * i));
    }
  }

  Random random_;
  ToyTrace& out_;
  constraints::Assignment values_;
  std::array<uint8_t, kBytes> bytes_ = {};
  std::vector<const Expr*> known_;  // the thread's latest read
  constraints::GroupId path_;
  constraints::GroupId memory_;
};

}  // namespace

ToyTrace MakeRandomTrace(uint64_t seed, bool has_unknown) {
  ToyTrace out;
  Maker(seed, out).Make(has_unknown);
  return out;
}

}  // namespace clew::test
