#include "tests/recorder/tracer/random_code_program.h"

#include <algorithm>

#include "common/check.h"
#include "common/x86/page.h"

namespace clew::tracer::random_code {
namespace {

// Of the near data: the budget, the stack pointer, pointers, scratch data; then
// zeros, with the stack.
constexpr uint64_t kNearPointersAt = 0x10;
constexpr uint64_t kNearScratchAt = 0x2000;
constexpr uint64_t kStackMiddleAt = 0x110000;
constexpr uint64_t kNearMemoryBytes = 0x210000;
// Of the far data: pointers, scratch data, the upper half of it zeros.
constexpr uint64_t kFarScratchAt = 0x800;
constexpr uint64_t kFarMemoryBytes = 0x1000;
constexpr uint64_t kScratchBytes = 0x800;
// Most operands are in these, so that what is stored is loaded again.
constexpr uint64_t kHotBytes = 0x100;
constexpr uint64_t kScratchBytesMax = 64;

constexpr uint64_t kLowData = 0x400000;
constexpr uint64_t kHighData = 0x200000000000;
constexpr uint64_t kFarDistance = 0x7999a000;  // 1.9 GiB

Layout RandomLayout(Dice& dice) {
  Layout layout;
  layout.is_low = dice.OneIn(2);
  layout.has_kernels_stack = dice.OneIn(4);
  layout.near_data =
      layout.is_low ? kLowData : kHighData + dice.Below(1 << 20) * kPageBytes;
  layout.code =
      layout.near_data + kNearMemoryBytes + dice.Below(16) * kPageBytes;
  layout.far_data =
      layout.code + kFarDistance - dice.Below(0x1000) * kPageBytes;
  return layout;
}

void FillAtRandom(std::span<uint8_t> bytes, Dice& dice) {
  for (uint8_t& byte : bytes) {
    byte = static_cast<uint8_t>(dice.Next());
  }
}

}  // namespace

uint64_t Dice::Number() {
  const uint64_t number = Next() >> Below(64);
  switch (Below(4)) {
    case 0:
      return ~number;
    case 1: {
      const uint64_t less = Below(3);
      return (uint64_t{1} << Below(64)) - less;
    }
    default:
      return number;
  }
}

Data::Data(const Layout& layout, Dice& dice)
    : dice_(dice), near_pointers_(kNearPointersAt) {
  near_ = {layout.near_data,
           std::vector<uint8_t>(kNearScratchAt + kScratchBytes),
           kNearMemoryBytes};
  far_ = {layout.far_data,
          std::vector<uint8_t>(kFarScratchAt + kScratchBytes / 2),
          kFarMemoryBytes};
  FillAtRandom(std::span(near_.bytes).subspan(kNearScratchAt), dice);
  FillAtRandom(std::span(far_.bytes).subspan(kFarScratchAt), dice);
  near_.bytes[0] = static_cast<uint8_t>(dice.Between(40, 0xff));
  for (size_t i = 0; i < 8; ++i) {
    near_.bytes[8 + i] = static_cast<uint8_t>(stack_middle() >> (8 * i));
  }
}

uint64_t Data::stack_middle() const { return near_.addr + kStackMiddleAt; }

uint64_t Data::Table(std::span<const Label> labels) {
  const uint64_t bytes = labels.size() * 8;
  const bool is_far = dice_.OneIn(3) && far_pointers_ + bytes <= kFarScratchAt;
  DataSegment& segment = is_far ? far_ : near_;
  uint64_t& next = is_far ? far_pointers_ : near_pointers_;
  const uint64_t at = next;
  next += bytes;
  CLEW_CHECK(next <= (is_far ? kFarScratchAt : kNearScratchAt),
             "too many pointers");
  for (size_t i = 0; i < labels.size(); ++i) {
    pointers_.push_back({&segment.bytes[at + i * 8], labels[i]});
  }
  return segment.addr + at;
}

uint64_t Data::Scratch(uint64_t bytes, bool is_aligned) {
  CLEW_CHECK(bytes <= kScratchBytesMax, "{} bytes of data", bytes);
  const bool is_far = dice_.OneIn(3);
  uint64_t begin =
      is_far ? far_.addr + kFarScratchAt : near_.addr + kNearScratchAt;
  uint64_t size = dice_.OneIn(3) ? kScratchBytes : kHotBytes;
  if (!islands_.empty() && dice_.OneIn(5)) {
    begin = dice_.Pick(islands_);
    size = kIslandBytes;
  }
  const uint64_t offset = dice_.Below(size - bytes + 1);
  const uint64_t unit = is_aligned ? bytes : dice_.OneIn(4) ? 1 : 8;
  return begin + offset / unit * unit;
}

uint64_t Data::ScratchMiddle() {
  const uint64_t begin =
      dice_.OneIn(3) ? far_.addr + kFarScratchAt : near_.addr + kNearScratchAt;
  return begin + kScratchBytes / 4 + dice_.Below(kScratchBytes / 2);
}

void Data::Finish(const CodeWriter& code) {
  for (const Pointer& pointer : pointers_) {
    const std::optional<uint64_t> addr = code.AddressOf(pointer.label);
    CLEW_CHECK(addr, "a pointer to nowhere");
    for (size_t i = 0; i < 8; ++i) {
      pointer.at[i] = static_cast<uint8_t>(*addr >> (8 * i));
    }
  }
}

uint8_t Registers::General(bool is_byte, bool has_rex, bool is_written) {
  for (;;) {
    // Those that a translator would like to have.
    uint8_t reg = dice_.Pick({kRdi, kRsi, kRbx});
    if (is_byte || dice_.OneIn(2)) {
      reg = static_cast<uint8_t>(dice_.Below(is_byte && !has_rex ? 8 : 16));
    }
    if (!is_written) {
      return reg;
    }
    const auto whole =
        static_cast<uint8_t>(is_byte && !has_rex ? reg & 3 : reg);
    const bool is_stack = whole == kRsp;
    const bool may_move_stack = is_byte && !keeps_stack_ && dice_.OneIn(4);
    if (!IsReserved(whole) && (!is_stack || may_move_stack)) {
      return reg;
    }
  }
}

uint8_t Registers::Vector(Scheme scheme) {
  const bool has_upper = scheme == Scheme::kEvex && dice_.OneIn(2);
  return static_cast<uint8_t>(dice_.Below(has_upper ? 32 : 16));
}

Features FeaturesOfThisCpu() {
  Features features;
  features.v2 = __builtin_cpu_supports("x86-64-v2") != 0;
  features.v3 = features.v2 && __builtin_cpu_supports("x86-64-v3") != 0;
  features.avx512 = features.v3 && __builtin_cpu_supports("avx512f") != 0 &&
                    __builtin_cpu_supports("avx512vl") != 0;
  return features;
}

size_t Program::NextBlockNumber() {
  constexpr size_t kSpread = 12;
  const size_t rest = blocks.size() - 1 - block_number;
  return rest == 0 ? dice.Below(blocks.size())
                   : block_number + 1 + dice.Below(std::min(rest, kSpread));
}

Program::Program(uint64_t seed)
    : dice(seed),
      features(FeaturesOfThisCpu()),
      layout(RandomLayout(dice)),
      code(layout.code),
      data(layout, dice),
      registers(dice),
      exit(code.NewLabel()) {}

}  // namespace clew::tracer::random_code
