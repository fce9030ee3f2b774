#include "tests/support/toy_programs.h"

#include <functional>
#include <vector>

#include "common/check.h"
#include "tests/support/toy_recorder.h"

namespace clew::test {
namespace {

using constraints::Expr;

// Where one thread of a toy stands: every step makes one access.
struct ToyThread {
  uint32_t pc = 0;
  uint32_t iteration = 0;
  const Expr* a = nullptr;
  const Expr* b = nullptr;
  uint32_t x = 0;
  uint32_t y = 0;
  uint32_t amount = 0;
};

class ToyProgram {
 public:
  ToyProgram(const ToyOptions& options, ToyTrace& out)
      : options_(options),
        recorder_(options, out),
        pool_(recorder_.pool()),
        random_(options.seed * 31 + 7),
        threads_(options.threads) {}
  virtual ~ToyProgram() = default;

  void Run() {
    Start();
    recorder_.Run([this](uint32_t t) {
      Step(t, threads_[t]);
      return threads_[t].iteration < options_.iterations;
    });
    Finish();
    recorder_.FillTimes();
  }

 protected:
  virtual void Start() = 0;
  virtual void Step(uint32_t t, ToyThread& thread) = 0;
  virtual uint32_t words() const = 0;
  virtual void Finish() {
    for (uint32_t w = 0; options_.final_memory && w < words(); ++w) {
      recorder_.DemandFinal(w);
    }
  }

  bool ReadEquals(uint32_t word, uint32_t value) {
    return recorder_.Branch(
        pool_.Eq(recorder_.Read(word), recorder_.Word(value)));
  }
  // Spins on the lock word with one access a step; true once it is taken.
  bool TryLock(uint32_t word) {
    if (recorder_.Peek(word) != 0) {  // a failed compare-and-swap only reads
      recorder_.Branch(
          pool_.Not(pool_.Eq(recorder_.Read(word), recorder_.Word(0))));
      return false;
    }
    const Expr* old = recorder_.ReadModifyWrite(
        word, [&](const Expr*) { return recorder_.Word(1); });
    recorder_.Branch(pool_.Eq(old, recorder_.Word(0)));
    return true;
  }
  void Unlock(uint32_t word) { recorder_.Write(word, recorder_.Word(0)); }
  void WritePlus(uint32_t word, const Expr* value, uint32_t amount) {
    recorder_.Write(word, pool_.Add(value, recorder_.Word(amount)));
  }

  const ToyOptions& options_;
  ToyRecorder recorder_;
  constraints::ExprPool& pool_;
  Random random_;
  std::vector<ToyThread> threads_;
};

class Racey final : public ToyProgram {
 public:
  using ToyProgram::ToyProgram;

 private:
  uint32_t words() const override { return options_.words; }

  void Start() override {
    for (uint32_t w = 0; w < options_.words; ++w) {
      recorder_.SetInitial(w, static_cast<uint32_t>(MixBits(w + 1)));
    }
    for (uint32_t t = 0; t < options_.threads; ++t) {
      threads_[t].a = recorder_.Word(MixBits(1000 + t));
    }
  }

  const Expr* Mix(const Expr* hash, const Expr* value) {
    const Expr* x =
        pool_.Add(hash, pool_.Mul(value, recorder_.Word(0x9e3779b1)));
    return pool_.Xor(x, pool_.Lshr(x, recorder_.Word(15)));
  }

  uint32_t Index(const Expr* hash) {
    return static_cast<uint32_t>(recorder_.Value(hash) >> 26) % options_.words;
  }

  void Step(uint32_t, ToyThread& thread) override {
    if (thread.pc == 2) {
      recorder_.Write(thread.x, thread.a);
      thread.pc = 0;
      ++thread.iteration;
      return;
    }
    thread.x = Index(thread.a);
    thread.a = Mix(thread.a, recorder_.Read(thread.x));
    const uint32_t bits = options_.evidence_bits;
    if (bits > 0) {
      recorder_.Reveal(pool_.Extract(thread.a, 32 - bits, bits));
    }
    ++thread.pc;
  }
};

// What counter and bank share: the sum of all words as a demand at the end.
class Summing : public ToyProgram {
 public:
  using ToyProgram::ToyProgram;

