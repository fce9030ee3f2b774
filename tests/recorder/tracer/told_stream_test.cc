// Goal: what a thread tells of its inputs comes out of its stream whole and in
// order, wherever the stream is cut; a foul stream is refused.
// Method: property; random streams of known items in random pieces, the seed in
// every message; and foul items, one of each kind, whole and byte by byte.

#include "recorder/tracer/free/told_stream.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "common/digest.h"

namespace clew::tracer {
namespace {

using Bytes = std::vector<std::byte>;

template <class T>
Bytes BytesOf(const T& value) {
  static_assert(std::has_unique_object_representations_v<T>);
  Bytes bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

void Append(Bytes& to, const Bytes& bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void AppendItem(Bytes& stream, ToldKind kind, const Bytes& bytes) {
  Append(stream, BytesOf(ToldHead{kind, static_cast<uint32_t>(bytes.size())}));
  Append(stream, bytes);
}

void AppendWrite(Bytes& stream, uint64_t addr, const Bytes& data) {
  Bytes bytes = BytesOf(addr);
  Append(bytes, data);
  AppendItem(stream, ToldKind::kWrite, bytes);
}

Bytes ItemBytes(ToldKind kind, size_t bytes) {
  Bytes stream;
  AppendItem(stream, kind, Bytes(bytes));
  return stream;
}

// --- Random streams.

Bytes RandomBytes(Random& random, size_t size) {
  Bytes bytes(size);
  std::ranges::generate(
      bytes, [&random] { return static_cast<std::byte>(random.Next()); });
  return bytes;
}

template <class T>
T RandomValue(Random& random) {
  T value;
  std::memcpy(&value, RandomBytes(random, sizeof(T)).data(), sizeof(T));
  return value;
}

uint64_t EndOf(const MemoryWrite& write) {
  return write.addr.as_int() + write.bytes.size();
}

// The stream, and what is to come out of it.
struct Model {
  Bytes stream;
  std::vector<ToldItem> items;
  uint64_t merged = 0;
};

// Mostly a few bytes, seldom as many as an item has.
size_t RandomWriteSize(Random& random) {
  return 1 + random.Below(random.Below(100) == 0
                              ? kToldBytesMax - sizeof(uint64_t)
                              : 100);
}

// An address anywhere or close to the last write, but not right behind it.
uint64_t RandomApart(Random& random, const std::vector<MemoryWrite>& writes) {
  if (writes.empty()) {
    return random.Next();
  }
  const MemoryWrite& last = writes.back();
  const std::array<uint64_t, 5> addrs = {
      random.Next(), last.addr.as_int(), EndOf(last) - 1, EndOf(last) + 1,
      EndOf(writes.front()) + (writes.size() == 1 ? 1 : 0)};
  const uint64_t addr = addrs[random.Below(addrs.size())];
  return addr == EndOf(last) ? addr + 1 : addr;
}

std::vector<MemoryWrite> AddWrites(Random& random, Model& model) {
  std::vector<MemoryWrite> writes;
  for (uint64_t left = random.Below(6); left > 0; --left) {
    const Bytes data = RandomBytes(random, RandomWriteSize(random));
    if (!writes.empty() && random.Below(2) == 0) {
      AppendWrite(model.stream, EndOf(writes.back()), data);
      Append(writes.back().bytes, data);
      ++model.merged;
    } else {
      const uint64_t addr = RandomApart(random, writes);
      AppendWrite(model.stream, addr, data);
      writes.push_back({TraceeAddr(addr), data});
    }
  }
  return writes;
}

void AddCall(Random& random, Model& model) {
  CallItem item;
  item.writes = AddWrites(random, model);
  if (random.Below(2) == 0) {
    const Bytes path = RandomBytes(random, random.Below(300));
    item.path.assign(reinterpret_cast<const char*>(path.data()), path.size());
    AppendItem(model.stream, ToldKind::kPath, path);
  }
  item.call = RandomValue<ToldCall>(random);
  AppendItem(model.stream, ToldKind::kCall, BytesOf(item.call));
  model.items.emplace_back(std::move(item));
}

void AddSignal(Random& random, Model& model) {
  SignalItem item;
  item.writes = AddWrites(random, model);
  item.signal = RandomValue<ToldSignal>(random);
  AppendItem(model.stream, ToldKind::kSignal, BytesOf(item.signal));
  model.items.emplace_back(std::move(item));
}

void AddInsn(Random& random, Model& model) {
  const auto insn = RandomValue<ToldInsn>(random);
  AppendItem(model.stream, ToldKind::kInsn, BytesOf(insn));
  model.items.emplace_back(insn);
}

Model RandomModel(Random& random) {
  Model model;
  for (uint64_t left = random.Below(40); left > 0; --left) {
    switch (random.Below(4)) {
      case 0:
        AddInsn(random, model);
        break;
      case 1:
        AddSignal(random, model);
        break;
      default:
        AddCall(random, model);
    }
  }
  return model;
}

void ExpectSame(const std::vector<MemoryWrite>& writes,
                const std::vector<MemoryWrite>& wanted) {
  ASSERT_EQ(writes.size(), wanted.size());
  for (size_t i = 0; i < writes.size(); ++i) {
    EXPECT_EQ(writes[i].addr.as_int(), wanted[i].addr.as_int())
        << "write " << i;
    EXPECT_EQ(writes[i].bytes.size(), wanted[i].bytes.size()) << "write " << i;
    EXPECT_TRUE(writes[i].bytes == wanted[i].bytes) << "write " << i;
  }
}

void ExpectSame(const ToldItem& item, const ToldItem& wanted) {
  ASSERT_EQ(item.index(), wanted.index());
  if (const auto* const call = std::get_if<CallItem>(&item)) {
    const auto& other = std::get<CallItem>(wanted);
    EXPECT_TRUE(BytesOf(call->call) == BytesOf(other.call));
    EXPECT_EQ(call->path.size(), other.path.size());
    EXPECT_TRUE(call->path == other.path);
    ExpectSame(call->writes, other.writes);
  } else if (const auto* const signal = std::get_if<SignalItem>(&item)) {
    const auto& other = std::get<SignalItem>(wanted);
    EXPECT_TRUE(BytesOf(signal->signal) == BytesOf(other.signal));
    ExpectSame(signal->writes, other.writes);
  } else {
    EXPECT_TRUE(BytesOf(std::get<ToldInsn>(item)) ==
                BytesOf(std::get<ToldInsn>(wanted)));
  }
}

// Moves what is complete to the end of `items`.
void MoveItems(ToldStream& told, std::vector<ToldItem>& items) {
  std::ranges::move(told.Items(), std::back_inserter(items));
}

TEST(ToldStreamTest, WhatWasToldComesOutWhereverTheStreamIsCut) {
  const auto first =
      static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  uint64_t merged = 0;
  for (uint64_t seed = first; seed < first + 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Model model = RandomModel(random);
    merged += model.merged;
    const uint64_t piece_max = 1 + random.Below(3000);
    ToldStream told;
    std::vector<ToldItem> items;
    std::span<const std::byte> rest = model.stream;
    while (!rest.empty()) {
      const size_t piece =
          std::min<size_t>(rest.size(), 1 + random.Below(piece_max));
      const Status taken = told.Take(rest.first(piece));
      ASSERT_TRUE(taken) << taken.error().message << ", " << rest.size()
                         << " bytes before the end";
      rest = rest.subspan(piece);
      if (random.Below(2) == 0) {
        MoveItems(told, items);
      }
    }
    MoveItems(told, items);
    EXPECT_TRUE(told.Items().empty());
    ASSERT_EQ(items.size(), model.items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      SCOPED_TRACE(fmt::format("item {}", i));
      ExpectSame(items[i], model.items[i]);
    }
    if (HasFailure()) {
      return;
    }
  }
  EXPECT_GT(merged, 1000u);
}

// --- What is not complete.

TEST(ToldStreamTest, AnItemThatIsNotCompleteIsNone) {
  Bytes stream;
  AppendWrite(stream, 0x1000, Bytes(20));
  AppendItem(stream, ToldKind::kPath, Bytes(7, std::byte{'p'}));
  AppendItem(stream, ToldKind::kCall, Bytes(sizeof(ToldCall)));
  const std::span<const std::byte> all = stream;
  for (size_t cut = 0; cut < all.size(); ++cut) {
    SCOPED_TRACE(fmt::format("cut at {} of {}", cut, all.size()));
    ToldStream told;
    ASSERT_TRUE(told.Take(all.first(cut)));
    EXPECT_TRUE(told.Items().empty());
    ASSERT_TRUE(told.Take({}));
    EXPECT_TRUE(told.Items().empty());
    ASSERT_TRUE(told.Take(all.subspan(cut)));
    const auto items = told.Items();
    ASSERT_EQ(items.size(), 1u);
    const auto& call = std::get<CallItem>(items[0]);
    EXPECT_EQ(call.path, "ppppppp");
    ASSERT_EQ(call.writes.size(), 1u);
    EXPECT_EQ(call.writes[0].bytes.size(), 20u);
  }
}

TEST(ToldStreamTest, WhatIsCompleteDoesNotWaitForTheNextOne) {
  Bytes stream = ItemBytes(ToldKind::kInsn, sizeof(ToldInsn));
  Append(stream, ItemBytes(ToldKind::kSignal, sizeof(ToldSignal)));
  stream.pop_back();
  ToldStream told;
  ASSERT_TRUE(told.Take(stream));
  const auto items = told.Items();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<ToldInsn>(items[0]));
}

// --- What is foul.

// Whether it comes at once or byte by byte, behind a good item.
void ExpectFoul(const Bytes& foul) {
  Bytes stream = ItemBytes(ToldKind::kInsn, sizeof(ToldInsn));
  Append(stream, foul);
  for (const size_t piece : {stream.size(), size_t{1}}) {
    SCOPED_TRACE(fmt::format("in pieces of {}", piece));
    ToldStream told;
    Status taken;
    std::span<const std::byte> rest = stream;
    while (taken && !rest.empty()) {
      taken = told.Take(rest.first(piece));
      rest = rest.subspan(piece);
    }
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, ErrorCode::kCorruptInput);
    EXPECT_TRUE(rest.empty()) << rest.size() << " bytes before the end";
  }
}

TEST(ToldStreamTest, RefusesAnItemThatIsTooLongByItsHead) {
  for (const uint32_t bytes : {kToldBytesMax + 1, ~uint32_t{0}}) {
    SCOPED_TRACE(bytes);
    ExpectFoul(BytesOf(ToldHead{ToldKind::kPath, bytes}));
  }
  ToldStream told;
  EXPECT_TRUE(told.Take(ItemBytes(ToldKind::kPath, kToldBytesMax)));
  EXPECT_TRUE(told.Take(ItemBytes(ToldKind::kWrite, kToldBytesMax)));
}

TEST(ToldStreamTest, RefusesAKindThatIsNone) {
  for (const uint32_t kind : {0u, 6u, ~0u}) {
    for (const size_t bytes : {size_t{0}, size_t{9}, sizeof(ToldCall)}) {
      SCOPED_TRACE(fmt::format("kind {}, {} bytes", kind, bytes));
      ExpectFoul(ItemBytes(static_cast<ToldKind>(kind), bytes));
    }
  }
}

TEST(ToldStreamTest, RefusesASizeThatIsWrong) {
  for (const auto& [kind, size] :
       {std::pair(ToldKind::kCall, sizeof(ToldCall)),
        std::pair(ToldKind::kSignal, sizeof(ToldSignal)),
        std::pair(ToldKind::kInsn, sizeof(ToldInsn))}) {
    for (const size_t wrong : {size_t{0}, size - 1, size + 1, 2 * size}) {
      SCOPED_TRACE(fmt::format("kind {}, {} bytes, wanted {}",
                               static_cast<uint32_t>(kind), wrong, size));
      ExpectFoul(ItemBytes(kind, wrong));
    }
    ToldStream told;
    EXPECT_TRUE(told.Take(ItemBytes(kind, size)));
    EXPECT_EQ(told.Items().size(), 1u);
  }
}

TEST(ToldStreamTest, RefusesAWriteOfNothing) {
  for (size_t bytes = 0; bytes <= sizeof(uint64_t); ++bytes) {
    SCOPED_TRACE(bytes);
    ExpectFoul(ItemBytes(ToldKind::kWrite, bytes));
  }
  ToldStream told;
  EXPECT_TRUE(told.Take(ItemBytes(ToldKind::kWrite, sizeof(uint64_t) + 1)));
}

}  // namespace
}  // namespace clew::tracer
