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

// A string of 16 bytes or 8 words, widened so that signed and unsigned lanes
// compare alike.
struct Text {
  std::array<int, 16> lanes = {};
  unsigned lane_count = 16;
  unsigned length = 0;  // valid lanes, <= lane_count
};

Text Widen(const Vec128& value, uint8_t imm) {
  Text text;
  text.lane_count = (imm & kWords) ? 8 : 16;
  const auto bytes = LanesOf<uint8_t>(value);
  const auto words = LanesOf<uint16_t>(value);
  for (unsigned i = 0; i < text.lane_count; ++i) {
    if (imm & kSigned) {
      text.lanes[i] = (imm & kWords) ? static_cast<int16_t>(words[i])
                                     : static_cast<int8_t>(bytes[i]);
    } else {
      text.lanes[i] = (imm & kWords) ? words[i] : bytes[i];
    }
  }
  return text;
}

// The length up to the first zero lane.
void SetImplicitLength(Text& text) {
  auto* const end = text.lanes.begin() + text.lane_count;
  text.length = static_cast<unsigned>(std::find(text.lanes.begin(), end, 0) -
                                      text.lanes.begin());
}

void SetExplicitLength(Text& text, int64_t length) {
  const uint64_t size = length < 0 ? 0 - static_cast<uint64_t>(length)
                                   : static_cast<uint64_t>(length);
  text.length =
      static_cast<unsigned>(std::min<uint64_t>(size, text.lane_count));
}

bool InSet(const Text& set, int lane) {
  const auto* end = set.lanes.begin() + set.length;
  return std::find(set.lanes.begin(), end, lane) != end;
}

// Pairs of bounds; a pair with only its lower bound valid holds nothing.
bool InRanges(const Text& ranges, int lane) {
  for (unsigned i = 0; i + 1 < ranges.length; i += 2) {
    if (ranges.lanes[i] <= lane && lane <= ranges.lanes[i + 1]) {
      return true;
    }
  }
  return false;
}

// Lanes past both ends are equal, past one end they differ.
bool EqualAt(const Text& a, const Text& b, unsigned i) {
  const bool in_a = i < a.length;
  const bool in_b = i < b.length;
  return in_a && in_b ? a.lanes[i] == b.lanes[i] : in_a == in_b;
}

// Whether `a` stands in `b` from lane `start` on, as far as b's lanes go.
bool FoundAt(const Text& a, const Text& b, unsigned start) {
  for (unsigned i = 0; i < a.length && start + i < b.lane_count; ++i) {
    if (start + i >= b.length || a.lanes[i] != b.lanes[start + i]) {
      return false;
    }
  }
  return true;
}

bool Match(const Text& a, const Text& b, unsigned i, uint8_t imm) {
  switch (static_cast<Aggregation>((imm >> 2) & 3)) {
    case kEqualAny:
      return i < b.length && InSet(a, b.lanes[i]);
    case kRanges:
      return i < b.length && InRanges(a, b.lanes[i]);
    case kEqualEach:
      return EqualAt(a, b, i);
    case kEqualOrdered:
      return FoundAt(a, b, i);
  }
  return false;
}

// IntRes2 of the manual: bit i for lane i.
unsigned MatchBits(const Text& a, const Text& b, uint8_t imm) {
  unsigned bits = 0;
  for (unsigned i = 0; i < b.lane_count; ++i) {
    const bool negate =
        (imm & kNegate) && (!(imm & kNegateValidOnly) || i < b.length);
    bits |= static_cast<unsigned>(Match(a, b, i, imm) != negate) << i;
  }
  return bits;
}

uint64_t IndexOf(unsigned bits, unsigned lane_count, bool last) {
  if (bits == 0) {
    return lane_count;
  }
  return static_cast<uint64_t>(last ? static_cast<int>(std::bit_width(bits)) - 1
                                    : std::countr_zero(bits));
}

Vec128 MaskOf(unsigned bits, unsigned lane_count, bool expanded) {
  if (!expanded) {
    return {{bits, 0}};
  }
  Lanes<uint8_t> mask;
  const unsigned lane_bytes = 16 / lane_count;
  for (unsigned i = 0; i < 16; ++i) {
    mask[i] = ((bits >> (i / lane_bytes)) & 1) ? 0xff : 0;
  }
  return FromLanes<uint8_t>(mask);
}

uint64_t FlagsOf(const Text& a, const Text& b, unsigned bits) {
  return (bits != 0 ? kFlagCarry : 0) |
         (b.length < b.lane_count ? kFlagZero : 0) |
         (a.length < a.lane_count ? kFlagSign : 0) |
         ((bits & 1) ? kFlagOverflow : 0);
}

StringCompare Compare(const Text& a, const Text& b, uint8_t imm) {
  const unsigned bits = MatchBits(a, b, imm);
  const bool top = (imm & kFromTheTop) != 0;
  return {IndexOf(bits, b.lane_count, top), MaskOf(bits, b.lane_count, top),
          FlagsOf(a, b, bits)};
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
