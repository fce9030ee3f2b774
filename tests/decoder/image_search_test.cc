// Goal: where a recording has a build-id, only a file of that build is taken;
// where it has none, the file at its path is, marked as not verified, if it has
// code there, and the one that somebody named before that of this host; of two
// that could be meant none is taken. Files of 32 bits are as good as others.
// Method: small shared objects made here, with and without a build-id; mappings
// made field by field.
#include "decoder/image_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/build_id.h"
#include "common/os/file.h"
#include "common/os/scratch_folder.h"
#include "decoder/code_file.h"

namespace clew::decoder {
namespace {

namespace fs = std::filesystem;
using bundle::MmapRecord;
using testing::ElementsAre;
using testing::HasSubstr;

// Where the first executable segment of `path` is in the file.
uint64_t CodeOffset(const std::string& path) {
  const auto file = MappedFile::Open(path);
  for (uint64_t at = 0; file && at < file->bytes().size(); at += 4096) {
    if (HasCodeIn(file->bytes(), at, 1)) {
      return at;
    }
  }
  ADD_FAILURE() << path << " has no code";
  return 0;
}

class ImageSearchTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const {
    return folder_->path() + "/" + name;
  }

  std::string Make(const std::string& name, const std::string& flags,
                   int value = 1) {
    const std::string path = Path(name);
    fs::create_directories(fs::path(path).parent_path());
    const std::string command = fmt::format(
        "echo 'int clew_f(void) {{ return {}; }}' | "
        "cc -x c -shared -fPIC -nostdlib {} -o '{}' -",
        value, flags, path);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return path;
  }

  static MmapRecord Mapping(const std::string& path,
                            const std::string& code_of = "") {
    MmapRecord mapping;
    mapping.pid = 7;
    mapping.addr = TraceeAddr(0x7f0000000000);
    mapping.size_bytes = 4096;
    mapping.executable = true;
    mapping.file_offset = CodeOffset(code_of.empty() ? path : code_of);
    mapping.path = path;
    return mapping;
  }

  static ImageSearch Among(const std::vector<std::string>& places) {
    auto search = ImageSearch::Create(places);
    EXPECT_TRUE(search) << search.error().message;
    return std::move(*search);
  }

