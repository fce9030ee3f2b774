// Goal: a list made from a bundle survives the round trip and names every byte;
// a list from a stranger is taken if and only if every rule of
// proto/collector_store.proto holds, and the message names what breaks it.
// Method: one valid list, changed in one place a case; truncation and flips of
// every byte; the id against a digest computed by sha256sum.
#include "transfer/file_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "proto/collector_store.pb.h"
#include "tests/collector/samples.h"

namespace clew::transfer {
namespace {

namespace fs = std::filesystem;
using collector::Bytes;
using collector::Files;
using collector::Sample;
using collector::TempFolder;
using collector::WriteFiles;
using testing::HasSubstr;

pb::FileList Valid() {
  pb::FileList list;
  list.set_format_version(1);
  const auto add = [&](const std::string& path, uint64_t size, char digest) {
    auto& file = *list.add_files();
    file.set_path(path);
    file.set_size_bytes(size);
    const uint64_t chunks = (size + kChunkBytes - 1) / kChunkBytes;
    file.set_chunk_digests(std::string(32 * chunks, digest));
  };
  add("core", 0, 'x');
  add("images/c0ffee/a.out", 5, 'a');
  add("manifest.pb", 7, 'b');
  add("perf.data", 2 * kChunkBytes, 'c');
  return list;
}

Result<FileList> Parse(const pb::FileList& list,
                       const FileListLimits& limits = {}) {
  return FileList::Parse(Bytes(list.SerializeAsString()), limits);
}

struct Hostile {
  std::string what;
  std::function<void(pb::FileList&)> change;
  ErrorCode code;
  std::string message;
};

const std::vector<Hostile>& HostileLists() {
  using enum ErrorCode;
  static const std::vector<Hostile> cases = {
      {"no version", [](auto& l) { l.clear_format_version(); }, kUnsupported,
       "format_version is 0, wanted 1"},
      {"later version", [](auto& l) { l.set_format_version(2); }, kUnsupported,
       "format_version is 2, wanted 1"},
      {"10 GB",
       [](auto& l) { l.mutable_files(3)->set_size_bytes(10737418240); }, kLimit,
       "files[3] \"perf.data\": size_bytes is 10737418240, 8589934580"},
      {"overflow",
       [](auto& l) {
         l.mutable_files(0)->set_size_bytes(UINT64_MAX);
         l.mutable_files(1)->set_size_bytes(2);
       },
       kLimit, "files[0] \"core\": size_bytes is 18446744073709551615"},
      {"too few chunks",
       [](auto& l) {
         l.mutable_files(3)->set_chunk_digests(std::string(32, 'c'));
       },
       kCorruptInput, "\"perf.data\": 1 chunks, wanted 2 for size_bytes"},
      {"too many chunks",
       [](auto& l) {
         l.mutable_files(3)->set_chunk_digests(std::string(96, 'c'));
       },
       kCorruptInput, "\"perf.data\": 3 chunks, wanted 2"},
      {"one byte more than chunks",
       [](auto& l) { l.mutable_files(3)->set_size_bytes(2 * kChunkBytes + 1); },
       kCorruptInput, "2 chunks, wanted 3"},
      {"chunk of an empty file",
       [](auto& l) {
         l.mutable_files(0)->set_chunk_digests(std::string(32, 'x'));
       },
       kCorruptInput, "\"core\": 1 chunks, wanted 0"},
      {"half a digest",
       [](auto& l) {
         l.mutable_files(1)->set_chunk_digests(std::string(31, 'a'));
       },
       kCorruptInput, "files[1].chunk_digests: 31 bytes, wanted a multiple"},
      {"one digest, two sizes",
       [](auto& l) {
         l.mutable_files(1)->set_chunk_digests(std::string(32, 'b'));
       },
       kCorruptInput, "is claimed to have 5 bytes and 7 bytes"},
      {"twice", [](auto& l) { *l.mutable_files(1) = l.files(0); },
       kCorruptInput, "files[1].path: \"core\" is there twice"},
      {"out of order", [](auto& l) { l.mutable_files()->SwapElements(0, 1); },
       kCorruptInput,
       "files[1].path: \"core\" comes after \"images/c0ffee/a.out\""},
      {"no manifest", [](auto& l) { l.mutable_files()->DeleteSubrange(2, 1); },
       kInvalidArgument, "no manifest.pb"},
      {"no trace", [](auto& l) { l.mutable_files()->RemoveLast(); },
       kInvalidArgument, "no perf.data"},
      {"two cores", [](auto& l) { l.mutable_files(1)->set_path("core.zst"); },
       kInvalidArgument, "core and core.zst"},
      {"empty", [](auto& l) { l.clear_files(); }, kInvalidArgument,
       "no manifest.pb"},
  };
  return cases;
}

TEST(FileListTest, AHostileListIsRefusedByName) {
  ASSERT_TRUE(Parse(Valid()).has_value()) << Parse(Valid()).error().message;
  for (const Hostile& hostile : HostileLists()) {
    SCOPED_TRACE(hostile.what);
    pb::FileList list = Valid();
    hostile.change(list);
    const auto parsed = Parse(list);
    ASSERT_FALSE(parsed.has_value());
    EXPECT_EQ(parsed.error().code, hostile.code) << parsed.error().message;
    EXPECT_THAT(parsed.error().message, HasSubstr(hostile.message));
  }
}

TEST(FileListTest, OnlyNamesOfTheBundleFormatAreTaken) {
  for (const std::string path :
       {"core", "core.zst", "inputs.pb", "manifest.pb", "perf.data",
        "schedule.pb", "start.pb", "images/ab/a.out",
        "images/0123456789abcdef/libstdc++.so.6.0.30", "images/ab/...",
        "images/ab/-rf"}) {
    EXPECT_TRUE(CheckPath(path).has_value()) << path;
  }
  const std::string long_name(256, 'a');
  const std::vector<std::string> refused = {
      "",
      "/",
      ".",
      "..",
      "core/",
      "/core",
      "./core",
      "lock",
      "Core",
      "schedule.pb.partial",
      "list.pb",
      "images",
      "images/",
      "images/ab",
      "images/ab/",
      "images//a",
      "images/ab//a",
      "images/ab/.",
      "images/ab/..",
      "images/../a",
      "images/ab/../a",
      "images/ab/c/d",
      "images/AB/a",
      "images/abc/a",
      "images/xy/a",
      "../core",
      "../../etc/passwd",
      "images/ab/a b",
      "images/ab/a\nb",
      "images/ab/a\\b",
      "images/ab/\xff",
      std::string("core\0", 5),
      std::string("images/ab/a\0b", 13),
      "images/ab/" + long_name,
      "images/" + std::string(130, 'a') + "/a"};
  for (const std::string& path : refused) {
    EXPECT_FALSE(CheckPath(path).has_value()) << path;
    pb::FileList list = Valid();
    list.mutable_files(1)->set_path(path);
    const auto parsed = Parse(list);
    ASSERT_FALSE(parsed.has_value()) << path;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(parsed.error().message, HasSubstr("files[1].path: "));
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  }
}

TEST(FileListTest, LimitsHoldToTheByte) {
  const uint64_t size_bytes = 12 + 2 * kChunkBytes;
  EXPECT_TRUE(Parse(Valid(), {.bundle_bytes_max = size_bytes}).has_value());
  EXPECT_FALSE(
      Parse(Valid(), {.bundle_bytes_max = size_bytes - 1}).has_value());
  EXPECT_TRUE(Parse(Valid(), {.files_max = 4}).has_value());
  EXPECT_FALSE(Parse(Valid(), {.files_max = 3}).has_value());
  const size_t encoded = Valid().ByteSizeLong();
  EXPECT_TRUE(Parse(Valid(), {.encoded_bytes_max = encoded}).has_value());
  const auto refused = Parse(Valid(), {.encoded_bytes_max = encoded - 1});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kLimit);
}

// Every cut either is refused or is another valid list; nothing else happens.
TEST(FileListTest, EveryTruncationAndFlipIsRefusedOrAnotherList) {
  const std::string whole = Valid().SerializeAsString();
  const auto id = Parse(Valid())->id();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(FileList::Parse(Bytes(whole.substr(0, size))).has_value());
  }
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto list = FileList::Parse(Bytes(flipped));
    if (list) {
      EXPECT_NE(list->id(), id) << "bit " << bit;
    }
  }
}

