#include "tests/machine/vector/any_state.h"

#include <cstring>

#include "machine/vector/x87_op.h"

namespace clew::machine {
namespace {

template <class T, size_t kCount>
T OneOf(Random& random, const std::array<T, kCount>& values) {
  return values[random.Below(kCount)];
}

constexpr std::array<uint32_t, 20> kFloats = {
    0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000,
    0x3f800000, 0xbf800000, 0x3f000000, 0x3fc00000, 0x4b000001,
    0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
    0xffc12345, 0x7f800001, 0xffabcdef, 0x4f000000, 0xcf000000};
constexpr std::array<uint64_t, 24> kDoubles = {
    0x0000000000000000, 0x8000000000000000, 0x0000000000000001,
    0x800fffffffffffff, 0x0010000000000000, 0x3ff0000000000000,
    0xbff0000000000000, 0x3fe0000000000000, 0x3ff8000000000000,
    0x4330000000000001, 0x7fefffffffffffff, 0xffefffffffffffff,
    0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
    0xfff8123456789abc, 0x7ff0000000000001, 0xfff7ffffffffffff,
    0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000000000,
    0x43e0000000000000, 0xc3e0000000000000, 0x380fffffffffffff};
constexpr std::array<uint8_t, 8> kBytes = {0,    1,    'a',  'b',
                                           0x7f, 0x80, 0xfe, 0xff};

// A double that is near in magnitude to others, so that sums round.
uint64_t NearbyDouble(Random& random) {
  const uint64_t exponent = 1023 - 30 + random.Below(60);
  return (random.Next() & 0x800fffffffffffff) | exponent << 52;
}

uint32_t NearbyFloat(Random& random) {
  const auto exponent = static_cast<uint32_t>(127 - 16 + random.Below(40));
  return (static_cast<uint32_t>(random.Next()) & 0x807fffffu) | exponent << 23;
}

template <class U, class F>
Vec128 Fill(F next) {
  Elements<U> elements;
  for (auto& element : elements) {
    element = next();
  }
  return FromElements<U>(elements);
}

// All exceptions masked; any rounding, one of the three precisions.
uint16_t AnyControl(Random& random) {
  constexpr std::array<unsigned, 3> kPrecisions = {0, 2, 3};
  const unsigned precision = kPrecisions[random.Below(3)];
  const auto rounding = static_cast<unsigned>(random.Below(4));
  return static_cast<uint16_t>(0x7f | precision << 8 | rounding << 10);
}

unsigned TagOf(const Float80& value) {
  const unsigned exponent = value.sign_exponent & 0x7fffu;
  if (exponent == 0 && value.significand == 0) {
    return 1;
  }
  const bool normal =
      exponent != 0 && exponent != 0x7fff && value.significand >> 63 != 0;
  return normal ? 0 : 2;
}

// Mostly 2 to 7 registers in use from the top on, sometimes any of them.
uint8_t AnyRegistersInUse(Random& random, unsigned top) {
  if (random.Below(4) == 0) {
    return static_cast<uint8_t>(random.Next());
  }
  const uint64_t depth = 2 + random.Below(6);
  unsigned mask = 0;
  for (unsigned i = 0; i < depth; ++i) {
    mask |= 1u << ((top + i) & 7);
  }
  return static_cast<uint8_t>(mask);
}

// None, all, the first ones, few, most or any.
uint64_t AnyOpmask(Random& random) {
  constexpr uint64_t kAll = ~uint64_t{0};
  switch (random.Below(6)) {
    case 0:
      return 0;
    case 1:
      return kAll;
    case 2:
      return kAll >> random.Below(64);
    case 3:
      return random.Next() & random.Next() & random.Next();
    case 4:
      return random.Next() | random.Next() | random.Next();
    default:
      return random.Next();
  }
}

}  // namespace

Vec128 AnyVec(Random& random) {
  switch (random.Below(8)) {
    case 0:
      return Fill<uint64_t>([&] { return random.Next(); });
    case 1:
      return Fill<uint8_t>([&] { return OneOf(random, kBytes); });
    case 2:
      return Fill<uint16_t>([&] {
        const auto any = static_cast<uint16_t>(random.Next());
        return static_cast<uint16_t>(random.Below(2) != 0 ? any : any % 40);
      });
    case 3:
      return Fill<uint64_t>([&] { return random.Below(80); });
    case 4:
      return Fill<uint32_t>([&] { return OneOf(random, kFloats); });
    case 5:
      return Fill<uint32_t>([&] { return NearbyFloat(random); });
    case 6:
      return Fill<uint64_t>([&] { return OneOf(random, kDoubles); });
    default:
      return Fill<uint64_t>([&] { return NearbyDouble(random); });
  }
}

Float80 AnyFloat80(Random& random) {
  constexpr std::array<Float80, 22> kSpecial = {{
      {0, 0},                        // 0
      {0, 0x8000},                   // -0
      {1, 0},                        // smallest denormal
      {0x7fffffffffffffff, 0x8000},  // largest denormal
      {0x8000000000000000, 0},       // pseudo-denormal
      {0x8000000000000000, 1},       // smallest normal
      {0x8000000000000000, 0x3fff},  // 1
      {0x8000000000000000, 0xbfff},  // -1
      {0xc000000000000000, 0x3fff},  // 1.5
      {0x8000000000000000, 0x3ffe},  // 0.5
      {0xc90fdaa22168c235, 0x3ffe},  // pi/4
      {0xffffffffffffffff, 0x7ffe},  // largest
      {0xffffffffffffffff, 0xfffe},  // -largest
      {0x8000000000000000, 0x7fff},  // infinity
      {0x8000000000000000, 0xffff},  // -infinity
      {0xc000000000000000, 0x7fff},  // quiet NaN
      {0xffffffffffffffff, 0xffff},  // quiet NaN
      {0x8000000000000001, 0x7fff},  // signalling NaN
      {0xbfffffffffffffff, 0xffff},  // signalling NaN
      {0x8000000000000000, 0x403e},  // 2^63
      {0x8000000000000000, 0xc03e},  // -2^63
      {0x4000000000000000, 0x4000},  // unnormal: invalid
  }};
  if (random.Below(2) == 0) {
    return OneOf(random, kSpecial);
  }
  const uint64_t exponent = 16383 - 40 + random.Below(110);
  return {random.Next() | 1ull << 63,
          static_cast<uint16_t>((random.Next() & 0x8000) | exponent)};
}

X87 AnyX87(Random& random) {
  X87 x87;
  x87.control = AnyControl(random);
  const auto top = static_cast<unsigned>(random.Below(8));
  const uint64_t sticky = random.Below(2) == 0 ? random.Next() & 0x7f : 0;
  const uint64_t conditions = random.Next() & kX87Conditions;
  x87.status = static_cast<uint16_t>(top << 11 | sticky | conditions);
  const uint8_t in_use = AnyRegistersInUse(random, top);
  x87.tag = 0;
  for (unsigned i = 0; i < 8; ++i) {
    x87.regs[i] = AnyFloat80(random);
    const unsigned tag = ((in_use >> i) & 1) != 0 ? TagOf(x87.regs[i]) : 3;
    x87.tag |= static_cast<uint16_t>(tag << (2 * i));
  }
  return x87;
}

State AnyState(Random& random) {
  State state;
  Registers& regs = state.regs;
  for (auto& gpr : regs.gpr) {
    gpr = random.Below(3) == 0 ? random.Below(40) - 20 : random.Next();
  }
  regs.gpr[kRsp] = kDataAt + 256;
  regs.gpr[kRsi] = kMemOperandAddr;
  regs.gpr[kRdi] = kDataAt + 2048 + random.Below(16);
  regs.rflags = 0x202 | (random.Next() & kFlagsArithmetic);
  for (VecLane& lane : regs.vec) {
    for (Vec128& value : lane) {
      value = AnyVec(random);
    }
  }
  for (uint64_t& mask : regs.opmask) {
    mask = AnyOpmask(random);
  }
  // Rounding, FTZ, DAZ, flags already raised.
  regs.mxcsr = 0x1f80 | (static_cast<uint32_t>(random.Next()) & 0x603fu);
  if (random.Below(4) == 0) {
    regs.mxcsr |= static_cast<uint32_t>(random.Next()) & 0x8040u;
  }
  for (size_t i = 0; i < kDataBytes; i += 16) {
    const Vec128 value = AnyVec(random);
    std::memcpy(state.window.data() + i, &value, 16);
  }
  return state;
}

}  // namespace clew::machine