  Result<ScratchFolder> folder_ = ScratchFolder::Make("clew-images");
};

constexpr const char* kNoBuildId = "-Wl,--build-id=none";

TEST_F(ImageSearchTest, WithoutABuildIdTheFileAtThePathIsTaken) {
  const std::string file = Make("lib.so", kNoBuildId);
  ImageSearch search;
  const ImageMatch& match = search.Find(Mapping(file));
  EXPECT_EQ(match.file, file) << match.why;
  EXPECT_FALSE(match.verified);
  EXPECT_EQ(search.CountUnverified(), 1u);
}

TEST_F(ImageSearchTest, WithABuildIdItIsVerified) {
  const std::string file = Make("lib.so", "-Wl,--build-id=0x1234");
  MmapRecord mapping = Mapping(file);
  mapping.build_id = {std::byte{0x12}, std::byte{0x34}};
  ImageSearch search;
  EXPECT_EQ(search.Find(mapping).file, file);
  EXPECT_TRUE(search.Find(mapping).verified);
  EXPECT_EQ(search.CountUnverified(), 0u);
  mapping.build_id = {std::byte{0x12}, std::byte{0x35}};
  EXPECT_EQ(search.Find(mapping).file, "");
}

TEST_F(ImageSearchTest, WhatSomebodyNamedComesBeforeThisHosts) {
  const std::string host = Make("host/usr/lib/lib.so", kNoBuildId);
  const std::string named = Make("root/usr/lib/lib.so", kNoBuildId, 2);
  Make("root/usr/other/lib.so", kNoBuildId, 3);
  ImageSearch search = Among({Path("root")});
  EXPECT_EQ(search.Find(Mapping(host)).file, named);
  ImageSearch of_file = Among({named});
  EXPECT_EQ(of_file.Find(Mapping(host)).file, named);
}

TEST_F(ImageSearchTest, OfTwoThatCouldBeMeantNoneIsTaken) {
  const std::string one = Make("root/a/lib.so", kNoBuildId, 1);
  const std::string two = Make("root/b/lib.so", kNoBuildId, 2);
  MmapRecord mapping = Mapping("/nowhere/lib.so", one);
  ImageSearch search = Among({Path("root")});
  const ImageMatch& match = search.Find(mapping);
  EXPECT_EQ(match.file, "");
  EXPECT_EQ(match.refused.size(), 2u);
  fs::copy_file(one, two, fs::copy_options::overwrite_existing);
  ImageSearch same = Among({Path("root")});
  EXPECT_NE(same.Find(mapping).file, "");
}

TEST_F(ImageSearchTest, AFileWithoutCodeThereIsRefused) {
  const std::string file = Make("lib.so", kNoBuildId);
  MmapRecord mapping = Mapping(file);
  mapping.file_offset = 0x100000;
  ImageSearch search;
  const ImageMatch& match = search.Find(mapping);
  EXPECT_EQ(match.file, "");
  ASSERT_EQ(match.refused.size(), 1u);
  EXPECT_THAT(match.refused[0].why, HasSubstr("no code at offset 0x100000"));
}

// Of a program that asks for no protection of its stack everything is mapped as
// code, the headers first; what is mapped behind them may be joined with them.
TEST_F(ImageSearchTest, AFileWhoseHeadersAreMappedAsCodeIsTakenForItsCode) {
  const std::string file = Make("lib.so", kNoBuildId);
  const MmapRecord code = Mapping(file);
  MmapRecord headers = code;
  headers.file_offset = 0;
  headers.size_bytes = 4096;
  ASSERT_GE(code.file_offset, headers.size_bytes);
  ImageSearch search;
  EXPECT_EQ(search.Find(headers).file, "");
  EXPECT_EQ(search.Find(code).file, file);
  EXPECT_EQ(search.Find(headers).file, file);
  EXPECT_EQ(search.matches().size(), 1u);
  headers.size_bytes = code.file_offset + 4096;
  EXPECT_EQ(ImageSearch().Find(headers).file, file);
}

TEST_F(ImageSearchTest, WhatHasThePathOfAnUnlinkedFileIsAnother) {
  const std::string file = Make("lib.so", kNoBuildId);
  ImageSearch search;
  EXPECT_EQ(search.Find(Mapping(file + " (deleted)", file)).file, "");
  ImageSearch named = Among({file});
  EXPECT_EQ(named.Find(Mapping(file + " (deleted)", file)).file, file);
}

TEST_F(ImageSearchTest, FilesOf32BitsHaveBuildIdsAndCode) {
  const std::string file = Make("lib.so", "-m32 -Wl,--build-id=0x77");
  const auto bytes = MappedFile::Open(file);
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_THAT(BuildIdOf(bytes->bytes()), ElementsAre(std::byte{0x77}));
  MmapRecord mapping = Mapping(file);
  mapping.build_id = {std::byte{0x77}};
  ImageSearch search;
  EXPECT_EQ(search.Find(mapping).file, file);
  mapping.build_id.clear();
  EXPECT_EQ(search.Find(mapping).file, file);
}

TEST_F(ImageSearchTest, TheVdsoIsThatOfTheRunOrOfThatBuildId) {
  const std::string run = Make("run", "-Wl,--build-id=0x11");
  const std::string host = Make("host", "-Wl,--build-id=0x22");
  MmapRecord mapping = Mapping("[vdso]", run);
  ImageSearch of_host;
  of_host.AddVdsoOfHost(host);
  EXPECT_EQ(of_host.Find(mapping).file, "");
  EXPECT_THAT(of_host.Find(mapping).why, HasSubstr("--core"));
  ImageSearch both;
  both.AddVdsoOfRun(run, mapping.addr);
  both.AddVdsoOfHost(host);
  EXPECT_EQ(both.Find(mapping).file, run);
  EXPECT_TRUE(both.Find(mapping).verified) << "it was at that address";
  EXPECT_TRUE(both.Find(mapping).from_core);
  mapping.build_id = {std::byte{0x22}};
  EXPECT_EQ(both.Find(mapping).file, host);
  EXPECT_TRUE(both.Find(mapping).verified);
  EXPECT_FALSE(both.Find(mapping).from_core);
}

TEST_F(ImageSearchTest, APlaceIsAFolderOrAnImage) {
  std::ofstream(Path("text")) << "not a program";
  for (const std::string& place : {Path("text"), Path("absent")}) {
    EXPECT_FALSE(ImageSearch::Create({place})) << place;
  }
}

// One rule names files in bundles: 8 bytes of digest without a build-id.
TEST_F(ImageSearchTest, AFileWithoutABuildIdIsNamedByItsDigest) {
  const auto file = ReadWholeFile(Make("lib.so", kNoBuildId));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(BuildIdOf(*file).empty());
  EXPECT_EQ(ImageIdOf(*file).size(), 8u);
  // FNV-1a of nothing, least significant byte first.
  EXPECT_THAT(ImageIdOf({}),
              ElementsAre(std::byte{0x25}, std::byte{0x23}, std::byte{0x22},
                          std::byte{0x84}, std::byte{0xe4}, std::byte{0x9c},
                          std::byte{0xf2}, std::byte{0xcb}));
}

TEST_F(ImageSearchTest, ABuildIdThatIsTooLongIsNone) {
  const auto file =
      ReadWholeFile(Make("lib.so", "-Wl,--build-id=0x" + std::string(42, '1')));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(BuildIdOf(*file).empty());
  EXPECT_EQ(ImageIdOf(*file).size(), 8u);
}

}  // namespace
}  // namespace clew::decoder