TEST(FileListTest, ABundleSurvivesTheRoundTripWithEveryByteNamed) {
  std::string big(kChunkBytes + 5, 'z');
  big[3] = 'y';
  const Sample sample({{"manifest.pb", "m"},
                       {"perf.data", big},
                       {"start.pb", std::string(kChunkBytes, 's')},
                       {"inputs.pb", ""},
                       {"schedule.pb.partial", "left by a solve that died"},
                       {"images/ab/libstdc++.so.6", "zzzzz"}});
  const auto& files = sample.list.files();
  ASSERT_EQ(files.size(), 5u);
  EXPECT_EQ(files[0].path, "images/ab/libstdc++.so.6");
  EXPECT_EQ(files[1].chunks.size(), 0u);
  EXPECT_EQ(files[3].path, "perf.data");
  ASSERT_EQ(files[3].chunks.size(), 2u);
  EXPECT_EQ(files[3].chunk(0).size_bytes, kChunkBytes);
  EXPECT_EQ(files[3].chunk(1).size_bytes, 5u);
  EXPECT_EQ(files[3].chunks[1], files[0].chunks[0]) << "equal bytes, one chunk";
  EXPECT_EQ(files[4].chunks.size(), 1u);
  EXPECT_EQ(sample.list.size_bytes(), 2 * kChunkBytes + 11);
  EXPECT_EQ(sample.list.Chunks().size(), 4u);
  const auto again = FileList::Parse(sample.list.Encode());
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(*again, sample.list);
}

