// Goal: no read leaves the input, whatever its size; a failed read says where,
// which field, what it wanted and what there is, and leaves the cursor alone.
// Method: exhaustive over input sizes and cursor positions up to 20 bytes.
#include "common/byte_reader.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

namespace clew {
namespace {

std::vector<std::byte> Counting(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(i + 1);
  }
  return bytes;
}

template <class T>
uint64_t LittleEndian(size_t offset) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<uint64_t>(offset + i + 1) << (8 * i);
  }
  return value;
}

template <class T>
void CheckEverySizeAndOffset() {
  for (size_t size = 0; size <= 20; ++size) {
    const auto bytes = Counting(size);
    for (size_t offset = 0; offset <= size; ++offset) {
      ByteReader reader(bytes, "f");
      ASSERT_TRUE(reader.Skip(offset, "before").has_value());
      const Result<T> value = reader.Read<T>("x");
      ASSERT_EQ(value.has_value(), size - offset >= sizeof(T));
      if (value) {
        EXPECT_EQ(uint64_t{*value}, LittleEndian<T>(offset));
        EXPECT_EQ(reader.offset(), offset + sizeof(T));
      } else {
        EXPECT_EQ(value.error().code, ErrorCode::kCorruptInput);
        EXPECT_EQ(reader.offset(), offset);
      }
    }
  }
}

TEST(ByteReaderTest, IntegersAreReadExactlyWhereTheyFit) {
  CheckEverySizeAndOffset<uint8_t>();
  CheckEverySizeAndOffset<uint16_t>();
  CheckEverySizeAndOffset<uint32_t>();
  CheckEverySizeAndOffset<uint64_t>();
}

TEST(ByteReaderTest, ASignedIntegerKeepsItsSign) {
  const std::vector<std::byte> bytes(4, std::byte{0xff});
  ByteReader reader(bytes, "f");
  EXPECT_EQ(reader.Read<int32_t>("pid").value(), -1);
}

TEST(ByteReaderTest, AMessageSaysWhereWhatAndHowMuch) {
  const auto bytes = Counting(11);
  ByteReader reader(bytes, "b1.clew/perf.data", 0x100);
  ASSERT_TRUE(reader.Skip(8, "header"));
  EXPECT_EQ(reader.Read<uint64_t>("aux_size").error().message,
            "b1.clew/perf.data: offset 0x108: aux_size needs 8 bytes, only 3 "
            "left");
  ByteReader nameless(bytes, "");
  EXPECT_EQ(nameless.Skip(12, "header").error().message,
            "offset 0x0: header needs 12 bytes, only 11 left");
}

TEST(ByteReaderTest, AHugeCountIsAnErrorAndNoOverflow) {
  const auto bytes = Counting(4);
  for (const uint64_t count :
       {uint64_t{5}, uint64_t{1} << 32, uint64_t{1} << 63,
        std::numeric_limits<uint64_t>::max()}) {
    ByteReader reader(bytes, "f");
    ASSERT_TRUE(reader.Skip(1, "before"));
    EXPECT_FALSE(reader.ReadBytes(count, "x").has_value());
    EXPECT_FALSE(reader.Skip(count, "x").has_value());
    EXPECT_FALSE(reader.ReadText(count, "x").has_value());
    EXPECT_EQ(reader.offset(), 1u);
    EXPECT_EQ(reader.remaining_bytes(), 3u);
  }
}

TEST(ByteReaderTest, BytesAreBorrowedFromTheInput) {
  const auto bytes = Counting(6);
  ByteReader reader(bytes, "f");
  ASSERT_TRUE(reader.Skip(2, "before"));
  const auto part = reader.ReadBytes(3, "part");
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->data(), bytes.data() + 2);
  EXPECT_EQ(part->size(), 3u);
  EXPECT_FALSE(reader.at_end());
  ASSERT_TRUE(reader.Skip(1, "rest"));
  EXPECT_TRUE(reader.at_end());
  EXPECT_TRUE(reader.ReadBytes(0, "nothing").has_value());
}

TEST(ByteReaderTest, TextEndsAtTheFirstNulAndTakesItsWholeField) {
  constexpr std::array<char, 8> kText = {'a', 'b', '\0', 'c',
                                         'd', 'e', 'f',  'g'};
  ByteReader reader(std::as_bytes(std::span(kText)), "f");
  EXPECT_EQ(reader.ReadText(4, "name").value(), "ab");
  EXPECT_EQ(reader.offset(), 4u);
  EXPECT_EQ(reader.ReadText(4, "unterminated").value(), "defg");
}

TEST(ByteReaderTest, CorruptNamesTheCursorsPlaceInTheFile) {
  const auto bytes = Counting(4);
  ByteReader reader(bytes, "f", 0x20);
  ASSERT_TRUE(reader.Skip(2, "before"));
  const Status status = reader.Corrupt("size is {}, wanted {}", 7, 8);
  EXPECT_EQ(status.error().message, "f: offset 0x22: size is 7, wanted 8");
}

}  // namespace
}  // namespace clew
