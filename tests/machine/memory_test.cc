// Goal: the promises of machine/memory.h: snapshots, undo, digest, protection,
// code versions.
// Method: property; random sequences of operations against a plain model (a map
// from address to byte, protection and number of shared memory).

#include "machine/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "common/digest.h"
#include "common/inputs.h"

namespace clew::machine {
namespace {

constexpr uint64_t kBase = 0x7000000;
constexpr uint64_t kPages = 6;
constexpr uint64_t kChunkBytes = PageTable::kChunkPages * kPageBytes;

struct ModelPage {
  uint32_t prot = 0;
  std::optional<uint64_t> number = {};  // of shared memory
  std::vector<std::byte> bytes = std::vector<std::byte>(kPageBytes);
  bool operator==(const ModelPage&) const = default;
};
using Model = std::map<uint64_t, ModelPage>;  // by page address

bool ModelStore(Model& model, uint64_t addr, std::span<const std::byte> bytes,
                uint32_t needed) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto it = model.find((addr + i) / kPageBytes * kPageBytes);
    if (it == model.end() || (it->second.prot & needed) != needed) {
      return false;
    }
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    ModelPage& written = model[(addr + i) / kPageBytes * kPageBytes];
    written.bytes[(addr + i) % kPageBytes] = bytes[i];
    for (auto& [other_addr, other] : model) {
      if (other.number && other.number == written.number) {
        other.bytes[(addr + i) % kPageBytes] = bytes[i];
      }
    }
  }
  return true;
}

void ExpectEqual(const Memory& memory, const Model& model) {
  for (uint64_t page = kBase; page < kBase + kPages * kPageBytes;
       page += kPageBytes) {
    const auto it = model.find(page);
    const auto prot = memory.ProtectionAt(page);
    ASSERT_EQ(prot.has_value(), it != model.end());
    if (prot) {
      std::vector<std::byte> bytes(kPageBytes);
      ASSERT_TRUE(memory.Peek(page, bytes));
      ASSERT_EQ(*prot, it->second.prot);
      ASSERT_EQ(memory.SharedNumberAt(page), it->second.number);
      ASSERT_TRUE(bytes == it->second.bytes);
    }
  }
}

uint64_t FreshDigest(const Model& model) {
  Memory memory;
  for (const auto& [addr, page] : model) {
    if (page.number) {
      memory.MapShared(addr, kPageBytes, page.prot, *page.number);
    } else {
      memory.Map(addr, kPageBytes, page.prot);
    }
    EXPECT_TRUE(memory.Poke(addr, page.bytes));
  }
  memory.EnableDigest();
  return memory.digest();
}

class MemoryTest : public testing::Test {
 protected:
  uint64_t RandomAddr() { return kBase + random_.Below(kPages * kPageBytes); }
  uint32_t RandomProt() { return static_cast<uint32_t>(random_.Below(8)); }