 private:
  void Finish() override {
    ToyProgram::Finish();
    if (!options_.final_sum) {
      return;
    }
    recorder_.BeginEpilogue();
    const Expr* sum = recorder_.Word(0);
    for (uint32_t w = 0; w < words(); ++w) {
      sum = pool_.Add(sum, recorder_.Read(w));
    }
    recorder_.Branch(pool_.Eq(sum, recorder_.Word(CorrectSum())));
  }
  virtual uint32_t CorrectSum() const = 0;
};

class Counter final : public Summing {
 public:
  using Summing::Summing;

 private:
  uint32_t words() const override { return 1; }
  uint32_t CorrectSum() const override {
    return options_.threads * options_.iterations;
  }
  void Start() override { recorder_.SetInitial(0, 0); }
  void Step(uint32_t, ToyThread& thread) override {
    if (thread.pc == 0) {
      thread.a = recorder_.Read(0);
      thread.pc = 1;
      return;
    }
    WritePlus(0, thread.a, 1);
    thread.pc = 0;
    ++thread.iteration;
  }
};

class Bank final : public Summing {
 public:
  using Summing::Summing;

 private:
  static constexpr uint32_t kAccounts = 16;
  uint32_t words() const override { return kAccounts; }
  uint32_t CorrectSum() const override { return 1000 * kAccounts; }
  void Start() override {
    for (uint32_t w = 0; w < kAccounts; ++w) {
      recorder_.SetInitial(w, 1000);
    }
  }
  void Choose(ToyThread& thread) {
    thread.x = static_cast<uint32_t>(random_.Below(kAccounts));
    thread.y =
        (thread.x + 1 + static_cast<uint32_t>(random_.Below(kAccounts - 1))) %
        kAccounts;
    thread.amount = 1 + static_cast<uint32_t>(random_.Below(9));
  }
  void Step(uint32_t, ToyThread& thread) override {
    switch (thread.pc++) {
      case 0:
        Choose(thread);
        thread.a = recorder_.Read(thread.x);
        break;
      case 1:
        WritePlus(thread.x, thread.a, 0u - thread.amount);
        break;
      case 2:
        thread.a = recorder_.Read(thread.y);
        break;
      default:
        WritePlus(thread.y, thread.a, thread.amount);
        thread.pc = 0;
        ++thread.iteration;
    }
  }
};

// Even threads produce, odd ones consume. Words: lock, count, in, out, slots.
class Bbuf final : public ToyProgram {
 public:
  using ToyProgram::ToyProgram;

