// Goal: a library is found by the name under which ld.so has it, and tables
// that make no sense end in no answer. Method: ld.so's tables by hand in the
// toy's memory; then cut, closed to a ring and overwritten with random bytes
// (seed printed).
#include "replayer/loaded_library.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>

#include <array>
#include <string>

#include "common/digest.h"
#include "tests/replayer/fake_target.h"

namespace clew::replayer {
namespace {

constexpr uint64_t kHeaders = kToyData;
constexpr uint64_t kDynamic = kToyData + 0x100;
constexpr uint64_t kDebug = kToyData + 0x200;
constexpr uint64_t kMaps = kToyData + 0x300;  // 0x80 bytes each
constexpr uint64_t kNames = kToyData + 0x600;
constexpr uint64_t kBias = kToyData - 0x40;  // of the program

class LoadedLibraryTest : public testing::Test {
 protected:
  LoadedLibraryTest() : target_(ToyThreads(1, 4), {}, {}) {}

  void SetUp() override {
    const std::array<uint64_t, 6> auxv = {AT_PHDR, kHeaders, AT_PHNUM, 2, 0, 0};
    const auto bytes = std::as_bytes(std::span(auxv));
    target_.set_exec("/bin/p", {bytes.begin(), bytes.end()});
    PutHeader(0, PT_PHDR, kHeaders - kBias);
    PutHeader(1, PT_DYNAMIC, kDynamic - kBias);
    Put(kDynamic, Elf64_Dyn{.d_tag = DT_SONAME, .d_un = {}});
    Put(kDynamic + sizeof(Elf64_Dyn),
        Elf64_Dyn{.d_tag = DT_DEBUG, .d_un = {.d_ptr = kDebug}});
    Put(kDebug, uint32_t{1});
    Put(kDebug + 8, kMaps);
    PutMap(0, kBias, "", kMaps + 0x80);
    PutMap(1, kToyCode, "/lib/libone.so.1", kMaps + 0x100);
    PutMap(2, kToyStack, "./libtwo.so", 0);
    Put(kToyCode, std::array<char, 4>{'o', 'n', 'e', '!'});
    Put(kToyStack, std::array<char, 4>{'t', 'w', 'o', '!'});
  }
  template <class T>
  void Put(uint64_t addr, const T& value) {
    ASSERT_TRUE(
        target_.memory().Poke(addr, std::as_bytes(std::span(&value, 1))));
  }
  void PutHeader(uint64_t number, uint32_t type, uint64_t vaddr) {
    Elf64_Phdr header = {};
    header.p_type = type;
    header.p_vaddr = vaddr;
    Put(kHeaders + number * sizeof(header), header);
  }
  void PutMap(uint64_t number, uint64_t addr, std::string_view name,
              uint64_t next) {
    const uint64_t text = kNames + 0x40 * number;
    ASSERT_TRUE(target_.memory().Poke(text, std::as_bytes(std::span(name))));
    Put(text + name.size(), char{0});
    Put(kMaps + 0x80 * number,
        std::array<uint64_t, 5>{addr, text, /*l_ld=*/0, next, /*l_prev=*/0});
  }
  std::string Start(std::string_view name) {
    const auto bytes = LoadedLibraryStart(target_, name);
    return {reinterpret_cast<const char*>(bytes.data()),
            std::min<size_t>(bytes.size(), 4)};
  }

  FakeTarget target_;
};

TEST_F(LoadedLibraryTest, IsFoundByTheNameThatLdSoHas) {
  EXPECT_EQ(Start("/lib/libone.so.1"), "one!");
  EXPECT_EQ(Start("./libtwo.so"), "two!");
  EXPECT_EQ(LoadedLibraryStart(target_, "./libtwo.so").size(),
            kLibraryStartBytes);
  EXPECT_EQ(Start("/lib/libone.so"), "");
  EXPECT_EQ(Start("/lib/libone.so.1.0"), "");
}

TEST_F(LoadedLibraryTest, FurtherNamespacesAreSearchedFromVersion2On) {
  constexpr uint64_t kDebug2 = kDebug + 0x40;
  Put(kDebug + 8, kMaps + 0x100);  // the first has the last library only
  Put(kDebug2 + 8, kMaps + 0x80);  // r_map
  Put(kDebug + 40, kDebug2);       // r_next
  EXPECT_EQ(Start("/lib/libone.so.1"), "");
  Put(kDebug, uint32_t{2});
  EXPECT_EQ(Start("/lib/libone.so.1"), "one!");
}

TEST_F(LoadedLibraryTest, TablesThatEndNowhereHaveNothing) {
  PutMap(2, kToyStack, "./libtwo.so", kMaps);  // a ring
  EXPECT_EQ(Start("/none"), "");
  PutMap(2, 0x10, "./libtwo.so", 0);  // nothing is mapped there
  EXPECT_EQ(Start("./libtwo.so"), "");
  PutMap(1, kToyCode, "/lib/libone.so.1", 0x10);
  EXPECT_EQ(Start("./libtwo.so"), "");
  Put(kDebug + 8, uint64_t{0x10});
  EXPECT_EQ(Start("/lib/libone.so.1"), "");
  Put(kDynamic + sizeof(Elf64_Dyn), Elf64_Dyn{.d_tag = DT_NULL, .d_un = {}});
  EXPECT_EQ(Start("/lib/libone.so.1"), "");
  target_.set_exec("/bin/static", {});
  EXPECT_EQ(Start("/lib/libone.so.1"), "");
}

TEST_F(LoadedLibraryTest, RandomTablesAreSurvived) {
  const uint64_t seed = 9;
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 2000; ++round) {
    SetUp();
    for (int i = 0; i < 4; ++i) {
      const uint64_t at = kToyData + 8 * random.Below(0x700 / 8);
      Put(at, random.Below(2) == 0 ? kToyData + random.Below(0x1000)
                                   : random.Below(UINT64_MAX));
    }
    Start("./libtwo.so");
  }
}

}  // namespace
}  // namespace clew::replayer
