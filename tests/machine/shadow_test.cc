// Goal: an instruction in the shadow domain computes the same plain values as
// in the concrete one, and its expressions tell what it computes from other
// inputs as well, as long as reported decisions and concretised values are the
// same there.
// Method: differential, over generated forms. The shadow machine runs from
// state one with a variable in every general register, flag and first read of
// memory. The concrete machine runs from state two. Under state two's values
// for the variables, the expressions must evaluate to what the concrete machine
// has. A case whose reported conditions do not hold in state two is skipped,
// and the share of skipped ones is bounded. The same with memory that is mapped
// at a second place, where all that is written has to be written and seen, too.

#include "machine/shadow.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "constraints/expr_eval.h"
#include "tests/machine/forms.h"

namespace clew::machine {
namespace {

using constraints::Assignment;
using constraints::Evaluator;

constexpr uint64_t kFlagBits[] = {kFlagCarry, kFlagParity, kFlagAdjust,
                                  kFlagZero,  kFlagSign,   kFlagOverflow};

// Makes a variable of each first read of a byte range nobody has written, with
// its value in the other state.
class VariableMaker final : public ShadowObserver {
 public:
  VariableMaker(ExprPool& pool, const State& other, Assignment& assignment)
      : pool_(pool), other_(other), assignment_(assignment) {}

  const Expr* OnRead(const ObservedAccess& access,
                     const Expr* loaded) override {
    const uint64_t offset = access.addr - kDataAt;
    const size_t written = WrittenBytes(access);
    // Bytes that were not written have no variable: state two is another there.
    mixed_ = mixed_ || (written > 0 && written < access.size_bytes);
    if (loaded != nullptr || written > 0 ||
        offset + access.size_bytes > kDataBytes) {
      return loaded;
    }
    const Expr* var = pool_.NewVar(8 * access.size_bytes, "read");
    uint64_t value = 0;
    std::memcpy(&value, other_.window.data() + offset, access.size_bytes);
    assignment_.Set(var->var(), value);
    return var;
  }
  void OnWrite(const ObservedAccess& access, const Expr*) override {
    for (uint64_t i = 0; i < access.size_bytes; ++i) {
      written_[access.addr + i] = true;
    }
  }
  void OnBranch(uint64_t, const Expr* condition, bool taken) override {
    conditions_.emplace_back(condition, taken ? 1 : 0);
  }
  void OnConcretised(uint64_t, const Expr* expr, uint64_t value,
                     ConcretiseCause) override {
    conditions_.emplace_back(expr, value);
  }

  bool Wrote(uint64_t addr) const { return written_.contains(addr); }

  bool ConditionsHold(Evaluator& evaluator) const {
    if (mixed_) {
      return false;
    }
    for (const auto& [expr, value] : conditions_) {
      if (evaluator.Evaluate(expr) != value) {
        return false;
      }
    }
    return true;
  }

 private:
  size_t WrittenBytes(const ObservedAccess& access) const {
    size_t count = 0;
    for (uint64_t i = 0; i < access.size_bytes; ++i) {
      count += written_.count(access.addr + i);
    }
    return count;
  }

  ExprPool& pool_;
  const State& other_;
  Assignment& assignment_;
  std::map<uint64_t, bool> written_;
  bool mixed_ = false;
  std::vector<std::pair<const Expr*, uint64_t>> conditions_;
};

// Where the data is mapped a second time.
constexpr uint64_t kMirrorDistance = 0x100'0000;

// The bytes that a concrete machine writes.
class WriteWatcher final : public AccessObserver {
 public:
  bool OnAccess(const ObservedAccess& access) override {
    for (uint64_t i = 0; i < access.size_bytes; ++i) {
      if (access.kind != AccessKind::kRead) {
        written_.insert(access.addr + i);
      }
    }
    return false;
  }
  bool Wrote(uint64_t addr) const { return written_.contains(addr); }

 private:
  std::set<uint64_t> written_;
};

enum class Verdict { kSame, kSkipped, kUnsupported, kDifferent };

class ShadowTest : public testing::Test {
 protected:
  ShadowTest() { MapInto(shadow_memory_), MapInto(plain_memory_); }

