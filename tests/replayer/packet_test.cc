// Goal: gdb's frames come out as they went in, however the stream is cut, and
// no bytes of a stranger do any harm. Method: round trips of random payloads
// (the seed is printed), damage of single bytes, random bytes, and the examples
// of "Debugging with GDB".
#include <gtest/gtest.h>

#include <vector>

#include "common/digest.h"
#include "replayer/gdb/gdb_packet.h"

namespace clew::replayer::gdb {
namespace {

std::vector<Incoming> ReadAll(GdbPacketReader& reader, std::string_view text) {
  auto bytes = std::as_bytes(std::span(text));
  std::vector<Incoming> items;
  while (auto item = reader.Next(bytes)) {
    items.push_back(*item);
  }
  EXPECT_TRUE(bytes.empty());
  return items;
}

std::string RandomBytes(Random& random, size_t size, uint64_t alphabet) {
  // Few different bytes give repetitions and characters with a meaning.
  static constexpr std::string_view kOften =
      "#$}*+-\x03"
      "00a";
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    text.push_back(random.Below(alphabet) == 0
                       ? static_cast<char>(random.Below(256))
                       : kOften[random.Below(kOften.size())]);
  }
  return text;
}

TEST(Packet, WhatIsEscapedAndFramedComesOutAgain) {
  const uint64_t seed = 20261120;
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 2000; ++round) {
    const std::string raw = RandomBytes(random, random.Below(400), 4);
    size_t used = 0;
    const std::string frame = MakeFrame(Escape(raw, kPacketBytesMax, used));
    ASSERT_EQ(used, raw.size());
    GdbPacketReader reader;
    const size_t cut = random.Below(frame.size());
    auto items = ReadAll(reader, frame.substr(0, cut));
    ASSERT_TRUE(items.empty());
    items = ReadAll(reader, frame.substr(cut));
    ASSERT_EQ(items.size(), 1u);
    ASSERT_EQ(items[0].kind, Incoming::Kind::kPacket);
    ASSERT_EQ(items[0].payload, raw);
  }
}

TEST(Packet, RepetitionsAreShortenedAndNeverUseReservedCounts) {
  for (size_t size = 1; size < 300; ++size) {
    const std::string raw(size, '0');
    const std::string frame = MakeFrame(raw);
    if (size > 8) {
      EXPECT_LT(frame.size(), raw.size() + 4);
    }
    const std::string body = frame.substr(1, frame.size() - 4);
    EXPECT_EQ(body.find_first_of("#$+-"), std::string::npos) << size;
    GdbPacketReader reader;
    const auto items = ReadAll(reader, frame);
    ASSERT_EQ(items.size(), 1u);
    EXPECT_EQ(items[0].payload, raw);
  }
}

TEST(Packet, TheManualsExamples) {
  EXPECT_EQ(Unescape("0* "), "0000");  // "Overview": "0* " is "0000"
  EXPECT_EQ(Unescape("}]"), "}");      // 0x7d 0x5d is 0x7d
  EXPECT_EQ(MakeFrame("OK"), "$OK#9a");
  EXPECT_EQ(MakeFrame(""), "$#00");
}

TEST(Packet, DamageOfAnyByteIsNoticed) {
  const std::string frame = MakeFrame("m401000,10");
  for (size_t at = 1; at < frame.size(); ++at) {
    std::string damaged = frame;
    damaged[at] = damaged[at] == 'Q' ? 'R' : 'Q';
    GdbPacketReader reader;
    for (const Incoming& item : ReadAll(reader, damaged)) {
      EXPECT_NE(item.kind, Incoming::Kind::kPacket) << at;
    }
  }
}

TEST(Packet, MalformedEscapesAndRepetitionsAreDamage) {
  for (const std::string_view frame : {"a}", "a*", "*!", "a*\x1f", "a*\x7f"}) {
    EXPECT_FALSE(Unescape(frame).has_value()) << frame;
  }
}

TEST(Packet, AcksAndInterruptsBetweenFrames) {
  GdbPacketReader reader;
  const auto items = ReadAll(reader, "+noise-\x03$?#3f");
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(items[0].kind, Incoming::Kind::kAck);
  EXPECT_EQ(items[1].kind, Incoming::Kind::kNack);
  EXPECT_EQ(items[2].kind, Incoming::Kind::kInterrupt);
  EXPECT_EQ(items[3].payload, "?");
}

TEST(Packet, AFrameThatStartsAnewReplacesTheOneBefore) {
  GdbPacketReader reader;
  const auto items = ReadAll(reader, "$half$?#3f");
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].payload, "?");
}

TEST(Packet, AFrameOverTheLimitIsDamageAndTheNextOneIsRead) {
  GdbPacketReader reader;
  std::string text = MakeFrame("?");
  const std::string body(kPacketBytesMax + 1, 'a');
  const auto items = ReadAll(reader, "$" + body + "#e1" + text);
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].kind, Incoming::Kind::kDamaged);
  EXPECT_EQ(items[1].payload, "?");
}

TEST(Packet, RepetitionsCannotExceedTheLimit) {
  std::string frame = "a";
  while (frame.size() < kPacketBytesMax) {
    frame += "*~";
  }
  EXPECT_FALSE(Unescape(frame).has_value());
}

TEST(Packet, RandomBytesDoNoHarm) {
  const uint64_t seed = 7;
  SCOPED_TRACE(seed);
  Random random(seed);
  GdbPacketReader reader;
  for (int round = 0; round < 5000; ++round) {
    for (const Incoming& item :
         ReadAll(reader, RandomBytes(random, random.Below(100), 2))) {
      EXPECT_LE(item.payload.size(), kPacketBytesMax);
    }
  }
}

TEST(Packet, EscapeKeepsToTheLimit) {
  size_t used = 0;
  EXPECT_EQ(Escape("a##b", 4, used), "a}\x03");
  EXPECT_EQ(used, 2u);
  EXPECT_EQ(Escape("abc", 3, used), "abc");
  EXPECT_EQ(used, 3u);
}

}  // namespace
}  // namespace clew::replayer::gdb
