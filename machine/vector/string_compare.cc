#include "machine/vector/string_compare.h"

#include <algorithm>

namespace clew::machine {
namespace {

// Fields of the immediate.
constexpr uint8_t kWords = 0x01;
constexpr uint8_t kSigned = 0x02;
constexpr uint8_t kNegate = 0x10;
constexpr uint8_t kNegateValidOnly = 0x20;
constexpr uint8_t kFromTheTop = 0x40;  // last index; expanded mask

enum Aggregation : uint8_t { kEqualAny, kRanges, kEqualEach, kEqualOrdered };

// A string of 16 bytes or 8 words, widened so that signed and unsigned elements
// compare alike.
struct Text {
  std::array<int, 16> elements = {};
  unsigned element_count = 16;
  unsigned length = 0;  // valid elements, <= element_count
};

Text Widen(const Vec128& value, uint8_t imm) {
  Text text;
  text.element_count = (imm & kWords) ? 8 : 16;
  const auto bytes = ElementsOf<uint8_t>(value);
  const auto words = ElementsOf<uint16_t>(value);
  for (unsigned i = 0; i < text.element_count; ++i) {
    if (imm & kSigned) {
      text.elements[i] = (imm & kWords) ? static_cast<int16_t>(words[i])
                                        : static_cast<int8_t>(bytes[i]);
    } else {
      text.elements[i] = (imm & kWords) ? words[i] : bytes[i];
    }
  }
  return text;
}

// The length up to the first zero element.
void SetImplicitLength(Text& text) {
  auto* const end = text.elements.begin() + text.element_count;
  text.length = static_cast<unsigned>(std::find(text.elements.begin(), end, 0) -
                                      text.elements.begin());
}

void SetExplicitLength(Text& text, int64_t length) {
  const uint64_t size = length < 0 ? 0 - static_cast<uint64_t>(length)
                                   : static_cast<uint64_t>(length);
  text.length =
      static_cast<unsigned>(std::min<uint64_t>(size, text.element_count));
}

bool InSet(const Text& set, int element) {
  const auto* end = set.elements.begin() + set.length;
  return std::find(set.elements.begin(), end, element) != end;
}

// Pairs of bounds; a pair with only its lower bound valid holds nothing.
bool InRanges(const Text& ranges, int element) {
  for (unsigned i = 0; i + 1 < ranges.length; i += 2) {
    if (ranges.elements[i] <= element && element <= ranges.elements[i + 1]) {
      return true;
    }
  }
  return false;
}

// Elements past both ends are equal, past one end they differ.
bool EqualAt(const Text& a, const Text& b, unsigned i) {
  const bool in_a = i < a.length;
  const bool in_b = i < b.length;
  return in_a && in_b ? a.elements[i] == b.elements[i] : in_a == in_b;
}

// Whether `a` stands in `b` from element `start` on, as far as b's elements go.
bool FoundAt(const Text& a, const Text& b, unsigned start) {
  for (unsigned i = 0; i < a.length && start + i < b.element_count; ++i) {
    if (start + i >= b.length || a.elements[i] != b.elements[start + i]) {
      return false;
    }
  }
  return true;
}

bool Match(const Text& a, const Text& b, unsigned i, uint8_t imm) {
  switch (static_cast<Aggregation>((imm >> 2) & 3)) {
    case kEqualAny:
      return i < b.length && InSet(a, b.elements[i]);
    case kRanges:
      return i < b.length && InRanges(a, b.elements[i]);
    case kEqualEach:
      return EqualAt(a, b, i);
    case kEqualOrdered:
      return FoundAt(a, b, i);
  }
  return false;
}

// IntRes2 of the manual: bit i for element i.
unsigned MatchBits(const Text& a, const Text& b, uint8_t imm) {
  unsigned bits = 0;
  for (unsigned i = 0; i < b.element_count; ++i) {
    const bool negate =
        (imm & kNegate) && (!(imm & kNegateValidOnly) || i < b.length);
    bits |= static_cast<unsigned>(Match(a, b, i, imm) != negate) << i;
  }
  return bits;
}

uint64_t IndexOf(unsigned bits, unsigned element_count, bool last) {
  if (bits == 0) {
    return element_count;
  }
  return static_cast<uint64_t>(last ? static_cast<int>(std::bit_width(bits)) - 1
                                    : std::countr_zero(bits));
}

Vec128 MaskOf(unsigned bits, unsigned element_count, bool expanded) {
  if (!expanded) {
    return {{bits, 0}};
  }
  Elements<uint8_t> mask;
  const unsigned element_bytes = 16 / element_count;
  for (unsigned i = 0; i < 16; ++i) {
    mask[i] = ((bits >> (i / element_bytes)) & 1) ? 0xff : 0;
  }
  return FromElements<uint8_t>(mask);
}

uint64_t FlagsOf(const Text& a, const Text& b, unsigned bits) {
  return (bits != 0 ? kFlagCarry : 0) |
         (b.length < b.element_count ? kFlagZero : 0) |
         (a.length < a.element_count ? kFlagSign : 0) |
         ((bits & 1) ? kFlagOverflow : 0);
}

StringCompare Compare(const Text& a, const Text& b, uint8_t imm) {
  const unsigned bits = MatchBits(a, b, imm);
  const bool top = (imm & kFromTheTop) != 0;
  return {IndexOf(bits, b.element_count, top),
          MaskOf(bits, b.element_count, top), FlagsOf(a, b, bits)};
}

}  // namespace

StringCompare CompareImplicit(const Vec128& a, const Vec128& b, uint8_t imm) {
  Text text_a = Widen(a, imm);
  Text text_b = Widen(b, imm);
  SetImplicitLength(text_a);
  SetImplicitLength(text_b);
  return Compare(text_a, text_b, imm);
}

StringCompare CompareExplicit(const Vec128& a, int64_t a_length,
                              const Vec128& b, int64_t b_length, uint8_t imm) {
  Text text_a = Widen(a, imm);
  Text text_b = Widen(b, imm);
  SetExplicitLength(text_a, a_length);
  SetExplicitLength(text_b, b_length);
  return Compare(text_a, text_b, imm);
}

}  // namespace clew::machine