  static void MapInto(Memory& memory) {
    memory.Map(kCodeAt, kPageBytes, kProtRead | kProtExec);
    memory.Map(kDataAt, kDataBytes, kProtRead | kProtWrite);
  }
  static void Load(Memory& memory, const State& state) {
    ASSERT_TRUE(memory.Poke(kDataAt, state.window));
  }
  void SetCode(const std::vector<uint8_t>& code) {
    for (Memory* memory : {&shadow_memory_, &plain_memory_}) {
      ASSERT_TRUE(memory->Poke(kCodeAt, std::as_bytes(std::span(code))));
    }
  }
  // Differs from `one` where the instruction's addresses need not.
  State MakeOther(const State& one) {
    State two = MakeState(random_);
    for (const unsigned number : {kRbx, kRsp, kRbp, kRsi, kRdi}) {
      two.regs.gpr[number] = one.regs.gpr[number];
    }
    if (random_.Below(2) == 0) {
      two.regs.gpr[kRcx] = one.regs.gpr[kRcx];
    }
    two.regs.vec = one.regs.vec;
    two.regs.rip = kCodeAt;
    two.regs.rflags = (two.regs.rflags & ~kFlagDirection) |
                      (one.regs.rflags & kFlagDirection);
    return two;
  }

  // From here on what is written is written at the second place, too.
  void MapTwice() {
    for (Memory* memory : {&shadow_memory_, &plain_memory_}) {
      for (const uint64_t addr : {kDataAt, kDataAt + kMirrorDistance}) {
        memory->MapShared(addr, kDataBytes, kProtRead | kProtWrite, 1);
      }
    }
    is_mapped_twice_ = true;
  }
  void TryForms();
  Verdict Try();
  std::string CompareMirrors(const VariableMaker& shadowed,
                             const WriteWatcher& plain) const;
  std::string Compare(ShadowMachine& machine, const Registers& one,
                      const ShadowMemory& shadow, const Registers& two,
                      Evaluator& evaluator, const VariableMaker& observer);

