#ifndef CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_PROGRAM_H_
#define CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/digest.h"
#include "tests/recorder/tracer/code_writer.h"

// What the parts of the generator of random programs share.

namespace clew::tracer::random_code {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  uint64_t Next() { return random_.Next(); }
  uint64_t Below(uint64_t bound) { return random_.Below(bound); }
  uint64_t Between(uint64_t least, uint64_t most) {
    return least + Below(most - least + 1);
  }
  bool OneIn(uint64_t count) { return Below(count) == 0; }
  template <class T>
  T Pick(std::initializer_list<T> from) {
    return from.begin()[Below(from.size())];
  }
  template <class T>
  const T& Pick(const std::vector<T>& from) {
    return from[Below(from.size())];
  }
  // One of all orders of magnitude, often near a border of one.
  uint64_t Number();

 private:
  Random random_;
};

// Where a program has what; all multiples of a page.
//
//   near data | code ...           1.9 GiB          far data
//
// Source: AMD64 ABI, "Code Models": what a displacement reaches.
struct Layout {
  bool is_low = false;  // all of it is below 2^31
  bool has_kernels_stack = false;
  uint64_t near_data = 0;
  uint64_t code = 0;
  uint64_t far_data = 0;
};

// Bytes of data from the file, and zeros behind them.
struct DataSegment {
  uint64_t addr = 0;
  std::vector<uint8_t> bytes;
  uint64_t memory_bytes = 0;
};

inline constexpr uint64_t kIslandBytes = 64;

// Pointers to code, which nothing overwrites, and scratch data, which
// everything does.
class Data {
 public:
  Data(const Layout& layout, Dice& dice);

  // The blocks that may still be entered.
  uint64_t budget() const { return near_.addr; }
  // What RSP is set to.
  uint64_t stack_pointer() const { return near_.addr + 8; }
  uint64_t stack_middle() const;

  // The address of `labels`, 8 bytes each.
  uint64_t Table(std::span<const Label> labels);
  // The address of `bytes` of scratch data, at most 64; aligned to them, if it
  // has to.
  uint64_t Scratch(uint64_t bytes, bool is_aligned);
  // The address of scratch data with 512 bytes of it on both sides.
  uint64_t ScratchMiddle();
  // More scratch data, of kIslandBytes.
  void AddIsland(uint64_t addr) { islands_.push_back(addr); }

  // Fills the pointers in. REQUIRES: all labels are bound.
  void Finish(const CodeWriter& code);
  const DataSegment& near_data() const { return near_; }
  const DataSegment& far_data() const { return far_; }

 private:
  struct Pointer {
    uint8_t* at = nullptr;
    Label label{};
  };

  Dice& dice_;
  DataSegment near_;
  DataSegment far_;
  uint64_t near_pointers_;  // where the next one goes, in the segment
  uint64_t far_pointers_ = 0;
  std::vector<Pointer> pointers_;
  std::vector<uint64_t> islands_;
};

// Chooses registers.
class Registers {
 public:
  explicit Registers(Dice& dice) : dice_(dice) {}

  // For a field of an instruction. Of bytes, 4 to 7 name AH, CH, DH, BH without
  // REX, SPL to DIL with it.
  uint8_t General(bool is_byte, bool has_rex, bool is_written);
  // One that may be overwritten.
  uint8_t Free() { return General(false, true, true); }
  uint8_t Vector(Scheme scheme);

  // Not to be overwritten.
  bool IsReserved(uint8_t reg) const { return (reserved_ >> reg & 1) != 0; }
  // What is at and above RSP is to stay, as is RSP.
  bool keeps_stack() const { return keeps_stack_; }

 private:
  friend class Reservation;
  friend class StackKeeper;

  Dice& dice_;
  uint32_t reserved_ = 0;
  bool keeps_stack_ = false;
};

// Reserves registers while it lives.
class Reservation {
 public:
  Reservation(Registers& all, std::initializer_list<uint8_t> reserved)
      : all_(all), before_(all.reserved_) {
    for (const uint8_t reg : reserved) {
      all.reserved_ |= 1u << reg;
    }
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() { all_.reserved_ = before_; }

 private:
  Registers& all_;
  uint32_t before_;
};

// Keeps the stack while it lives.
class StackKeeper {
 public:
  explicit StackKeeper(Registers& all)
      : all_(all), before_(std::exchange(all.keeps_stack_, true)) {}
  StackKeeper(const StackKeeper&) = delete;
  StackKeeper& operator=(const StackKeeper&) = delete;
  ~StackKeeper() { all_.keeps_stack_ = before_; }

 private:
  Registers& all_;
  bool before_;
};

// What the CPU can execute.
struct Features {
  bool v2 = false;      // x86-64-v2: to SSE4.2, POPCNT, CMPXCHG16B
  bool v3 = false;      // x86-64-v3: AVX2, BMI, MOVBE
  bool avx512 = false;  // AVX512F and AVX512VL
};

Features FeaturesOfThisCpu();

struct Program {
  explicit Program(uint64_t seed);

  Dice dice;
  const Features features;
  const Layout layout;
  CodeWriter code;
  Data data;
  Registers registers;
  std::vector<Label> blocks;
  // Of the block that is being written.
  size_t block_number = 0;
  Label exit;

  bool IsLastBlock() const { return block_number + 1 == blocks.size(); }
  // The number of a block that it may go to: a higher one, so that control
  // comes to a jump through a table again and again, and everywhere in the end.
  size_t NextBlockNumber();
  Label NextBlock() { return blocks[NextBlockNumber()]; }
  Label AnyBlock() { return dice.Pick(blocks); }
};

}  // namespace clew::tracer::random_code

#endif  // CLEW_TESTS_RECORDER_TRACER_RANDOM_CODE_PROGRAM_H_