  void Step(Memory& memory, Model& model) {
    switch (random_.Below(12)) {
      case 0:
        return MapSome(memory, model);
      case 5:
        return MapSomeShared(memory, model);
      case 6:
        return MoveSome(memory, model);
      case 1:
        return UnmapSome(memory, model);
      case 2:
        return ProtectSome(memory, model);
      case 3:
        return PokeSome(memory, model);
      case 4:
        return ClearSome(memory, model);
      default:
        return StoreSome(memory, model);
    }
  }
  void MapSome(Memory& memory, Model& model) {
    const uint64_t addr = RandomAddr() / kPageBytes * kPageBytes;
    const uint32_t prot = RandomProt() | (kProtRead | kProtWrite);
    memory.Map(addr, kPageBytes, prot);
    model[addr] = ModelPage{.prot = prot};
  }
  void MapSomeShared(Memory& memory, Model& model) {
    const uint64_t addr = RandomAddr() / kPageBytes * kPageBytes;
    const uint64_t pages = 1 + random_.Below(2);
    const uint32_t prot = RandomProt() | (kProtRead | kProtWrite);
    const uint64_t number = 100 + random_.Below(4);
    memory.MapShared(addr, pages * kPageBytes, prot, number);
    for (uint64_t i = 0; i < pages; ++i) {
      model.erase(addr + i * kPageBytes);
    }
    for (uint64_t i = 0; i < pages; ++i) {
      ModelPage mapped = {.prot = prot, .number = number + i};
      for (const auto& [other_addr, other] : model) {
        if (other.number == mapped.number) {
          mapped.bytes = other.bytes;
        }
      }
      model[addr + i * kPageBytes] = mapped;
    }
  }
  void MoveSome(Memory& memory, Model& model) {
    const uint64_t from = RandomAddr() / kPageBytes * kPageBytes;
    const uint64_t to = RandomAddr() / kPageBytes * kPageBytes;
    if (from == to) {
      return;
    }
    memory.Move(from, to, kPageBytes);
    auto moved = model.extract(from);
    model.erase(to);
    if (!moved.empty()) {
      moved.key() = to;
      model.insert(std::move(moved));
    }
  }
  void UnmapSome(Memory& memory, Model& model) {
    const uint64_t addr = RandomAddr() / kPageBytes * kPageBytes;
    memory.Unmap(addr, 1);
    model.erase(addr);
  }
  void ProtectSome(Memory& memory, Model& model) {
    const uint64_t addr = RandomAddr() / kPageBytes * kPageBytes;
    const uint32_t prot = RandomProt();
    memory.Protect(addr, kPageBytes, prot);
    if (model.contains(addr)) {
      model[addr].prot = prot;
    }
  }
  void ClearSome(Memory& memory, Model& model) {
    const uint64_t addr = RandomAddr() / kPageBytes * kPageBytes;
    const uint64_t size = 1 + random_.Below(2 * kPageBytes);
    memory.Clear(addr, size);
    const auto end = model.lower_bound(addr + size);
    for (auto it = model.lower_bound(addr); it != end; ++it) {
      if (!it->second.number) {
        it->second = ModelPage{.prot = it->second.prot};
      }
    }
  }
  void PokeSome(Memory& memory, Model& model) {
    std::vector<std::byte> bytes(random_.Below(300));
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(random_.Next());
    }
    const uint64_t addr = RandomAddr();
    ASSERT_EQ(memory.Poke(addr, bytes), ModelStore(model, addr, bytes, 0));
  }
  void StoreSome(Memory& memory, Model& model) {
    const uint64_t addr = RandomAddr();
    const uint64_t value = random_.Next();
    const auto bytes = std::as_bytes(std::span(&value, 1));
    const size_t size = size_t{1} << random_.Below(4);
    bool stored = false;
    switch (size) {
      case 1:
        stored = memory.Store(addr, static_cast<uint8_t>(value));
        break;
      case 2:
        stored = memory.Store(addr, static_cast<uint16_t>(value));
        break;
      case 4:
        stored = memory.Store(addr, static_cast<uint32_t>(value));
        break;
      default:
        stored = memory.Store(addr, value);
        break;
    }
    ASSERT_EQ(stored, ModelStore(model, addr, bytes.first(size), kProtWrite));
  }

  Random random_{7};
};

TEST_F(MemoryTest, AgreesWithTheModel) {
  Memory memory;
  Model model;
  for (int i = 0; i < 20000; ++i) {
    Step(memory, model);
    if (i % 500 == 0) {
      ExpectEqual(memory, model);
    }
  }
  ExpectEqual(memory, model);
}

TEST_F(MemoryTest, ACopyIsASnapshot) {
  for (int round = 0; round < 50; ++round) {
    Memory memory;
    Model model;
    for (int i = 0; i < 100; ++i) {
      Step(memory, model);
    }
    Memory snapshot = memory;
    Model kept = model;
    for (int i = 0; i < 100; ++i) {
      Step(memory, model);
      Step(snapshot, kept);
    }
    ExpectEqual(memory, model);
    ExpectEqual(snapshot, kept);
    memory = snapshot;
    ExpectEqual(memory, kept);
  }
}

TEST_F(MemoryTest, RollBackRestoresEverything) {
  Memory memory;
  Model model;
  memory.EnableDigest();
  for (int round = 0; round < 200; ++round) {
    Step(memory, model);
    const auto outer = memory.SetMark();
    const Model at_outer = model;
    const uint64_t digest_outer = memory.digest();
    for (int i = 0; i < 30; ++i) {
      Step(memory, model);
    }
    const auto inner = memory.SetMark();
    const Model at_inner = model;
    for (int i = 0; i < 30; ++i) {
      Step(memory, model);
    }
    memory.RollBack(inner);
    ExpectEqual(memory, at_inner);
    model = at_inner;
    for (int i = 0; i < 10; ++i) {
      Step(memory, model);
    }
    memory.RollBack(outer);
    ExpectEqual(memory, at_outer);
    EXPECT_EQ(memory.digest(), digest_outer);
    model = at_outer;
    if (round % 3 == 0) {
      memory.DropMarks();
    }
  }
}

TEST_F(MemoryTest, DigestDependsOnTheStateAlone) {
  Memory memory;
  Model model;
  for (int i = 0; i < 50; ++i) {
    Step(memory, model);
  }
  memory.EnableDigest();
  EXPECT_EQ(memory.digest(), FreshDigest(model));
  for (int i = 0; i < 2000; ++i) {
    const uint64_t before = memory.digest();
    const Model model_before = model;
    Step(memory, model);
    ASSERT_EQ(before == memory.digest(), model_before == model) << i;
    if (i % 100 == 0) {
      ASSERT_EQ(memory.digest(), FreshDigest(model)) << i;
    }
  }
}

