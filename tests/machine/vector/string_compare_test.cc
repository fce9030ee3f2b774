// Goal: index, mask and all six flags of PCMPxSTRx are the CPU's.
// Method: all 256 immediates of all four instructions, on random strings over a
// small alphabet (so that matches, prefixes and zero bytes are frequent) and
// lengths from far below to far above the element count. Oracle: the CPU.

#include "machine/vector/string_compare.h"

#include <gtest/gtest.h>

#include "tests/machine/vector/native_imm.h"

namespace clew::machine {
namespace {

constexpr uint64_t kStringSeed = 7;
constexpr int kStrings = 400;

struct Seen {
  uint64_t index = 0;
  Vec128 mask;
  uint64_t flags = 0;
};

struct Question {
  Vec128 a;
  Vec128 b;
  int64_t a_length = 0;  // rax
  int64_t b_length = 0;  // rdx
};

using Asker = Seen (*)(const Question& question);

// Implicit lengths, or explicit ones in 64-bit registers.
template <int kImm>
Seen AskImplicit(const Question& q) {
  const auto a = std::bit_cast<__m128i>(q.a);
  const auto b = std::bit_cast<__m128i>(q.b);
  Seen seen;
  __m128i mask;
  __asm__(
      "pcmpistri %[imm], %[b], %[a]\n\tpushfq\n\tpopq %[flags]\n\t"
      "movl %%ecx, %%ecx"
      : "=c"(seen.index), [flags] "=r"(seen.flags)
      : [a] "x"(a), [b] "x"(b), [imm] "i"(kImm)
      : "cc", "memory");
  __asm__("pcmpistrm %[imm], %[b], %[a]\n\tmovdqa %%xmm0, %[mask]"
          : [mask] "=&x"(mask)
          : [a] "x"(a), [b] "x"(b), [imm] "i"(kImm)
          : "cc", "xmm0");
  seen.mask = std::bit_cast<Vec128>(mask);
  seen.flags &= kFlagsArithmetic;
  return seen;
}

template <int kImm>
Seen AskExplicit(const Question& q) {
  const auto a = std::bit_cast<__m128i>(q.a);
  const auto b = std::bit_cast<__m128i>(q.b);
  Seen seen;
  __m128i mask;
  // With REX.W: the lengths have 64 bits. As bytes, because assemblers do not
  // agree on its name; the operands are xmm2 and xmm1.
  __asm__(
      "movdqa %[a], %%xmm2\n\tmovdqa %[b], %%xmm1\n\t"
      ".byte 0x66, 0x48, 0x0f, 0x3a, 0x61, 0xd1, %c[imm]\n\t"
      "pushfq\n\tpopq %[flags]\n\tmovl %%ecx, %%ecx"
      : "=c"(seen.index), [flags] "=r"(seen.flags)
      : [a] "x"(a), [b] "x"(b), [imm] "i"(kImm), "a"(q.a_length),
        "d"(q.b_length)
      : "cc", "memory", "xmm1", "xmm2");
  __asm__(
      "movdqa %[a], %%xmm2\n\tmovdqa %[b], %%xmm1\n\t"
      ".byte 0x66, 0x48, 0x0f, 0x3a, 0x60, 0xd1, %c[imm]\n\t"
      "movdqa %%xmm0, %[mask]"
      : [mask] "=&x"(mask)
      : [a] "x"(a), [b] "x"(b), [imm] "i"(kImm), "a"(q.a_length),
        "d"(q.b_length)
      : "cc", "xmm0", "xmm1", "xmm2");
  seen.mask = std::bit_cast<Vec128>(mask);
  seen.flags &= kFlagsArithmetic;
  return seen;
}

template <int... kImms>
std::array<Asker, 256> Implicit(std::integer_sequence<int, kImms...>) {
  return {AskImplicit<kImms>...};
}

template <int... kImms>
std::array<Asker, 256> Explicit(std::integer_sequence<int, kImms...>) {
  return {AskExplicit<kImms>...};
}

Vec128 AnyString(Random& random) {
  constexpr std::array<uint8_t, 6> kAlphabet = {0, 'a', 'b', 'c', 0x80, 0xff};
  const uint64_t letters = 1 + random.Below(kAlphabet.size());
  const bool terminated = random.Below(2) == 0;
  Elements<uint8_t> bytes;
  for (auto& byte : bytes) {
    byte = kAlphabet[random.Below(letters)];
    if (byte == 0 && !terminated) {
      byte = 'a';
    }
  }
  return FromElements<uint8_t>(bytes);
}

int64_t AnyLength(Random& random) {
  switch (random.Below(8)) {
    case 0:
      return INT64_MIN;
    case 1:
      return static_cast<int64_t>(random.Next());
    default:
      return static_cast<int64_t>(random.Below(41)) - 20;
  }
}

void ExpectSame(const StringCompare& got, const Seen& wanted, int imm) {
  ASSERT_EQ(got.index, wanted.index)
      << "imm " << imm << ", seed " << kStringSeed;
  ASSERT_EQ(got.mask, wanted.mask) << "imm " << imm << ", seed " << kStringSeed;
  ASSERT_EQ(got.flags, wanted.flags)
      << "imm " << imm << ", seed " << kStringSeed;
}

TEST(StringCompareTest, ImplicitLengthsAgreeWithTheCpu) {
  const auto askers = Implicit(std::make_integer_sequence<int, 256>());
  Random random(kStringSeed);
  for (int i = 0; i < kStrings * 256; ++i) {
    const int imm = i % 256;
    const Question q = {AnyString(random), AnyString(random)};
    ExpectSame(CompareImplicit(q.a, q.b, static_cast<uint8_t>(imm)),
               askers[static_cast<size_t>(imm)](q), imm);
  }
}

TEST(StringCompareTest, ExplicitLengthsAgreeWithTheCpu) {
  const auto askers = Explicit(std::make_integer_sequence<int, 256>());
  Random random(kStringSeed);
  for (int i = 0; i < kStrings * 256; ++i) {
    const int imm = i % 256;
    const Question q = {AnyString(random), AnyString(random), AnyLength(random),
                        AnyLength(random)};
    ExpectSame(CompareExplicit(q.a, q.a_length, q.b, q.b_length,
                               static_cast<uint8_t>(imm)),
               askers[static_cast<size_t>(imm)](q), imm);
  }
}

}  // namespace
}  // namespace clew::machine