class Steps final : public ProgressSink {
 public:
  void Update(uint64_t done, uint64_t total) override {
    EXPECT_GT(done, done_);
    done_ = done;
    total_ = total;
    ++steps_;
  }
  uint64_t done_ = 0;
  uint64_t total_ = 0;
  int steps_ = 0;
};

TEST(FileListTest, ReadingABundleSaysHowFarItIs) {
  const TempFolder folder;
  collector::WriteFiles(
      folder / "b",
      {{"manifest.pb", "m"}, {"perf.data", std::string(kChunkBytes + 5, 'z')}});
  Steps steps;
  const auto list = FileList::OfBundle(folder / "b", {}, &steps);
  ASSERT_TRUE(list.has_value()) << list.error().message;
  EXPECT_EQ(steps.steps_, 3);
  EXPECT_EQ(steps.done_, kChunkBytes + 6);
  EXPECT_EQ(steps.total_, kChunkBytes + 6);
}

// Oracle: sha256sum, over `a` and over the bytes of the specification,
// assembled by hand.
TEST(FileListTest, TheIdIsTheDigestOfTheSpecifiedBytes) {
  const Sample sample({{"manifest.pb", "a"}, {"perf.data", ""}});
  const std::string chunk =
      "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
  ASSERT_EQ(sample.list.files()[0].chunks[0].hex(), chunk);
  EXPECT_EQ(sample.list.id().hex(),
            "5740db1622f63e8de0df66bfc276dedba86c4b52b35bb9f7ed2a04b7815cdee2");
}

TEST(FileListTest, AFolderThatIsNoBundleIsRefused) {
  const Files bundle = {{"manifest.pb", "m"}, {"perf.data", "p"}};
  const auto error_with = [&](const std::string& path) {
    const TempFolder folder;
    WriteFiles(folder.path(), bundle);
    WriteFiles(folder.path(), {{path, "x"}});
    const auto list = FileList::OfBundle(folder.path());
    return list ? "" : list.error().message;
  };
  EXPECT_EQ(error_with("core"), "");
  EXPECT_THAT(error_with("lock"), HasSubstr("\"lock\""));
  EXPECT_THAT(error_with("images/ab/x y"), HasSubstr("\"images/ab/x y\""));
  const TempFolder folder;
  WriteFiles(folder.path(), bundle);
  fs::create_symlink("/etc/passwd", folder / "core");
  const auto list = FileList::OfBundle(folder.path());
  ASSERT_FALSE(list.has_value());
  EXPECT_THAT(list.error().message, HasSubstr("\"core\" is no regular file"));
  EXPECT_FALSE(FileList::OfBundle(folder / "absent").has_value());
}

}  // namespace
}  // namespace clew::transfer