  Memory shadow_memory_;
  Memory plain_memory_;
  ShadowCodeCache shadow_code_;
  CodeCache plain_code_;
  Random random_{1};
  std::string difference_;
  bool is_mapped_twice_ = false;
};

void MakeVariables(ShadowMachine& machine, ExprPool& pool, const State& two,
                   Assignment& assignment) {
  for (unsigned i = 0; i < 16; ++i) {
    const Expr* var = pool.NewVar(64, fmt::format("gpr{}", i));
    assignment.Set(var->var(), two.regs.gpr[i]);
    machine.SetGprShadow(i, var);
  }
  for (const uint64_t bit : kFlagBits) {
    const Expr* var = pool.NewVar(1, "flag");
    assignment.Set(var->var(), (two.regs.rflags & bit) != 0 ? 1 : 0);
    machine.SetFlagShadow(bit, var);
  }
}

Verdict ShadowTest::Try() {
  State one = MakeState(random_);
  one.regs.rip = kCodeAt;
  const State two = MakeOther(one);
  ExprPool pool;
  ShadowMemory shadow(pool);
  Assignment assignment;
  VariableMaker observer(pool, two, assignment);
  Load(shadow_memory_, one);
  Load(plain_memory_, two);
  Registers regs_one = one.regs;
  Registers regs_two = two.regs;
  ShadowMachine shadowed(regs_one, shadow_memory_, shadow, shadow_code_, pool,
                         observer);
  MakeVariables(shadowed, pool, two, assignment);
  const Stop stop = shadowed.Run(1);
  Machine plain(regs_two, plain_memory_, plain_code_);
  WriteWatcher watcher;
  plain.set_observer(&watcher);
  const Stop plain_stop = plain.Run(1);
  if (stop.kind == StopKind::kUnsupported) {
    return Verdict::kUnsupported;
  }
  Evaluator evaluator(assignment);
  if (!observer.ConditionsHold(evaluator) || stop.kind != plain_stop.kind ||
      stop.kind != StopKind::kBudget) {
    return Verdict::kSkipped;
  }
  difference_ =
      Compare(shadowed, regs_one, shadow, regs_two, evaluator, observer);
  if (is_mapped_twice_) {
    difference_ += CompareMirrors(observer, watcher);
  }
  return difference_.empty() ? Verdict::kSame : Verdict::kDifferent;
}

std::string ShadowTest::Compare(ShadowMachine& machine, const Registers& one,
                                const ShadowMemory& shadow,
                                const Registers& two, Evaluator& evaluator,
                                const VariableMaker& observer) {
  std::string out;
  const auto check = [&](std::string name, const Expr* expr, uint64_t value_one,
                         uint64_t value_two) {
    const auto value =
        expr != nullptr ? evaluator.Evaluate(expr) : std::optional(value_one);
    if (value != value_two) {
      out += fmt::format("{}: expression gives {:#x}, the machine {:#x}; ",
                         name, value.value_or(0), value_two);
    }
  };
  for (unsigned i = 0; i < 16; ++i) {
    check(fmt::format("gpr {}", i), machine.GprShadow(i), one.gpr[i],
          two.gpr[i]);
  }
  for (const uint64_t bit : kFlagBits) {
    check(fmt::format("flag {:#x}", bit), machine.FlagShadow(bit),
          (one.rflags & bit) != 0, (two.rflags & bit) != 0);
  }
  check("rip", nullptr, one.rip, two.rip);
  const auto check_byte = [&](uint64_t addr) {
    uint8_t byte_one = 0;
    uint8_t byte_two = 0;
    EXPECT_TRUE(shadow_memory_.Load(addr, byte_one));
    EXPECT_TRUE(plain_memory_.Load(addr, byte_two));
    check(fmt::format("memory {:#x}", addr), shadow.Load(addr, 1, byte_one),
          byte_one, byte_two);
  };
  for (uint64_t addr = kDataAt; addr < kDataAt + kDataBytes; ++addr) {
    if (observer.Wrote(addr)) {
      check_byte(addr);
    }
    if (observer.Wrote(addr) && is_mapped_twice_) {
      check_byte(addr + kMirrorDistance);
    }
  }
  return out;
}

std::string ShadowTest::CompareMirrors(const VariableMaker& shadowed,
                                       const WriteWatcher& plain) const {
  for (uint64_t addr = kDataAt; addr < kDataAt + kDataBytes; ++addr) {
    const uint64_t mirror = addr + kMirrorDistance;
    if (shadowed.Wrote(addr) != shadowed.Wrote(mirror) ||
        plain.Wrote(addr) != plain.Wrote(mirror)) {
      return fmt::format("{:#x} is seen to be written at one place", addr);
    }
  }
  return "";
}

void ShadowTest::TryForms() {
  std::map<Verdict, int> verdicts;
  std::map<std::string, int> failures;
  const auto run = [&](int map, uint8_t first, uint8_t last) {
    for (const Form& form : MakeForms(map, first, last, random_)) {
      SetCode(form.code);
      const Verdict verdict = Try();
      ++verdicts[verdict];
      if (verdict == Verdict::kDifferent && ++failures[form.mnemonic] <= 2) {
        std::string hex;
        for (const uint8_t byte : form.code) {
          hex += fmt::format("{:02x} ", byte);
        }
        ADD_FAILURE() << form.mnemonic << " " << hex << difference_;
      }
    }
  };
  run(0, 0x00, 0xd7);
  run(0, 0xe0, 0xff);
  run(1, 0x40, 0x4f);
  run(1, 0x80, 0xad);
  run(1, 0xaf, 0xcf);
  run(2, 0xf0, 0xf1);
  fmt::print("forms: {} compared, {} skipped, {} not supported\n",
             verdicts[Verdict::kSame], verdicts[Verdict::kSkipped],
             verdicts[Verdict::kUnsupported]);
  EXPECT_GT(verdicts[Verdict::kSame], 2 * verdicts[Verdict::kSkipped]);
}

TEST_F(ShadowTest, ExpressionsAgreeWithTheConcreteMachine) { TryForms(); }

TEST_F(ShadowTest, WhatIsMappedTwiceIsWrittenTwice) {
  MapTwice();
  TryForms();
}

}  // namespace
}  // namespace clew::machine