 private:
  static constexpr uint32_t kLock = 0, kCount = 1, kIn = 2, kOut = 3,
                            kSlots = 4;
  static constexpr uint32_t kCapacity = 8;
  uint32_t words() const override { return kSlots + kCapacity; }
  void Start() override {
    for (uint32_t w = 0; w < words(); ++w) {
      recorder_.SetInitial(w, 0);
    }
  }
  bool MayProceed(uint32_t t) {
    const Expr* count = recorder_.Read(kCount);
    return recorder_.Branch(
        t % 2 == 0 ? pool_.Ult(count, recorder_.Word(kCapacity))
                   : pool_.Not(pool_.Eq(count, recorder_.Word(0))));
  }
  void Step(uint32_t t, ToyThread& thread) override {
    const bool produces = t % 2 == 0;
    const uint32_t index = produces ? kIn : kOut;
    switch (thread.pc) {
      case 0:
        thread.pc = TryLock(kLock) ? 1 : 0;
        return;
      case 1:
        thread.pc = MayProceed(t) ? 2 : 8;
        return;
      case 2:
        thread.a = recorder_.Read(index);
        recorder_.Reveal(thread.a);  // it becomes an address
        break;
      case 3:
        Transfer(t, thread, produces);
        break;
      case 4:
        WritePlus(index, AfterIndex(thread.a), 0);
        break;
      case 5:
        thread.a = recorder_.Read(kCount);
        break;
      case 6:
        WritePlus(kCount, thread.a, produces ? 1 : 0u - 1);
        break;
      case 8:
        Unlock(kLock);
        thread.pc = 0;
        return;
      default:
        Unlock(kLock);
        thread.pc = 0;
        ++thread.iteration;
        return;
    }
    ++thread.pc;
  }
  const Expr* AfterIndex(const Expr* index) {
    return pool_.Urem(pool_.Add(index, recorder_.Word(1)),
                      recorder_.Word(kCapacity));
  }
  void Transfer(uint32_t t, const ToyThread& thread, bool produces) {
    const auto slot =
        kSlots + static_cast<uint32_t>(recorder_.Value(thread.a)) % kCapacity;
    if (produces) {
      recorder_.Write(slot, recorder_.Word((t << 16) + thread.iteration));
    } else {
      recorder_.Read(slot);
    }
  }
};

// Thread 0 appends another buffer: its length and its characters are taken in
// two critical sections; the others shrink and grow it. Words: lock, length,
// characters.
class Sbuf final : public ToyProgram {
 public:
  using ToyProgram::ToyProgram;

 private:
  static constexpr uint32_t kLock = 0, kLength = 1, kChars = 2, kCharsMax = 6;
  uint32_t words() const override { return kChars + kCharsMax; }
  void Start() override {
    recorder_.SetInitial(kLock, 0);
    recorder_.SetInitial(kLength, kCharsMax);
    for (uint32_t i = 0; i < kCharsMax; ++i) {
      recorder_.SetInitial(kChars + i, 'a' + i);
    }
  }
  void Step(uint32_t t, ToyThread& thread) override {
    t == 0 ? Append(thread) : Resize(t, thread);
  }
  void Append(ToyThread& thread) {
    switch (thread.pc) {
      case 0:
      case 3:
        thread.pc += TryLock(kLock) ? 1 : 0;
        return;
      case 1:
        thread.a = recorder_.Read(kLength);
        break;
      case 2:
        Unlock(kLock);
        break;
      case 4:
        thread.b = recorder_.Read(kLength);
        // The failure: the length has shrunk meanwhile.
        thread.x = recorder_.Branch(pool_.Ult(thread.b, thread.a)) ? 0 : 2;
        break;
      case 5:
      case 6:
        if (thread.x > 0) {
          --thread.x;
          recorder_.Read(kChars + thread.x);
          break;
        }
        [[fallthrough]];
      default:
        Unlock(kLock);
        thread.pc = 0;
        ++thread.iteration;
        return;
    }
    ++thread.pc;
  }
  void Resize(uint32_t t, ToyThread& thread) {
    switch (thread.pc) {
      case 0:
        thread.pc = TryLock(kLock) ? 1 : 0;
        return;
      case 1:
        recorder_.Write(
            kLength, recorder_.Word((thread.iteration + t) % (kCharsMax + 1)));
        break;
      case 2:
        recorder_.Write(kChars + (thread.iteration % kCharsMax),
                        recorder_.Word(t));
        break;
      default:
        Unlock(kLock);
        thread.pc = 0;
        ++thread.iteration;
        return;
    }
    ++thread.pc;
  }
};

// Workers take items from a queue under a lock and keep the best match
// without one. Words: lock, head, best, items.
class Pfscan final : public ToyProgram {
 public:
  using ToyProgram::ToyProgram;