// Relative digests tell the states apart that the memory and its copies go
// through from the call on, and differ by what the full digests differ by.
TEST_F(MemoryTest, ARelativeDigestComparesWhatComesAfterIt) {
  for (int round = 0; round < 20; ++round) {
    Memory memory;
    Model model;
    for (int i = 0; i < 50; ++i) {
      Step(memory, model);
    }
    const uint64_t base = FreshDigest(model);
    memory.EnableRelativeDigest();
    EXPECT_EQ(memory.digest(), 0u);
    const auto mark = memory.SetMark();
    const Model at_mark = model;
    for (int i = 0; i < 50; ++i) {
      const uint64_t before = memory.digest();
      const Model model_before = model;
      Step(memory, model);
      ASSERT_EQ(before == memory.digest(), model_before == model) << i;
      ASSERT_EQ(memory.digest(), FreshDigest(model) - base) << i;
    }
    Memory copy = memory;
    Model copied = model;
    for (int i = 0; i < 50; ++i) {
      Step(copy, copied);
    }
    EXPECT_EQ(copy.digest(), FreshDigest(copied) - base);
    memory.RollBack(mark);
    EXPECT_EQ(memory.digest(), 0u);
    ExpectEqual(memory, at_mark);
    // Counted anew.
    copy.EnableRelativeDigest();
    EXPECT_EQ(copy.digest(), 0u);
  }
}

// Many pages at a time, whose first and last are near the ends of chunks; the
// model is of their protections and a word of each page.
class StretchTest : public testing::Test {
 protected:
  static constexpr uint64_t kFirst = 8 * PageTable::kChunkPages;
  static constexpr uint64_t kEnd = kFirst + 5 * PageTable::kChunkPages;
  struct Place {
    uint32_t prot = 0;
    uint64_t word = 0;
    bool operator==(const Place&) const = default;
  };
  using Places = std::map<uint64_t, Place>;  // by page

  uint64_t RandomPage() {
    const uint64_t near =
        kFirst + random_.Below(6) * PageTable::kChunkPages + random_.Below(5);
    return std::clamp<uint64_t>(near - 2, kFirst, kEnd - 1);
  }

  void Step(Memory& memory, Places& places) {
    uint64_t first = RandomPage();
    uint64_t end = RandomPage();
    if (first > end) {
      std::swap(first, end);
    }
    ++end;
    const uint64_t addr = first * kPageBytes;
    const uint64_t size = (end - first) * kPageBytes;
    const auto prot = static_cast<uint32_t>(random_.Below(4));
    const auto begin = places.lower_bound(first);
    switch (random_.Below(6)) {
      case 0:
        memory.Map(addr, size, prot);
        for (uint64_t page = first; page < end; ++page) {
          places[page] = {.prot = prot};
        }
        break;
      case 1:
        memory.Unmap(addr, size);
        places.erase(begin, places.lower_bound(end));
        break;
      case 2:
        memory.Protect(addr, size, prot);
        for (auto at = begin; at != places.end() && at->first < end; ++at) {
          at->second.prot = prot;
        }
        break;
      case 3:
        memory.Clear(addr, size);
        for (auto at = begin; at != places.end() && at->first < end; ++at) {
          at->second.word = 0;
        }
        break;
      default:
        PokeWord(memory, places, first);
        break;
    }
  }
  void PokeWord(Memory& memory, Places& places, uint64_t page) {
    const uint64_t word = random_.Next();
    const auto place = places.find(page);
    ASSERT_EQ(
        memory.Poke(page * kPageBytes + 8, std::as_bytes(std::span(&word, 1))),
        place != places.end());
    if (place != places.end()) {
      place->second.word = word;
    }
  }

  static Places PlacesOf(const Memory& memory) {
    Places places;
    for (uint64_t page = kFirst; page < kEnd; ++page) {
      if (const auto prot = memory.ProtectionAt(page * kPageBytes)) {
        uint64_t word = 0;
        EXPECT_TRUE(memory.Peek(page * kPageBytes + 8,
                                std::as_writable_bytes(std::span(&word, 1))));
        places[page] = {.prot = *prot, .word = word};
      }
    }
    return places;
  }
  static uint64_t DigestOf(const Places& places) {
    Memory memory;
    for (const auto& [page, place] : places) {  // one by one: no stretch
      memory.Map(page * kPageBytes, kPageBytes, place.prot);
      EXPECT_TRUE(memory.Poke(page * kPageBytes + 8,
                              std::as_bytes(std::span(&place.word, 1))));
    }
    memory.EnableDigest();
    return memory.digest();
  }

  Random random_{11};
};

TEST_F(StretchTest, AgreesWithTheModel) {
  Memory memory;
  Places places;
  memory.EnableDigest();
  for (int i = 0; i < 400; ++i) {
    const uint64_t before = memory.digest();
    const Places places_before = places;
    Step(memory, places);
    ASSERT_TRUE(PlacesOf(memory) == places) << i;
    ASSERT_EQ(memory.digest() == before, places == places_before) << i;
    if (i % 10 == 0) {
      ASSERT_EQ(memory.digest(), DigestOf(places)) << i;
    }
  }
}

TEST_F(StretchTest, RollBackAndCopiesRestoreEverything) {
  Memory memory;
  Places places;
  memory.EnableDigest();
  for (int round = 0; round < 60; ++round) {
    Step(memory, places);
    const Memory snapshot = memory;
    const auto mark = memory.SetMark();
    const Places at_mark = places;
    const uint64_t digest = memory.digest();
    for (uint64_t i = random_.Below(12); i > 0; --i) {
      Step(memory, places);
    }
    ASSERT_TRUE(PlacesOf(memory) == places) << round;
    memory.RollBack(mark);
    ASSERT_TRUE(PlacesOf(memory) == at_mark) << round;
    ASSERT_TRUE(PlacesOf(snapshot) == at_mark) << round;
    ASSERT_EQ(memory.digest(), digest);
    places = at_mark;
    if (round % 5 == 0) {
      memory.DropMarks();
    }
  }
}

// Some TiB cost no more than a page: mapped, protected, used in the middle, and
// given back.
TEST_F(StretchTest, WhatIsReservedCostsNothing) {
  constexpr uint64_t kReserved = uint64_t{1} << 40;
  constexpr uint64_t kMiddle = kReserved + (kReserved / 2 | kPageBytes);
  Memory memory;
  for (int i = 0; i < 1000; ++i) {
    const auto mark = memory.SetMark();
    memory.Map(kReserved, kReserved, 0);
    memory.Protect(kReserved, kReserved, kProtRead);
    memory.Protect(kMiddle, kPageBytes, kProtRead | kProtWrite);
    ASSERT_FALSE(memory.Store(kMiddle - 8, uint64_t{1}));
    ASSERT_TRUE(memory.Store(kMiddle, uint64_t{1}));
    uint64_t value = 1;
    ASSERT_TRUE(memory.Load(kReserved + kReserved - 8, value));
    ASSERT_EQ(value, 0u);
    memory.Unmap(kReserved + kChunkBytes, kReserved);
    ASSERT_TRUE(memory.ProtectionAt(kReserved).has_value());
    ASSERT_FALSE(memory.ProtectionAt(kMiddle).has_value());
    memory.RollBack(mark);
    ASSERT_FALSE(memory.ProtectionAt(kReserved).has_value());
  }
}

TEST_F(MemoryTest, CodeVersionFollowsExecutablePages) {
  Memory memory;
  memory.Map(kBase, kPageBytes, kProtRead | kProtWrite);
  const uint64_t data_only = memory.code_version();
  EXPECT_TRUE(memory.Store(kBase, uint64_t{1}));
  EXPECT_EQ(memory.code_version(), data_only);
  memory.Protect(kBase, kPageBytes, kProtRead | kProtWrite | kProtExec);
  const uint64_t executable = memory.code_version();
  EXPECT_NE(executable, data_only);
  EXPECT_TRUE(memory.Store(kBase, uint64_t{2}));
  EXPECT_NE(memory.code_version(), executable);
  // Two histories from one snapshot never share a version.
  Memory copy = memory;
  EXPECT_TRUE(memory.Store(kBase, uint64_t{3}));
  EXPECT_TRUE(copy.Store(kBase, uint64_t{4}));
  EXPECT_NE(memory.code_version(), copy.code_version());
}

TEST_F(MemoryTest, MoveTakesContentsAndProtection) {
  Memory memory;
  memory.Map(kBase, 2 * kPageBytes, kProtRead | kProtWrite);
  EXPECT_TRUE(memory.Store(kBase + 8, uint64_t{42}));
  memory.Move(kBase, kBase + 4 * kPageBytes, 2 * kPageBytes);
  uint64_t value = 0;
  EXPECT_FALSE(memory.Load(kBase + 8, value));
  EXPECT_TRUE(memory.Load(kBase + 4 * kPageBytes + 8, value));
  EXPECT_EQ(value, 42u);
}

}  // namespace
}  // namespace clew::machine