 private:
  static constexpr uint32_t kLock = 0, kHead = 1, kBest = 2, kItems = 3;
  static constexpr uint32_t kItemCount = 32;
  uint32_t words() const override { return kItems + kItemCount; }
  void Start() override {
    for (uint32_t w = 0; w < words(); ++w) {
      const auto value = static_cast<uint32_t>(MixBits(w) & 0xff);
      recorder_.SetInitial(w, w < kItems ? 0 : value);
    }
  }
  void Step(uint32_t, ToyThread& thread) override {
    switch (thread.pc) {
      case 0:
        thread.pc = TryLock(kLock) ? 1 : 0;
        return;
      case 1:
        thread.a = recorder_.Read(kHead);
        recorder_.Reveal(thread.a);
        thread.x = static_cast<uint32_t>(recorder_.Value(thread.a));
        break;
      case 2:
        WritePlus(kHead, thread.a, 1);
        break;
      case 3:
        Unlock(kLock);
        break;
      case 4:
        thread.b = recorder_.Read(kItems + thread.x % kItemCount);
        break;
      case 5: {
        const Expr* best = recorder_.Read(kBest);
        if (!recorder_.Branch(pool_.Ult(best, thread.b))) {
          thread.pc = 0;
          ++thread.iteration;
          return;
        }
        break;
      }
      default:
        recorder_.Write(kBest, thread.b);
        thread.pc = 0;
        ++thread.iteration;
        return;
    }
    ++thread.pc;
  }
};

// Words: turn, data.
class Spin final : public ToyProgram {
 public:
  using ToyProgram::ToyProgram;

 private:
  uint32_t words() const override { return 2; }
  void Start() override {
    recorder_.SetInitial(0, 0);
    recorder_.SetInitial(1, 0);
  }
  void Step(uint32_t t, ToyThread& thread) override {
    switch (thread.pc) {
      case 0:
        thread.pc = ReadEquals(0, t) ? 1 : 0;
        return;
      case 1:
        thread.a = recorder_.Read(1);
        break;
      case 2:
        WritePlus(1, thread.a, t + 1);
        break;
      default:
        recorder_.Write(0, recorder_.Word((t + 1) % options_.threads));
        thread.pc = 0;
        ++thread.iteration;
        return;
    }
    ++thread.pc;
  }
};

std::unique_ptr<ToyProgram> MakeProgram(const ToyOptions& options,
                                        ToyTrace& out) {
  switch (options.toy) {
    case Toy::kRacey:
      return std::make_unique<Racey>(options, out);
    case Toy::kCounter:
      return std::make_unique<Counter>(options, out);
    case Toy::kBank:
      return std::make_unique<Bank>(options, out);
    case Toy::kBbuf:
      return std::make_unique<Bbuf>(options, out);
    case Toy::kSbuf:
      return std::make_unique<Sbuf>(options, out);
    case Toy::kPfscan:
      return std::make_unique<Pfscan>(options, out);
    case Toy::kSpin:
      return std::make_unique<Spin>(options, out);
  }
  return nullptr;
}

}  // namespace

const char* ToString(Toy toy) {
  switch (toy) {
    case Toy::kRacey:
      return "racey";
    case Toy::kCounter:
      return "counter";
    case Toy::kBank:
      return "bank";
    case Toy::kBbuf:
      return "bbuf";
    case Toy::kSbuf:
      return "sbuf";
    case Toy::kPfscan:
      return "pfscan";
    case Toy::kSpin:
      return "spin";
  }
  return "?";
}

ToyTrace MakeToy(const ToyOptions& options) {
  ToyTrace toy;
  MakeProgram(options, toy)->Run();
  return toy;
}

bool Falsify(ToyTrace& toy, uint64_t seed) {
  Random random(seed);
  auto& trace = toy.trace;
  const size_t count = trace.path.size() + trace.final_memory.size();
  if (count == 0) {
    return false;
  }
  const size_t which = random.Below(count);
  if (which < trace.path.size()) {
    auto& condition = trace.path[which].condition;
    condition = toy.pool->Not(condition);
  } else {
    trace.final_memory[which - trace.path.size()].value ^= 1;
  }
  return true;
}

}  // namespace clew::test
